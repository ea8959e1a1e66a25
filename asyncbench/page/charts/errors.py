"""The charts of outcomes and errors: their rows, drawings and words.

`asked` and `kind` of a row are places in `asked_in`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final

from asyncbench.analysis.anatomy.counts import ErrorFindings
from asyncbench.analysis.cells import summed
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.curves import GROUP
from asyncbench.analysis.entrants import Asked, kind_of
from asyncbench.page.charts.breaks import placed_cells
from asyncbench.page.charts.chart import (
    HIGH,
    IN_CELL,
    KIND,
    LOW,
    OUTCOME_COLOURS,
    PANEL_WIDTH,
    PERCENT,
    QUARTERS,
    ROW,
    UNDERSCORED,
    WHO,
    Chart,
    Row,
    Spec,
    calculated,
    field,
    grouped,
    heat_map,
    mark,
    names,
    panels,
    tooltips,
    view,
)
from asyncbench.tables.screen import safe

FIRST, LAST = "first", "last"  # the end from which a digit is counted
MOST_PLACES: Final = 8  # digits from either end
LEAST_ANSWERS: Final = 8  # of a place: fewer say too little to be drawn
MOST_ERRORS: Final = 12  # kinds of errors told apart
MOST_WORDS: Final = 20  # wrong answers in words, of each kind of question
OTHERS: Final = "others"


def outcome_rows(views: FolderViews) -> list[Row]:
    """Return the outcomes of each entrant's trials, the most accurate entrant first; none that never came."""
    by_entrant = {entrant: sums for (entrant,), sums in summed(placed_cells(views), ("asked",)).items()}
    accuracy = {entrant: sums["correct"] / sums["trials"] for entrant, sums in by_entrant.items()}
    return [
        {
            "asked": entrant,
            "outcome": outcome,
            "place": n,
            "trials": by_entrant[entrant][outcome],
            "share": by_entrant[entrant][outcome] / by_entrant[entrant]["trials"],
        }
        for entrant in sorted(by_entrant, key=lambda entrant: (-accuracy[entrant], entrant))
        for n, outcome in enumerate(OUTCOME_COLOURS)
        if by_entrant[entrant][outcome]
    ]


def error_kind_rows(groups: Iterable[ErrorFindings], roster: Asked) -> tuple[list[Row], list[Row]]:
    """Return the kinds of errors as parts of the examined answers: by entrant, and by entrant and kind.

    At most `MOST_ERRORS` are told apart, the commonest first; `OTHERS` are those that are left.
    """
    by_both = defaultdict[tuple[int, int | None], Counter[str]](Counter)
    by_entrant = defaultdict[tuple[int, int | None], Counter[str]](Counter)
    for entrant, group_kind, group in sorted(_placed(groups, roster), key=itemgetter(0, 1)):
        by_both[entrant, group_kind].update(group.kinds)
        by_entrant[entrant, None].update(group.kinds)
    together = sum(by_entrant.values(), Counter[str]())
    shown = sorted(together, key=lambda error: (-together[error], error))[:MOST_ERRORS]

    def rows(counts: Mapping[tuple[int, int | None], Counter[str]]) -> Iterator[Row]:
        for (entrant, kind), errors in counts.items():
            listed = {error: errors[error] for error in shown}
            if len(together) > len(shown):
                listed[OTHERS] = errors.total() - sum(listed.values())
            for nth, (error, wrong) in enumerate(listed.items()):
                if wrong:
                    about = {"asked": entrant, "kind": kind, "error": error, "nth": nth}
                    yield about | {"wrong": wrong, "value": wrong / errors.total()}

    return list(rows(by_entrant)), list(rows(by_both))


def examined_note(findings: Iterable[ErrorFindings]) -> str:
    """Return in a sentence how many wrong answers were examined."""
    groups = [group for group in findings if group.wrong or group.unread]
    examined = sum(group.examined for group in groups)
    wrong = sum(group.wrong + group.unread for group in groups)
    first = "" if examined == wrong else " (a fixed random sample per model and task)"
    return f"{examined:,} of {wrong:,} wrong answers (or replies without one) were examined{first}."


def word_rows(groups: Iterable[ErrorFindings], roster: Asked) -> list[Row]:
    """Return the most frequent wrong answers in words, at most `MOST_WORDS` of a kind of question.

    A row tells how often one entrant gave one of them, and their part of its examined answers of that kind.
    """
    placed = sorted(_placed(groups, roster), key=itemgetter(1, 0))
    in_all = defaultdict[int | None, Counter[str]](Counter)
    for _, kind, group in placed:
        in_all[kind].update(group.words)
    return [
        {
            "asked": entrant,
            "kind": kind,
            "words": safe(words),
            "wrong": group.words[words],
            "value": group.words[words] / group.examined,
        }
        for entrant, kind, group in placed
        for words, _ in in_all[kind].most_common(MOST_WORDS)
        if group.words[words]
    ]


def place_rows(groups: Iterable[ErrorFindings], roster: Asked) -> list[Row]:
    """Return where wrong answers have wrong digits, by place from either end: 1 is the outermost.

    Places that fewer than `LEAST_ANSWERS` wrong answers have are left out.
    """
    return [
        {
            "asked": entrant,
            "kind": kind,
            "end": end,
            "position": position,
            "errors": seen.successes,
            "answers": seen.trials,
            "value": seen.share,
            **dict(zip(("low", "high"), seen.interval or (None, None), strict=True)),
        }
        for entrant, kind, group in sorted(_placed(groups, roster), key=itemgetter(1, 0))
        for end, wrong in ((FIRST, group.from_left), (LAST, group.from_right))
        for position, seen in enumerate(group.wrong_at(wrong)[:MOST_PLACES], 1)
        if seen.trials >= LEAST_ANSWERS
    ]


