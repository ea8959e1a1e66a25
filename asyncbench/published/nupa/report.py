"""`report --style nupa`: the figures of the paper "Number Cookbook", of any results folder."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import pyarrow as pa

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.analysis.counting import FolderViews, manifest_of
from asyncbench.analysis.entrants import Entrant, names_of
from asyncbench.published.nupa.counts import (
    DIGITS,
    FIGURES,
    RANGES,
    SUITE,
    Figure,
    Interval,
    TaskLine,
    counts_in,
    counts_of,
    entrant_lines,
    interval_of,
    macro,
    macro_intervals,
    printed_digits,
    task_name,
)
from asyncbench.published.nupa.pictures import paper_tables, pictures_of
from asyncbench.published.nupa.training import TrainingLengths, training_lengths
from asyncbench.published.reports import (
    MARK as PUBLISHED,
    PublishedPicture,
    PublishedReport,
    about,
    published_table,
    sources_note,
)
from asyncbench.store.manifest import planned
from asyncbench.suites.nupa.grading import GRADERS
from asyncbench.suites.nupa.tasks import Number, PassedLengths, range_of
from asyncbench.suites.suite import Kind
from asyncbench.tables import numbers
from asyncbench.tables.headings import EXACT_MATCH
from asyncbench.tables.numbers import MISSING, accuracy_goodness, shaded
from asyncbench.tables.report import Columns, Report, Sheet
from asyncbench.tables.screen import Cell

SIZES = "S, M, L, XL: 1-4, 5-8, 9-14, 15-20 digits, or 1-10, 11-20, 21-60, 61-100."
MEANING = (
    "Means over answers, graded by `strict`, which reads the answer where the published code does. "
    f"{SIZES} Digit match: share of right digits. "
    "dlength: digits too many or too few. Well learned: the longest length with a mean of 90 % (dlength "
    "0.1) or better. Preserving: the same for 10 % exact match, 50 % digit match, dlength 1."
)
_DIGITS = "The longest length with a mean of {}, and the longest with {}, graded by `strict`."
_EXACT = _DIGITS.format("90 % or more", "10 % or more")
CAPTIONS: Final[Mapping[str, str]] = {  # picture → what its caption has to say
    "table-7": _EXACT,
    "table-8": f"{_DIGITS.format('90 % or more', '50 % or more')} Digit match: share of right digits.",
    "table-9": f"{_DIGITS.format('0.1 or less', '1 or less')} dlength: digits too many or too few.",
    "table-18": f"{SIZES} Well learned, preserving: {_EXACT[0].lower()}{_EXACT[1:]}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NupaReport(PublishedReport):
    """A folder's figures of NUPA, and how they are shown."""

    source: Chosen
    empty: int
    planned: Mapping[Entrant, int]
    intervals: bool  # whether the tables have the 95 % interval of each figure
    training: TrainingLengths  # marked in pictures by length
    lines: tuple[TaskLine, ...]  # as the manifest has who was asked, then as the table of tasks

    def data(self) -> dict[str, object]:
        models = list[dict[str, object]]()
        for entrant, lines in entrant_lines(self.lines).items():
            run, model, condition = entrant
            means = dict[str, dict[str, object]]()
            for grader in GRADERS:
                by_name = {name: [line.by_grader[grader][name] for line in lines] for name in FIGURES}
                means[grader] = {
                    name: _exactly(macro(figures)) | {"intervals": macro_intervals(figures)}
                    for name, figures in by_name.items()
                }
            models.append(
                {
                    "run": run,
                    "model": model,
                    "condition": condition,
                    "style": lines[0].style,
                    "tasks": len(lines),
                    "planned": self.planned.get(entrant),
                    "trials": sum(line.trials for line in lines),
                    "failed": sum(line.failed for line in lines),
                    "ungraded": sum(line.ungraded for line in lines),
                    "mean_over_tasks": means,
                }
            )
        data = {
            "folder": self.folder,
            "simulated": self.simulated,
            "graders": [asdict(graded) for graded in self.graders],
            "left_out": self.left_out,
            "empty": self.empty,
            "models": models,
            "lines": [
                _line(line) | {"training_length": self.training.length_of(line.model, line.task)}
                for line in self.lines
            ],
        }
        return self.add_published(data)

    def sheets(self) -> Iterator[Sheet]:
        yield from _tables(self.lines, intervals=self.intervals)
        yield self._sheet_of_training_lengths()
        if self.published:
            yield from compare_with_printed(self.lines, self.published)

    def latex_content(self) -> Iterator[str | Sheet]:
        """Yield the paper's Tables 1, 7 to 10 and 18, then means over tasks with all notes in the caption.

        Each has a column a model. There is no text between them: a paper has its own.
        """
        simulated = [self.simulated_note] if self.simulated else []
        for picture in map(_captioned, paper_tables(self.lines, printed=bool(self.published))):
            table = replace(picture, notes=[*simulated, *picture.notes]).paper_sheet()
            if table.rows:
                yield table

        _, *others = _tables(self.lines, intervals=self.intervals)
        means = _means_sheet(self.lines, model_columns(intervals=self.intervals, exact_match=self.intervals))
        models, *figures = zip(means.head, *means.rows, strict=True)
        yield Sheet(
            title="Means over tasks (ours: the paper has none)",
            head=["figure", *map(str, models[1:])],
            rows=figures,
            legend=" ".join(self.notes_above()),
            name="means",
            upright=True,
        )
        yield from others if self.intervals else ()
        trained = self._sheet_of_training_lengths()
        yield from [trained] if trained.rows else []

    def _sheet_of_training_lengths(self) -> Sheet:
        """Return the figures at the training length and a digit beyond, of models of which it was said."""
        named = names_of(entrant_lines(self.lines))
        rows = [
            TrainedLine(named[line.asked], line, length)
            for line in self.lines
            if (length := self.training.length_of(line.model, line.task)) is not None
        ]
        return Sheet.of("At the training length T, and a digit beyond", TRAINED, rows, labels=2)

    def pictures(self) -> Iterator[PublishedPicture]:
        """Yield the pictures of the paper, and those that its tables ask for."""
        printed = bool(self.published)
        return map(_captioned, pictures_of(self.lines, self.source, printed=printed, training=self.training))

    def outcomes(self) -> Iterator[str]:
        trials, failed = sum(line.trials for line in self.lines), sum(line.failed for line in self.lines)
        yield f"{trials:,} trials: {failed:,} failed, {self.empty:,} empty replies."
        groups = entrant_lines(self.lines)
        named = names_of(groups)
        done = {entrant: sum(line.trials for line in lines) for entrant, lines in groups.items()}
        unfinished = [
            f"{named[entrant]} {count:,} of {self.planned[entrant]:,}"
            for entrant, count in done.items()
            if count < self.planned.get(entrant, 0)
        ]
        if unfinished:
            yield f"Not finished: {', '.join(unfinished)} trials."
        if count := sum(line.ungraded for line in self.lines):
            yield f"{count:,} replies could not be graded and are left out. `asyncbench regrade` tries again."

    def meaning(self) -> Iterator[str]:
        if any(line.other_form for line in self.lines):
            yield (
                f"{MARK}: `search` and `strict` differ by more than a point. Replies did not follow the "
                "format, which says nothing about arithmetic."
            )
        yield MEANING


