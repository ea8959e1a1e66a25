"""A lane under load: calls go when they are due, and each step says what it came to."""

import asyncio
import time
from array import array
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest

from asyncbench.engine.budget import Cap, Ledger
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.lanes.load import open_lane
from asyncbench.lanes.load.measuring import Measuring, excess_s, keeps
from asyncbench.lanes.load.steps import (
    CLIENT_BOUND,
    INCOMPLETE,
    MISSED,
    StepsBefore,
    due_times,
    steps_to_measure,
)
from asyncbench.pricing import picodollars
from asyncbench.problems.traces import Trace
from asyncbench.records import Attempt, Limits, Outcome, Usage
from asyncbench.run.picture import step_lines
from tests.rows import each_row
from tests.store.made import ended, reply, trial
from tests.world.clock import ProcessLoop, virtually
from tests.world.load import LOADED, Loaded, Queue, due_s, latency_s, load_of
from tests.world.night import RIGHT, pausing, requests


def night_of(load, ask=None, *, beside=None, stop_s=None, drain_s=0.0, **keys):
    """Play a load; `beside` goes on beside its lane, and it may be stopped."""

    async def night():
        told = Loaded()
        lane = told.add(ask or Queue(1_000, lambda: 0.5).ask, load, **keys)
        others = [] if beside is None else [beside(lane)]
        return await told.live(*others, stop_s=stop_s, drain_s=drain_s)

    return virtually(night())


def test_calls_go_at_their_times_whatever_is_in_flight():
    told = night_of(load_of(rates=[8], duration="60s", seed=5), Queue(1, lambda: 0.5).ask)
    drawn = due_times("poisson", 8.0, 60.0, seed=5, model=LOADED.alias, round_=1)
    (step,) = told.steps
    assert len(told.calls) == len(drawn) == step.offered == step.sent
    began_s = step.began_at - 1_000_000.0
    assert [due_s(call) - began_s for call in sorted(told.calls, key=due_s)] == pytest.approx([*drawn])
    assert max(call.late_s for call in told.calls) < 0.001
    assert step.in_flight_max > 200  # it answers two a second, and nobody waits for it
    assert (step.saturated, step.client_bound) == (True, False)


def test_every_call_is_a_graded_row_of_its_step():
    told = night_of(load_of(rates=[10], arrivals="constant", warmup="2s", duration="5s"))
    assert {call.load for call in told.calls} == {"constant 10/s #1"}
    assert Counter(call.phase for call in told.calls) == {"warmup": 20, "measured": 50}
    assert {result.trial.load for result in told.results.values()} == {"constant 10/s #1"}
    assert Counter(result.grades[0].outcome for result in told.results.values()) == {Outcome.CORRECT: 70}
    (step,) = told.steps
    assert (step.offered, step.answered, step.seconds, step.warmup_s) == (50, 50, 5.0, 2.0)
    assert (step.load, step.rate, step.round, step.arrivals) == ("constant 10/s #1", 10.0, 1, "constant")
    assert step.in_flight_mean == pytest.approx(5.0, rel=0.1)  # Little's law: 10/s × 0.5 s
    assert (step.verdict, step.met, step.slo, step.ks_p) == (None, None, None, None)


def test_a_call_waits_for_the_server_in_its_own_latency():
    told = night_of(load_of(rates=[4], arrivals="constant", duration="10s"), Queue(1, lambda: 0.5).ask)
    latencies = [latency_s(call) for call in sorted(told.calls, key=due_s)]
    assert latencies[:3] == pytest.approx([0.5, 0.75, 1.0], abs=0.01)
    assert latencies[-1] == pytest.approx(0.5 + 39 * 0.25, abs=0.05)


@pytest.mark.parametrize(("slots", "grows"), [(99, False), (27, True)])
def test_calls_in_flight_that_mount_up_until_the_first_answers_are_no_backlog(slots, grows):
    load = load_of(rates=[10], arrivals="constant", warmup="1s", duration="20s")
    (step,) = night_of(load, Queue(slots, lambda: 3.0).ask).steps
    assert step.saturated is grows  # 30 slots serve ten a second; before the first answer, 30 are in flight


