"""Several results folders as one, and filters: on every report, `compare`, `sql`, page and pictures."""

import json
from dataclasses import replace
from typing import Any

import pytest

import asyncbench as ab
from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import counted
from asyncbench.analysis.views import VIEWS
from asyncbench.errors import ConfigError, StoreError
from asyncbench.page.charts.figure_files import published_files, published_of, table_files
from asyncbench.page.charts.pictures import pictures_of
from asyncbench.page.writing import contents_of
from asyncbench.reports.cost.report import cost_report_of
from asyncbench.reports.standings.report import standings_of
from asyncbench.reports.status.run_overview import run_overview_of
from asyncbench.reports.styles import DRAWN, STYLES
from asyncbench.store.sealing import part_files
from tests.commands import asyncbench_here
from tests.reports.answered import Asked, folder_of

ALL = tuple(STYLES)
APART = ("load", "card")  # which count whole steps, and one model
DEEP = Asked(model="", outcomes="", suite="llm_arithmetic", task="add", grader="layered", first=40)
STRINGS = Asked(model="", outcomes="", suite="integer_addition", task="integer_addition")


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Three nights: mini was asked in two of them; one night has a suite that no other has."""
    base = tmp_path_factory.mktemp("nights")
    answers = {
        "monday": [
            Asked(model="mini", outcomes="+" * 40 + "-" * 20),
            Asked(model="haiku", outcomes="+" * 30 + "-" * 30),
            replace(DEEP, model="mini", outcomes="+-" * 5),
            replace(DEEP, model="haiku", outcomes="--" * 5),
        ],
        "tuesday": [
            Asked(model="mini", outcomes="+" * 50 + "-" * 10),
            replace(DEEP, model="mini", outcomes="+-" * 5),
            replace(STRINGS, model="mini", outcomes="+-" * 5),
        ],
        "friday": [
            Asked(model="big", outcomes="+" * 58 + "--"),
            replace(DEEP, model="big", outcomes="+-" * 5),
        ],
    }
    return [folder_of(base / name, asked) for name, asked in answers.items()]


def data(report):
    return json.loads(report.as_json())


# ── several folders ──────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_three_nights_are_one_ranking_over_everything_in_common(nights):
    first, *others = counted(nights, standings_of).rankings
    assert (first.suites, first.problems) == (("llm_arithmetic", "nupa"), 70)
    assert [line.name for line in first.lines] == ["big", "mini in tuesday", "mini in monday", "haiku"]
    assert {ranking.suite: len(ranking.lines) for ranking in others} == {
        "nupa": 4,
        "llm_arithmetic": 4,
        "integer_addition": 1,
    }


@pytest.mark.long
def test_the_morning_shows_the_ranking_over_everything_in_common(nights):
    shown = counted(nights, run_overview_of).as_text(width=100)
    assert "All suites (llm_arithmetic, nupa): 4 models on the same 70 problems" in shown
    assert "compare big 'mini in tuesday'" in shown


@pytest.mark.long
def test_the_json_has_the_folder_of_each_model(nights):
    lines = data(ab.report(nights, "standings"))["rankings"][0]["lines"]
    assert {line["name"]: line["folder"] for line in lines} == {
        "big": "friday",
        "mini in tuesday": "tuesday",
        "mini in monday": "monday",
        "haiku": "monday",
    }


@pytest.mark.long
def test_folders_with_one_last_name_are_told_apart_by_their_paths(tmp_path):
    paths = [folder_of(tmp_path / name / "out", [Asked(model="m", outcomes="+-")]) for name in "ab"]
    names = {line.name for line in counted(paths, standings_of).rankings[0].lines}
    assert names == {f"m in {path}" for path in paths}


@pytest.mark.long
def test_a_model_that_is_called_like_one_with_its_folder_stays_apart(tmp_path):
    a = folder_of(tmp_path / "a", [Asked(model="m", outcomes="+-"), Asked(model="m in b", outcomes="+-")])
    b = folder_of(tmp_path / "b", [Asked(model="m", outcomes="+-")])
    (ranking,) = counted([a, b], standings_of).rankings
    assert len({line.name for line in ranking.lines}) == 3


@pytest.mark.long
def test_three_nights_and_the_published_table_are_one_ranking(nights):
    printed = list(map(str, ab.published_table("llm_arithmetic_2025-06-30_overview")["model"].to_pylist()))
    assert len(printed) > 5
    for models in (None, ["mini", "big"]):
        report = ab.report(nights, "llm-arithmetic", published=True, models=models, where="length > 4")
        ranking = report.as_markdown().partition("\n### ")[2].partition("\n### ")[0]
        lines = [line.strip("| ").split(" | ") for line in ranking.splitlines() if line.startswith("| ")][1:]
        own = ["mini in monday", "mini in tuesday", "big", *(["haiku"] if models is None else [])]
        names = [name for name, *_ in lines]
        assert len(lines) == len(printed) + len(own), ranking
        assert {*names} == {*own, *(f"{name} (published)" for name in printed)}
        shares = [float(line[2].rstrip("%")) for line in lines]
        assert shares == sorted(shares, reverse=True)
        assert 1 < names.index("big") < len(lines) - 4
    found = published_of(
        chosen(nights, models=["mini"], where="length > 4"), "llm-arithmetic", {"published": True}
    )
    drawn = {str(row) for picture in found.pictures() for row in picture.rows}
    for name in (*printed, "mini in monday", "mini in tuesday"):
        assert any(name in row for row in drawn), name
    assert not any("haiku in" in row or "'haiku'" in row for row in drawn)


@pytest.mark.long
def test_values_of_what_varied_are_compared_within_each_folder_and_between_folders(tmp_path):
    efforts = {"low": "+" * 6 + "-" * 6, "high": "+" * 9 + "-" * 3}
    asked = [Asked(model=f"m effort={it}", effort=it, outcomes=marks) for it, marks in efforts.items()]
    better = [replace(one, outcomes="+" * 12) for one in asked]
    paths = [folder_of(tmp_path / name, of) for name, of in (("monday", asked), ("tuesday", better))]

    def lines(by, **filters):
        found = data(ab.report(paths, by=by, **filters))["lines"]
        return {(line["name"], line["value"]): (line["problems"], line["accuracy"]) for line in found}

    assert lines("effort") == {
        ("all together", "low"): (12, 0.75),
        ("all together", "high"): (12, 0.875),
        ("m in monday", "low"): (12, 0.5),
        ("m in monday", "high"): (12, 0.75),
        ("m in tuesday", "low"): (12, 1.0),
        ("m in tuesday", "high"): (12, 1.0),
    }
    assert lines("folder", where="length = 1", models=["m effort=low"]) == {
        ("m · effort=low", "monday"): (10, 0.6),
        ("m · effort=low", "tuesday"): (10, 1.0),
    }


@pytest.mark.long
def test_what_repeats_tell_is_filtered_and_of_all_folders(tmp_path):
    asked = [Asked(model="m", outcomes="+-" * 8, repeat=repeat) for repeat in (0, 1)]
    paths = [folder_of(tmp_path / name, asked) for name in ("monday", "tuesday")]
    for style in ("standings", "morning"):
        found = data(ab.report(paths, style, where="length = 1"))
        lines = found.get("rankings", [found])[0]["lines"]
        assert [line["name"] for line in lines] == ["m in monday", "m in tuesday"]
        for line in lines:
            assert [(at["k"], at["pass_at_k"]["clusters"]) for at in line["at_k"]] == [(1, 10), (2, 10)]


@pytest.mark.long
def test_every_call_of_all_folders_is_paid_once(nights):
    whole, *each = (data(counted(folder, cost_report_of))["whole"]["usd"] for folder in (nights, *nights))
    assert whole == sum(each) > 0


@pytest.mark.long
def test_sql_has_the_folder_as_a_column_and_ids_that_join(nights):
    query = (
        "SELECT trials.folder, count(*) AS n FROM trials JOIN grades USING (trial_id) GROUP BY ALL ORDER BY n"
    )
    found = ab.sql(nights, query).to_pylist()
    assert found == [
        {"folder": "friday", "n": 70},
        {"folder": "tuesday", "n": 80},
        {"folder": "monday", "n": 140},
    ]
    first = {name: ab.sql(nights, f"FROM {name} LIMIT 0").column_names[0] for name in VIEWS}
    assert set(first) > {"trials", "problems", "cells"}
    assert set(first.values()) == {"folder"}


@pytest.mark.long
def test_models_of_several_folders_are_compared_by_their_names_among_all(nights):
    found = ab.compare("mini in monday", "mini in tuesday", nights)
    assert (found.found.whole.found.problems, found.found.whole.found.only_b) == (70, 10)
    assert [one.outcome_b for one in found.found.only_b] == ["correct"] * 5


@pytest.mark.long
def test_of_two_folders_each_model_is_in_its_own(nights):
    found = ab.compare("mini", "mini", nights[:2]).found
    assert (found.a.folder, found.b.folder) == tuple(map(str, nights[:2]))
    assert found == ab.compare("mini", "mini", *nights[:2]).found
    assert ab.compare("haiku", "mini in tuesday", nights[:2]).found.whole.found.problems == 70


def test_tables_of_several_folders_have_the_folder_first(nights):
    found = ab.read_trials(nights, ["model", "outcome"])
    assert found.schema.names == ["folder", "model", "outcome"]
    assert set(found["folder"].to_pylist()) == {"monday", "tuesday", "friday"}


def test_damage_names_its_folder(tmp_path):
    paths = [folder_of(tmp_path / name, [Asked(model="m", outcomes="+-")]) for name in "ab"]
    part = part_files(paths[1], "trials")[0]
    part.write_bytes(part.read_bytes()[:-100] + bytes(100))
    with pytest.raises(StoreError, match=str(paths[1])):
        ab.report(paths)


def test_a_folder_is_named_once(nights):
    with pytest.raises(ConfigError, match="is named twice"):
        ab.report([nights[0], nights[0]])


# ── filters ──────────────────────────────────────────────────────────────────────────────────

SUITES = {"llm-arithmetic": "llm_arithmetic", "integer-addition": "integer_addition"}


@pytest.fixture(scope="module")
def filtered(tmp_path_factory):
    """A folder in which much was asked, and for each suite one that holds nothing but one of its tasks."""
    base = tmp_path_factory.mktemp("filtered")
    tasks = {"nupa": "add", "llm_arithmetic": "add", STRINGS.suite: STRINGS.task}
    much, alone = [], {}
    for suite, task in tasks.items():
        grader = {"nupa": "strict", "llm_arithmetic": "layered"}.get(suite, "number")
        asked = Asked(model="a", suite=suite, task=task, grader=grader, outcomes="++-?+" * 2)
        kept = [asked, replace(asked, model="b")]
        alone[suite] = folder_of(base / suite, kept)
        much += [
            *kept,
            replace(kept[0], task="sub", outcomes="+-"),
            replace(kept[0], model="c", outcomes="+-"),
        ]
        much += [replace(kept[0], outcomes="+-", first=40)]
    return folder_of(base / "much", much), alone, tasks


@pytest.mark.long
@pytest.mark.parametrize("style", [style for style in ALL if style not in APART])
def test_every_filter_is_on_every_style_of_one_folder_and_of_several(filtered, style):
    """What is left is as if nothing else had been asked."""
    much, alone, tasks = filtered
    suite = SUITES.get(style or "", "nupa")
    filters: Any = {"suite": suite, "task": tasks[suite], "models": ["a", "b"], "where": "length < 5"}
    words = f"Filtered: --suite {suite}, --task {tasks[suite]}, --models a,b, --where length < 5. Only these"
    found, expected = data(ab.report(much, style, **filters)), data(ab.report(alone[suite], style))
    assert found.pop("chosen") == [f"{words} trials and their calls count."]
    for name in ("folder", "nothing", "sweep", "planned", "models" if style == "morning" else "folder"):
        assert (found.pop(name, None) is None) == (expected.pop(name, None) is None) or name == "planned"
    assert found == expected
    several = ab.report([much, alone[suite]], style, **filters)
    for said in (several.as_text(width=200), several.as_markdown()):
        assert f"2 folders: much, {suite}." in said.replace("\\", "")
        assert words.replace(" ", "") in "".join(said.replace("\\", "").split())
        assert "a in much" in said or style in ("quota", "positions")
        assert "c in much" not in said


def published_rows(folder, style, **filters):
    """The rows of each picture of a published style that is drawn."""
    pictures = published_of(chosen(folder, **filters), style, {}).pictures()
    return {picture.name: picture.rows for picture in pictures if picture.drawable}


@pytest.mark.long
@pytest.mark.parametrize("style", DRAWN)
def test_the_pictures_of_a_published_style_are_filtered_as_its_report_is(filtered, style):
    much, alone, tasks = filtered
    suite = SUITES.get(style, "nupa")
    expected = published_rows(alone[suite], style)
    filters: Any = {"suite": suite, "task": tasks[suite], "models": ["a", "b"], "where": "length < 5"}
    assert published_rows(much, style, **filters) == expected
    assert expected


@pytest.mark.long
@pytest.mark.parametrize("style", DRAWN)
def test_the_pictures_of_a_published_style_are_of_two_folders(filtered, style):
    much, alone, tasks = filtered
    suite = SUITES.get(style, "nupa")
    of = chosen([much, alone[suite]], task=tasks[suite], models=["a"])
    found = published_of(of, style, {})
    files = {name: content for _, written in published_files(found, of, style) for name, content in written}
    names = {picture.name for picture in found.pictures() if picture.drawable}
    assert {f"{name}.{form}" for name in names for form in ("svg", "png", "md", "tex")} <= {*files}
    written = "".join(content.decode() for name, content in files.items() if name.endswith(".md"))
    assert "a in much" in written
    assert f"a in {suite}" in written.replace("\\", "")


@pytest.mark.long
def test_what_a_filter_leaves_is_what_sql_counts(nights):
    report = data(ab.report(nights[1], where="length <= 3 AND task = 'add'", models=["mini"]))
    lines = {line["suite"]: line["trials"] for line in report["suites"]}
    query = "SELECT suite, count(*) AS n FROM trials WHERE length <= 3 AND task = 'add' GROUP BY ALL"
    assert lines == {row["suite"]: row["n"] for row in ab.sql(nights[1], query).to_pylist()}


@pytest.mark.long
def test_calls_are_those_of_the_trials_that_are_left(nights):
    report = data(ab.report(nights, "cost", suite="llm_arithmetic"))
    assert report["whole"]["calls"] == 40


@pytest.mark.long
def test_a_condition_may_ask_for_problems(nights):
    where = "problem_id IN (SELECT problem_id FROM problems WHERE length = 2)"
    assert data(ab.report(nights[0], where=where))["suites"][0]["trials"] == 10


@pytest.mark.long
def test_a_comparison_is_filtered(nights):
    found = ab.compare("mini", "haiku", nights[0], where="length = 1")
    assert found.found.whole.found.problems == 10
    assert "--where length = 1" in found.as_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"where": "lenght > 5"}, "lenght"),
        ({"where": "length"}, "no condition"),
        ({"where": "true; DROP VIEW trials"}, "more than one statement"),
        ({"where": "true) OR (true"}, "syntax error"),
        ({"where": "true ORDER BY 1"}, "modifier"),
        ({"where": ""}, "--where"),
        ({"where": "length IN (SELECT length FROM read_parquet('x'))"}, "read_parquet"),
        ({"where": "answer::INTEGER > 5 OR cast('x' AS INTEGER) = 1"}, "--where"),
        ({"where": "length > 1000"}, "no trial matches"),
        ({"where": "count(*) > 1"}, "aggregates"),
        ({"where": "$x > 1"}, "--where"),
        ({"where": "EXISTS (FROM '/x.csv')"}, "--where EXISTS (FROM '/x.csv'): a condition opens no file"),
        ({"where": "EXISTS (FROM 'https://e.test/x.parquet')"}, "opens no file"),
        ({"where": "task IN (SELECT t FROM read_csv('/x.csv'))"}, "it cannot use read_csv()"),
        ({"where": "getenv('HOME') = ''"}, "--where"),
        ({"suite": "nupo"}, "llm_arithmetic, nupa"),
        ({"task": "mul"}, "It has: add."),
        ({"models": ["minii"]}, "haiku, mini"),
    ],
    ids=str,
)
def test_a_wrong_filter_is_a_clear_error(nights, given, said):
    with pytest.raises(ConfigError, match=next(iter(given))) as caught:
        ab.report(nights[0], **given)
    assert said in str(caught.value)


@pytest.mark.long
def test_a_filter_is_wrong_only_if_no_folder_has_what_it_names(nights):
    with pytest.raises(ConfigError, match="no trial matches"):
        ab.report(nights, suite="integer_addition", models=["big"])
    with pytest.raises(ConfigError, match="big, haiku, mini"):
        ab.report(nights, models=["minii"])


# ── on the command line ──────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_the_command_line_takes_several_folders_and_filters(nights):
    done = asyncbench_here("report", *nights, "--style", "standings", "--models", "mini,big", "--json")
    assert {one["name"] for one in json.loads(done.stdout)["rankings"][0]["lines"]} == {
        "big",
        "mini in monday",
        "mini in tuesday",
    }
    done = asyncbench_here("sql", *nights, "SELECT DISTINCT folder FROM trials ORDER BY 1", "--csv")
    assert done.stdout.split() == ["folder", "friday", "monday", "tuesday"]
    done = asyncbench_here("compare", "mini in monday", "big", *nights, "--where", "length < 3")
    assert "--where length < 3" in done.stdout
    done = asyncbench_here("report", *nights, "--html")
    assert (done.returncode, "--out" in done.stderr) == (2, True)


@pytest.mark.long
def test_a_page_is_of_several_folders_and_filtered(nights):
    found = contents_of(chosen(nights[:2], where="length < 3"))
    assert found["head"]["title"] == "monday, tuesday"
    sample, head = found["sample"], found["head"]
    assert sample["of"] == len(sample["trials"]) == 20 * 3 + 10
    assert all(trial["question"] and trial["grades"] for trial in sample["trials"])
    named = {"haiku": "monday", "mini in monday": "monday", "mini in tuesday": "tuesday"}
    assert {one["name"]: one["folder"] for one in head["entrants"]} == named
    assert any("--where length" in note["words"] for note in head["notes"])


@pytest.mark.long
def test_pictures_and_their_tables_are_of_several_folders_and_filtered(nights):
    of = chosen(nights[1:], suite="nupa")
    pictures = counted(of, lambda views: [*pictures_of(views)])
    (drawn,) = (picture for picture in pictures if picture.name == "task-map")
    assert {row["model"]: row["trials"] for row in drawn.rows} == {"big": 60, "mini": 60}
    for name, text in table_files(of, trials=True, loaded=False):
        assert "--suite nupa" in text.decode().replace("-{}", "-").replace("{-}", "-"), name
