"""Measure how often a gate against a baseline is wrong, and how often it decides: simulated pairs of models.

    python -m benchmarks.gates [--seeds 1000] [--first-seed 1]

Each seed draws one pair of nights, and the rule of `compare --fail-if worse` judges them. A model that is as
good as the baseline should not be `worse`, and one that is worse by the margin should not pass. How often the
other losses are seen is the power.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from asyncbench.reports.comparison.baseline import SEED
from asyncbench.stats.noninferiority import PairedValues, Verdict, judge, relative_change
from asyncbench.stats.paired import bootstrap_difference

SPREAD = 0.3  # of the logarithm of a time: by problem, and once more by call


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Two models, and the gate between them."""

    figure: str  # accuracy, cost_usd or latency_p95_s
    problems: int
    loss: float  # of B: 0.02 is 2 points, or 2 %
    margin: float = 0.02
    differing: float = 0.1  # accuracy: the share of problems that one of the two alone solves
    repeats: int = 1  # accuracy: how often a problem is asked, always with the same answer


SITUATIONS = (
    *(Situation(figure="accuracy", problems=600, loss=loss) for loss in (0.0, 0.01, 0.02, 0.04, 0.06)),
    *(Situation(figure="accuracy", problems=600, differing=0.04, loss=loss) for loss in (0.0, 0.02, 0.04)),
    *(Situation(figure="accuracy", problems=200, repeats=3, loss=loss) for loss in (0.0, 0.02)),
    *(Situation(figure="accuracy", problems=2_000, loss=loss) for loss in (0.0, 0.02)),
    *(Situation(figure="cost_usd", problems=600, loss=loss, margin=0.1) for loss in (0.0, 0.1, 0.2)),
    *(Situation(figure="latency_p95_s", problems=600, loss=loss, margin=0.1) for loss in (0.0, 0.1, 0.2)),
)


def verdicts(situation: Situation, seeds: Iterable[int]) -> Iterator[Verdict]:
    """Yield what the gate says of the pair of nights of each seed."""
    for seed in seeds:
        random = np.random.default_rng(seed)
        if situation.figure == "accuracy":
            interval = _loss_of_accuracy(situation, random)
        else:
            interval = _growth(situation, random)
        yield judge(interval, situation.margin)


def _loss_of_accuracy(situation: Situation, random: np.random.Generator) -> tuple[float, float]:
    alone = [(situation.differing + sign * situation.loss) / 2 for sign in (1, -1)]
    only_a, only_b, _ = random.multinomial(situation.problems, [*alone, 1 - situation.differing]).tolist()
    times = situation.repeats
    kinds = {
        (times, times): only_a,
        (-times, times): only_b,
        (0, times): situation.problems - only_a - only_b,
    }
    return bootstrap_difference(kinds, seed=SEED)


def _growth(situation: Situation, random: np.random.Generator) -> tuple[float, float]:
    by_problem = random.lognormal(0, SPREAD, situation.problems)
    a, b = (by_problem * random.lognormal(0, SPREAD, situation.problems) for _ in range(2))
    values = PairedValues(
        a=a.tolist(), b=((1 + situation.loss) * b).tolist(), problems=range(situation.problems)
    )
    found = relative_change(values, 0.95 if situation.figure == "latency_p95_s" else None, seed=SEED)
    assert found is not None
    return found.interval


def main() -> None:
    """Print a table of situations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first-seed", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(f"seeds {seeds[0]} to {seeds[-1]}")
    print("| figure | problems | asked each | differ on | margin | true loss | worse | passed | undecided |")
    print("|---|---|---|---|---|---|---|---|---|")
    for situation in SITUATIONS:
        counts = Counter(verdicts(situation, seeds))
        shares = (f"{100 * counts[verdict] / len(seeds):.1f} %" for verdict in Verdict)
        differing = f"{situation.differing:.0%}" if situation.figure == "accuracy" else "-"
        cells = [situation.figure, f"{situation.problems:,}", str(situation.repeats), differing]
        cells += [f"{situation.margin:.0%}", f"{situation.loss:.0%}", *shares]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