def test_thinking_that_is_not_shown_came_before_the_first_token():
    slo = load_of(rates=[1], slo={"tpot": 0.01}).slo
    assert slo is not None
    usage = Usage(output_tokens=1001, reasoning_tokens=980)
    call = Attempt(
        trial_id="t", attempt=1, model="m", provider="p", started_at=0.0, status="ok", usage=usage,
        late_s=0.0, latency_s=6.0, ttft_s=5.0, ttfo_s=5.0,
    )  # fmt: skip
    assert not keeps(slo, call)  # 20 tokens in a second after the first
    assert keeps(slo, replace(call, ttft_s=0.1))  # 1,000 in six, and the thinking is shown


def test_what_is_too_much_in_flight_is_dropped_and_never_delayed():
    few = replace(LOADED, limits=Limits(most=3))
    load = load_of(rates=[10], arrivals="constant", duration="10s", slo={"latency": 9})
    told = night_of(load, Queue(3, lambda: 1.0).ask, model=few)
    (step,) = told.steps
    assert (step.offered, step.in_flight_max) == (100, 3)
    assert step.dropped == 100 - step.sent == pytest.approx(70, abs=3)
    assert step.met == step.answered == step.sent
    assert step.verdict == MISSED
    assert max(call.late_s for call in told.calls) < 0.001


TRACE = Trace("t.csv", array("d", [0.0, 1.0, 1.0, 2.5, 9.0]), array("q", [9] * 5), array("q", [3] * 5))


def test_the_calls_of_a_trace_go_at_its_times_as_fast_as_its_speed():
    replayed = load_of(arrivals="trace", rates=[1, 2], order="rising", same_problems=False)
    told = night_of(replayed, trace=TRACE)
    steps = {step.load: step for step in told.steps}
    assert {name: (step.rate, step.seconds) for name, step in steps.items()} == {
        "trace 1x #1": (1.0, 10.0),  # the last call is due within it
        "trace 2x #1": (2.0, 5.0),
    }
    for name, step in steps.items():
        calls = sorted((call for call in told.calls if call.load == name), key=due_s)
        due = [due_s(call) - due_s(calls[0]) for call in calls]
        assert due == pytest.approx([at_s / step.rate for at_s in TRACE.at_s])
        assert max(call.late_s for call in calls) < 0.001
    # Each step asks the first question first, whatever the one before it asked.
    asked = Counter(result.trial.problem.problem_id for result in told.results.values())
    assert Counter(asked.values()) == {2: 5}


def test_a_trace_is_cut_by_the_duration_and_its_warm_up_does_not_count():
    (step,) = night_of(load_of(arrivals="trace", rates=[1], warmup="1s", duration="5s"), trace=TRACE).steps
    assert (step.warmup_s, step.seconds, step.offered) == (1.0, 5.0, 3)


def test_a_call_of_a_trace_that_is_dropped_takes_its_question_with_it():
    few = replace(LOADED, limits=Limits(most=1))
    told = night_of(load_of(arrivals="trace", rates=[1]), Queue(1, lambda: 0.9).ask, model=few, trace=TRACE)
    (step,) = told.steps
    assert (step.offered, step.dropped) == (5, 1)
    problems = [request.trial.problem.problem_id for request in requests(50, few)][:5]
    asked = {result.trial.problem.problem_id for result in told.results.values()}
    assert asked == {*problems} - {problems[2]}  # the second call of the same moment


def test_who_does_not_answer_in_time_is_unfinished_and_its_cost_is_unknown():
    async def never(_):
        await asyncio.sleep(1e6)

    told = night_of(load_of(rates=[5], arrivals="constant", duration="2s", drain="3s"), never)
    (step,) = told.steps
    assert (step.offered, step.answered, step.unfinished) == (10, 0, 10)
    assert {(call.status, call.cost_usd, call.phase) for call in told.calls} == {
        ("unfinished", None, "measured")
    }
    assert not told.results
    assert told.seconds == pytest.approx(5.0, abs=0.01)


