"""The conditions of a sweep: how its problems are asked."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import Field, NonNegativeFloat

from asyncbench.config.entry import Entry, Keys, Name, params_from, suggestion
from asyncbench.config.place import Place, quoted
from asyncbench.errors import ConfigError
from asyncbench.files import input_path
from asyncbench.prompting import PADDINGS, examples, padding
from asyncbench.records import OF_CONDITIONS, Condition
from asyncbench.suites import SUITES


class ConditionEntry(Entry):
    """One way to ask the problems. Each condition asks all problems of its suites."""

    name: Name = Field(description="The condition's name in tables and in the column `condition`.")
    system: Name | None = Field(
        default=None,
        description="A system prompt. Without it: the model's own, if it has one. "
        "Only one of the two may be set.",
    )
    context: Name | None = Field(
        default=None,
        description="Small talk before the question, to fill the context: `1k`, `2k` or `4k` tokens, "
        "or the path of a file. Without it: none.",
    )
    shots: Annotated[int, Field(ge=1)] | Name | None = Field(
        default=None,
        description="Worked examples before the question: a number, if the suite defines some, "
        "or the path of a file for `custom` problems. Without it: none.",
    )
    style: Literal["chat", "completion", "rules"] = Field(
        default="chat",
        description="The form of the question. `nupa` also knows `completion` (plain text, for base models) "
        "and `rules` (a procedure to follow).",
    )
    effort: Name | None = Field(
        default=None, description="How hard models think. It wins over that of the model."
    )
    temperature: Annotated[NonNegativeFloat, Field(strict=False)] | None = Field(
        default=None, description="The sampling temperature. It wins over that of the model."
    )
    params: Keys = Field(
        default_factory=dict,
        description="More parameters of the request. They win over those of the model.",
        json_schema_extra={"default": {}},
    )
    suites: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="The suites that this condition is for. Without it: all."
    )
    models: Annotated[list[Name], Field(min_length=1)] | None = Field(
        default=None,
        description="The models that this condition is for: aliases, or patterns such as `*/gpt-5*`. The "
        "alias of an entry with lists means all that it stands for. Without it: all models.",
    )


AS_SAID = ("system", "context", "shots", *OF_CONDITIONS, "params")


def condition_from(entry: ConditionEntry, *, place: Place, near: Path | None = None) -> Condition:
    """Return a condition as written in the sweep file `near`, with the text of the files it names."""
    entry.params = params_from(entry.params, place=place)
    for i, suite in enumerate(entry.suites or ()):
        if suite not in SUITES:
            raise ConfigError(
                f"{place / 'suites' / i}: no suite {quoted(suite)}. {suggestion(suite, SUITES)}"
            )
    talk = () if entry.context is None else padding(entry.context, place=str(place / "context"), near=near)
    own = isinstance(entry.shots, str)
    shots = examples(str(entry.shots), place=str(place / "shots"), near=near) if own else ()
    turns = (*talk, *shots)  # small talk first, so that worked examples stand next to the question
    # What tells one text of a file from another: its path alone would not.
    text = orjson.dumps([{"role": turn.role, "content": turn.content} for turn in turns])
    digest = {"turns_digest": blake2b(text, digest_size=8).hexdigest()} if turns else {}
    said = {name: value for name in AS_SAID if (value := getattr(entry, name)) not in (None, {})}
    return Condition(
        name=entry.name,
        style=entry.style,
        system=entry.system,
        turns=turns,
        shots=entry.shots if isinstance(entry.shots, int) else None,
        params=entry.params,
        effort=entry.effort,
        temperature=entry.temperature,
        suites=None if entry.suites is None else frozenset(entry.suites),
        described=said | digest,
    )


def condition_mapping(condition: Condition, near: Path | None = None) -> dict[str, object]:
    """Return the entry that `condition_from` reads back; `near`: the sweep file that names its files."""
    said = {name: condition.described[name] for name in AS_SAID if name in condition.described}
    for name in ("context", "shots"):
        if isinstance(path := said.get(name), str) and path not in PADDINGS:
            said[name] = str(input_path(path, near))
    style = {} if condition.style == "chat" else {"style": condition.style}
    suites = {} if condition.suites is None else {"suites": sorted(condition.suites)}
    models = {} if condition.models is None else {"models": sorted(condition.models)}
    return {"name": condition.name, **style, **said, **suites, **models}


def models_meant(patterns: Sequence[str], bases: Mapping[str, str], *, place: Place) -> frozenset[str]:
    """Return the aliases that a condition is for; `bases`: by alias, that of the entry it comes from.

    Raises:
        ConfigError: a pattern fits none.
    """
    meant = set[str]()
    for i, pattern in enumerate(patterns):
        exact = {alias for alias, base in bases.items() if pattern in (alias, base)}
        fitting = exact or {
            alias
            for alias, base in bases.items()
            if fnmatchcase(alias, pattern) or fnmatchcase(base, pattern)
        }
        if not fitting:
            known = dict.fromkeys([*bases.values(), *bases])
            raise ConfigError(f"{place / i}: no model is called {pattern!r}. {suggestion(pattern, known)}")
        meant |= fitting
    return frozenset(meant)


def condition_complaint(condition: Condition, suite: str) -> str | None:
    """Return why the problems of a suite cannot be asked under a condition; None: they can."""
    known = SUITES[suite]
    if condition.style not in known.styles:
        return f"{suite} has no style {condition.style!r}, only {', '.join(known.styles)}"
    if (shots := condition.shots) is not None:
        if known.asking is None:
            return f"{suite} defines no worked examples, so `shots: {shots}` cannot be asked"
        if (most := known.asking.shots.get(condition.style, 0)) >= shots:
            return None
        none = f"no worked examples in style {condition.style!r}"
        has = f"{most} worked examples for each task" if most else none
        return f"{suite} has {has}, so `shots: {shots}` cannot be asked"
    if "shots" in condition.described and not known.shots_from_file:
        return f"{suite} takes no worked examples of your own, as its published form has none"
    return None
