"""The checklist of what benchmarks publish: nothing is left out, and each command makes what it says."""

import re
import shutil

import pytest

from asyncbench import report
from tests.docs.blocks import ROOT, Reader, any_provider_simulated, blocks_of

pytestmark = pytest.mark.long

PAGE = ROOT / "docs" / "published.md"
IDS = {
    *(f"Table {n}" for n in range(1, 20)),
    *(f"Figure {n}" for n in range(1, 19)),
    "sentences",
    "page",
    *(f"LA-{n}" for n in range(1, 10)),
    *(f"L-{n}" for n in range(1, 9)),
    *(f"IA-{n}" for n in range(1, 10)),
}
IN_A_REPORT = {f"IA-{n}" for n in range(1, 9)}  # tables and columns: the benchmark has no pictures
FORMS = ("svg", "png", "md", "tex")
OUT_OF_SCOPE = {  # what only training makes
    *("Table 11", *(f"Table {n}" for n in range(12, 18))),
    *("Figure 3", "Figure 4", *(f"Figure {n}" for n in range(9, 19))),
}


def listed():
    """The rows of the checklist: id → cells. One row may stand for several ids."""
    rows: dict[str, list[str]] = {}
    for line in PAGE.read_text("utf-8").splitlines():
        first, *cells = (
            (cell.strip() for cell in line.strip("|").split("|")) if line.startswith("| ") else ("",)
        )
        if several := re.fullmatch(r"Figures (\d+)-(\d+)", first):
            rows |= {f"Figure {n}": cells for n in range(int(several[1]), int(several[2]) + 1)}
        elif first not in ("", "id"):
            assert first not in rows, f"{first} stands there twice"
            rows[first] = cells
    return rows


def test_the_checklist_leaves_nothing_out():
    rows = listed()
    assert rows.keys() == IDS
    assert {name for name, cells in rows.items() if "out of scope (training)" in cells} == OUT_OF_SCOPE


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The folder in which every command of the page was run."""
    place = tmp_path_factory.mktemp("published")
    shutil.copytree(ROOT / "data", place / "data")
    with pytest.MonkeyPatch.context() as patched, any_provider_simulated(patched):
        # Pictures of every kind are drawn by tests/charts: here it takes longer than all else.
        patched.setattr("vl_convert.vegalite_to_svg", lambda _: '<svg width="9" height="9"/>')
        patched.setattr("vl_convert.svg_to_png", lambda *_, **__: b"")
        patched.setenv("COLUMNS", "100")
        patched.chdir(place)
        reader = Reader(patched)
        try:
            for block in blocks_of(PAGE):
                reader.follow(block)
        finally:
            reader.stop()
    return place


def test_every_command_runs_and_makes_its_files(followed):
    named = {name: re.findall(r"`([\w./-]+/[\w.*-]+)`", cells[1]) for name, cells in listed().items()}
    missing = [file for files in named.values() for file in files if not _written(followed, file)]
    assert missing == []
    assert {name for name, files in named.items() if not files} == OUT_OF_SCOPE | IN_A_REPORT


def test_every_table_and_column_of_integer_addition_is_in_its_report(followed):
    shown = report(followed / "results" / "addition", "integer-addition")
    text = f"{shown.as_markdown()}{shown.as_json()} --json".replace("\\", "")
    named = {part for name in IN_A_REPORT for part in re.findall(r"`([^`]+)`", listed()[name][1])}
    assert {part for part in named if part not in text} == set()
    assert len(named) > 12


def _written(place, file):
    if not file.startswith("figures/") or "." in file:
        return any(place.glob(file))
    several = f"{file}-1"  # more models than there are colours
    return all(
        (place / f"{file}.{form}").exists() or (place / f"{several}.{form}").exists() for form in FORMS
    )


def test_every_picture_is_on_the_checklist(followed):
    named = {file for cells in listed().values() for file in re.findall(r"`(figures/[\w/-]+)`", cells[1])}
    kinds = {file.rpartition("/")[2] for file in named}
    drawn = {path.stem for path in followed.glob("figures/*/*.svg")}
    assert {name if name in kinds else re.sub(r"-\d+$", "", name) for name in drawn} == kinds  # or its page
