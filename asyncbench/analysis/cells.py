"""Metrics of the cells of a folder: each is a quotient of two sums.

So Python and the page's JavaScript compute it alike, from the same table: the view `cells`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa

from asyncbench.analysis.counting import FolderViews, once
from asyncbench.analysis.views import HEADLINE_GRADES, cells_of
from asyncbench.engine.stopping import CellCounts, still_stopped
from asyncbench.errors import ConfigError
from asyncbench.records import Outcome
from asyncbench.stats.proportions import mean_interval, wilson
from asyncbench.store.manifest import kept_sweep_file
from asyncbench.store.schema import CELL
from asyncbench.tables.numbers import MISSING, count, known_cost, percent
from asyncbench.tables.report import Columns, Sheet

# Columns of the view `cells`.
COUNTS: Final = (
    *("trials", *(outcome.value for outcome in Outcome)),
    *("known_tokens", "reasoning_known", "priced", "priced_correct", "latencies"),
    *("format_ok", "format_known", "digits_right", "digits_total"),
    *("measured", "exact", "length_error", "digit_match"),
    *("scored", "score", "score_squares"),
)
SUMS: Final = ("input_tokens", "output_tokens", "reasoning_tokens", "cost_usd", "latency_s", "independent")
PART_USD: Final = "part_usd"  # beside them in rows of `add_known_costs`

RowT = TypeVar("RowT")
KeyT = TypeVar("KeyT")
Sums = Mapping[str, Any]  # Any: int or float by column of a cell; None: unknown
Summed = tuple[str, ...]  # columns, summed over the cells and with each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A metric of a group of trials, or None if it is unknown."""

    value: float | None
    low: float | None = None  # of the 95 % interval, where there is one
    high: float | None = None
    trials: int = 0  # what was divided by: trials, answers or digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """scale × sum of `over` / sum of `under`, over the cells of a group."""

    title: str
    unit: str
    over: Summed
    under: Summed
    scale: float = 1
    share: bool = False  # in [0, 1], shown in percent
    interval: bool = False  # so many of so many independent trials
    higher_is_better: bool = True
    log: bool = False  # coloured by log2(value + 1)

    @property
    def caption(self) -> str:
        """What a map of it shows."""
        return f"{self.title}, {self.unit}. Colours: log2({self.title} + 1)" if self.log else self.title

    @property
    def format(self) -> str:
        """The format of its figures, in the notation of d3-format."""
        if self.share:
            return ".1%"
        return "$,.3~r" if self.unit.startswith("USD") else ",.3~r"

    def measure(self, sums: Sums) -> Value:
        """Return it of a group, given the sums of its cells; shares have a Wilson interval.

        In that a problem counts once, however often it was asked: repeats of it are not independent.
        """
        over, under = (sum(sums[name] or 0 for name in side) for side in (self.over, self.under))
        if not under:
            return Value(value=None, trials=under)
        # Where nothing is known of a cost but that refusals are free, it is unknown and not 0.
        if "cost_usd" in self.over:
            unpriced = sums["trials"] - sums["priced"]
            if known_cost(sums["cost_usd"], unknown=unpriced) is None:
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
    "exact_match": Metric(
        title="Exact match",
        unit="share",
        over=("exact",),
        under=("measured",),
        share=True,
        interval=True,
    ),
    "digit_match": Metric(
        title="Digit match",
        unit="share",
        over=("digit_match",),
        under=("measured",),
        share=True,  # without interval: an answer may be right in part
    ),
    "dlength": Metric(
        title="dlength",
        unit="digits too many or too few",
        over=("length_error",),
        under=("measured",),
        higher_is_better=False,
        log=True,
    ),
    "score": Metric(
        title="Mean score",
        unit="from 0 to 1",
        over=("score",),
        under=("scored",),  # without interval: that of `mean_interval` needs the squares, too
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

_JUDGED: Final = {*COUNTS[COUNTS.index("format_ok") :]}  # counts of grades: the others are of trials alone
OF_GRADES: Final = [name for name, metric in METRICS.items() if _JUDGED & {*metric.over, *metric.under}]


def check_metric(name: str) -> None:
    """Refuse the name of a metric that does not exist.

    Raises:
        ConfigError: no metric has this name.
    """
    if name not in METRICS:
        raise ConfigError(f"no metric {name!r}. Choose one of: {', '.join(METRICS)}")


@once
def cells_in(views: FolderViews, *, answers: str = "") -> list[dict[str, Any]]:
    """Return the view `cells` as rows, counted once for all who ask.

    Args:
        views: of the folders.
        answers: a table that has all trials already, with the columns that are counted.
    """
    if views.chosen.several or views.chosen.loaded or not answers:
        return views.rows(views.sums_query("cells"))
    views.keep("headline_grades", HEADLINE_GRADES)  # of which `headline_graders` are told, too
    entrants = views.rows(f"SELECT DISTINCT run, model, condition FROM {answers}")  # noqa: S608  a name of ours
    one_condition = len({(row["run"], row["model"]) for row in entrants}) == len(entrants)
    return views.rows(cells_of(answers, "headline_grades", one_condition=one_condition))


# The known costs among the calls of trials whose cost is not known as a whole, by cell.
_KNOWN_PARTS: Final = f"""
SELECT {", ".join(CELL)}, sum_usd(usd) AS usd
FROM (SELECT trial_id, cost_usd AS usd FROM attempts WHERE cost_usd > 0) JOIN (
    SELECT trial_id, {", ".join(CELL)} FROM trials
    WHERE cost_usd IS NULL AND reused_from IS NULL AND load IS NULL
) USING (trial_id) GROUP BY ALL
"""  # noqa: S608  made of our own words alone


@once
def _known_parts(views: FolderViews) -> list[dict[str, Any]]:
    return views.rows(_KNOWN_PARTS)


def add_known_costs(views: FolderViews, rows: Iterable[Sums], *groups: Sequence[str]) -> list[dict[str, Any]]:
    """Return counted rows with what the calls of their trials cost, as far as that is known of each call.

    The `cost_usd` of a trial is NULL if that of any of its calls is unknown. The others were paid all the
    same: a sum without them would be less than is known.

    Args:
        views: of the folders.
        rows: as `counts_by` gives them for these groups, with `trials`, `priced` and `cost_usd`.
        groups: columns of `CELL`.

    Returns:
        rows with another `cost_usd`; `part_usd` of it is of trials that are not priced, and in no mean.
    """
    columns = dict.fromkeys(name for group in groups for name in group)
    parts = defaultdict[tuple[Any, ...], float](float)
    for paid in _known_parts(views):
        for group in groups:
            parts[tuple(paid[name] if name in group else None for name in columns)] += paid["usd"]

    spent: list[dict[str, Any]] = []
    for row in rows:
        part_usd, unknown = parts[tuple(row[name] for name in columns)], row["trials"] - row["priced"]
        usd = (row["cost_usd"] or 0.0) + part_usd if row["priced"] or part_usd else None
        spent.append({**row, "cost_usd": known_cost(usd, unknown=unknown), PART_USD: part_usd})
    return spent


def repeats_of(cells: Sequence[Sums]) -> float:
    """Return how often the problems of cells were asked, in the mean; 1 where there are no trials."""
    independent = sum(cell["independent"] or 0 for cell in cells)
    return sum(cell["trials"] for cell in cells) / independent if independent else 1


def has_scores(views: FolderViews) -> bool:
    """Return whether any grader that a user wrote gave a reply a score."""
    return bool(views.rows("SELECT count(score) AS scored FROM grades")[0]["scored"])


def mean_score(sums: Sums) -> Value | None:
    """Return the mean score of a group with its 95 % interval, or None if no grader gave a score."""
    if not (scored := sums["scored"]):
        return None
    mean = min(1.0, sums["score"] / scored)  # a sum of floats may be a hair above
    low, high = mean_interval(mean, sums["score_squares"], scored, repeats=repeats_of([sums]))
    return Value(value=mean, low=low, high=high, trials=scored)


def score_text(score: Value | None) -> str:
    """Return a mean score with its interval; `-` where there is none."""
    return MISSING if score is None else f"{score.value:.3f} ({score.low:.3f}-{score.high:.3f})"


def summed(cells: Iterable[Sums], keys: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the sums of cells by the values of some columns, in the order in which these first come.

    Args:
        cells: rows of a table of cells; what is not counted there is 0.
        keys: columns of `CELL`, or others that the rows have.
    """
    by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    for cell in cells:
        nothing = dict.fromkeys((*COUNTS, *SUMS, PART_USD), 0)
        sums = by_key.setdefault(tuple(cell[key] for key in keys), nothing)
        for name in sums:
            sums[name] += cell.get(name) or 0
    return by_key


def rows_by(rows: Iterable[RowT], key: Callable[[RowT], KeyT]) -> defaultdict[KeyT, list[RowT]]:
    """Return rows by their key, in the order in which these first come; without a row there is none."""
    groups = defaultdict[KeyT, list[RowT]](list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def outcomes_of(sums: Sums) -> dict[str, int]:
    """Return how many trials of a group came to each outcome."""
    return {outcome.value: sums[outcome] for outcome in Outcome}


# ── Cells that a stopping rule ended: trials asked and skipped, and always-valid intervals


STOPPED_MARK = "*"  # of an accuracy whose cells were stopped
MOST_SHOWN = 40  # cells in a table; JSON has all
_CELL = ", ".join(CELL)
_FIGURES = ("correct", "asked")  # of a cell, by which a rule holds or not
_WHEN_STOPPED = ("rule", "asked", "correct", "low", "high")
# Cells of which the rest was not asked. `trials`: closed, those that were in flight when the rule held among
# them; `asked`: of them, in the planned order, when it held; `low`, `high`: the always-valid interval then.
_STOPPED = f"""
SELECT stopped.*, coalesce(closed.trials, 0) AS trials FROM (
    SELECT {_CELL}, count(*) AS skipped,
        {", ".join(f"max_by({name}, skipped_at) AS {name}" for name in _WHEN_STOPPED)}
    FROM held_skips GROUP BY ALL
) stopped LEFT JOIN (
    SELECT {_CELL}, count(*) AS trials FROM trials GROUP BY ALL
) closed ON {" AND ".join(f"stopped.{name} IS NOT DISTINCT FROM closed.{name}" for name in CELL)}
ORDER BY {", ".join(f"stopped.{name} NULLS FIRST" for name in CELL)}
"""  # noqa: S608  made of our own words alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Skips:
    """How many trials of a results folder were not asked."""

    trials: int  # that the rule in force skips still
    lapsed: int  # other ones: the next run may ask these, so they are open


def keep_skips(views: FolderViews) -> Skips:
    """Return the trials that the rule in force skips: the rule of each folder's latest run.

    Later queries find the rows of `skipped` that it skips still as the table `held_skips`.

    Raises:
        ConfigError: the sweep.yaml of a folder cannot be read.
    """
    keys = ("folder", *_FIGURES) if views.chosen.several else _FIGURES
    skipped = views.rows(f"SELECT {', '.join(keys)}, count(*) AS trials FROM skipped GROUP BY ALL")  # noqa: S608  our words
    holds = list[dict[str, Any]]()
    for label, path in views.folders:
        folder_rows = [row for row in skipped if row.get("folder", label) == label]
        stopped = cells_still_stopped(path, ((row["correct"], row["asked"]) for row in folder_rows))
        holds += (row for row in folder_rows if (row["correct"], row["asked"]) in stopped)
    kinds = {name: pa.string() if name == "folder" else pa.int64() for name in keys}
    views.put("holds", pa.Table.from_pylist(holds, pa.schema(kinds)))
    views.keep("held_skips", f"SELECT * FROM skipped SEMI JOIN holds USING ({', '.join(keys)})")  # noqa: S608  our words
    trials = sum(row["trials"] for row in holds)
    return Skips(trials=trials, lapsed=sum(row["trials"] for row in skipped) - trials)


def cells_still_stopped(folder: Path | str, cells: Iterable[CellCounts]) -> frozenset[CellCounts]:
    """Return those (correct, asked) of cells by which the rule in force stops them.

    In a folder without a sweep.yaml nothing speaks against any.

    Raises:
        ConfigError: the folder's sweep.yaml cannot be read.
    """
    different = set(cells)
    if not different or (sweep_file := kept_sweep_file(Path(folder))) is None:
        return frozenset(different)
    from asyncbench.config.sweep import stop_rule_in  # 0.2 s, which a folder without skips need not wait for

    return still_stopped(stop_rule_in(sweep_file), different)


def stopped_cells_in(views: FolderViews, skips: Skips) -> tuple[Sums, ...]:
    """Return the cells of a results folder that are stopped, given what `keep_skips` returned."""
    return tuple(views.rows(_STOPPED)) if skips.trials else ()


def lapsed_notes(lapsed: int) -> list[str]:
    """Return notes on recorded skips that no longer hold, if there are any."""
    note = (
        f"Earlier runs skipped {lapsed:,} trials that the present `stop_when` does not skip. They count as "
        "open; the next run asks them."
    )
    return [note] if lapsed else []


def stopped_note(cells: Sequence[Sums]) -> str:
    """Return a note on stopped cells for a reader of accuracies."""
    skipped = sum(cell["skipped"] for cell in cells)
    return (
        f"`stop_when` skipped {skipped:,} trials of {len(cells):,} cells. Numbers marked {STOPPED_MARK} "
        "include stopped cells: their interval is too narrow, and stopped cells weigh less than planned. "
        "The table of stopped cells has valid intervals."
    )


def stopped_sheet(cells: Sequence[Sums]) -> Sheet:
    """Return the table of stopped cells."""
    more = f", the first {MOST_SHOWN} of {len(cells):,} (--json has all)" if len(cells) > MOST_SHOWN else ""
    return Sheet.of(f"Stopped cells{more}", _STOPPED_COLUMNS, cells[:MOST_SHOWN], labels=3)


def _cell_name(cell: Sums) -> str:
    kind = (cell["condition"], f"{cell['suite']}/{cell['task']}", cell["variant"], cell["representation"])
    return " ".join([*filter(None, kind), *([] if cell["length"] is None else [str(cell["length"])])])


_STOPPED_COLUMNS: Final[Columns[Sums]] = {
    "model": lambda cell: cell["model"],
    "cell": _cell_name,
    "rule": lambda cell: cell["rule"],
    "planned": lambda cell: count(cell["trials"] + cell["skipped"]),
    "trials": lambda cell: count(cell["trials"]),
    "skipped": lambda cell: count(cell["skipped"]),
    "accuracy when stopped (always-valid 95 % CI)": lambda cell: percent(
        cell["correct"] / cell["asked"], (cell["low"], cell["high"])
    ),
}
