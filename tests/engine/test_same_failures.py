"""Whatever a model is asked fails in the same way, told by simulated nights."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from asyncbench.engine.telemetry import Counters
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Limits, Outcome, Request, RetryPolicy
from tests.rows import each_row
from tests.world.night import MODEL, RIGHT, Answer, Night, night_of

PATIENT = replace(MODEL, limits=Limits(concurrency=4), retry=RetryPolicy())
Refusal = Callable[[int], ProviderError]


def refusal(kind: ErrorKind = ErrorKind.BAD_REQUEST, status: int = 400, words: str = "no") -> Refusal:
    """An error whose words name each time another request."""
    return lambda call: ProviderError(
        kind, f"{words} (request req_0{call}Xy, at 12:00:{call:02})", http_status=status
    )


def failing(refused: Callable[[int, int], bool], error: Refusal, calls: list[int]) -> Answer:
    """A provider that refuses by the number of the call and of the problem; `calls` are those it refused."""
    made = 0

    async def ask(request: Request):
        nonlocal made
        number = made = made + 1
        await asyncio.sleep(0.2)
        if refused(number, int(request.messages[0].content[1:])):
            calls.append(number)
            raise error(number)
        return RIGHT

    return ask


def outcomes(night: Night) -> tuple[int, int, str | None]:
    """Return trials that were answered, that failed, and why the model is suspended."""
    graded = [result.grades[0].outcome for result in night.results.values()]
    failed = graded.count(Outcome.FAILED)
    return len(graded) - failed, failed, night.lanes[0].clients[0].counters.suspended


@pytest.mark.long
@each_row("answered", [0, 3, 1_000])
@each_row("concurrency", [1, 4, 40])
@each_row("status", [400, 412, 418, 422])
def test_a_dead_account_costs_a_few_calls_and_no_trial(status, concurrency, answered):
    calls: list[int] = []
    ask = failing(lambda made, _: made > answered, refusal(status=status), calls)
    model = replace(PATIENT, limits=Limits(concurrency=concurrency))

    done, failed, why = outcomes(night_of(ask, answered + 100, model))

    assert (done, failed) == (answered, 0)
    assert str(why).startswith("bad_request: no (request")
    assert len(calls) < 10 + concurrency


BIRDS = ("raven", "heron", "finch", "stork", "crane", "eagle", "robin", "swift", "wren", "dove", "gull")


@pytest.mark.parametrize("answered", [0, 3, 200])
@pytest.mark.parametrize(
    "words",
    [
        lambda call: f"Ticket {BIRDS[call % 11]}-{BIRDS[call % 7]}: your plan does not cover this call",
        lambda call: f"the balance is {BIRDS[call % 5]} coins, which is not enough for {BIRDS[call % 11]}",
        lambda call: f"{BIRDS[call % 11]} {BIRDS[call * 3 % 11]} {BIRDS[call * 5 % 11]}",
    ],
    ids=["a name", "an amount", "nothing but other words"],
)
def test_an_account_that_says_it_in_other_words_each_time_costs_a_few_calls_and_no_trial(words, answered):
    calls: list[int] = []

    def error(call: int) -> ProviderError:
        return ProviderError(ErrorKind.BAD_REQUEST, f"HTTP 400: {words(call)}", http_status=400)

    night = night_of(failing(lambda made, _: made > answered, error, calls), answered + 100, PATIENT)

    done, failed, why = outcomes(night)
    assert (done, failed) == (answered, 0)
    assert why is not None
    assert len(calls) < 25


def test_an_account_that_is_dead_since_an_earlier_run_costs_a_few_calls():
    calls: list[int] = []
    counters = Counters(planned=197, done_before=100)

    night = night_of(failing(lambda *_: True, refusal(), calls), 97, PATIENT, counters=counters)

    assert outcomes(night)[:2] == (0, 0)
    assert len(calls) < 10


@pytest.mark.parametrize("answered", [0, 20])
def test_replies_that_are_none_cost_a_minute_and_few_calls_and_no_trial(answered):
    calls: list[int] = []
    error = refusal(ErrorKind.BAD_REPLY, status=200, words="it holds no choice")

    night = night_of(failing(lambda made, _: made > answered, error, calls), 200, PATIENT)

    done, failed, why = outcomes(night)
    assert (done, failed) == (answered, 0)
    assert "it holds no choice" in str(why)
    assert len(calls) < 25
    assert 60 < night.seconds < 200


@pytest.mark.parametrize(
    ("refused", "kind", "failed"),
    [
        pytest.param(
            lambda problem: problem < 20, ErrorKind.TOO_LONG, 20, id="the first twenty are too long"
        ),
        pytest.param(lambda problem: problem >= 80, ErrorKind.TOO_LONG, 20, id="the last twenty are"),
        pytest.param(lambda problem: 30 <= problem < 60, ErrorKind.BLOCKED, 30, id="a task is blocked"),
        pytest.param(lambda problem: problem % 2, ErrorKind.BAD_REQUEST, 50, id="every second is refused"),
        pytest.param(lambda problem: 40 <= problem < 50, ErrorKind.BAD_REQUEST, 10, id="ten neighbours are"),
        pytest.param(lambda problem: problem == 99, ErrorKind.BAD_REQUEST, 1, id="the last is"),
        pytest.param(
            lambda problem: problem % 10 == 3, ErrorKind.BAD_REPLY, 10, id="some are never answered"
        ),
    ],
)
def test_what_is_about_some_questions_fails_with_them_alone(refused, kind, failed):
    ask = failing(lambda _, problem: bool(refused(problem)), refusal(kind), [])

    assert outcomes(night_of(ask, 100, PATIENT)) == (100 - failed, failed, None)
