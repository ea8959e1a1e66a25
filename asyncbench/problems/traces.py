"""Traces of calls to a server: the time of each call, and the tokens that it read and wrote.

Files of the kinds below are read row by row: CSV, JSON lines, Parquet and Arrow, packed or not.
"""

from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final, NamedTuple

from asyncbench.errors import ProblemSetError
from asyncbench.problems.files import opened_columns
from asyncbench.problems.schema import ROWS_AT_ONCE
from asyncbench.problems.text_files import is_text_file, text_rows

MOST_TOKENS: Final = 10_000_000  # of a call
MOST_CALLS: Final = 10_000_000  # of a trace: 24 bytes of each are in memory


class TraceKind(NamedTuple):
    """The columns of a kind of trace."""

    name: str
    time: str  # a number, or a date
    input_tokens: str
    output_tokens: str
    per_second: float  # of the numbers in `time`
    mark: str = ""  # a column that tells it from another kind with the same names

    @property
    def columns(self) -> list[str]:
        """The columns that a file of it has."""
        return [self.time, self.input_tokens, self.output_tokens, *filter(None, [self.mark])]


KINDS: Final = (
    TraceKind("Azure LLM inference", "TIMESTAMP", "ContextTokens", "GeneratedTokens", 1),
    TraceKind("BurstGPT", "Timestamp", "Request tokens", "Response tokens", 1),
    TraceKind("Bailian", "timestamp", "input_length", "output_length", 1, mark="chat_id"),
    TraceKind("Mooncake", "timestamp", "input_length", "output_length", 1000),
    TraceKind("asyncbench", "time_s", "input_tokens", "output_tokens", 1),
)


class TraceCall(NamedTuple):
    """A call of a trace."""

    at_s: float  # after the first
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The calls of a trace, in three columns."""

    name: str  # of its file
    at_s: "array[float]" = field(default_factory=lambda: array("d"))  # after the first, rising
    input_tokens: "array[int]" = field(default_factory=lambda: array("q"))
    output_tokens: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, call: TraceCall) -> None:
        """Add a call that comes after all others."""
        self.at_s.append(call.at_s)
        self.input_tokens.append(call.input_tokens)
        self.output_tokens.append(call.output_tokens)

    def __iter__(self) -> Iterator[TraceCall]:
        return map(TraceCall, self.at_s, self.input_tokens, self.output_tokens)


def read_trace(path: Path, *, until_s: float) -> Trace:
    """Return the calls of a file that come before some time.

    Raises:
        ProblemSetError: it is no trace, has no call, or a row of it is wrong; names the row, the value and
            the rule.
    """
    trace = Trace(path.name)
    for call in takewhile(lambda call: call.at_s < until_s, _calls(path)):
        if len(trace.at_s) == MOST_CALLS:
            raise ProblemSetError(
                f"{path}: more than {MOST_CALLS:,} calls. Set a `duration` (--duration), so that only the "
                "first of them are replayed."
            )
        trace.add(call)
    if not trace.at_s:
        raise ProblemSetError(f"{path}: it has no calls. Name a trace with a row for each call.")
    return trace


def _calls(path: Path) -> Iterator[TraceCall]:
    """Yield the calls of a file; times count from the first."""
    kind: TraceKind | None = None
    first_s = before_s = 0.0
    for number, (place, row) in enumerate(_rows(path)):
        kind = kind or _kind_of(row, path)
        at_s = _seconds(row, kind, place)
        if number == 0:
            first_s = before_s = at_s
        if at_s < before_s:
            raise ProblemSetError(
                f"{place}: {kind.time} is {row[kind.time]}, {before_s - at_s:,.6g} s before the row "
                "above. Calls are replayed in their order: sort the file by this column."
            )
        before_s = at_s
        input_tokens = _tokens(row, kind.input_tokens, place)
        output_tokens = _tokens(row, kind.output_tokens, place)
        yield TraceCall(round(at_s - first_s, 6), input_tokens, output_tokens)


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:  # Any: of the file
    """Yield each row with its place for messages."""
    if is_text_file(path):
        for place, row in text_rows(path):
            if isinstance(row, ProblemSetError):
                raise row
            yield place, row
        return
    with opened_columns(path) as file:
        kind, number = _kind_of(file.schema.names, path), 0
        for batch in file.batches(kind.columns, rows=ROWS_AT_ONCE):
            for row in batch.to_pylist():
                number += 1
                yield f"{path}, row {number:,}", row


def _kind_of(columns: "Mapping[str, object] | list[str]", path: Path) -> TraceKind:
    """Return the kind with these columns; raises ProblemSetError where there is none."""
    for kind in KINDS:
        if {*kind.columns} <= {*columns}:
            return kind
    known = "; ".join(f"{', '.join(kind.columns)} ({kind.name})" for kind in KINDS)
    raise ProblemSetError(
        f"{path}: its columns are {', '.join(columns)}, which are those of no known trace. A trace has "
        f"one of: {known}. Rename its columns."
    )


def _seconds(row: Mapping[str, Any], kind: TraceKind, place: str) -> float:
    """Return the time of a row in seconds; raises ProblemSetError."""
    value = row.get(kind.time)
    try:
        seconds = float(value) / kind.per_second  # type: ignore[arg-type]  # what is no number may be a date
    except (TypeError, ValueError):
        seconds = nan
        with suppress(ValueError):
            date = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
            seconds = (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    if not isfinite(seconds):
        raise ProblemSetError(
            f"{place}: {kind.time} is {_shown(value)}, which is no time. Write a number, or a date such "
            "as 2024-05-10 00:00:01.5."
        )
    return seconds


def _tokens(row: Mapping[str, Any], column: str, place: str) -> int:
    """Return the tokens in a column of a row; raises ProblemSetError."""
    value = row.get(column)
    try:
        number = float(value)  # type: ignore[arg-type]  # None is refused below
    except (TypeError, ValueError):
        number = -1.0
    if not (0 <= number <= MOST_TOKENS and number == int(number)):
        raise ProblemSetError(
            f"{place}: {column} is {_shown(value)}, which is no number of tokens. Write a whole number from "
            f"0 to {MOST_TOKENS:,}, or leave the row out."
        )
    return int(number)


def _shown(value: object) -> str:
    return "not there" if value is None or value == "" else str(value)[:60]
