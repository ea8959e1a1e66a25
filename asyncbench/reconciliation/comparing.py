"""`reconcile`: a results folder beside a provider's usage export, the gaps, and what may be behind them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from asyncbench.errors import ConfigError
from asyncbench.reconciliation.causes import Cause, likely_causes, listed
from asyncbench.reconciliation.gaps import MEASURES, BillPair, BillSide, added, share_of, together
from asyncbench.reconciliation.matching import aliases_of, matched
from asyncbench.reconciliation.our_costs import BillNames, Ours, Used, of_provider, providers_of, used
from asyncbench.reconciliation.reading import Export, Told, read_export
from asyncbench.reconciliation.zones import zone_cause
from asyncbench.reports import fine
from asyncbench.results import calls_of
from asyncbench.shown import SIMULATED, Report, Sheet

TOLERANCE: Final = 0.01  # of the larger side
ALL_MODELS: Final = "all models"
NO_MODEL: Final = "(no model named)"
NEVER_ASKED: Final = "never asked here"
NOT_THEIRS: Final = "asked here, but the file names no model of its provider"
OTHER_DAYS: Final = "no call of this folder within a day of it"
NOT_CERTAIN: Final = "What may explain the gap, the likeliest first; none of it is certain"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What is not compared: lines of the export, or calls of the folder."""

    model: str
    why: str
    told: BillSide


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled(Report):
    """A folder beside a bill."""

    folder: str
    file: str
    simulated: bool
    export: Export
    utc_offset_h: float  # whose days they are
    tolerance: float
    days: tuple[BillPair, ...]  # by model and day
    models: tuple[BillPair, ...]  # each over all days
    left_out: tuple[LeftOut, ...]
    causes: tuple[Cause, ...]

    @property
    def whole(self) -> BillPair:
        """All models over all days."""
        return together(self.models, model="all")

    def gap_share(self, measure: str) -> float | None:
        """The gap in dollars or tokens as a part of the larger side; None where the bill does not say.

        The largest of the whole's and each model's, all as parts of the whole: gaps of two models do not
        cancel out, and days do, for a call near midnight may be billed on either.
        """
        whole = self.whole
        theirs = getattr(whole.theirs, measure)
        if theirs is None:
            return None
        gaps = [pair.gap(measure) or 0.0 for pair in (whole, *self.models)]
        return max(share_of(gap, theirs, getattr(whole.ours, measure)) for gap in gaps)

    @property
    def close(self) -> bool:
        """Whether no gap is above the tolerance."""
        shares = [self.gap_share(measure) for measure in MEASURES]
        return all(share is None or share <= self.tolerance for share in shares)

    def _data(self) -> dict[str, object]:
        told = {"folder": self.folder, "file": self.file, "simulated": self.simulated}
        told |= {"format": self.export.format, "verified": self.export.verified}
        told |= {"columns": self.export.columns, "unread": self.export.unread}
        told |= {"utc_offset_h": self.utc_offset_h, "tolerance": self.tolerance, "close": self.close}
        causes = [
            {"name": one.name, "says": one.says, "share": one.share, "explains": dict(one.explains)}
            for one in self.causes
        ]
        left = [{"model": one.model, "why": one.why, **_side(one.told)} for one in self.left_out]
        return (
            told
            | {"gap_shares": {measure: self.gap_share(measure) for measure in MEASURES}}
            | {"whole": _as_mapping(self.whole)}
            | {"models": [*map(_as_mapping, self.models)], "days": [*map(_as_mapping, self.days)]}
            | {"left_out": left, "causes": causes}
        )

    def _notes(self) -> Iterator[str]:
        if self.simulated:
            yield SIMULATED
        yield from _read_as(self.export)
        zone = f"UTC{self.utc_offset_h:+g} h" if self.utc_offset_h else "UTC"
        yield f"Days are those of {zone}, by when a call began. Gaps are what the file has beyond the folder."
        yield self._verdict()

    def _verdict(self) -> str:
        told = [
            f"{name} {share:.2%}"
            for measure, name in MEASURES.items()
            if (share := self.gap_share(measure)) is not None
        ]
        judged = "within" if self.close else "ABOVE"
        left = sum(one.told.usd or 0.0 for one in self.left_out if one.why != NOT_THEIRS)  # of the bill
        aside = f" {_shown('usd', left)} of the file are not compared." if left else ""
        return (
            f"Gap as a part of the whole: {', '.join(told)}: {judged} the tolerance of {self.tolerance:.2%}."
            f"{aside}"
        )

    def _sheets(self) -> Iterator[Sheet]:
        several = [self.whole] if len(self.models) > 1 else []
        yield _pairs("By model", [*self.models, *several], by_day=False)
        if any(pair.day for pair in self.days):
            yield _pairs("By day", self.days, by_day=True)
        if self.causes:
            yield _causes(self.causes)
        if self.left_out:
            yield _left_out(self.left_out)


