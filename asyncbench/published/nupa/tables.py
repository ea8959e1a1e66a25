"""How NUPA's figures are shown: as sheets of cells, tasks × ranges on the colours of a heatmap."""

from collections.abc import Iterator, Mapping, Sequence

from asyncbench.published.nupa.counts import Figure, TaskFindings, TaskLine, by_asked, macro
from asyncbench.results import Asked, names_of
from asyncbench.shown import MISSING, Cell, Sheet, of_accuracy, shaded
from asyncbench.suites.nupa import Number, NupaTask, PassedLengths

RANGES = ("S", "M", "L", "XL")
MARK = "!"  # beside what `search` reads where it is far above `strict`

OVERVIEW_HEAD = (
    *("model", "tasks", "answers", "failed", "exact match"),
    *(*RANGES, "by search", "digit match", "dlength"),
)
TASKS_HEAD = (
    *("task", "answers", "exact match", *RANGES, "in domain", "out domain", "by search"),
    *("digit match", "dlength"),
)
DIGITS_HEAD = (
    "task",
    *(
        f"{digits} ({figure})"
        for figure in ("exact", "digit", "dlength")
        for digits in ("well learned", "preserving")
    ),
)


def sheets(lines: Sequence[TaskLine]) -> Iterator[Sheet]:
    """Yield the tables from top to bottom."""
    groups = by_asked(lines)
    named = names_of(groups)
    yield _overview(groups, named)
    if len(groups) > 1:
        yield _side_by_side(groups, named)
    for asked, those in groups.items():
        yield Sheet(
            title=f"{named[asked]}: exact match by task and range of lengths",
            head=TASKS_HEAD,
            rows=[_task_row(line) for line in those],
        )
        yield Sheet(
            title=f"{named[asked]}: digits, in brackets those up to which no length fails",
            head=DIGITS_HEAD,
            rows=[_digits_row(line) for line in those],
        )


def _overview(groups: Mapping[Asked, Sequence[TaskLine]], named: Mapping[Asked, str]) -> Sheet:
    return Sheet(
        title="Models: means over tasks (ours: the paper has none)",
        head=OVERVIEW_HEAD,
        rows=[_overview_row(named[asked], lines) for asked, lines in groups.items()],
    )


def _overview_row(name: str, lines: Sequence[TaskLine]) -> list[Cell]:
    of = {
        figure: macro([line.by_grader["strict"].figures[figure] for line in lines])
        for figure in ("exact_match", "digit_match", "dlength")
    }
    searched = macro([line.by_grader["search"].figures["exact_match"] for line in lines])
    return [
        name,
        f"{len(lines):,}",
        f"{sum(line.answers for line in lines):,}",
        f"{sum(line.failed for line in lines):,}",
        *(_share(of["exact_match"][place]) for place in ("mean", *RANGES)),
        percent(searched["mean"]),
        percent(of["digit_match"]["mean"]),
        _digits(of["dlength"]["mean"]),
    ]


def _side_by_side(groups: Mapping[Asked, Sequence[TaskLine]], named: Mapping[Asked, str]) -> Sheet:
    """Return tasks × models."""
    found = {
        asked: {line.task.name: line.by_grader["strict"] for line in lines} for asked, lines in groups.items()
    }
    tasks = {line.task.name: line.task for lines in groups.values() for line in lines}
    rows = [
        [task_name(task), *(_exact(found[asked].get(name)) for asked in groups)]
        for name, task in tasks.items()
    ]
    return Sheet(
        title="Exact match by task and model",
        head=("task", *(named[asked] for asked in groups)),
        rows=rows,
    )


def _exact(findings: TaskFindings | None) -> Cell:
    return MISSING if findings is None else _share(findings.exact_match)


def _task_row(line: TaskLine) -> list[Cell]:
    strict, search = line.by_grader["strict"], line.by_grader["search"]
    exact = strict.figures["exact_match"]
    return [
        task_name(line.task),
        f"{line.answers:,}",
        _share(exact.mean),
        *(_share(exact.ranges[name]) for name in (*RANGES, "in_domain", "out_domain")),
        f"{percent(search.exact_match)}{MARK if line.other_form else ''}",
        percent(strict.figures["digit_match"].mean),
        _digits(strict.figures["dlength"].mean),
    ]


def _digits_row(line: TaskLine) -> list[Cell]:
    figures = line.by_grader["strict"].figures
    cells = [_mastered(figures[name]) for name in ("exact_match", "digit_match", "dlength")]
    return [task_name(line.task), *(cell for pair in cells for cell in pair)]


def _mastered(figure: Figure) -> tuple[str, str]:
    of = figure.digits or PassedLengths()
    return (
        _with_contiguous(of.well_learned, of.well_learned_contiguous),
        _with_contiguous(of.preserving, of.preserving_contiguous),
    )


def _with_contiguous(longest: int | None, contiguous: int | None) -> str:
    return MISSING if longest is None else f"{longest} ({contiguous})"


def task_name(task: NupaTask) -> str:
    """Return what to call a task: `multiply easy, float`."""
    return f"{task.task}{' ' if task.variant else ''}{task.variant}, {task.representation}"


def _share(value: Number | None) -> Cell:
    return MISSING if value is None else shaded(percent(value), of_accuracy(float(value)))


def percent(value: Number | None) -> str:
    """Return a share in percent with one decimal."""
    return MISSING if value is None else f"{float(value):.1%}"


def _digits(value: Number | None) -> str:
    return MISSING if value is None else f"{float(value):.2f}"
