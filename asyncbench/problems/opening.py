"""Opening a problem set, with all checks in one pass before any call."""

import json
import re
from binascii import unhexlify
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.contents import set_name
from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.files import found_input
from asyncbench.problems.choices import FORMS, WORDING, AnswerForm, ChoiceColumns
from asyncbench.problems.custom import (
    CHOICES,
    REQUIRED,
    SUITE,
    Columns,
    Custom,
    check_wording,
    columns_in,
    drafts,
    guessed,
    likely_choices,
    mapping,
)
from asyncbench.problems.files import lacking, opened_columns
from asyncbench.problems.hub import problem_file
from asyncbench.problems.problem_set import (
    ProblemSet,
    Survey,
    contract_batches,
    metadata_in,
    run_together,
    state_of,
)
from asyncbench.problems.recorded import OneRun, run_called, run_drafts, runs_said
from asyncbench.problems.repeats import QuestionCount
from asyncbench.problems.row_graders import RowGraders
from asyncbench.problems.schema import (
    PROBLEM_FIELDS,
    ROWS_AT_ONCE,
    SCHEMA_VERSION,
    Column,
    batches_of,
    identified,
    is_text,
)
from asyncbench.problems.text_files import is_text_file
from asyncbench.records import Draft
from asyncbench.suites.custom import CUSTOM_GRADERS
from asyncbench.suites.number_reading import Mark
from asyncbench.suites.table import SUITES

FIRST_CHECK: Final = 1_000_000  # bytes of ids

_HEX: Final = b"0123456789abcdef"
_ID: Final = re.compile("[0-9a-f]{32}")

KNOWN: Mapping[str, Collection[str]] = {  # the words that a column may hold
    "suite": SUITES,
    "representation": ("integer", "float", "fraction", "scientific", "text"),
    "answer_type": ("integer", "decimal", "fraction", "scientific", "text"),
}


def open_set(
    path: str | PathLike[str],
    *,
    name: str | None = None,
    suite: str | None = None,
    columns: Columns | None = None,
    grader: str | None = None,
    pattern: str | None = None,
    decimal: Mark | None = None,
    json_schema: str | Mapping[str, Any] | None = None,
    wording: str | None = None,
    answer_form: AnswerForm | None = None,
    shuffle_choices: int | None = None,
    run: str | None = None,
    near: Path | None = None,
    pinned: str | None = None,
    any_suite: bool = False,
) -> ProblemSet:
    """Check a problem set from its first row to its last.

    Args:
        path: a Parquet file; with `custom` a CSV or JSON file, too; or the address of one on the Hub.
        name: what results call the set; None: the file's name without its ending.
        suite: the only suite whose problems it may hold; None: any. With `custom` the file is anybody's,
            and what follows says how to read it.
        columns: custom: our name of a column → the file's; question and expected may be left out where
            they have known names. Of `expected` several, or a list of one whose texts are JSON lists. Of
            `choices` one with all of them, or one for each.
        grader: custom: one of `CUSTOM_GRADERS`, or `my_module:function`; of rows that name none, where
            `columns` has a column `grader`.
        pattern: custom, with the grader `regex`: its first group is the answer.
        decimal: custom, with the grader `number`: the mark before decimals; None: a point.
        json_schema: custom, with the grader `json`: a JSON schema, or the path of a file with one.
        wording: custom: how a row is asked, with `{question}`, `{choices}` and columns of the file as fields.
        answer_form: custom, with a column `choices`: how answers name one; None: in the likeliest way.
        shuffle_choices: custom, with a column `choices`: the seed of their order; None: that of the file.
        run: the file holds recorded answers: a run or model in it, whose problems are meant.
        near: the sweep file that names the grader: `my_module.py` is looked for beside it first.
        pinned: of a file of the Hub: its address with the commit and file that it led to before.
        any_suite: whether it may hold problems of suites that are not at hand: a copy that is only read.

    Raises:
        ProblemSetError: the file is not what it should be; names the file, the column and the way out.
        ConfigError: arguments that do not go together, a grader that does not exist.
    """
    called = name or set_name(path)
    with problem_file(path, pinned) as (file, hub):
        if run is not None:
            if (facts := run_called(file, run)) is None:
                raise ConfigError(
                    f"{file} holds no run and no single model called {run!r}. {runs_said(file)}"
                )
            selection = OneRun(run=facts.run)
            problems = _made_of(run_drafts(file, selection), file, facts.run, custom=selection)
        elif suite == SUITE:
            options = {"pattern": pattern, "decimal": decimal}
            problems = _open_custom(
                file,
                called,
                columns,
                grader,
                options,
                json_schema,
                wording,
                answer_form,
                shuffle_choices,
                near,
            )
        elif (
            columns
            or grader
            or pattern
            or decimal
            or json_schema
            or wording
            or answer_form
            or shuffle_choices is not None
        ):
            raise ConfigError(
                f"{file}: columns, grader, pattern, decimal, json_schema, wording, answer_form and "
                f"shuffle_choices need `suite: {SUITE}`. Add that."
            )
        else:
            problems = _open_contract(file, called, suite, any_suite=any_suite)
    return replace(problems, hub=hub)


