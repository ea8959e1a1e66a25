"""Published prices of a sweep's models."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from functools import cache
from typing import TYPE_CHECKING, Final

from asyncbench.pricing import Rates, RatesAt, rates_at, rates_for, tier_of, tier_word
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.wire import nest
from asyncbench.records import BATCH, Condition, Model, Price
from asyncbench.suites.requests import merged_params

if TYPE_CHECKING:  # 0.35 s to import: only when the table is read
    from genai_prices.types import MatchLogic

# ── The price table (genai-prices, offline), and names that may move

_LATEST: Final = re.compile(r"(?:^|[-:@/])latest$")
_DATE: Final = re.compile(r"[-@](?:20\d\d-\d\d-\d\d|20\d{6}|\d{4})$")

# Ids of Claude up to 4.5 have a dated form, later ones do not (the list at /v1/models). The price table
# knows these models by the beginning of their names alone.
_DATED_CLAUDE: Final[Mapping[str, str]] = {
    "claude-opus-4-1": "claude-opus-4-1-20250805",
    "claude-haiku-4-5": "claude-haiku-4-5-20251001",
    "claude-sonnet-4-5": "claude-sonnet-4-5-20250929",
    "claude-opus-4-5": "claude-opus-4-5-20251101",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A model with what its tokens cost."""

    model_id: str
    rates: Rates


def published(vendor: str, *, moment: datetime) -> tuple[Published, ...]:
    """Return the models that a vendor sells by tokens alone, its own and others', by name.

    Args:
        vendor: the provider's id in genai-prices.
        moment: when, with its time zone: prices change.
    """
    from genai_prices.data_snapshot import get_snapshot

    vendors = {seller.id: seller for seller in get_snapshot().providers}
    sellers = [vendor, *(vendors[vendor].fallback_model_providers or ())]
    by_name = {}
    for model in (model for seller in sellers for model in vendors[seller].models):
        # Not every model is priced by its own id: some vendors put a path before it.
        for name in (model.id, *_exact(model.match)):
            if (rates := rates_for(name, price=None, vendor=vendor, moment=moment)) is not None:
                by_name[name] = Published(model_id=name, rates=rates)
                break
    return tuple(by_name[name] for name in sorted(by_name))


def is_moving_alias(model_id: str) -> str | None:
    """Return why a name may mean another model tomorrow, and what to ask instead, or None."""
    if _LATEST.search(model_id):
        return f"{model_id} is always the newest model of its kind, so results over time are not comparable"
    if dated := _dated_names().get(model_id):
        return f"{model_id} may change over time; dated versions: {', '.join(dated)}"
    return None


def same_model(requested: str, served: str) -> bool:
    """Return whether two names mean one model; a dated name may answer for its undated one."""
    ours, theirs = _bare(requested), _bare(served)
    if ours == theirs:
        return True
    both_dated = _DATE.search(ours) is not None and _DATE.search(theirs) is not None
    return not both_dated and _undated(ours) == _undated(theirs)


def _bare(model_id: str) -> str:
    """Return a name without its vendor's (openai/) and in lower case."""
    return vendors_own(model_id).rsplit("/", 1)[-1].replace("@", "-").lower()


# As Amazon sells it: perhaps within an ARN, then where it is computed, and a version of the sale.
_SOLD: Final = re.compile(r"(?:arn:.*/)?(?:[a-z-]+\.)?anthropic\.(.+?)(?:-v\d+(?::\d+)?)?")


def vendors_own(model_id: str) -> str:
    """Return the name that a model has at its own vendor: us.anthropic.claude-opus-5-v1:0 → claude-opus-5."""
    sold = _SOLD.fullmatch(model_id)
    return sold[1] if sold else model_id


def _undated(model_id: str) -> str:
    return _LATEST.sub("", _DATE.sub("", model_id)) or model_id


@cache
def _dated_names() -> Mapping[str, tuple[str, ...]]:
    """Return the dated names of everything that has an undated one as well."""
    from genai_prices.data_snapshot import get_snapshot

    models = [model for vendor in get_snapshot().providers for model in vendor.models]
    names = {model.id for model in models} | {name for model in models for name in _exact(model.match)}
    dated_of: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        alias = _DATE.sub("", name)
        if alias != name and alias in names:
            dated_of[alias].append(name)
    return {alias: tuple(dated) for alias, dated in dated_of.items()} | {
        alias: (dated,) for alias, dated in _DATED_CLAUDE.items()
    }


