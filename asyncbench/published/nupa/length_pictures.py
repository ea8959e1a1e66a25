"""Figures against each single length: the form of the paper's Figure 13 and Table 12, for any model.

A line is broken where a model has no figure, and where nobody was asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final

from asyncbench.published.nupa.counts import OF_NO_LENGTH, TaskLine, interval_of, task_name
from asyncbench.published.nupa.picture_rows import (
    PARTS,
    SCALES,
    Row,
    Shown,
    ends_of,
    float_or_none,
    paper_order,
)
from asyncbench.published.nupa.training import PAPER
from asyncbench.published.reports import (
    MARK,
    UNANSWERED,
    PublishedPicture,
    picture,
    published_table,
)
from asyncbench.suites.nupa.tasks import Sum, task_of
from asyncbench.suites.suite import Kind
from asyncbench.tables.numbers import first_of

TITLES: Final[Mapping[str, tuple[str, str]]] = {  # figure → in names of pictures, in titles
    "exact_match": ("exact", "Exact match"),
    "digit_match": ("digit", "Digit match"),
    "dlength": ("dlength", "dlength"),
}
MOST_NAMED: Final = 3  # models in a note
MOST_SINGLE: Final = 24  # lengths of a task; of more, neighbours with few problems are one point
FEW: Final = 10  # problems: a figure of fewer is drawn hollow
LINES: Final = "Means over the answers of a length, graded by `strict`. Bands: 95 % CI."
BROKEN: Final = "A line is broken where lengths between were not asked or have no answer."
TOGETHER: Final = f"Of many lengths with few problems, neighbours are one point of {FEW} problems or more."
HOLLOW: Final = f"Hollow: fewer than {FEW} problems."
TRAINED: Final = "Shaded: up to the training length{}, which a vertical line marks."


def length_pictures(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Figure 13, a picture of each figure and group of tasks; then Table 12."""
    for figure, (name, title) in TITLES.items():
        rows = _rows(shown, figure)
        for group, tasks in PARTS.items():
            of_group = [row for row in rows if row["kind"][0] in tasks]
            yield _lines(f"figure-13-{name}-{group}", f"{title} by task and length", of_group, figure)
    for figure, (name, title) in TITLES.items():
        yield _beside_training_length(shown, f"table-12-{name}", title, figure)


# ── a line each model ────────────────────────────────────────────────────────────────────────────


def _rows(shown: Shown, figure: str) -> list[Row]:
    """Return a row for each model, task and length that was asked, in the order of the paper's tasks."""
    asked: dict[str, set[int]] = {}
    for line in shown.lines:
        asked.setdefault(line.task.name, set()).update(line.lengths - {OF_NO_LENGTH})
    order = paper_order(task_name(line.task) for line in shown.lines)
    rows = [
        row
        for line in shown.lines
        for row in _rows_of_line(line, shown, figure, lengths=sorted(asked[line.task.name]))
    ]
    return sorted(rows, key=lambda row: order.index(row["task"]))


def _rows_of_line(line: TaskLine, shown: Shown, figure: str, *, lengths: Sequence[int]) -> Iterator[Row]:
    """Yield a row for each point of a model, and for each of these lengths that has no graded answer."""
    by_length = line.by_grader["strict"][figure].by_length
    trained = shown.training.length_of(line.model, line.task)
    about: Row = {"task": task_name(line.task), "kind": line.task.kind, "model": shown.names[line.asked]}
    about["training_length"] = trained
    for stretch, run in enumerate(_runs(by_length, lengths)):
        few = FEW if len(lengths) > MOST_SINGLE else 1
        for point, added in _points(run, by_length, few=few, trained=trained):
            centre = fmean(point)
            yield {
                **about,
                "length": int(centre) if centre.is_integer() else centre,
                **({} if len(point) == 1 else {"lengths": f"{point[0]}-{point[-1]}"}),
                "answers": added.answers,
                "few": added.independent < FEW,
                "stretch": stretch,
                **ends_of(interval_of(added)),
                figure: float(added.mean),
            }
    for length in sorted(line.lengths.intersection(lengths) - by_length.keys()):
        yield {**about, "length": length, "answers": 0, figure: None, "gap": UNANSWERED}


def _runs(by_length: Mapping[int, Sum], lengths: Sequence[int]) -> list[list[int]]:
    """Return the lengths that have a figure, in runs whose neighbours a line joins.

    Args:
        by_length: the figure of a model.
        lengths: all that anybody was asked; a line joins those that are as close as the closest of them.
    """
    step = min((after - before for before, after in pairwise(lengths)), default=1)
    runs = list[list[int]]()
    for length in lengths:
        if length in by_length:
            if runs and length - runs[-1][-1] <= step:
                runs[-1].append(length)
            else:
                runs.append([length])
    return runs


