"""The pictures of the paper "Number Cookbook", and those that its tables and sentences ask for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from asyncbench.published.nupa.counts import RANGES, TaskLine, by_asked, task_name
from asyncbench.published.pictures import PublishedPicture
from asyncbench.results import names_of
from asyncbench.suites.nupa import range_of

Row = dict[str, Any]  # Any: text, number or None, by column


class Measure(NamedTuple):
    """One of the paper's three figures, as pictures show it."""

    column: str
    scale: str


MEASURES: Final[Mapping[str, Measure]] = {
    "exact_match": Measure("exact_match", "share"),
    "digit_match": Measure("digit_match", "share"),
    "dlength": Measure("dlength", "digits"),
}
PARTS: Final[Mapping[str, tuple[str, ...]]] = {  # the paper has five pictures of all tasks
    "sums": ("add", "sub"),
    "products": ("multiply", "truediv", "floordiv", "mod"),
    "comparison": ("max", "min"),
    "digits": ("digit_max", "digit_min", "digit_add", "get_digit", "length", "count"),
    "conversion": ("to_float", "to_scient", "sig"),
}
POOLED: Final = "Each answer of a range weighs the same, as in the paper; graded by `strict`."
_BY_RANGE: Final[Mapping[str, tuple[str, str]]] = {  # figure of the paper → our figure, title
    "figure-5": ("exact_match", "Exact match by task and range"),
    "figure-6": ("digit_match", "Digit match by task and range"),
    "figure-7": ("dlength", "Digits too many or too few, by task and range: log2(dlength + 1)"),
}


def pictures_of(lines: Sequence[TaskLine]) -> Iterator[PublishedPicture]:
    """Yield every picture that the lines of a report have data for."""
    rows = range_rows(lines)
    for name, (figure, title) in _BY_RANGE.items():
        for part, tasks in PARTS.items():
            yield by_range(f"{name}-{part}", title, [row for row in rows if row["kind"] in tasks], figure)


def by_range(name: str, title: str, rows: Sequence[Row], figure: str) -> PublishedPicture:
    """Return a picture with a panel a task: a figure by range, a colour a model."""
    return PublishedPicture(
        name=name,
        title=title,
        kind="bars",
        rows=[_only(row, "task", "model", "range", "answers", figure) for row in rows],
        x="range",
        value=figure,
        series="model",
        panel="task",
        scale=MEASURES[figure].scale,
        notes=[POOLED],
    )


def range_rows(lines: Sequence[TaskLine]) -> list[Row]:
    """Return what each model reached in each range of each task: a row for each, in their order."""
    names = names_of(by_asked(lines))
    rows = []
    for line in lines:
        found = line.by_grader["strict"]
        for of_range in RANGES:
            answers = sum(
                tally.answers
                for length, tally in found.by_length.items()
                if range_of(length, line.task.length_class) == of_range
            )
            means = {figure: found.figures[figure].ranges[of_range] for figure in MEASURES}
            rows.append(
                {
                    "task": task_name(line.task),
                    "kind": line.task.task,
                    "representation": line.task.representation,
                    "model": names[line.asked],
                    "range": of_range,
                    "answers": answers,
                    **{figure: None if mean is None else float(mean) for figure, mean in means.items()},
                }
            )
    return rows


def _only(row: Row, *columns: str) -> Row:
    return {column: row[column] for column in columns}
