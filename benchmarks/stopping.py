"""Measure the coverage and the savings of stopping rules: simulated answers with known accuracies.

    python -m benchmarks.stopping [--golden FOLDER] [--sequences 2000] [--looks 1000] [--problems 200]

First, how often the always-valid interval ever leaves out the true accuracy, looked at after each of many
answers: at most one sequence in twenty may. The interval for a fixed number of trials (Wilson) stands
beside it. Then how often it is wrong where a rule has stopped. Last, what the rules save on sweeps like
the recorded ones of llm_arithmetic: every cell (run, task, depth) has as many problems as asked for, in
balanced order, with calls in flight, and an accuracy drawn from what its ten recorded answers leave open
(Beta(right + 1/2, wrong + 1/2)); then the accuracy that was recorded, which takes ten right answers of
ten for a certainty. A call costs what the calls of its cell cost on average when they were recorded.
"""

import argparse
import math
import os
import random
import statistics
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from asyncbench.engine.stopping import next_check, stop_at
from asyncbench.records import Stop, StopWhen
from asyncbench.stats.always_valid import LEVEL, evidence
from asyncbench.stats.proportions import Proportion

SHARES = (0.0, 0.02, 0.1, 0.3, 0.5, 0.9, 1.0)
IN_FLIGHT = 32
RULES = (
    StopWhen(saturated=0.05),
    StopWhen(saturated=0.02),
    StopWhen(ci_width=0.1),
    StopWhen(ci_width=0.2),
    StopWhen(ci_width=0.1, saturated=0.05),
)
STOPPING_OFTEN = (StopWhen(ci_width=0.2), StopWhen(ci_width=0.3, saturated=0.05))  # where most shares stop

Answers = Sequence[bool]


class Cell(NamedTuple):
    """The answers that were recorded of a task and depth."""

    right: int
    wrong: int
    usd: float  # of a call, on average; 0: it was free, or nobody knows


def answers(rng: random.Random, share: float, count: int) -> Answers:
    """Return simulated answers of a cell."""
    return [rng.random() < share for _ in range(count)]


def ever_excluded(share: float, seen: Answers) -> bool:
    """Whether the interval leaves out the true share after any of the answers."""
    correct, most = 0, math.log(1 / (1 - LEVEL))
    for trials, right in enumerate(seen, 1):
        correct += right
        if evidence(share, correct, trials) >= most:
            return True
    return False


def ever_excluded_by_fixed(share: float, seen: Answers) -> bool:
    """The same of the interval for a fixed number of trials."""
    correct = 0
    for trials, right in enumerate(seen, 1):
        correct += right
        low, high = Proportion(successes=correct, trials=trials).interval or (0.0, 1.0)
        if not low <= share <= high:
            return True
    return False


def stopped(when: StopWhen, seen: Answers) -> Stop | None:
    """Return where a rule stops, looked at as a run does; None: nowhere."""
    correct, check_at = 0, next_check(when, 0, 0)
    for trials, right in enumerate(seen, 1):
        correct += right
        if trials >= check_at:
            if (stop := stop_at(when, correct, trials)) is not None:
                return stop
            check_at = next_check(when, correct, trials)
    return None


def misses(when: StopWhen, share: float, *, sequences: int, looks: int, seed: int = 0) -> tuple[int, int]:
    """Return how many sequences a rule stops, and in how many of them the interval leaves out the truth."""
    rng = random.Random(f"{seed} {share} {when}")  # noqa: S311  repeatable
    stops = [stopped(when, answers(rng, share, looks)) for _ in range(sequences)]
    reached = [one for one in stops if one is not None]
    return len(reached), sum(not one.low <= share <= one.high for one in reached)


# ── sweeps like the recorded ones ────────────────────────────────────────────────────────────


def recorded(golden: Path) -> Mapping[str, Sequence[Cell]]:
    """Return every task and depth of the recorded runs, by file.

    Calls that failed tell nothing; a cell that has no others is left out.
    """
    cells: dict[str, dict[tuple[str, int], list[tuple[bool, float]]]] = defaultdict(lambda: defaultdict(list))
    columns = ["source_file", "variant", "depth", "classification", "failed_to_get_reply", "cost"]
    for row in pq.read_table(golden / "llm_arithmetic" / "corpus.parquet", columns=columns).to_pylist():
        if not row["failed_to_get_reply"]:
            cell = cells[row["source_file"]][row["variant"], row["depth"]]
            cell.append((row["classification"] == "Correct", row["cost"] or 0.0))
    return {name: [_cell(calls) for calls in of_run.values()] for name, of_run in cells.items()}


