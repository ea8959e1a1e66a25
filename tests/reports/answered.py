"""Results folders in which everybody's outcome on every problem is given: what rankings are made of."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from asyncbench.problems.making import write_problems
from asyncbench.problems.schema import identified
from asyncbench.records import Condition, Draft, Ended, Model, Outcome, Problem, Reply, Result, Trial, Usage
from asyncbench.store.folder import Store
from tests.store import made

OUTCOMES = {
    "+": Outcome.CORRECT,
    "-": Outcome.WRONG,
    "?": Outcome.NO_ANSWER,
    "t": Outcome.TRUNCATED,
    "x": Outcome.FAILED,
}

# suite, outcome → what the suite itself calls it
_CLASSES = {
    ("llm_arithmetic", Outcome.CORRECT): "Correct",
    ("llm_arithmetic", Outcome.WRONG): "Deviate",
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What one model was asked under a condition: an outcome for each problem, `.` for none."""

    model: str
    outcomes: str
    suite: str = "nupa"
    task: str = "add"
    run: str = "night"
    condition: str = "plain"
    effort: str | None = None
    grader: str = "number"
    repeat: int = 0
    first: int = 0  # number of the first problem
    answer: str | None = None  # instead of a wrong number
    written: str = ""  # after a right number: another way to write it
    cost_usd: float | None = 0.25
    provider: str = "openai"
    model_id: str = "m"
    temperature: float | None = None
    batch: str | None = None  # the id of the batch that all of it was in


def problem(n: int, *, suite: str = "nupa", task: str = "add", question: str | None = None) -> Problem:
    draft = Draft(
        suite=suite,
        task=task,
        representation="integer",
        length=1 + n // 10,
        operands=("100", str(n)),
        question=question or f"What is 100 + {n}?",
        expected=str(100 + n),
        answer_type="integer",
    )
    (found,) = identified([draft])
    return found


def folder_of(
    folder: Path,
    answers: Iterable[Asked],
    *,
    planned: dict[str, object] | None = None,
    questions: dict[int, str] | None = None,
    sweep: str = "s",
) -> Path:
    """Write a results folder, its problems with it; `questions` replace those of some problems."""
    asked, number = dict[str, Problem](), 0
    with Store.open(folder, sweep=sweep) as store:
        for one in answers:
            for trial in _trials(one, questions or {}):
                asked[trial.problem.problem_id] = trial.problem
                trial, number = replace(trial, trial_id=made.trial_id(number)), number + 1
                made.keep(store, *_events(one, trial))
        store.write_manifest({"runs": {"night": {"planned": planned or {}}}})
    (folder / "problems").mkdir(exist_ok=True)
    write_problems(asked.values(), folder / "problems" / "s.parquet")
    return folder


def _trials(one: Asked, questions: dict[int, str]) -> Iterator[Trial]:
    for n, mark in enumerate(one.outcomes, one.first):
        if mark != ".":
            yield Trial(
                trial_id=mark,
                run=one.run,
                sweep="s",
                problem_set="s",
                problem=problem(n, suite=one.suite, task=one.task, question=questions.get(n)),
                model=Model(
                    alias=one.model,
                    provider=one.provider,
                    model_id=one.model_id,
                    api="chat",
                    effort=one.effort,
                    temperature=one.temperature,
                ),
                condition=Condition(name=one.condition),
                repeat=one.repeat,
            )


def _events(one: Asked, trial: Trial) -> Iterator[Ended | Result]:
    outcome = OUTCOMES[one.outcomes[int(trial.problem.operands[1]) - one.first]]
    answer = _answer(one, trial.problem, outcome)
    reply = None if outcome is Outcome.FAILED else Reply(text=answer or "", usage=Usage(output_tokens=10))
    ended = made.ended(trial, reply, cost_usd=one.cost_usd)
    grade = made.grade(answer, outcome, grader=one.grader)
    grade = replace(grade, classification=_CLASSES.get((one.suite, outcome)))
    closed = made.result(trial, reply, cost_usd=one.cost_usd)
    if one.batch is not None:
        ended = made.in_batch(ended, one.batch)
        closed = replace(closed, queued_s=None, latency_s=None)
    yield ended
    yield replace(closed, grades=(replace(grade, format_ok=outcome is Outcome.CORRECT),))


def _answer(one: Asked, problem: Problem, outcome: Outcome) -> str | None:
    if outcome is Outcome.CORRECT:
        return problem.expected + one.written
    return (one.answer or problem.expected + "1") if outcome is Outcome.WRONG else None
