"""Results folders as a night leaves them: models of unlike skill, replies in words, errors of theirs.

Other than in `benchmarks.rows`, whose rows only have to be many, every reply is graded, accuracy falls with
length, some trials fail, are cut or refused, and some calls are refused first. Made up from a seed.
"""

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from math import exp
from pathlib import Path
from typing import Final

import yaml

from asyncbench import generate
from asyncbench.config.sweep import as_mapping
from asyncbench.planning.trials import planned_tasks, trial_sources
from asyncbench.problems.opening import open_set
from asyncbench.records import Grade, Problem, Reply
from asyncbench.records.waits import REASONS
from asyncbench.store.folder import Store
from asyncbench.store.holdings import list_of
from asyncbench.store.manifest import write_manifest
from asyncbench.store.schema import ATTEMPTS, GRADES, LANES, LIMITS, TRIALS
from asyncbench.suites.requests import TrialIds
from asyncbench.suites.table import SUITES, grade
from benchmarks.rows import AT, CELLS, Values, keep, of_attempts, of_trials, sweep_of, table

HOURS: Final = 8
RETRIED: Final = 0.02  # of the trials: their first call met a 429
FAILED, REFUSED, CUT = 0.002, 0.003, 0.004  # of the trials
HARDER: Final = {"add": 0.0, "sub": 0.5, "mul": 4.0, "div": 3.0}  # digits fewer that a model masters
IN_WORDS: Final = 0.8  # of the replies; the others are a bare number
WORDS: Final = (
    "Working from the last digit to the first and carrying where it is needed, the result comes to {}",
    "I line the two numbers up, go through them place by place, and check the sum again. Answer: {}",
    "First the leading digits for the size of it, then every place in turn with its carry.\n\n**{}**",
)
REFUSAL: Final = "I am sorry, but I would rather not work this out by hand; please use a calculator for it."


def make_night(
    folder: Path, *, trials: int, models: int = 20, seed: int = 0, names: Sequence[str] = ()
) -> int:
    """Make a results folder of about so many trials, all four tables; return how many it holds.

    `names`: aliases of the models, else `model-00` and so on.
    """
    Store.open(folder, sweep=folder.name).close()
    path = folder / "problems" / f"{folder.name}.parquet"
    made = generate("llm_arithmetic", path, seed=seed, trials=max(1, round(trials / models / CELLS)))
    problems, sweep = list(open_set(path).read()), sweep_of(folder, models=models, names=names)
    for n, model in enumerate(sweep.models):
        ids = TrialIds(model, sweep.conditions[0])
        _add_model(folder, model.alias, problems, ids, _Draw(f"{seed}/{n}", skill=4 + 10 * n / models))
    plan = planned_tasks(sweep, sweep.models[0].alias, trial_sources([made]))
    manifest = {
        "schema_version": 1,
        "sweep": folder.name,
        "created_at": AT.isoformat(),
        "simulated": True,
        "holds": {"parts": list_of(folder), "journal": []},
        "runs": {folder.name: {"planned": {model.alias: plan for model in sweep.models}}},
        "problem_sets": {path.name: {"name": path.stem, "rows": made.rows, "digest": made.digest, "seed": 0}},
    }
    write_manifest(folder, manifest)
    (folder / "sweep.yaml").write_text(yaml.safe_dump(as_mapping(sweep)))
    return models * made.rows


class _Draw:
    """What a model of some skill says: half of the sums are right at `skill` digits."""

    def __init__(self, seed: str, *, skill: float) -> None:
        self.random = random.Random(seed)  # noqa: S311  repeatable, no secret
        self._skill = skill

    def reply(self, problem: Problem) -> Reply | None:
        """Return a reply, or None for a trial that failed."""
        what = self.random.random()
        if what < FAILED:
            return None
        if what < FAILED + REFUSED:
            return Reply(text=REFUSAL, finish_reason="content_filter")
        if what < FAILED + REFUSED + CUT:
            return Reply(text=WORDS[2].partition("\n")[0], finish_reason="length")
        masters = self._skill - HARDER[problem.task.partition("_")[2]]
        right = self.random.random() < 1 / (1 + exp((problem.length or 0) - masters))
        answer = problem.expected if right else self._wrong(problem.expected)
        words = self.random.choice(WORDS) if self.random.random() < IN_WORDS else "{}"
        return Reply(text=words.format(answer), finish_reason="stop")

    def _wrong(self, expected: str) -> str:
        """Return an answer that is wrong in one of the ways of models."""
        i = self.random.randrange(len(expected))
        return self.random.choice(SLIPS)(expected, i, str(self.random.randrange(10)))


