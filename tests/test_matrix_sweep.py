"""Ten models at three efforts in two wordings: a short file, its matrix, and the effect of effort."""

import json

import pytest

from tests.commands import ROOT, asyncbench, asyncbench_here, succeeded
from tests.docs.blocks import blocks_of

pytestmark = pytest.mark.long


def test_a_short_file_asks_ten_models_at_three_efforts_in_two_wordings(tmp_path):
    """The file of the how-to, against the simulator: effort `high` is cut off at `max_tokens`."""
    page = ROOT / "docs" / "howto" / "compare.md"
    (text,) = (block.text for block in blocks_of(page) if block.text.startswith("# efforts.yaml\n"))
    assert len(text.splitlines()) < 15
    file, out = tmp_path / "efforts.yaml", tmp_path / "out"
    file.write_text(f"{text}out: {out}\n")

    planned = asyncbench_here("plan", file).stdout
    assert "Matrix: 10 models × 3 efforts × 2 conditions = 60 entrants" in planned
    rows = [line.split()[:5] for line in planned.split("\nWhat is left")[0].splitlines() if " 120 " in line]
    assert rows == [
        [effort, condition, "10", "120", "120"]
        for effort in ("low", "medium", "high")
        for condition in ("plain", "steps")
    ]

    done = succeeded(asyncbench("run", file, "--json"))
    assert [model["done"] for model in json.loads(done.stdout)["models"].values()] == [24] * 30
    lines = json.loads(asyncbench_here("report", out, "--by", "effort", "--json").stdout)["lines"]
    assert len(lines) == 3 * (1 + 10 * 2)
    low, medium, high = lines[:3]
    assert [line["value"] for line in (low, medium, high)] == ["low", "medium", "high"]
    assert medium["difference"] == 0 < medium["difference_interval"][1]
    assert high["difference"] < high["difference_interval"][1] < 0