def test_refusals_are_answers_too_and_nobody_is_asked_again():
    calls = 0

    async def half(_):
        nonlocal calls
        n = calls = calls + 1
        await asyncio.sleep(0.1)
        if n % 2 == 0:
            raise ProviderError(ErrorKind.RATE_LIMITED, "slow down", http_status=429, retry_after_s=30)
        if n % 5 == 0:
            raise ProviderError(ErrorKind.SERVER_ERROR, "oops", http_status=500)
        return RIGHT

    load = load_of(rates=[20], arrivals="constant", duration="5s", slo={"latency": 1, "share": 0.9})
    told = night_of(load, half)
    (step,) = told.steps
    assert (step.sent, step.answered, step.refused, step.failed) == (100, 40, 50, 10)
    assert (calls, step.met, step.verdict) == (100, 40, MISSED)
    assert Counter(result.error is None for result in told.results.values()) == {True: 40, False: 60}


def test_steps_follow_one_another_in_one_order_with_a_rest_between_them():
    load = load_of(rates=[1, 2, 4], duration="10s", rest="5s", seed=3)
    told = night_of(load, repeats=2)
    names = [step.load for step in told.steps]
    assert sorted(names) == sorted(f"poisson {rate}/s #{round_}" for rate in (1, 2, 4) for round_ in (1, 2))
    assert {name[-1] for name in names[:3]} == {"1"}
    assert names != sorted(names)
    begun = [step.began_at for step in told.steps]
    assert all(later - earlier >= 15 for earlier, later in pairwise(begun))
    rising = night_of(load_of(rates=[4, 1, 2], duration="1s", order="rising"))
    assert [step.rate for step in rising.steps] == [1.0, 2.0, 4.0]


def test_a_step_begins_once_its_first_problems_are_read():
    async def night():
        told = Loaded()
        lane = told.add(Queue(9, lambda: 0.1).ask, load_of(rates=[5, 6], duration="3s"))
        read = lane.trials

        def slowly(name):
            clock = asyncio.get_running_loop()
            assert isinstance(clock, ProcessLoop)
            clock.world.now_s += 7.0  # so long the file takes
            return read(name)

        lane.trials = slowly
        return await told.go()

    told = virtually(night())
    assert len(told.steps) == 2
    assert max(call.late_s for call in told.calls) < 0.001


def test_whoever_looks_sees_which_step_it_is_how_far_and_how_long_all_take():
    seen = []

    async def look(lane):
        clock, counters = asyncio.get_running_loop(), lane.clients[0].counters
        for seconds in (1.55, 8.05, 12.55, 20.05):
            await asyncio.sleep(seconds - clock.time())
            lines = step_lines({"m": counters}, clock.time())
            seen.append((*lines, counters.step and round(counters.step.left_s(clock.time()))))

    times = {"warmup": "2s", "duration": "10s", "rest": "3s"}
    load = load_of(rates=[5, 10], arrivals="constant", order="rising", **times)
    told = night_of(load, Queue(99, lambda: 1.0).ask, beside=look)
    assert told.lanes[0].clients[0].counters.step is None  # in the end
    assert seen == [
        ("m: step 1 of 2, constant 5/s #1: 8 due, 3 answered, 5 in flight (warm-up)", 25),
        ("m: step 1 of 2, constant 5/s #1: 41 due, 36 answered, 5 in flight", 19),
        ("m: step 1 of 2, constant 5/s #1: 60 due, 58 answered, 2 in flight (last answers)", 15),
        ("m: step 2 of 2, constant 10/s #1: 43 due, 33 answered, 10 in flight", 8),
    ]


@pytest.mark.parametrize("same", [True, False])
def test_each_step_asks_the_same_problems_or_goes_on_among_them(same):
    load = load_of(rates=[3, 2], arrivals="constant", duration="5s", order="rising", same_problems=same)
    told = night_of(load)
    asked = {
        step.load: [r.trial.problem.problem_id for r in told.results.values() if r.trial.load == step.load]
        for step in told.steps
    }
    first, second = (sorted(ids, key=lambda name: int(name[1:])) for ids in asked.values())
    assert first == [f"p{n}" for n in range(10)]
    assert second == [f"p{n}" for n in (range(15) if same else range(10, 25))]
    assert len(told.results) == 25  # no trial of one step is one of the other


