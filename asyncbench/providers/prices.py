"""Whose published prices hold for a model of a sweep."""

from asyncbench.pricing import RatesAt, rates_at
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.records import Model


def rates_of(model: Model) -> RatesAt:
    """Return what a model costs, as a function of the tier that served a call and its time."""
    return rates_at(model.model_id, price=model.price, vendor=vendor_of(model))


def vendor_of(model: Model) -> str | None:
    """Return the vendor in genai-prices whose prices hold; None: nobody's but those of the sweep."""
    endpoint = known_endpoints()[model.provider]
    # A server of somebody else's under a vendor's name charges what it likes.
    return endpoint.prices if endpoint.is_at(model.base_url) else None
