"""A request is priced exactly, token kind by token kind; what is unknown has no price, never 0."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import genai_prices
import pytest
from genai_prices.data import providers
from genai_prices.types import TimeOfDateConstraint
from hypothesis import given, settings, strategies as st

from asyncbench.pricing import (
    PERIOD_S,
    STANDARD,
    TIER_KEYS,
    Charge,
    Rates,
    charge,
    cost_usd,
    rates_at,
    rates_for,
    tier_of,
)
from asyncbench.records import Price, Reply, Usage

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
ONE_EACH = Usage(input_tokens=1, output_tokens=1)
TOKENS = st.integers(min_value=0, max_value=400_000)


def published(vendor: str, model_id: str) -> Rates:
    rates = rates_for(model_id, price=None, vendor=vendor, moment=AT)
    assert rates is not None
    return rates


def sweep(price: Price) -> Rates:
    rates = rates_for("any", price=price, vendor="openai", moment=AT)
    assert rates is not None
    return rates


def judged_by_genai_prices(
    vendor: str, model_id: str, usage: Usage, served: dict[str, str] | None = None
) -> float:
    """Return what the price table's own arithmetic makes of the same usage."""
    written, written_1h = usage.cache_write_tokens or 0, usage.cache_write_1h_tokens or 0
    same = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_input_tokens or 0,
        cache_write_tokens=written,
        cache_write_5m_tokens=written - written_1h,
        cache_write_1h_tokens=written_1h,
        output_tokens=usage.output_tokens,
    )
    found = genai_prices.calc_price(
        same, model_id, provider_id=vendor, genai_request_timestamp=AT, price_context=served
    )
    return float(found.total_price)


MINI, FLASH = ("openai", "gpt-5-mini"), ("google", "gemini-2.5-flash")
SONNET, LONG_SONNET = ("anthropic", "claude-sonnet-4-6"), ("anthropic", "claude-sonnet-4-5")


@pytest.mark.parametrize(
    ("model", "usage", "millionths"),  # the sum in millionths of a USD, by hand
    [
        pytest.param(MINI, Usage(input_tokens=1_200, output_tokens=300), "1200 * 0.25 + 300 * 2", id="plain"),
        pytest.param(
            MINI,
            Usage(input_tokens=1_200, cached_input_tokens=1_024, output_tokens=300),
            "176 * 0.25 + 1024 * 0.025 + 300 * 2",
            id="most of the input cached",
        ),
        pytest.param(
            MINI,
            Usage(input_tokens=10, output_tokens=900, reasoning_tokens=850),
            "10 * 0.25 + 900 * 2",
            id="reasoning is in the output already",
        ),
        pytest.param(
            FLASH, Usage(input_tokens=1_000, output_tokens=10), "1000 * 0.3 + 10 * 2.5", id="another vendor"
        ),
        pytest.param(
            SONNET,
            Usage(input_tokens=310, cached_input_tokens=100, cache_write_tokens=200, output_tokens=50),
            "10 * 3 + 100 * 0.3 + 200 * 3.75 + 50 * 15",
            id="a cache write for five minutes",
        ),
        pytest.param(
            SONNET,
            Usage(input_tokens=310, cache_write_tokens=300, cache_write_1h_tokens=120, output_tokens=50),
            "10 * 3 + 180 * 3.75 + 120 * 6 + 50 * 15",
            id="a cache write for an hour and one for five minutes",
        ),
        pytest.param(
            LONG_SONNET,
            Usage(input_tokens=200_000, output_tokens=100),
            "200000 * 3 + 100 * 15",
            id="on the edge of the long context",
        ),
        pytest.param(
            LONG_SONNET,
            Usage(input_tokens=200_001, output_tokens=100),
            "200001 * 6 + 100 * 22.5",
            id="one above the edge: every token costs more",
        ),
        pytest.param(
            LONG_SONNET,
            Usage(input_tokens=200_001, cached_input_tokens=200_000, output_tokens=100),
            "1 * 6 + 200000 * 0.6 + 100 * 22.5",
            id="cached tokens count towards the long context",
        ),
    ],
)
def test_a_request_costs_what_it_costs_by_hand_and_in_the_price_table(model, usage, millionths):
    vendor, model_id = model
    cost = cost_usd(usage, published(vendor, model_id))

    products = (term.split(" * ") for term in millionths.split(" + "))
    assert cost == float(sum(Decimal(tokens) * Decimal(rate) for tokens, rate in products) / 10**6)
    assert cost == judged_by_genai_prices(vendor, model_id, usage)


