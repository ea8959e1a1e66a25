"""The sources of problems in a sweep: files, or suites to generate them with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag

from asyncbench.config.entry import Entry, Name, suggestion
from asyncbench.config.place import Place, quoted
from asyncbench.errors import ConfigError
from asyncbench.files import input_path
from asyncbench.problems.hub import remote_address
from asyncbench.suites.plugins import file_named, is_in_file
from asyncbench.suites.table import SUITES


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSource:
    """A source of problems: a file, or a suite to generate them with."""

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
    """A problem set in a file: its path alone, or a mapping with these keys."""

    path: Name = Field(
        description="The path of a Parquet file. With `suite: custom` also of a CSV, TSV, JSON lines or "
        "JSON file. Or the address of such a file on the Hugging Face Hub: `hf://datasets/OWNER/NAME`, "
        "`hf://datasets/OWNER/NAME/FILE` or `hf://datasets/OWNER/NAME@REVISION/FILE`."
    )
    suite: Literal["custom"] | None = Field(
        default=None,
        description="`custom`, for a file of your own. Leave it out for files of `asyncbench generate`.",
    )
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="Only for `custom`: the columns of your file. Keys are asyncbench's names, such as "
        "`question` and `expected`. Values are yours. You may leave out columns with usual names, such as "
        "`prompt` or `answer`: `asyncbench problems inspect FILE` shows them.",
        json_schema_extra={"default": {}},
    )
    grader: str | None = Field(
        default=None,
        description="Only for `custom`: exact, number, choice, regex, or a function of your own. "
        "`my_module:function` is the function in `my_module.py`, beside the sweep file or else in the "
        "working directory.",
        json_schema_extra={"examples": ["exact", "number", "choice", "regex", "my_module:function"]},
    )
    pattern: str | None = Field(
        default=None,
        description="Only for grader `regex`: a regular expression. Its first group is the answer.",
    )
    run: Name | None = Field(
        default=None,
        description="Only for a file of recorded answers: the run whose problems are asked.",
    )


def _with_parameters(schema: dict[str, Any]) -> None:
    """Add the parameters of all suites that can be generated."""
    makeable = [suite for suite in SUITES.values() if suite.generate]
    schema["properties"]["suite"]["enum"] = [suite.name for suite in makeable]
    helps: dict[str, list[str]] = {}
    for suite in makeable:
        for name, parameter in suite.parameters.items():
            helps.setdefault(name, []).append(f"{suite.name}: {parameter.help}.")
    schema["properties"] |= {name: {"description": " ".join(texts)} for name, texts in helps.items()}
    schema["additionalProperties"] = False


class GeneratedEntry(Entry):
    """A problem set that is generated from a seed. It is the same on every machine."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_with_parameters)  # of the suite, which checks

    suite: str = Field(description="The suite to generate. `asyncbench suites` lists them.")
    seed: int = Field(default=0, description="The seed. The same seed gives the same problems.")


def _as_mapping(raw: object) -> object:
    return {"path": raw} if isinstance(raw, str) else raw


def _kind(raw: object) -> str:
    generated = isinstance(raw, Mapping) and "path" not in raw and "suite" in raw
    return "a suite" if generated else "a file"


Problems = list[
    Annotated[
        Annotated[ProblemsEntry, Tag("a file")] | Annotated[GeneratedEntry, Tag("a suite")],
        Discriminator(_kind),
        BeforeValidator(_as_mapping, json_schema_input_type=str | ProblemsEntry | GeneratedEntry),
    ]
]


def sources_from(
    entries: Sequence[ProblemsEntry | GeneratedEntry], *, place: Place
) -> tuple[ProblemSource, ...]:
    """Return the problem sets of a sweep file."""
    return tuple(_source(entry, place=place / i) for i, entry in enumerate(entries))


def _source(entry: ProblemsEntry | GeneratedEntry, *, place: Place) -> ProblemSource:
    named = f"{place}, {place.name}" if place.root else str(place)  # a line may hold several
    if isinstance(entry, GeneratedEntry):
        return _generated(entry, place=named)
    if entry.suite is None and (entry.columns or entry.grader or entry.pattern):
        raise ConfigError(f"{place}: columns, grader and pattern need `suite: custom`. Add it")
    if entry.run is not None and entry.suite is not None:
        raise ConfigError(f"{place}: `run` names a run of a file of recorded answers. Leave `suite` out.")
    return ProblemSource(
        place=named,
        path=Path(entry.path),
        suite=entry.suite,
        columns=entry.columns,
        grader=entry.grader,
        pattern=entry.pattern,
        run=entry.run,
    )


def _generated(entry: GeneratedEntry, *, place: str) -> ProblemSource:
    suite, parameters = SUITES.get(entry.suite), entry.model_extra or {}
    if suite is None or suite.generate is None:
        makeable = [key for key, value in SUITES.items() if value.generate]
        raise ConfigError(
            f"{place}: suite {quoted(entry.suite)} cannot be generated. {suggestion(entry.suite, makeable)}"
        )
    suite.parsed(parameters, place=place)
    return ProblemSource(place=place, suite=suite.name, seed=entry.seed, parameters=parameters)


def source_mapping(source: ProblemSource, near: Path | None = None) -> dict[str, object] | str:
    """Return the entry that `sources_from` reads back; `near`: the sweep file that names it."""
    if source.path is None:
        return {"suite": source.suite, "seed": source.seed, **source.parameters}
    path = remote_address(source.path) or str(input_path(source.path, near))
    if source.run is not None:
        return {"path": path, "run": source.run}
    if source.suite is None:
        return path
    grader = source.grader
    if grader is not None and is_in_file(grader):
        grader = file_named(grader, near)
    custom = {"columns": dict(source.columns), "grader": grader, "pattern": source.pattern}
    settings = {name: value for name, value in custom.items() if value}
    return {"path": path, "suite": source.suite, **settings}
