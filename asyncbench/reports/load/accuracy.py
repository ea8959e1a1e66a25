"""Accuracy under load: each step of a model beside its lightest, on the same problems.

Only answers count. What was refused, failed or never ended says how much a server takes, not how right it
is; and problems are compared with problems of their kind, so hard ones that are lost blame nobody.
All answers of a step count, those at its end as those at its beginning.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from asyncbench.analysis.cells import outcomes_of
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.views import OUTCOMES, counts_by
from asyncbench.config.loading import CLOSED
from asyncbench.records import Outcome
from asyncbench.stats.paired import holm, smallest_detectable
from asyncbench.stats.proportions import Moves, Proportion, Shares, moves_of
from asyncbench.tables.data import HIDDEN, INSIDE, in_data
from asyncbench.tables.numbers import percent, rounded

Answered = Mapping[str, Mapping[str, float]]  # kind → problem → share right of its answers
ALPHA: Final = 0.05
OTHER_CACHE: Final = 0.05  # of input tokens: a step that has so many more or fewer from a cache is told
SERVED: Final = {"model_served": "models", "fingerprint": "builds", "upstream": "upstream providers"}

# Trials of calls that count in their step; of callers also the warm-up, which loads a server no less.
# `said`: of the text, all that tells it from another.
_LOADED: Final = f"""
SELECT run, model, load, condition, problem_id, repeat, outcome,
    concat_ws(' ', condition, suite, task, variant, representation, length) AS kind,
    input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, {", ".join(SERVED)},
    try_cast(params->>'temperature' AS DOUBLE) IS NOT DISTINCT FROM 0 AS greedy, hash(reply_text) AS said
FROM trials WHERE load IS NOT NULL
    AND (trial_id IN (SELECT trial_id FROM attempts WHERE phase = 'measured') OR load LIKE '{CLOSED} %')
"""  # noqa: S608  made of our own words alone
# Those with an answer. `repeat` numbers the answers to a problem in a step: the n-th texts are compared.
_ANSWERS: Final = """
SELECT run, model, load, kind, problem_id, outcome, greedy, said,
    1000000000 * dense_rank() OVER (ORDER BY condition)
        + row_number() OVER (PARTITION BY run, model, load, condition, problem_id ORDER BY repeat) AS repeat
FROM loaded WHERE outcome <> 'failed'
"""
_STEP: Final = ("run", "model", "load", "arrivals", "rate", "round", "verdict")
_COUNTS: Final = counts_by(
    "loaded JOIN steps USING (model, load)",
    _STEP,
    only=(*OUTCOMES, "replies"),
    more=[
        "count(DISTINCT problem_id) FILTER (outcome <> 'failed') AS problems",
        "avg(output_tokens) AS output_tokens, avg(reasoning_tokens) AS reasoning_tokens",
        "sum(cached_input_tokens)::DOUBLE"
        " / nullif(sum(input_tokens) FILTER (cached_input_tokens IS NOT NULL), 0) AS cached_share",
        *(f"histogram({column}) AS {column}" for column in SERVED),
    ],
)
_LIGHTEST_FIRST: Final = "run, model, arrivals, verdict IS NOT DISTINCT FROM 'incomplete', rate, round"
_SHARES: Final = f"""
SELECT run, model, load, kind, problem_id, avg((outcome = '{Outcome.CORRECT}')::INTEGER) AS share
FROM load_answers GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone
_CHANGED: Final = """
SELECT one.load, count(*) AS compared, count(*) FILTER (one.said IS DISTINCT FROM lightest.said) AS changed
FROM load_answers AS one JOIN load_answers AS lightest USING (run, model, problem_id, repeat)
WHERE one.run = $run AND one.model = $model AND lightest.load = $lightest AND one.greedy AND lightest.greedy
GROUP BY ALL
"""


@dataclass(frozen=True, kw_only=True)
class BesideLightest:
    """A step (a) and the lightest one of its model (b), on problems of the kinds that both answered."""

    lightest: str  # its name
    moves: Moves = field(metadata=INSIDE)
    p: float  # two-sided, of both being equally right
    p_holm: float  # adjusted for all steps that are compared with it

    @property
    def differs(self) -> bool:
        """Whether the difference is more than chance."""
        return self.p_holm <= ALPHA

    @property
    def detectable(self) -> float | None:
        """The smallest difference that so many problems show in four of five cases; None: not even 1."""
        return smallest_detectable(self.moves.problems, self.moves.square)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswers:
    """What a step of one model answered, calls of its warm-up left out."""

    run: str
    model: str
    load: str  # the step, such as `poisson 8/s #2`
    arrivals: str = field(metadata=HIDDEN)
    rate: float  # closed: callers
    round: int
    verdict: str | None = field(metadata=HIDDEN)  # as in `steps`
    outcomes: Mapping[str, int]  # trials by outcome; `failed`: without an answer
    accuracy: Proportion = field(metadata=HIDDEN)  # of those with an answer
    beside: BesideLightest | None  # None: it is the lightest, or they have no problem in common
    compared: int  # answers at temperature 0 beside one of the lightest step to the same problem
    changed: int  # of them, those with another text
    output_tokens: float | None  # mean of an answer; None: not told
    reasoning_tokens: float | None
    cached_share: float | None  # of input tokens; None: not told
    served: Mapping[str, Mapping[str, int]]  # column of `trials`, as in `SERVED` → value → answers

    @property
    @in_data(None)
    def shares(self) -> Mapping[str, object]:
        """The figures of `accuracy`."""
        right = self.accuracy
        return {"accuracy": right.share, "accuracy_interval": right.interval, "answers": right.trials}


