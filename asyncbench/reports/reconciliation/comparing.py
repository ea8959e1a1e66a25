"""`reconcile`: a results folder beside a provider's usage export, and the gaps by model and day."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from os import PathLike
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.files import home_expanded
from asyncbench.providers.prices import same_model
from asyncbench.reports.cost.report import fine
from asyncbench.reports.reconciliation.reading import (
    MEASURES,
    BillNames,
    BillPair,
    BillSide,
    Export,
    FolderUse,
    Ours,
    added,
    pairs_by_model,
    read_export,
    share_of,
    together,
    use_of,
)
from asyncbench.store.bucket.fetching import display_name, local_folder
from asyncbench.tables.data import HIDDEN, INSIDE, data_of, in_data
from asyncbench.tables.numbers import count, first_of, percent
from asyncbench.tables.report import Report, Sheet

# ── Models of a bill, matched with models of a folder by their names


ALL_MODELS: Final = "all models"
_BETWEEN_WORDS: Final = re.compile(r"[^a-z0-9]+")
_NO_MATCH: Final = 9


# The names of models in the comparison: by their names in the file (a name that is missing was never asked
# here), and by their names in the folder.
MatchedNames = tuple[Mapping[str | None, str], Mapping[BillNames, str]]


def matched(
    providers: Mapping[BillNames, str], billed: Collection[str], options: Collection[str], *, file: str
) -> MatchedNames:
    """Match the models of the file with those of the folder.

    A model without a reply goes with a model of the same alias that has one. If the file names some models of
    a provider, the provider's other models are compared under their own names.

    Args:
        providers: the provider of each model of the folder.
        billed: the names in the file.
        options: `NAME=ALIAS`, a name in the file and a model of the folder.
        file: the file, for messages.

    Raises:
        ConfigError: a name of `options` is in neither, or no model of the file was asked here.
    """
    if not billed:
        if options:
            raise ConfigError(
                f"--model: {file} names no models. Remove the option, and only days are compared."
            )
        return {None: ALL_MODELS}, dict.fromkeys(providers, ALL_MODELS)
    aliases = _aliases_of(options, billed, providers, file)
    best = {
        ours_names: min((_rank(ours_names, name, aliases), name) for name in billed)
        for ours_names in providers
    }
    matches = {ours_names: name for ours_names, (rank, name) in best.items() if rank < _NO_MATCH}
    if not matches:
        here = _names_listed({ours_names.model_id or ours_names.alias for ours_names in providers})
        raise ConfigError(
            f"{file}: none of its models was asked here. Match them with --model NAME=ALIAS. The file has: "
            f"{_names_listed(billed)}; the folder has: {here}."
        )
    by_alias: dict[str, str] = {}
    for ours_names, name in sorted(matches.items(), key=lambda item: item[0].served is None):
        by_alias.setdefault(ours_names.alias, name)
    for ours_names in providers:
        if ours_names.served is None and ours_names.alias in by_alias:
            matches[ours_names] = by_alias[ours_names.alias]
    theirs: dict[str | None, str] = {name: aliases.get(name, name) for name in {*matches.values(), *aliases}}
    ours = {ours_names: theirs[name] for ours_names, name in matches.items()}
    billing = {providers[ours_names] for ours_names in matches}
    for ours_names, provider in providers.items():
        if ours_names not in ours and provider in billing:
            ours[ours_names] = ours_names.model_id or ours_names.alias
    return theirs, ours


def _aliases_of(
    options: Collection[str], billed: Collection[str], ours: Collection[BillNames], file: str
) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for text in options:
        name, sign, alias = text.rpartition("=")
        if not sign or not name or not alias:
            raise ConfigError(f"--model {text!r}: write NAME=ALIAS (name in the file=model here).")
        if name in aliases:
            raise ConfigError(f"--model: {name!r} is there twice. Give it once.")
        if name not in billed:
            raise ConfigError(f"--model {text}: {file} has no {name!r}. It has: {_names_listed(billed)}.")
        if not any(alias in names for names in ours):
            here = _names_listed({names.alias for names in ours})
            raise ConfigError(f"--model {text}: the folder has no model {alias!r}. It has: {here}.")
        aliases[name] = alias
    return aliases


def _rank(names: BillNames, name: str, aliases: Mapping[str, str]) -> int:
    """Return how surely a name in the file means one that was asked; 0 is surest."""
    if name in aliases:
        return 0 if aliases[name] in names else _NO_MATCH
    asked_for = [text for text in (names.model_id, names.alias) if text]
    everything = [text for text in (names.served, *asked_for) if text]
    ranks = (
        name == names.served,
        name in asked_for,
        names.served is not None and same_model(names.served, name),
        any(same_model(text, name) for text in asked_for),
        any(_words(name) in (_words(text), _words(text.rsplit("/", 1)[-1])) for text in everything),
    )
    return next((rank for rank, fits in enumerate(ranks, 1) if fits), _NO_MATCH)


def _words(name: str) -> str:
    """Return a form that is the same for `Claude Haiku 4.5`, as a person writes it, and claude-haiku-4-5."""
    undated = re.sub(r"[-@]20\d{6}$", "", name.lower())
    return _BETWEEN_WORDS.sub("-", undated).strip("-")


def _names_listed(names: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(names))) or "none"


# ── The comparison of a folder with a bill


TOLERANCE: Final = 0.01  # a gap of this share of the larger side is accepted
NO_MODEL: Final = "(no model named)"
NEVER_ASKED: Final = "never asked here"
NOT_THEIRS: Final = "asked here, but the file has no model of its provider"
OTHER_DAYS: Final = "no call of this folder within a day of it"
Key = tuple[str, Any]  # a model's name in the comparison, and its day or why it is left out
MOST_NAMED: Final = 6  # a line names at most so many columns


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Lines of the export or calls of the folder that are not compared."""

    model: str
    why: str
    told: BillSide = field(metadata=INSIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled(Report):
    """A results folder compared with a provider's bill."""

    folder: str
    file: str
    simulated_note: str = field(metadata=HIDDEN)  # empty: no results are simulated
    export: Export = field(metadata=INSIDE)
    utc_offset_h: float  # the time zone of the bill's days
    tolerance: float
    days: tuple[BillPair, ...] = field(metadata=HIDDEN)  # by model and day
    left_out: tuple[LeftOut, ...]

    @property
    def models(self) -> list[BillPair]:
        """One pair for each model, over all days."""
        return pairs_by_model(self.days)

    @property
    def whole(self) -> BillPair:
        """All models over all days."""
        return together(self.days, model="all")

    def gap_share(self, measure: str) -> float | None:
        """Return the largest gap in dollars or tokens, as a share of the larger side, or None without a bill.

        It is the largest of the gap of all models and that of each model, all as shares of the whole. So gaps
        of two models do not cancel out. Gaps of two days do: a call near midnight may be billed on either.
        """
        whole = self.whole
        theirs = getattr(whole.theirs, measure)
        if theirs is None:
            return None
        gaps = [pair.gap(measure) or 0.0 for pair in (whole, *self.models)]
        return max(share_of(gap, theirs, getattr(whole.ours, measure)) for gap in gaps)

    @property
    @in_data("close")
    def close(self) -> bool:
        """True if no gap is above the tolerance."""
        shares = [self.gap_share(measure) for measure in MEASURES]
        return all(share is None or share <= self.tolerance for share in shares)

    def data(self) -> Mapping[str, object]:
        return {
            **data_of(self),
            "simulated": bool(self.simulated_note),
            "gap_shares": {measure: self.gap_share(measure) for measure in MEASURES},
            "whole": _pair_data(self.whole),
            "models": [*map(_pair_data, self.models)],
            "days": [*map(_pair_data, self.days)],
        }

    def notes_above(self) -> Iterator[str]:
        if self.simulated_note:
            yield self.simulated_note
        export = self.export
        if export.verified:
            yield f"The file is read as: {export.format} ({export.verified})."
        else:  # no provider is known to write such a file: column by column
            read = ", ".join(f"{kind} from {' + '.join(names)}" for kind, names in export.columns.items())
            yield (f"The file is read as: {export.format}: {read}. Check that: no provider documents this.")
            if export.unread:
                yield (
                    f"Columns not read: {first_of(export.unread, MOST_NAMED)}. Name those that count with "
                    "--columns."
                )
        zone = f"UTC{self.utc_offset_h:+g} h" if self.utc_offset_h else "UTC"
        yield f"A day is a day of {zone}, and a call counts when it began. Gap: the file minus the folder."
        if batched := self.whole.ours.batched:
            yield (
                f"{batched:,} requests were in batches: each counts when its batch was created, and may be "
                "billed on the day after."
            )
        shares = {name: self.gap_share(measure) for measure, name in MEASURES.items()}
        gaps = ", ".join(
            f"{name} {percent(share, decimals=2)}" for name, share in shares.items() if share is not None
        )
        uncompared = sum(
            entry.told.usd or 0.0 for entry in self.left_out if entry.why != NOT_THEIRS
        )  # of the bill
        yield (
            f"Gap: {gaps}. This is {'within' if self.close else 'ABOVE'} the tolerance of "
            f"{percent(self.tolerance, decimals=2)}."
            + (f" {_shown('usd', uncompared)} of the file is not compared." if uncompared else "")
        )

    def sheets(self) -> Iterator[Sheet]:
        several = [self.whole] if len(self.models) > 1 else []
        yield _pairs("By model", [*self.models, *several], by_day=False)
        if any(pair.day for pair in self.days):
            yield _pairs("By day", self.days, by_day=True)
        rows = []
        for entry in self.left_out:
            amounts = [_shown(measure, getattr(entry.told, measure)) for measure in MEASURES]
            rows.append([entry.model, entry.why, count(entry.told.lines), *amounts])
        head = ("model", "why", "lines", *MEASURES.values())
        yield Sheet(title="Not compared", head=head, rows=rows, labels=2)


def reconcile(
    file: PathLike[str] | str,
    folder: PathLike[str] | str,
    *,
    columns: str | None = None,
    models: Collection[str] = (),
    provider: str | None = None,
    utc_offset_h: float = 0.0,
    tolerance: float = TOLERANCE,
) -> Reconciled:
    """Compare the recorded tokens and cost with a provider's bill. Nothing is changed.

        bill = ab.reconcile("usage.csv", "results/night")
        print(bill.close, bill.as_text())

    Args:
        file: the provider's usage export, CSV or JSON. Models and days never asked here are left out.
        folder: the results folder.
        columns: the columns of other formats: `day=date,model=model_id,cost=amount_usd`. [those of known
            exports]
        models: names in the bill, as `NAME=ALIAS`, where they match no model. [none]
        provider: compare only the calls of this provider. [all providers in the bill]
        utc_offset_h: the time zone of the bill's days, in hours east of UTC. [0]
        tolerance: the relative gap up to which both agree; 0.01 is 1 %. [0.01]

    Returns:
        A `Reconciled`: both sums for each model and day, and the gap.

    Raises:
        ConfigError: The file cannot be read or compared. The message names line and column.
        StoreError: The folder cannot be read.
    """
    file, folder = home_expanded(file), local_folder(folder)
    export = read_export(file, columns=columns, shift_h=utc_offset_h)
    use = use_of(folder, provider, shift_h=utc_offset_h)
    if not use.by_day:
        raise ConfigError(f"{folder} has no calls to compare {file} with. Name another folder.")
    billed_models = {line.model for line in export.lines if line.model}
    names = matched(use.providers, billed_models, models, file=str(file))
    days, left_out = _compared(export, use, names)
    if all(pair.gap(measure) is None for pair in days for measure in MEASURES):
        raise ConfigError(
            f"{file}: nothing in it can be compared. It covers {_period(line.day for line in export.lines)}, "
            f"and the calls of {folder} are of {_period(day for _, day in use.by_day)}. Export those days "
            "with dollars or tokens, or map names with --model and --columns."
        )
    return Reconciled(
        folder=display_name(folder),
        file=str(file),
        simulated_note=use.simulated_note,
        export=export,
        utc_offset_h=utc_offset_h,
        tolerance=tolerance,
        days=days,
        left_out=left_out,
    )


def _period(days: Iterable[date | None]) -> str:
    dates = sorted({day for day in days if day is not None})
    return f"{dates[0]} to {dates[-1]}" if dates else "no day"


# ── pairs of lines of the bill and calls of the folder ───────────────────────────────────────


def _compared(
    export: Export, use: FolderUse, names: MatchedNames
) -> tuple[tuple[BillPair, ...], tuple[LeftOut, ...]]:
    """Return both sides by model and day, and what is left out.

    What one side lacks on a day is 0 there, if the export has it for any day.
    """
    their_names, our_names = names
    near = {day + timedelta(days=by) for _, day in use.by_day for by in (-1, 0, 1)}
    sides, others = defaultdict[Key, list[BillSide]](list), defaultdict[Key, list[BillSide]](list)
    for line in export.lines:
        model = their_names.get(line.model)
        if model is None:
            others[line.model or NO_MODEL, NEVER_ASKED].append(line.told)
        elif line.day is not None and line.day not in near:
            others[model, OTHER_DAYS].append(line.told)
        else:
            sides[model, line.day].append(line.told)
    ours, elsewhere = defaultdict[Key, Ours](Ours), defaultdict[str, Ours](Ours)
    for (bill_names, day), used in use.by_day.items():
        if bill_names in our_names:
            ours[our_names[bill_names], day if "day" in export.columns else None].add(used)
        else:
            elsewhere[bill_names.alias].add(used)
    whole = added(side for lines in sides.values() for side in lines)
    nothing = BillSide(**{name: 0 for name in BillSide.__slots__ if getattr(whole, name) is not None})
    days = tuple(
        BillPair(model=key[0], day=key[1], theirs=added([nothing, *sides[key]]), ours=ours[key])
        for key in sorted({*ours, *sides}, key=lambda key: (key[1] or date.min, key[0]))
    )
    left_out = [
        LeftOut(model=model, why=why, told=added(lines)) for (model, why), lines in sorted(others.items())
    ]
    for alias, used in sorted(elsewhere.items()):
        lines = BillSide(usd=used.usd, input_tokens=used.input_tokens, output=used.output)
        left_out.append(LeftOut(model=alias, why=NOT_THEIRS, told=lines))
    return days, tuple(left_out)


# ── the tables ───────────────────────────────────────────────────────────────────────────────


def _pair_data(pair: BillPair) -> dict[str, object]:
    ours = pair.ours
    return {
        "model": pair.model,
        "day": pair.day.isoformat() if pair.day else None,
        "theirs": data_of(pair.theirs),
        "ours": {
            **{name: getattr(ours, name) for name in (*MEASURES, "cached_input", "reasoning", "calls")},
            "unknown_calls": {"lost": ours.lost_calls, "cut": ours.cut_calls, "priceless": ours.priceless},
        },
        "gap": {measure: pair.gap(measure) for measure in MEASURES},
    }


def _pairs(title: str, pairs: Sequence[BillPair], *, by_day: bool) -> Sheet:
    measures = [measure for measure in MEASURES if any(pair.gap(measure) is not None for pair in pairs)]
    head = [*(["day"] if by_day else []), "model", "calls"]
    for measure in measures:
        name = MEASURES[measure]
        head += [f"{name} (bill)", f"{name} (here)", "gap", "share"]
    rows = []
    for pair in pairs:
        cells = [*([str(pair.day or "-")] if by_day else []), pair.model, f"{pair.ours.calls:,}"]
        for measure in measures:
            theirs, ours, gap = getattr(pair.theirs, measure), getattr(pair.ours, measure), pair.gap(measure)
            amounts = (_shown(measure, amount) for amount in (theirs, ours, gap))
            cells += [*amounts, percent(share_of(gap or 0.0, theirs or 0, ours), decimals=2)]
        rows.append(cells)
    return Sheet(title=title, head=head, rows=rows, labels=1 + by_day)


def _shown(measure: str, amount: float | None) -> str:
    if amount is None:
        return "-"
    if measure != "usd":
        return f"{amount:,.0f}"
    return f"-{fine(-amount)}" if amount < 0 else fine(amount)
