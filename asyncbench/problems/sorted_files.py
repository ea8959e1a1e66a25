"""Files whose rows are sorted by a column, of which a limit takes the first kinds alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asyncbench.errors import ProblemSetError
from asyncbench.problems.custom import Custom
from asyncbench.problems.files import opened_columns
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.text_files import is_text_file, text_rows
from asyncbench.tables.numbers import first_of

MOST_KINDS: Final = 100  # a column with more different values, such as the question, sorts nothing
LEAST_ROWS: Final = 3  # of a kind, on average
MOST_NAMED: Final = 3  # kinds, in a message


@dataclass(slots=True)
class _Kinds:
    """The values of a column, as long as equal ones stand together."""

    rows: dict[str, int]  # by value, in the order of the file
    last: str | None = None

    def add(self, value: str) -> bool:
        """Take in the next value; return whether the column may still be sorted."""
        if value != self.last and (value in self.rows or len(self.rows) == MOST_KINDS):
            return False
        self.rows[value], self.last = self.rows.get(value, 0) + 1, value
        return True


def limit_note(problems: ProblemSet, limit: int) -> str | None:
    """Return a sentence on the kinds that the first `limit` rows of a sorted file leave out, or None.

    Files with several tasks are asked task by task in turn, and samples at random: they leave none out.
    """
    tasks = sum(map(len, problems.tasks.values()))
    if not isinstance(problems.custom, Custom) or problems.sample or tasks > 1 or limit >= problems.rows:
        return None

    # The columns in which equal values stand together, with the rows of each value.
    columns: dict[str, _Kinds] | None = None
    for row in _rows(problems.path):
        if columns is None:
            columns = {name: _Kinds({}) for name in row}
        columns = {name: kinds for name, kinds in columns.items() if kinds.add(str(row.get(name, "")))}
        if not columns:
            break

    sorted_by = {name: kinds.rows for name, kinds in (columns or {}).items() if len(kinds.rows) > 1}
    for column, rows in sorted_by.items():
        starts, end = dict[str, int](), 0
        for kind, count in rows.items():
            starts[kind] = end
            end += count
        left_out = [kind for kind, start in starts.items() if start >= limit]
        if left_out and end >= LEAST_ROWS * len(rows):
            included = [kind for kind in rows if kind not in left_out]
            task = f" Or set `columns: {{task: {column}}}`, and each is asked alike."
            return (
                f"{problems.place} is sorted by its column {column!r}, and a limit takes the first rows: "
                f"{limit:,} of {problems.rows:,}, with {first_of(included, MOST_NAMED)}. Left out: "
                f"{first_of(left_out, MOST_NAMED)}. Shuffle the rows."
                f"{'' if column in problems.custom.columns.values() else task}"
            )
    return None


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if is_text_file(path):
        for _, row in text_rows(path):
            if isinstance(row, ProblemSetError):
                raise row  # it has changed since it was checked
            yield row
        return
    with opened_columns(path) as file:
        for batch in file.batches(file.schema.names, rows=1024):
            yield from batch.to_pylist()
