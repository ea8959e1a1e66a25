"""`report --style positions`: the part that the place of a choice, A or D, has in what a model answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import names_of, sort_entrants
from asyncbench.analysis.folder_report import FolderReport, no_trials
from asyncbench.analysis.served import note_of_simulated
from asyncbench.stats.proportions import wilson
from asyncbench.store.schema import ENTRANT
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.headings import ACCURACY
from asyncbench.tables.numbers import count, percent
from asyncbench.tables.report import Columns, Sheet

MEANING: Final = (
    "Trials that 'choice' graded, by the letter that is right. A model without a bias is about as often "
    "right at each letter, and chooses each about as often as it is right. To tell a bias from the order of "
    "your file, ask with `shuffle_choices`."
)
_LETTERS: Final = """
SELECT {entrant}, upper(trim(trials.expected, ' ().')) AS expected, upper(graded.answer) AS answer,
    count(*) AS trials, count(*) FILTER (trials.outcome = 'correct') AS correct,
    max(trials.repeat) + 1 AS repeats
FROM trials JOIN (SELECT trial_id, answer FROM grades WHERE headline AND grader = 'choice') AS graded
    USING (trial_id)
GROUP BY ALL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterRow:
    """What became of one letter, for one entrant."""

    name: str
    letter: str
    trials: int  # where it is right
    correct: int
    accuracy: float | None  # None: it is right nowhere
    interval: tuple[float, float] | None
    chosen: int  # trials whose answer it is, right or wrong
    chosen_share: float | None  # of all trials with an answer; None: there is none
    chosen_interval: tuple[float, float] | None
    right_share: float  # of all trials: as often it is right


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions(FolderReport):
    """Accuracy by the place of the right choice, and how often each place was chosen."""

    rows: tuple[LetterRow, ...]
    any_trials: bool = field(metadata=HIDDEN)

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """The sentence that a folder without answers by letters gets instead of tables."""
        if self.rows:
            return None
        if not self.any_trials:
            return no_trials(self.folder)
        return (
            f"{self.folder}: no trial was graded by 'choice', so no answer has a position. Ask a file with "
            "`columns: {choices: …}` and `grader: choice`."
        )

    def remarks(self) -> Iterator[str]:
        yield MEANING

    def sheets(self) -> Iterator[Sheet]:
        if self.rows:
            yield Sheet.of("Position of the choices", COLUMNS, self.rows, labels=2)


COLUMNS: Final[Columns[LetterRow]] = {
    "model": lambda row: row.name,
    "position": lambda row: row.letter,
    "right there": lambda row: count(row.trials),
    "of trials": lambda row: percent(row.right_share),
    ACCURACY: lambda row: percent(row.accuracy, row.interval),
    "chosen": lambda row: count(row.chosen),
    "of answers (95 % CI)": lambda row: percent(row.chosen_share, row.chosen_interval),
}


def positions_of(views: FolderViews) -> Positions:
    """Return the choices and hits of each model, by letter.

    Raises:
        StoreError: results cannot be read.
    """
    by_entrant = dict[tuple[Any, ...], list[Mapping[str, Any]]]()
    for row in views.rows(_LETTERS.format(entrant=", ".join(f"trials.{name}" for name in ENTRANT))):
        by_entrant.setdefault(tuple(row[name] for name in ENTRANT), []).append(row)

    rows = list[LetterRow]()
    for entrant, name in names_of(sort_entrants(by_entrant, views.manifest)).items():
        counts = by_entrant[entrant]
        trials = sum(row["trials"] for row in counts)
        answered = sum(row["trials"] for row in counts if row["answer"])
        repeats = max(row["repeats"] for row in counts)  # which narrow no interval
        for letter in sorted({row[side] for row in counts for side in ("expected", "answer") if row[side]}):
            there = [row for row in counts if row["expected"] == letter]
            right, correct = (sum(row[column] for row in there) for column in ("trials", "correct"))
            chosen = sum(row["trials"] for row in counts if row["answer"] == letter)
            letter_row = LetterRow(
                name=name,
                letter=letter,
                trials=right,
                correct=correct,
                accuracy=correct / right if right else None,
                interval=wilson(correct / right, right / repeats) if right else None,
                chosen=chosen,
                chosen_share=chosen / answered if answered else None,
                chosen_interval=wilson(chosen / answered, answered / repeats) if answered else None,
                right_share=right / trials,
            )
            rows.append(letter_row)

    return Positions(
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views),
        rows=tuple(rows),
        any_trials=bool(views.rows("SELECT 1 FROM trials LIMIT 1")),
    )
