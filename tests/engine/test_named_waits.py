"""A wait that a provider names, and that is too short, again and again."""

import asyncio
from dataclasses import replace

import pytest

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Limits, Outcome, Request, RetryPolicy
from tests.world.night import MODEL, RIGHT, night_of

PATIENT = replace(MODEL, limits=Limits(concurrency=4), retry=RetryPolicy())
DOWN_S = 60.0
HANDFUL = 25  # calls


@pytest.mark.long
@pytest.mark.parametrize("kind", [ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED])
@pytest.mark.parametrize("named_s", [None, 0.001, 0.2, 1.0, 20.0])
def test_a_minute_of_refusals_costs_a_handful_of_calls_and_no_trial_whatever_wait_is_named(named_s, kind):
    calls_s: list[float] = []
    refused_s: list[float] = []

    async def ask(_request: Request):
        now_s = asyncio.get_running_loop().time()
        calls_s.append(now_s)
        await asyncio.sleep(0.05)
        if len(calls_s) > 3 and now_s < DOWN_S:
            refused_s.append(now_s)
            raise ProviderError(kind, "no", http_status=429, retry_after_s=named_s)
        return RIGHT

    night = night_of(ask, 20, PATIENT)

    assert len(refused_s) < HANDFUL
    assert [result.grades[0].outcome for result in night.results.values()] == [Outcome.CORRECT] * 20