def reconcile(
    file: Path | str,
    folder: Path | str,
    *,
    columns: str | None = None,
    models: Collection[str] = (),
    provider: str | None = None,
    utc_offset_h: float = 0.0,
    tolerance: float = TOLERANCE,
    now: datetime | None = None,
) -> Reconciled:
    """Hold a results folder against a provider's usage export; nothing is changed.

    Models are matched by the name that answered, the one asked for, or the alias, dated or not. What the
    file has of models that were never asked here, or of days more than one from any call, is left out; so
    are the models of the folder whose provider has none in the file.

    Args:
        file: the export, CSV or JSON.
        folder: the results folder.
        columns: which column holds what: `day=date,model=model_id,cost=amount_usd`; None: as is known.
        models: `NAME=ALIAS`: what a model of the folder is called in the file.
        provider: only this one's calls; None: those of all that the file names models of.
        utc_offset_h: hours east of UTC in which the file's days begin.
        tolerance: the gap above which they do not agree, as a part of the whole.
        now: whose prices are today's; None: now.

    Raises:
        ConfigError: the file cannot be read or compared; names line, column, value and way out.
        StoreError: what the folder holds cannot be read.
    """
    export = read_export(Path(file), columns=columns, shift_h=utc_offset_h)
    calls = calls_of(Path(folder))
    calls = of_provider(calls, provider) if provider else calls
    found = used(calls, now=now or datetime.now(UTC), shift_h=utc_offset_h)
    if not found:
        raise ConfigError(f"{folder} holds no calls: there is nothing to compare {file} with")
    names = _names(
        {one for one, _ in found}, export, aliases_of(models), providers_of(calls), place=str(file)
    )
    lines, left_out = _compared(export, names, {day for _, day in found})
    left_out += _of_others(found, names)
    days = _paired(lines, found, names, dated="day" in export.kinds)
    by_model = _by_model(days)
    if not lines or all(pair.gap(measure) is None for pair in by_model for measure in MEASURES):
        raise ConfigError(_nothing_compared(file, folder, export, found))
    causes = likely_causes(by_model, days, decimals=export.decimals)
    zone = zone_cause(calls, days, names.ours, shift_h=utc_offset_h)
    return Reconciled(
        folder=str(folder),
        file=str(file),
        simulated=calls.simulated,
        export=export,
        utc_offset_h=utc_offset_h,
        tolerance=tolerance,
        days=tuple(days),
        models=tuple(by_model),
        left_out=tuple(left_out),
        causes=_ranked(causes, zone),
    )


def _nothing_compared(file: Path | str, folder: Path | str, export: Export, found: Used) -> str:
    theirs = _period(line.day for line in export.lines)
    return (
        f"{file}: nothing in it can be compared: it tells of {theirs}, and the calls of {folder} are of "
        f"{_period(day for _, day in found)}. Export those days with dollars or tokens, or say with --model "
        f"and --columns what is what"
    )


def _period(days: Iterable[date | None]) -> str:
    known = sorted({day for day in days if day is not None})
    return f"{known[0]} to {known[-1]}" if known else "no day"


def _ranked(causes: Sequence[Cause], zone: Cause | None) -> tuple[Cause, ...]:
    found = [*causes, zone] if zone else [*causes]
    return tuple(sorted(found, key=lambda one: (-round(one.share, 2), one.bound)))