@settings(deadline=None)
@given(uncached=TOKENS, cached=TOKENS, written_5m=TOKENS, written_1h=TOKENS, output=TOKENS)
def test_any_usage_costs_what_the_price_table_makes_of_it(uncached, cached, written_5m, written_1h, output):
    usage = Usage(
        input_tokens=uncached + cached + written_5m + written_1h,
        cached_input_tokens=cached,
        cache_write_tokens=written_5m + written_1h,
        cache_write_1h_tokens=written_1h,
        output_tokens=output,
    )
    for vendor, model_id in [
        ("anthropic", "claude-sonnet-4-5"),
        ("openai", "gpt-5.5"),
        ("google", "gemini-2.5-pro"),
        ("deepseek", "deepseek-chat"),
        ("x-ai", "grok-4"),
    ]:
        assert cost_usd(usage, published(vendor, model_id)) == judged_by_genai_prices(vendor, model_id, usage)


def test_every_priced_model_of_the_table_costs_what_the_table_makes_of_it():
    usage = Usage(
        input_tokens=999,
        cached_input_tokens=100,
        cache_write_tokens=200,
        cache_write_1h_tokens=50,
        output_tokens=77,
    )
    models = [(vendor.id, model.id) for vendor in providers for model in vendor.models]
    rates = {at: rates_for(at[1], price=None, vendor=at[0], moment=AT) for at in models}
    priced = [at for at in models if rates[at] is not None]

    assert len(priced) > 1_500
    assert [at for at in priced if cost_usd(usage, rates[at]) != judged_by_genai_prices(*at, usage)] == []


@pytest.mark.parametrize(
    ("vendor", "model_id"),
    [
        pytest.param("openai", "no-such-model", id="no such model"),
        pytest.param("no-such-vendor", "gpt-5-mini", id="no such vendor"),
        pytest.param(None, "gpt-5-mini", id="a server in no table"),
        pytest.param("google", "gemma-3", id="listed without a price"),
        pytest.param("openai", "text-embedding-3-small", id="no price of output"),
        pytest.param("perplexity", "sonar", id="a fee for each request besides"),
        pytest.param("perplexity", "sonar-deep-research", id="reasoning at a rate of its own"),
        pytest.param("google", "gemini-2.5-flash-image", id="answers in pictures"),
        pytest.param("openai", "gpt-audio", id="answers in sound"),
        pytest.param("google", "gemini-omni-1.1-flash", id="answers in film"),
    ],
)
def test_an_unknown_price_is_none_and_so_is_the_cost(vendor, model_id):
    rates = rates_for(model_id, price=None, vendor=vendor, moment=AT)

    assert rates is None
    assert cost_usd(ONE_EACH, rates) is None


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param(None, id="none"),
        pytest.param(Usage(output_tokens=5), id="no input tokens"),
        pytest.param(Usage(input_tokens=5), id="no output tokens"),
        pytest.param(
            Usage(input_tokens=5, cached_input_tokens=6, output_tokens=1), id="more cached than all"
        ),
        pytest.param(
            Usage(input_tokens=5, cache_write_tokens=6, output_tokens=1), id="more written than all"
        ),
        pytest.param(
            Usage(input_tokens=9, cache_write_tokens=2, cache_write_1h_tokens=3, output_tokens=1),
            id="more written for an hour than written",
        ),
        pytest.param(Usage(input_tokens=5, output_tokens=-1), id="below zero"),
    ],
)
def test_usage_that_is_unknown_or_contradicts_itself_has_no_cost(usage):
    assert cost_usd(usage, sweep(Price(input=0, output=0))) is None


