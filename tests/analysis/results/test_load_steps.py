"""The figures of steps: which calls count, what no answer does to a percentile, and repeats as one."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pyarrow as pa
import pytest

from asyncbench.reports.load.steps import steps_in
from asyncbench.store.rows import step_row
from asyncbench.store.schema import ATTEMPTS, STEPS
from asyncbench.tables.data import data_of
from tests.analysis.views.made import views_of
from tests.store import made

LOOSE = pa.schema([field.with_nullable(True) for field in ATTEMPTS])
IDS = count()
SLO = {"latency": 2.0, "share": 0.95}


def call(step, at_s, latency_s=1.0, **more):
    """A call of a step that was due so many seconds after its start, and sent 0.25 s later."""
    due_at = datetime.fromtimestamp(made.AT, UTC) + timedelta(seconds=at_s)
    row = {"trial_id": f"t{next(IDS)}", "attempt": 1, "model": "m", "provider": "simulated", "load": step}
    row |= {"status": "ok", "phase": "measured", "due_at": due_at, "late_s": 0.25, "latency_s": latency_s}
    row |= {"ttft_s": 0.5, "ttfo_s": 0.75, "output_tokens": 11, "output_chars": 40, "cost_usd": 0.001}
    return row | more


def refused(step, at_s):
    gone = dict.fromkeys(("ttft_s", "ttfo_s", "output_tokens", "output_chars"))
    return call(step, at_s, 0.01, status="rate_limited", http_status=429, cost_usd=0.0, **gone)


def row(name, calls, *, seconds=10.0, slo=SLO, verdict="met", **more):
    """A row of `steps` for calls that are all measured."""
    answered = sum(one["status"] == "ok" for one in calls)
    counts = {"offered": len(calls), "sent": len(calls), "answered": answered, "dropped": 0, "failed": 0}
    counts |= {"refused": len(calls) - answered, "unfinished": 0, "met": answered, "rate": 8.0}
    told = replace(
        made.step(name, alias="m"), arrivals="poisson", began_at=made.AT, warmup_s=2.0, seconds=seconds,
        slo=slo, verdict=verdict, **counts | more,
    )  # fmt: skip
    return step_row(told)


def figures(calls, *rows):
    steps = pa.Table.from_pylist(list(rows), schema=STEPS)
    with views_of(attempts=pa.Table.from_pylist(calls, schema=LOOSE), steps=steps) as views:
        return steps_in(views)


def test_times_count_from_when_a_call_was_due_and_calls_of_the_warm_up_do_not_count():
    name = "poisson 8/s #1"
    calls = [call(name, 2 + n / 10, 1 + n / 100) for n in range(80)]
    (found,) = figures([call(name, 1, 99, phase="warmup"), *calls], row(name, calls))
    p50 = found.times["latency"].percentile("p50")
    assert p50.value == pytest.approx(0.25 + 1.39)
    assert p50.low < p50.value < p50.high
    assert found.times["ttft"].percentile("p95").value == pytest.approx(0.75)
    assert found.times["ttfo"].percentile("p95").value == pytest.approx(1.0)
    assert found.times["tpot"].percentile("p50").value == pytest.approx((1.39 - 0.5) / 10)
    assert found.late_p99_s == pytest.approx(0.25)
    assert found.late_share == pytest.approx(0.25 / (0.25 + 1.395))
    assert (found.answered_per_s, found.goodput_per_s, found.tokens_per_s) == (8.0, 7.6, 88.0)
    assert found.usd_per_1000 == pytest.approx(1.0)
    assert (found.offered, found.ended) == (80, 80)
    assert (found.step, found.verdict, found.slo) == ("poisson 8/s", "met", SLO)


def test_too_few_calls_have_no_percentile_and_say_how_many_it_takes():
    name = "poisson 8/s #1"
    calls = [call(name, 2 + n / 10) for n in range(71)]
    (found,) = figures(calls, row(name, calls))
    assert found.times["latency"].percentile("p95") is None
    assert found.times["latency"].why("p95") == "71 calls, and p95 takes 72"
    assert found.times["latency"].why("p50") == ""
    told = json.loads(json.dumps(data_of(found), allow_nan=False))
    assert told["latency"]["p95"] == {
        "s": None,
        "low_s": None,
        "high_s": None,
        "why": found.times["latency"].why("p95"),
    }


def test_calls_without_an_answer_are_above_all_others_those_never_sent_too():
    name = "poisson 8/s #1"
    calls = [call(name, 2 + n / 20) for n in range(90)] + [refused(name, 9) for _ in range(6)]
    dropped = row(name, calls) | {"offered": 100, "dropped": 4}
    (found,) = figures(calls, dropped)
    assert found.times["latency"].endless == found.times["ttft"].endless == found.times["tpot"].endless == 10
    assert found.times["latency"].percentile("p50").value == pytest.approx(1.25)
    assert found.times["latency"].why("p95") == "10.0 % of calls have no answer"
    assert found.times["ttft"].why("p95") == "10.0 % of calls have no answer"
    assert data_of(found)["latency"]["p95"]["s"] is None
    assert (found.kept_share, found.offered - found.answered) == (0.9, 10)


def test_replies_that_were_not_streamed_have_no_ttft_and_a_single_token_no_tpot():
    name = "poisson 8/s #1"
    calls = [call(name, 2 + n / 10, ttft_s=None, ttfo_s=None) for n in range(80)]
    (found,) = figures(calls, row(name, calls))
    assert found.times["ttft"].why("p50") == "no reply was streamed"
    assert found.times["latency"].why("p95") == ""
    calls = [call(name, 2 + n / 10, output_tokens=1 + (n < 75) * 10) for n in range(80)]
    (found,) = figures(calls, row(name, calls))
    assert (len(found.times["tpot"].told_s), found.times["tpot"].endless) == (75, 0)


def test_what_ends_in_the_drain_is_answered_but_counts_in_no_rate():
    name = "poisson 8/s #1"
    calls = [call(name, 2 + n / 10, 1.0 + 5 * (n >= 60)) for n in range(80)]
    (found,) = figures([*calls, call(name, 1.5, phase="warmup")], row(name, calls))
    assert (found.answered, found.answered_per_s, found.tokens_per_s) == (80, 6.1, 67.1)
    assert found.goodput_per_s == 6.1  # 20 calls lost the SLO, and ended later
    slow = [call(name, 2 + n / 10, 1.0 + 2 * (n < 10)) for n in range(80)]
    (found,) = figures(slow, row(name, slow))
    assert (found.answered_per_s, found.goodput_per_s) == (8.0, 7.0)


def test_tokens_per_user_are_those_of_a_caller_or_of_a_call_in_flight():
    name = "poisson 8/s #1"
    calls = [call(name, 2 + n / 10, 1.75 + 5 * (n >= 60)) for n in range(80)]
    (found,) = figures(calls, row(name, calls))
    assert found.tokens_per_s_per_user == pytest.approx(80 * 11 / (60 * 2.0 + 20 * 7.0))

    name = "closed 4 #1"
    closed = [call(name, 2 + n / 10) for n in range(80)]
    (found,) = figures(closed, row(name, closed, rate=4.0) | {"arrivals": "closed"})
    assert (found.tokens_per_s, found.tokens_per_s_per_user) == (88.0, 22.0)
    assert data_of(found)["tokens_per_s_per_user"] == 22.0

    untold = [one | {"output_tokens": None} for one in closed[:1]] + closed[1:]
    failed = [refused(name, 3) for _ in range(5)]
    for unknown in (untold, failed):
        for arrivals in ("closed", "poisson"):
            (found,) = figures(unknown, row(name, unknown, rate=4.0) | {"arrivals": arrivals})
            assert found.tokens_per_s_per_user is None


def test_repeats_are_pooled_call_by_call_and_those_that_do_not_count_are_left_out():
    names = [f"poisson 8/s #{n}" for n in (1, 2, 3)]
    quick = [call(names[0], 2 + n / 10, 1) for n in range(50)]
    slow = [call(names[1], 2 + n / 10, 3) for n in range(50)]
    bound = [call(names[2], 2 + n / 10, 50) for n in range(80)]
    (found,) = figures(
        [*quick, *slow, *bound],
        row(names[0], quick, verdict="unresolved"), row(names[1], slow, met=0, verdict="missed"),
        row(names[2], bound, verdict="client_bound", client_bound=True),
    )  # fmt: skip
    assert (found.offered, found.seconds, found.met) == (100, 20.0, 50)
    assert [found.times["latency"].percentile(name).value for name in ("p50", "p95")] == [1.25, 3.25]
    assert [one.times["latency"].percentile("p50").value for one in found.repeats] == [1.25, 3.25]
    assert found.left_out == ("client_bound",)
    assert found.verdict == "missed"  # 50 of 100 calls kept what was promised to 95 %


def test_repeats_that_speak_against_each_other_leave_it_open():
    names = ["poisson 8/s #1", "poisson 8/s #2"]
    good, bad = ([call(name, 2 + n / 100) for n in range(500)] for name in names)
    (found,) = figures([*good, *bad], row(names[0], good), row(names[1], bad, met=440, verdict="missed"))
    assert found.verdict == "unresolved"


def test_rates_and_slos_are_told_apart_and_a_step_of_this_computer_alone_has_its_verdict():
    names = ["poisson 10/s #1", "poisson 9/s #1", "poisson 9/s #2"]
    calls = {name: [call(name, 2 + n / 10) for n in range(80)] for name in names}
    found = figures(
        [one for own in calls.values() for one in own],
        row(names[0], calls[names[0]], rate=10.0, verdict="client_bound", client_bound=True),
        row(names[1], calls[names[1]], rate=9.0),
        row(names[2], calls[names[2]], rate=9.0, slo=SLO | {"latency": 3.0}),
    )
    assert [(one.step, one.slo["latency"], one.verdict) for one in found] == [
        ("poisson 9/s", 2.0, "met"), ("poisson 9/s", 3.0, "met"), ("poisson 10/s", 2.0, "client_bound"),
    ]  # fmt: skip


def test_a_killed_step_of_which_no_slo_is_known_is_not_shown_once_its_rate_was_measured():
    killed, whole = "poisson 8/s #1", "poisson 8/s #2"
    calls, later = [call(killed, 2)], [call(whole, 2 + n / 10) for n in range(80)]
    lost = row(killed, calls, slo=None, verdict="incomplete")
    (found,) = figures([*calls, *later], lost, row(whole, later))
    assert (found.offered, found.verdict) == (80, "met")
    (found,) = figures(calls, lost)
    assert found.verdict == "incomplete"


def test_calls_of_one_token_are_told_apart_where_too_many_others_have_no_answer():
    name = "poisson 8/s #1"
    calls = [call(name, 2, output_tokens=1) for _ in range(20)] + [call(name, 3) for _ in range(20)]
    calls += [refused(name, 9) for _ in range(60)]
    (found,) = figures(calls, row(name, calls))
    assert found.times["latency"].why("p50") == "60.0 % of calls have no answer"
    assert found.times["tpot"].why("p50") == (
        "75.0 % of calls, those answered with one token left out, have no answer"
    )
