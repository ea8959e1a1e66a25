"""Answers under load: a step whose answers worsen is found out, one whose answers do not is not accused."""

from dataclasses import replace
from math import sqrt
from random import Random

import pyarrow as pa
import pytest

from asyncbench.reports.load.accuracy import answers_by_step, comparisons_with_lightest, notes_under_load
from asyncbench.store.rows import step_row
from asyncbench.store.schema import ATTEMPTS, STEPS, TRIALS
from tests.analysis.views.made import views_of
from tests.store import made

SEEDS = 200


def loose(schema):
    return pa.schema([field.with_nullable(True) for field in schema])


def seen(*steps, verdicts=(), arrivals="poisson {}/s", **named):
    """What is seen of steps of (rate, trials), each trial a dict of columns; unlike ones by name."""
    trials, attempts, rows = [], [], []
    for n, (rate, own) in enumerate(steps):
        name = f"{arrivals.format(rate)} #1"
        told = replace(made.step(name, alias="m"), rate=float(rate), round=1)
        rows.append(step_row(told) | {"verdict": dict(verdicts).get(rate)})
        for place, trial in enumerate(own):
            one = {
                "trial_id": f"{n}-{place}", "run": "r", "model": "m", "condition": "plain", "suite": "s",
                "task": "t", "problem_id": f"p{place}", "repeat": 0, "outcome": "correct", "load": name,
                "params": '{"temperature":0}', "reply_text": "1", "phase": "measured",
            } | named | trial  # fmt: skip
            trials.append(one)
            attempts.append({"trial_id": one["trial_id"], "phase": one["phase"], "load": name, "model": "m"})
    tables = {"trials": (trials, TRIALS), "attempts": (attempts, ATTEMPTS), "steps": (rows, STEPS)}
    made_of = {
        name: pa.Table.from_pylist(values, schema=loose(schema)) for name, (values, schema) in tables.items()
    }
    with views_of(**made_of) as views:
        return answers_by_step(views)


def graded(outcomes):
    return [{"outcome": {"1": "correct", "0": "wrong", "f": "failed"}[mark]} for mark in outcomes]


def test_each_step_is_compared_with_the_lightest_on_problems_of_the_same_kinds():
    light, heavy = seen((8, graded("0110f00000" + "1" * 30)), (2, graded("1111111111" + "1" * 30)))
    assert (light.load, light.beside) == ("poisson 2/s #1", None)
    assert (light.accuracy.successes, light.accuracy.trials) == (40, 40)
    assert (heavy.accuracy.successes, heavy.accuracy.trials) == (32, 39)
    assert heavy.outcomes["failed"] == 1
    found = heavy.beside.moves
    assert found.problems == 40  # one was answered by the lightest alone, and tells of its kind
    assert heavy.beside.p == heavy.beside.p_holm == pytest.approx(2 / 2**7, abs=0.01)
    assert found.interval[0] < -7 / 39 < found.interval[1] < 0


def test_calls_of_the_warm_up_and_kinds_that_one_alone_answered_do_not_count():
    right, warm = [{**one, "task": "other"} for one in graded("1111")], graded("0000")
    light, heavy = seen((1, right), (4, [{**one, "phase": "warmup"} for one in warm] + graded("11")))
    assert (light.accuracy.trials, heavy.accuracy.trials) == (4, 2)
    assert heavy.beside is None  # its problems are of another kind


def test_callers_are_as_many_in_the_warm_up_so_it_counts():
    warm = [{**one, "phase": "warmup"} for one in graded("11")]
    light, heavy = seen((1, warm + graded("11")), (4, warm + warm), arrivals="closed {}")
    assert (light.accuracy.trials, heavy.accuracy.trials) == (4, 4)
    assert heavy.beside.moves.problems == 4


def test_all_answers_of_a_step_count_and_a_problem_once_however_often_it_was_asked():
    late = [one | {"repeat": 1, "problem_id": f"p{n}"} for n, one in enumerate(graded("0" * 40))]
    _, heavy = seen((1, graded("1" * 40)), (4, graded("1" * 40) + late))
    assert (heavy.beside.moves.problems, heavy.beside.moves.difference) == (40, pytest.approx(-0.5))
    assert heavy.beside.differs
    others = [one | {"problem_id": f"q{n}"} for n, one in enumerate(graded("0" * 40))]
    _, heavy = seen((1, graded("1" * 40)), (4, graded("1" * 40) + others))
    assert heavy.beside.moves.difference == pytest.approx(-0.5)
    assert heavy.beside.differs