def _captioned(picture: PublishedPicture) -> PublishedPicture:
    """Return a picture that says what the words in it mean."""
    by_range = {"range", "task and range"} & {picture.x, picture.y} or picture.name.startswith("range-")
    return replace(picture, meaning=CAPTIONS.get(picture.name, SIZES if by_range else ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigures(Report):
    """A folder's figures of NUPA beside those that the paper prints, as the page shows them."""

    lines: tuple[TaskLine, ...]
    published: tuple[pa.Table, ...]

    def notes_above(self) -> Iterator[str]:
        yield MEANING

    def sheets(self) -> Iterator[Sheet]:
        yield next(_tables(self.lines))
        yield from compare_with_printed(self.lines, self.published)

    def content(self) -> Iterator[str | Sheet]:
        yield from Report.content(self)
        yield sources_note(self.published)


def paper_figures_of(views: FolderViews) -> PaperFigures:
    """Return the figures of NUPA in views of folders beside the paper's.

    Raises:
        ConfigError: its tasks are not those of NUPA.
        StoreError: the results cannot be read.
    """
    return PaperFigures(lines=counts_in(views, views.manifest)["lines"], published=printed_tables())


def nupa_report_on(
    folder: Folders,
    *,
    published: bool = False,
    intervals: bool = False,
    training_length: int | str | Sequence[str] = (),
) -> NupaReport:
    """Return the figures of NUPA in a results folder.

    Args:
        folder: the results folder.
        published: beside those that the paper prints.
        intervals: with the 95 % interval of each.
        training_length: the lengths up to which models were trained, for pictures, as `training_lengths`
            takes them.

    Raises:
        ConfigError: it is not a results folder, holds no trial of NUPA, or a training length is wrong.
        StoreError: its results cannot be read.
    """
    manifest = manifest_of(folder)
    counts = counts_of(folder, manifest)
    aliases = dict.fromkeys(line.model for line in counts["lines"])
    return NupaReport(
        **about(folder, manifest, runs={line.run for line in counts["lines"]}),
        **counts,
        published=printed_tables() if published else (),
        intervals=intervals,
        training=training_lengths(training_length, aliases),
        source=chosen(folder),
        planned={
            entrant: sum(suites[SUITE].values())
            for entrant, suites in planned(manifest).items()
            if SUITE in suites
        },
    )


# ── tables ───────────────────────────────────────────────────────────────────────────────────

MARK = "!"  # beside what `search` reads where it is far above `strict`
ModelLines = tuple[str, Sequence[TaskLine]]  # what a model is called, and the lines of its tasks


def _tables(lines: Sequence[TaskLine], *, intervals: bool = False) -> Iterator[Sheet]:
    """Yield the tables from top to bottom; `intervals`: with the interval of each figure."""
    yield _means_sheet(lines, model_columns(intervals=intervals))
    models = _models(lines)

    # Tasks × models.
    if len(models) > 1:
        by_task = [{line.task.name: line for line in model_lines} for _, model_lines in models]
        tasks = {line.task.name: line.task for line in lines}
        cell = partial(_task_cell, "exact_match", "mean", interval=intervals)
        rows = [
            [
                task_name(task),
                *(cell(model_tasks[name]) if name in model_tasks else MISSING for model_tasks in by_task),
            ]
            for name, task in tasks.items()
        ]
        head = ("task", *(name for name, _ in models))
        yield Sheet(title="Exact match by task and model", head=head, rows=rows)

    by_range = task_columns(intervals=intervals)
    for name, model_lines in models:
        yield Sheet.of(f"{name}: exact match by task and range of lengths", by_range, model_lines)
        yield Sheet.of(f"{name}: digits, in brackets those up to which no length fails", PASSED, model_lines)


def _models(lines: Sequence[TaskLine]) -> list[ModelLines]:
    groups = entrant_lines(lines)
    names = names_of(groups)
    return [(names[entrant], model_lines) for entrant, model_lines in groups.items()]


def _means_sheet(lines: Sequence[TaskLine], columns: Columns[ModelLines]) -> Sheet:
    return Sheet.of("Models: means over tasks (ours: the paper has none)", columns, _models(lines))


def model_columns(*, intervals: bool, exact_match: bool = True) -> Columns[ModelLines]:
    """Return the columns of means over tasks.

    Args:
        intervals: whether all figures have their intervals.
        exact_match: whether that over all answers has its own in any case.
    """
    cell = partial(partial, _model_cell)
    return {
        "model": lambda model: model[0],
        "tasks": lambda model: f"{len(model[1]):,}",
        "answers": lambda model: f"{sum(line.answers for line in model[1]):,}",
        "failed": lambda model: f"{sum(line.failed for line in model[1]):,}",
        EXACT_MATCH if exact_match else "exact match": cell("exact_match", "mean", interval=exact_match),
        **{column: cell("exact_match", column, interval=intervals) for column in RANGES},
        "by search": cell("exact_match", "mean", grader="search", interval=False),
        "digit match": cell("digit_match", "mean", interval=intervals),
        "dlength": cell("dlength", "mean", interval=intervals),
    }


def task_columns(*, intervals: bool) -> Columns[TaskLine]:
    """Return the columns of a model's tasks, likewise."""
    cell = partial(partial, _task_cell)
    return {
        "task": lambda line: task_name(line.task),
        "answers": lambda line: f"{line.answers:,}",
        EXACT_MATCH: cell("exact_match", "mean", interval=True),
        **{
            column.replace("_", " "): cell("exact_match", column, interval=intervals)
            for column in (*RANGES, "in_domain", "out_domain")
        },
        "by search": lambda line: (
            f"{_percent(line.by_grader['search']['exact_match'].mean)}{MARK if line.other_form else ''}"
        ),
        "digit match": cell("digit_match", "mean", interval=intervals),
        "dlength": cell("dlength", "mean", interval=intervals),
    }


def _model_cell(
    figure: str, column: str, model: ModelLines, *, interval: bool, grader: str = "strict"
) -> Cell:
    """Return the mean over a model's tasks of a figure, over all answers or those of a range."""
    figures = [line.by_grader[grader][figure] for line in model[1]]
    mean = macro(figures)[column]
    if grader != "strict":
        return _percent(mean)
    return _figure_cell(figure, mean, macro_intervals(figures)[column] if interval else None)


def _task_cell(figure: str, column: str, line: TaskLine, *, interval: bool) -> Cell:
    found = line.by_grader["strict"][figure]
    return _figure_cell(figure, found.mean_in(column), found.intervals[column] if interval else None)


class TrainedLine(NamedTuple):
    """The figures of a model in a task, and the longest problems that it was trained on."""

    name: str
    line: TaskLine
    training_length: int


def _length_cell(figure: str, beyond: int, trained: TrainedLine) -> Cell:
    """Return a figure of the length that is so many digits beyond the training length."""
    by_length = trained.line.by_grader["strict"][figure].by_length
    added = by_length.get(trained.training_length + beyond)
    return MISSING if added is None else _figure_cell(figure, added.mean, interval_of(added))


def _figure_cell(figure: str, mean: Number | None, interval: Interval | None) -> Cell:
    """Return a figure, with its interval if there is one; exact match is shaded."""
    if mean is None:
        return MISSING
    if figure == "dlength":
        ends = "" if interval is None else " ({:.2f}-{:.2f})".format(*interval)
        return f"{float(mean):.2f}{ends}"
    text = numbers.percent(float(mean), interval)
    return shaded(text, accuracy_goodness(float(mean))) if figure == "exact_match" else text


def _percent(value: Number | None) -> str:
    return MISSING if value is None else numbers.percent(float(value))


def _passed(figure: str, digits: str, line: TaskLine) -> str:
    """Return how many digits of a task are well learned, or kept, by a figure."""
    passed = line.by_grader["strict"][figure].digits or PassedLengths()
    longest, contiguous = getattr(passed, digits), getattr(passed, f"{digits}_contiguous")
    return MISSING if longest is None else f"{longest} ({contiguous})"


PASSED: Final[Columns[TaskLine]] = {
    "task": lambda line: task_name(line.task),
    **{
        f"{digits.replace('_', ' ')} ({name})": partial(_passed, figure, digits)
        for name, figure in (("exact", "exact_match"), ("digit", "digit_match"), ("dlength", "dlength"))
        for digits in ("well_learned", "preserving")
    },
}

TRAINED: Final[Columns[TrainedLine]] = {
    "model": lambda trained: trained.name,
    "task": lambda trained: task_name(trained.line.task),
    "T": lambda trained: str(trained.training_length),
    **{
        f"{name} at {'T + 1' if beyond else 'T'}": partial(_length_cell, figure, beyond)
        for figure, name in (
            ("exact_match", "exact match"),
            ("digit_match", "digit match"),
            ("dlength", "dlength"),
        )
        for beyond in (0, 1)
    },
}

# ── the printed figures of the paper, beside those of a folder


def printed_tables() -> tuple[pa.Table, ...]:
    """Return the tables of the paper that a folder's figures can stand beside."""
    return tuple(map(published_table, (*DIGITS, "nupa_table_10")))


def compare_with_printed(lines: Sequence[TaskLine], tables: Iterable[pa.Table]) -> Iterator[Sheet]:
    """Yield a sheet for each table: the folder's models, then those of the paper, on the folder's tasks.

    Args:
        lines: of the folder.
        tables: as `printed_tables` has them.
    """
    groups = entrant_lines(lines)
    names = names_of(groups)
    folder_lines = {
        names[entrant]: {line.task.kind: line for line in model_lines}
        for entrant, model_lines in groups.items()
    }
    kinds = list(dict.fromkeys(line.task.kind for line in lines))
    *of_digits, by_range = tables
    for (figure, title), table in zip(DIGITS.values(), of_digits, strict=True):
        yield _digits_sheet(table, figure, title, folder_lines=folder_lines, kinds=kinds)
    yield _ranges_sheet(by_range, folder_lines=folder_lines)


def _digits_sheet(
    table: pa.Table,
    figure: str,
    title: str,
    *,
    folder_lines: Mapping[str, Mapping[Kind, TaskLine]],
    kinds: Iterable[Kind],
) -> Sheet:
    """Return tasks × models: the well-learned and the preserved digits."""
    printed = printed_digits(table)
    rows = []
    for kind in kinds:
        if not any(kind in by_kind for by_kind in printed.values()):
            continue
        row = [f"{' '.join(filter(None, kind[:2]))}, {kind[2]}"]
        for lines in folder_lines.values():
            digits = lines[kind].by_grader["strict"][figure].digits if kind in lines else None
            if digits is None or digits.well_learned is None:
                row.append(MISSING)
            else:
                row.append(f"{digits.well_learned} / {digits.preserving}")
        for by_kind in printed.values():
            row.append("{} / {}".format(*by_kind[kind]) if kind in by_kind else MISSING)
        rows.append(row)
    return Sheet(
        title=f"Well-learned / preserved digits by {title}, beside the published ones",
        head=("task", *folder_lines, *(f"{model} {PUBLISHED}" for model in printed)),
        rows=rows,
    )


def _ranges_sheet(table: pa.Table, *, folder_lines: Mapping[str, Mapping[Kind, TaskLine]]) -> Sheet:
    """Return models × ranges of the tasks that the paper asked with and without examples."""
    printed: dict[str, dict[tuple[Kind, str], str]] = {}
    for row in table.to_pylist():
        named = f"{row['model']}, {row['shots']} examples {PUBLISHED}"
        kind = (row["task"], "", row["representation"])
        printed.setdefault(named, {})[kind, row["range"]] = str(row["exact_match"])
    folder_kinds = {kind for lines in folder_lines.values() for kind in lines}
    columns = [column for column in next(iter(printed.values())) if column[0] in folder_kinds]
    mine = []
    for name, lines in folder_lines.items():
        ranges = {kind: line.by_grader["strict"]["exact_match"].ranges for kind, line in lines.items()}
        means = (
            _figure_cell("dlength", ranges[kind][column_range], None) if kind in ranges else MISSING
            for kind, column_range in columns
        )
        mine.append([name, *means])
    published = [[name, *(cells[column] for column in columns)] for name, cells in printed.items()]
    return Sheet(
        title="Exact match by range, beside the published ones with and without examples",
        head=(
            "model",
            *(
                f"{task} {representation} {column_range}"
                for (task, _, representation), column_range in columns
            ),
        ),
        rows=[*mine, *published] if columns else [],
    )


# ── as JSON has it ───────────────────────────────────────────────────────────────────────────


def _line(line: TaskLine) -> dict[str, object]:
    task = line.task
    return {
        "run": line.run,
        "model": line.model,
        "condition": line.condition,
        "style": line.style,
        "task": task.task,
        "variant": task.variant,
        "representation": task.representation,
        "task_name": task.name,
        "length_class": task.length_class,
        "trials": line.trials,
        "failed": line.failed,
        "ungraded": line.ungraded,
        "answers": line.answers,
        "other_form": line.other_form,
        **{grader: _findings(figures, task.length_class) for grader, figures in line.by_grader.items()},
    }


def _findings(figures: Mapping[str, Figure], length_class: int) -> dict[str, object]:
    by_length = [
        {
            "length": length,
            "range": range_of(length, length_class),
            "answers": added.answers,
            **{name: float(figure.by_length[length].mean) for name, figure in figures.items()},
            "intervals": {name: interval_of(figure.by_length[length]) for name, figure in figures.items()},
        }
        for length, added in figures["exact_match"].by_length.items()
    ]
    means = {
        name: _exactly({"mean": figure.mean, **figure.ranges})
        | {"intervals": figure.intervals}
        | ({} if figure.digits is None else asdict(figure.digits))
        for name, figure in figures.items()
    }
    return {**means, "by_length": by_length}


def _exactly(values: Mapping[str, Number | None]) -> dict[str, float | None]:
    """Return numbers as JSON has them: each the nearest binary float."""
    return {name: None if value is None else float(value) for name, value in values.items()}