def test_calls_that_count_ask_the_same_problems_at_any_rate_and_the_warm_up_asks_others():
    told = night_of(load_of(rates=[2, 4], arrivals="constant", warmup="3s", duration="5s", order="rising"))
    problem_of = {trial: result.trial.problem.problem_id for trial, result in told.results.items()}
    asked = defaultdict[tuple[str | None, str | None], list[str]](list)
    for call in told.calls:
        asked[call.load, call.phase].append(problem_of[call.trial_id])
    assert {key: sorted(ids, key=lambda name: int(name[1:])) for key, ids in asked.items()} == {
        ("constant 2/s #1", "measured"): [f"p{n}" for n in range(10)],
        ("constant 2/s #1", "warmup"): [f"p{n}" for n in range(10, 16)],
        ("constant 4/s #1", "measured"): [f"p{n}" for n in range(20)],
        ("constant 4/s #1", "warmup"): [f"p{n}" for n in range(20, 32)],
    }


def test_calls_that_count_ask_their_problems_though_some_of_the_warm_up_are_dropped():
    few = replace(LOADED, limits=Limits(most=3))
    load = load_of(rates=[4], arrivals="constant", warmup="4s", duration="4s")
    services = iter([3.5] * 3 + [0.1] * 99)
    told = night_of(load, Queue(3, lambda: next(services)).ask, model=few)
    problem_of = {trial: result.trial.problem.problem_id for trial, result in told.results.items()}
    asked = [problem_of[call.trial_id] for call in told.calls if call.phase == "measured"]
    assert sorted(asked, key=lambda name: int(name[1:])) == [f"p{n}" for n in range(16)]
    assert len(told.calls) < 32


@pytest.mark.parametrize("kind", [ErrorKind.AUTH, ErrorKind.BAD_REQUEST])
def test_a_model_that_refuses_for_good_ends_its_step_soon(kind):
    async def refuse(_):
        await asyncio.sleep(0.1)
        raise ProviderError(kind, "no such thing", http_status=401 if kind is ErrorKind.AUTH else 400)

    told = night_of(load_of(rates=[10, 20], arrivals="constant", duration="60s"), refuse)
    (step,) = told.steps
    assert step.verdict == INCOMPLETE
    assert told.lanes[0].clients[0].counters.suspended is not None
    assert len(told.calls) < 10
    assert told.seconds < 2


async def refuse(_):
    raise ProviderError(ErrorKind.AUTH, "no such key", http_status=401)


def test_a_step_that_ends_before_any_call_counts_is_not_written_down():
    told = night_of(load_of(rates=[10], arrivals="constant", warmup="15s", duration="60s"), refuse)
    assert (len(told.calls), told.steps) == (1, [])
    assert [step.verdict for step in told.lanes[0].results] == [INCOMPLETE]  # the run is not complete


def test_a_dead_key_does_not_wait_until_the_next_call_is_due():
    told = night_of(load_of(rates=[0.001], arrivals="constant", duration="3h"), refuse)
    assert [step.verdict for step in told.steps] == [INCOMPLETE]
    assert told.seconds < 1


def stopped(drain_s):
    """A night that is stopped in the middle of its only step."""
    load = load_of(rates=[5], arrivals="constant", duration="60s")
    return night_of(load, Queue(100, lambda: 2.0).ask, stop_s=10.05, drain_s=drain_s)


def test_an_interrupted_step_is_incomplete_and_its_calls_go_on_to_their_end():
    told = stopped(drain_s=30)
    (step,) = told.steps
    assert (step.verdict, step.offered, step.answered) == (INCOMPLETE, 51, 51)
    assert step.seconds == pytest.approx(10.05, abs=0.01)
    assert told.seconds == pytest.approx(12.0, abs=0.05)


def test_an_abandoned_step_says_what_was_lost():
    told = stopped(drain_s=0)
    (step,) = told.steps
    assert (step.verdict, step.sent, step.unfinished) == (INCOMPLETE, 51, 10)
    assert Counter(call.status for call in told.calls) == {"ok": 41, "lost": 10}