def _points(
    run: Sequence[int], by_length: Mapping[int, Sum], *, few: int, trained: int | None
) -> Iterator[tuple[list[int], Sum]]:
    """Yield the lengths of each point, and their sum: neighbours go together up to `few` problems."""
    point, added = list[int](), Sum()
    for length in run:
        point.append(length)
        added = added.plus(by_length[length])
        if added.independent >= few or length in (trained, run[-1]):
            yield point, added
            point, added = [], Sum()


def _lines(name: str, title: str, rows: Sequence[Row], figure: str) -> PublishedPicture:
    """Return a panel a task and a line a model; the training length is a mark, where it was told."""
    notes = [LINES, BROKEN]
    notes += [TOGETHER] if any("lengths" in row for row in rows) else []
    notes += [HOLLOW] if any(row.get("few") for row in rows) else []
    models = dict.fromkeys(row["model"] for row in rows)
    trained = dict.fromkeys(row["model"] for row in rows if row["training_length"] is not None)
    whose = f" of {first_of([*trained], MOST_NAMED)}" if len(trained) < len(models) else ""
    notes += [TRAINED.format(whose)] if trained else []
    return picture(
        name,
        title,
        "curves",
        rows,
        figure,
        *("lengths", "training_length", "answers", "few", "stretch", "low", "high", "gap"),
        x="length",
        x_scale="length",
        series="model",
        panel="task",
        scale=SCALES[figure],
        notes=notes,
    )


# ── at the training length and a digit beyond ────────────────────────────────────────────────────


PAPERS: Final = ", as of the models that the paper trained"
AT, BEYOND = "at T", "at T + 1"


def _beside_training_length(shown: Shown, name: str, title: str, figure: str) -> PublishedPicture:
    """Return models × (task, length): a figure at the training length, and a digit beyond it.

    Where nobody says a training length, it is that of the paper's models.
    """
    printed = [row for row in published_table("nupa_table_12").to_pylist() if row["metric"] == figure]
    kinds = list(dict.fromkeys((row["task"], row["variant"], row["representation"]) for row in printed))
    rows, training_lengths = list[Row](), dict[str, int]()
    for line in shown.lines:
        if line.task.kind not in kinds:
            continue
        trained = shown.training.length_of(line.model, line.task) or PAPER[line.task.length_class]
        training_lengths[shown.names[line.asked]] = trained
        for column, length in ((AT, trained), (BEYOND, trained + 1)):
            if length in line.lengths:
                added = line.by_grader["strict"][figure].by_length.get(length)
                interval = None if added is None else interval_of(added)
                value = None if added is None else float(added.mean)
                answers = 0 if added is None else added.answers
                rows.append(
                    _cell(shown.names[line.asked], line.task.kind, column, length)
                    | _valued(figure, value)
                    | {"answers": answers, **ends_of(interval)}
                )
    if shown.printed and rows:
        for row in printed:
            model = f"{row['positional_encoding']} {MARK}"
            kind = (row["task"], row["variant"], row["representation"])
            column = AT if row["digits"] == min(each["digits"] for each in printed) else BEYOND
            cell = _cell(model, kind, column, row["digits"]) | _valued(figure, float(row["value"]))
            rows.append(cell | {"standard_error": float_or_none(row["standard_error"])})
    return picture(
        name,
        f"{title} at the training length T and a digit beyond",
        "map",
        rows,
        figure,
        *("length", "answers", "low", "high", "standard_error", "gap"),
        x="task and length",
        y="model",
        text="figure",
        scale=SCALES[figure],
        x_order=[_column(kind, column) for kind in kinds for column in (AT, BEYOND)],
        notes=shown.notes(f"T: {_in_words(training_lengths)}{'' if shown.training.given else PAPERS}."),
    )


def _cell(model: str, kind: Kind, column: str, length: int) -> Row:
    return {"model": model, "task and length": _column(kind, column), "length": length}


def _valued(figure: str, value: float | None) -> Row:
    return {figure: value} | ({"gap": UNANSWERED} if value is None else {"figure": f"{value:.2f}"})


def _column(kind: Kind, column: str) -> str:
    return f"{task_name(task_of(*kind))} {column}"


def _in_words(lengths: Mapping[str, int]) -> str:
    """Return training lengths in words: `8 digits`, or the models of each."""
    by_length: dict[int, list[str]] = {}
    for model, length in lengths.items():
        by_length.setdefault(length, []).append(model)
    if len(by_length) <= 1:
        return "".join(f"{length} digits" for length in by_length)
    return "; ".join(f"{length} digits ({', '.join(models)})" for length, models in by_length.items())
