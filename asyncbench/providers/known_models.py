"""What the price table (genai-prices, offline) knows of a vendor's models, and which names may move."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Final

from asyncbench.pricing import Rates, rates_for

if TYPE_CHECKING:  # 0.35 s to import: only when the table is read
    from genai_prices.types import MatchLogic

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


def published(vendor: str, *, at: datetime) -> tuple[Published, ...]:
    """Return the models that a vendor sells by tokens alone, its own and others', by name.

    Args:
        vendor: the provider's id in genai-prices.
        at: when, with its time zone: prices change.
    """
    from genai_prices.data_snapshot import get_snapshot

    vendors = {seller.id: seller for seller in get_snapshot().providers}
    sold = [vendors[vendor], *(vendors[other] for other in vendors[vendor].fallback_model_providers or ())]
    by_name = {}
    for model in (model for seller in sold for model in seller.models):
        # Not every model is priced by its own id: some vendors put a path before it.
        for name in (model.id, *_exact(model.match)):
            if (rates := rates_for(name, price=None, vendor=vendor, at=at)) is not None:
                by_name[name] = Published(model_id=name, rates=rates)
                break
    return tuple(by_name[name] for name in sorted(by_name))


def is_moving_alias(model_id: str) -> str | None:
    """Return why a name may mean another model tomorrow, and what to ask instead; None: no reason known."""
    if _LATEST.search(model_id):
        return f"{model_id} is always the newest model of its kind, so results over time are not comparable"
    if dated := _dated_names().get(model_id):
        return f"{model_id} may change over time; dated versions: {', '.join(dated)}"
    return None


def same_model(asked: str, served: str) -> bool:
    """Whether the name of who answered is the one asked; a dated name may answer for its undated one."""
    ours, theirs = _bare(asked), _bare(served)
    if ours == theirs:
        return True
    both_dated = _DATE.search(ours) is not None and _DATE.search(theirs) is not None
    return not both_dated and _undated(ours) == _undated(theirs)


def _bare(model_id: str) -> str:
    """Return a name without its vendor's (openai/) and in lower case."""
    return model_id.rsplit("/", 1)[-1].lower()


def _undated(model_id: str) -> str:
    return _LATEST.sub("", _DATE.sub("", model_id)) or model_id


@cache
def _dated_names() -> Mapping[str, tuple[str, ...]]:
    """Return the dated names of everything that has an undated one as well."""
    from genai_prices.data_snapshot import get_snapshot

    models = [model for vendor in get_snapshot().providers for model in vendor.models]
    names = {model.id for model in models} | {name for model in models for name in _exact(model.match)}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        alias = _DATE.sub("", name)
        if alias != name and alias in names:
            found[alias].append(name)
    return {alias: tuple(dated) for alias, dated in found.items()} | {
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
