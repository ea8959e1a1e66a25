"""The figures that stand in sentences of NUPA's paper, each beside those of a folder."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import pyarrow as pa

from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.entrants import names_of
from asyncbench.analysis.views import counts_by
from asyncbench.published.nupa.counts import FIGURES, SUITE, TaskLine, by_asked, macro
from asyncbench.published.nupa.pictures import GUESSED, float_or_none
from asyncbench.published.reports import MARK as PUBLISHED, counted_of
from asyncbench.store.schema import ENTRANT
from asyncbench.suites.suite import Kind
from asyncbench.tables.numbers import MISSING
from asyncbench.tables.report import Sheet

SENTENCES: Final = "nupa_text_statements"
_OWN: Final = f"(FROM trials WHERE suite = '{SUITE}')"


# A figure in a sentence of the paper: `about`, `figure`, `paper`; `is_of_folder`: whether the folder has its
# tasks; `ours`: the figures of the folder's models, by name.
Statement = Mapping[str, Any]  # Any: texts and figures


def statements_of(
    table: pa.Table,
    own: Mapping[str, Mapping[Kind, TaskLine]],
    slower: Mapping[str, float] | None = None,
) -> list[Statement]:
    """Return all figures in the paper's sentences.

    Args:
        table: that prints them.
        own: the lines of a folder by model and task.
        slower: how many times as long a model takes with a rule in the prompt; not of all.
    """
    statements = list[Statement]()
    for sentence in table.to_pylist():
        lines = {
            name: [line for kind, line in its.items() if _is_of(kind, sentence)] for name, its in own.items()
        }
        ours = {name: _of_sentence(its, sentence) for name, its in lines.items()}
        if sentence["metric"] not in FIGURES:
            ours = {name: (slower or {}).get(name) for name in own}
        statements.append(
            {
                "about": _subject(sentence),
                "figure": sentence["metric"].replace("_", " "),
                "paper": _value(sentence),
                "is_of_folder": any(lines.values()),
                "ours": ours,
            }
        )
    return statements


def statements_sheet(title: str, statements: Iterable[Statement], names: Iterable[str]) -> Sheet:
    head = ("sentence about", "figure", f"paper {PUBLISHED}", *names)
    rows = [
        [one["about"], one["figure"], one["paper"], *map(_shown, one["ours"].values())] for one in statements
    ]
    return Sheet(title=title, head=head, rows=rows, labels=2)


def _slower_by_rules(lines: Sequence[TaskLine], counts: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return how many times as long models take with a rule in the prompt as in any other way, by name.

    Args:
        lines: of the folder.
        counts: `latencies` and `latency_s` of each who was asked, and `style`.
    """
    named, means = names_of(by_asked(lines)), dict[tuple[str, str, bool], list[float]]()
    for row in counts:
        if row["latencies"]:
            key = (row["run"], row["model"], row["style"] == "rules")
            means.setdefault(key, []).append(row["latency_s"] / row["latencies"])
    slower = {}
    for line in lines:
        by_rule, direct = (means.get((line.run, line.model, rule)) for rule in (True, False))
        if line.style == "rules" and by_rule and direct:
            slower[named[line.asked]] = fmean(by_rule) / fmean(direct)
    return slower


def _is_of(kind: Kind, sentence: Mapping[str, str]) -> bool:
    """Tell whether a sentence is about a task; one that names none is about all of a representation."""
    task, variant, representation = kind
    return (
        sentence["task"] in ("", task)
        and (not sentence["task"] or sentence["variant"] == variant)
        and (sentence["representation"] in ("", representation))
    )


def _of_sentence(lines: Sequence[TaskLine], sentence: Mapping[str, str]) -> float | None:
    """Return the mean over a sentence's tasks; what it says of no range is what guessing reaches."""
    if not sentence["range"]:
        return GUESSED.get(sentence["task"])
    if not lines:
        return None
    figures = [line.by_grader["strict"][sentence["metric"]] for line in lines]
    return float_or_none(macro(figures)[sentence["range"]])


def _subject(sentence: Mapping[str, str]) -> str:
    names = (sentence["model"], sentence["task"], sentence["representation"], sentence["range"])
    return ", ".join(filter(None, names))


def _value(sentence: Mapping[str, str]) -> str:
    values = filter(None, (sentence["value_low"], sentence["value_high"]))
    return f"{sentence['relation']} {'-'.join(values)}"


def all_statements(folder: Folders, lines: Sequence[TaskLine], sentences: pa.Table) -> tuple[Statement, ...]:
    """Return all figures in the paper's sentences, beside those of a folder.

    Raises:
        StoreError: it cannot be read.
    """
    query = counts_by(_OWN, (*ENTRANT, "style"), only=("latencies", "latency_s"))
    times = counted_of(folder, [SUITE], lambda views: views.rows(query))
    return tuple(statements_of(sentences, by_name(lines), _slower_by_rules(lines, times)))


def by_name(lines: Sequence[TaskLine]) -> dict[str, dict[Kind, TaskLine]]:
    """Return lines by model and task."""
    groups = by_asked(lines)
    names = names_of(groups)
    return {names[entrant]: {line.task.kind: line for line in its} for entrant, its in groups.items()}


def _shown(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"