def test_a_paused_load_that_is_stopped_begins_no_further_step():
    load = load_of(rates=[5, 6], arrivals="constant", duration="60s")
    told = night_of(load, beside=lambda lane: pausing(lane, after_s=5.05, for_s=60), stop_s=10.05, drain_s=30)
    (step,) = told.steps
    assert (step.verdict, told.seconds < 11) == (INCOMPLETE, True)


def test_a_budget_ends_a_step_at_the_first_call_that_it_cannot_hold():
    cap = Cap(kind="sweep", of="x", limit=picodollars(1.0))
    account = Ledger([cap]).open("m", [cap], lambda _request, _at: picodollars(0.1))
    told = night_of(
        load_of(rates=[5, 6], arrivals="constant", duration="60s"), Queue(9, lambda: 9.0).ask, account=account
    )
    (step,) = told.steps
    assert (step.verdict, step.sent, step.answered) == (INCOMPLETE, 10, 10)
    counters = told.lanes[0].clients[0].counters
    assert (counters.budget_stopped, account.bound_by) == (True, [cap])
    assert cap.spent <= cap.limit


def test_earlier_steps_are_not_measured_again_and_interrupted_ones_get_another_number():
    load = load_of(rates=[1, 2, 4], duration="10s", order="rising")
    like: dict[str, object] = {"warmup_s": 0.0, "seconds": 10.0, "verdict": None, "slo": None, "asked": None}
    like["offered"] = 9
    results = [
        like | {"load": "poisson 1/s #1"},
        like | {"load": "poisson 1/s #2"},
        like | {"load": "poisson 2/s #1", "verdict": "incomplete"},
        like | {"load": "poisson 2/s #2", "verdict": "client_bound"},
        like | {"load": "poisson 4/s #1", "seconds": 20.0},
    ]
    names = [*(str(row["load"]) for row in results), "poisson 4/s #2"]  # of which a killed run had no row
    told = night_of(load, repeats=2, measured=StepsBefore(names=names, results=results))
    assert [step.load for step in told.steps] == [
        *("poisson 2/s #3", "poisson 4/s #3"),
        *("poisson 2/s #4", "poisson 4/s #4"),
    ]


def test_a_step_that_was_asked_otherwise_or_promised_something_else_is_measured_again():
    load = load_of(rates=[4], duration="10s", slo={"latency": 1})
    row = {"load": "poisson 4/s #1", "warmup_s": 0.0, "seconds": 10.0, "verdict": MISSED, "asked": "a"}
    row["offered"] = 9
    row["slo"] = '{"latency":1.0,"share":0.95}'

    def known(load, *, now="a", **changed):
        before = StepsBefore(names=["poisson 4/s #1"], results=[row | changed], questions_digest=now)
        return len(before.measured_as_now(load, 4.0, 10.0))

    assert known(load) == 1
    assert known(load, now="b") == known(load, asked=None) == 0  # of an old folder nobody knows
    assert known(load, slo='{"latency":0.5,"share":0.95}') == known(load, slo=None) == 0
    assert known(load, offered=0) == 0  # no call was due: it says nothing
    finding = load_of(find={"lowest": 1, "highest": 9}, duration="10s", slo={"latency": 1})
    for seconds in (4.0, 40.0):  # only a search ends a step early
        assert known(load, seconds=seconds) == 0
        assert known(finding, seconds=seconds) == (seconds < 10)
    (step,) = steps_to_measure(load, 1, StepsBefore(questions_digest="a"))
    assert Measuring(step, "m", epoch_s=0.0).step.questions_digest == "a"


@pytest.mark.long
@pytest.mark.parametrize("most_behind_s", [30.0, 0.5])
def test_a_slow_client_is_told_and_gives_no_verdict(most_behind_s, monkeypatch):
    monkeypatch.setattr(open_lane, "BEHIND_S", most_behind_s)

    async def busy(_):
        time.sleep(0.01)  # noqa: ASYNC251  as a client does that has more to do than it can
        return RIGHT

    async def night():
        told = Loaded()
        told.add(busy, load_of(rates=[300], arrivals="constant", duration="1s", slo={"latency": 60}))
        return await told.go()

    (step,) = asyncio.run(night()).steps
    assert (step.client_bound, step.verdict) == (True, CLIENT_BOUND)
    assert step.offered == 300 == step.answered + step.dropped
    assert (step.dropped > 0) == (most_behind_s < 1)  # it has no time for all, and does not go on for ever


