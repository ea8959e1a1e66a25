"""What may be behind a gap: each cause with the amounts by which it could have moved the bill of a model.

A cause never is asserted. It closes a part of the gap at best, at the amount of it that fits best; of causes
that explain as much, the one that could have moved the bill least freely comes first.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from math import inf, isfinite
from typing import Final

from asyncbench.reports.reconciliation.our_costs import HALF_HOUR_S, HalfHours, Ours
from asyncbench.reports.reconciliation.reading import DUST, MEASURES, BillPair, by_model, share_of, together
from asyncbench.tables.numbers import dollars

WORTH_NAMING: Final = 0.01  # of the gap
MOST_NAMED: Final = 6  # models, days or columns that a line names
AGREE: Final = 0.01  # of a side: tokens that differ by no more are taken to be the same
SHIFTS_H: Final = [half / 2 for half in range(-24, 29)]  # from UTC: from the last zone to the first
Range = tuple[float, float]
Moves = Mapping[str, Sequence[Range]]  # by measure: the amounts by which it may move a bill
_TIMES: Final = "billed at {:.3f} times the cost recorded here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something that may be behind a gap."""

    name: str
    says: str  # what speaks for it
    share: float  # of the gap, what it can explain at most, 1 is all
    explains: Mapping[str, float] = field(default_factory=dict)  # by measure: signed, in its unit
    bound: float = 0.0  # how widely it could move a bill, as a part of the gap: a tight fit says more


# What speaks for each cause of `_moves`, in the words of `_words`.
_SAYS: Final = {
    "lost calls": "the end of {lost_calls:,} calls was never seen{lost_bounds}",
    "timed out or cut calls": (
        "{cut_calls:,} calls timed out or broke off, but may have been billed{cut_bounds}"
    ),
    "failed calls billed": "{free:,} calls failed and are counted as free here",
    "calls without a price here": "{priceless:,} answered calls have no price here, {tokenless:,} no tokens",
    "cached input at another rate": (
        "{cached_input:,} input tokens came from a cache; at the normal rate they would cost "
        "{cached_as_plain_usd} more{cached_there}"
    ),
    "cache writes at another rate": (
        "{cache_write:,} input tokens were written to a cache for {usd_written}; a cache of one hour would "
        "cost {written_1h_usd} more"
    ),
    "reasoning counted apart": (
        "{reasoning:,} output tokens ({usd_reasoning}) were reasoning: omitted there, or counted twice"
    ),
    "another service tier": "the same calls cost {usd} here; by the price table: {other_tiers}",
    "batches billed as calls in real time": (
        "{batched:,} requests were in batches; in real time they would cost {batched_as_realtime_usd} more"
    ),
    "batch discount": "the same calls cost {usd} here; by the price table: {batch}",
    "prices that changed": "the same calls cost {usd} here; by the price table: {today}",
    "calls outside this folder": "{elsewhere}",
    "another price than here": "the tokens agree, but the dollars do not. {prices}",
    "not in the export": (
        "the export has no line for {absent:,} calls (their day and model): it may end early or be late"
    ),
    "rounding": (
        "dollars have {decimals} decimals in the export: {lines:,} lines may be off by ${rounded} in all"
    ),
}
_NAMES_MODELS: Final = "another price than here"  # by itself
_OF_ANY_BILL: Final = "rounding"  # it need not be supposed
_OTHER_TIERS: Final = ("standard", "flex", "priority")


def likely_causes(
    days: Sequence[BillPair], halves: HalfHours, *, decimals: int, shift_h: float
) -> tuple[Cause, ...]:
    """Return what may explain the gaps, the likeliest first.

    Args:
        days: theirs and ours by model and day.
        halves: the folder's calls by model and half hour.
        decimals: the most that the bill's dollars are written with.
        shift_h: the zone of these days, in hours from UTC.
    """
    models, absent = by_model(days), defaultdict[str, Ours](Ours)
    for day in days:
        if not day.theirs.lines:
            absent[day.model].add(day.ours)
    moves = [_moves(pair, absent[pair.model], 0.5 * 10.0**-decimals) for pair in models]
    found = [_zone(days, halves, shift_h)]
    for name, says in _SAYS.items():
        cause, closed = _fitted(name, models, [of_model[name] for of_model in moves])
        if cause is not None and cause.share >= WORTH_NAMING:
            told = models if name == _OF_ANY_BILL else closed
            several = len(told) < len(models) and name != _NAMES_MODELS
            named = f"{listed([pair.model for pair in told])}: " if several else ""
            found.append(replace(cause, says=named + says.format(**_words(told, days, absent, decimals))))
    causes = [cause for cause in found if cause is not None]
    return tuple(sorted(causes, key=lambda cause: (-round(cause.share, 2), cause.bound)))


