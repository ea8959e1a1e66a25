"""Rows of the charts of outcomes and errors.

`asked` and `kind` are places in `asked_in`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from asyncbench.analysis.anatomy.counts import ErrorFindings
from asyncbench.analysis.anatomy.numbers import GROUP
from asyncbench.analysis.cells import summed
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Asked, kind_of
from asyncbench.page.charts.breaks import placed_cells
from asyncbench.page.charts.styling import Row
from asyncbench.page.charts.themes import OUTCOME_COLOURS

FIRST, LAST = "first", "last"  # the end from which a digit is counted
MOST_PLACES: Final = 8  # digits from either end
LEAST_ANSWERS: Final = 8  # of a place: fewer say too little to be drawn
MOST_ERRORS: Final = 12  # kinds of errors told apart
OTHERS: Final = "others"


def outcome_rows(views: FolderViews) -> list[Row]:
    """Return what became of each entrant's trials, the most accurate first; no row is of nothing."""
    counts = [(place, sums) for (place,), sums in summed(placed_cells(views), ("asked",)).items()]
    return [
        {
            "asked": place,
            "outcome": outcome,
            "place": n,
            "trials": sums[outcome],
            "share": sums[outcome] / sums["trials"],
        }
        for place, sums in sorted(counts, key=lambda one: (-one[1]["correct"] / one[1]["trials"], one[0]))
        for n, outcome in enumerate(OUTCOME_COLOURS)
        if sums[outcome]
    ]


def error_kind_rows(groups: Iterable[ErrorFindings], roster: Asked) -> tuple[list[Row], list[Row]]:
    """Return the kinds of errors as parts of the examined answers: by entrant, and by entrant and kind.

    At most `MOST_ERRORS` are told apart, the commonest first; `OTHERS` are those that are left.
    """
    by_both = _by_both(groups, roster)
    by_entrant = defaultdict[tuple[int, int | None], Counter[str]](Counter)
    for (place, _), counts in by_both.items():
        by_entrant[place, None] += counts
    together = sum(by_entrant.values(), Counter[str]())
    shown = sorted(together, key=lambda error: (-together[error], error))[:MOST_ERRORS]
    of_entrants, of_both = (
        list(_rows_of(counts, shown, full=len(together) > len(shown))) for counts in (by_entrant, by_both)
    )
    return of_entrants, of_both


def _by_both(groups: Iterable[ErrorFindings], roster: Asked) -> dict[tuple[int, int | None], Counter[str]]:
    counts: dict[tuple[int, int | None], Counter[str]] = {}
    for place, kind, group in _placed(groups, roster):
        if group.kinds:
            counts.setdefault((place, kind), Counter()).update(group.kinds)
    return dict(sorted(counts.items()))


def _rows_of(
    counts: Mapping[tuple[int, int | None], Counter[str]], shown: Iterable[str], *, full: bool
) -> Iterator[Row]:
    for (place, kind), its in counts.items():
        listed = {error: its[error] for error in shown}
        if full:
            listed[OTHERS] = its.total() - sum(listed.values())
        for nth, (error, wrong) in enumerate(listed.items()):
            if wrong:
                about = {"asked": place, "kind": kind, "error": error, "nth": nth}
                yield about | {"wrong": wrong, "value": wrong / its.total()}


def examined_note(findings: Iterable[ErrorFindings]) -> str:
    """Return in a sentence how many wrong answers were examined."""
    groups = [group for group in findings if group.wrong or group.unread]
    examined = sum(group.examined for group in groups)
    wrong = sum(group.wrong + group.unread for group in groups)
    first = "" if examined == wrong else " (a fixed random sample per model and task)"
    return f"{examined:,} of {wrong:,} wrong answers (or replies without one) were examined{first}."


def place_rows(groups: Iterable[ErrorFindings], roster: Asked) -> list[Row]:
    """Return where wrong answers have wrong digits, by place from either end: 1 is the outermost.

    Places that fewer than `LEAST_ANSWERS` wrong answers have are left out.
    """
    rows = []
    for place, kind, group in sorted(_placed(groups, roster), key=lambda placed: (placed[1], placed[0])):
        for end, wrong in ((FIRST, group.from_left), (LAST, group.from_right)):
            for position, seen in enumerate(group.wrong_at(wrong)[:MOST_PLACES], 1):
                if seen.trials >= LEAST_ANSWERS:
                    low, high = seen.interval or (None, None)
                    rows.append(
                        {
                            "asked": place,
                            "kind": kind,
                            "end": end,
                            "position": position,
                            "errors": seen.successes,
                            "answers": seen.trials,
                            "value": seen.share,
                            "low": low,
                            "high": high,
                        }
                    )
    return rows


def _placed(groups: Iterable[ErrorFindings], roster: Asked) -> Iterator[tuple[int, int, ErrorFindings]]:
    """Yield each group with the places of its entrant and kind; newer ones of a running sweep have none."""
    entrants, kinds = roster.entrant_places, roster.kind_places
    for group in groups:
        of = dict(zip(GROUP, group.group, strict=True))
        who, kind = (of["run"], of["model"], of["condition"]), kind_of(of)
        if who in entrants and kind in kinds:
            yield entrants[who], kinds[kind], group
