"""Whose published prices hold for a model of a sweep."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from typing import Final

from asyncbench.pricing import Rates, RatesAt, rates_at, tier_of
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.wire import at
from asyncbench.records import BATCH, Condition, Model, Price
from asyncbench.suites.requests import merged_params

# Tiers that a project's settings may stand on, by vendor: OpenAI's guide to priority processing, 2026-11.
_SET_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {"openai": ("priority", "fast")}


def rates_of(model: Model) -> RatesAt:
    """Return what a model costs, as a function of the tier that served a call and its time."""
    return rates_at(model.model_id, price=model.price, vendor=vendor_of(model))


def vendor_of(model: Model) -> str | None:
    """Return the vendor in genai-prices whose prices hold; None: nobody's but those of the sweep."""
    endpoint = known_endpoints()[model.provider]
    # A server of somebody else's under a vendor's name charges what it likes.
    return endpoint.prices if endpoint.is_at(model.base_url) else None


def tier_asked(model: Model, condition: Condition) -> str | None:
    """Return the one word for how a sweep wants its calls served; None: the standard way.

    A batch has no other tier, whatever its requests or replies say.
    """
    params = {**model.params, **condition.params}
    named = BATCH if model.mode == BATCH else params.get("service_tier")
    return tier_of(named if isinstance(named, str) and named != "auto" else None, params)


def tiers_set_elsewhere(model: Model, condition: Condition) -> tuple[str, ...]:
    """Return the tiers in which a call that names none may be served, as the vendor's project is set."""
    if model.mode == BATCH:
        return ()
    named = {**model.params, **condition.params}.get("service_tier")
    return _SET_ELSEWHERE.get(vendor_of(model) or "", ()) if named in (None, "auto") else ()


# ── routers: who serves a call, and at what price, is theirs to choose ───────────────────────

# What is told is a little more than the price: their sums may end a digit above ours.
_MORE: Final = Decimal("1.001")
_TOLD: Final = ("prompt", "completion", "request")  # USD: of a million tokens, of a call
_PLACES: Final = Decimal("0.000001")  # of a price


def is_router(model: Model) -> bool:
    """Whether a model's calls may be served at another price than the published one, unless told not to."""
    return known_endpoints()[model.provider].quirks.max_price is not None


def no_dearer(model: Model, rates: Collection[Rates]) -> Model:
    """Return a model of a router with the word that nobody may serve it who is dearer than these rates.

    A bracket's dearer tokens begin at its own count, at the upstream's too: its first price is what is told.
    """
    path = known_endpoints()[model.provider].quirks.max_price
    first = [rate.brackets[0] for rate in rates]
    told = {
        "prompt": _a_little_more(max(bracket.input for bracket in first)),
        "completion": _a_little_more(max(bracket.output for bracket in first)),
        "request": 0.0,
    }
    return replace(model, budget_params=at(path, told))


def dearest(model: Model, condition: Condition) -> Price | None:
    """Return the dearest price at which a router is told to serve a call; None: what is told is no price.

    What the sweep says in `params` goes before what a budget adds.
    """
    path = known_endpoints()[model.provider].quirks.max_price
    unsaid = merged_params(at(path, dict.fromkeys(_TOLD, 0.0)), model.budget_params)
    said: object = merged_params(unsaid, {**model.params, **condition.params})
    for name in (path or "").split("."):
        said = said.get(name) if isinstance(said, Mapping) else None
    if not isinstance(said, Mapping):
        return None
    prompt, completion, request = (_number(said.get(name)) for name in _TOLD)
    if prompt is None or completion is None or request != 0:
        return None
    return Price(input=prompt, output=completion)


def _a_little_more(usd: Decimal) -> float:
    return float((usd * _MORE).quantize(_PLACES, ROUND_CEILING))


def _number(said: object) -> float | None:
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    return float(said) if said >= 0 else None