def test_a_free_model_costs_exactly_nothing():
    cost = cost_usd(Usage(input_tokens=10**9, output_tokens=10**9), sweep(Price(input=0, output=0)))

    assert cost == 0.0
    assert isinstance(cost, float)


def test_the_price_in_the_sweep_wins_over_the_table():
    rates = rates_for("gpt-5-mini", price=Price(input=1, output=3), vendor="openai", moment=AT)

    assert cost_usd(Usage(input_tokens=2_000_000, output_tokens=1_000_000), rates) == 5.0
    assert rates is not None
    assert rates.source == "sweep"


@pytest.mark.parametrize("tokens", [11, 13, 15])
def test_a_price_in_the_sweep_means_the_decimal_that_was_written(tokens):
    rates = sweep(Price(input=0.1, output=0.7))
    usage = Usage(input_tokens=tokens, output_tokens=tokens)

    assert cost_usd(usage, rates) == float(tokens * Decimal("0.8") / 10**6)


def test_every_kind_has_its_own_price_in_the_sweep_and_cached_tokens_cost_as_input_without_one():
    usage = Usage(input_tokens=6, cached_input_tokens=1, cache_write_tokens=2, output_tokens=1)

    own = sweep(Price(input=0.1, output=0.2, cached_input=0.01, cache_write=0.125))
    assert cost_usd(usage, own) == 0.76e-6  # 3 × 0.1 + 0.01 + 2 × 0.125 + 0.2
    assert cost_usd(usage, sweep(Price(input=2, output=0))) == 6 * 2 / 10**6


def test_the_source_says_which_version_of_the_table():
    assert published("openai", "gpt-5-mini").source == f"genai-prices {genai_prices.__version__}"


# ── how it was served ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("vendor", "model_id", "tier", "input_", "cached", "output"),
    [
        pytest.param("openai", "gpt-5-mini", None, "0.25", "0.025", "2", id="standard"),
        pytest.param("openai", "gpt-5-mini", "flex", "0.125", "0.0125", "1", id="flex"),
        pytest.param("openai", "gpt-5-mini", "priority", "0.45", "0.045", "3.6", id="priority"),
        pytest.param("openai", "gpt-5-mini", "fast", "0.45", "0.045", "3.6", id="OpenAI's fast"),
        pytest.param("openai", "gpt-5-mini", "batch", "0.125", "0.0125", "1", id="batch"),
        pytest.param("anthropic", "claude-opus-5-5", "fast", "8", "0.4", "40", id="Anthropic's fast"),
        pytest.param("anthropic", "claude-haiku-4-5", "batch", "0.5", "0.05", "2.5", id="Anthropic's batch"),
        pytest.param(
            "google",
            "gemini-2.5-flash",
            "batch",
            "0.15",
            "0.03",
            "1.25",
            id="cached tokens stay at the standard",
        ),
        pytest.param("groq", "openai/gpt-oss-120b", "flex", "0.15", "0.075", "0.6", id="Groq's flex"),
        pytest.param("google", "gemini-2.5-flash", "flex", "0.15", "0.015", "1.25", id="Gemini's flex"),
        pytest.param("google", "gemini-2.5-flash", "priority", "0.6", "0.06", "5.0", id="and priority"),
    ],
)
def test_a_tier_has_its_own_price(vendor, model_id, tier, input_, cached, output):
    rates = rates_for(model_id, price=None, vendor=vendor, moment=AT, tier=tier)

    assert rates is not None
    (bracket,) = rates.brackets
    assert [bracket.input, bracket.cached_input, bracket.output] == [*map(Decimal, (input_, cached, output))]


