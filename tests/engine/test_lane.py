"""What happens to the trials of a lane, told by simulated nights."""

import asyncio
import gc
import weakref
from dataclasses import replace
from itertools import pairwise

import pytest

from asyncbench.engine.lane import GROWTH
from asyncbench.engine.limits import Amounts
from asyncbench.engine.model_client import LONG_REPLY
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.engine.telemetry import Counters
from asyncbench.engine.token_estimates import TokenEstimates
from asyncbench.engine.warm_up import FEW
from asyncbench.errors import ErrorKind, LostCallError, ProviderError, StoreError, UnwrittenError
from asyncbench.records import Attempt, Ended, History, Limits, Outcome, Reply, RetryPolicy, Sent
from tests.world.clock import virtually
from tests.world.night import MODEL, RIGHT, Desk, Night, fresh, night_of, requests

NEW = History()


def about(seconds):
    return pytest.approx(seconds, abs=0.05)


def fails(kind, times=1, **details):
    return [ProviderError(kind, "no", **details) for _ in range(times)]


def stopped_after(seconds, desk, model=MODEL) -> Night:
    """A night of 100 trials that is told to stop after so many seconds, with half a minute to drain."""
    return night_of(desk.ask, 100, model, stop_s=seconds)


@pytest.mark.parametrize("fault", [RecursionError, KeyError, TypeError, MemoryError, OSError])
def test_what_an_adapter_stumbles_over_is_a_bad_reply_of_its_call(fault):
    """And its words, which may hold a key, are told to whoever writes them down."""
    told: list[Exception] = []

    kept = night_of(Desk(q3=[fault("sk-secret")]).ask, 10, note_fault=told.append)

    assert kept.lanes[0].clients[0].counters.faults == 1
    assert {result.grades[0].outcome for result in kept.results.values()} == {Outcome.CORRECT}
    bad = [ended.attempt for ended in kept.of(Ended) if ended.attempt.status != "ok"]
    assert [(one.trial_id, one.status, one.cost_usd) for one in bad] == [("t3", "bad_reply", None)]
    assert [type(error) for error in told] == [fault]


def test_a_call_that_is_lost_with_its_worker_is_made_again_at_once_and_stays_charged():
    desk = Desk(latency_s=1.0, q0=[LostCallError("worker 2 died", "2")])
    night = night_of(desk.ask, 1)
    lost, answered = (ended.attempt for ended in night.of(Ended))
    assert (lost.status, lost.worker, lost.cost_usd, lost.error) == ("lost", "2", None, "worker 2 died")
    assert (answered.status, answered.attempt) == ("ok", 2)
    assert night.results["t0"].cost_usd is None
    assert night.seconds == about(2.0)


def test_a_call_that_no_worker_got_is_known_to_cost_nothing():
    night = night_of(Desk(q0=[LostCallError("worker 2 is gone", "2", sent=False)]).ask, 1)
    unsent, answered = (ended.attempt for ended in night.of(Ended))
    assert (unsent.status, unsent.cost_usd, answered.status) == ("unreachable", 0.0, "ok")
    assert night.results["t0"].cost_usd == answered.cost_usd


def test_a_trial_whose_calls_are_all_lost_is_left_to_another_run():
    model = replace(MODEL, retry=RetryPolicy(attempts=3))
    desk = Desk(q3=[LostCallError("worker 1 died", "1") for _ in range(9)])
    night = night_of(desk.ask, 10, model)
    assert set(night.results) == {f"t{i}" for i in range(10)} - {"t3"}
    assert [ended.attempt.status for ended in night.of(Ended) if ended.attempt.trial_id == "t3"] == [
        "lost"
    ] * 3


def test_a_test_call_that_is_lost_is_followed_by_another_at_once():
    """A lane that waits after refusals sends one call to see whether they are over."""
    refused = {f"q{i}": fails(ErrorKind.RATE_LIMITED, retry_after_s=60) for i in range(10)}
    desk, model = (
        Desk(**refused, q10=[LostCallError("worker 1 died", "1")]),
        replace(MODEL, limits=Limits(concurrency=4)),
    )
    night = night_of(desk.ask, 20, model)
    calls = [ended.attempt for ended in night.of(Ended)]
    assert [call.status for call in calls][:12] == ["rate_limited"] * 10 + ["lost", "ok"]
    assert calls[10].started_at - calls[9].started_at > 60
    assert calls[11].started_at - calls[10].started_at == about(1.0)
    assert len(night.results) == 20


def test_what_asyncbench_itself_cannot_do_still_ends_the_night():
    with pytest.raises(ExceptionGroup) as caught:
        night_of(Desk(q3=[StoreError("no room")]).ask, 10)
    assert caught.group_contains(StoreError)


