"""The forecasts of a sweep in forecast.json, kept for comparison with its results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from asyncbench.errors import StoreError
from asyncbench.files import write_durably
from asyncbench.planning.report import Plan
from asyncbench.store.parts import TEMPORARY

FORECAST: Final = "forecast.json"
VERSION: Final = 1  # raise when a key changes meaning; adding one is not a change
MOST: Final = 20  # forecasts that are kept: the first, and the latest
Kept = Mapping[str, Any]  # Any: JSON, as `keep_forecast` writes it


def read_forecasts(folder: Path) -> tuple[Kept, ...]:
    """Return the forecasts that a results folder holds, the oldest first; none where it has no file of them.

    Raises:
        StoreError: the file cannot be read, or a later asyncbench wrote it.
    """
    path = folder / FORECAST
    try:
        content = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, orjson.JSONDecodeError) as error:
        raise StoreError(
            f"{path} cannot be read: {error}. Remove it; the next run writes it again."
        ) from error
    match content:
        case {"version": int(version), "forecasts": list(forecasts)} if version <= VERSION:
            return tuple(forecasts)
    raise StoreError(f"This asyncbench cannot read {path}. Remove the file, or install a later asyncbench.")


def keep_forecast(plan: Plan, folder: Path, *, by: str) -> None:
    """Add a plan's forecast to its results folder, where it tells anything new; `by`: pilot or run.

    Models of which too little is known are left out. `folder` is where the results are on this machine.

    Raises:
        StoreError: the folder cannot be read or written.
    """
    total = plan.forecast_total
    models = {
        model.model: {
            "trials": model.trials,
            "observed": model.done,
            "left": model.left,
            "spent": asdict(model.forecast.spent),
            "total": asdict(model.forecast.total),
            "seconds": asdict(model.forecast.seconds),
            "bound_by": model.bound_by,
            "price_source": model.price_source,
            "prices": model.prices,
        }
        for model in plan.models
        if model.forecast is not None and model.left
    }
    made = {
        "sweep": plan.sweep,
        "limit": plan.limit,
        "models": models,
        "together": None if total is None else {"total": asdict(total)},
    }
    if (content := add_forecast(read_forecasts(folder), made, by=by)) is not None:
        write_durably(folder / FORECAST, content, temporary=folder / TEMPORARY / FORECAST)


def add_forecast(before: Sequence[Kept], made: Kept, *, by: str) -> bytes | None:
    """Return the file with one forecast more; None where it would tell nothing new."""
    if not made["models"] or any(_made_from(kept) == _made_from(made) for kept in before):
        return None
    return _file([*before, {"made_at": datetime.now(UTC).isoformat(timespec="seconds"), "by": by, **made}])


def joined_forecasts(several: Iterable[Sequence[Kept]]) -> bytes | None:
    """Return the file with what several files hold, each forecast once; None where they hold nothing."""
    every = [kept for forecasts in several for kept in forecasts]
    once = [kept for i, kept in enumerate(every) if kept not in every[:i]]
    return _file(sorted(once, key=lambda kept: str(kept["made_at"]))) if once else None


def _file(forecasts: Sequence[Kept]) -> bytes:
    kept = [*forecasts[:1], *forecasts[1:][-(MOST - 1) :]]
    return orjson.dumps({"version": VERSION, "forecasts": kept}, option=orjson.OPT_INDENT_2)


def _made_from(made: Kept) -> tuple[object, ...]:
    models = {
        alias: [model.get(name) for name in ("trials", "observed", "left", "prices")]
        for alias, model in made["models"].items()
    }
    return made["sweep"], made["limit"], models


def is_already_forecast(
    before: Iterable[Kept], model: str, *, limit: int | None, trials: int, prices: object
) -> bool:
    """Return whether a model was forecast for so many trials at these prices, from however many of them."""
    return any(
        (kept["limit"], entry.get("trials"), entry.get("prices")) == (limit, trials, prices)
        for kept in before
        if (entry := kept["models"].get(model)) is not None
    )