SLIPS: Final[Sequence[Callable[[str, int, str], str]]] = (
    lambda text, i, digit: f"{text[:i]}{digit}{text[i + 1 :]}" if text[i].isdigit() else f"{text}{digit}",
    lambda text, i, digit: text[:i] + text[i + 1 :] or digit,  # dropped
    lambda text, i, _: text[: i + 1] + text[i:] if text[i].isdigit() else text[1:] + "0",  # doubled
    lambda text, i, _: text[:i] + text[i : i + 2][::-1] + text[i + 2 :],  # swapped
    lambda text, _, digit: text[: len(text) // 2] + digit * (len(text) - len(text) // 2),
    lambda text, _, __: text.removeprefix("-") if text.startswith("-") else f"-{text}",
)


def _add_model(folder: Path, model: str, problems: Sequence[Problem], own: TrialIds, draw: _Draw) -> None:
    version = SUITES["llm_arithmetic"].prompt_version
    ids = [own.make(one.problem_id, prompt_version=version, repeat=0) for one in problems]
    replies = [draw.reply(one) for one in problems]
    grades = [grade(*pair) for pair in zip(problems, replies, strict=True)]
    values = _of_trials(folder.name, model, problems, ids, replies, [each[0] for each in grades], draw)
    keep(folder, "trials", model, table(TRIALS, values, len(ids)))
    every = [one for each in grades for one in each]
    graded = _of_grades(values, every, graders=len(every) // len(ids))
    keep(folder, "grades", model, table(GRADES, graded, len(every)))
    again = [attempts != 1 for attempts in _listed(values["attempts"])]
    calls = _of_calls(values, again)
    keep(folder, "attempts", model, table(ATTEMPTS, calls, len(_listed(calls["trial_id"]))))
    keep(folder, "lanes", model, table(LANES, _of_lanes(model, len(ids)), HOURS * 60))


def _of_trials(
    sweep: str,
    model: str,
    problems: Sequence[Problem],
    ids: list[str],
    replies: Sequence[Reply | None],
    headlines: Sequence[Grade],
    draw: _Draw,
) -> Values:
    texts = ["" if one is None else one.text for one in replies]
    right = [one.exact_match for one in headlines]
    base = of_trials(sweep, model, problems, ids, texts, right, draw.random)
    step = timedelta(hours=HOURS) / len(ids)
    nothing = {name: _where(base[name], replies) for name in ("latency_s", "ttft_s", "output_tokens")}
    return (
        base
        | nothing
        | {
            "answer": [one.answer for one in headlines],
            "outcome": [one.outcome.value for one in headlines],
            "reply_text": [one and one.text for one in replies],
            "finish_reason": [one and one.finish_reason for one in replies],
            "attempts": [1 + (draw.random.random() < RETRIED) for _ in ids],
            "finished_at": [AT + step * i for i in range(len(ids))],
            "error_kind": [None if one else "server_error" for one in replies],
            "error_message": [None if one else "The server had an error" for one in replies],
            "http_status": [200 if one else 500 for one in replies],
        }
    )


def _where(values: object, replies: Sequence[Reply | None]) -> list[object]:
    return [value if reply else None for value, reply in zip(_listed(values), replies, strict=True)]


def _of_grades(own: Values, grades: Sequence[Grade], *, graders: int) -> Values:
    shared = {
        name: [value for value in values for _ in range(graders)] if isinstance(values, list) else values
        for name, values in own.items()
        if name in GRADES.names
    }
    names = [name for name in GRADES.names if name in Grade.__dataclass_fields__]
    return shared | {name: [getattr(one, name) for one in grades] for name in names}


def _of_calls(own: Values, again: Sequence[bool]) -> Values:
    """Return the calls that gave the replies, then those before them that were refused."""
    last = of_attempts(own) | {
        "attempt": own["attempts"],
        "started_at": own["finished_at"],
        "status": [kind or "ok" for kind in _listed(own["error_kind"])],
    }
    refused = {"attempt": 1, "status": "rate_limited", "http_status": 429, "cost_usd": 0.0, "latency_s": 0.05}
    unknown = {"ttft_s": None, "input_tokens": None, "output_tokens": None, "request_id": None}
    calls: Values = {}
    for name, values in last.items():
        first = {**refused, **unknown}.get(name, values)
        calls[name] = _spread(values, again) + [
            one for one, wanted in zip(_spread(first, again), again, strict=True) if wanted
        ]
    return calls


def _spread(values: object, rows: Sequence[object]) -> list[object]:
    return values if isinstance(values, list) else [values] * len(rows)


def _of_lanes(model: str, trials: int) -> Values:
    """Return a minute after the other in which a lane used nearly all of its requests."""
    requests = trials // (HOURS * 60)
    amounts = dict(zip(LIMITS, (requests, requests * 90, requests * 50, requests * 40), strict=True))
    limits = {"requests_limit": requests * 1.01 + 1, "tokens_limit": requests * 120.0}
    waits = {f"waited_for_{name}_s": 55.0 if name == "requests" else 0.0 for name in REASONS}
    begun = [AT + timedelta(minutes=minute) for minute in range(HOURS * 60)]
    figures = {"lane": model, "seconds": 60.0, "share": 1.0, "most_in_flight": 100, "refused": 1}
    return {"started_at": begun, **figures, **amounts, **limits, **waits}


def _listed(values: object) -> list[object]:
    assert isinstance(values, list)
    return values
