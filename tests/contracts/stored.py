"""What is stored, and shown in tables: columns, the files of a folder, versions and ids."""

import json
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from asyncbench import published_table, read_steps, read_trials, sql
from asyncbench.analysis.views import VIEWS
from asyncbench.problems.copies import COPY_SCHEMA
from asyncbench.problems.opening import open_set
from asyncbench.problems.recorded import FACTS
from asyncbench.published.reports import PRINTED
from asyncbench.records import Condition, Message
from asyncbench.store.schema import SCHEMAS
from asyncbench.suites.requests import TrialIds
from asyncbench.suites.table import SUITES
from tests.contracts.night import CONDITIONS, MODELS, SETS
from tests.contracts.session import FOLDERS, Session, documents_in
from tests.contracts.shapes import shape_lines

LADEN = Condition(  # with all that makes a trial another
    name="laden",
    style="completion",
    system="s {x}",
    turns=(Message(role="user", content="hi"), Message(role="assistant", content="hello")),
    shots=2,
    template="{question}",
    digits=("reversed",),
    params={"a": 1},
)

# ── columns ──────────────────────────────────────────────────────────────────────────────────


def table_lines(session: Session) -> list[str]:
    """Return the columns of every Parquet table and of every view, with types; `?` may be NULL."""
    tables = {
        **SCHEMAS,
        "problems": COPY_SCHEMA,
        "a problem set": pq.read_schema(session.folder / "few.parquet"),
        "data/recorded.parquet": FACTS,
    }
    lines = [line for name, schema in tables.items() for line in _columns(name, schema)]
    night = session.folder / "night"
    for view in VIEWS:
        lines += _columns(f"view {view}", sql(night, f"SELECT * FROM {view} LIMIT 0").schema)  # noqa: S608  ours
    for path in sorted(PRINTED.iterdir()):
        lines += _columns(f"published_table {path.stem}", published_table(path.stem).schema)
    return lines


def _columns(name: str, schema: pa.Schema) -> Iterator[str]:
    version = (schema.metadata or {}).get(b"asyncbench.schema_version")
    yield f"{name}, version {version.decode()}:" if version else f"{name}:"
    yield from (f"  {field.name}: {field.type}{'?' * field.nullable}" for field in schema)


def printed_table_lines(session: Session) -> list[str]:
    """Return the columns of every table that is printed, as Markdown, LaTeX and CSV have them."""
    lines: list[str] = []
    for printed in session.printed:
        if not printed.is_json and printed.documents:
            lines += [printed.command, *(f"  {head}" for head in dict.fromkeys(printed.documents))]
    return lines


# ── files ────────────────────────────────────────────────────────────────────────────────────


def file_lines(session: Session) -> list[str]:
    """Return which files a results folder has, what those in JSON and YAML hold, and which versions."""
    lines: list[str] = []
    for name in FOLDERS:
        files = sorted(path for path in (session.folder / name).rglob("*") if path.is_file())
        lines += sorted({_file(path.relative_to(session.folder)) for path in files})
        for path in files:
            if path.suffix in (".json", ".yaml"):
                lines += _keys(path, session.keys | {"m", "m-http", "m-anthropic", name})
    return [*lines, *sorted(_metadata(session))]


def _file(path: Path) -> str:
    """Return a path with what differs from run to run in it as `N`, and the names of models as `*`."""
    return re.sub(r"(?<==)[^/]+", "*", re.sub(r"[0-9a-f]{16}|\d{6}", "N", str(path)))


def _keys(path: Path, names: frozenset[str]) -> Iterator[str]:
    content = yaml.safe_load(path.read_text("utf-8"))
    yield f"  {path.name}"
    yield from (f"  {line}" for line in shape_lines([_with_places(content)], names))
    yield from (f"    {key} = {content[key]}" for key in content if "version" in key)


def _with_places(content: Any) -> Any:
    """Return a manifest with one part for all, under `PART`: how many there are depends on the runs."""
    if not isinstance(content, dict):
        return content
    if content and all(str(key).endswith((".parquet", ".wal")) for key in content):
        return {"PART": [_with_places(value) for value in content.values()]}
    return {key: _with_places(value) for key, value in content.items()}


def _metadata(session: Session) -> set[str]:
    """Return what Parquet files say of themselves: each key, and the value of those that are versions."""
    found = set[str]()
    parts = (path for name in FOLDERS for path in (session.folder / name).rglob("*.parquet"))
    for path in (session.folder / "few.parquet", *parts):
        for key, value in (pq.read_metadata(path).metadata or {}).items():
            said = f" = {value.decode()}" if b"version" in key or b"checksums" in key else ""
            if not key.startswith(b"ARROW:"):  # Arrow's own
                found.add(f"Parquet {key.decode()}{said}")
    return found


# ── ids ──────────────────────────────────────────────────────────────────────────────────────


def id_lines(session: Session) -> list[str]:
    """Return ids of problems and trials, and the digests by which sets, requests and steps are told apart."""
    return [*_problem_ids(session), *_trial_ids(session), *_request_ids(session), *_of_runs(session)]


def _problem_ids(session: Session) -> Iterator[str]:
    """Yield what a seed makes: where that changes, raise the suite's `generator_version`."""
    for path in sorted((session.folder / SETS).iterdir()):
        made = open_set(path)
        problems = list(made.read())
        yield f"{path.stem}: {made.rows} problems, digest {made.digest}"
        words = (f"{problem.question} = {problem.expected} {problem.extra}" for problem in problems)
        yield f"{path.stem}: {digest(words)} of its questions and answers"
        yield from (f"{path.stem} problem {problem.problem_id}" for problem in problems[:2])


def _trial_ids(session: Session) -> Iterator[str]:
    problem = next(iter(open_set(session.folder / "few.parquet").read()))
    version = SUITES[problem.suite].prompt_version
    ways: tuple[dict[str, str], ...] = ({}, {"run": "r"}, {"load": "poisson 2/s #1"})
    for model in MODELS:
        for condition in (*CONDITIONS, LADEN):
            for way in ways:
                ids = TrialIds(model, condition, **way)
                found = [ids.make(problem.problem_id, prompt_version=version, repeat=n) for n in range(2)]
                yield f"{model.alias} {condition.name} {way} {' '.join(found)}"


def _request_ids(session: Session) -> Iterator[str]:
    for path in sorted((session.folder / "requests-openai").rglob("map.jsonl")):
        rows = documents_in(path.read_text("utf-8"))
        yield from (f"request {row['trial_id']} {row['condition']}" for row in rows)


def _of_runs(session: Session) -> Iterator[str]:
    trials = read_trials(session.folder / "ran", columns=["trial_id"])["trial_id"].to_pylist()
    ids = map(str, trials)
    yield f"ran: {len(trials)} trials, {digest(sorted(ids))}"
    yield f"a step of a load: {read_steps(session.folder / 'loaded')['asked'].to_pylist()}"


def digest(texts: Iterable[str]) -> str:
    """Return a digest of some texts, in order."""
    return sha256(json.dumps(list(texts)).encode()).hexdigest()[:32]