def _cell(calls: Sequence[tuple[bool, float]]) -> Cell:
    right = sum(is_right for is_right, _ in calls)
    return Cell(right, len(calls) - right, statistics.fmean(usd for _, usd in calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a rule saved in one simulated sweep."""

    planned: int
    calls: int
    planned_usd: float
    usd: float
    cells: int
    stops: Sequence[tuple[float, Stop]]  # the true accuracy of each cell that was stopped, and its stop
    off: Sequence[float]  # of each such cell: its accuracy as asked, less that of all its problems

    @property
    def share(self) -> float:
        """Of the planned calls."""
        return 1 - self.calls / self.planned


def sweep(
    cells: Sequence[Cell], when: StopWhen, *, problems: int, seed: str, as_recorded: bool = False
) -> Saved:
    """Simulate one model's sweep under a rule."""
    rng = random.Random(seed)  # noqa: S311  repeatable
    shares = [
        right / (right + wrong) if as_recorded else rng.betavariate(right + 0.5, wrong + 0.5)
        for right, wrong, _ in cells
    ]
    every = [answers(rng, share, problems) for share in shares]
    counts, stops = _simulate(every, when)
    return Saved(
        planned=problems * len(cells),
        calls=sum(counts),
        planned_usd=problems * math.fsum(cell.usd for cell in cells),
        usd=math.fsum(count * cell.usd for count, cell in zip(counts, cells, strict=True)),
        cells=len(cells),
        stops=[(shares[i], stop) for i, stop in stops.items()],
        off=[statistics.mean(every[i][: counts[i]]) - statistics.mean(every[i]) for i in stops],
    )


def _simulate(every: Sequence[Answers], when: StopWhen) -> tuple[list[int], dict[int, Stop]]:
    """Ask row by row, so many at a time; return the problems asked of each cell, and where cells stopped."""
    counts, looks = [0] * len(every), [next_check(when, 0, 0)] * len(every)
    closed, stops, flying = [(0, 0)] * len(every), dict[int, Stop](), deque[int]()

    def land() -> None:
        i = flying.popleft()
        count, correct = closed[i][0] + 1, closed[i][1] + every[i][closed[i][0]]
        closed[i] = count, correct
        if i not in stops and count >= looks[i]:
            looks[i] = next_check(when, correct, count)
            if (stop := stop_at(when, correct, count)) is not None:
                stops[i] = stop

    for row in range(len(every[0])):
        for i in range(len(every)):
            if i not in stops and counts[i] == row:
                counts[i] += 1
                flying.append(i)
            if len(flying) >= IN_FLIGHT:
                land()
    while flying:
        land()
    return counts, stops


# ── the figures ──────────────────────────────────────────────────────────────────────────────


def _coverage(sequences: int, looks: int) -> Iterator[str]:
    yield f"{sequences:,} sequences of {looks:,} answers: how many intervals ever left out the truth"
    for share in SHARES:
        rng = random.Random(f"coverage {share}")  # noqa: S311  repeatable
        drawn = [answers(rng, share, looks) for _ in range(sequences)]
        ours = sum(ever_excluded(share, one) for one in drawn) / sequences
        few = drawn[: sequences // 10]
        fixed = sum(ever_excluded_by_fixed(share, one) for one in few) / len(few)
        yield f"  accuracy {share:<5g} always-valid {ours:6.2%}   for a fixed number {fixed:6.1%}"


def _stops(sequences: int, looks: int) -> Iterator[str]:
    for when in STOPPING_OFTEN:
        yield f"stopped by {_named(when)}: sequences stopped, and of them the intervals without the truth"
        for share in SHARES:
            count, wrong = misses(when, share, sequences=sequences, looks=looks)
            part = f"{wrong / count:6.2%}" if count else "-"
            yield f"  accuracy {share:<5g} {count:>6,} {part}"


def _savings(
    runs: Mapping[str, Sequence[Cell]], problems: int, *, as_recorded: bool = False
) -> Iterator[str]:
    cells = sum(map(len, runs.values()))
    kind = "accuracies as recorded" if as_recorded else "accuracies drawn"
    yield f"{len(runs)} sweeps, {cells:,} cells of {problems} problems, {IN_FLIGHT} in flight, {kind}"
    for when in RULES:
        results = [
            sweep(one, when, problems=problems, seed=name, as_recorded=as_recorded)
            for name, one in sorted(runs.items())
        ]
        saved = 1 - sum(one.calls for one in results) / sum(one.planned for one in results)
        saved_usd = 1 - sum(one.usd for one in results) / sum(one.planned_usd for one in results)
        shares = sorted(one.share for one in results)
        stops = [stop for one in results for stop in one.stops]
        wrong = sum(not stop.low <= share <= stop.high for share, stop in stops)
        off = [abs(one) for run in results for one in run.off]
        yield (
            f"  {_named(when):<32} calls saved {saved:5.1%} (by run {shares[0]:.0%} to {shares[-1]:.0%}), "
            f"dollars saved {saved_usd:5.1%}, "
            f"cells stopped {len(stops) / cells:5.1%}; of these, intervals without the truth "
            f"{wrong / max(1, len(stops)):.2%}, accuracy off by {statistics.fmean(off or [0]):.2%} (mean)"
        )


def _named(when: StopWhen) -> str:
    limits = {"ci_width": when.ci_width, "saturated": when.saturated}
    return ", ".join(f"{name}: {value:g}" for name, value in limits.items() if value is not None)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="What stopping rules keep and what they save.")
    beside = Path(__file__).resolve().parents[2] / "shared" / "golden"
    parser.add_argument("--golden", type=Path, default=Path(os.environ.get("ASYNCBENCH_GOLDEN", beside)))
    parser.add_argument("--sequences", type=int, default=2_000)
    parser.add_argument("--looks", type=int, default=1_000)
    parser.add_argument("--problems", type=int, default=200)
    options = parser.parse_args()
    for line in _coverage(options.sequences, options.looks):
        print(line, flush=True)
    for line in _stops(options.sequences, options.looks):
        print(line, flush=True)
    runs = recorded(options.golden)
    for problems in (options.problems, 3 * options.problems):
        for as_recorded in (False, True):
            for line in _savings(runs, problems, as_recorded=as_recorded):
                print(line, flush=True)


if __name__ == "__main__":
    main()
