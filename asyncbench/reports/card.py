"""`report --style card`: one model on one page, and the published model that is closest to it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from asyncbench.analysis.anatomy.error import KINDS
from asyncbench.analysis.anatomy.numbers import Group
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.curves import Length
from asyncbench.analysis.entrants import names_of
from asyncbench.analysis.folder_report import FolderReport, no_trials
from asyncbench.analysis.served import note_of_simulated
from asyncbench.errors import ConfigError
from asyncbench.published.llm_arithmetic.counts import figures_in, tasks_of, total
from asyncbench.published.nupa.counts import SUITE as NUPA, counts_in, printed_digits, task_name
from asyncbench.published.reports import MARK, published_table
from asyncbench.records import Outcome
from asyncbench.reports.anatomy import AnatomyReport, anatomy_of, task_of
from asyncbench.reports.overview import ACCURACIES, COSTS, Overview, OverviewLine, overview_of
from asyncbench.store.schema import ENTRANT
from asyncbench.suites.llm_arithmetic import SUITE as LLM_ARITHMETIC
from asyncbench.tables import headings
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.numbers import at_least, count, per_correct, per_correct_text, percent
from asyncbench.tables.report import Columns, Sheet, filled

MOST_ROWS: Final = 8  # of tasks and kinds of errors, so that a card is a page; JSON has all
_ENTRANTS: Final = f"SELECT DISTINCT {', '.join(ENTRANT)} FROM trials"  # noqa: S608  made of our own words alone


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakingPoint:
    """The lengths up to which a task is mostly right."""

    task: str
    at_90: Length
    at_50: Length


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCount:
    """How often a kind of error is made."""

    kind: str
    answers: int
    share: float  # of the examined answers
    most_in: str  # the task with the most of them


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTask:
    """A task's figures: the model's own, and those that a document prints of another."""

    task: str
    own: tuple[float, ...]
    printed: tuple[float, ...]

    @property
    @in_data("difference")
    def difference(self) -> float:
        """The mean absolute difference of the figures."""
        return sum(abs(a - b) for a, b in zip(self.own, self.printed, strict=True)) / len(self.own)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosestModel:
    """The published model that is closest to the model in a suite."""

    suite: str
    model: str
    candidates: int  # models that the document prints
    figures: str  # what is compared
    tasks: tuple[ComparedTask, ...]  # that both have, the most different first

    @property
    @in_data("difference")
    def difference(self) -> float:
        """The mean absolute difference over the common tasks."""
        return sum(task.difference for task in self.tasks) / len(self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card(FolderReport):
    """What is known of one model: how right it is, where it breaks, how it errs and what it costs."""

    name: str
    overview: Overview = field(metadata=HIDDEN)
    lengths: tuple[BreakingPoint, ...]  # a task each, the first to break first
    kinds: tuple[KindCount, ...]  # the most frequent first
    peers: tuple[ClosestModel, ...]

    @property
    @in_data("suites")
    def suites(self) -> tuple[OverviewLine, ...]:
        """The figures of each suite."""
        return self.overview.suites

    @property
    @in_data("tasks")
    def tasks(self) -> tuple[OverviewLine, ...]:
        """The figures of each task."""
        return self.overview.tasks

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """The sentence that a folder without trials gets instead of tables."""
        return None if self.suites else no_trials(self.folder)

    def heading(self) -> str:
        return f"Card of {self.name}"

    def remarks(self) -> Iterator[str]:
        yield f"{self.heading()}."
        yield from self.overview.remarks()
        if self.peers:
            yield PEERS

    def sheets(self) -> Iterator[Sheet]:
        lines = [
            line
            for suite in self.suites
            for line in (suite, *(task for task in self.tasks if task.suite == suite.suite != task.task))
        ]
        shown = {name: RIGHT[name] for name in RIGHT if name != "open" or any(line.open for line in lines)}
        yield filled(Sheet.of("How right it is", shown, lines))
        yield Sheet.of(_first("Where it breaks", self.lengths, "tasks"), BREAKS, self.lengths[:MOST_ROWS])
        yield Sheet.of(_first("How it errs", self.kinds, "kinds"), ERRORS, self.kinds[:MOST_ROWS], labels=3)
        yield filled(Sheet.of("What it costs", SPENT, self.suites))
        for peer in self.peers:
            yield _peer_sheet(peer)


def card_of(views: FolderViews) -> Card:
    """Return the card of the only model that the trials are of.

    Raises:
        ConfigError: the trials are of several models, conditions or runs.
        StoreError: the results cannot be read.
        ProblemSetError: a folder's copy of the problems is damaged.
    """
    entrants = [(row["run"], row["model"], row["condition"]) for row in views.rows(_ENTRANTS)]
    names = sorted(names_of(entrants).values())
    if len(names) > 1:
        raise ConfigError(
            f"--style card is of one model, and {views.chosen} has {len(names):,}: {', '.join(names)}. "
            "Choose one by `--models ALIAS`, and one of its conditions by `--where \"condition = 'NAME'\"`, "
            "or of its runs by `--where \"run = 'NAME'\"`"
        )
    answers = anatomy_of(views)
    return Card(
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views),
        name="".join(names),
        overview=overview_of(views),
        lengths=_breaking_points(answers),
        kinds=_kind_counts(answers),
        peers=tuple(_peers(views)),
    )


# ── where it breaks, and how it errs


def _breaking_points(answers: AnatomyReport) -> tuple[BreakingPoint, ...]:
    """Return the lengths of all tasks that have several; what breaks first stands first."""
    points = [
        BreakingPoint(task=task_of(group), at_90=curve.length_at(0.9), at_50=curve.length_at(0.5))
        for group, curve in answers.digits.items()
        if curve.longest > curve.shortest
    ]
    return tuple(sorted(points, key=lambda point: (_rank(point.at_50), _rank(point.at_90), point.task)))


def _rank(length: Length) -> float:
    """Return where a length stands among others; an unknown one is last, as one above all that was asked."""
    if length.bound is not None:
        return -inf if length.bound == "below" else inf
    if length.value is not None:
        return length.value
    return inf if length.between is None else length.between[0]


def _kind_counts(answers: AnatomyReport) -> tuple[KindCount, ...]:
    by_kind = dict[str, Counter[Group]]()
    for findings in answers.findings:
        for kind, times in findings.kinds.items():
            by_kind.setdefault(kind, Counter())[findings.group] += times
    counts = [
        KindCount(
            kind=kind,
            answers=groups.total(),
            share=groups.total() / answers.examined,
            most_in=task_of(groups.most_common(1)[0][0]),
        )
        for kind, groups in by_kind.items()
    ]
    return tuple(sorted(counts, key=lambda each: -each.answers))


# ── the closest published model

Figures = Mapping[str, tuple[float, ...]]  # by task


def _peers(views: FolderViews) -> Iterator[ClosestModel]:
    """Yield the closest published model in each suite that a document prints figures of."""
    suites = {row["suite"] for row in views.rows("SELECT DISTINCT suite FROM trials")}
    for suite, (title, figures_of) in _PUBLISHED.items():
        if suite in suites:
            own, printed = figures_of(views)
            if peer := closest(suite, title, own, printed):
                yield peer


def closest(suite: str, title: str, own: Figures, printed: Mapping[str, Figures]) -> ClosestModel | None:
    """Return the published model with the least mean absolute difference, or None without a common task.

    Args:
        suite: whose figures they are.
        title: what is compared.
        own: of the model, by task.
        printed: of each published model. Those with fewer common tasks than another are left out.
    """
    common = {model: own.keys() & figures.keys() for model, figures in printed.items()}
    most = max(map(len, common.values()), default=0)
    peers = list[ClosestModel]()
    for model, tasks in common.items():
        if tasks and len(tasks) == most:
            compared = [
                ComparedTask(task=task, own=own[task], printed=printed[model][task]) for task in tasks
            ]
            compared.sort(key=lambda task: (-task.difference, task.task))
            peers.append(
                ClosestModel(
                    suite=suite, model=model, candidates=len(printed), figures=title, tasks=tuple(compared)
                )
            )
    return min(peers, key=lambda peer: (peer.difference, peer.model), default=None)


def _nupa_figures(views: FolderViews) -> tuple[Figures, Mapping[str, Figures]]:
    """Return the well-learned and preserved digits by exact match, of tasks whose every length was asked."""
    names, own = dict[tuple[str, ...], str](), dict[str, tuple[float, ...]]()
    for line in counts_in(views, views.manifest)["lines"]:
        digits = line.by_grader["strict"]["exact_match"].digits
        if digits.well_learned is not None and line.lengths >= set(line.task.lengths):
            names[line.task.kind] = task_name(line.task)
            own[names[line.task.kind]] = (digits.well_learned, digits.preserving)
    printed = {
        model: {names[kind]: digits for kind, digits in by_kind.items() if kind in names}
        for model, by_kind in printed_digits(published_table("nupa_table_7")).items()
    }
    return own, printed


def _arithmetic_figures(views: FolderViews) -> tuple[Figures, Mapping[str, Figures]]:
    """Return percentages by the published grader, of tasks whose every published depth was asked."""
    figures = figures_in(views, "legacy", views.manifest)
    ((cells),) = (row.cells for row in figures["rows"])
    graded = figures["tally"]["ungraded"] == 0
    own = {
        task: (100 * accuracy,)
        for task in tasks_of(cells)
        if graded
        and {depth for of_task, depth in cells if of_task == task} >= set(_DEPTHS)
        and (accuracy := total(cells, depths=_DEPTHS, task=task).accuracy) is not None
    }
    printed = dict[str, dict[str, tuple[float, ...]]]()
    for row in published_table("llm_arithmetic_2025-05-12_variants").to_pylist():
        printed.setdefault(row["model"], {})[row["task"]] = (float(row["correct_percent"]),)
    return own, printed


_DEPTHS: Final = range(2, 11)  # of the published runs
_PUBLISHED: Final[
    Mapping[str, tuple[str, Callable[[FolderViews], tuple[Figures, Mapping[str, Figures]]]]]
] = {
    NUPA: ("well-learned / preserved digits by exact match", _nupa_figures),
    LLM_ARITHMETIC.name: ("% correct by the grader legacy", _arithmetic_figures),
}
PEERS: Final = (
    f"Closest: the model marked {MARK} with the least mean absolute difference over the tasks of which this "
    "folder has every published length. Printed figures are as their document has them."
)


# ── tables


def _first(title: str, rows: Sequence[object], what: str) -> str:
    return f"{title}: the first {MOST_ROWS} of {len(rows):,} {what}" if len(rows) > MOST_ROWS else title


def _peer_sheet(peer: ClosestModel) -> Sheet:
    """Return the tasks that differ most from the closest published model."""
    columns: Columns[ComparedTask] = {
        "task": lambda task: task.task,
        "this model": lambda task: _figures_text(task.own),
        "published model": lambda task: _figures_text(task.printed),
    }
    tasks = f"{len(peer.tasks):,} {'task' if len(peer.tasks) == 1 else 'tasks'}"
    title = (
        f"{peer.suite}, {peer.figures}: beside {peer.model} {MARK}, the closest of "
        f"{peer.candidates} models, {peer.difference:.1f} apart in the mean of {tasks}"
    )
    shown = peer.tasks[:MOST_ROWS]
    return Sheet.of(
        title if len(shown) == len(peer.tasks) else f"{title}; where they differ most", columns, shown
    )


def _figures_text(figures: Sequence[float]) -> str:
    return " / ".join(f"{round(figure, 2):g}" for figure in figures)


def _per_1000(line: OverviewLine) -> str:
    """Return the cost of a thousand right answers, wrong ones paid as well."""
    each = per_correct(line.cost_usd, line.outcomes[Outcome.CORRECT])
    cost = per_correct_text(line.cost_usd, None if each is None else 1000 * each)
    return at_least(cost, partial=line.priced_trials < line.trials)


RIGHT: Final[Columns[OverviewLine]] = {
    name: ACCURACIES[name]
    for name in ("suite/task", "trials", "open", headings.ACCURACY, headings.ANSWERED, headings.MEAN_SCORE)
}
BREAKS: Final[Columns[BreakingPoint]] = {
    "suite/task": lambda point: point.task,
    headings.RIGHT_90: lambda point: str(point.at_90),
    headings.RIGHT_50: lambda point: str(point.at_50),
}
ERRORS: Final[Columns[KindCount]] = {
    "kind": lambda each: each.kind,
    "meaning": lambda each: KINDS.get(each.kind, "matches no kind"),
    "most in": lambda each: each.most_in,
    "answers": lambda each: count(each.answers),
    "share": lambda each: percent(each.share),
}
SPENT: Final[Columns[OverviewLine]] = {
    "suite": COSTS["suite"],
    "cost": COSTS["cost"],
    headings.PER_1000_CORRECT: _per_1000,
    **{
        name: COSTS[name]
        for name in (
            "input tokens",
            "output tokens",
            "reasoning tokens",
            headings.MEDIAN_LATENCY,
            headings.P95_LATENCY,
        )
    },
}
