"""Measure the replies graded a second on one core, by suite: all of its graders together.

    python -m benchmarks.grade [--replies 20000] [--rounds 5]

Replies are those of simulated models that are right, wrong by a slip, silent or talkative. The best round
counts, in CPU seconds: what else the machine does matters little.
"""

import argparse
import random
import time
from collections.abc import Iterator, Mapping
from itertools import islice

from asyncbench.problems.schema import identified
from asyncbench.records import Problem, Reply
from asyncbench.simulator.answers import mistaken
from asyncbench.suites.table import SUITES

PARAMETERS: Mapping[str, Mapping[str, object]] = {
    "nupa": {"per_length": 20},
    "llm_arithmetic": {"trials": 300},
}
STYLES = {"nupa": ("chat", "completion", "rules"), "llm_arithmetic": ("chat",)}
FORMS = (
    "{}",
    "The answer is {}",
    "The answer is {}.",
    "**{}**",
    "So the answer is {}",
    " {}\n",
    "It is {}, I think.",
)
EMPTY, WRONG = 0.02, 0.4  # shares of the replies


def replies(suite: str, count: int) -> list[tuple[Problem, Reply]]:
    """Return so many problems of a suite, spread over all of its cells, each with a reply."""
    known, draw = SUITES[suite], random.Random(suite)  # noqa: S311  seeded: the same replies each time
    assert known.generate is not None  # both have a generator
    drafts = known.generate(1, known.parsed(PARAMETERS[suite], place="benchmark"))
    return [(problem, Reply(text=_text(problem, draw))) for problem in islice(identified(drafts), count)]


def _text(problem: Problem, draw: random.Random) -> str:
    if draw.random() < EMPTY:
        return ""
    wrong = draw.random() < WRONG
    return draw.choice(FORMS).format(mistaken(problem.expected, draw) if wrong else problem.expected)


def seconds(suite: str, style: str, replied: list[tuple[Problem, Reply]]) -> float:
    """Return the CPU seconds that grading takes once."""
    grade = SUITES[suite].grade
    started = time.process_time()
    for problem, reply in replied:
        grade(problem, reply, style)
    return time.process_time() - started


def measured(count: int, rounds: int) -> Iterator[str]:
    """Yield a line for each suite and style."""
    for suite, styles in STYLES.items():
        replied = replies(suite, count)
        mean = sum(len(reply.text) for _, reply in replied) / len(replied)
        for style in styles:
            best = min(seconds(suite, style, replied) for _ in range(rounds))
            graders = "+".join(SUITES[suite].graders)
            yield (
                f"{suite:15} {style:11} {graders:22} {len(replied) / best:>9,.0f} replies/s  "
                f"({len(replied):,} replies of {mean:.0f} characters)"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--replies", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for line in measured(options.replies, options.rounds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
