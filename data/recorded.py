"""Make data/recorded.parquet: the answers of published runs of llm_arithmetic, as facts without their texts.

    python data/recorded.py CORPUS.parquet PRICES.csv

The corpus holds one row for each trial of maxim-saplin/llm_arithmetic, prices.csv the prices of its models.
The texts of the replies are read by our graders, and left behind.
data/README.md says what the columns mean.
"""

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.problems.recorded import FACTS, FACTS_KEY
from asyncbench.problems.schema import identified
from asyncbench.records import Grade, Reply
from asyncbench.suites.llm_arithmetic import draft_arithmetic, grade

OUT = Path(__file__).with_name("recorded.parquet")
SOURCE = "github.com/maxim-saplin/llm_arithmetic, published results, state of June 2026"
ABOUT = {
    "suite": "llm_arithmetic",
    "source": SOURCE,
    "about": "Facts of recorded trials: no reply texts. seconds: since the run's previous reply.",
}
LONGEST_S = 600.0  # a longer gap is a pause of the recording, not a call
OUTCOMES = {"Correct": "correct", "Deviate": "wrong", "NaN": "no_answer"}


def facts(corpus: list[dict[str, Any]], prices: Path) -> pa.Table:
    """Return the facts of all runs, in the order of the corpus."""
    with prices.open(encoding="utf-8", newline="") as file:
        priced = {row["model"]: row for row in csv.DictReader(file)}
    rows = list(_rows(corpus, priced))
    table = pa.Table.from_pylist(rows, schema=FACTS)
    return table.replace_schema_metadata({FACTS_KEY: json.dumps(ABOUT)})


def write(table: pa.Table, out: Path) -> None:
    """Write the facts, compressed well."""
    pq.write_table(table, out, compression="zstd", compression_level=19)


def _rows(corpus: list[dict[str, Any]], priced: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    before: dict[str, datetime] = {}
    for row in corpus:
        at = datetime.fromisoformat(row["timestamp"])
        gap_s = (at - before[row["source_file"]]).total_seconds() if row["source_file"] in before else None
        before[row["source_file"]] = at
        price = priced.get(row["model"], {})
        _, legacy, strict = _grades(row)
        yield {
            "run": row["source_file"].removesuffix(".jsonl"),
            "model": row["model"],
            "day": at.date(),
            "at": at,
            "task": row["variant"],
            "length": row["depth"],
            "lhs": row["lhs"],
            "rhs": row["rhs"],
            "answer": row["parsed"],
            "legacy": legacy.answer,
            "bare": strict.answer is not None,
            "outcome": "failed" if row["failed_to_get_reply"] else OUTCOMES[row["classification"]],
            "input_tokens": row["prompt_tokens"],
            "output_tokens": row["completion_tokens"],
            "seconds": None if gap_s is None or not 0 <= gap_s <= LONGEST_S else round(gap_s, 2),
            "cost_usd": row["cost"],
            "attempts": row["attempts"],
            "extra_context": row["extra_context"],
            "input_usd_per_mtok": _usd(price.get("usd_per_1m_prompt")),
            "output_usd_per_mtok": _usd(price.get("usd_per_1m_completion")),
        }


def _grades(row: Mapping[str, Any]) -> tuple[Grade, ...]:
    asked = draft_arithmetic(row["variant"], row["depth"], row["lhs"], row["rhs"], expected=row["correct"])
    (problem,) = identified([asked])
    return grade(problem, Reply(text=row["raw_response"]))


def _usd(text: str | None) -> float | None:
    return float(text) if text else None


if __name__ == "__main__":
    write(facts(pq.read_table(sys.argv[1]).to_pylist(), Path(sys.argv[2])), OUT)