def _exact(match: MatchLogic) -> Iterator[str]:
    """Yield the names that a rule of the price table spells out."""
    from genai_prices.types import ClauseEquals, ClauseOr

    if isinstance(match, ClauseEquals):
        yield match.equals
    elif isinstance(match, ClauseOr):
        for clause in match.or_:
            yield from _exact(clause)


# ── Prices of a sweep's models


# Tiers that a project's settings may stand on, by vendor: OpenAI's guide to priority processing, 2026-11.
_TIER_PARAMS: Final = ("service_tier", "serviceTier")  # Gemini reads either
_VERTEX_TIER: Final = "x-vertex-ai-llm-shared-request-type"  # a header, whose value is no word of the sweep
_SET_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {"openai": ("priority", "fast")}


def rates_of(model: Model) -> RatesAt:
    """Return a model's prices, as a function of the tier that served a call and its time."""
    return rates_at(model.model_id, price=model.price, vendor=vendor_of(model))


def vendor_of(model: Model) -> str | None:
    """Return the vendor in genai-prices whose prices hold, or None if only the sweep's own do."""
    endpoint = known_endpoints()[model.provider]
    # A server of somebody else's under a vendor's name charges what it likes.
    return endpoint.prices if endpoint.is_at(model.base_url) else None


def tier_asked(model: Model, condition: Condition) -> str | None:
    """Return the word for how a sweep wants its calls served, or None for the standard way.

    A batch has no other tier, whatever its requests or replies say.
    """
    params = {**model.params, **condition.params}
    tier = BATCH if model.mode == BATCH else _tier_named(model, params)
    return tier_of(tier, params)


def _tier_named(model: Model, params: Mapping[str, object]) -> str | None:
    if any(header.lower() == _VERTEX_TIER for header in model.headers):
        return "priority"  # the dearest of what the variable may hold
    tier = next(filter(None, map(params.get, _TIER_PARAMS)), None)
    return tier_word(tier) if isinstance(tier, str) and tier != "auto" else None


def tiers_set_elsewhere(model: Model, condition: Condition) -> tuple[str, ...]:
    """Return the tiers in which a call that names none may be served, as the vendor's project is set."""
    if model.mode == BATCH:
        return ()
    tier = _tier_named(model, {**model.params, **condition.params})
    return _SET_ELSEWHERE.get(vendor_of(model) or "", ()) if tier is None else ()


# ── Prices of routers, which choose who serves a call and at what price

# What is told is a little more than the price: their sums may end a digit above ours.
_MORE: Final = Decimal("1.001")
_TOLD: Final = ("prompt", "completion", "request")  # USD: of a million tokens, of a call
_PLACES: Final = Decimal("0.000001")  # of a price


def is_router(model: Model) -> bool:
    """Return whether a model's calls may be served at another price than the published one."""
    return known_endpoints()[model.provider].quirks.max_price is not None


def no_dearer(model: Model, rates: Collection[Rates]) -> Model:
    """Return a model of a router with the word that nobody may serve it who is dearer than these rates.

    A bracket's dearer tokens begin at its own count, at the upstream's too: its first price is what is told.
    """
    path = known_endpoints()[model.provider].quirks.max_price
    first = [rate.brackets[0] for rate in rates]
    ceiling = {
        "prompt": _a_little_more(max(bracket.input for bracket in first)),
        "completion": _a_little_more(max(bracket.output for bracket in first)),
        "request": 0.0,
    }
    return replace(model, budget_params=nest(path, ceiling))


def dearest(model: Model, condition: Condition) -> Price | None:
    """Return the highest price at which a router may serve a call, or None if it is told no price.

    What the sweep says in `params` goes before what a budget adds.
    """
    path = known_endpoints()[model.provider].quirks.max_price
    unsaid = merged_params(nest(path, dict.fromkeys(_TOLD, 0.0)), model.budget_params)
    ceiling: object = merged_params(unsaid, {**model.params, **condition.params})
    for name in (path or "").split("."):
        ceiling = ceiling.get(name) if isinstance(ceiling, Mapping) else None
    if not isinstance(ceiling, Mapping):
        return None
    prompt, completion, request = (
        float(price)
        if isinstance(price, int | float) and not isinstance(price, bool) and price >= 0
        else None
        for price in map(ceiling.get, _TOLD)
    )
    if prompt is None or completion is None or request != 0:
        return None
    return Price(input=prompt, output=completion)


def _a_little_more(usd: Decimal) -> float:
    return float((usd * _MORE).quantize(_PLACES, ROUND_CEILING))
