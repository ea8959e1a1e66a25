"""What is drawn from a seed is played, held to its rules, and told with the command that plays it again."""

import os
import traceback
from collections.abc import Callable, Iterable
from typing import TypeVar

P = TypeVar("P")
SEED = int(os.environ.get("ASYNCBENCH_SEED", "0"))  # that a test plays which plays one


def broken(seed: int, play: Callable[[int], P], rules: Iterable[Callable[[P], None]], test: str) -> list[str]:
    """Play a seed.

    Args:
        seed: that of the scenario.
        play: draws it, and plays it to its end.
        rules: each raises AssertionError where it does not hold.
        test: the test that plays the one seed which `ASYNCBENCH_SEED` names.

    Returns:
        What did not hold; then how to play it again.
    """
    try:
        found = violated(rules, play(seed))
    except Exception:  # whatever it is: told with the seed, and the next one is played
        found = ["it did not come to its end", traceback.format_exc()]
    told = [f"seed {seed}: {line}" for line in found]
    return [*told, f"ASYNCBENCH_SEED={seed} python -m pytest {test}"] if told else []


def violated(rules: Iterable[Callable[[P], None]], played: P) -> list[str]:
    """Return which rules did not hold, and why."""
    found = []
    for rule in rules:
        try:
            rule(played)
        except AssertionError as error:
            found.append(f"{rule.__name__}: {error}")
    return found


def hold(broken: Callable[[int], list[str]], seeds: Iterable[int]) -> None:
    """Raise AssertionError with all that does not hold; a soak takes long: each is told when it happens."""
    found = []
    for seed in seeds:
        for line in broken(seed):
            found.append(line)
            print(line, flush=True)
    assert not found, "\n" + "\n".join(found)
