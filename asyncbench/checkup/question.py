"""The question that is put to every model, and a simulator that knows its answer."""

from contextlib import AbstractContextManager
from typing import Final

from asyncbench.prompting import request_for
from asyncbench.records import Condition, Model, Problem, Request, Trial
from asyncbench.simulator import DOCTORS_ANSWER, DOCTORS_QUESTION, Settings, Simulator, running

_PROBLEM: Final = Problem(
    problem_id="doctor",
    suite="custom",
    task="doctor",
    representation="integer",
    length=1,
    operands=("2", "2"),
    question=DOCTORS_QUESTION,
    expected=DOCTORS_ANSWER,
    answer_type="integer",
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


def knowing(**settings: float) -> AbstractContextManager[Simulator]:
    """Return a simulator that runs for as long as a block lasts: every one knows the question."""
    return running(Settings(**settings))  # type: ignore[arg-type]  # checked by Settings
