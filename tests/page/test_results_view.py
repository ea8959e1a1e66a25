"""The first view: its figures are Python's, nothing unlike is pooled, and each figure opens its answers."""

from typing import Any

import pytest

from asyncbench import sql
from asyncbench.page.writing import write_page
from asyncbench.tables.numbers import whole_percent
from tests.reports.answered import Asked, folder_of


def of_block(rows: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row.get(name) for name in names) for row in rows]


@pytest.mark.long
def test_the_page_leads_with_the_finding_and_says_once_what_sort_of_answers_these_are(
    at_night, blocks, simulated, opened
):
    page = at_night()
    first, *others = blocks["head"]["finding"]
    assert page.page.inner_text("#view .finding h2") == first
    assert page.page.inner_text("#view .finding p").split() == " ".join(others).split()
    assert not page.page.is_visible("#mark")
    marked = opened(simulated)
    for view in ("results", "answers", "errors", "about"):
        marked.view(view)
        assert marked.page.inner_text("body").count("SIMULATED") == 1
        assert marked.page.is_visible("#mark")
    assert marked.page.title().endswith("(SIMULATED)")
    assert page.told == marked.told == []


def test_charts_draw_the_rows_of_python_with_one_colour_for_each_model(at_night, blocks):
    page, head = at_night(), blocks["head"]
    ranking = blocks["standings"]["rankings"][0]
    drawn = page.rows("dots")
    figures = ("asked", "place", "value", "low", "high", "trials")
    assert of_block(drawn, *figures) == of_block(ranking["lines"], *figures)
    halves = page.rows("halves")
    lengths = ("asked", "kind", "at", "low", "high", "bound", "label")
    assert of_block(halves, *lengths) == of_block(blocks["breaks"]["halves"], *lengths)
    curves = page.rows("curves")
    shown = {row["kind"] for row in curves}
    expected = [row for row in blocks["breaks"]["rows"] if row["kind"] in shown]
    points = ("asked", "kind", "sort", "length", "value", "low", "high", "trials")
    assert of_block(curves, *points) == of_block(expected, *points)
    colours = {(row["asked"], row["model"], row["colour"]) for row in (*drawn, *halves, *curves)}
    entrants = head["entrants"]
    assert colours == {(n, entrants[n]["short"], entrants[n]["light"]) for n in {one[0] for one in colours}}
    assert page.told == []


def test_tasks_with_few_lengths_have_no_curve_and_are_named(at_night, blocks):
    page = at_night()
    kinds = blocks["head"]["kinds"]
    drawn = {row["kind"] for row in page.rows("curves")}
    lengths: dict[int, set[float]] = {kind: set() for kind in range(len(kinds))}
    for row in blocks["breaks"]["rows"]:
        if row["sort"] == "point":
            lengths[row["kind"]].add(row["length"])
    few = {kind for kind, those in lengths.items() if len(those) < 3}
    assert few
    assert drawn == set(lengths) - few
    told = page.page.inner_text("[data-chart=curves] .few")
    assert all(kinds[kind]["called"] in told for kind in few)


def test_every_ranking_can_be_looked_at_and_its_standings_read(at_night, blocks):
    page = at_night()
    rankings = blocks["standings"]["rankings"]
    options = page.page.locator("#over option").evaluate_all("all => all.map((one) => one.value)")
    assert len(options) == len(rankings) > 2
    both = [*zip(options, rankings, strict=True)]
    of_kinds = [one for one in both if one[1]["kind"] is not None]
    for option, ranking in [*(one for one in both if one not in of_kinds), *of_kinds[::4]]:
        page.page.select_option("#over", option)
        if not ranking["alone"]:
            columns = ("asked", "place", "value")
            assert of_block(page.rows("dots"), *columns) == of_block(ranking["lines"], *columns)
        page.page.evaluate("document.querySelector('[data-keep=\"standings as a table\"]').open = true")
        table = page.page.locator("#standings table", has_text="accuracy").last
        shown = table.locator("tbody th").all_inner_texts()
        assert shown == [blocks["head"]["entrants"][line["asked"]]["short"] for line in ranking["lines"]]
    assert page.told == []


@pytest.mark.parametrize("metric", ["accuracy", "cost"])
def test_the_table_of_tasks_and_models_has_the_figures_of_python(at_night, blocks, metric):
    page, head = at_night(f"#metric={metric}"), blocks["head"]
    found = page.heat("heat")
    shown = {
        (head["kinds"][row["kind"]]["called"], head["entrants"][row["asked"]]["short"]): row["values"][
            metric
        ][0]
        for row in blocks["heat"]["rows"]
        if metric in row["values"]
    }
    assert {key for key, cell in found.items() if cell} == set(shown)
    for key, value in shown.items():
        if metric == "accuracy":  # two digits: 100 for all alone, 0 for none alone
            assert found[key] == ("<1" if 0 < value < 0.01 else whole_percent(value))  # as in a terminal
        else:
            assert float(found[key].removeprefix("$")) == pytest.approx(value, rel=0.01)


