"""The page on formats of numbers shows what its commands print."""

import asyncio
import re
from pathlib import Path

import pytest
import yaml

import asyncbench as ab
from asyncbench.config.sweep import sweep_from

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "formats.md"


@pytest.mark.long
def test_the_page_on_formats_has_the_tables_of_the_released_sweep(tmp_path):
    released = yaml.safe_load((ROOT / "configs" / "nupa-formats.yaml").read_text("utf-8"))
    out = tmp_path / "out"
    asyncio.run(ab.run_sweep(sweep_from(released | {"out": str(out)}, place="released")))
    printed = set(ab.report(out, "formats").as_markdown().split("\n"))

    page = PAGE.read_text("utf-8")
    shown = re.findall(r"^\| (?:model|simulated/.*?|all together) \|.*$", page, re.MULTILINE)
    assert [line for line in shown if line not in printed] == []
    assert len(shown) > 30
    assert "SIMULATED" in page
