"""Costs of a run, and the rest of its budgets, in words; and phrases of those facts that apply."""

from collections.abc import Mapping

from asyncbench.engine.budget import Cap
from asyncbench.engine.telemetry import Counters
from asyncbench.pricing import dollars_of
from asyncbench.tables.numbers import at_least, dollars


def cost_text(counters: Counters) -> str:
    """Return the dollars spent so far, and the number of further calls whose cost is unknown."""
    if counters.unpriced == counters.attempts and counters.attempts:
        # Of attempts without a reply the cost is unknown even where the price is known.
        return f"cost unknown ({counters.lost:,} lost)" if counters.lost == counters.attempts else "unpriced"
    return _sum_text(counters.cost_usd, counters.unpriced)


def cost_in_all(counters: Counters) -> str | None:
    """Return the dollars of all runs, or None if earlier runs made no calls."""
    if not (counters.cost_before_usd or counters.unpriced_before):
        return None
    unknown = counters.unpriced + counters.unpriced_before
    return _sum_text(counters.cost_before_usd + counters.cost_usd, unknown)


def _sum_text(usd: float, unknown: int) -> str:
    if not unknown:
        return dollars(usd)
    calls = f"{unknown:,} {'call' if unknown == 1 else 'calls'} of unknown cost"
    return f"{at_least(dollars(usd), partial=unknown)} and {calls}" if usd else calls


def costs_text(counters: Counters) -> str:
    """Return the dollars of this run, and those of all runs where there were others."""
    in_all, now = cost_in_all(counters), cost_text(counters)
    if in_all is None:
        return now
    return f"{now} this run, {in_all} in all" if counters.attempts else f"{in_all} in all"


def cap_text(cap: Cap) -> str:
    """Return a cap's spending, the possible cost of calls whose cost is unknown, and the reserve."""
    spent, reserved, limit = map(dollars_of, (cap.spent, cap.reserved, cap.limit))
    return spent_text(
        cap.label,
        spent,
        limit,
        reserved_usd=reserved,
        doubted_usd=dollars_of(cap.doubted),
        doubted_calls=cap.doubted_calls,
    )


def spent_text(
    name: str,
    spent_usd: float,
    limit_usd: float,
    *,
    reserved_usd: float = 0.0,
    doubted_usd: float = 0.0,
    doubted_calls: int = 0,
) -> str:
    """Return how far a budget is spent.

    `reserved_usd` is set aside for calls in flight. `doubted_usd` is the part of `spent_usd` that
    `doubted_calls` calls of unknown cost could cost at most.
    """
    known_usd = max(0.0, spent_usd - doubted_usd)
    return phrases(
        {
            f"{name}: {dollars(known_usd)} of {dollars(limit_usd)} spent": True,
            f"up to {dollars(doubted_usd)} for {doubted_calls:,} calls of unknown cost": doubted_usd,
            f"{dollars(reserved_usd)} reserved for calls in flight": reserved_usd,
        }
    )


def phrases(applying: Mapping[str, object], *, by: str = ", ") -> str:
    """Join those phrases that apply, such as `{"2 failed": 2, "0 skipped": 0}`; empty ones are left out."""
    return by.join(phrase for phrase, applies in applying.items() if phrase and applies)