# ── which of theirs is which of ours ─────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """What each model is called in the comparison."""

    theirs: Mapping[str | None, str]  # by its name in the file; who is missing was never asked here
    ours: Mapping[BillNames, str]


def _names(
    asked: set[BillNames],
    export: Export,
    aliases: Mapping[str, str],
    providers: Mapping[str, str],
    *,
    place: str,
) -> _Names:
    told = {line.model for line in export.lines if line.model}
    if not told:
        if aliases:
            raise ConfigError(f"--model: {place} names no models; leave it out, and days alone are compared")
        return _Names(theirs={None: ALL_MODELS}, ours=dict.fromkeys(asked, ALL_MODELS))
    ours = matched(asked, told, aliases, place=place)
    if not ours:
        here = ", ".join(sorted({repr(one.model_id or one.alias) for one in asked}))
        there = ", ".join(map(repr, sorted(told)))
        raise ConfigError(
            f"{place}: none of its models was asked here. Say which is which with --model NAME=ALIAS; the "
            f"file has: {there}; the folder has: {here}"
        )
    theirs: dict[str | None, str] = {name: aliases.get(name, name) for name in {*ours.values(), *aliases}}
    billing = {providers[one.alias] for one in ours}
    alone = {one: one.model_id or one.alias for one in asked - ours.keys() if providers[one.alias] in billing}
    return _Names(theirs=theirs, ours={one: theirs[name] for one, name in ours.items()} | alone)


def _of_others(found: Used, names: _Names) -> list[LeftOut]:
    """Return the calls of providers that the file is not of, by alias."""
    sums: defaultdict[str, Ours] = defaultdict(Ours.none)
    for (asked, _), one in found.items():
        if asked not in names.ours:
            sums[asked.alias].add(one)
    return [
        LeftOut(
            model=alias,
            why=NOT_THEIRS,
            told=BillSide(usd=one.usd, input_tokens=one.input_tokens, output=one.output),
        )
        for alias, one in sorted(sums.items())
    ]


def _compared(
    export: Export, names: _Names, days: Collection[date]
) -> tuple[dict[tuple[str, date | None], list[Told]], list[LeftOut]]:
    """Return the lines of the export by model and day, and those that are left out."""
    near = {day + timedelta(days=by) for day in days for by in (-1, 0, 1)}
    lines: defaultdict[tuple[str, date | None], list[Told]] = defaultdict(list)
    others: defaultdict[tuple[str, str], list[Told]] = defaultdict(list)
    for line in export.lines:
        model = names.theirs.get(line.model)
        if model is None:
            others[line.model or NO_MODEL, NEVER_ASKED].append(line)
        elif line.day is not None and line.day not in near:
            others[model, OTHER_DAYS].append(line)
        else:
            lines[model, line.day].append(line)
    left = [LeftOut(model=m, why=why, told=_told(many)) for (m, why), many in sorted(others.items())]
    return dict(lines), left


def _told(lines: Iterable[Told]) -> BillSide:
    return added(
        BillSide(
            usd=None if line.usd is None else float(line.usd),
            input_tokens=line.input_tokens,
            output=line.output,
            cached_input=line.cached_input,
            requests=line.requests,
            lines=1,
        )
        for line in lines
    )


def _paired(
    lines: Mapping[tuple[str, date | None], Sequence[Told]], found: Used, names: _Names, *, dated: bool
) -> list[BillPair]:
    """Return theirs and ours by model and day; a day that either has not is 0 there, where it is told."""
    ours: defaultdict[tuple[str, date | None], Ours] = defaultdict(Ours.none)
    for (asked, day), one in found.items():
        if asked in names.ours:
            ours[names.ours[asked], day if dated else None].add(one)
    sides = {key: _told(many) for key, many in lines.items()}
    nothing = _nothing(sides.values())
    keys = sorted({*ours, *sides}, key=lambda key: (key[1] or date.min, key[0]))
    return [
        BillPair(model=key[0], day=key[1], theirs=_filled(sides.get(key), nothing), ours=ours[key])
        for key in keys
    ]


def _nothing(sides: Iterable[BillSide]) -> BillSide:
    """Return 0 for all that the export tells of any."""
    whole = added(sides)
    told = {name: 0 for name in BillSide.__slots__ if getattr(whole, name) is not None}
    return BillSide(**told)


