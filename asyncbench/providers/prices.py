"""Whose published prices hold for a model of a sweep."""

from collections.abc import Mapping
from typing import Final

from asyncbench.pricing import RatesAt, rates_at, tier_of
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.records import Condition, Model

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
    """Return the one word for how a sweep wants its calls served; None: the standard way."""
    params = {**model.params, **condition.params}
    named = params.get("service_tier")
    return tier_of(named if isinstance(named, str) and named != "auto" else None, params)


def tiers_set_elsewhere(model: Model, condition: Condition) -> tuple[str, ...]:
    """Return the tiers in which a call that names none may be served, as the vendor's project is set."""
    named = {**model.params, **condition.params}.get("service_tier")
    return _SET_ELSEWHERE.get(vendor_of(model) or "", ()) if named in (None, "auto") else ()