def test_as_many_calls_are_in_flight_as_allowed_and_never_more():
    desk = Desk(latency_s=1.0)
    night = night_of(desk.ask, 100)
    assert desk.most_in_flight == 10
    # Four alone, ten after half a second without a word; then the others, ten at a time, a second each.
    assert night.seconds == about(0.5 + 10.0)


def test_a_lane_that_starts_many_calls_lets_others_have_their_turn():
    model = replace(MODEL, limits=Limits(concurrency=96))  # so few are not slowed down by the ramp
    desk = Desk(latency_s=0.01)
    called = []

    async def bystander(_):
        while True:
            called.append(len(desk.calls))
            await asyncio.sleep(0)

    night_of(desk.ask, 100, model, beside=bystander)
    assert desk.most_in_flight == 96
    assert max(after - before for before, after in pairwise(called)) <= GROWTH


def test_calls_that_end_together_are_replaced_together():
    model = replace(MODEL, limits=Limits(concurrency=200))
    desk = Desk(latency_s=1.0)
    night_of(desk.ask, 400, model)
    started_s = [at_s for at_s, _ in desk.calls][FEW:]  # those were alone
    gaps_s = [after_s - before_s for before_s, after_s in zip(started_s, started_s[200:], strict=False)]
    assert max(gaps_s) < 1.001


def test_an_error_leaves_no_cycle_behind():
    errors: list[weakref.ref[ProviderError]] = []

    async def ask(_request):
        if not errors:
            error = ProviderError(ErrorKind.SERVER_ERROR, "no")
            errors.append(weakref.ref(error))
            raise error
        return RIGHT

    gc.disable()
    try:
        assert night_of(ask, 1).statuses == ["server_error", "ok"]
        assert errors[0]() is None
    finally:
        gc.enable()


def test_sent_is_written_before_the_call_and_ended_before_the_result():
    night = night_of(Desk().ask, 1)
    assert [type(event).__name__ for event in night.kept] == ["Sent", "Ended", "Result", "LaneMinute"]


def test_only_an_answer_says_that_its_grade_comes_next():
    night = night_of(Desk(q0=fails(ErrorKind.SERVER_ERROR, 1)).ask, 1)
    assert [ended.graded_next for ended in night.of(Ended)] == [False, True]


class Talkative(Desk):
    async def ask(self, request):
        return replace(await super().ask(request), text="7" * (LONG_REPLY + 1))


def test_a_long_reply_is_written_before_it_is_graded():
    assert [ended.graded_next for ended in night_of(Talkative().ask, 1).of(Ended)] == [False]


def test_a_failed_attempt_is_tried_again_and_all_its_attempts_are_kept():
    desk = Desk(q1=fails(ErrorKind.SERVER_ERROR, 2))
    night = night_of(desk.ask, 3)
    assert night.statuses.count("server_error") == 2
    assert night.results["t1"].attempts == 3
    assert night.results["t1"].grades[0].outcome is Outcome.CORRECT


def test_a_retry_holds_no_slot_while_it_waits():
    model = replace(MODEL, limits=Limits(concurrency=1))
    desk = Desk(q0=fails(ErrorKind.RATE_LIMITED, retry_after_s=60))
    night_of(desk.ask, 10, model)
    assert [question for _, question in desk.calls] == [f"q{i}" for i in range(10)] + ["q0"]


def test_a_trial_that_fails_at_every_attempt_is_closed_as_failed():
    desk = Desk(q0=fails(ErrorKind.SERVER_ERROR, 99))
    result = night_of(desk.ask, 1).results["t0"]
    assert result.attempts == MODEL.retry.attempts
    assert result.grades[0].outcome is Outcome.FAILED
    assert result.error is not None
    assert (result.latency_s, result.ttft_s, result.queued_s) == (None, None, None)


def test_a_final_error_closes_its_trial_at_the_first_attempt():
    result = night_of(Desk(q0=fails(ErrorKind.TOO_LONG)).ask, 2).results["t0"]
    assert (result.attempts, result.grades[0].outcome) == (1, Outcome.FAILED)


@pytest.mark.parametrize(
    "kind",
    [
        ErrorKind.AUTH,
        ErrorKind.NO_QUOTA,
        ErrorKind.NO_SUCH_MODEL,
        ErrorKind.REJECTED_PARAMETER,
    ],
)
def test_a_dead_lane_is_suspended_at_the_first_proof_and_its_trials_stay_open(kind):
    desk = Desk(q5=fails(kind, 1))
    night = night_of(desk.ask, 1000)
    assert night.lanes[0].clients[0].counters.suspended == f"{kind.value}: no"
    assert "t5" not in night.results
    assert len(desk.calls) <= 20  # those in flight, and none after the proof


def refusal(message="seed: not permitted", http_status=400):
    return ProviderError(ErrorKind.BAD_REQUEST, message, http_status=http_status)


