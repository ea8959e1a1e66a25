"""`python -m tests.docs.any_model`: the simulator, where a model of any name answers as `noisy` does."""

import sys

from asyncbench.simulator import answers, served
from asyncbench.simulator.__main__ import main


def answerer(model: str) -> answers.Answerer | None:
    """Return how the model of this name answers."""
    return answers.answerer(model) or answers.noisy


if __name__ == "__main__":
    setattr(served, "answerer", answerer)  # noqa: B010  its name there is its own import
    sys.exit(main(sys.argv[1:]))
