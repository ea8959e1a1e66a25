"""The cost of right answers: share in the right form, dollars, tokens, and models that none dominates."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import pyarrow as pa

from asyncbench.analysis.entrants import Entrant
from asyncbench.records import Outcome
from asyncbench.stats.paired import undominated
from asyncbench.stats.proportions import Proportion
from asyncbench.store.schema import CELL, ENTRANT
from asyncbench.tables.numbers import per_correct

_WHAT: Final = tuple(name for name in CELL if name not in ENTRANT)
_OUTCOMES: Final = tuple(outcome.value for outcome in Outcome)
_SUMMED: Final = (
    *("trials", *_OUTCOMES, "priced", "priced_correct", "reasoning_known", "known_tokens"),
    *("format_ok", "format_known", "cost_usd", "reasoning_tokens", "output_tokens", "independent"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The figures of some trials."""

    of: tuple[str, ...]  # whose they are: values of the columns by which they are told apart
    outcomes: Mapping[str, int]  # trials by outcome
    repeats: float  # times that each problem was asked, in the mean
    format_ok: Proportion  # of the replies whose form the headline grader judged
    cost_usd: float | None  # of the priced trials; None: of none
    all_priced: bool  # else `cost_usd` is less than was spent
    cost_per_correct_usd: float | None  # of the priced trials, wrong ones paid as well; None: none is right
    cost_per_trial_usd: float | None  # mean of the priced
    reasoning_per_trial: float | None  # tokens, mean of the trials where they are told
    output_per_trial: float | None  # tokens, the same; reasoning is a part of them

    @property
    def accuracy(self) -> Proportion:
        """Correct of all trials."""
        return Proportion(
            successes=self.outcomes.get(Outcome.CORRECT, 0),
            trials=sum(self.outcomes.values()),
            repeats=self.repeats,
        )

    @property
    def replied(self) -> int:
        """How many trials have a reply."""
        return self.accuracy.trials - self.outcomes.get(Outcome.FAILED, 0)

    @property
    def asked(self) -> Entrant:
        """Who was asked; the figures are by `ENTRANT`, or by more."""
        run, model, condition = self.of[: len(ENTRANT)]
        return run, model, condition

    def has_place(self, spent: str) -> bool:
        """Whether it can stand on a frontier: it replied, and what it spent is known."""
        return self.replied > 0 and getattr(self, spent) is not None


def worth_of(cells: pa.Table, by: Sequence[str]) -> tuple[Worth, ...]:
    """Return the figures by some columns of cells, in the order of their values.

    Args:
        cells: rows of the view `cells`.
        by: the columns, e.g. `GROUP` or `ENTRANT`.
    """
    sums = cells.group_by(list(by), use_threads=False).aggregate([(name, "sum") for name in _SUMMED])
    rows = sums.sort_by([(name, "ascending") for name in by]).to_pylist()
    return tuple(_worth(tuple(row[name] for name in by), row) for row in rows)


def _worth(of: tuple[str, ...], row: Mapping[str, int]) -> Worth:
    sums = {name: row[f"{name}_sum"] or 0 for name in _SUMMED}
    cost = float(sums["cost_usd"]) if sums["priced"] else None
    repeats = sums["trials"] / sums["independent"] if sums["independent"] else 1.0
    return Worth(
        of=of,
        outcomes={name: sums[name] for name in _OUTCOMES},
        repeats=repeats,
        format_ok=Proportion(successes=sums["format_ok"], trials=sums["format_known"], repeats=repeats),
        cost_usd=cost,
        all_priced=sums["priced"] == sums["trials"],
        cost_per_correct_usd=per_correct(cost, sums["priced_correct"]),
        cost_per_trial_usd=_mean(sums["cost_usd"], sums["priced"]),
        reasoning_per_trial=_mean(sums["reasoning_tokens"], sums["reasoning_known"]),
        output_per_trial=_mean(sums["output_tokens"], sums["known_tokens"]),
    )


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def asked_alike(cells: pa.Table) -> tuple[frozenset[Entrant], ...]:
    """Return who can be compared with whom: those who were asked the same tasks and lengths, together.

    Args:
        cells: rows of the view `cells`.
    """
    tasks_of = defaultdict[Entrant, set[tuple[object, ...]]](set)
    for row in cells.select(list(CELL)).to_pylist():
        tasks_of[row["run"], row["model"], row["condition"]].add(tuple(row[name] for name in _WHAT))
    alike = defaultdict[frozenset[tuple[object, ...]], set[Entrant]](set)
    for entrant, tasks in tasks_of.items():
        alike[frozenset(tasks)].add(entrant)
    return tuple(map(frozenset, alike.values()))


def best(worths: Iterable[Worth], spent: str, alike: Iterable[Collection[Entrant]]) -> dict[Entrant, bool]:
    """Return who is dominated by nobody that was asked the same; who has nobody to compare with is left out.

    Args:
        worths, spent: as `frontier` takes them.
        alike: who was asked the same, as `asked_alike` returns it.
    """
    known, unbeaten = list(worths), dict[Entrant, bool]()
    for comparable in alike:
        compared = [worth for worth in known if worth.asked in comparable and worth.has_place(spent)]
        if len(compared) > 1:
            undominated = frontier(compared, spent)
            unbeaten |= {worth.asked: worth.asked in undominated for worth in compared}
    return unbeaten


def frontier(worths: Iterable[Worth], spent: str) -> set[Entrant]:
    """Return who is dominated by nobody: no other is as accurate for as little, and better in one of the two.

    Args:
        worths: by `ENTRANT`; who has no reply is left out.
        spent: cost_per_trial_usd, reasoning_per_trial or output_per_trial; who has none is left out.
    """
    known = [worth for worth in worths if worth.has_place(spent)]
    ahead = undominated([(getattr(worth, spent), worth.accuracy.share or 0.0) for worth in known])
    return {worth.asked for worth in compress(known, ahead)}
