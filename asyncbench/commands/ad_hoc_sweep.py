"""A sweep that is typed as options of `run`, instead of a file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from asyncbench.errors import ConfigError

if TYPE_CHECKING:
    from asyncbench.config import Sweep
    from asyncbench.records import Model


def sweep_as_typed(
    sweep_file: Path | None, model: list[str] | None, problems: list[str] | None, out: Path | None
) -> dict[str, object]:
    """Return the sweep that --model, --problems and --out describe, instead of a file."""
    if sweep_file is not None:
        if model or problems or out:
            raise ConfigError("give a sweep file or --model, --problems and --out, not both")
        return {}
    if not model or not problems or out is None:
        raise ConfigError("give a sweep file, or all of --model, --problems and --out")
    return {"name": out.name, "models": list(model), "problems": list(problems), "out": str(out)}


def check_ad_hoc_budget(sweep: "Sweep", budget: float, models: Sequence[str]) -> None:
    """Refuse models that a budget can hold only by what a sweep file says of them."""
    from asyncbench.config import with_budget
    from asyncbench.sweeps import check_budget

    meant = with_budget(sweep, budget, place="run")
    try:
        check_budget(meant, meant.models)
    except ConfigError as error:
        raise ConfigError(f"{error}\n{_as_a_file(sweep, models)}") from None


def _as_a_file(sweep: "Sweep", models: Sequence[str]) -> str:
    """Return the sweep file that says of models, named as they were typed, what a budget has to know."""
    given = [
        ", ".join([f"model: {json.dumps(name)}", *_unsaid(sweep, model)])
        for name, model in zip(models, sweep.models, strict=True)
    ]
    lines = [
        f"name: {json.dumps(sweep.name)}",
        f"problems: {json.dumps([str(one.path) for one in sweep.problems])}",
        f"models: [{', '.join(f'{{{one}}}' for one in given)}]",
        f"out: {json.dumps(str(sweep.out))}",
    ]
    return "\n".join(
        ["A sweep file says it; write these lines to sweep.yaml, with your own figures:", *lines]
    )


def _unsaid(sweep: "Sweep", model: "Model") -> list[str]:
    """Return what a budget has to know of a model and nobody knows: the longest reply, the price."""
    from asyncbench.providers import longest_reply_of
    from asyncbench.sweeps import priced

    endless = any(longest_reply_of(model, condition) is None for condition in sweep.conditions)
    return ["max_tokens: 1000"] * endless + ["price: {input: …, output: …}"] * (not priced(sweep, model))