def _open_custom(
    path: Path,
    name: str,
    columns: Columns | None,
    grader: str | None,
    options: Mapping[str, Any],
    json_schema: str | Mapping[str, Any] | None,
    wording: str | None,
    answer_form: AnswerForm | None,
    shuffle_choices: int | None,
    near: Path | None,
) -> ProblemSet:
    in_column = "grader" in (columns or {})
    if grader is None and not in_column:
        raise ConfigError(f"{path}: suite {SUITE!r} needs a `grader`: {', '.join(CUSTOM_GRADERS)}. Add one.")
    if isinstance(json_schema, str):  # the path of its file
        place = f"{path}: json_schema"
        file = found_input(json_schema, near, place=place, way_out="Correct the path")
        try:
            json_schema = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{place}: {file} cannot be read as JSON: {error}. Correct it.") from None
    graders = RowGraders(
        default=grader,
        in_column=in_column,
        options={**options, "json_schema": json_schema},
        near=near,
    )
    if grader is not None:
        graders.of(grader, place=str(path))
    mapped = mapping(columns, path)
    answers = (columns or {}).get("expected", "")
    custom = Custom(
        columns=mapped,
        accepted=() if isinstance(answers, str) else answers,
        graders=graders,
        guessed={ours: theirs for ours, theirs in mapped.items() if ours not in (columns or {})},
    )
    if answer_form not in (None, *FORMS):
        raise ConfigError(f"{path}: unknown answer_form {answer_form!r}. Known: {', '.join(FORMS)}.")
    if (choices := (columns or {}).get(CHOICES)) is not None:
        names = [choices] if isinstance(choices, str) else choices
        custom = replace(
            custom, choices=ChoiceColumns(columns=names, form=answer_form or "letter", seed=shuffle_choices)
        )
        if answer_form is None:
            custom = replace(custom, choices=likely_choices(path, custom))
        wording = wording or WORDING
    elif answer_form is not None or shuffle_choices is not None:
        key = "answer_form" if answer_form is not None else "shuffle_choices"
        raise ConfigError(f"{path}: `{key}` needs choices. Name them: `columns: {{choices: …}}`.")
    if wording is not None:
        check_wording(wording, path, custom)
        custom = replace(custom, wording=wording)
    count = QuestionCount()
    problems = _made_of(count.counted(drafts(path, custom)), path, name, custom=custom)
    return replace(problems, repeats=count.repeats(path, custom))


def _made_of(problems: Iterator[Draft], path: Path, name: str, **fields: Any) -> ProblemSet:
    """Return a set whose problems are made of the rows of another file."""
    survey = Survey()
    for batch in batches_of(identified(problems)):
        survey.add(_checked(batch, path=path))
    return _problem_set(path, name, survey, **fields)


def _open_contract(path: Path, name: str, suite: str | None, *, any_suite: bool) -> ProblemSet:
    if is_text_file(path):
        raise _no_contract(path, columns_in(path), "it is a text file.")
    with opened_columns(path) as file:
        state = state_of(path)
        _check_types(file.schema, path=path)
        try:
            metadata = metadata_in(file.metadata)
        except (ValueError, RecursionError) as error:
            raise ProblemSetError(f"{path}: its metadata makes no sense ({error}). Make it again.") from None
    version, digest = metadata.pop("schema_version", SCHEMA_VERSION), metadata.pop("digest", None)
    if version > SCHEMA_VERSION:
        raise ProblemSetError(
            f"{path}: its columns follow version {version}, and this asyncbench knows "
            f"{SCHEMA_VERSION}. Use a later asyncbench, or make the file again with this one."
        )
    survey, ids = Survey(), _Ids(path)
    check = partial(_checked, path=path, any_suite=any_suite)
    batches = map(check, contract_batches(path))
    with ThreadPoolExecutor(1) as reader:  # reads the next batch meanwhile
        following = reader.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = reader.submit(next, batches, None)
            ids.add(batch.column("problem_id"))
            survey.add(batch)
    ids.check()
    if digest not in (None, survey.digest):
        raise ProblemSetError(
            f"{path}: its rows were damaged or edited after they were written. Make the file again. If "
            "you edited it, write it without the metadata `asyncbench.digest`."
        )
    problems = _problem_set(path, name, survey, state=state, **metadata)
    if suite is not None and problems.suites != (suite,):
        raise ProblemSetError(
            f"{path}: column 'suite' holds {', '.join(problems.suites)}, but the sweep wants only {suite}. "
            "Remove `suite`, or name another file."
        )
    return problems


def _problem_set(path: Path, name: str, survey: Survey, **fields: Any) -> ProblemSet:  # Any: its other fields
    if not survey.rows:
        raise ProblemSetError(f"{path}: the file holds no problems. Make it again, or remove it.")
    return ProblemSet(path=path, name=name, **survey.facts, **fields)


