"""Make asyncbench/published/printed_tables/*.parquet: the tables that the benchmarks' own documents print.

    python data/published.py FOLDER

FOLDER holds a CSV file for each table, its numbers as printed. Numbers keep their digits: whole ones become
int64, those with equally many decimals a decimal, others stay text. The metadata of a file has its source and
its doubts.
"""

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.published.reports import PRINTED


class Document(NamedTuple):
    """A document that prints tables."""

    title: str
    source: str


class About(NamedTuple):
    """Where a table stands, and what is doubtful about it."""

    document: Document
    table: str
    notes: tuple[str, ...] = ()


ADDITION: Final = Document("Integer addition benchmark", "the benchmark's documentation page")
PAPER: Final = Document("Number Cookbook", "arXiv 2411.03766")
MAY: Final = Document("README of 2025-05-12", "github.com/maxim-saplin/llm_arithmetic")
JUNE: Final = Document("README of 2025-06-30", "github.com/maxim-saplin/llm_arithmetic")

PRESERVED: Final = "Digits: the longest length whose mean reaches {}, and {}. 0: no length does."
BOLD: Final = "Bold or coloured cells of the original are not marked."
TRAINED: Final = "On models that were trained for the paper."
ALL_DEPTHS: Final = (
    "All depths, 2 to 10, by the grader `legacy`. Errors are absolute.",
    "A cost of 0.000000 means that no price was known.",
    "Tokens and cost of grok-3-mini-beta-high lack reasoning.",
)
ABOUT: Final[Mapping[str, About]] = {
    "integer_addition_examples": About(
        ADDITION,
        "the recorded example and the examples of failures",
        (
            "The page has no results of models. `parse_error` is derived from its rule.",
            "The number words of the last case are cut short on the page, and name another number.",
        ),
    ),
    "nupa_table_2": About(PAPER, "Table 2", ("Seconds on one A800 GPU.",)),
    "nupa_table_3": About(
        PAPER,
        "Table 3",
        (
            "The paper does not say whether Multiply and Max are the easy or the hard variant.",
            "A standard error is of three runs; without one, it was one run.",
            "`exceeds_context`: the sample does not fit in 2,000 tokens.",
        ),
    ),
    "nupa_table_7": About(
        PAPER,
        "Table 7",
        (
            PRESERVED.format("90 % exact match", "10 %"),
            "Do not compare rows with `repeats_block_1`: the paper prints the values of add and sub again.",
            BOLD,
        ),
    ),
    "nupa_table_8": About(PAPER, "Table 8", (PRESERVED.format("90 % digit match", "50 %"), BOLD)),
    "nupa_table_9": About(PAPER, "Table 9", (PRESERVED.format("a dlength of 0.1 at most", "of 1"), BOLD)),
    "nupa_table_10": About(
        PAPER,
        "Table 10",
        ("Over the second and third task the paper prints X for S; it is read as S.", BOLD),
    ),
    "nupa_table_12": About(PAPER, "Table 12", (TRAINED, "Fractions are multiplied in the easy variant.")),
    "nupa_table_13": About(PAPER, "Table 13", (TRAINED,)),
    "nupa_table_14": About(PAPER, "Table 14", (TRAINED,)),
    "nupa_table_15": About(PAPER, "Table 15", (TRAINED,)),
    "nupa_table_16": About(PAPER, "Table 16", (TRAINED, "`no`: neither reversed nor padded.")),
    "nupa_table_17": About(PAPER, "Table 17", (TRAINED, "`no`: neither reversed nor indexed.")),
    "nupa_table_18": About(
        PAPER,
        "Table 18",
        (
            "A fine-tuned Llama-3.1-8B and changed ones. Some underlines (second best) are wrong.",
            "`NoPE +rev + 1d` and `NoPE + rev + 1d` are taken as one configuration.",
        ),
    ),
    "nupa_table_19": About(PAPER, "Table 19", ("The longest trace of rules within 2,000 tokens.",)),
    "nupa_text_statements": About(
        PAPER,
        "sentences of sections 2.4 and 4",
        (
            "`value_low` alone is the value, `value_high` alone an upper bound.",
            "The size of Qwen2 is not named. The model of float addition is read as GPT-4o.",
        ),
    ),
    "llm_arithmetic_2025-05-12_overview": About(MAY, "Results", ALL_DEPTHS),
    "llm_arithmetic_2025-05-12_cards": About(MAY, "Overall", ALL_DEPTHS),
    "llm_arithmetic_2025-05-12_variants": About(MAY, "Per-Variant Summary", ALL_DEPTHS),
    "llm_arithmetic_2025-06-30_overview": About(
        JUNE,
        "Results (Depth >= 5)",
        (
            "Depths 5 to 10, by the grader `legacy`. Errors are relative.",
            "A cost of 0 means that no price was known. Some counts of tokens lack reasoning.",
            "Two runs are called gemini-2.5-flash-preview-04-17-thinking.",
        ),
    ),
}


def table_of(file: Path) -> pa.Table:
    """Return a printed table; NULL: the document prints no number there."""
    with file.open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    columns = [_column(values) for values in zip(*rows, strict=True)]
    about = ABOUT[file.stem]
    facts = {
        "document": about.document.title,
        "source": about.document.source,
        "table": about.table,
        "notes": json.dumps(about.notes),
    }
    metadata = {f"asyncbench.{key}": value for key, value in facts.items()}
    return pa.table(dict(zip(head, columns, strict=True))).replace_schema_metadata(metadata)


def _column(values: Sequence[str]) -> "pa.Array[Any]":
    known = {value for value in values if value}
    if not known or not all(value.replace(".", "", 1).isdigit() for value in known):
        return pa.array(values, pa.string())
    decimals = {len(value.partition(".")[2]) for value in known}
    number = str if len(decimals) > 1 else int if decimals == {0} else Decimal
    return pa.array([number(value) if value else None for value in values])


if __name__ == "__main__":
    PRINTED.mkdir(exist_ok=True)
    for file in sorted(Path(sys.argv[1]).glob("*.csv")):
        pq.write_table(table_of(file), PRINTED / f"{file.stem}.parquet", compression="zstd")
