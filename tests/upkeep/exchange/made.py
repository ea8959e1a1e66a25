"""Small files of other projects, and what results folders hold, for comparison."""

import json
from pathlib import Path

from asyncbench.store.catalog import read_attempts, read_grades, read_trials

BEYOND_64_BITS = 98765432109876543210


def trial(**changes: object) -> dict[str, object]:
    """Return a line of llm_arithmetic."""
    return {
        "model": "gpt-x",
        "variant": "int_add",
        "depth": 2,
        "operands": [12, 34],
        "correct": 46,
        "raw_response": "46",
        "parsed": 46,
        "classification": "Correct",
        "error": None,
        "tokens": {"prompt_tokens": 30, "completion_tokens": 2},
        "cost": 0.00125,
        "timestamp": "2026-06-01T05:26:35.723710Z",
        "attempts": 1,
        "failed_to_get_reply": False,
        "extra_context": 0,
    } | changes


def without(*keys: str) -> dict[str, object]:
    return {key: value for key, value in trial().items() if key not in keys}


def jsonl(path: Path, *lines: object) -> Path:
    """Write lines: bytes as they are, all else as JSON."""
    path.write_bytes(
        b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines)
    )
    return path


def result(**changes: object) -> dict[str, object]:
    """Return an entry of add_two_ints."""
    return {
        "int1": 4,
        "int2": BEYOND_64_BITS,
        "duration_seconds": 0.75,
        "response": f" {BEYOND_64_BITS + 4}\n",
        "model": "qwen/qwen3-8b",
        "status": "success",
    } | changes


def said(string: str, response: str, **changes: object) -> dict[str, object]:
    """Return an entry of a text's task."""
    entry = {key: value for key, value in result(response=response).items() if not key.startswith("int")}
    return {"string": string} | entry | changes


def result_file() -> dict[str, dict[str, object]]:
    """Return what a file of the integer addition benchmark holds."""
    return {
        "string_reversal": {
            "test_type": "String Reversal",
            "tries": 2,
            "results": [said("aB3", "3Ba"), said("xyz", "xyz", status="fail", reasoning="z, y, x…")],
        },
        "add_two_ints": {
            "test_type": "Add two intigers",
            "tries": 3,
            "results": [result(), result(int2=0, response="five", status="fail")],
        },
        "string_rehearsal": {
            "test_type": "String Rehearsal",
            "tries": 1,
            "results": [said("Z" * 600, "Z" * 600)],
        },
    }


def tables(folder: Path) -> tuple[list[dict[str, object]], ...]:
    """Return the rows of the three tables of a folder, each in the order of its ids."""
    found = (read_trials(folder), read_grades(folder), read_attempts(folder))
    keys = ("trial_id", "grader", "attempt")
    return tuple(
        table.sort_by([(key, "ascending") for key in keys if key in table.schema.names]).to_pylist()
        for table in found
    )
