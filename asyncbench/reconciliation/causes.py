"""What may be behind a gap between a bill and a folder: likely causes, ranked, and never more than that.

A cause says by how much it would move a bill: by certain amounts, or by anything up to a bound. It can
explain as much of a gap as goes away when it moves the bill by the amount that fits best. Of causes that
explain as much, the one that could have moved the bill least freely comes first.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Final

from asyncbench.reconciliation.gaps import MEASURES, BillPair, share_of
from asyncbench.reconciliation.our_costs import TIERS, Ours, UnpricedCalls, most_of
from asyncbench.shown import dollars

WORTH_NAMING: Final = 0.01  # of the gap
MOST_NAMED: Final = 6  # models, days or columns that a line names
AGREE: Final = 0.01  # of a side: tokens that differ by no more are taken to be the same
Range = tuple[float, float]
Moves = Mapping[str, Sequence[Range]]  # by measure: the amounts by which it may move a bill


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something that may be behind a gap."""

    name: str
    says: str  # what speaks for it
    share: float  # of the gap, what it can explain at most, 1 is all
    explains: Mapping[str, float] = field(default_factory=dict)  # by measure: signed, in its unit
    bound: float = 0.0  # how widely it could move a bill, as a part of the gap: a tight fit says more


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of cause: how it could move the bill of a model, and what speaks for it over all of them."""

    name: str
    moves: Callable[[BillPair], Moves]
    says: Callable[[Sequence[BillPair]], str]
    always: bool = False  # of any bill: it need not be supposed
    names: bool = True  # whose models are told before what it says, where they are not all


def likely_causes(models: Sequence[BillPair], days: Sequence[BillPair], *, decimals: int) -> list[Cause]:
    """Return what may explain the gaps, the likeliest first.

    Args:
        models: each model over all days.
        days: the same by day.
        decimals: the most that the bill's dollars are written with.
    """
    kinds = [*_KINDS, _another_price(days), _missing(days), _rounding(decimals)]
    found = [_cause(kind, models) for kind in kinds]
    worth = [one for one in found if one is not None and one.share >= WORTH_NAMING]
    return sorted(worth, key=lambda one: (-round(one.share, 2), one.bound))


def _cause(kind: _Kind, models: Sequence[BillPair]) -> Cause | None:
    """Return a kind of cause with how much of the gaps it can explain; None where there is no gap."""
    shares, explains, bound, closes = list[float](), dict[str, float](), 0.0, set[str]()
    moves = [(pair, kind.moves(pair)) for pair in models]
    for measure in MEASURES:
        gaps = [(pair.gap(measure) or 0.0, ranges.get(measure, ())) for pair, ranges in moves]
        whole = sum(abs(gap) for gap, _ in gaps)
        if not whole:
            continue
        best = [_nearest(gap, ranges) for gap, ranges in gaps]
        closed = [abs(gap) - abs(gap - move) for (gap, _), (move, _) in zip(gaps, best, strict=True)]
        shares.append(sum(closed) / whole)
        closes |= {
            pair.model for pair, amount in zip(models, closed, strict=True) if amount >= WORTH_NAMING * whole
        }
        if move := sum(move for move, _ in best):
            explains[measure] = move
        bound = max(bound, sum(width for _, width in best) / whole)
    if not shares:
        return None
    share = sum(shares) / len(shares)
    told = _said(kind, models, closes) if share >= WORTH_NAMING else ""
    return Cause(
        name=kind.name, says=told, share=share, explains=explains, bound=-1.0 if kind.always else bound
    )


def _said(kind: _Kind, models: Sequence[BillPair], closes: Collection[str]) -> str:
    """Return what speaks for a cause in the models whose gaps it closes, named if there are others."""
    those = [pair for pair in models if pair.model in closes]
    if kind.always or not those:
        return kind.says(models)
    named = f"{listed([pair.model for pair in those])}: " if kind.names and len(those) < len(models) else ""
    return named + kind.says(those)


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Return at most `MOST_NAMED` names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return between.join(names[:MOST_NAMED]) + more


def _nearest(gap: float, ranges: Iterable[Range]) -> tuple[float, float]:
    """Return the amount within any of the ranges that is nearest to a gap, and how wide that range is."""
    moves = [(min(max(gap, low), high), high - low) for low, high in ranges]
    return min([(0.0, 0.0), *moves], key=lambda move: (round(abs(gap - move[0]), 9), move[1]))


def _point(amount: float) -> list[Range]:
    return [(amount, amount)] if isfinite(amount) and amount else []


def _up_to(most: float) -> list[Range]:
    return [(0.0, most)] if most > 0 else []


# ── calls that a folder knows too little of ──────────────────────────────────────────────────


def _of_unknown(unknown: UnpricedCalls, ours: Ours) -> Moves:
    calls = unknown.calls
    if not calls:
        return {}
    return {
        "usd": _up_to(most_of(unknown, ours)),
        "input_tokens": _up_to(calls * ours.most_input or inf),
        "output": _up_to(calls * ours.most_output or inf),
    }


def _unknown_text(what: str, of: Callable[[Ours], UnpricedCalls]) -> Callable[[Sequence[BillPair]], str]:
    def says(models: Sequence[BillPair]) -> str:
        whole = UnpricedCalls()
        for pair in models:
            whole.add(of(pair.ours))
        said = f"{whole.calls:,} calls {what}"
        if whole.calls > whole.unbounded:
            said += (
                f"; {whole.calls - whole.unbounded:,} of them at most {dollars(whole.reserved_usd)} together"
            )
        if whole.unbounded:
            said += f"; {whole.unbounded:,} are reckoned at most as the dearest answered call"
        return said

    return says


def _free(pair: BillPair) -> Moves:
    n, ours = pair.ours.free, pair.ours
    usd, tokens = n * ours.most_usd, (n * ours.most_input, n * ours.most_output)
    return {"usd": _up_to(usd), "input_tokens": _up_to(tokens[0]), "output": _up_to(tokens[1])}


def _priceless(pair: BillPair) -> Moves:
    ours = pair.ours
    tokens = _up_to(inf) if ours.tokenless else []
    priced = _up_to(inf) if ours.priceless or ours.tokenless else []
    return {"usd": priced, "input_tokens": tokens, "output": tokens}


def _elsewhere(pair: BillPair) -> Moves:
    """Return what calls of others could add: anything, but where the bill counts no more calls than we do."""
    requests = pair.theirs.requests
    if requests is not None and requests <= pair.ours.calls:
        return {}
    return dict.fromkeys(MEASURES, _up_to(inf))


def _elsewhere_text(models: Sequence[BillPair]) -> str:
    beyond = sum(max(0, (pair.theirs.requests or 0) - pair.ours.calls) for pair in models)
    if beyond:
        return f"the bill counts {beyond:,} calls more than were made here"
    return "nothing speaks for it but that the bill is higher: other work with the same key, or other folders"


def _missing(days: Sequence[BillPair]) -> _Kind:
    """Return the cause that days are not, or not yet, in the export."""
    absent = [pair for pair in days if not pair.theirs.lines]

    def moves(model: BillPair) -> Moves:
        gone = [pair for pair in absent if pair.model == model.model]
        return {name: _point(-sum(getattr(pair.ours, name) for pair in gone)) for name in MEASURES}

    def says(models: Sequence[BillPair]) -> str:
        named = {model.model for model in models}
        calls = sum(pair.ours.calls for pair in absent if pair.model in named)
        return f"{calls:,} calls are of days and models without a line in it: it may end early, or be late"

    return _Kind("not in the export", moves, says)


# ── the same tokens at other rates ───────────────────────────────────────────────────────────


def _cached(pair: BillPair) -> Moves:
    """Return what cached input could move: from free of charge to the price of any other input."""
    ours, told = pair.ours, pair.theirs.cached_input
    if told is not None and told != ours.cached_input and ours.cached_input:
        a_token = ours.cached_as_plain_usd / ours.cached_input
        return {"usd": _point((ours.cached_input - told) * a_token)}
    ranges = [(-ours.usd_cached, ours.cached_as_plain_usd)] if ours.cached_input else []
    return {"usd": [*_point(ours.cached_as_plain_usd), *ranges]}


def _cached_text(models: Sequence[BillPair]) -> str:
    tokens = sum(pair.ours.cached_input for pair in models)
    told = [pair.theirs.cached_input for pair in models if pair.theirs.cached_input is not None]
    more = sum(pair.ours.cached_as_plain_usd for pair in models)
    said = f"{tokens:,} input tokens came from caches; as other input they would cost {dollars(more)} more"
    return f"{said}; the bill counts {sum(told):,}" if told else said


def _written(pair: BillPair) -> Moves:
    ours = pair.ours
    return {"usd": [(-ours.usd_written, ours.written_1h_usd)] if ours.cache_write else []}


def _written_text(models: Sequence[BillPair]) -> str:
    tokens = sum(pair.ours.cache_write for pair in models)
    usd, more = (
        sum(getattr(pair.ours, name) for pair in models) for name in ("usd_written", "written_1h_usd")
    )
    return (
        f"{tokens:,} input tokens were written to caches for {dollars(usd)}; kept for an hour, they would "
        f"cost {dollars(more)} more"
    )


def _reasoning(pair: BillPair) -> Moves:
    tokens, usd = pair.ours.reasoning, pair.ours.usd_reasoning
    return {"output": [*_point(tokens), *_point(-tokens)], "usd": [*_point(usd), *_point(-usd)]}


def _reasoning_text(models: Sequence[BillPair]) -> str:
    tokens = sum(pair.ours.reasoning for pair in models)
    usd = sum(pair.ours.usd_reasoning for pair in models)
    return f"{tokens:,} output tokens ({dollars(usd)}) were reasoning: left out there, or counted once more"


def _otherwise(*names: str) -> Callable[[BillPair], Moves]:
    def moves(pair: BillPair) -> Moves:
        costs = (pair.ours.otherwise_usd.get(name, inf) - pair.ours.usd for name in names)
        return {"usd": [one for cost in costs for one in _point(cost)]}

    return moves


def _otherwise_text(*names: str) -> Callable[[Sequence[BillPair]], str]:
    def says(models: Sequence[BillPair]) -> str:
        costs = {name: sum(pair.ours.otherwise_usd.get(name, inf) for pair in models) for name in names}
        known = [f"{name} {dollars(cost)}" for name, cost in costs.items() if isfinite(cost)]
        ours = sum(pair.ours.usd for pair in models)
        return (
            f"the same calls cost {dollars(ours)} here; by the price table: {', '.join(known) or 'in part'}"
        )

    return says


def _other_price(pair: BillPair) -> Moves:
    """Return any move of dollars where the tokens agree: then their prices do not."""
    told = [name for name in ("input_tokens", "output") if getattr(pair.theirs, name) is not None]
    agree = all(
        share_of(pair.gap(name) or 0.0, getattr(pair.theirs, name), getattr(pair.ours, name)) <= AGREE
        for name in told
    )
    return {"usd": [(-pair.ours.usd, inf)]} if told and agree else {}


_TIMES: Final = "billed at {:.3f} times what was reckoned here"


def _another_price(days: Sequence[BillPair]) -> _Kind:
    """Return the cause that models have another price there: each is named, by day where days differ."""

    def says(models: Sequence[BillPair]) -> str:
        whose: defaultdict[str, list[str]] = defaultdict(list)
        for pair in models:
            for who, times in _billed_at(pair, [day for day in days if day.model == pair.model]):
                whose[times].append(who)
        told = [f"{listed(those)}: {times}" for times, those in whose.items()]
        return f"the tokens agree and the dollars do not. {listed(told, '; ')}"

    return _Kind("another price than here", _other_price, says, names=False)


def _billed_at(model: BillPair, days: Sequence[BillPair]) -> Iterator[tuple[str, str]]:
    """Yield whom and how dear the bill is: the model, or days of it where not all are alike."""
    known = [day for day in days if day.day and day.ours.usd and _other_price(day)]
    times = [(day.theirs.usd or 0.0) / day.ours.usd for day in known]
    if len(known) == len(days) and max(times, default=0.0) - min(times, default=0.0) > AGREE:
        for day, one in zip(known, times, strict=True):
            if abs(one - 1) > AGREE / 2:
                yield f"{model.model} on {day.day}", _TIMES.format(one)
    elif model.ours.usd:
        yield model.model, _TIMES.format((model.theirs.usd or 0.0) / model.ours.usd)
    else:
        yield model.model, "billed, and reckoned here at nothing"


def _rounding(decimals: int) -> _Kind:
    """Return the cause that each line of the bill is rounded to its last decimal."""
    half = 0.5 * 10.0**-decimals

    def moves(pair: BillPair) -> Moves:
        most = half * pair.theirs.lines * (1 + 1e-9)
        return {"usd": [(-most, most)] if most else []}

    def says(models: Sequence[BillPair]) -> str:
        lines = sum(pair.theirs.lines for pair in models)
        most = f"{half * lines:.{decimals + 1}f}"
        return f"dollars are written with {decimals} decimals: {lines:,} lines may be off by ${most} together"

    return _Kind("rounding", moves, says, always=True)


_KINDS: Final = (
    _Kind(
        "lost calls",
        lambda pair: _of_unknown(pair.ours.lost, pair.ours),
        _unknown_text("ended unseen", lambda ours: ours.lost),
    ),
    _Kind(
        "timed out or cut calls",
        lambda pair: _of_unknown(pair.ours.cut, pair.ours),
        _unknown_text("timed out or broke off, and may have been billed", lambda ours: ours.cut),
    ),
    _Kind(
        "failed calls billed",
        _free,
        lambda models: (
            f"{sum(pair.ours.free for pair in models):,} calls failed and are taken here to be free"
        ),
    ),
    _Kind(
        "calls without a price here",
        _priceless,
        lambda models: (
            f"{sum(pair.ours.priceless for pair in models):,} answered calls have no price here, "
            f"{sum(pair.ours.tokenless for pair in models):,} no tokens"
        ),
    ),
    _Kind("cached input at another rate", _cached, _cached_text),
    _Kind("cache writes at another rate", _written, _written_text),
    _Kind("reasoning counted apart", _reasoning, _reasoning_text),
    _Kind(
        "another service tier",
        _otherwise(*(one for one in TIERS if one != "batch")),
        _otherwise_text(*(one for one in TIERS if one != "batch")),
    ),
    _Kind("batch discount", _otherwise("batch"), _otherwise_text("batch")),
    _Kind("prices that changed", _otherwise("today"), _otherwise_text("today")),
    _Kind("calls outside this folder", _elsewhere, _elsewhere_text),
)
