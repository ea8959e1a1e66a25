"""`report --by EXPRESSION`: accuracy by the values of SQL over the columns of `trials`: `length % 3`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from asyncbench.analysis.choosing import check_select, line_of
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, entrant_of, names_of, sort_entrants
from asyncbench.analysis.folder_report import FolderReport, NothingToShowError, no_trials
from asyncbench.analysis.served import note_of_simulated
from asyncbench.analysis.views import counts_by
from asyncbench.errors import ConfigError
from asyncbench.stats.proportions import wilson
from asyncbench.store.schema import ENTRANT
from asyncbench.tables.headings import ACCURACY
from asyncbench.tables.numbers import MISSING, count, percent
from asyncbench.tables.report import Columns, Sheet

EXAMPLE: Final = 'an SQL expression over the columns of `trials`, such as "length % 3"'
MOST_VALUES: Final = 1000  # of an expression; more are no groups, such as those of `question`


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRow:
    """The trials of an entrant for which the expression has one value."""

    name: str
    value: str
    trials: int
    problems: int
    correct: int
    accuracy: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ByExpression(FolderReport):
    """Accuracy by the values of an expression, model by model."""

    by: str
    rows: tuple[ValueRow, ...]

    def remarks(self) -> Iterator[str]:
        yield (
            f"Each row has the trials whose `{self.by}` has this value. Rows are not paired with each other. "
            "In an interval a problem counts once, however often it was asked."
        )

    def sheets(self) -> Iterator[Sheet]:
        yield Sheet.of(f"By {self.by}", COLUMNS, self.rows, labels=2)


COLUMNS: Final[Columns[ValueRow]] = {
    "model": lambda row: row.name,
    "value": lambda row: row.value,
    "trials": lambda row: count(row.trials),
    "problems": lambda row: count(row.problems),
    ACCURACY: lambda row: percent(row.accuracy, row.interval),
}


def _text(value: object) -> str:
    """Return a value as SQL has it: true, 2, 0.5; unknown ones as other tables show them."""
    if value is None:
        return MISSING
    return str(value).lower() if isinstance(value, bool) else str(value)


def accuracy_by(views: FolderViews, expression: str) -> ByExpression:
    """Return the accuracy of each entrant by the values of an expression.

    Args:
        views: of the results folder, or of several.
        expression: SQL over the columns of `trials`.

    Raises:
        ConfigError: it is no such expression, or has too many values.
        StoreError: a folder cannot be read.
    """
    import duckdb

    counted = counts_by(
        f"(SELECT *, ({expression}\n) AS value FROM trials WHERE load IS NULL)",  # noqa: S608  it was checked to be one expression
        [*ENTRANT, "value"],
        only=("trials", "correct", "independent"),
    )
    try:
        duckdb.SQLExpression(expression)  # one expression: nothing can follow it
        check_select(views.connection, f"SELECT ({expression}\n)", ("trials",), source="--by")
        rows = views.rows(f"{counted} ORDER BY value")
    except duckdb.Error as error:
        raise ConfigError(f"--by {expression}: {line_of(error)}. Write {EXAMPLE}.") from error

    if not rows:
        raise NothingToShowError(views.chosen, no_trials(views.chosen))
    if (values := len({str(row["value"]) for row in rows})) > MOST_VALUES:
        raise ConfigError(
            f"--by {expression}: it has {values:,} values, and a report shows {MOST_VALUES:,} at most. Write "
            'one with fewer, such as "length % 3".'
        )
    by_entrant = dict[Entrant, list[dict[str, Any]]]()
    for row in rows:
        by_entrant.setdefault(entrant_of(row), []).append(row)
    return ByExpression(
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views),
        by=expression,
        rows=tuple(
            ValueRow(
                name=name,
                value=_text(row["value"]),
                trials=row["trials"],
                problems=round(row["independent"]),
                correct=row["correct"],
                accuracy=row["correct"] / row["trials"],
                interval=wilson(row["correct"] / row["trials"], row["independent"]),
            )
            for entrant, name in names_of(sort_entrants(by_entrant, views.manifest)).items()
            for row in by_entrant[entrant]
        ),
    )
