"""The checklist of what benchmarks publish: nothing is left out, and each command makes what it says."""

import json
import re
import shutil
from collections import Counter

import pytest

from asyncbench import published_table, report
from asyncbench.problems.schema import identified
from asyncbench.records import Reply
from asyncbench.suites.integer_addition import draft_addition, grade
from asyncbench.suites.nupa.tasks import TASKS
from tests.docs.blocks import ROOT, Reader, any_provider_simulated, blocks_of

pytestmark = pytest.mark.long

PAGE = ROOT / "docs" / "published.md"
MAY = "llm_arithmetic_2025-05-12"
NEWEST = ("model", "correct_pct", "nan_pct", "dev_pct")  # of a row of the newest table
IDS = {
    *(f"Table {n}" for n in range(1, 20)),
    *(f"Figure {n}" for n in range(1, 19)),
    *("overview", "page"),
    *(f"LA-{n}" for n in range(1, 10)),
    *(f"L-{n}" for n in range(1, 9)),
    *(f"IA-{n}" for n in range(1, 10)),
}
IN_A_REPORT = {f"IA-{n}" for n in range(1, 9)}  # tables and columns: the benchmark has no pictures
FORMS = ("svg", "png", "pdf", "md", "tex")
OUT_OF_SCOPE = {  # what only training makes
    *("Table 11", *(f"Table {n}" for n in range(13, 18))),
    *("Figure 3", "Figure 4", *(f"Figure {n}" for n in range(9, 19) if n != 13)),
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
        patched.setattr("vl_convert.svg_to_pdf", lambda _: b"")
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


def test_every_result_is_what_the_commands_give(followed, golden):
    told = {name: cells[3] for name, cells in listed().items()}
    assert {name for name, result in told.items() if not result} == OUT_OF_SCOPE
    found = {**of_nupa(), **of_recorded_runs(followed / "results" / "recorded", golden), **of_addition()}
    found |= {
        f"L-{n}": f"{rows_printed('llm_arithmetic_2025-06-30_overview')} printed runs beside yours"
        for n in range(1, 9)
    }
    assert {name: told[name] for name in found} == found
    assert {result for name, result in told.items() if result and name not in found} == {
        "no figures are printed"
    }


def rows_printed(name):
    return published_table(name).num_rows


def of_nupa():
    """What stands beside one's own of each table of the paper, and how large its frame is."""
    paper = [task for task in TASKS.values() if "paper41" in task.sets]
    kinds = Counter(task.representation for task in paper)
    easy = sum(task.length_class == 20 for task in paper)
    units = {2: "rows", 3: "cells", 8: "cells", 9: "cells", 10: "cells", 12: "cells", 18: "rows", 19: "cells"}
    digits = published_table("nupa_table_7").to_pylist()
    own = sum(row["repeats_block_1"] != "yes" for row in digits)
    beside = {
        n: f"{rows_printed(f'nupa_table_{n}')} printed {unit} beside yours" for n, unit in units.items()
    }
    return {
        **{f"Table {n}": text for n, text in beside.items()},
        "Table 1": f"{len(paper)} tasks: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}",
        "Table 4": f"{len(paper)} tasks",
        "Table 5": f"{len(paper)} tasks",
        "Table 6": f"{easy} H, {len(paper) - easy} E",
        "Table 7": f"{own} printed cells beside yours; {len(digits) - own} repeat others by mistake",
    }


def of_recorded_runs(folder, golden):
    """How many rows of the shipped recording are printed, and how many of these are equal."""
    newest = json.loads((golden / "llm_arithmetic" / "published_table.json").read_text("utf-8"))["runs"]
    printed = {tuple(run["published"][key] for key in NEWEST) for run in newest}
    now, then, all_depths = (
        json.loads(report(folder, "llm-arithmetic", **options).as_json())["rows"]
        for options in ({}, {"grader": "legacy"}, {"grader": "legacy", "min_depth": 2})
    )
    equal = sum(figures_of(row["model"], row["total"], 4) in printed for row in now)
    june = {row["source_file"] for row in newest if (row.get("legacy_2025_06_30") or {}).get("published")}
    overview = {
        (row["model"], *(f"{row[f'{name}_percent']}%" for name in ("correct", "nan", "deviate")))
        for row in published_table("llm_arithmetic_2025-06-30_overview").to_pylist()
    }
    then_equal = sum(figures_of(row["model"], row["total"], 4) in overview for row in then)
    names = ("overview", "cards", "variants")
    runs, cards, variants = (published_table(f"{MAY}_{name}").to_pylist() for name in names)
    own = {
        (row["model"], row["run_started"]): one["tasks"]
        for row in runs
        for one in all_depths
        if is_printed(row, one["all_depths"])
    }
    carded = sum(any(is_printed(row, one["all_depths"]) for one in all_depths) for row in cards)
    tasks = [(row, own.get((row["model"], row["run_started"]))) for row in variants]
    rows = sum(is_printed(row, its[row["task"]]) for row, its in tasks if its)
    recorded = sum("legacy_2025_05_12" in run for run in newest)
    return {
        "LA-1": f"{equal} of {len(now)} recorded runs equal the table of June 2026; "
        f"{then_equal} of {len(june)} that of 2025-06-30",
        "LA-2": f"{len(own)} of {recorded} recorded runs equal",
        "LA-3": f"{carded} of {recorded} recorded runs equal",
        "LA-4": f"{rows} of {8 * recorded} rows of recorded runs equal",
    }


def figures_of(name, sums, decimals):
    """A run and its three shares, as tables print them."""
    shares = (
        f"{100 * sums[share]:.{n}f}%"
        for share, n in (("accuracy", 2), ("nan_rate", decimals), ("deviate_rate", 2))
    )
    return (name, *shares)


def is_printed(row, sums):
    """Whether a printed row of all depths is of these sums; the run may have had another name then."""
    shares = [str(row[f"{name}_percent"]) for name in ("correct", "nan", "deviate")]
    tokens = [sums["input_tokens"], sums["output_tokens"]]
    return (
        shares == [text.rstrip("%") for text in figures_of("", sums, 2)[1:]]
        and str(row["avg_abs_error_deviate"]) == sums["avg_abs_error"]
        and [
            row.get(f"{kind}_tokens", own) for kind, own in zip(("prompt", "completion"), tokens, strict=True)
        ]
        == tokens
    )


def of_addition():
    """How many replies that the benchmark's page prints are graded as it says."""
    rows = published_table("integer_addition_examples").to_pylist()
    right = 0
    for row in rows:
        (problem,) = identified([draft_addition(row["int1"], row["int2"], length=30)])
        (graded,) = grade(problem, Reply(text=row["response"]))
        read = graded.reason == "not_a_number"
        right += (graded.exact_match, read) == (row["success"] == "yes", row["parse_error"] == "yes")
    text = f"{right} of {len(rows)} printed replies are graded as printed"
    return {"IA-3": text, "IA-5": text}


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
