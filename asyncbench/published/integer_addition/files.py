"""The result files of the "Integer addition" benchmark: one JSON object a run, with three tasks.

    {"add_two_ints": {"test_type": "Add two intigers", "tries": 100, "results": [
        {"int1": 4, "int2": 17, "duration_seconds": 0.8, "response": "21", "model": "x", "status": "success"}
    ]}}

The texts stand as `string`; `reasoning` is there where the server showed it. A call that failed has no place
in the results, only in `tries`. The `status` in a file is not believed: replies are graded anew.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.published.files import (
    Fields,
    FileFormat,
    Planned,
    Recorded,
    RecordedRun,
    Row,
    checked,
    content,
    field_errors,
    flag,
    inner,
    is_whole,
    mapping,
    model_of,
    number,
    parsed,
    required,
    run_of,
    sifted,
    text,
    unsaid,
    whole,
)
from asyncbench.records import Condition, Draft, Reply
from asyncbench.suites.integer_addition import draft_addition, draft_string

ENDING = ".json"
DATE = "%Y-%m-%d_%H-%M-%S"
ASKED = Condition().name  # of all trials: a file does not say how they were asked


SECTIONS = (  # key in a file, our suite, and what the file calls it
    ("string_reversal", "string_reversal", "String Reversal"),
    ("add_two_ints", "integer_addition", "Add two intigers"),  # so it is spelt there
    ("string_rehearsal", "string_rehearsal", "String Rehearsal"),
)


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def reader(options: Mapping[str, object]) -> Callable[[Path], RecordedRun]:
    """Return a reader of files.

    Raises:
        ConfigError: a plan was given; these files say themselves what was planned.
    """
    if options:
        raise ConfigError(
            f"import integer-addition: leave out {', '.join(options)}. The files hold their own plan."
        )
    return read


def read(path: Path) -> RecordedRun:
    """Read a file. Entries that cannot be used are left out, each with the reason.

    Raises:
        ConfigError: the file cannot be read.
    """
    run = run_of(path, ENDING)
    try:
        fields = _checked(parsed(content(path)))
    except ValueError as error:
        return RecordedRun(run=run, path=path, trials=(), left_out=(f"{path}: {error}",), planned={})

    # The name says when a file was begun, as UTC; else the time when it was last changed counts.
    ended_at = path.stat().st_mtime
    if named := re.search(r"_(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)$", run):
        with suppress(ValueError):  # a day that no month has
            ended_at = datetime.strptime(named[1], DATE).replace(tzinfo=UTC).timestamp()

    recorded = partial(_recorded, ended_at=ended_at, simulated=flag(fields, "simulated"))
    entries = (
        (f"{path}, {key}[{i}]", (suite, entry))
        for key, suite, _ in SECTIONS
        for i, entry in enumerate(fields[key]["results"] if key in fields else ())
    )
    trials, left_out = sifted(entries, recorded)
    return RecordedRun(run=run, path=path, trials=trials, left_out=left_out, planned=_planned(trials, fields))


def _checked(value: object) -> Fields:
    """Return the fields of a file, checked but for its entries."""
    fields = mapping(value, "a result file")
    keys = [key for key, *_ in SECTIONS if key in fields]
    if not keys:
        raise ValueError(f"holds none of {', '.join(key for key, *_ in SECTIONS)}")
    for key in keys:
        section = inner(fields, key)
        with field_errors(key):
            whole(section, "tries")
            results = required(section, "results")
            checked(results, "results", right=isinstance(results, list), rule="a list")
    flag(fields, "simulated")
    return fields


def _recorded(section_entry: tuple[str, object], *, ended_at: float, simulated: bool) -> Recorded:
    suite, entry = section_entry
    fields = mapping(entry, "a result")
    named = model_of(fields, simulated=simulated)
    return Recorded(
        draft=_draft(fields, suite),
        model=named,
        reply=Reply(
            text=text(fields, "response"),
            reasoning=None if fields.get("reasoning") is None else text(fields, "reasoning"),
            model_served=named.model_id,
            http_status=None,
        ),
        latency_s=None
        if required(fields, "duration_seconds") is None
        else number(fields, "duration_seconds"),
        ended_at=ended_at,
        timed=False,
    )


def _draft(fields: Fields, suite: str) -> Draft:
    if suite == "integer_addition":
        operands = list[int]()
        for key in ("int1", "int2"):
            value = required(fields, key)
            right = is_whole(value) and value >= 0
            operands.append(int(checked(value, key, right=right, rule="a whole number from 0 on")))
        return draft_addition(*operands, length=len(str(max(operands))))
    string = text(fields, "string")
    plain = string.isascii() and string.isalnum()
    return draft_string(
        suite, checked(string, "string", right=plain, rule="letters A-Z, a-z and digits alone")
    )


def _planned(trials: Sequence[Recorded], fields: Fields) -> Planned:
    """Return the tries of each task: each model's own results, and what is left for the commonest model."""
    results = Counter((trial.draft.suite, trial.model.alias) for trial in trials)
    models = [name for name, _ in Counter(trial.model.alias for trial in trials).most_common()]
    planned: dict[str, dict[str, dict[str, dict[str, int]]]] = {name: {ASKED: {}} for name in models}
    for key, suite, _ in SECTIONS:
        if key in fields:
            missing = max(0, fields[key]["tries"] - sum(results[suite, name] for name in models))
            for name in models:
                if count := results[suite, name] + (missing if name == models[0] else 0):
                    planned[name][ASKED][suite] = {suite: count}
    return planned


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def texts(rows: list[Row], planned: Mapping[str, int]) -> Iterator[str]:
    """Yield the text of a file; `planned`: suite → trials."""
    fields: dict[str, object] = {
        key: {
            "test_type": test_type,
            "tries": planned.get(suite, 0),
            "results": [_result(row) for row in rows if row["suite"] == suite and not row["failed"]],
        }
        for key, suite, test_type in SECTIONS
    }
    if any(row["simulated"] for row in rows):
        fields["simulated"] = True
    yield json.dumps(fields, indent=2) + "\n"


def notes(rows: list[Row]) -> list[str]:
    """Return notes on what this format cannot hold as it is."""
    failed = sum(row["failed"] for row in rows)
    untimed = sum(row["latency_s"] is None and not row["failed"] for row in rows)
    counts = {
        f"{failed:,} trials without a reply are left out, for want of a place; they count in `tries`": failed,
        f"{untimed:,} trials have null as their duration: a request of a batch has none": untimed,
    }
    return [note for note, count in counts.items() if count] + unsaid(rows, lambda _: set())


def _result(row: Row) -> Row:
    operands = row["operands"]
    question = {"string": operands[0]}
    if row["suite"] == "integer_addition":
        question = {"int1": int(operands[0]), "int2": int(operands[1])}
    result = {
        **question,
        "duration_seconds": row["latency_s"],
        "response": row["reply_text"],
        "model": row["model"],
        "status": row["classification"],
    }
    return result if row["reasoning_text"] is None else result | {"reasoning": row["reasoning_text"]}


_SUITES = tuple(suite for _, suite, _ in SECTIONS)
FILES = FileFormat(
    ending=ENDING,
    suites=_SUITES,
    tasks=_SUITES,  # each suite has one task, of its own name
    reader=reader,
    texts=texts,
    notes=notes,
    stem=lambda exported: f"result_{exported.model.replace('/', '')}{exported.suffix}_{exported.last:{DATE}}",
)