def scripted(errors):
    desk = Desk()
    desk.scripts = errors
    return desk


def refusing(questions, **details):
    """A desk that refuses these questions in the same words."""
    return scripted({f"q{i}": [refusal(**details)] for i in questions})


@pytest.mark.parametrize("concurrency", [1, 10])
def test_a_lane_without_success_that_is_refused_in_the_same_words_is_suspended(concurrency):
    model = replace(MODEL, limits=Limits(concurrency=concurrency))
    desk = refusing(range(100))
    desk.latency_s = 0.3
    night = night_of(desk.ask, 100, model)
    assert night.lanes[0].clients[0].counters.suspended == "bad_request: seed: not permitted"
    assert len(desk.calls) == max(3, min(FEW, concurrency))
    assert night.results == {}


def test_a_reply_on_its_way_may_show_that_refusals_are_about_their_trials():
    desk = Desk(latency_s=60.0)

    async def ask(request):
        if request.messages[0].content in ("q1", "q4", "q7", "q8"):
            raise refusal()
        return await desk.ask(request)

    told = night_of(ask, 30)
    assert told.lanes[0].clients[0].counters.suspended is None
    assert {name for name, one in told.results.items() if one.error} == {"t1", "t4", "t7", "t8"}
    assert len(told.results) == 30


@pytest.mark.parametrize(
    ("desk", "count"),
    [
        pytest.param(refusing(range(2)), 2, id="too few to know"),
        pytest.param(refusing(range(1, 9)), 9, id="after a success"),
        pytest.param(
            refusing(range(9), http_status=404), 9, id="a question that the simulator does not know"
        ),
        pytest.param(
            scripted({f"q{i}": [refusal(f"no {word}")] for i, word in enumerate("ABCDEFGHI")}),
            9,
            id="in different words",
        ),
    ],
)
def test_a_refusal_that_is_about_its_trial_closes_it_alone(desk, count):
    model = replace(MODEL, limits=Limits(concurrency=1))
    refused = set(desk.scripts)
    night = night_of(desk.ask, count, model)
    assert night.lanes[0].clients[0].counters.suspended is None
    assert {one.trial.problem.question for one in night.results.values() if one.error} == refused
    assert len(night.results) == count


def test_after_a_reply_to_an_earlier_run_a_few_refusals_are_each_about_their_trial():
    told = night_of(refusing(range(5)).ask, 5, counters=Counters(planned=6, done_before=1))
    assert (told.lanes[0].clients[0].counters.suspended, len(told.results)) == (None, 5)


def test_an_error_that_comes_last_does_not_hide_that_a_lane_is_refused():
    model = replace(MODEL, limits=Limits(concurrency=4))
    desk = refusing(range(3))

    async def ask(request):
        if request.messages[0].content in desk.scripts:
            return await desk.ask(request)
        await asyncio.sleep(60)
        raise ProviderError(ErrorKind.SERVER_ERROR, "no")

    told = night_of(ask, 30, model)
    assert told.lanes[0].clients[0].counters.suspended == "bad_request: seed: not permitted"
    assert told.results == {}
    assert len(told.sent) <= 4 + 3  # those in flight when the third refusal came, and none after it


def test_stopping_lets_calls_in_flight_end_and_starts_no_others():
    desk = Desk(latency_s=30.0)
    told = stopped_after(25.5, desk)
    assert len(told.results) == len(desk.calls) == 10
    assert (told.scheduler.stopped, told.scheduler.abandoned) == (True, False)


def test_calls_that_outlast_the_drain_are_given_up_and_written_down_as_lost():
    desk = Desk(latency_s=500.0)
    told = stopped_after(25.5, desk)
    assert told.statuses == ["lost"] * 10
    assert told.scheduler.abandoned
    assert told.seconds == about(55.5)


def test_stopping_ends_a_wait_for_limits_at_once():
    model = replace(MODEL, limits=Limits(rpm=1, concurrency=10))
    assert stopped_after(5, Desk(), model).seconds == about(5.0)


def test_tokens_a_minute_are_kept_after_estimates_were_put_right():
    model = replace(MODEL, limits=Limits(tpm=9_000, concurrency=1000))
    night = night_of(Desk().ask, 600, model)
    # 600 calls of 15 tokens, 150 tokens a second: a minute, once the first guesses are corrected.
    assert 55 <= night.seconds <= 75


def test_an_answer_of_an_earlier_run_is_graded_and_not_asked_again():
    earlier = Attempt(trial_id="t0", attempt=2, model="m", provider="simulated", started_at=1.0, status="ok")
    history = History(attempts=2, cost_usd=0.5, ended=Ended(attempt=earlier, reply=RIGHT))
    desk = Desk()
    night = night_of(desk.ask, [(requests(1)[0], history)])
    assert desk.calls == []
    result = night.results["t0"]
    assert (result.attempts, result.cost_usd, result.grades[0].outcome) == (2, 0.5, Outcome.CORRECT)