@pytest.mark.parametrize(
    ("latency_s", "lag_s", "verdict"),
    [
        (9.6, 0.05, MISSED),  # a late computer is no reason for 7.6 s
        (2.04, 0.05, CLIENT_BOUND),
        (2.04, 0.03, MISSED),
        (1.9, 0.05, CLIENT_BOUND),  # what a late computer measured as kept is no verdict
    ],
)
def test_what_lateness_cannot_explain_is_missed(latency_s, lag_s, verdict):
    (step,) = steps_to_measure(load_of(rates=[4], slo={"latency": 2}), 1, StepsBefore())
    measuring = Measuring(step, "m", epoch_s=0.0)
    measuring.begin(0.0)
    for n in range(100):
        measuring.sample(n / 10, 1, lag_s=lag_s)
        call = measuring.due(n / 10, 1)
        attempt = replace(ended(trial(n), reply(n)).attempt, late_s=0.0, latency_s=latency_s, ttft_s=None)
        measuring.ended(call, attempt, n / 10 + latency_s)
    measuring.end(measuring.until_s, stopped=False)
    result = measuring.result()
    assert (result.client_bound, result.verdict) == (True, verdict)


@each_row(
    ("changes", "slo", "excess"),
    [
        ({"late_s": 0.5}, {"latency": 2.0}, 1.0),  # 3 s and 0.5 s of lateness
        ({"status": "rate_limited"}, {"latency": 2.0}, inf),
        ({"status": "unfinished"}, {"latency": 2.0}, 7.5),
        ({"ttft_s": None}, {"ttft": 1.0}, inf),
        ({"ttft_s": 1.25}, {"ttft": 1.0, "latency": 4.0}, 0.25),
        ({"ttft_s": 1.0, "usage": Usage(output_tokens=11)}, {"tpot": 0.1}, 1.0),
    ],
)
def test_an_excess_leaves_out_our_own_lateness(changes, slo, excess):
    load = load_of(rates=[4], slo=slo)
    attempt = replace(ended(trial(0), reply(0)).attempt, **{"late_s": 0.5, "latency_s": 3.0} | changes)
    assert load.slo is not None
    assert excess_s(load.slo, attempt, 0.5, 10.0) == pytest.approx(excess)


def test_callers_of_a_closed_loop_wait_for_their_answers_and_think():
    load = load_of(arrivals="closed", rates=[3], warmup="2s", duration="20s", think="0.5s")
    told = night_of(load, Queue(100, lambda: 1.5).ask)
    (step,) = told.steps
    assert (step.in_flight_max, step.load) == (3, "closed 3 #1")
    assert step.offered == step.answered == 3 * 10  # one call each two seconds
    assert step.in_flight_mean == pytest.approx(3 * 0.75, rel=0.1)
    assert (step.saturated, step.client_bound) == (False, False)
    slow = night_of(load, Queue(1, lambda: 1.5).ask).steps[0]
    assert slow.offered == pytest.approx(20 / 1.5, abs=2)  # a slow server has slowed its callers


def test_a_closed_loop_ends_its_callers_with_the_window_and_waits_for_their_calls():
    told = night_of(load_of(arrivals="closed", rates=[2], duration="5s"), Queue(100, lambda: 3.0).ask)
    (step,) = told.steps
    assert (step.offered, step.answered, step.seconds) == (4, 4, 5.0)
    assert told.seconds == pytest.approx(6.0, abs=0.05)


@pytest.mark.parametrize(("told_s", "first"), [(12.0, [0, 12, 24, 36]), (None, [0, 1, 3, 7, 15, 31])])
def test_a_caller_that_is_refused_waits_before_it_calls_again(told_s, first):
    async def refuse(_):
        raise ProviderError(ErrorKind.RATE_LIMITED, "slow down", http_status=429, retry_after_s=told_s)

    told = night_of(load_of(arrivals="closed", rates=[2], duration="45s"), refuse)
    (step,) = told.steps
    assert (step.seconds, step.refused) == (45.0, 2 * len(first))  # and nobody waits past its end
    assert [due_s(call) for call in sorted(told.calls, key=due_s)][::2] == pytest.approx(
        first, rel=0.1, abs=0.01
    )