def answers_by_step(views: FolderViews) -> tuple[StepAnswers, ...]:
    """Return what each step answered, the lightest of each model first, then by rate.

    The lightest step is that of the lowest rate: the first one, and one that was not stopped, if there is.

    Args:
        views: of folders that were chosen with `loaded`: others have no such trials.
    """
    views.keep("loaded", _LOADED)
    views.keep("load_answers", _ANSWERS)
    counts = views.rows(f"{_COUNTS} ORDER BY {_LIGHTEST_FIRST}")
    shares = defaultdict[tuple[str, str, str], dict[str, dict[str, float]]](lambda: defaultdict(dict))
    for row in views.rows(_SHARES):
        shares[row["run"], row["model"], row["load"]][row["kind"]][row["problem_id"]] = row["share"]
    return tuple(
        step
        for _, rows in groupby(counts, key=lambda row: (row["run"], row["model"], row["arrivals"]))
        for step in _of_model(views, list(rows), shares)
    )


def _of_model(
    views: FolderViews, rows: Sequence[Mapping[str, Any]], shares: Mapping[tuple[str, str, str], Answered]
) -> Iterator[StepAnswers]:
    """Yield the steps of a model with arrivals of one kind, given their counts, the lightest first."""
    run, model = rows[0]["run"], rows[0]["model"]
    answered = {
        row["load"]: shares[run, model, row["load"]] for row in rows if (run, model, row["load"]) in shares
    }
    beside = beside_lightest(answered)
    texts: dict[str, Mapping[str, Any]] = {}
    if beside:
        values = {"run": run, "model": model, "lightest": next(iter(answered))}
        texts = {row["load"]: row for row in views.rows(_CHANGED, values)}
    for row in rows:
        text = texts.get(row["load"], {}) if row["load"] in beside else {}
        yield StepAnswers(
            **{name: row[name] for name in _STEP},
            outcomes=outcomes_of(row),
            accuracy=Proportion(
                successes=row[Outcome.CORRECT],
                trials=row["replies"],
                repeats=row["replies"] / max(1, row["problems"]),
            ),
            beside=beside.get(row["load"]),
            compared=text.get("compared", 0),
            changed=text.get("changed", 0),
            **{name: row[name] for name in ("output_tokens", "reasoning_tokens", "cached_share")},
            served={column: row[column] or {} for column in SERVED},
        )


def beside_lightest(steps: Mapping[str, Answered]) -> dict[str, BesideLightest]:
    """Return each step beside the first, where both answered problems of a kind; p for all of them."""
    names = list(steps)
    pairs = {name: moves_of(_alike(steps[name], steps[names[0]])) for name in names[1:]}
    pairs = {name: moves for name, moves in pairs.items() if moves.problems}
    ps = [moves.p for moves in pairs.values()]
    return {
        name: BesideLightest(lightest=names[0], moves=moves, p=p, p_holm=p_holm)
        for (name, moves), p, p_holm in zip(pairs.items(), ps, holm(ps), strict=True)
    }


def _alike(step: Answered, lightest: Answered) -> Iterator[Mapping[str, Shares]]:
    """Yield the shares of each kind of problems that both answered."""
    for kind in sorted(step.keys() & lightest.keys()):
        own, other = step[kind], lightest[kind]
        yield {problem: (own.get(problem), other.get(problem)) for problem in sorted({*own, *other})}


# ── what a reader has to know ────────────────────────────────────────────────────────────────


def notes_under_load(steps: Sequence[StepAnswers]) -> Iterator[str]:
    """Yield whether accuracy differs between steps, and what else does that may be the reason."""
    for model in dict.fromkeys(step.model for step in steps):
        own = [step for step in steps if step.model == model]
        yield from _differing(model, [step for step in own if step.beside is not None])
        if (caches := _unlike_caches(own)) is not None:
            yield f"{model}: {caches}"
        for column, things in SERVED.items():
            seen = {value for step in own for value in step.served[column]}
            if any(0 < len(step.served[column]) < len(seen) for step in own):
                yield f"{model}: not all steps were answered by the same {things} (`{column}`)."


def _differing(model: str, steps: Sequence[StepAnswers]) -> Iterator[str]:
    tests = [(step.load, step.beside) for step in steps if step.beside is not None]
    for load, beside in tests:
        if beside.differs:
            word = "less" if beside.moves.difference < 0 else "more"
            yield (
                f"{model}: answers are {word} often right at {load} than at {beside.lightest}, by "
                f"{rounded(100 * abs(beside.moves.difference), 1)} points."
            )
    if tests and not any(beside.differs for _, beside in tests):
        shown = max((1.0 if beside.detectable is None else beside.detectable) for _, beside in tests)
        yield (
            f"{model}: no step's accuracy differs from the lightest one's by more than chance. A difference "
            f"of {rounded(100 * shown, 1)} points would have shown in four of five cases."
        )


def _unlike_caches(steps: Sequence[StepAnswers]) -> str | None:
    shares = {step.load: step.cached_share for step in steps if step.cached_share is not None}
    if not shares or max(shares.values()) - min(shares.values()) < OTHER_CACHE:
        return None
    least, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    return (
        f"the share of input tokens read from a cache differs: {percent(shares[least])} at {least}, "
        f"{percent(shares[most])} at {most}. So times and costs are not of the same work. Set "
        "`same_problems: false` to compare them, in a load of its own."
    )