def _fitted(
    name: str, models: Sequence[BillPair], moves: Sequence[Moves]
) -> tuple[Cause | None, list[BillPair]]:
    """Return a cause with how much of the gaps it can explain, and the models whose gaps it closes.

    None where there is no gap.
    """
    shares, explains, bound, closes = list[float](), dict[str, float](), 0.0, set[str]()
    for measure in MEASURES:
        gaps = [pair.gap(measure) or 0.0 for pair in models]
        whole = sum(map(abs, gaps))
        if not whole:
            continue
        best = [_nearest(gap, ranges.get(measure, ())) for gap, ranges in zip(gaps, moves, strict=True)]
        closed = [abs(gap) - abs(gap - amount) for gap, (amount, _) in zip(gaps, best, strict=True)]
        shares.append(sum(closed) / whole)
        closes |= {
            p.model for p, amount in zip(models, closed, strict=True) if amount >= WORTH_NAMING * whole
        }
        if move := sum(amount for amount, _ in best):
            explains[measure] = move
        bound = max(bound, sum(width for _, width in best) / whole)
    if not shares:
        return None, []
    share = sum(shares) / len(shares)
    bound = -1.0 if name == _OF_ANY_BILL else bound
    cause = Cause(name=name, says="", share=share, explains=explains, bound=bound)
    return cause, [pair for pair in models if pair.model in closes] or [*models]


def _nearest(gap: float, ranges: Iterable[Range]) -> tuple[float, float]:
    """Return the amount within any of the ranges that is nearest to a gap, and how wide that range is."""
    moves = [(min(max(gap, low), high), high - low) for low, high in ranges]
    return min([(0.0, 0.0), *moves], key=lambda move: (round(abs(gap - move[0]), 9), move[1]))


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Return at most `MOST_NAMED` names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return between.join(names[:MOST_NAMED]) + more


# ── by how much a cause could move a bill ────────────────────────────────────────────────────


def _moves(pair: BillPair, absent: Ours, half_a_decimal: float) -> Mapping[str, Moves]:
    """Return the moves of each cause; `absent`: our calls of days that the bill has no line of."""
    ours, theirs = pair.ours, pair.theirs
    other_calls = theirs.requests is None or theirs.requests > ours.calls
    costs = {name: getattr(ours, f"{name}_usd") - ours.usd for name in (*_OTHER_TIERS, "batch", "today")}
    rounded = half_a_decimal * theirs.lines * (1 + 1e-9)
    reasoning, usd_reasoning = ours.reasoning, ours.usd_reasoning
    return {
        "lost calls": _unknown(ours, ours.lost_calls, ours.most_of("lost")),
        "timed out or cut calls": _unknown(ours, ours.cut_calls, ours.most_of("cut")),
        "failed calls billed": {
            "usd": _up_to(ours.free * ours.most_usd),
            "input_tokens": _up_to(ours.free * ours.most_input),
            "output": _up_to(ours.free * ours.most_output),
        },
        "calls without a price here": {
            "usd": _up_to(inf if ours.priceless or ours.tokenless else 0.0),
            "input_tokens": _up_to(inf if ours.tokenless else 0.0),
            "output": _up_to(inf if ours.tokenless else 0.0),
        },
        "cached input at another rate": {"usd": _cached(ours, theirs.cached_input)},
        "cache writes at another rate": {
            "usd": [(-ours.usd_written, ours.written_1h_usd)] if ours.cache_write else []
        },
        "reasoning counted apart": {
            "output": [*_point(reasoning), *_point(-reasoning)],
            "usd": [*_point(usd_reasoning), *_point(-usd_reasoning)],
        },
        "another service tier": {"usd": [move for name in _OTHER_TIERS for move in _point(costs[name])]},
        "batches billed as calls in real time": {"usd": _point(ours.batched_as_realtime_usd)},
        "batch discount": {"usd": _point(costs["batch"])},
        "prices that changed": {"usd": _point(costs["today"])},
        "calls outside this folder": dict.fromkeys(MEASURES, _up_to(inf if other_calls else 0.0)),
        "another price than here": {"usd": [(-ours.usd, inf)] if _tokens_agree(pair) else []},
        "not in the export": {measure: _point(-getattr(absent, measure)) for measure in MEASURES},
        "rounding": {"usd": [(-rounded, rounded)] if rounded else []},
    }


def _point(amount: float) -> list[Range]:
    return [(amount, amount)] if isfinite(amount) and amount else []


def _up_to(most: float) -> list[Range]:
    return [(0.0, most)] if most > 0 else []


def _unknown(ours: Ours, calls: int, most_usd: float) -> Moves:
    if not calls:
        return {}
    tokens = {"input_tokens": ours.most_input, "output": ours.most_output}
    return {"usd": _up_to(most_usd)} | {name: _up_to(calls * most or inf) for name, most in tokens.items()}


def _cached(ours: Ours, told: int | None) -> list[Range]:
    """Return what cached input could move: from free of charge to the price of any other input."""
    if not ours.cached_input:
        return _point(ours.cached_as_plain_usd)
    if told is not None and told != ours.cached_input:
        return _point((ours.cached_input - told) * ours.cached_as_plain_usd / ours.cached_input)
    return [*_point(ours.cached_as_plain_usd), (-ours.usd_cached, ours.cached_as_plain_usd)]


def _tokens_agree(pair: BillPair) -> bool:
    told = [name for name in ("input_tokens", "output") if getattr(pair.theirs, name) is not None]
    return bool(told) and all(
        share_of(pair.gap(name) or 0.0, getattr(pair.theirs, name), getattr(pair.ours, name)) <= AGREE
        for name in told
    )


