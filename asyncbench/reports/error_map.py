"""`report --style error-map`: the share of wrong digits at each place of a number, by part and length."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from asyncbench.analysis.anatomy.places import PARTS, PlaceShare, place_shares_in
from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Asked, asked_in
from asyncbench.analysis.folder_report import no_trials
from asyncbench.analysis.served import note_of_simulated
from asyncbench.published.reports import DrawnReport, PublishedPicture, picture
from asyncbench.stats.proportions import wilson
from asyncbench.store.schema import ENTRANT
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.numbers import MISSING, count, percent
from asyncbench.tables.report import Columns, Sheet

FEW: Final = 10  # answers: a place of fewer is the worst only where all have fewer

MEANING: Final = (
    "Of the answers that were read, right and wrong ones: the share of digits that are wrong or missing. A "
    "digit is compared with that of the same place. Places of decimals count from the first, all others from "
    "the last digit. Surplus digits and signs count for nothing."
)
FROM: Final = {True: "from the right, 1 is the last", False: "from the left, 1 is the first"}


class WorstPlace(NamedTuple):
    """A place of a part over all lengths."""

    places: tuple[int, int]
    share: float  # of wrong digits, in [0, 1]
    independent: float  # answers, in which a problem counts once


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """What became of a part of the numbers of a model and a kind of question."""

    name: str
    called: str  # the kind of question
    part: str
    cells: Sequence[PlaceShare]

    @property
    def share(self) -> float:
        """Wrong digits of all digits of the part, in [0, 1]."""
        return sum(cell.wrong for cell in self.cells) / sum(cell.digits for cell in self.cells)

    @property
    def answers(self) -> int:
        """The number of answers whose right one has the part."""
        return sum(cell.answers for cell in self.cells if cell.places[0] == 1)

    @property
    def worst(self) -> WorstPlace:
        """The place with the most wrong digits, of those with `FEW` answers or more if any has so many."""
        by_place = rows_by(self.cells, lambda cell: cell.places)
        places = [
            WorstPlace(
                places=places,
                share=sum(cell.wrong for cell in cells) / sum(cell.digits for cell in cells),
                independent=sum(cell.answers / cell.repeats for cell in cells),
            )
            for places, cells in by_place.items()
        ]
        enough = [place for place in places if place.independent >= FEW]
        return max(enough or places, key=lambda place: (place.share, place.independent))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMap(DrawnReport):
    """Where in a number digits are wrong: a table of its parts, and a map of places and lengths of each."""

    roster: Asked = field(metadata=HIDDEN)
    cells: Sequence[PlaceShare] = field(metadata=HIDDEN)
    any_trials: bool = field(metadata=HIDDEN)

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """The sentence that a folder without numbers gets instead of tables."""
        if self.cells:
            return None
        if not self.any_trials:
            return no_trials(self.folder)
        return (
            f"{self.folder}: no answer is a number whose right answer is one, to a problem of a known length."
        )

    def data(self) -> dict[str, Any]:  # Any: JSON
        rows = [
            {
                **dict(zip(ENTRANT, cell.entrant, strict=True)),
                **dict(zip(("suite", "task", "variant", "representation"), cell.kind, strict=True)),
                "part": cell.part,
                "lengths": cell.lengths,
                "places": cell.places,
                "answers": cell.answers,
                "digits": cell.digits,
                "wrong": cell.wrong,
                "share": cell.share,
                "interval": cell.interval,
            }
            for cell in self.cells
        ]
        return DrawnReport.data(self) | {"cells": rows}

    def remarks(self) -> Iterator[str]:
        yield MEANING

    def sheets(self) -> Iterator[Sheet]:
        rows = [
            PartRow(name=name, called=called, part=part, cells=cells)
            for called, part, by_name in self._by_part()
            for name, cells in by_name.items()
        ]
        rows.sort(key=lambda row: [entrant.name for entrant in self.roster.entrants].index(row.name))
        yield Sheet.of("Wrong digits by part of the number", COLUMNS, rows, labels=3)

    def pictures(self) -> Iterator[PublishedPicture]:
        """Yield a map of each kind of question and part: places × lengths, a panel a model."""
        for called, part, by_name in self._by_part():
            yield _map(called, part, by_name)

    def _by_part(self) -> Iterator[tuple[str, str, Mapping[str, Sequence[PlaceShare]]]]:
        """Yield the cells of each kind of question and part by model, in the order of the folder."""
        names = {entrant.key: entrant.name for entrant in self.roster.entrants}
        groups = rows_by(self.cells, lambda cell: (cell.kind, cell.part))
        for kind in self.roster.kinds:
            for part in PARTS:
                cells = groups.get((kind.key, part), [])
                by_name = rows_by(cells, lambda cell: names[cell.entrant])
                ordered = {name: by_name[name] for name in names.values() if name in by_name}
                if ordered:
                    yield kind.called, part, ordered


COLUMNS: Final[Columns[PartRow]] = {
    "model": lambda row: row.name,
    "task": lambda row: row.called,
    "part": lambda row: row.part,
    "answers": lambda row: count(row.answers),
    "digits wrong": lambda row: percent(row.share),
    "worst place": lambda row: _span(row.worst.places) if row.share else MISSING,
    "wrong there (95 % CI)": lambda row: (
        percent(row.worst.share, wilson(row.worst.share, row.worst.independent)) if row.share else MISSING
    ),
}


def _map(called: str, part: str, by_name: Mapping[str, Sequence[PlaceShare]]) -> PublishedPicture:
    """Return the shares of wrong digits of a part, written as the part is: its last place at the right."""
    cells = [cell for of_model in by_name.values() for cell in of_model]
    from_right = PARTS[part]
    rows = [
        {
            "model": name,
            "length": _span(cell.lengths),
            "place": _span(cell.places),
            "answers": cell.answers,
            "digits": cell.digits,
            "wrong": cell.wrong,
            "low": cell.interval[0],
            "high": cell.interval[1],
            "share wrong": cell.share,
        }
        for name, of_model in by_name.items()
        for cell in of_model
    ]
    fewest, most = (extreme(cell.answers for cell in cells) for extreme in (min, max))
    answers = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return picture(
        f"error-map-{re.sub(r'[^a-z0-9]+', '-', called.lower()).strip('-')}-{part}",
        f"{called}: wrong digits of the {part}, by place and length",
        "map",
        rows,
        "share wrong",
        *("answers", "digits", "wrong", "low", "high"),
        x="place",
        y="length",
        panel="model",
        x_order=_labels((cell.places for cell in cells), backwards=from_right),
        y_order=_labels((cell.lengths for cell in cells), backwards=False),
        whole=False,
        notes=[
            f"Rows: length of the problem. Places count {FROM[from_right]}.",
            f"Answers of a cell: {answers}. Blank: no digit is there.",
        ],
    )


def _labels(spans: Iterable[tuple[int, int]], *, backwards: bool) -> list[str]:
    return [_span(span) for span in sorted(set(spans), reverse=backwards)]


def _span(ends: tuple[int, int]) -> str:
    first, last = ends
    return str(first) if first == last else f"{first}-{last}"


def error_map_of(views: FolderViews) -> ErrorMap:
    """Return where in their numbers a folder's answers have wrong digits.

    Raises:
        StoreError: results cannot be read.
    """
    return ErrorMap(
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views),
        roster=asked_in(views),
        cells=place_shares_in(views),
        any_trials=bool(views.rows("SELECT 1 FROM trials LIMIT 1")),
    )
