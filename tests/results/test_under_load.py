"""Answers under load: a step whose answers worsen is found out, one whose answers do not is not accused."""

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from asyncbench.results.pairing import Marks
from asyncbench.results.under_load import answers_by_step, beside_lightest, notes_under_load
from asyncbench.store.rows import step_row
from asyncbench.store.schema import ATTEMPTS, STEPS, TRIALS
from tests.store import made
from tests.views.made import views_of

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


def test_each_step_is_paired_with_the_lightest_on_problems_that_both_answered():
    light, heavy = seen((8, graded("0110f00000" + "1" * 30)), (2, graded("1111111111" + "1" * 30)))
    assert (light.load, light.beside) == ("poisson 2/s #1", None)
    assert (light.accuracy.successes, light.accuracy.trials) == (40, 40)
    assert (heavy.accuracy.successes, heavy.accuracy.trials) == (32, 39)
    assert heavy.outcomes["failed"] == 1
    found = heavy.beside.found
    assert (found.problems, found.only_a, found.only_b) == (39, 0, 7)
    assert heavy.beside.p == heavy.beside.p_holm == pytest.approx(2 / 2**7)
    assert heavy.beside.interval[0] < -7 / 39 < heavy.beside.interval[1] < 0


def test_calls_of_the_warm_up_and_problems_that_one_alone_answered_do_not_count():
    right, warm = graded("1111"), graded("0000")
    light, heavy = seen((1, right), (4, [{**one, "phase": "warmup"} for one in warm] + graded("11")))
    assert (light.accuracy.trials, heavy.accuracy.trials) == (4, 2)
    assert heavy.beside is None  # its problems are others


def test_callers_are_as_many_in_the_warm_up_so_it_counts():
    warm = [{**one, "phase": "warmup"} for one in graded("11")]
    light, heavy = seen((1, warm + graded("11")), (4, warm + warm), arrivals="closed {}")
    assert (light.accuracy.trials, heavy.accuracy.trials) == (4, 4)
    assert heavy.beside.found.problems == 4


def test_a_problem_is_paired_however_often_each_step_asked_it():
    again = [{"problem_id": "p0", "repeat": n, "outcome": "wrong"} for n in (7, 8, 9)]
    light, heavy = seen((1, [{"problem_id": "p0", "repeat": n} for n in (0, 1)]), (4, again))
    assert (light.accuracy.repeats, heavy.accuracy.repeats) == (2, 3)
    assert (heavy.beside.found.problems, heavy.beside.found.trials) == (1, 2)


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


def drawn(rng, worsening, *, problems=400, steps=4, share=0.85, flipped=0.05):
    """Marks of steps: problems are hard or easy, and a few answers differ by chance alone.

    From the third step on, `worsening` of the right answers become wrong.
    """
    hardness = [rng.random() < share for _ in range(problems)]
    found = {}
    for step in range(steps):
        right = [(rng.random() < flipped) != easy for easy in hardness]
        if step >= 2:
            right = [yes and rng.random() >= worsening for yes in right]
        bits = sum(1 << place for place, yes in enumerate(right) if yes)
        found[f"step {step}"] = Marks(asked=((1 << problems) - 1,), right=(bits,))
    return found


def rates(worsening):
    """Of 200 seeds: how many accuse a step that worsens, and how many one that does not."""
    guilty = innocent = 0
    for seed in range(SEEDS):
        beside = beside_lightest(drawn(Random(seed), worsening))
        guilty += any(beside[f"step {n}"].differs for n in (2, 3))
        innocent += beside["step 1"].differs
    return guilty, innocent


def test_a_server_that_worsens_is_found_out_and_one_that_does_not_is_not_accused():
    (found_out, accused), (one, other) = rates(0.1), rates(0.0)
    print(f"found out {found_out} of {SEEDS}; accused in error {accused}, {one} and {other}")
    assert found_out >= 0.95 * SEEDS
    assert max(accused, one, other) <= 0.05 * SEEDS