def test_a_step_that_was_stopped_is_not_the_lightest_and_nor_is_one_without_answers():
    steps = seen((1, graded("11")), (2, graded("11")), (4, graded("11")), verdicts={1: "incomplete"})
    assert [(step.rate, step.beside and step.beside.lightest) for step in steps] == [
        (2.0, None), (4.0, "poisson 2/s #1"), (1.0, "poisson 2/s #1"),
    ]  # fmt: skip
    steps = seen((1, graded("ff")), (2, graded("11")), (4, graded("11")))
    assert [step.beside and step.beside.lightest for step in steps] == [None, None, "poisson 2/s #1"]


def test_texts_are_compared_at_temperature_0_alone():
    other = [{"reply_text": "1"}, {"reply_text": "one"}]
    greedy, warm = (
        seen((1, graded("11")), (2, other), params=params)[1] for params in ('{"temperature":0.0}', "{}")
    )
    assert (greedy.compared, greedy.changed) == (2, 1)
    assert (warm.compared, warm.changed) == (0, 0)


def test_other_caches_and_other_builds_are_told_with_the_steps():
    cached = [{"input_tokens": 100, "cached_input_tokens": 50, "fingerprint": "b"}]
    fresh = [{"input_tokens": 100, "cached_input_tokens": 0, "fingerprint": "a"}]
    steps = seen((1, fresh), (2, cached))
    assert [(step.cached_share, step.served["fingerprint"]) for step in steps] == [
        (0.0, {"a": 1}),
        (0.5, {"b": 1}),
    ]
    told = "\n".join(notes_under_load(steps))
    assert "0.0% at poisson 1/s #1, 50.0% at poisson 2/s #1" in told
    assert "not all steps were answered by the same builds (`fingerprint`)" in told
    assert "upstream" not in told
    assert "cache" not in "".join(notes_under_load(seen((1, fresh), (2, fresh))))


def test_a_folder_without_a_load_has_no_steps():
    assert seen() == ()
    assert [*notes_under_load(())] == []


# ── is it found out? ─────────────────────────────────────────────────────────────────────────


KINDS = 12
DESIGNS = {  # problems of the lightest step, of another, and how often that asks each
    "the same problems": (400, 400, 1),
    "other problems later": (60, 480, 1),
    "the same problems again and again": (60, 60, 8),
}


def drawn(rng, design, worsening, *, flipped=0.05):
    """Shares of the lightest step and another, by kind and problem: kinds and problems are hard or easy.

    A few answers differ by chance alone. In the second half of the other, `worsening` of the right answers
    become wrong.
    """
    few, many, times = design
    shares = [rng.uniform(0.3, 1.0) for _ in range(KINDS)]
    easy = [rng.random() < shares[place % KINDS] for place in range(many)]
    right = [[(rng.random() < flipped) != one for one in easy] for _ in range(times + 1)]
    light: dict[str, dict[str, float]] = {f"k{kind}": {} for kind in range(KINDS)}
    other: dict[str, dict[str, float]] = {f"k{kind}": {} for kind in range(KINDS)}
    for place in range(many):
        kind, problem = f"k{place % KINDS}", f"p{place}"
        if place < few:
            light[kind][problem] = float(right[-1][place])
        late = [n * many + place >= times * many / 2 for n in range(times)]
        spoilt = [is_late and rng.random() < worsening for is_late in late]
        marks = [right[n][place] and not spoilt[n] for n in range(times)]
        other[kind][problem] = sum(marks) / times
    return {"light": light, "other": other}


def accused(design, worsening):
    """Of 200 seeds: how many say that the other step differs."""
    return sum(
        comparisons_with_lightest(drawn(Random(seed), design, worsening))["other"].differs
        for seed in range(SEEDS)
    )


@pytest.mark.long
@pytest.mark.parametrize("name", DESIGNS)
def test_a_step_that_worsens_late_is_found_out_and_one_that_does_not_is_not_accused(name):
    found_out, innocent = accused(DESIGNS[name], 0.5), accused(DESIGNS[name], 0.0)
    print(f"{name}: found out {found_out}, accused in error {innocent} of {SEEDS}")
    assert found_out >= 0.75 * SEEDS
    assert innocent <= SEEDS * (0.05 + 3 * sqrt(0.05 * 0.95 / SEEDS))