@pytest.mark.parametrize(
    ("vendor", "model_id", "tier"),
    [
        pytest.param("openai", "gpt-5-mini", "scale", id="prepaid capacity"),
        pytest.param("openai", "gpt-5-mini", "auto", id="anything may have served it"),
        pytest.param("openai", "gpt-5-nano", "priority", id="not sold for this model"),
        pytest.param("anthropic", "claude-haiku-4-5", "priority", id="committed capacity"),
        pytest.param("anthropic", "claude-haiku-4-5", "fast", id="not fast"),
        pytest.param("anthropic", "claude-opus-5-5", "us", id="in one country"),
        pytest.param("anthropic", "claude-opus-5-5", "batch fast", id="two surcharges"),
        pytest.param("x-ai", "grok-4", "batch", id="no batches of this model"),
        pytest.param("deepseek", "deepseek-chat", "flex", id="another vendor's word"),
        pytest.param("google", "claude-haiku-4-5", "priority", id="Claude on Vertex"),
        pytest.param("google", "gemini-2.5-flash", "provisioned_throughput", id="paid by the month"),
        pytest.param("azure", "gpt-5-mini", "flex", id="another vendor's model"),
        pytest.param("perplexity", "perplexity/sonar", "web", id="no way of serving"),
    ],
)
def test_a_tier_without_a_price_is_not_taken_for_the_standard(vendor, model_id, tier):
    assert rates_for(model_id, price=None, vendor=vendor, moment=AT, tier=tier) is None


def test_a_tier_has_no_price_before_its_price_was_known():
    before, since = (
        rates_for("gpt-5-mini", price=None, vendor="openai", moment=moment, tier="flex")
        for moment in (AT.replace(month=10, day=11), AT.replace(month=10, day=12))
    )

    assert before is None
    assert since is not None


def test_every_tier_of_the_table_costs_what_the_table_makes_of_it():
    usage = Usage(
        input_tokens=300_000,
        cached_input_tokens=100,
        cache_write_tokens=200,
        cache_write_1h_tokens=50,
        output_tokens=77,
    )
    sold = [
        (vendor.id, model, variant.when)
        for vendor in providers
        for model in vendor.models
        for variant in model.price_variants or ()
        if variant.when.keys() <= TIER_KEYS and not STANDARD & {*variant.when.values()}
    ]
    compared = 0
    for vendor, model, when in sold:
        (tier,) = when.values()
        rates = rates_for(model.id, price=None, vendor=vendor, moment=AT, tier=tier)
        if rates is not None:
            compared += 1
            assert cost_usd(usage, rates) == judged_by_genai_prices(vendor, model.id, usage, when)

    assert compared > 150


@pytest.mark.parametrize(
    ("service_tier", "raw_usage", "tier"),
    [
        pytest.param(None, None, None, id="nobody said"),
        *(
            pytest.param(word, {}, None, id=word)
            for word in ("default", "standard", "on_demand", "ON_DEMAND")
        ),
        pytest.param("SERVICE_TIER_PRIORITY", {}, "priority", id="Gemini's word"),
        pytest.param("ON_DEMAND_FLEX", {}, "flex", id="Vertex's word"),
        pytest.param("flex", {}, "flex", id="flex"),
        pytest.param("standard", {"speed": "fast"}, "fast", id="fast"),
        pytest.param("standard", {"speed": "standard", "inference_geo": "global"}, None, id="anywhere"),
        pytest.param("standard", {"inference_geo": "us"}, "us", id="in one country"),
        pytest.param("batch", {"speed": "fast"}, "batch fast", id="two of them"),
        pytest.param("default", {"speed": 117.3, "inference_geo": None}, None, id="another's speed"),
    ],
)
def test_one_word_says_how_a_call_was_served(service_tier, raw_usage, tier):
    assert tier_of(service_tier, raw_usage) == tier


# ── call by call ─────────────────────────────────────────────────────────────────────────────

NOON_S = AT.timestamp()
MILLION = Usage(input_tokens=1_000_000, output_tokens=0)


def charged(reply: Reply, *, price: Price | None = None, vendor: str | None = "openai") -> Charge:
    return charge(
        reply, rates_at("gpt-5-mini", price=price, vendor=vendor), at_s=NOON_S, provider="openrouter"
    )


