"""The recorded data: runs of llm_arithmetic as files of that project, and outputs of NUPA with their figures.

A folder of it is either that of the recorded texts or tests/golden, which has facts and invented texts.
"""

import fcntl
import gzip
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from asyncbench.suites.nupa.tasks import TASKS, template

SINCE_LATER = ("attempts", "failed_to_get_reply", "extra_context")  # keys that older files lack


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that is made once for all processes of a test run; not to be changed."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            make(folder)
            (folder / "complete").touch()
    return folder


def write_jsonl(golden: Path, folder: Path) -> list[Path]:
    """Write all recorded runs as they were published: a file each, a trial a line; return the files."""
    lines: dict[str, list[str]] = {}
    for row in rows(golden):
        lines.setdefault(row["source_file"], []).append(json.dumps(line(row)) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in lines.items():
        (folder / name).write_text("".join(texts), "utf-8")
    return [folder / name for name in lines]


def rows(golden: Path) -> list[dict[str, Any]]:
    """Return the rows of the corpus, in order."""
    found = pq.read_table(golden / "llm_arithmetic" / "corpus.parquet").to_pylist()
    assert len(found) == 17_153  # or tests that go through them would show nothing
    return [{"raw_response": row.get("form", "").format_map(row)} | row for row in found]


def json_lines(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, which may be packed."""
    packed = file if file.suffix == ".gz" else file.with_name(f"{file.name}.gz")
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else file.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def nupa_problems(golden: Path) -> dict[str, dict[str, Any]]:
    """Return the problems of NUPA by id, with the questions that the published code asks."""
    found = json_lines(golden / "nupa" / "problems.jsonl")
    assert len(found) == 2421
    return {row["id"]: {"question": question_of(row)} | row for row in found}


def question_of(row: Mapping[str, Any]) -> str:
    """Return a question as asyncbench writes it in the published words: of these, facts have a hash."""
    return template(TASKS[row["task_name"]], "reference") % texts_of(row)


def texts_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the operands of a problem of NUPA."""
    return tuple(text for text in (row["a"], row["b"]) if text is not None)


def nupa_outputs(golden: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return each output of NUPA with its problem."""
    problems, found = nupa_problems(golden), json_lines(golden / "nupa" / "scoring.jsonl.gz")
    assert len(found) == 6408
    return [(problems[row["problem_id"]], {"output": output_of(row)} | row) for row in found]


def output_of(row: Mapping[str, Any]) -> str:
    """Return an invented output of the form that a row of facts names."""
    strict, search = (row[way]["extracted"] for way in ("strict_chat", "search"))
    form = str(row.get("form", ""))
    return form.format(strict=strict, signed=strict.replace("e", "e+"), search=search)


def line(row: Mapping[str, Any]) -> dict[str, object]:
    """Return a row of the corpus as the project writes it: integers as bare numbers of any length."""
    number = int if row["variant"].startswith("int_") else str
    return {
        "model": row["model"],
        "variant": row["variant"],
        "depth": row["depth"],
        "operands": [number(row["lhs"]), number(row["rhs"])],
        "correct": number(row["correct"]),
        "raw_response": row["raw_response"],
        "parsed": None if row["parsed"] is None else number(row["parsed"]),
        "classification": row["classification"],
        "error": row["error"],
        "tokens": {"prompt_tokens": row["prompt_tokens"], "completion_tokens": row["completion_tokens"]},
        "cost": row["cost"],
        "timestamp": row["timestamp"],
        **{key: row[key] for key in SINCE_LATER if row[key] is not None},
    }