@pytest.mark.long
def test_a_share_just_below_all_is_not_shown_as_all_nor_in_its_colour(opened, tmp_path):
    folder_of(
        tmp_path / "near",
        [Asked(model="near", outcomes="+" * 199 + "-"), Asked(model="all", outcomes="+" * 200)],
    )
    write_page(tmp_path / "near")
    page = opened(tmp_path / "near")
    assert sorted(page.heat("heat").values()) == ["100", "99"]
    classes = page.page.locator("#heat td .cell").evaluate_all("all => all.map((one) => one.className)")
    assert len(set(classes)) == 2


def test_a_page_of_one_model_and_few_trials_says_no_more_than_it_knows(opened, tmp_path):
    folder_of(
        tmp_path / "one",
        [Asked(model="one", outcomes="++-"), Asked(model="one", outcomes="+" * 9, task="sub")],
    )
    write_page(tmp_path / "one")
    page = opened(tmp_path / "one").page
    assert page.inner_text("#standings h3") == "Accuracy"
    assert page.locator("[data-chart=dots] svg").count() == 1
    assert "too few problems with a known length" in page.inner_text("[data-chart=curves]")
    assert "Too few lengths or trials for a curve: sub" in page.inner_text("[data-chart=curves] .few")
    assert list(opened(tmp_path / "one").heat("heat").values()) == ["67", "100"]


@pytest.mark.long
def test_a_page_of_a_matrix_begins_with_its_models_over_all_variants(opened, tmp_path):
    asked = [
        Asked(model=f"{name} temperature={value}", model_id=name, temperature=value, outcomes=outcomes * 20)
        for name, outcomes in (("good", "+++-"), ("poor", "+---"))
        for value in (0, 1)
    ]
    folder_of(tmp_path / "matrix", asked)
    write_page(tmp_path / "matrix")
    page = opened(tmp_path / "matrix")
    assert page.page.locator("#view section").first.get_attribute("id") == "variants"
    card = page.page.inner_text("#variants")
    assert "good is right in 75.0% over its 2 variants, 50.0 points ahead of poor." in card
    assert page.page.inner_text("#standings h3") == "All 4 variants of 2 models on the same problems"
    assert page.told == []


@pytest.mark.long
def test_a_cell_opens_exactly_its_trials(at_night, night):
    page = at_night()
    counts = sql(
        night,
        "SELECT count(*) AS n FROM trials WHERE task = 'sub' AND model = 'large' GROUP BY representation",
    )
    cell = page.page.locator("#heat td a[aria-label^='sub integer, large']")
    cell.click()
    page.settled()
    assert page.found() in counts["n"].to_pylist()
    assert page.page.locator(".chip").all_inner_texts() == ["large ✕", "sub integer ✕"]
    page.page.go_back()
    page.settled()
    assert page.page.locator("#heat").count() == 1
    lengths = page.page.locator("#by-length td a").first
    words = lengths.get_attribute("aria-label")
    lengths.click()
    page.settled()
    assert f"of {page.found()}" in words
    page.page.click(".chip >> nth=0")  # a chip lets go of what it says
    page.settled()
    assert page.found() > int(words.rpartition(" of ")[2])
    assert page.told == []


def test_a_dot_and_a_point_of_a_curve_open_their_answers(at_night):
    page = at_night()
    dots = page.rows("dots")
    page.page.locator("[data-chart=dots] .mark-symbol path").first.click()
    page.page.wait_for_selector("#trial-list li")
    assert f"asked={dots[0]['model']}" in page.page.url
    assert page.found() >= dots[0]["trials"]
    page.again()
    points = [row for row in page.rows("curves") if row["sort"] == "point"]
    page.page.locator("[data-chart=curves] .mark-symbol path").first.click()
    page.page.wait_for_selector("#trial-list li")
    page.settled()
    assert page.found() in {row["trials"] for row in points}
    assert page.told == []


def test_by_keyboard_each_row_of_a_chart_has_its_answers_in_its_table(at_night):
    page = at_night()
    card = page.page.locator("[data-chart=halves]")
    drawn = page.rows("halves")
    card.locator("summary").focus()
    page.page.keyboard.press("Enter")
    links = card.locator("tbody tr a")
    links.first.wait_for()
    assert links.count() == len(drawn)
    links.first.focus()
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("#trial-list li")
    assert f"kind=llm_arithmetic%2F{drawn[0]['task']}%2F%2Finteger" in page.page.url


@pytest.mark.long
def test_where_problems_were_repeated_the_standings_tell_what_that_shows(simulated, at_night, opened):
    page = opened(simulated)
    page.page.click("text=Standings as a table")
    heads = page.page.locator("#standings table", has_text="pass@").locator("thead th").all_inner_texts()
    assert [head.partition("@")[0].partition("^")[0] for head in heads] == [
        *("model", "k", "problems"),
        *("pass", "majority", "pass"),
    ]
    assert page.page.locator("#standings table", has_text="pass@").locator("tbody tr").count() >= 3
    assert "pass@" not in at_night().page.inner_text("#standings")