@pytest.mark.parametrize(
    ("told", "price", "vendor", "usd", "source"),
    [
        pytest.param(0.5, Price(input=1, output=1), "openai", 1.0, "sweep", id="the sweep first"),
        pytest.param(1.0, Price(input=1, output=1), "openai", 1.0, "sweep", id="the sweep, billed alike"),
        pytest.param(9.0, None, "openai", 9.0, "openrouter usage.cost", id="then the vendor's own bill"),
        pytest.param(0.0, None, "openai", 0.0, "openrouter usage.cost", id="which may be nothing"),
        pytest.param(9.0, None, None, 9.0, "openrouter usage.cost", id="in no table"),
        pytest.param(
            None, None, "openai", 0.25, f"genai-prices {genai_prices.__version__}", id="then the table"
        ),
        pytest.param(None, None, None, None, None, id="nobody"),
    ],
)
def test_the_first_who_knows_the_price_says_it(told, price, vendor, usd, source):
    reply = Reply(text="4", usage=MILLION, vendor_cost_usd=told)

    assert charged(reply, price=price, vendor=vendor) == Charge(usd=usd, source=source)


def test_a_bill_above_the_price_in_the_sweep_is_what_a_call_cost():
    billed = Reply(text="4", usage=MILLION, vendor_cost_usd=9.0)
    bill = Charge(usd=9.0, source="openrouter usage.cost")

    assert charged(billed, price=Price(input=1, output=1)) == replace(bill, instead_of_usd=1.0)
    assert charged(replace(billed, usage=None), price=Price(input=1, output=1)) == bill


def test_a_price_in_the_sweep_holds_for_every_tier():
    reply = Reply(text="4", usage=MILLION, service_tier="scale")

    assert charged(reply, price=Price(input=3, output=1)) == Charge(usd=3.0, source="sweep")


def test_a_call_without_usage_has_a_price_and_no_cost():
    assert charged(Reply(text="4"), price=Price(input=3, output=1)) == Charge(usd=None, source="sweep")


@pytest.mark.parametrize(
    ("at", "usd"),
    [
        pytest.param(datetime(2026, 11, 20, 0, 29, 59, tzinfo=UTC), 0.135, id="the last second of the night"),
        pytest.param(datetime(2026, 11, 20, 0, 30, tzinfo=UTC), 0.27, id="the first of the day"),
        pytest.param(datetime(2026, 11, 20, 16, 29, 59, tzinfo=UTC), 0.27, id="the last of the day"),
        pytest.param(datetime(2026, 11, 20, 16, 30, tzinfo=UTC), 0.135, id="the first of the night"),
    ],
)
def test_a_lane_that_runs_past_the_hour_pays_the_price_of_the_hour(at, usd):
    rates = rates_at("deepseek-chat", price=None, vendor="deepseek")

    assert cost_usd(MILLION, rates(None, NOON_S)) == 0.27
    assert cost_usd(MILLION, rates(None, at.timestamp())) == usd


def test_prices_by_the_hour_change_on_the_quarters_at_which_they_are_looked_up():
    constraints = [
        price.constraint
        for vendor in providers
        for model in vendor.models
        if isinstance(model.prices, list)
        for price in model.prices
        if isinstance(price.constraint, TimeOfDateConstraint)
    ]
    changes = [time for one in constraints for time in (one.start_time, one.end_time)]

    assert changes
    assert all(not (time.hour * 3600 + time.minute * 60 + time.second) % PERIOD_S for time in changes)


def test_rates_are_looked_up_once_a_tier_and_quarter_of_an_hour():
    rates = rates_at("gpt-5-mini", price=None, vendor="openai")

    assert rates("flex", NOON_S) is rates("flex", NOON_S + PERIOD_S - 1)
    assert rates("flex", NOON_S) is not rates("flex", NOON_S + PERIOD_S)
    assert rates("flex", NOON_S) != rates(None, NOON_S)
