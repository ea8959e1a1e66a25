"""A lane prices every call by itself: by the tier that served it, at its hour, or as the vendor bills it."""

import asyncio
from dataclasses import replace

import genai_prices

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.pricing import rates_at
from asyncbench.records import Ended, History, Limits, Reply, Usage
from tests.world.night import MODEL, Desk, night_of, requests

LISTED = f"genai-prices {genai_prices.__version__}"
MILLION = Usage(input_tokens=1_000_000, output_tokens=0)
UNPRICED = replace(MODEL, provider="openrouter", price=None, limits=Limits(concurrency=1))


def priced(*replies, vendor="openai", model_id="gpt-5-mini", at_s=1_795_176_000.0, every_s=1.0):
    """Ask one question for each reply; return what each cost and who says so."""

    async def answer(request):
        await asyncio.sleep(every_s)
        return replies[int(request.trial.trial_id.removeprefix("t"))]

    rates = rates_at(model_id, price=None, vendor=vendor)
    results = night_of(answer, len(replies), UNPRICED, rates=rates, epoch_s=at_s).results
    return [(results[f"t{i}"].cost_usd, results[f"t{i}"].price_source) for i in range(len(replies))]


def test_the_tier_that_served_a_call_sets_its_price():
    tiers = (None, "default", "flex", "priority", "scale")

    assert priced(*(Reply(text="4", usage=MILLION, service_tier=tier) for tier in tiers)) == [
        (0.25, LISTED),
        (0.25, LISTED),
        (0.125, LISTED),
        (0.45, LISTED),
        (None, None),
    ]


def test_a_call_costs_what_its_hour_costs():
    twenty_past_four_s = 1_795_191_600.0  # 2026-11-20 16:20 UTC; the night begins at 16:30

    found = priced(
        *[Reply(text="4", usage=MILLION)] * 3,
        vendor="deepseek",
        model_id="deepseek-chat",
        at_s=twenty_past_four_s,
        every_s=400.0,
    )

    assert [cost for cost, _ in found] == [0.27, 0.27, 0.135]  # sent at :20:00, :26:40 and :33:20


def test_an_answer_taken_over_from_a_dead_run_says_whose_price_it_has():
    (ended,) = night_of(Desk().ask, 1).of(Ended)
    known = History(attempts=1, cost_usd=0.5, ended=ended)
    result = night_of(Desk().ask, [(requests(1)[0], known)]).results["t0"]
    assert (result.cost_usd, result.price_source) == (0.5, "sweep")


def test_a_trial_without_a_reply_has_nobodys_price():
    refusal = ProviderError(ErrorKind.BAD_REQUEST, "no", http_status=400)
    result = night_of(Desk(q0=[refusal]).ask, 1).results["t0"]
    assert (result.cost_usd, result.price_source) == (0.0, None)
