"""Check forecasts from a pilot: the recorded runs of llm_arithmetic, forecast from a few of their trials.

    python -m benchmarks.forecast [--golden FOLDER] [--pilots 5]

Of each run the first two trials of every task and depth are taken for known, as `plan --pilot 2` asks
them, and the rest is forecast; then the same with two trials at random, by as many seeds. Shown is how
often what the run used lies within the range of nine of ten, and how wide that is. Dollars are those that
the run recorded: their price is learnt from the pilot, too.
"""

import argparse
import os
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from asyncbench.planning.draws import DRAWS, Prompt, RemainingTrials, draws_of
from asyncbench.planning.finished import Measured, columns_of, seen_of
from asyncbench.planning.records import Range
from asyncbench.records import Cell
from asyncbench.suites.llm_arithmetic import SUITE, draft_arithmetic

Run = Mapping[Cell, Sequence[tuple[Measured, int]]]  # trials in order, and the characters of their questions
COLUMNS = (
    *("source_file", "variant", "depth", "lhs", "rhs", "correct", "prompt_tokens", "completion_tokens"),
    *("cost", "failed_to_get_reply"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedForecast:
    """A forecast of a run, beside the tokens and dollars that it used."""

    run: str
    tokens: Range
    tokens_used: int
    usd: Range
    usd_spent: float  # 0: none was recorded

    @property
    def width(self) -> float:
        """Of the range of tokens, as a share of their median."""
        return (self.tokens.p95 - self.tokens.p5) / self.tokens.p50


def recorded(golden: Path) -> dict[str, Run]:
    """Return the recorded runs, by file."""
    runs: dict[str, dict[Cell, list[tuple[Measured, int]]]] = defaultdict(lambda: defaultdict(list))
    for row in pq.read_table(golden / "llm_arithmetic" / "corpus.parquet", columns=list(COLUMNS)).to_pylist():
        cell = Cell(SUITE.name, row["variant"], "", "", row["depth"])
        runs[row["source_file"]][cell].append((_measured(row), _characters(row)))
    return dict(runs)


def _measured(row: Mapping[str, Any]) -> Measured:
    failed = bool(row["failed_to_get_reply"])
    return Measured(
        replied=not failed,
        input_tokens=None if failed else row["prompt_tokens"],
        output_tokens=None if failed else row["completion_tokens"],
        latency_s=None,
        cost_usd=row["cost"],
    )


def _characters(row: Mapping[str, Any]) -> int:
    made = draft_arithmetic(row["variant"], row["depth"], row["lhs"], row["rhs"], expected=row["correct"])
    return len(made.question)


def checked(
    name: str, run: Run, *, seed: int | None = None, of_a_cell: int = 2, draws: int = DRAWS
) -> CheckedForecast:
    """Forecast a run from a pilot: its first trials of each cell, or with a seed any."""
    rng = random.Random(f"{seed} {name}")  # noqa: S311  repeatable
    pilot: dict[Cell, list[Measured]] = {}
    sent: dict[Cell, float] = {}
    prompts = Counter[Prompt]()
    for cell, trials in run.items():
        places = range(len(trials))
        count = min(of_a_cell, len(trials))
        known = set(places[:count] if seed is None else rng.sample(places, count))
        pilot[cell] = [trials[i][0] for i in sorted(known)]
        sent[cell] = statistics.mean(trials[i][1] for i in known)
        prompts.update(Prompt(cell, trials[i][1]) for i in places if i not in known)
    seen = seen_of({cell: columns_of(trials) for cell, trials in pilot.items()})
    rest = RemainingTrials(
        seen=seen, prompts=prompts, sent=sent, rates=None, batch_rates=None, longest_reply=None
    )
    drawn = draws_of(rest, draws=draws, seed=name)
    every = [one for trials in run.values() for one, _ in trials]
    return CheckedForecast(
        run=name,
        tokens=Range.of(seen.used.output_tokens + one.output_tokens for one in drawn),
        tokens_used=sum(one.output_tokens or 0 for one in every),
        usd=Range.of((seen.used.cost_usd or 0) + (one.cost_usd or 0) for one in drawn),
        usd_spent=sum(one.cost_usd or 0 for one in every),
    )


def within(forecasts: Sequence[CheckedForecast]) -> tuple[int, int, int]:
    """Return in how many runs tokens were within the range, dollars were, and dollars were recorded."""
    tokens = sum(one.tokens.holds(one.tokens_used) for one in forecasts)
    priced = [one for one in forecasts if one.usd_spent > 0]
    return tokens, sum(one.usd.holds(one.usd_spent) for one in priced), len(priced)


def _line(one: CheckedForecast) -> str:
    usd = f"${one.usd.p5:,.4f} - ${one.usd.p95:,.4f}  ${one.usd_spent:,.4f}" if one.usd_spent else ""
    marks = ["" if one.tokens.holds(one.tokens_used) else "tokens"]
    marks += ["" if not one.usd_spent or one.usd.holds(one.usd_spent) else "dollars"]
    missed = f"  missed: {', '.join(filter(None, marks))}" if any(marks) else ""
    span = f"{one.tokens.p5:>10,.0f} - {one.tokens.p95:>10,.0f} {one.tokens_used:>10,}"
    return f"{one.run[:44]:<44} {span}  {one.width:>6.1%}  {usd}{missed}"


def _summed(label: str, forecasts: Sequence[CheckedForecast]) -> str:
    tokens, dollars, priced = within(forecasts)
    below = sum(one.tokens_used < one.tokens.p5 for one in forecasts)
    above = sum(one.tokens_used > one.tokens.p95 for one in forecasts)
    widths = [one.width for one in forecasts]
    off = statistics.median(abs(one.tokens.p50 / one.tokens_used - 1) for one in forecasts)
    return (
        f"{label}: tokens {tokens} of {len(forecasts)} ({below} used less, {above} more), "
        f"dollars {dollars} of {priced}; width {statistics.median(widths):.1%} (widest {max(widths):.0%}), "
        f"the median off by {off:.1%}"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="How well a pilot foretells a run.")
    beside = Path(__file__).resolve().parents[2] / "shared" / "golden"
    parser.add_argument("--golden", type=Path, default=Path(os.environ.get("ASYNCBENCH_GOLDEN", beside)))
    parser.add_argument("--pilots", type=int, default=5)
    options = parser.parse_args()
    runs = recorded(options.golden)
    first = [checked(name, run) for name, run in sorted(runs.items())]
    print("\n".join(map(_line, first)))
    print(_summed("the first two of each cell", first))
    every: list[CheckedForecast] = []
    for seed in range(options.pilots):
        forecasts = [checked(name, run, seed=seed) for name, run in sorted(runs.items())]
        print(_summed(f"two at random, seed {seed}", forecasts))
        every += forecasts
    if every:
        print(_summed("all of these", every))


if __name__ == "__main__":
    main()
