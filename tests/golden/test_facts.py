"""The facts of the recorded data: few, without texts, and those of the data."""

import re

import pyarrow.parquet as pq
import pytest

from tests.golden import FACTS
from tests.recorded import json_lines

MOST_BYTES = 3_000_000


def test_facts_are_small_and_hold_no_text_of_a_reply_or_a_prompt():
    files = [path for path in FACTS.rglob("*") if path.suffix in (".parquet", ".gz", ".json", ".csv")]
    assert len(files) == 7
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    trials = pq.read_table(FACTS / "llm_arithmetic" / "corpus.parquet").to_pylist()
    readings, problems = (json_lines(FACTS / "nupa" / f"{name}.jsonl.gz") for name in ("scoring", "problems"))
    assert not any(
        {"raw_response", "question", "output"} & row.keys() for row in trials + readings + problems
    )
    assert max(len(row["form"]) for row in trials + readings) < 30
    numbers = [row[name] or "" for row in trials for name in ("parsed", "legacy", "typed")]
    assert all(re.fullmatch(r"[-+\d.,\seE]*", number) for number in numbers)


@pytest.mark.long
def test_the_recorded_data_makes_these_facts_again(texts):
    """When this fails and is meant to, run `python -m tests.golden`."""
    from tests.golden.making import differences, facts

    assert dict(differences(facts(texts))) == {}
