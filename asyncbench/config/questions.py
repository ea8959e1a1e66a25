"""The questions of a sweep: problem sets, and the conditions under which they are asked."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    NonNegativeFloat,
    PositiveInt,
    Tag,
    ValidationError,
)

from asyncbench.config.entry import Entry, Keys, Name, Place, params_from, quoted, read_entry, suggestion
from asyncbench.contents import set_name
from asyncbench.errors import ConfigError
from asyncbench.files import input_path
from asyncbench.problems.choices import FORMS, WORDING, AnswerForm
from asyncbench.problems.hub import remote_address
from asyncbench.problems.samples import Sample, Strata
from asyncbench.records import OF_CONDITIONS, Condition, Message
from asyncbench.suites.custom import CUSTOM_GRADERS
from asyncbench.suites.number_reading import Mark
from asyncbench.suites.numbers import DIGIT_FORMS, EXCLUSIVE, rewritten
from asyncbench.suites.own_suites import OwnSuite, suite_named
from asyncbench.suites.plugins import defined_name, file_named, is_in_file
from asyncbench.suites.requests import FIELDS, PADDINGS, QUESTION, examples, fields_in, padding
from asyncbench.suites.table import SUITES

# ── problem sets: files, or suites to generate them with


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSource:
    """A source of problems: a file, or a suite to generate them with."""

    place: str  # for messages: where in the sweep it stands
    path: Path | None = None
    suite: str | None = None
    own_suite: OwnSuite | None = None  # of a file or a program; None: the suite is ours, or of a package
    seed: int = 0
    parameters: Mapping[str, object] = field(default_factory=dict)  # parsed, of the suite
    columns: Mapping[str, str | list[str]] = field(
        default_factory=dict
    )  # custom: contract's name → the file's
    grader: str | None = None  # custom
    pattern: str | None = None  # custom, grader `regex`
    decimal: Mark | None = None  # custom, grader `number`
    json_schema: str | Mapping[str, Any] | None = None  # custom, grader `json`; a text: the path of its file
    wording: str | None = None  # custom: how a row is asked
    answer_form: AnswerForm | None = None  # custom, with a column `choices`
    shuffle_choices: int | None = None  # likewise: the seed of their order; None: that of the file
    run: str | None = None  # of a file of recorded answers: whose problems are meant
    sample: Sample | None = None  # the problems of it that are asked; None: all

    @property
    def name(self) -> str:
        """The name of its problem set in trials."""
        if self.path is not None:
            return set_name(self.path)
        return str(self.suite) if self.own_suite is None else defined_name(self.own_suite.text)


class SampleEntry(Entry):
    """A random sample of the problems: its size alone, or a mapping with these keys."""

    size: PositiveInt = Field(description="How many problems to draw.")
    seed: int = Field(default=0, description="The seed. The same seed draws the same problems everywhere.")
    by: Strata | None = Field(
        default=None, description="`task`: draw of each task in proportion. Without it: of all alike."
    )


def _size_mapping(raw: object) -> object:
    return {"size": raw} if isinstance(raw, int) else raw


def sample_from(raw: int | Mapping[str, object], *, place: Place) -> Sample:
    """Return a sample as a sweep file has it: its size, or a mapping.

    Raises:
        ConfigError: it is wrong.
    """
    return Sample(**read_entry(SampleEntry, _size_mapping(raw), place=place).model_dump())


SampleWanted = Annotated[
    SampleEntry, BeforeValidator(_size_mapping, json_schema_input_type=PositiveInt | SampleEntry)
]
SAMPLE: Final = Field(
    default=None,
    description="Ask a random sample instead of all problems: its size, such as `200`, or "
    "`{size: 200, seed: 7, by: task}`. It is the same for every model, and on every machine.",
)


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
    columns: dict[str, str | list[str]] = Field(
        default_factory=dict,
        description="Only for `custom`: the columns of your file. Keys are asyncbench's names, such as "
        "`question` and `expected`. Values are yours. You may leave out columns with usual names, such as "
        "`prompt` or `answer`: `asyncbench problems inspect FILE` shows them. `expected` also takes a list "
        "of columns with accepted answers. `choices` is a column with lists of choices, or a list of columns "
        "with a choice each.",
        json_schema_extra={"default": {}},
    )
    grader: str | None = Field(
        default=None,
        description=f"Only for `custom`: {', '.join(CUSTOM_GRADERS)}, or a function of your own. "
        "`my_module:function` is the function in `my_module.py`, beside the sweep file or else in the "
        "working directory. Where `columns` has a column `grader`: of rows that name none.",
        json_schema_extra={"examples": [*CUSTOM_GRADERS, "my_module:function"]},
    )
    pattern: str | None = Field(
        default=None,
        description="Only for grader `regex`: a regular expression. Its first group is the answer.",
    )
    decimal: Literal[".", ","] | None = Field(
        default=None,
        description="Only for grader `number`: the mark before decimals, in the file and in replies. With "
        '`","`, `1,5` is 1.5 and `1.234` is 1234. Default: a point.',
    )
    json_schema: str | dict[str, Any] | None = Field(
        default=None,
        description="Only for grader `json`: a JSON schema, or the path of a file with one. `format_ok` says "
        "whether the JSON of a reply is as it says.",
    )
    wording: Name | None = Field(
        default=None,
        description="Only for `custom`: how a row is asked, such as "
        '`"{context}\\n\\n{question}\\n{choices}"`. Fields: `{question}`, `{choices}` as lines A, B, C, and '
        "all columns of the file. Write `{{` and `}}` for braces. Default: the question as it stands; with "
        f"`choices`, `{json.dumps(WORDING)}`.",
    )
    answer_form: AnswerForm | None = Field(
        default=None,
        description="Only with a column `choices`: how an expected answer names one. "
        + "; ".join(f"`{form}`: {meaning}" for form, meaning in FORMS.items())
        + ". Default: what fits the answers of the file.",
    )
    shuffle_choices: int | None = Field(
        default=None,
        description="Only with a column `choices`: the seed of a random order of the choices of each row. It "
        "is the same for every model. Default: the order of the file.",
    )
    run: Name | None = Field(
        default=None,
        description="Only for a file of recorded answers: the run whose problems are asked.",
    )
    sample: SampleWanted | None = SAMPLE


def _add_suite_parameters(schema: dict[str, Any]) -> None:
    """Add the parameters of all suites that can be generated."""
    makeable = [suite for suite in SUITES.values() if suite.generate]
    names = [suite.name for suite in makeable]
    schema["properties"]["suite"]["anyOf"] = [{"enum": names}, {"pattern": r":\w+$"}]
    helps: dict[str, list[str]] = {}
    for suite in makeable:
        for name, parameter in suite.parameters.items():
            helps.setdefault(name, []).append(f"{suite.name}: {parameter.help}.")
    schema["properties"] |= {name: {"description": " ".join(texts)} for name, texts in helps.items()}
    schema["additionalProperties"] = False


class GeneratedEntry(Entry):
    """A problem set that is generated from a seed. It is the same on every machine."""

    # further keys are parameters of the suite, which checks them
    model_config = ConfigDict(extra="allow", json_schema_extra=_add_suite_parameters)

    suite: str = Field(
        description="The suite to generate. `asyncbench suites` lists them. `mine.py:NAME` is the suite "
        "`NAME` in `mine.py`, beside the sweep file or else in the working directory."
    )
    seed: int = Field(default=0, description="The seed. The same seed gives the same problems.")
    sample: SampleWanted | None = SAMPLE


def _kind(raw: object) -> str:
    generated = isinstance(raw, Mapping) and "path" not in raw and "suite" in raw
    return "a suite" if generated else "a file"


Problems = list[
    Annotated[
        Annotated[ProblemsEntry, Tag("a file")] | Annotated[GeneratedEntry, Tag("a suite")],
        Discriminator(_kind),
        BeforeValidator(
            lambda raw: {"path": raw} if isinstance(raw, str) else raw,
            json_schema_input_type=str | ProblemsEntry | GeneratedEntry,
        ),
    ]
]


def sources_from(
    entries: Sequence[ProblemsEntry | GeneratedEntry], *, place: Place, near: Path | None = None
) -> tuple[ProblemSource, ...]:
    """Return the problem sets of a sweep file; `near`: that file."""
    return tuple(_source(entry, place=place / i, near=near) for i, entry in enumerate(entries))


def _source(entry: ProblemsEntry | GeneratedEntry, *, place: Place, near: Path | None) -> ProblemSource:
    """Return the problem set that an entry names."""
    full_place = f"{place}, {place.name}" if place.root else str(place)  # a line may hold several
    sample = None if entry.sample is None else Sample(**entry.sample.model_dump())
    if isinstance(entry, GeneratedEntry):
        own_suite = suite_named(entry.suite, near, place=full_place) if is_in_file(entry.suite) else None
        suite = SUITES.get(entry.suite) if own_suite is None else own_suite.suite
        parameters = entry.model_extra or {}
        if suite is None or suite.generate is None:
            makeable = [key for key, value in SUITES.items() if value.generate]
            raise ConfigError(
                f"{full_place}: suite {quoted(entry.suite)} cannot be generated. "
                f"{suggestion(entry.suite, makeable)}"
            )
        suite.parsed(parameters, place=full_place)
        return ProblemSource(
            place=full_place,
            suite=suite.name,
            own_suite=own_suite,
            seed=entry.seed,
            parameters=parameters,
            sample=sample,
        )

    options = entry.pattern or entry.decimal or entry.json_schema or entry.wording or entry.answer_form
    shuffled = entry.shuffle_choices is not None
    if entry.suite is None and (entry.columns or entry.grader or options or shuffled):
        raise ConfigError(
            f"{place}: columns, grader, pattern, decimal, json_schema, wording, answer_form and "
            "shuffle_choices need `suite: custom`. Add it"
        )
    if entry.run is not None and entry.suite is not None:
        raise ConfigError(f"{place}: `run` names a run of a file of recorded answers. Leave `suite` out.")
    return ProblemSource(
        place=full_place,
        path=Path(entry.path),
        suite=entry.suite,
        columns=entry.columns,
        grader=entry.grader,
        pattern=entry.pattern,
        decimal=entry.decimal,
        json_schema=entry.json_schema,
        wording=entry.wording,
        answer_form=entry.answer_form,
        shuffle_choices=entry.shuffle_choices,
        run=entry.run,
        sample=sample,
    )


def suites_of_one_name(sources: Sequence[ProblemSource]) -> Iterator[str]:
    """Yield suites of files that have the name of another: results could not tell them apart."""
    first = dict[str, ProblemSource]()
    for source in sources:
        if (own_suite := source.own_suite) is None:
            continue
        first_source = first.setdefault(str(source.suite), source)
        if first_source.own_suite is not None and first_source.own_suite.digest != own_suite.digest:
            yield (
                f"{source.place}: {own_suite.text} and {first_source.own_suite.text} are both called "
                f"{quoted(own_suite.written.name)}. Choose another `Suite(name=…)` for one"
            )


def source_mapping(source: ProblemSource, near: Path | None = None) -> dict[str, object] | str:
    """Return the entry that `sources_from` reads back; `near`: the sweep file that names it."""
    drawn = {} if source.sample is None else asdict(source.sample)
    sample = {"sample": {key: value for key, value in drawn.items() if value is not None}} if drawn else {}
    if source.path is None:
        suite = source.suite if source.own_suite is None else source.own_suite.text
        return {"suite": suite, "seed": source.seed, **source.parameters, **sample}
    path = remote_address(source.path) or str(input_path(source.path, near))
    if source.run is not None:
        return {"path": path, "run": source.run, **sample}
    if source.suite is None:
        return {"path": path, **sample} if sample else path
    grader = source.grader
    if grader is not None and is_in_file(grader):
        grader = file_named(grader, near)
    schema = source.json_schema
    custom = {
        "columns": dict(source.columns),
        "grader": grader,
        "pattern": source.pattern,
        "decimal": source.decimal,
        "json_schema": str(input_path(schema, near)) if isinstance(schema, str) else schema,
        "wording": source.wording,
        "answer_form": source.answer_form,
        "shuffle_choices": source.shuffle_choices,
    }
    settings = {name: value for name, value in custom.items() if value or value == 0}
    return {"path": path, "suite": source.suite, **settings, **sample}


# ── conditions: the ways to ask


DigitForm = Literal[
    "reversed",
    "zero_padded",
    "spaced",
    "grouped",
    "indexed",
    "reversed_total",
    "reversed_int",
    "reversed_dec",
]


class ConditionEntry(Entry):
    """One way to ask the problems. Each condition asks all problems of its suites."""

    name: Name = Field(description="The condition's name in tables and in the column `condition`.")
    system: Name | None = Field(
        default=None,
        description="A system prompt. Without it: the model's own, if it has one. "
        "Only one of the two may be set.",
    )
    template: Name | None = Field(
        default=None,
        description='The words around the question, such as `"{question}\\nThink step by step."`. Worked '
        "examples are asked in it, too. With a template, `system` and the messages of `context` are some "
        "as well. Fields: `{question}`, `{operands}`, `{suite}`, `{task}`, `{variant}`, `{representation}`, "
        "`{answer_type}`. Write `{{` and `}}` for braces. Without it: the question as it stands.",
    )
    digits: DigitForm | list[DigitForm] | None = Field(
        default=None,
        description="Another form for the numbers of the question and of worked examples. With 1205: "
        "`reversed` (5021), `zero_padded` (as many digits as the longest number of the question), `spaced` "
        "(1 2 0 5), `grouped` (1,205) or `indexed` (d1c2b0a5: a letter for each place). Of 1205.25, "
        "`reversed` reverses both parts (5021.52), `reversed_int` and `reversed_dec` one of them, and "
        "`reversed_total` the whole (52.5021). A list combines `zero_padded`, a reversal and one of the "
        "others. Numbers in the reply must have this form, too; ask for it in `template`. For grading they "
        "are brought back to plain digits. The reply is stored as it came. Without it: plain digits.",
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


KEYS_AS_WRITTEN = ("system", "template", "digits", "context", "shots", *OF_CONDITIONS, "params")


def condition_from(entry: ConditionEntry, *, place: Place, near: Path | None = None) -> Condition:
    """Return a condition as written in the sweep file `near`, with the text of the files it names."""
    entry.params = params_from(entry.params, place=place)
    for i, suite in enumerate(entry.suites or ()):
        if suite not in SUITES:
            raise ConfigError(
                f"{place / 'suites' / i}: no suite {quoted(suite)}. {suggestion(suite, SUITES)}"
            )
    talk = () if entry.context is None else padding(entry.context, place=str(place / "context"), near=near)
    from_file = isinstance(entry.shots, str)
    shots = examples(str(entry.shots), place=str(place / "shots"), near=near) if from_file else ()
    entry.digits = digits = _digits_from(entry, place=place / "digits")
    shots = tuple(replace(turn, content=rewritten(turn.content, digits or ())) for turn in shots)
    _check_templates(entry, talk, place=place)
    turns = (*talk, *shots)  # small talk first, so that worked examples stand next to the question
    # What tells one text of a file from another: its path alone would not.
    text = orjson.dumps([{"role": turn.role, "content": turn.content} for turn in turns])
    digest = {"turns_digest": blake2b(text, digest_size=8).hexdigest()} if turns else {}
    settings = {name: value for name in KEYS_AS_WRITTEN if (value := getattr(entry, name)) not in (None, {})}
    return Condition(
        name=entry.name,
        style=entry.style,
        system=entry.system,
        turns=turns,
        examples=len(shots),
        template=entry.template,
        digits=tuple(digits or ()),
        shots=entry.shots if isinstance(entry.shots, int) else None,
        params=entry.params,
        effort=entry.effort,
        temperature=entry.temperature,
        suites=None if entry.suites is None else frozenset(entry.suites),
        described=settings | digest,
    )


def _digits_from(entry: ConditionEntry, *, place: Place) -> list[DigitForm] | None:
    """Return the forms of numbers in the order in which they are applied, or None."""
    if not entry.digits:
        return None
    forms = [entry.digits] if isinstance(entry.digits, str) else entry.digits
    for alone in EXCLUSIVE:
        if len(clash := [form for form in dict.fromkeys(forms) if form in alone]) < 2:
            continue
        raise ConfigError(f"{place}: 'digits' cannot be both {clash[0]} and {clash[1]}. Keep one of the two.")
    return sorted(set(forms), key=DIGIT_FORMS.index)


def _check_templates(entry: ConditionEntry, talk: Sequence[Message], *, place: Place) -> None:
    """Refuse a template that cannot be filled for every problem; without `template` nothing else is one."""
    if entry.template is None:
        return
    _check_template(entry.template, "template", place=place / "template")
    if QUESTION not in fields_in(entry.template):
        raise ConfigError(
            f"{place / 'template'}: 'template' does not say where the question goes. Add {{question}}."
        )
    if entry.shots is not None and "operands" in fields_in(entry.template):
        raise ConfigError(
            f"{place / 'template'}: worked examples (`shots`) are asked in 'template', too, and have no "
            "{operands} of their own. Remove one of the two."
        )
    if entry.system is not None:
        _check_template(entry.system, "system", place=place / "system")
    for number, turn in enumerate(talk, 1):
        _check_template(turn.content, f"messages[{number}] of {entry.context}", place=place / "context")


def _check_template(text: str, name: str, *, place: Place) -> None:
    braces = "Write {{ and }} for braces that are text."
    try:
        unknown = next((field for field in fields_in(text) if field not in FIELDS), None)
    except ValueError:
        raise ConfigError(f"{place}: {name!r} has a brace without its other half. {braces}") from None
    if unknown is not None:
        hint = suggestion(unknown, FIELDS)
        choices = "" if hint.startswith("Known") else f" Known: {', '.join(FIELDS)}."
        raise ConfigError(f"{place}: {name!r} has an unknown field {{{unknown}}}. {hint}{choices} {braces}")


def condition_mapping(condition: Condition, near: Path | None = None) -> dict[str, object]:
    """Return the entry that `condition_from` reads back; `near`: the sweep file that names its files."""
    settings = {name: condition.described[name] for name in KEYS_AS_WRITTEN if name in condition.described}
    for name in ("context", "shots"):
        if isinstance(path := settings.get(name), str) and path not in PADDINGS:
            settings[name] = str(input_path(path, near))
    style = {} if condition.style == "chat" else {"style": condition.style}
    suites = {} if condition.suites is None else {"suites": sorted(condition.suites)}
    models = {} if condition.models is None else {"models": sorted(condition.models)}
    return {"name": condition.name, **style, **settings, **suites, **models}


def condition_from_results(name: str, style: str, described: Mapping[str, object]) -> tuple[Condition, bool]:
    """Return the condition that results describe, and whether it is whole.

    Results name the files that its messages came from, and do not hold them: if they are gone or have
    changed, these messages are missing. So they are if another program asked.
    """
    of_files = {"context": described.get("context"), "shots": described.get("shots")}
    files = {key for key, value in of_files.items() if isinstance(value, str)}
    for omitted in (set[str](), files, set(described)):
        settings = {
            key: value for key, value in described.items() if key in KEYS_AS_WRITTEN and key not in omitted
        }
        with suppress(ConfigError, ValidationError):
            entry = ConditionEntry.model_validate({"name": name, "style": style, **settings})
            condition = condition_from(entry, place=Place(source="the results"))
            description = {key: value for key, value in described.items() if value or key in KEYS_AS_WRITTEN}
            if (whole := condition.described == description) or omitted >= files:
                return condition, whole
    raise AssertionError


def matching_aliases(patterns: Sequence[str], bases: Mapping[str, str], *, place: Place) -> frozenset[str]:
    """Return the aliases that a condition is for; `bases`: by alias, that of the entry it comes from.

    Raises:
        ConfigError: a pattern fits none.
    """
    aliases = set[str]()
    for i, pattern in enumerate(patterns):
        exact = {alias for alias, base in bases.items() if pattern in (alias, base)}
        fitting = exact or {
            alias
            for alias, base in bases.items()
            if fnmatchcase(alias, pattern) or fnmatchcase(base, pattern)
        }
        if not fitting:
            names = dict.fromkeys([*bases.values(), *bases])
            raise ConfigError(f"{place / i}: no model is called {pattern!r}. {suggestion(pattern, names)}")
        aliases |= fitting
    return frozenset(aliases)


def condition_complaint(condition: Condition, suite: str) -> str | None:
    """Return why the problems of a suite cannot be asked under a condition, or None if they can."""
    rules = SUITES[suite]
    if condition.style not in rules.styles:
        return f"{suite} has no style {condition.style!r}, only {', '.join(rules.styles)}"
    if condition.digits and condition.style not in rules.rewritable:
        where = f" in style {condition.style!r}" if rules.rewritable else ""
        return f"{suite} cannot bring replies{where} back to plain digits, so `digits` cannot be set"
    if rules.generate is None and condition.template is not None:
        # all texts that a template may fill
        talk = condition.turns[: len(condition.turns) - condition.examples]
        texts = (condition.template, condition.system or "", *(turn.content for turn in talk))
        if any("operands" in fields_in(text) for text in texts):
            return f"problems of {suite} have no operands, so a template cannot show {{operands}}"
    if (shots := condition.shots) is not None:
        if rules.asking is None:
            return f"{suite} defines no worked examples, so `shots: {shots}` cannot be asked"
        if (defined := rules.asking.shots.get(condition.style, 0)) >= shots:
            return None
        none = f"no worked examples in style {condition.style!r}"
        has = f"{defined} worked examples for each task" if defined else none
        return f"{suite} has {has}, so `shots: {shots}` cannot be asked"
    if "shots" in condition.described and not rules.shots_from_file:
        return f"{suite} takes no worked examples of your own, as its published form has none"
    return None
