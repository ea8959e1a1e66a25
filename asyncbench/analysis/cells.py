"""Metrics of the cells of a folder: each is a quotient of two sums.

So Python and the page's JavaScript compute it alike, from the same table: the view `cells`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.views import HEADLINE_GRADES, cells_of
from asyncbench.records import Outcome
from asyncbench.stats.proportions import wilson

# Columns of the view `cells`.
COUNTS: Final = (
    *("trials", *(outcome.value for outcome in Outcome)),
    *("known_tokens", "reasoning_known", "priced", "priced_correct", "latencies"),
    *("format_ok", "format_known", "digits_right", "digits_total"),
)
SUMS: Final = ("input_tokens", "output_tokens", "reasoning_tokens", "cost_usd", "latency_s", "independent")

Sums = Mapping[str, Any]  # Any: int or float by column of a cell; None: unknown
Columns = tuple[str, ...]  # summed over the cells and with each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A metric of a group of trials; None: it is unknown."""

    value: float | None
    low: float | None = None  # of the 95 % interval, where there is one
    high: float | None = None
    trials: int = 0  # what was divided by: trials, answers or digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """scale × sum of `over` / sum of `under`, over the cells of a group."""

    title: str
    unit: str
    over: Columns
    under: Columns
    scale: float = 1
    share: bool = False  # in [0, 1], shown in percent
    interval: bool = False  # so many of so many independent trials
    higher_is_better: bool = True

    @property
    def format(self) -> str:
        """The format of its figures, in the notation of d3-format."""
        if self.share:
            return ".1%"
        return "$,.3~r" if self.unit.startswith("USD") else ",.3~r"

    def of(self, sums: Sums) -> Value:
        """Return it of a group, given the sums of its cells; shares have a Wilson interval.

        In that a problem counts once, however often it was asked: repeats of it are not independent.
        """
        over, under = (sum(sums[name] or 0 for name in side) for side in (self.over, self.under))
        if not under:
            return Value(value=None, trials=under)
        value = self.scale * over / under
        if not self.interval:
            return Value(value=value, trials=under)
        low, high = wilson(over / under, under / repeats_of([sums]))
        return Value(value=value, low=low, high=high, trials=under)


METRICS: Final[Mapping[str, Metric]] = {
    "accuracy": Metric(
        title="Accuracy",
        unit="share",
        over=("correct",),
        under=("trials",),
        share=True,
        interval=True,
    ),
    "of_answered": Metric(
        title="Accuracy when it answered",
        unit="share",
        over=("correct",),
        under=("correct", "wrong"),
        share=True,
        interval=True,
    ),
    "format": Metric(
        title="Follows format",
        unit="share",
        over=("format_ok",),
        under=("format_known",),
        share=True,
        interval=True,
    ),
    "digits": Metric(
        title="Correct digits",
        unit="share",
        over=("digits_right",),
        under=("digits_total",),
        share=True,  # without interval: the digits of one answer are not independent
    ),
    "output_tokens": Metric(
        title="Output tokens per trial",
        unit="tokens",
        over=("output_tokens",),
        under=("known_tokens",),
        higher_is_better=False,
    ),
    "reasoning_tokens": Metric(
        title="Reasoning tokens per trial",
        unit="tokens",
        over=("reasoning_tokens",),
        under=("reasoning_known",),
        higher_is_better=False,
    ),
    "cost": Metric(
        title="Cost per 1,000 trials",
        unit="USD per 1,000 trials",
        over=("cost_usd",),
        under=("priced",),
        scale=1000,
        higher_is_better=False,
    ),
    "cost_per_correct": Metric(
        title="Cost per 1,000 correct answers",
        unit="USD per 1,000 correct answers",
        over=("cost_usd",),
        under=("priced_correct",),
        scale=1000,
        higher_is_better=False,
    ),
    "latency": Metric(
        title="Mean latency",
        unit="seconds",
        over=("latency_s",),
        under=("latencies",),
        higher_is_better=False,
    ),
}


def cells_in(views: FolderViews, *, answers: str = "") -> list[dict[str, Any]]:
    """Return the view `cells` as rows, counted once for all who ask.

    Args:
        views: of the folders.
        answers: a table that has all trials already, with the columns that are counted.
    """
    return views.once("cells", lambda: _cells(views, answers))


def _cells(views: FolderViews, answers: str) -> list[dict[str, Any]]:
    if views.chosen.several or views.chosen.loaded or not answers:
        return views.rows("FROM cells")
    views.keep("headline_grades", HEADLINE_GRADES)  # of which `headline_graders` are told, too
    entrants = views.rows(f"SELECT DISTINCT run, model, condition FROM {answers}")  # noqa: S608  a name of ours
    one_condition = len({(row["run"], row["model"]) for row in entrants}) == len(entrants)
    return views.rows(cells_of(answers, "headline_grades", one_condition=one_condition))


def repeats_of(cells: Sequence[Sums]) -> float:
    """Return how often the problems of cells were asked, in the mean; 1 where there are no trials."""
    independent = sum(cell["independent"] or 0 for cell in cells)
    return sum(cell["trials"] for cell in cells) / independent if independent else 1


def summed(cells: Iterable[Sums], keys: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the sums of cells by the values of some columns, in the order in which these first come.

    Args:
        cells: rows of a table of cells.
        keys: columns of `CELL`, or others that the rows have.
    """
    by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    for cell in cells:
        sums = by_key.setdefault(tuple(cell[key] for key in keys), dict.fromkeys((*COUNTS, *SUMS), 0))
        for name in sums:
            sums[name] += cell[name] or 0
    return by_key