def test_attempts_and_costs_of_earlier_runs_go_on_being_counted():
    paid = Attempt(trial_id="t0", attempt=3, model="m", provider="p", started_at=1.0, status="timeout")
    history = History(attempts=3, cost_usd=0.5, ended=Ended(attempt=paid, reply=None))
    result = night_of(Desk().ask, [(requests(1)[0], history)]).results["t0"]
    assert result.attempts == 4
    assert result.cost_usd == pytest.approx(0.5 + (10 * 1 + 5 * 2) / 1e6)


@pytest.mark.parametrize(
    ("kind", "said", "cost"),
    [
        *((kind, {}, 0.0) for kind in (ErrorKind.RATE_LIMITED, ErrorKind.SERVER_ERROR)),
        *((kind, {}, 0.0) for kind in (ErrorKind.UNREACHABLE, ErrorKind.BAD_REQUEST)),
        *((kind, {}, None) for kind in (ErrorKind.TIMEOUT, ErrorKind.BAD_REPLY)),
        (ErrorKind.OVERLOADED, {"may_have_been_billed": True}, None),
        (ErrorKind.TIMEOUT, {"may_have_been_billed": False}, 0.0),
    ],
)
def test_an_attempt_costs_nothing_only_where_it_was_refused_before_any_work(kind, said, cost):
    night = night_of(Desk(q0=fails(kind, **said)).ask, 1)
    assert night.of(Ended)[0].attempt.cost_usd == cost


def test_tokens_that_may_have_been_used_are_not_given_back():
    billed, refused = (
        ProviderError(ErrorKind.UNREACHABLE, "no", may_have_been_billed=one) for one in (True, False)
    )
    reserved = Amounts(1.0, 100.0, 60.0, 40.0)
    turn = PendingTrial(request=requests(1)[0], history=NEW, characters=4, taken_s=0.0, reserved=reserved)
    assert TokenEstimates().used(turn, billed) == reserved
    assert TokenEstimates().used(turn, refused) == Amounts(1.0)


def test_an_unknown_usage_is_no_cost_of_zero():
    async def ask(_request):
        return Reply(text="4")

    assert night_of(ask, 1).results["t0"].cost_usd is None


def test_queueing_is_no_part_of_latency():
    model = replace(MODEL, limits=Limits(concurrency=1))
    night = night_of(Desk(latency_s=2.0).ask, 3, model)
    last = night.of(Ended)[-1].attempt
    assert (last.queued_s, last.latency_s) == (about(4.0), about(2.0))


def test_latency_is_what_the_reply_says_where_it_was_measured_there():
    async def ask(_request):
        await asyncio.sleep(3)  # a second of it until there was a connection
        return replace(RIGHT, ttft_s=1.5, latency_s=2.0)

    told = night_of(ask, 1)
    assert told.of(Ended)[0].attempt.latency_s == told.results["t0"].latency_s == 2.0


def test_a_store_that_fails_ends_the_run_with_its_error():
    def keep(event):
        if not isinstance(event, Sent):
            raise StoreError("disk full")

    with pytest.raises(BaseExceptionGroup) as caught:
        night_of(Desk().ask, 100, keep=keep)
    assert caught.group_contains(StoreError, match="disk full")


def test_a_call_that_cannot_be_written_down_is_not_made_and_its_trial_stays_open():
    async def night():
        told = Night()
        desk = Desk()
        client = told.lane(desk.ask, fresh(3))

        def keep(event):
            if isinstance(event, Sent):
                told.lanes[0].stop()
                raise UnwrittenError("disk full")

        client.records.keep = keep
        await told.go()
        return desk, told

    desk, told = virtually(night())
    assert not told.results
    assert not desk.calls


def test_a_retry_that_would_pass_its_time_is_not_made():
    model = replace(MODEL, retry=RetryPolicy(attempts=1000, total_s=100))
    desk = Desk(q0=fails(ErrorKind.SERVER_ERROR, 1000))
    night = night_of(desk.ask, 1, model)
    assert night.results["t0"].grades[0].outcome is Outcome.FAILED
    assert night.seconds <= 101


def test_when_most_calls_fail_fresh_trials_wait_for_the_failed():
    desk = Desk(latency_s=0.01, **{f"q{i}": fails(ErrorKind.SERVER_ERROR, 3) for i in range(500) if i % 4})
    night = night_of(desk.ask, 500)
    assert len(night.results) == 500
    firsts: dict[str, int] = {}
    for n, (_, question) in enumerate(desk.calls):
        firsts.setdefault(question, n)
    assert firsts["q499"] > 500  # it did not come before the retries of those ahead of it