def _check_types(schema: pa.Schema, *, path: Path) -> None:
    for field in PROBLEM_FIELDS:
        index = schema.get_field_index(field.name)  # -1 where the name stands twice, too
        if index < 0:
            raise _no_contract(path, schema.names, lacking(field.name, schema.names))
        kind = schema.field(index).type
        if not _fits(kind, field.type):
            raise ProblemSetError(
                f"{path}: column {field.name!r} has type {kind}, not {field.type}. Write it as that, or "
                "make the file again with `asyncbench generate`."
            )


def _no_contract(path: Path, names: Sequence[str], why: str) -> ProblemSetError:
    """Return the refusal of somebody's own file, with the entry of a sweep that takes it."""
    columns = dict.fromkeys(REQUIRED, "…") | guessed(names, {})
    named = ", ".join(f"{ours}: {theirs}" for ours, theirs in columns.items())
    entry = f"{{path: {path}, suite: {SUITE}, grader: number, columns: {{{named}}}}}"
    return ProblemSetError(
        f"{path}: this is not a problem set of asyncbench: {why} For data of your own write {entry}. Or make "
        "a set with `asyncbench generate`. Flags for your own are --suite custom --grader number."
    )


def _fits(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether every value of a type has a place in the wanted one: other tools write other texts."""
    if pa.types.is_list(wanted):
        lists = (pa.ListType, pa.LargeListType)
        return isinstance(kind, lists) and _fits(kind.value_type, wanted.value_type)
    if pa.types.is_string(wanted):
        return is_text(kind)
    return pa.types.is_integer(kind) or pa.types.is_null(kind)


def _checked(batch: pa.RecordBatch, *, path: Path, any_suite: bool = False) -> pa.RecordBatch:
    """Return a batch; refuse a NULL where there must be a value, and a word that nobody here understands."""
    for field in PROBLEM_FIELDS:
        if not field.nullable and _nulls(batch.column(field.name)):
            raise ProblemSetError(f"{path}: column {field.name!r} holds NULL. Give every row a value.")
    for name, words in KNOWN.items():
        if any_suite and name == "suite":
            continue
        for value in batch.column(name).unique().to_pylist():
            if value not in words:
                raise ProblemSetError(
                    f"{path}: column {name!r} holds {value!r}. Allowed: {', '.join(words)}. Correct those "
                    "rows, or use the later asyncbench that wrote them."
                )
    return batch


def _nulls(column: Column) -> int:
    within = _nulls(column.flatten()) if isinstance(column, pa.ListArray) else 0
    return column.null_count + within


class _Ids:
    """The ids of a problem set, 16 bytes each."""

    def __init__(self, path: Path) -> None:
        self._path, self._ids, self._next = path, bytearray(), FIRST_CHECK

    def add(self, ids: Column) -> None:
        """Take in the ids of the next rows; refuse one that is not one of ours."""
        text, lengths = run_together(cast("pa.StringArray", ids))
        digits = text.tobytes()
        if any(lengths != 32) or digits.translate(None, _HEX):
            odd = next(text for text in cast("list[str]", ids.to_pylist()) if not _ID.fullmatch(text))
            raise ProblemSetError(
                f"{self._path}: column 'problem_id' holds {odd!r}, not 32 hexadecimal characters. Make the "
                f"file again with `asyncbench generate`, or read it as `suite: {SUITE}`, which makes ids."
            )
        self._ids += unhexlify(digits)
        if len(self._ids) > self._next:  # a few kilobytes of Parquet can name one id a billion times
            self.check()
            self._next *= 8

    def check(self) -> None:
        """Refuse an id that is there twice."""
        rows = len(self._ids) // 16
        halves = memoryview(self._ids).cast("Q")[::2].tobytes()
        if len(pc.unique(pa.Array.from_buffers(pa.uint64(), rows, [None, pa.py_buffer(halves)]))) == rows:
            return  # halves as numbers are compared in half the time
        ids = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(self._ids)])
        counts: Any = pc.value_counts(ids)  # a struct, of which the stubs know nothing
        if len(counts) == rows:
            return
        twice = next(row["values"].hex() for row in counts.to_pylist() if row["counts"] > 1)
        numbers, before = list[int](), 0  # of the rows that hold it
        with opened_columns(self._path) as file:
            for batch in file.batches(["problem_id"], rows=ROWS_AT_ONCE):
                batch_ids = batch.column("problem_id").to_pylist()
                numbers += [before + i for i, problem_id in enumerate(batch_ids, 1) if problem_id == twice]
                before += batch.num_rows
        first, second, *_ = numbers
        raise ProblemSetError(
            f"{self._path}: column 'problem_id' holds {twice} in rows {first:,} and {second:,} (the first is "
            f"row 1). Keep one row of each problem, or read the file as `suite: {SUITE}`."
        )
