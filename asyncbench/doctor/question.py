"""The question that is put to every model, and a simulator that knows its answer."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from asyncbench.problems import write_drafts
from asyncbench.prompting import request_for
from asyncbench.records import Condition, Draft, Model, Problem, Request, Trial
from asyncbench.simulator.process import Simulator, running
from asyncbench.simulator.settings import Settings

DRAFT: Final = Draft(
    suite="custom",
    task="doctor",
    representation="integer",
    length=1,
    operands=("2", "2"),
    question="What is 2 + 2? Answer with the number alone.",
    expected="4",
    answer_type="integer",
)
_PROBLEM: Final = Problem(
    problem_id="doctor", **{name: getattr(DRAFT, name) for name in Draft.__dataclass_fields__}
)


def question_for(model: Model) -> Request:
    """Return the question as a request to a model; no trial of any sweep."""
    return request_for(
        Trial(
            trial_id="doctor",
            run="doctor",
            sweep="doctor",
            problem_set="doctor",
            problem=_PROBLEM,
            model=model,
            condition=Condition(),
        )
    )


@contextmanager
def knowing(**settings: float) -> Iterator[Simulator]:
    """Run a simulator that can answer the question, with settings of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "doctor.parquet"
        write_drafts([DRAFT], path)
        with running(Settings(problems=(path,), **settings)) as simulator:  # type: ignore[arg-type]  # checked by Settings
            yield simulator
