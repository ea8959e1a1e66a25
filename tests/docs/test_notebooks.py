"""The notebooks in examples/ run, and what is stored in them is what comes out."""

import json
import shutil
from pathlib import Path

import pytest

from tests.docs.blocks import any_provider_simulated
from tests.docs.notebooks import outputs

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def text_of(outputs):
    """What is printed, tables as text, and which pictures there are: their bytes are a library's."""
    return [
        (output.get("text"), output.get("data", {}).get("text/plain"), sorted(output.get("data", {})))
        for output in outputs
    ]


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["duckdb", "pandas"]


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_comes_out_as_it_is_stored(path, tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(ROOT / "data")
    (tmp_path / "examples").mkdir()
    shutil.copy(path, tmp_path / "examples")
    notebook = json.loads(path.read_text("utf-8"))
    with any_provider_simulated(monkeypatch):
        found = list(outputs(notebook, tmp_path / "examples"))
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [text_of(cell) for cell in found] == [text_of(cell) for cell in stored]
    assert "image/svg+xml" in str(stored)
    assert path.stat().st_size < 100_000