# ── what speaks for a cause ──────────────────────────────────────────────────────────────────


def _words(
    models: Sequence[BillPair], days: Sequence[BillPair], absent: Mapping[str, Ours], decimals: int
) -> dict[str, object]:
    """Return what there is to tell of some models, by name: sums of ours, dollars as they are written."""
    whole = together(models, model="all")
    ours, there = whole.ours, whole.theirs.cached_input
    sums = {name: dollars(sum_) if "usd" in name else sum_ for name, sum_ in asdict(ours).items()}
    beyond = sum(max(0, (pair.theirs.requests or 0) - pair.ours.calls) for pair in models)
    elsewhere = f"the bill counts {beyond:,} more calls than this folder"
    unsupported = "the bill is higher; other programs may use the same key, or other folders"
    return sums | {
        "lost_bounds": _bounds(ours.lost_calls, ours.lost_unbounded, ours.lost_bound_usd),
        "cut_bounds": _bounds(ours.cut_calls, ours.cut_unbounded, ours.cut_bound_usd),
        "cached_there": "" if there is None else f"; the bill counts {there:,}",
        "other_tiers": _by_table(ours, _OTHER_TIERS),
        "batch": _by_table(ours, ["batch"]),
        "today": _by_table(ours, ["today"]),
        "elsewhere": elsewhere if beyond else unsupported,
        "prices": _prices(models, days),
        "absent": sum(absent[pair.model].calls for pair in models),
        "decimals": decimals,
        "lines": whole.theirs.lines,
        "rounded": f"{0.5 * 10.0**-decimals * whole.theirs.lines:.{decimals + 1}f}",
    }


def _bounds(calls: int, unbounded: int, bound_usd: float) -> str:
    bounded = f"; {calls - unbounded:,} of them cost at most {dollars(bound_usd)} in all"
    dearest = f"; {unbounded:,} count at most as much as the dearest answered call"
    return (bounded if calls > unbounded else "") + (dearest if unbounded else "")


def _by_table(ours: Ours, names: Iterable[str]) -> str:
    costs = {name: getattr(ours, f"{name}_usd") for name in names}
    return ", ".join(f"{name} {dollars(cost)}" for name, cost in costs.items() if isfinite(cost)) or "in part"


def _prices(models: Sequence[BillPair], days: Sequence[BillPair]) -> str:
    """Return whose bill is how much dearer: the model's, or days of it where not all are alike."""
    whose: defaultdict[str, list[str]] = defaultdict(list)
    for pair in models:
        of_model = [day for day in days if day.model == pair.model]
        known = [day for day in of_model if day.day and day.ours.usd and _tokens_agree(day)]
        times = [(day.theirs.usd or 0.0) / day.ours.usd for day in known]
        if len(known) == len(of_model) and max(times, default=0.0) - min(times, default=0.0) > AGREE:
            for day, factor in zip(known, times, strict=True):
                if abs(factor - 1) > AGREE / 2:
                    whose[_TIMES.format(factor)].append(f"{pair.model} on {day.day}")
        elif pair.ours.usd:
            whose[_TIMES.format((pair.theirs.usd or 0.0) / pair.ours.usd)].append(pair.model)
        else:
            whose["billed, but free here"].append(pair.model)
    return listed([f"{listed(those)}: {times}" for times, those in whose.items()], "; ")


# ── days of another time zone ────────────────────────────────────────────────────────────────


def _zone(pairs: Sequence[BillPair], halves: HalfHours, shift_h: float) -> Cause | None:
    """Return the time zone in which the days fit the bill best; None where they do in this one."""
    told = [name for name in MEASURES if any(pair.gap(name) is not None for pair in pairs)]
    if not told or any(pair.day is None for pair in pairs) or not halves:
        return None
    measure = told[0]
    theirs: defaultdict[tuple[str, date | None], float] = defaultdict(float)
    for pair in pairs:
        theirs[pair.model, pair.day] += getattr(pair.theirs, measure) or 0

    def left(shift: float) -> float:
        """Return what differs by day if days begin so many hours from UTC."""
        gaps = theirs.copy()
        for (model, half), ours in halves.items():
            at_s = half * HALF_HOUR_S + shift * 3600
            gaps[model, datetime.fromtimestamp(at_s, UTC).date()] -= getattr(ours, measure)
        return sum(map(abs, gaps.values()))

    by_shift = {shift: left(shift) for shift in {*SHIFTS_H, shift_h}}
    # Few zones are not whole hours from UTC.
    best = min(by_shift, key=lambda shift: (round(by_shift[shift], 9), shift % 1, abs(shift - shift_h)))
    now = by_shift[shift_h]
    share = (now - by_shift[best]) / now if now > DUST else 0.0
    if best == shift_h or share < WORTH_NAMING:
        return None
    said = f"with days of UTC{best:+g} h, the gaps by day shrink by {share:.0%} (use --utc-offset {best:g})"
    return Cause(name="time zone of the day", says=said, share=share)
