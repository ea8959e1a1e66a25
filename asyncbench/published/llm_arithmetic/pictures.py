"""The pictures that llm_arithmetic's table asks for: of a folder's rows and of its published ones."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf
from typing import Any, Final

from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.entrants import Entrant
from asyncbench.published.llm_arithmetic.counts import (
    Cells,
    EntrantPair,
    ErrorSizes,
    PairedCounts,
    PublishedRow,
    TrialSums,
    depths_of,
    merged,
    tasks_of,
    total,
)
from asyncbench.published.llm_arithmetic.names import Facets, facets_of
from asyncbench.published.llm_arithmetic.tables import ACCURACY, FORMAT, HEATMAP_DEPTHS, RATES
from asyncbench.published.reports import MARK, PublishedPicture, in_one_order
from asyncbench.stats.paired import bootstrap_difference, undominated
from asyncbench.stats.proportions import newcombe, wilson

Row = dict[str, Any]  # Any: text, number or None, by column
SHARES: Final = tuple(n / 50 for n in range(51))  # of the wrong answers, at which their error is drawn
MOST_NAMED: Final = 12  # points that have room for their names, or models in a note
WITHOUT_REASONING: Final = frozenset(  # recorded and published with the tokens of their text alone
    ("gemini-2.5-pro", "gemini-2.5-pro-preview-03-25", "grok-3-mini-beta-high", "xai/grok-3-mini-beta")
)
MOST_OF_TEXT: Final = 20  # tokens a reply that are its text alone
LACKING_REASONING: Final = "* Its tokens and dollars are too low: they lack the reasoning."
INCOMPLETE: Final = "† Incomplete: not all of its trials are done, so its figures are of other problems."
ORDER: Final = "Best model first, by Correct; incomplete runs last."
ENDS: Final = ("low", "high")  # of an interval
INTERVALS: Final = (
    "With 95 % CI, on the same problems where both were asked the same ones; else unpaired (Newcombe)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewEntry:
    """One row of the overview: of the folder, or of the published table."""

    model: str
    facets: Facets
    trials: int
    shares: Mapping[str, float]  # Correct, Dev and NaN, of the trials
    output_tokens: int
    cost_usd: float | None  # None: no price is known
    sums: TrialSums | None = None  # None: published
    asked: Entrant | None = None
    named: str = ""  # as it is recorded
    complete: bool = True  # as every published row is

    @property
    def lacking(self) -> bool:
        """True if its tokens and dollars lack those of its reasoning."""
        return self.named in WITHOUT_REASONING and self.output_tokens < MOST_OF_TEXT * self.trials

    @property
    def marked(self) -> str:
        """Its name, and what keeps it from being compared: `*` lacks its reasoning, `†` is incomplete."""
        return f"{self.model}{' *' * self.lacking}{' †' * (not self.complete)}"

    @property
    def comparable(self) -> bool:
        """True if its trials are all there, and their dollars all told."""
        return self.complete and not self.lacking

    @property
    def correct(self) -> float:
        """The share of right answers."""
        return self.shares["Correct"]

    def interval(self) -> Row:
        """Return the ends of its 95 % interval."""
        low, high = wilson(self.correct, self.trials)
        return {"low": low, "high": high}


def entries_of(
    rows: Iterable[PublishedRow], depths: range, published: Iterable[Mapping[str, Any]] = ()
) -> list[OverviewEntry]:
    """Return the entries of the overview, best first; incomplete rows last, as the published one has them."""
    entries = []
    printed_rows = list(published)
    often = Counter(printed["model"] for printed in printed_rows)
    for row in rows:
        sums = total(row.cells, depths=depths)
        if sums.trials:
            shares = {"Correct": sums.accuracy, "Dev": sums.share("deviate"), "NaN": sums.share("nan")}
            entry = OverviewEntry(
                model=row.name,
                facets=row.facets,
                trials=sums.trials,
                shares={name: share or 0.0 for name, share in shares.items()},
                output_tokens=sums.output_tokens,
                cost_usd=float(sums.cost_usd) if sums.priced > sums.recorded_free else None,
                sums=sums,
                asked=row.asked,
                named=row.model,
                complete=row.complete,
            )
            entries.append((not row.complete, -entry.correct, entry))
    for printed in printed_rows:
        row_mark = f", row {printed['row']}" if often[printed["model"]] > 1 else ""
        percents = {"Correct": "correct_percent", "Dev": "deviate_percent", "NaN": "nan_percent"}
        entry = OverviewEntry(
            model=f"{printed['model']}{row_mark} {MARK}",
            facets=facets_of(printed["model"], rest=f"{row_mark[2:]} {MARK}".strip()),
            trials=printed["trials"],
            shares={name: float(printed[column]) / 100 for name, column in percents.items()},
            output_tokens=printed["completion_tokens"],
            cost_usd=float(printed["cost_usd"]) or None,
            named=printed["model"],
        )
        entries.append((False, -entry.correct, entry))
    return [entry for *_, entry in sorted(entries, key=lambda ranked_entry: ranked_entry[:2])]


def pictures_of(
    rows: Sequence[PublishedRow],
    depths: range,
    published: Sequence[Mapping[str, Any]],
    errors: ErrorSizes,
    compared: Callable[[Iterable[EntrantPair]], PairedCounts],
) -> Iterator[PublishedPicture]:
    """Return every picture, models in one order; those without data have rows of unknown values, or none."""
    entries = entries_of(rows, depths, published)
    ranks = {entry.asked: rank for rank, entry in enumerate(entries) if entry.asked}
    ranked = sorted(rows, key=lambda row: ranks.get(row.asked, len(ranks)))
    pictures = _pictures(ranked, entries, depths, errors, compared)
    return in_one_order(pictures, [entry.model for entry in entries], ORDER)


def _pictures(
    rows: Sequence[PublishedRow],
    entries: Sequence[OverviewEntry],
    depths: range,
    errors: ErrorSizes,
    compared: Callable[[Iterable[EntrantPair]], PairedCounts],
) -> Iterator[PublishedPicture]:
    yield from _cell_pictures(rows, depths)
    yield from _padding_pictures(entries)
    yield from _effort_pictures(entries)
    yield _thinking_picture(entries)
    yield _quantisation_picture(entries, compared)
    yield _cost_picture(entries)
    yield _token_picture(entries)
    yield _truncated_picture(entries)
    yield _error_picture(entries, errors)
    yield PublishedPicture(
        name="l-8-classes",
        title="Correct, Dev and NaN, by model",
        kind="stack",
        rows=[
            {"model": entry.marked, "class": name, "share of trials": share}
            for entry in entries
            for name, share in entry.shares.items()
        ],
        y="model",
        value="share of trials",
        series="class",
        notes=_remarks(entries),
    )


# ── heatmaps ─────────────────────────────────────────────────────────────────────────────────


def _cell_pictures(rows: Sequence[PublishedRow], depths: range) -> Iterator[PublishedPicture]:
    panels = {row.name: row.cells for row in rows}
    together, others = merged(rows)
    if len(rows) - len(others) > 1:  # those that have every cell
        panels = {f"overall, {len(rows) - len(others)} of {len(rows)} rows": together} | panels
    for rate in RATES:
        yield PublishedPicture(
            name=f"la-9-{rate.name.split()[0].lower()}",
            title=f"{rate.name} by variant and depth",
            kind="map",
            rows=[
                {"model": name, "variant": task, "depth": depth, rate.name: rate.share(sums)}
                for name, cells in panels.items()
                for task in tasks_of(cells)
                for depth in depths_of(cells)
                if (sums := cells.get((task, depth)))
            ],
            x="depth",
            y="variant",
            value=rate.name,
            panel="model",
        )
    title = f"Correct % by model and variant, depths {HEATMAP_DEPTHS[0]}-{HEATMAP_DEPTHS[-1]}"
    yield _variant_picture("la-9-models", title, rows, ACCURACY.share, HEATMAP_DEPTHS)
    yield _variant_picture(
        "la-8-format", "Replies that are the number alone, by variant", rows, FORMAT.share, depths
    )


def _variant_picture(
    name: str,
    title: str,
    rows: Sequence[PublishedRow],
    figure: Callable[[TrialSums], float | None],
    depths: range,
) -> PublishedPicture:
    def shares(cells: Cells) -> Iterator[tuple[str, float | None]]:
        for task in (None, *tasks_of(cells)):
            yield task or "all", figure(total(cells, depths=depths, task=task))

    return PublishedPicture(
        name=name,
        title=title,
        kind="map",
        rows=[
            {"model": row.name, "variant": task, "share": share}
            for row in rows
            for task, share in shares(row.cells)
        ],
        x="variant",
        y="model",
        value="share",
    )


# ── varied settings ──────────────────────────────────────────────────────────────────────────


def _varied(entries: Iterable[OverviewEntry], facet: str) -> dict[str, list[OverviewEntry]]:
    """Return the entries that differ in one facet alone, by what they are called without it."""
    groups = rows_by(
        (entry for entry in entries if getattr(entry.facets, facet) is not None),
        lambda entry: tuple(value for name, value in entry.facets._asdict().items() if name != facet),
    )
    varied = [
        group for group in groups.values() if len({getattr(entry.facets, facet) for entry in group}) > 1
    ]
    often = Counter(map(_alias, varied))

    # By their alias, where no other line has it.
    lines = dict[str, list[OverviewEntry]]()
    for group in varied:
        alias, facets = _alias(group), group[0].facets
        unnamed = f"{facets.name_omitting(facet)} {facets.rest}".strip()
        lines[alias if alias and often[alias] == 1 else unnamed] = group
    return lines


def _alias(entries: Sequence[OverviewEntry]) -> str:
    """Return the alias that all entries have; empty: they have several, or are published."""
    aliases = {entry.asked[1] if entry.asked else "" for entry in entries}
    return aliases.pop() if len(aliases) == 1 else ""


def _padding_pictures(entries: Sequence[OverviewEntry]) -> Iterator[PublishedPicture]:
    rows = [
        {
            "model": name,
            "padding": f"{entry.facets.padding}k",
            "accuracy": entry.correct,
            **entry.interval(),
            "output tokens": entry.output_tokens,
        }
        for name, group in _varied(entries, "padding").items()
        for entry in sorted(group, key=lambda entry: entry.facets.padding)
    ]
    rows.sort(key=lambda row: int(str(row["padding"])[:-1]))
    drawn = (("padding", "accuracy", "share", True), ("tokens", "output tokens", "number", False))
    for name, value, scale, ends in drawn:
        yield PublishedPicture(
            name=f"l-1-{name}",
            title=f"{value.capitalize()} by thousand tokens of small talk before the question",
            kind="lines",
            rows=[{key: figure for key, figure in row.items() if ends or key not in ENDS} for row in rows],
            x="padding",
            value=value,
            series="model",
            scale=scale,
        )


def _effort_pictures(entries: Sequence[OverviewEntry]) -> Iterator[PublishedPicture]:
    rows = [
        {
            "model": name,
            "effort": entry.facets.effort,
            "accuracy": entry.correct,
            **entry.interval(),
            "output tokens": entry.output_tokens or None,
            "cost, USD": entry.cost_usd or None,
        }
        for name, group in _varied(entries, "effort").items()
        for entry in group
    ]
    for name, x, scale in (("tokens", "output tokens", "log"), ("cost", "cost, USD", "usd")):
        yield PublishedPicture(
            name=f"l-2-effort-{name}",
            title=f"Accuracy against {x}, by effort",
            kind="lines",
            rows=[row for row in rows if row[x] is not None],
            x=x,
            x_scale=scale,
            value="accuracy",
            series="model",
            text="effort",
        )


def _thinking_picture(entries: Sequence[OverviewEntry]) -> PublishedPicture:
    return PublishedPicture(
        name="l-3-thinking",
        title="Accuracy with and without thinking",
        kind="dots",
        rows=[
            {
                "model": name,
                "thinking": "on" if entry.facets.thinking else "off",
                "accuracy": entry.correct,
                "NaN": entry.shares["NaN"],
                "low": entry.correct,
                "high": entry.correct + entry.shares["NaN"],
            }
            for name, group in _varied(entries, "thinking").items()
            for entry in group
        ],
        y="model",
        value="accuracy",
        series="thinking",
        notes=["The bar to the right of a point is its share of NaN."],
    )


def _quantisation_picture(
    entries: Sequence[OverviewEntry], compared: Callable[[Iterable[EntrantPair]], PairedCounts]
) -> PublishedPicture:
    pairs = [
        (name, first, second)
        for name, group in _varied(entries, "quantisation").items()
        for first, second in combinations(group, 2)
    ]
    alike = compared(
        (first.asked, second.asked) for _, first, second in pairs if first.asked and second.asked
    )
    rows = []
    for name, first, second in pairs:
        kinds = alike.get((first.asked, second.asked)) if first.asked and second.asked else None
        if kinds is None:
            # Each was asked problems of its own.
            interval, second_interval = (wilson(entry.correct, entry.trials) for entry in (first, second))
            difference = first.correct - second.correct
            low, high = newcombe(first.correct, interval, second.correct, second_interval)
        else:
            # Both were asked the same problems: the interval is that of `compare`.
            right = sum(differing * problems for (differing, _), problems in kinds.items())
            difference = right / sum(shared * problems for (_, shared), problems in kinds.items())
            low, high = bootstrap_difference(kinds, seed=0)
        rows.append(
            {
                "pair": f"{first.facets.quantisation} − {second.facets.quantisation}, {name}",
                "paired": "no" if kinds is None else "yes",
                "difference": difference,
                "low": low,
                "high": high,
            }
        )
    return PublishedPicture(
        name="l-4-quantisation",
        title="Differences between quantisations, in accuracy",
        kind="dots",
        rows=rows,
        y="pair",
        value="difference",
        scale="difference",
        notes=[INTERVALS],
    )


# ── costs and errors ─────────────────────────────────────────────────────────────────────────


def _cost_picture(entries: Sequence[OverviewEntry]) -> PublishedPicture:
    first = _named_first(entries)
    priced = [entry for entry in entries if entry.cost_usd]
    unknown = [entry.model for entry in entries if entry.cost_usd is None]
    listed = ", ".join(unknown[:MOST_NAMED]) + (" and others" if len(unknown) > MOST_NAMED else "")
    left_out = [f"Left out, for no price is known ({len(unknown)}): {listed}."] if unknown else []
    return PublishedPicture(
        name="l-5-cost",
        title="Accuracy against the dollars of a run",
        kind="points",
        rows=[
            {
                "model": entry.marked,
                "of": "this folder" if entry.sums else "published",
                "cost, USD": entry.cost_usd,
                "accuracy": entry.correct,
                "name": entry.marked.replace(f" {MARK}", ""),
                "first": entry.model in first,
            }
            for entry in priced
        ],
        x="cost, USD",
        x_scale="usd",
        value="accuracy",
        series="of",
        text="name",
        notes=left_out + _remarks(priced),
    )


def _token_picture(entries: Sequence[OverviewEntry]) -> PublishedPicture:
    return PublishedPicture(
        name="l-6-tokens",
        title="Output tokens for each right answer",
        kind="dots",
        rows=[
            {
                "model": entry.marked,
                "tokens per right answer": entry.output_tokens / (entry.correct * entry.trials),
            }
            for entry in entries
            if entry.correct and entry.output_tokens
        ],
        y="model",
        value="tokens per right answer",
        scale="log",
        notes=_remarks(entries),
    )


def _truncated_picture(entries: Sequence[OverviewEntry]) -> PublishedPicture:
    return PublishedPicture(
        name="l-6-truncated",
        title="Trials whose reply was cut",
        kind="dots",
        rows=[
            {"model": entry.marked, "share truncated": entry.sums.share("truncated")}
            for entry in entries
            if entry.sums is not None
        ],
        y="model",
        value="share truncated",
        notes=_remarks(entry for entry in entries if entry.sums is not None),
    )


def _named_first(entries: Sequence[OverviewEntry]) -> set[str]:
    """Return the entries whose names are placed first: the marked, and those that nobody beats."""
    priced = [entry for entry in entries if entry.cost_usd]
    compared = [entry for entry in priced if entry.comparable]
    front = undominated([(entry.cost_usd or 0.0, entry.correct) for entry in compared])
    shown = {entry.model for entry, ahead in zip(compared, front, strict=True) if ahead}
    return shown | {entry.model for entry in priced if not entry.comparable}


def _remarks(entries: Iterable[OverviewEntry]) -> list[str]:
    """Return remarks on the meaning of the entries' marks."""
    shown = list(entries)
    lacking, incomplete = any(entry.lacking for entry in shown), not all(entry.complete for entry in shown)
    return [LACKING_REASONING] * lacking + [INCOMPLETE] * incomplete


def _error_picture(entries: Sequence[OverviewEntry], errors: ErrorSizes) -> PublishedPicture:
    examined = [(entry, errors[entry.asked]) for entry in entries if entry.asked and entry.asked in errors]
    drawn = [
        {"model": entry.marked, "relative error": error, "share of Dev": share, "wrong": wrong}
        for entry, (wrong, sizes) in examined
        for share, error in zip(SHARES, sizes, strict=True)
        if 0 < error < inf
    ]
    return PublishedPicture(
        name="l-7-errors",
        title="Deviating answers by relative error: the share that is at most so far off",
        kind="lines",
        rows=drawn,
        x="relative error",
        x_scale="log",
        value="share of Dev",
        series="model",
        notes=[
            "Where a line is at 50 % is the median. One reply can make the mean.",
            *_remarks(entry for entry, _ in examined),
        ],
    )
