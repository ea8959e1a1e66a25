"""Accuracy under load: each step of a model is compared with its lightest step, on the same problems.

Only answers count. Calls that were refused, failed or never ended say how much load a server takes, not how
right it is. Problems are compared with problems of the same kind, so a step that loses its hard problems does
not look more accurate. All answers of a step count, at its end as well as at its beginning.
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
OTHER_CACHE: Final = 0.05  # a note is made where steps' shares of cached input tokens differ by so much
SERVED: Final = {"model_served": "models", "fingerprint": "builds", "upstream": "upstream providers"}

# Trials of calls that count in their step. Of a closed loop the warm-up counts too: it is the same load.
# `said`: a hash of the reply, by which texts are compared.
_LOADED: Final = f"""
SELECT run, model, load, condition, problem_id, repeat, outcome,
    concat_ws(' ', condition, suite, task, variant, representation, length) AS kind,
    input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, {", ".join(SERVED)},
    try_cast(params->>'temperature' AS DOUBLE) IS NOT DISTINCT FROM 0 AS greedy, hash(reply_text) AS said
FROM trials WHERE load IS NOT NULL
    AND (trial_id IN (SELECT trial_id FROM attempts WHERE phase = 'measured') OR load LIKE '{CLOSED} %')
"""  # noqa: S608  made of our own words alone
# The trials of `loaded` with an answer. `repeat` numbers the answers to a problem in a step: the n-th text of
# one step is compared with the n-th text of another.
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
    """A step (a) compared with the lightest step of its model (b), on kinds of problems of both."""

    lightest: str  # name of the lightest step
    moves: Moves = field(metadata=INSIDE)
    p: float  # two-sided, that both are equally right
    p_holm: float  # adjusted for all steps that are compared with the lightest

    @property
    def differs(self) -> bool:
        """True if the difference is more than chance."""
        return self.p_holm <= ALPHA

    @property
    def detectable(self) -> float | None:
        """The smallest difference that so many problems show in four of five cases, or None."""
        return smallest_detectable(self.moves.problems, self.moves.square)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswers:
    """The answers of a step of one model."""

    run: str
    model: str
    load: str  # the step, such as `poisson 8/s #2`
    arrivals: str = field(metadata=HIDDEN)
    rate: float  # calls per second; in a closed loop: the number of callers
    round: int
    verdict: str | None = field(metadata=HIDDEN)  # the same as in the view `steps`
    outcomes: Mapping[str, int]  # trials by outcome; `failed`: without an answer
    accuracy: Proportion = field(metadata=HIDDEN)  # of trials with an answer
    beside: BesideLightest | None  # None: it is the lightest step, or both have no problem in common
    compared: int  # answers at temperature 0 to problems that the lightest step answered at temperature 0 too
    changed: int  # the number of these whose text differs from that of the lightest step
    output_tokens: float | None  # mean over answers; None: not reported
    reasoning_tokens: float | None
    cached_share: float | None  # share of input tokens; None: not reported
    served: Mapping[str, Mapping[str, int]]  # column of `trials`, one of `SERVED` → value → number of answers

    @property
    @in_data(None)
    def shares(self) -> Mapping[str, object]:
        """The figures of `accuracy`."""
        right = self.accuracy
        return {"accuracy": right.share, "accuracy_interval": right.interval, "answers": right.trials}


def answers_by_step(views: FolderViews) -> tuple[StepAnswers, ...]:
    """Return the answers of each step, the lightest of each model first, then by rate.

    The lightest step is the first one of the lowest rate, if possible one that was not stopped.

    Args:
        views: of folders that were chosen with `loaded`; other views have no such trials.
    """
    views.keep("loaded", _LOADED)
    views.keep("load_answers", _ANSWERS)
    counts = views.rows(f"{_COUNTS} ORDER BY {_LIGHTEST_FIRST}")
    shares = defaultdict[tuple[str, str, str], dict[str, dict[str, float]]](lambda: defaultdict(dict))
    for row in views.rows(_SHARES):
        shares[row["run"], row["model"], row["load"]][row["kind"]][row["problem_id"]] = row["share"]

    steps = list[StepAnswers]()
    groups = groupby(counts, key=lambda row: (row["run"], row["model"], row["arrivals"]))
    for (run, model, _), group in groups:
        rows = list(group)  # of a model with one kind of arrivals, the lightest first
        answered = {row["load"]: shares[key] for row in rows if (key := (run, model, row["load"])) in shares}
        comparisons = comparisons_with_lightest(answered)
        texts: dict[str, Mapping[str, Any]] = {}
        if comparisons:
            values = {"run": run, "model": model, "lightest": next(iter(answered))}
            texts = {row["load"]: row for row in views.rows(_CHANGED, values)}
        for row in rows:
            text = texts.get(row["load"], {}) if row["load"] in comparisons else {}
            repeats = row["replies"] / max(1, row["problems"])
            step = StepAnswers(
                **{name: row[name] for name in _STEP},
                outcomes=outcomes_of(row),
                accuracy=Proportion(successes=row[Outcome.CORRECT], trials=row["replies"], repeats=repeats),
                beside=comparisons.get(row["load"]),
                compared=text.get("compared", 0),
                changed=text.get("changed", 0),
                **{name: row[name] for name in ("output_tokens", "reasoning_tokens", "cached_share")},
                served={column: row[column] or {} for column in SERVED},
            )
            steps.append(step)
    return tuple(steps)


def comparisons_with_lightest(steps: Mapping[str, Answered]) -> dict[str, BesideLightest]:
    """Compare each step with the first, where both answered problems of a kind."""
    if not steps:
        return {}
    lightest, *names = steps
    pairs = dict[str, Moves]()
    for name in names:
        kinds = list[Mapping[str, Shares]]()
        for kind in sorted(steps[name].keys() & steps[lightest].keys()):
            shares, lightest_shares = steps[name][kind], steps[lightest][kind]
            problems = sorted({*shares, *lightest_shares})
            kinds.append(
                {problem: (shares.get(problem), lightest_shares.get(problem)) for problem in problems}
            )
        moves = moves_of(kinds)
        if moves.problems:
            pairs[name] = moves
    ps = [moves.p for moves in pairs.values()]
    return {
        name: BesideLightest(lightest=lightest, moves=moves, p=p, p_holm=p_holm)
        for (name, moves), p, p_holm in zip(pairs.items(), ps, holm(ps), strict=True)
    }


# ── notes on the figures ─────────────────────────────────────────────────────────────────────


def notes_under_load(steps: Sequence[StepAnswers]) -> Iterator[str]:
    """Yield notes on whether accuracy differs between steps, and on differences that may explain it."""
    for model in dict.fromkeys(step.model for step in steps):
        model_steps = [step for step in steps if step.model == model]
        tests = [(step.load, step.beside) for step in model_steps if step.beside is not None]
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
                f"{model}: no step's accuracy differs from the lightest one's by more than chance. A "
                f"difference of {rounded(100 * shown, 1)} points would have shown in four of five cases."
            )

        shares = {step.load: step.cached_share for step in model_steps if step.cached_share is not None}
        if shares and max(shares.values()) - min(shares.values()) >= OTHER_CACHE:
            lowest, highest = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
            yield (
                f"{model}: the share of input tokens read from a cache differs: {percent(shares[lowest])} at "
                f"{lowest}, {percent(shares[highest])} at {highest}. So times and costs are not of the same "
                "work. Set `same_problems: false` to compare them, in a load of its own."
            )

        for column, noun in SERVED.items():
            seen = {value for step in model_steps for value in step.served[column]}
            if any(0 < len(step.served[column]) < len(seen) for step in model_steps):
                yield f"{model}: not all steps were answered by the same {noun} (`{column}`)."