def test_an_answer_ends_the_back_off_of_a_caller():
    async def every_third(_):
        told.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.5)
        if len(told) % 3:
            raise ProviderError(ErrorKind.UNREACHABLE, "nobody there")
        return RIGHT

    told: list[float] = []
    night_of(load_of(arrivals="closed", rates=[1], duration="12s"), every_third)
    gaps = [later - earlier - 0.5 for earlier, later in pairwise(told)]
    assert gaps[:6] == pytest.approx([1, 2, 0, 1, 2, 0], rel=0.1, abs=0.01)


@pytest.mark.parametrize(("dies_s", "steps"), [(0.0, [INCOMPLETE]), (6.5, [None, INCOMPLETE])])
def test_a_step_whose_calls_all_reach_nobody_stops_the_model(dies_s, steps):
    async def dead(_):
        if asyncio.get_running_loop().time() >= dies_s:
            raise ProviderError(ErrorKind.UNREACHABLE, "connection refused")
        return RIGHT

    load = load_of(rates=[1, 2, 4], arrivals="constant", duration="5s", rest="2s", order="rising")
    told = night_of(load, dead)
    assert [step.verdict for step in told.steps] == steps
    dead_at = f"constant {len(steps)}/s #1"
    counters = told.lanes[0].clients[0].counters
    assert counters.suspended == f"unreachable: no call of {dead_at} reached the server: connection refused"
    assert not told.lanes[0].complete
    assert told.steps[-1].failed == told.steps[-1].offered > 0


def test_a_step_of_which_some_calls_reach_the_server_is_measured():
    async def often(_):
        told.append(1)
        if len(told) % 5:
            raise ProviderError(ErrorKind.UNREACHABLE, "connection refused")
        return RIGHT

    told: list[int] = []
    night = night_of(load_of(rates=[2, 4], arrivals="constant", duration="5s"), often)
    assert [(step.verdict, step.failed > step.answered > 0) for step in night.steps] == [(None, True)] * 2
    assert night.lanes[0].complete


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_whoever_looks_sees_the_calls_of_all_steps_from_the_start(arrivals):
    seen = []

    async def look(lane):
        seen.append(lane.clients[0].counters.planned)

    told = night_of(load_of(rates=[2, 4], arrivals=arrivals, warmup="1s", duration="9s"), beside=look)
    counters = told.lanes[0].clients[0].counters
    assert seen == [10 * 2 + 10 * 4]
    assert counters.planned == counters.done == len(told.calls)  # in the end as many as were drawn


def test_a_step_that_is_measured_again_is_counted_once():
    async def pause(lane):
        await pausing(lane, after_s=4.2, for_s=1)
        await asyncio.sleep(0.1)
        assert lane.clients[0].counters.planned == 9 + 20 + 40

    load = load_of(rates=[2, 4], arrivals="constant", duration="10s", order="rising")
    told = night_of(load, Queue(99, lambda: 0.1).ask, beside=pause)
    counters = told.lanes[0].clients[0].counters
    assert [step.verdict for step in told.steps] == [INCOMPLETE, None, None]
    assert counters.planned == counters.done == 9 + 20 + 40


def test_calls_without_an_answer_count_in_no_accuracy_of_a_load():
    async def some(_):
        told.append(1)
        if len(told) % 2:
            raise ProviderError(ErrorKind.RATE_LIMITED, "slow down", http_status=429)
        return RIGHT

    told: list[int] = []
    night = night_of(load_of(rates=[4], arrivals="constant", duration="5s"), some)
    counters = night.lanes[0].clients[0].counters
    assert counters.outcomes == {Outcome.CORRECT: 10, Outcome.FAILED: 10}
    assert Counters.summed([counters, counters]).accuracy == counters.accuracy == 1.0
    counters.loaded = False
    assert counters.accuracy == 0.5  # of an ordinary sweep
