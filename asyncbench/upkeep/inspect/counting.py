"""What the samples of a log amount to, counted as Inspect counts: by sample first, then over all samples."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from math import fsum, sqrt
from typing import Final

from asyncbench.records import Outcome
from asyncbench.upkeep.inspect.samples import RIGHT, Json, Row, usage_of

METRICS: Final = ("accuracy", "stderr")  # those that their scorers have, unless they say otherwise


class GraderCounts:
    """What one grader found: by problem, how many answers it graded and how many were right."""

    def __init__(self) -> None:
        self.graded = Counter[str]()
        self.right = Counter[str]()

    def means(self) -> Iterator[tuple[str, float]]:
        """Yield each problem with the mean of its answers: what their epochs are reduced to."""
        for problem_id, answers in self.graded.items():
            yield problem_id, self.right[problem_id] / answers

    def metrics(self) -> Json:
        """Return accuracy and standard error over problems, as their metrics of these names define them."""
        n = len(self.graded)
        mean = fsum(value for _, value in self.means()) / n
        squares = fsum((value - mean) ** 2 for _, value in self.means())
        values = (mean, sqrt(squares / (n - 1) / n) if n > 1 else 0.0)
        return {
            name: {"name": name, "value": value, "params": {}}
            for name, value in zip(METRICS, values, strict=True)
        }


class LogCounts:
    """The sums of a log. It holds numbers by problem, and no text."""

    def __init__(self) -> None:
        self.trials = 0
        self.outcomes = Counter[str]()
        self.graders = defaultdict[str, GraderCounts](GraderCounts)
        self.problem_sets: dict[str, None] = {}  # in the order met
        self.tokens = Counter[str]()
        self.tokens_untold = 0  # replies without a number of tokens
        self.started_at: datetime | None = None  # the first call known of
        self.ended_at: datetime | None = None
        self._epochs: dict[str, int] = {}  # by problem: a bit for each of its epochs
        self._costs, self._cost_untold = array("d"), 0

    @property
    def problem_ids(self) -> list[str]:
        """The problems, in the order met."""
        return list(self._epochs)

    @property
    def epochs(self) -> int:
        """How often a problem was asked, at most."""
        return max(held.bit_length() for held in self._epochs.values())

    @property
    def cost_usd(self) -> float | None:
        """What all calls cost; None: that of some trial is not known."""
        return None if self._cost_untold else fsum(self._costs)

    def epoch_of(self, row: Row) -> int:
        """Return the number of a trial among those of its problem, from 1.

        It is its repeat, unless a folder holds the same one twice: then the alias once meant something else.
        """
        held, epoch = self._epochs.get(row["problem_id"], 0), row["repeat"] + 1
        while held >> (epoch - 1) & 1:
            epoch += 1
        self._epochs[row["problem_id"]] = held | 1 << (epoch - 1)
        return int(epoch)

    def add(self, row: Row, sample: Json) -> None:
        """Count a sample, made of this row."""
        self.trials += 1
        self.outcomes[row["outcome"]] += 1
        self.problem_sets[row["problem_set"]] = None
        for grader, score in sample["scores"].items():
            counts = self.graders[grader]
            counts.graded[row["problem_id"]] += 1
            counts.right[row["problem_id"]] += score["value"] == RIGHT
        usage = usage_of(row)
        self.tokens.update(usage or {})
        self.tokens_untold += usage is None and row["outcome"] != Outcome.FAILED
        if (cost := row["cost_usd"]) is None:
            self._cost_untold += 1
        else:
            self._costs.append(cost)
        ended = row["finished_at"]
        began = ended - timedelta(seconds=row["latency_s"] or 0)
        self.started_at = min(began, self.started_at or began)
        self.ended_at = max(ended, self.ended_at or ended)
