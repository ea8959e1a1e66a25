"""The printed figures of the paper "Number Cookbook", beside those of a folder."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from asyncbench.analysis.entrants import names_of
from asyncbench.published.nupa.counts import TaskLine, by_asked, macro
from asyncbench.published.reports import MARK, published_table
from asyncbench.suites.nupa.tasks import Number
from asyncbench.suites.suite import Kind
from asyncbench.tables.numbers import MISSING
from asyncbench.tables.report import Sheet

DIGITS: Final[Mapping[str, tuple[str, str]]] = {  # table → a figure, and what it is called
    "nupa_table_7": ("exact_match", "exact match"),
    "nupa_table_8": ("digit_match", "digit match"),
    "nupa_table_9": ("dlength", "dlength"),
}
BY_RANGE: Final = "nupa_table_10"
SENTENCES: Final = "nupa_text_statements"


def printed_tables() -> tuple[pa.Table, ...]:
    """Return the tables of the paper that a folder's figures can stand beside."""
    return tuple(map(published_table, (*DIGITS, BY_RANGE, SENTENCES)))


def beside_printed(lines: Sequence[TaskLine], tables: Iterable[pa.Table]) -> Iterator[Sheet]:
    """Yield a sheet for each table: the folder's models, then those of the paper, on the folder's tasks.

    Args:
        lines: of the folder.
        tables: as `printed_tables` has them.
    """
    groups = by_asked(lines)
    names = names_of(groups)
    own = {names[entrant]: {line.task.kind: line for line in its} for entrant, its in groups.items()}
    kinds = list(dict.fromkeys(line.task.kind for line in lines))
    *of_digits, by_range, sentences = tables
    for (figure, title), table in zip(DIGITS.values(), of_digits, strict=True):
        yield _digits_sheet(table, figure, title, own=own, kinds=kinds)
    yield _ranges_sheet(by_range, own=own)
    yield _sentences_sheet(sentences, own=own)


def _digits_sheet(
    table: pa.Table,
    figure: str,
    title: str,
    *,
    own: Mapping[str, Mapping[Kind, TaskLine]],
    kinds: Iterable[Kind],
) -> Sheet:
    """Return tasks × models: the well-learned and the preserved digits."""
    printed = printed_digits(table)
    return Sheet(
        title=f"Well-learned / preserved digits by {title}, beside the published ones",
        head=("task", *own, *(f"{model} {MARK}" for model in printed)),
        rows=[
            [
                f"{' '.join(filter(None, kind[:2]))}, {kind[2]}",
                *(_passed(its.get(kind), figure) for its in own.values()),
                *("{} / {}".format(*its[kind]) if kind in its else MISSING for its in printed.values()),
            ]
            for kind in kinds
            if any(kind in its for its in printed.values())
        ],
    )


def printed_digits(table: pa.Table) -> dict[str, dict[Kind, tuple[int, int]]]:
    """Return the well-learned and the preserved digits that a table prints, by model and task.

    Cells that repeat those of other tasks by mistake are left out.
    """
    printed: dict[str, dict[Kind, tuple[int, int]]] = {}
    for row in table.to_pylist():
        of_model = printed.setdefault(row["model"], {})
        if row.get("repeats_block_1") != "yes":
            digits = (row["well_learned_digits"], row["performance_preserving_digits"])
            of_model[row["task"], row["variant"], row["representation"]] = digits
    return printed


def _passed(line: TaskLine | None, figure: str) -> str:
    digits = None if line is None else line.by_grader["strict"][figure].digits
    if digits is None or digits.well_learned is None:
        return MISSING
    return f"{digits.well_learned} / {digits.preserving}"


def _ranges_sheet(table: pa.Table, *, own: Mapping[str, Mapping[Kind, TaskLine]]) -> Sheet:
    """Return models × ranges of the tasks that the paper asked with and without examples."""
    printed: dict[str, dict[tuple[Kind, str], str]] = {}
    for row in table.to_pylist():
        named = f"{row['model']}, {row['shots']} examples {MARK}"
        kind = (row["task"], "", row["representation"])
        printed.setdefault(named, {})[kind, row["range"]] = str(row["exact_match"])
    own_kinds = {kind for its in own.values() for kind in its}
    columns = [column for column in next(iter(printed.values())) if column[0] in own_kinds]
    mine = [[name, *(_mean(its.get(kind), of) for kind, of in columns)] for name, its in own.items()]
    published = [[name, *(its[column] for column in columns)] for name, its in printed.items()]
    return Sheet(
        title="Exact match by range, beside the published ones with and without examples",
        head=("model", *(f"{task} {representation} {of}" for (task, _, representation), of in columns)),
        rows=[*mine, *published] if columns else [],
    )


def _mean(line: TaskLine | None, name: str) -> str:
    value: Number | None = None if line is None else line.by_grader["strict"]["exact_match"].ranges[name]
    return MISSING if value is None else f"{float(value):.2f}"


def _sentences_sheet(table: pa.Table, *, own: Mapping[str, Mapping[Kind, TaskLine]]) -> Sheet:
    """Return the figures in the paper's sentences × models, where the tasks of a sentence were asked."""
    rows = []
    for sentence in table.to_pylist():
        lines = [[line for kind, line in its.items() if _is_of(kind, sentence)] for its in own.values()]
        if any(lines):
            cells = (_of_sentence(its, sentence) for its in lines)
            rows.append([_subject(sentence), sentence["metric"].replace("_", " "), _value(sentence), *cells])
    head = ("sentence about", "figure", f"paper {MARK}", *own)
    return Sheet(title="Figures in the paper's sentences, beside yours", head=head, rows=rows, labels=2)


def _is_of(kind: Kind, sentence: Mapping[str, str]) -> bool:
    """Tell whether a sentence is about a task; one that names none is about all of a representation."""
    task, variant, representation = kind
    return (
        sentence["task"] in ("", task)
        and (not sentence["task"] or sentence["variant"] == variant)
        and (sentence["representation"] in ("", representation))
    )


def _of_sentence(lines: Sequence[TaskLine], sentence: Mapping[str, str]) -> str:
    """Return the mean over a sentence's tasks; what it says of no range has no figure of ours."""
    if not lines or not sentence["range"]:
        return MISSING
    value = macro([line.by_grader["strict"][sentence["metric"]] for line in lines])[sentence["range"]]
    return MISSING if value is None else f"{float(value):.2f}"


def _subject(sentence: Mapping[str, str]) -> str:
    names = (sentence["model"], sentence["task"], sentence["representation"], sentence["range"])
    return ", ".join(filter(None, names))


def _value(sentence: Mapping[str, str]) -> str:
    values = filter(None, (sentence["value_low"], sentence["value_high"]))
    return f"{sentence['relation']} {'-'.join(values)}"
