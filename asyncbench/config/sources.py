"""Where problems come from: files, or suites to generate them with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from asyncbench.config.entry import Entry, Name, read_entry
from asyncbench.errors import ConfigError
from asyncbench.files import input_path
from asyncbench.suites import SUITES


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSource:
    """Where problems come from: a file, or a suite to generate them with."""

    place: str  # for messages: where in the sweep it stands
    path: Path | None = None
    suite: str | None = None
    seed: int = 0
    parameters: Mapping[str, object] = field(default_factory=dict)  # parsed, of the suite
    columns: Mapping[str, str] = field(default_factory=dict)  # custom: contract's name → the file's
    grader: str | None = None  # custom
    pattern: str | None = None  # custom, grader `regex`
    run: str | None = None  # of a file of recorded answers: whose problems are meant


class ProblemsEntry(Entry):
    path: Name
    suite: Literal["custom"] | None = None
    columns: Annotated[dict[str, str], Field(default_factory=dict)]
    grader: str | None = None
    pattern: str | None = None
    run: Name | None = None


def sources_from(given: object, *, place: str) -> tuple[ProblemSource, ...]:
    """Return a list of problem sets as written in a sweep file."""
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise ConfigError(f"{place}: {given!r} is not a list of problem sets")
    return tuple(_source(source, place=f"{place}[{i}]") for i, source in enumerate(given, 1))


def _source(given: object, *, place: str) -> ProblemSource:
    if isinstance(given, str):
        return ProblemSource(place=place, path=Path(given))
    if isinstance(given, Mapping) and "path" not in given and "suite" in given:
        return _generated(given, place=place)
    entry = read_entry(ProblemsEntry, given, place=place, level="problems")
    if entry.suite is None and (entry.columns or entry.grader or entry.pattern):
        raise ConfigError(f"{place}: columns, grader and pattern go with `suite: custom`")
    if entry.run is not None and entry.suite is not None:
        raise ConfigError(f"{place}: `run` names a run of a file of recorded answers. Leave `suite` out.")
    return ProblemSource(
        place=place,
        path=Path(entry.path),
        suite=entry.suite,
        columns=entry.columns,
        grader=entry.grader,
        pattern=entry.pattern,
        run=entry.run,
    )


def _generated(given: Mapping[str, object], *, place: str) -> ProblemSource:
    rest = dict(given)
    name, seed = rest.pop("suite"), rest.pop("seed", 0)
    suite = SUITES.get(str(name))
    if suite is None or suite.generate is None:
        makeable = ", ".join(key for key, value in SUITES.items() if value.generate)
        raise ConfigError(f"{place}: suite {name!r} cannot be generated; these can: {makeable}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ConfigError(f"{place}: seed {seed!r} is not a whole number")
    suite.parsed(rest, place=place)
    return ProblemSource(place=place, suite=suite.name, seed=seed, parameters=rest)


def source_mapping(source: ProblemSource, near: Path | None = None) -> dict[str, object] | str:
    """Return the entry that `sources_from` reads back; `near`: the sweep file that names it."""
    if source.path is None:
        return {"suite": source.suite, "seed": source.seed, **source.parameters}
    path = str(input_path(source.path, near))
    if source.run is not None:
        return {"path": path, "run": source.run}
    if source.suite is None:
        return path
    custom = {"columns": dict(source.columns), "grader": source.grader, "pattern": source.pattern}
    said = {name: value for name, value in custom.items() if value}
    return {"path": path, "suite": source.suite, **said}