def _placed(groups: Iterable[ErrorFindings], roster: Asked) -> Iterator[tuple[int, int, ErrorFindings]]:
    """Yield each group with the places of its entrant and kind; newer ones of a running sweep have none."""
    entrants, kinds = roster.entrant_places, roster.kind_places
    for group in groups:
        values = dict(zip(GROUP, group.group, strict=True))
        who, kind = (values["run"], values["model"], values["condition"]), kind_of(values)
        if who in entrants and kind in kinds:
            yield entrants[who], kinds[kind], group


# ── charts: outcomes, kinds, and wrong digits ──────────────────────────────────────────────────

CELL: Final = {"step": 22}  # pixels of a row of a heatmap
CELL_WIDTH: Final = {"step": 34}

_OUTCOMES: Final = view(
    mark(
        "bar",
        {"height": {"band": 0.78}},
        x=field(
            "share:Q",
            stack="zero",
            title="share of trials",
            axis={"format": PERCENT, "values": QUARTERS},
            scale={"domain": [0, 1]},
        ),
        y=names(),
        order=field("place:Q"),
        color=field(
            "outcome:N",
            scale={"domain": [*OUTCOME_COLOURS], "range": [*OUTCOME_COLOURS.values()]},
            legend={"columns": 3, "labelExpr": UNDERSCORED, "symbolType": "square"},
        ),
        tooltip=tooltips("model:N", "outcome:N", "share:Q|.2%", "trials:Q|,"),
    ),
    height={"step": ROW},
)


def _shares(x: Spec, y: Spec, *tips: str, room: Spec | None = None) -> list[Spec]:
    """Return the cells of a map of models, which hold their percentage."""
    text = "datum.value > 0 && datum.value < 0.005 ? '<1' : format(100 * datum.value, '.0f')"
    shade = calculated(strength="pow(datum.value, 0.7)", text=text)
    return heat_map(*shade, x=x, y=y, tips=tooltips(*tips), room=room)


_TURNED: Final = {
    "orient": "top",
    "labelAngle": -50,
    "labelAlign": "left",
    "labelLimit": 150,
    "grid": False,
    "labelExpr": UNDERSCORED,
}
_KINDS: Final = {
    **view(
        *_shares(
            field("error:N", sort={"field": "nth", "op": "min"}, title=None, axis=_TURNED),
            names("counted"),
            *("model:N", "error:N", "value:Q|.1%|share of its errors", "wrong:Q|,|wrong answers"),
            room=IN_CELL,
        ),
        width=CELL_WIDTH,
        height=CELL,
    ),
    "transform": [
        grouped(("model",), all="sum(wrong)"),
        *calculated(counted="datum.model + ' (' + format(datum.all, ',') + ')'"),
    ],
}

_MINUS: Final = "replace(datum.label, '-', '−')"

# For each kind of question the first digits, then those from the last, below zero.
_DIGIT_ERRORS: Final = panels(
    *_shares(
        field(
            "digit:O",
            sort=[*range(1, MOST_PLACES + 1), *range(-MOST_PLACES, 0)],
            title="digit: 1 is the first, −1 the last",
            axis={"labelAngle": 0, "labelOverlap": False, "grid": False, "labelExpr": _MINUS},
        ),
        names(),
        *("model:N", "task:N", "end:N||digits from the", "position:Q", "value:Q|.1%|share wrong here"),
        *("low:Q|.1%", "high:Q|.1%", "errors:Q|,", "answers:Q|,"),
    ),
    height=CELL,
    width=PANEL_WIDTH,
    by="task",
    transform=calculated(digit="datum.end == 'last' ? -datum.position : datum.position"),
    apart=("y",),
)


ERROR_CHARTS: Final[Mapping[str, Chart]] = {
    "outcomes": Chart(
        title="Outcomes of the trials",
        purpose="How many trials are right, how many are wrong, and how many were lost.",
        columns={
            **WHO,
            "outcome": "correct, wrong, no_answer, truncated, refused or failed",
            "place": "its place in the stack, from 0",
            "trials": "count",
            "share": "of the model's trials, [0, 1]",
        },
        spec=_OUTCOMES,
    ),
    "digit_errors": Chart(
        title="Errors by digit position",
        purpose="Of the wrong answers, how many percent have a wrong digit at each place, from either end.",
        nothing="Your selection has too few wrong answers that can be compared digit by digit.",
        columns={
            **WHO,
            **KIND,
            "end": "first or last",
            "position": "place of the digit, 1 is the outermost",
            "errors": "wrong answers whose digit here is wrong",
            "answers": "wrong answers that have a digit here",
            "value": "errors over answers, [0, 1]",
            "low": LOW,
            "high": HIGH,
        },
        spec=_DIGIT_ERRORS,
        room=620,
    ),
    "kinds": Chart(
        title="Kinds of errors",
        purpose="What goes wrong, in percent of each model's wrong answers. Their number stands in brackets.",
        nothing="Your selection has no wrong answer that was examined.",
        columns={
            **WHO,
            "error": "kind of error; of many the rarer ones together, as others",
            "nth": "place of the kind of error, the commonest first",
            "wrong": "examined wrong answers of this kind",
            "value": "share of the model's examined wrong answers, [0, 1]",
        },
        spec=_KINDS,
        on_page=False,
    ),
}
