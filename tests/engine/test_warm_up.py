"""What is asked of a model that was not answered yet, told by simulated nights."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from asyncbench.engine.warm_up import FEW, HOPELESS_CALLS, HOPELESS_S, WIDER_S
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Allowance, Limits, Request, RetryPolicy, Sent
from tests.world.night import (
    EPOCH_S,
    MODEL,
    RIGHT,
    Answer,
    Desk,
    Night,
    night_of as night_of_one,
    side_by_side,
)

WIDE = replace(MODEL, limits=Limits(concurrency=200), retry=RetryPolicy())
REFUSALS = [ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED]


def night_of(
    *asked: tuple[str, Answer], count: int = 500, group: bool = False, done_before: int = 0
) -> Night:
    return side_by_side(dict(asked), count, WIDE, one_lane=group, done_before=done_before)


def failing(kind: ErrorKind, *, after_s: float = 0.3, times: float = float("inf"), **details) -> Answer:
    """A provider that answers only after it has failed so often."""
    failed = 0

    async def ask(_request: Request):
        nonlocal failed
        await asyncio.sleep(after_s)
        if failed < times:
            failed += 1
            raise ProviderError(kind, "says no", **details)
        return RIGHT

    return ask


def suspended(night: Night) -> dict[str, str | None]:
    return {one.model.alias: one.counters.suspended for lane in night.lanes for one in lane.clients}


# ── before the first proof ───────────────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize("group", [False, True], ids=["lanes of their own", "one lane"])
@pytest.mark.parametrize("kind", [ErrorKind.AUTH, ErrorKind.NO_SUCH_MODEL])
def test_a_dead_key_costs_a_few_calls_however_wide_its_lane(kind, group):
    night = night_of(("dead", failing(kind)), ("live", Desk().ask), group=group)
    calls = Counter(sent.model for sent in night.of(Sent))
    assert calls["dead"] == FEW
    assert len(night.results) == calls["live"] == 500


@pytest.mark.long
@pytest.mark.parametrize("kind", [ErrorKind.BAD_REQUEST, ErrorKind.TOO_LONG, ErrorKind.BLOCKED])
def test_a_refusal_of_what_was_asked_shows_that_the_key_is_good(kind):
    night = night_of(("m", failing(kind, times=1)))
    sent = [event.started_at for event in night.of(Sent)]
    assert sent[FEW + 100] - sent[0] < WIDER_S


def test_a_dead_key_that_a_busy_server_tells_late_costs_no_more_calls_than_are_in_flight():
    night = night_of(("dead", failing(ErrorKind.AUTH, after_s=15.0)))
    assert len(night.sent) == WIDE.limits.concurrency


@pytest.mark.parametrize(("retry", "least_s", "most_s"), [({}, 5, 10), ({"unreachable_s": 120}, 120, 300)])
def test_a_server_that_is_not_there_is_given_up_soon_unless_it_is_to_be_waited_for(retry, least_s, most_s):
    waited_for = replace(MODEL, retry=RetryPolicy(**retry))
    night = night_of_one(failing(ErrorKind.UNREACHABLE), asked=50, model=waited_for)
    assert "unreachable" in str(night.lanes[0].clients[0].counters.suspended)
    assert least_s < night.seconds < most_s


@pytest.mark.long
@pytest.mark.parametrize("kind", [ErrorKind.SERVER_ERROR, ErrorKind.UNREACHABLE, *REFUSALS])
def test_failures_that_prove_nothing_keep_it_narrow(kind):
    desk = Desk(latency_s=0.3)
    desk.scripts = {f"q{i}": [ProviderError(kind, "says no")] for i in range(FEW)}
    night = night_of(("m", desk.ask))
    started_s = sorted(at_s for at_s, _ in desk.calls)
    assert started_s[2 * FEW] >= 2 * desk.latency_s  # when the second four were answered
    assert len(night.results) == 500


def test_answers_of_earlier_runs_do_not_prove_todays_key():
    night = night_of(("dead", failing(ErrorKind.AUTH)), done_before=40)
    assert len(night.sent) == FEW


# ── refused from the first call on ───────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize("group", [False, True], ids=["lanes of their own", "one lane"])
@pytest.mark.parametrize("retry_after_s", [None, 1.0, 60.0])
@pytest.mark.parametrize("kind", REFUSALS)
def test_who_refuses_every_call_from_the_first_on_is_told_and_suspended_and_others_go_on(
    kind, retry_after_s, group
):
    shut = failing(kind, retry_after_s=retry_after_s)
    night = night_of(("shut", shut), ("live", Desk().ask), group=group)
    assert suspended(night) == {"shut": f"{kind}: every call was refused: says no", "live": None}
    assert sum(name.startswith("live") for name in night.results) == len(night.results) == 500
    told = f"shut: the provider refuses every call so far ({kind}: says no). The model stops if this lasts "
    assert told + "5 minutes" in night.said
    *_, last = (sent.started_at - EPOCH_S for sent in night.of(Sent) if sent.model == "shut")
    assert HOPELESS_S < last < HOPELESS_S + 60 + 130  # what the provider named, and until the next call


def test_few_trials_are_not_used_up_by_it():
    night = night_of(("shut", failing(ErrorKind.RATE_LIMITED)), count=2)
    assert "every call was refused" in str(suspended(night)["shut"])
    assert night.results == {}


def test_it_is_told_at_once():
    said_s: list[float] = []

    async def listen(lane) -> None:
        lane.notify = lambda _: said_s.append(asyncio.get_running_loop().time())

    night_of_one(failing(ErrorKind.RATE_LIMITED), 50, WIDE, beside=listen)
    assert said_s[0] < 2


@pytest.mark.parametrize(
    "told",
    [
        {"retry_after_s": 7_200.0},
        {
            "allowances": (
                Allowance(what="requests", period_s=86_400, limit=50, remaining=0, reset_s=7_200.0),
            )
        },
    ],
    ids=["Retry-After", "a day's limit"],
)
def test_who_names_a_time_is_given_that_time(told):
    lasts_s = 7_100.0

    async def ask(_request: Request):
        await asyncio.sleep(0.3)
        if asyncio.get_running_loop().time() < lasts_s:
            raise ProviderError(ErrorKind.RATE_LIMITED, "says no", **told)
        return RIGHT

    night = night_of(("m", ask), count=50)
    assert suspended(night) == {"m": None}
    assert len(night.results) == 50


def test_who_is_back_within_five_minutes_is_not_suspended():
    night = night_of(("m", failing(ErrorKind.OVERLOADED, times=2 * HOPELESS_CALLS)))
    assert suspended(night) == {"m": None}
    assert len(night.results) == 500


def test_who_answered_earlier_runs_is_told_of_and_waited_for():
    async def ask(_request: Request):
        await asyncio.sleep(0.3)
        if asyncio.get_running_loop().time() < 3_000:
            raise ProviderError(ErrorKind.RATE_LIMITED, "says no")
        return RIGHT

    night = night_of(("m", ask), done_before=10)
    told = "m: the provider refuses every call so far (rate_limited: says no)"
    assert f"{told}. asyncbench tries it again now and then" in night.said
    assert suspended(night) == {"m": None}
    assert len(night.results) == 500
