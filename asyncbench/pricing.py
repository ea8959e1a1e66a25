"""Cost of a call: usage → USD, one request at a time. An unknown cost is None, never 0.

Of several who could say, the first counts: the price in the sweep (its author knows a contract that no
table does), what the vendor says this call cost, the published price of the tier that served it. But a bill
is a bill: where the vendor says that a call cost more than by the price in the sweep, it did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from asyncbench.records import BATCH, Price, Reply, Usage

if TYPE_CHECKING:  # 0.35 s to import: only when a price is looked up
    from genai_prices.types import ModelPrice, PriceCalculation, TieredPrices

SWEEP = "sweep"  # the source of a price given there
MOST_USD = 1_000_000  # for a million tokens: what is more is no price, in a sweep or in a table
# Served the standard way, in the words of OpenAI, Anthropic, Groq and Google; and anywhere, in Anthropic's.
STANDARD = frozenset({"default", "standard", "on_demand", "unspecified", "global", "not_available"})
# What a vendor takes for a tier where no table lists it: whose names begin so, a part of the standard price.
# console.groq.com/docs/flex-processing; ai.google.dev/gemini-api/docs/pricing, each model's tables (2026-11).
PARTS = {
    ("groq", "flex"): ("", Decimal(1)),
    ("google", "flex"): ("gemini-", Decimal("0.5")),
    ("google", "priority"): ("gemini-", Decimal(2)),  # its page says 75 to 100 % more: no bill may be higher
}
TIER_KEYS = frozenset({"service_tier", "processing", "speed"})  # what genai-prices calls the ways of serving
PICO_PLACES = 12  # a picodollar is the millionth part of a price of six places for a million tokens
PERIOD_S = 900  # prices by the hour of the day change on a quarter of an hour (a test holds the table to it)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """What tokens cost in a request of more than `above` input tokens: USD for a million of a kind.

    Decimal, as published: a float64 of 0.1 is another price.
    """

    above: int = -1  # all input tokens together, cached ones too; -1: any request
    input: Decimal
    cached_input: Decimal
    cache_write: Decimal  # kept for five minutes
    cache_write_1h: Decimal
    output: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a model's tokens cost, and who says so.

    A long-context bracket is a cliff: one token above it, and every token of the request costs its rate.
    """

    source: str  # `sweep`, or the price table with its version: `genai-prices 0.2.3`
    brackets: tuple[Bracket, ...]  # rising; the first holds for any request


RatesAt = Callable[[str | None, float], Rates | None]  # by tier served, and when (UTC, seconds since 1970)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one call cost, and who says so."""

    usd: float | None  # None: unknown
    source: str | None  # None: no price is known
    instead_of_usd: float | None = None  # by the price in the sweep, where the vendor billed more


def rates_for(
    model_id: str,
    *,
    price: Price | None,
    vendor: str | None,
    moment: datetime,
    tier: str | None = None,
) -> Rates | None:
    """Return the prices of a model, or None if they are unknown.

    Args:
        model_id: the model, as its vendor calls it.
        price: a price given in the sweep; it wins over any table, and holds for every tier but the batches
            that it prices apart.
        vendor: the provider's id in genai-prices, such as `openai`; None: in no table.
        moment: when the request is made, with its time zone; prices change, some with the hour of the day.
        tier: how it was served (`tier_of`); one without a price of its own is not taken for the standard.
    """
    in_batch = tier is not None and BATCH in tier.split()
    if price is not None and (price.input is not None or (in_batch and isinstance(price.batch, Price))):
        return rates_given(price, batch=in_batch)
    if price is not None and in_batch and isinstance(price.batch, int | float):
        published = rates_for(model_id, price=None, vendor=vendor, moment=moment)
        return published and _scale(published, _exactly(price.batch))
    if vendor is None:
        return None
    listed = _published(model_id, vendor=vendor, moment=moment, tier=tier)
    names, factor = PARTS.get((vendor, tier or ""), (None, Decimal(1)))
    if listed is None and names is not None and model_id.startswith(names):
        standard = _published(model_id, vendor=vendor, moment=moment, tier=None)
        return standard and _scale(standard, factor)
    return listed


def rates_given(price: Price, *, batch: bool = False) -> Rates:
    """Return a price that a sweep gives as rates: that of batches, or of calls in real time."""
    batch_price = price.batch if batch else None
    if isinstance(batch_price, Price):
        price = batch_price
    factor = _exactly(batch_price) if isinstance(batch_price, int | float) else Decimal(1)
    rate = factor * _exactly(price.input or 0.0)
    write = rate if price.cache_write is None else factor * _exactly(price.cache_write)
    bracket = Bracket(
        input=rate,
        cached_input=rate if price.cached_input is None else factor * _exactly(price.cached_input),
        cache_write=write,
        cache_write_1h=write,
        output=factor * _exactly(price.output or 0.0),
    )
    return Rates(source=SWEEP, brackets=(bracket,))