def _filled(side: BillSide | None, nothing: BillSide) -> BillSide:
    if side is None:
        return replace(nothing, lines=0)
    empty = {name: getattr(nothing, name) for name in BillSide.__slots__ if getattr(side, name) is None}
    return replace(side, **empty)


def _by_model(days: Iterable[BillPair]) -> list[BillPair]:
    models: defaultdict[str, list[BillPair]] = defaultdict(list)
    for pair in days:
        models[pair.model].append(pair)
    return [together(many, model=model) for model, many in sorted(models.items())]


# ── how it is shown ──────────────────────────────────────────────────────────────────────────


def _read_as(export: Export) -> Iterator[str]:
    """Yield what the file is taken to be; of one that no provider is known to write, column by column."""
    if export.verified:
        yield f"The file is read as: {export.format} ({export.verified})."
        return
    read = ", ".join(f"{kind} from {' + '.join(names)}" for kind, names in export.columns.items())
    yield f"The file is read as: {export.format}: {read}. No provider documents such a file, so check that."
    if export.unread:
        yield f"Not read: {listed(export.unread)}; use --columns where one of them counts."


def _side(side: BillSide) -> dict[str, object]:
    return {name: getattr(side, name) for name in (*MEASURES, "cached_input", "requests", "lines")}


def _as_mapping(pair: BillPair) -> dict[str, object]:
    ours = {name: getattr(pair.ours, name) for name in (*MEASURES, "cached_input", "reasoning", "calls")}
    unknown = {"lost": pair.ours.lost.calls, "cut": pair.ours.cut.calls, "priceless": pair.ours.priceless}
    return {
        "model": pair.model,
        "day": pair.day.isoformat() if pair.day else None,
        "theirs": _side(pair.theirs),
        "ours": ours | {"unknown_calls": unknown},
        "gap": {measure: pair.gap(measure) for measure in MEASURES},
    }


def _pairs(title: str, pairs: Sequence[BillPair], *, by_day: bool) -> Sheet:
    told = [measure for measure in MEASURES if any(pair.gap(measure) is not None for pair in pairs)]
    head = [*(["day"] if by_day else []), "model", "calls"]
    for measure in told:
        name = MEASURES[measure]
        head += [f"{name} (theirs)", f"{name} (ours)", "gap", "share"]
    return Sheet(title=title, head=head, rows=[_row(pair, told, by_day) for pair in pairs], labels=1 + by_day)


def _row(pair: BillPair, told: Sequence[str], by_day: bool) -> list[str]:
    cells = [*([str(pair.day or "-")] if by_day else []), pair.model, f"{pair.ours.calls:,}"]
    for measure in told:
        theirs, ours, gap = getattr(pair.theirs, measure), getattr(pair.ours, measure), pair.gap(measure)
        share = share_of(gap or 0.0, theirs or 0, ours)
        cells += [_shown(measure, theirs), _shown(measure, ours), _shown(measure, gap), f"{share:.2%}"]
    return cells


def _shown(measure: str, amount: float | None) -> str:
    if amount is None:
        return "-"
    if measure != "usd":
        return f"{amount:,.0f}"
    return f"-{fine(-amount)}" if amount < 0 else fine(amount)


def _causes(causes: Sequence[Cause]) -> Sheet:
    rows = [
        [
            one.name,
            one.says,
            f"{one.share:.0%}",
            *(_shown(name, one.explains[name]) if name in one.explains else "-" for name in MEASURES),
        ]
        for one in causes
    ]
    head = ["cause", "what speaks for it", "explains up to", *MEASURES.values()]
    return Sheet(title=NOT_CERTAIN, head=head, rows=rows, labels=2)


def _left_out(left: Sequence[LeftOut]) -> Sheet:
    rows = [
        [
            one.model,
            one.why,
            f"{one.told.lines:,}",
            *(_shown(name, getattr(one.told, name)) for name in MEASURES),
        ]
        for one in left
    ]
    head = ["model", "why", "lines", *MEASURES.values()]
    return Sheet(title="Not compared", head=head, rows=rows, labels=2)