def rates_at(model_id: str, *, price: Price | None, vendor: str | None) -> RatesAt:
    """Return `rates_for` as a function of tier and time that looks each up once a quarter of an hour."""

    @lru_cache(maxsize=64)  # in front of the one that all models share, which is asked with much longer words
    def looked_up(tier: str | None, period: int) -> Rates | None:
        return _looked_up(model_id, price, vendor, tier, period)

    return lambda tier, at_s: looked_up(tier, int(at_s // PERIOD_S))


@lru_cache(maxsize=4096)
def _looked_up(
    model_id: str,
    price: Price | None,
    vendor: str | None,
    tier: str | None,
    period: int,
) -> Rates | None:
    """Return `rates_for`, remembered for whoever asks of the same model: a look into the table is slow."""
    moment = datetime.fromtimestamp(period * PERIOD_S, UTC)
    return rates_for(model_id, price=price, vendor=vendor, moment=moment, tier=tier)


def charge(reply: Reply, rates: RatesAt, *, at_s: float, provider: str) -> Charge:
    """Return the cost of the call that got a reply.

    Args:
        reply: its usage, how it was served, and what the vendor says it cost.
        rates: the model's, from `rates_at`.
        at_s: when it was sent: UTC, seconds since 1970.
        provider: who says so where the vendor tells the cost: `openrouter usage.cost`.
    """
    vendor_usd = reply.vendor_cost_usd
    tier_rates = rates(tier_of(reply.service_tier, reply.raw_usage), at_s)
    by_rates = cost_usd(reply.usage, tier_rates)
    source = tier_rates.source if tier_rates else None
    if vendor_usd is None or (source == SWEEP and by_rates is not None and vendor_usd <= by_rates):
        return Charge(usd=by_rates, source=source)
    return Charge(
        usd=vendor_usd, source=f"{provider} usage.cost", instead_of_usd=by_rates if source == SWEEP else None
    )


def tier_word(named: str) -> str:
    """Return a tier's common word: SERVICE_TIER_FLEX (Gemini) and ON_DEMAND_FLEX (Vertex) → flex."""
    return named.lower().removeprefix("service_tier_").removeprefix("on_demand_")


def tier_of(service_tier: str | None, raw_usage: Mapping[str, object] | None) -> str | None:
    """Return the word for how a call was served, or None for the standard way or an untold one.

    Anthropic tells its fast mode, and the country it kept to, beside the service tier. Each has its
    surcharge; two of them together are a tier of their own, which no table prices.
    """
    account = raw_usage or {}
    words = (
        service_tier and tier_word(service_tier),
        account.get("speed"),
        account.get("inference_geo"),
    )
    return " ".join([word for word in words if isinstance(word, str) and word not in STANDARD]) or None


def cost_usd(usage: Usage | None, rates: Rates | None) -> float | None:
    """Return the cost of a request in USD, or None if its usage or its rates are unknown.

    Reasoning tokens are a part of the output and are not added to it. Usage whose parts exceed their
    whole tells no cost. The sum is exact; only the result is rounded, once, to float64.
    """
    if usage is None or rates is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = usage.cached_input_tokens or 0
    written = usage.cache_write_tokens or 0
    written_1h = usage.cache_write_1h_tokens or 0
    uncached = usage.input_tokens - cached - written
    written_5m = written - written_1h
    if min(uncached, cached, written_5m, written_1h, usage.output_tokens) < 0:
        return None
    bracket = rates.brackets[0]
    for higher in rates.brackets[1:]:
        if usage.input_tokens > higher.above:
            bracket = higher
    millionths = uncached * bracket.input + usage.output_tokens * bracket.output
    if cached or written:  # seldom: sums of exact decimals take time
        millionths += cached * bracket.cached_input
        millionths += written_5m * bracket.cache_write + written_1h * bracket.cache_write_1h
    return float(millionths.scaleb(-6))


def most_usd(input_tokens: int, output_tokens: int, rates: Rates) -> Decimal:
    """Return the most that one request can cost in USD, exactly.

    All input at the dearest of its prices (plain, from a cache, written to one), in the dearest of the
    brackets that so many tokens may reach.

    Args:
        input_tokens: at most.
        output_tokens: at most.
        rates: by which it will be charged.
    """
    reached = [bracket for bracket in rates.brackets if bracket.above < input_tokens] or rates.brackets[:1]
    millionths = (
        input_tokens * max(bracket.input, bracket.cached_input, bracket.cache_write, bracket.cache_write_1h)
        + output_tokens * bracket.output
        for bracket in reached
    )
    return max(millionths).scaleb(-6)


def picodollars(usd: float | Decimal, rounding: str = ROUND_CEILING) -> int:
    """Return an amount of USD as a whole number of its million millionths, in which sums are exact.

    A float is taken for the shortest decimal that reads back as it: the amount that was meant.
    """
    exact = usd if isinstance(usd, Decimal) else Decimal(repr(usd))
    return int(exact.scaleb(PICO_PLACES).to_integral_value(rounding))


def dollars_of(pico: int) -> float:
    """Return picodollars as USD."""
    return float(Decimal(pico).scaleb(-PICO_PLACES))


def _scale(rates: Rates, factor: Decimal) -> Rates:
    """Return rates of which a part, or a multiple, is charged."""
    if factor == 1:
        return rates
    kinds = [name for name in Bracket.__slots__ if name != "above"]
    brackets = (
        replace(bracket, **{kind: factor * getattr(bracket, kind) for kind in kinds})
        for bracket in rates.brackets
    )
    return Rates(source=f"{factor} of {rates.source}", brackets=tuple(brackets))


def _exactly(usd: float) -> Decimal:
    return Decimal(str(usd))  # the shortest text that reads back: what was written in the sweep


def _published(model_id: str, *, vendor: str, moment: datetime, tier: str | None) -> Rates | None:
    import genai_prices

    nothing = genai_prices.Usage(input_tokens=0, output_tokens=0)
    try:
        price = genai_prices.calc_price(nothing, model_id, provider_id=vendor, genai_request_timestamp=moment)
    except LookupError:  # no such vendor, or no such model there
        return None
    prices = price.model_price if tier is None else _tier_prices(price, tier, moment)
    brackets = _brackets(prices) if prices else ()
    # Tokens cost no NaN, nothing negative and nothing beyond money, whatever a table says.
    kinds = [name for name in Bracket.__slots__ if name != "above"]
    costs = (getattr(bracket, kind) for bracket in brackets for kind in kinds)
    if not brackets or not all(cost.is_finite() and 0 <= cost <= MOST_USD for cost in costs):
        return None
    return Rates(source=f"genai-prices {genai_prices.__version__}", brackets=brackets)


def _tier_prices(price: PriceCalculation, tier: str, moment: datetime) -> ModelPrice | None:
    """Return a model's price in a tier; None where the table has none (asked itself, it says the standard).

    A variant may leave cached tokens at the standard price (Gemini's batches), never input or output.
    """
    if not any(price.model is model for model in price.provider.models):
        return None  # another vendor's model: its tiers are not sold here
    for variant in price.model.price_variants or ():
        matches = variant.when.keys() <= TIER_KEYS and list(variant.when.values()) == [tier]
        active = variant.constraint is None or variant.constraint.active(moment)
        if matches and active and None not in (variant.prices.input_mtok, variant.prices.output_mtok):
            return price.model.get_prices(moment, variant.when)
    return None


def _brackets(prices: ModelPrice) -> tuple[Bracket, ...]:
    """Return every bracket of a published price; none where a part of the bill is in no token count."""
    input_, output = prices.input_mtok, prices.output_mtok
    # Requests, or some of the output (thoughts, citations, pictures, sound, film), may cost extra. Only who
    # makes such output has a price of it; input of other kinds, and searches, must be asked for.
    outputs = (name for name in vars(prices) if name.startswith("output_") and name != "output_mtok")
    billed_apart = any(getattr(prices, name) is not None for name in ("requests_kcount", *outputs))
    if input_ is None or output is None or billed_apart:
        return ()
    cached = input_ if prices.cache_read_mtok is None else prices.cache_read_mtok
    write = input_ if prices.cache_write_mtok is None else prices.cache_write_mtok
    write_1h = write if prices.cache_write_1h_mtok is None else prices.cache_write_1h_mtok
    tiered = (price for price in (input_, cached, write, write_1h, output) if not isinstance(price, Decimal))
    starts = (tier.start for price in tiered for tier in price.tiers)
    return tuple(
        Bracket(
            above=start,
            input=_rate(input_, start),
            cached_input=_rate(cached, start),
            cache_write=_rate(write, start),
            cache_write_1h=_rate(write_1h, start),
            output=_rate(output, start),
        )
        for start in sorted({-1, *starts})
    )


def _rate(price: Decimal | TieredPrices, start: int) -> Decimal:
    if isinstance(price, Decimal):
        return price
    return [price.base, *(tier.price for tier in price.tiers if tier.start <= start)][-1]
