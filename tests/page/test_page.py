"""The page in a browser: its figures are Python's, each control does its work, and nothing else happens."""

from pathlib import Path

import pytest

from asyncbench import sql
from asyncbench.charts import CHARTS, METRICS, frontier, rows, time_rows
from asyncbench.exchange import import_files
from asyncbench.page import writing
from asyncbench.page.writing import write_page
from asyncbench.published.nupa.counts import by_asked
from asyncbench.published.nupa.report import nupa_report_on
from asyncbench.reports.quota import quota_report_on
from asyncbench.reports.standings import standings_on
from asyncbench.results.anatomy import errors_in
from asyncbench.results.cells import summed
from asyncbench.results.minutes import minutes_of
from asyncbench.results.names import in_order, names_of, told_apart
from asyncbench.shown.numbers import dollars, percent
from asyncbench.stats import undominated
from asyncbench.store import ENTRANT
from asyncbench.store.folder import Store
from asyncbench.views.counting import counted
from tests.page.hostile import ATTACKS, LONG
from tests.recorded import write_jsonl
from tests.reports.answered import Asked, folder_of

VIEWS = ("overview", "tasks", "length", "cost", "time", "load", "errors", "trials", "about")
APP = Path(writing.__file__).parent / "app"


@pytest.fixture(scope="module")
def cells(night):
    return named_cells(night)


def named_cells(folder):
    """The cells of a folder as rows, with the model's own alias beside the name that is shown."""
    table = sql(folder, "FROM cells")
    asked = set(zip(*(table[name].to_pylist() for name in ENTRANT), strict=True))
    table = table.append_column("alias", table["model"])
    return rows.named(table, names_of(in_order(asked, {})))


def alike(found, expected):
    """Whether rows are the same, in order; figures to a billionth."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert set(one) == set(other)
        for name, value in other.items():
            assert one[name] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), name


AS_PLANNED = ("run", "alias", "condition")  # without a plan it is their order


def where(cells, **wanted):
    """The cells with these values, the best model first again."""
    kept = [cell for cell in cells if all(cell[name] in values for name, values in wanted.items())]
    best = {
        name: METRICS["accuracy"].of(sums).value or 0 for (name,), sums in summed(kept, ("model",)).items()
    }
    return sorted(kept, key=lambda cell: (-best[cell["model"]], [cell[name] for name in AS_PLANNED]))


# ── the figures ──────────────────────────────────────────────────────────────────────────────


def test_what_the_page_draws_of_everything_is_what_python_draws(night, cells, at_night):
    page = at_night()
    alike(page.rows("bars"), rows.bars(cells, by="suite"))
    ranking = next(one for one in standings_on(night).rankings if not one.alone)
    alike(page.rows("pairs"), rows.pair_rows(ranking))
    page.view("tasks")
    alike(page.rows("task_map"), rows.task_map(cells))
    alike(page.rows("depth_map"), rows.depth_map(cells))
    alike(page.rows("length_map"), rows.length_map([cell for cell in cells if cell["suite"] == "nupa"]))
    page.view("length")
    alike(page.rows("curves"), rows.curves(cells))
    page.view("cost")
    alike(page.rows("frontier_cost"), frontier.frontier_cost(cells))
    alike(page.rows("frontier_reasoning"), frontier.frontier_reasoning(cells))
    page.view("time")
    asked = {(cell["run"], cell["alias"], cell["condition"]) for cell in cells}
    minutes = counted(night, lambda views: minutes_of(views, names_of(asked)))
    alike(page.rows("latency"), time_rows.latency_rows(minutes))
    alike(page.rows("throughput"), time_rows.throughput_rows(minutes))
    alike(page.rows("quota"), time_rows.quota_rows(quota_report_on(night).minutes))
    page.view("errors")
    alike(page.rows("outcomes"), rows.outcomes(cells))
    assert page.told == []


def test_of_recorded_runs_the_page_draws_what_python_draws(golden, opened, tmp_path):
    folder = tmp_path / "recorded"
    import_files("llm-arithmetic", write_jsonl(golden, tmp_path / "files")[8:10], folder)
    write_page(folder)
    page = opened(folder)
    cells = named_cells(folder)
    alike(page.rows("bars"), rows.bars(cells))
    page.view("tasks")
    alike(page.rows("depth_map"), rows.depth_map(cells))
    page.view("length")
    alike(page.rows("curves"), rows.curves(cells))
    page.view("errors")
    alike(page.rows("kinds"), kinds_on(folder, cells))
    assert rows.OTHERS in {row["kind"] for row in page.rows("kinds")}
    page.view("time")  # of a recording no call is known
    for chart in ("latency", "throughput"):
        assert page.page.inner_text(f"[data-chart={chart}]").endswith(CHARTS[chart].nothing)
    assert page.told == []


def kinds_on(folder, cells):
    """The rows of the chart of kinds, with the models in the order of other charts."""
    findings = counted(folder, errors_in).values()
    asked = {(run, model, condition) for run, model, condition, *_ in (one.group for one in findings)}
    names = names_of(in_order(asked, {}))
    places = rows.models_of(cells)
    best_first = sorted(names.items(), key=lambda named: places.index(named[1]))
    return rows.kinds(findings, dict(best_first))


def test_kinds_of_errors_are_all_wrong_answers_of_each_model(night, cells, at_night):
    page = at_night("#view=errors")
    found = page.rows("kinds")
    alike(found, kinds_on(night, cells))
    for model in {row["model"] for row in found}:
        assert sum(row["value"] for row in found if row["model"] == model) == pytest.approx(1)


def test_every_metric_is_pythons(cells, at_night):
    page = at_night()
    options = page.page.locator("#metric option").evaluate_all("all => all.map((one) => one.value)")
    assert set(options) == {
        name for name in METRICS if any(METRICS[name].of(cell).value is not None for cell in cells)
    }
    for metric in options:
        page.page.select_option("#metric", metric)
        alike(page.rows("bars"), rows.bars(cells, metric))
    assert page.told == []


CHOICES = {
    "model": ("alias", "small"),
    "condition": ("condition", "shots"),
    "suite": ("suite", "nupa"),
    "task": ("task", "add"),
    "representation": ("representation", "float"),
    "range": ("range", "S"),
}


def test_every_choice_leaves_the_right_cells(cells, at_night):
    page = at_night()
    for name, (column, left_out) in CHOICES.items():
        page.page.click(f"[data-choice={name}] > summary")
        page.page.uncheck(f"input[name={name}][value={left_out}]")
        kept = where(cells, **{column: {cell[column] for cell in cells} - {left_out}})
        alike(page.rows("bars"), rows.bars(kept))
        assert page.tile("Trials").startswith(f"{sum(cell['trials'] for cell in kept):,}\n")
        page.page.click(f"[data-choice={name}] button:text-is('all')")
        page.page.click(f"[data-choice={name}] > summary")
    assert page.tile("Trials").startswith("504\n")
    assert page.told == []


def test_lengths_are_chosen_from_and_to_and_everything_comes_back(cells, at_night):
    page = at_night()
    page.page.fill("#from", "4")
    page.page.fill("#to", "7")
    page.page.press("#to", "Enter")
    kept = where(cells, length=range(4, 8))
    alike(page.rows("bars"), rows.bars(kept))
    page.view("length")
    alike(page.rows("curves"), rows.curves(kept))
    page.page.click("#reset")
    alike(page.rows("curves"), rows.curves(cells))


def test_panels_are_suites_tasks_or_all_together(cells, at_night):
    page = at_night()
    for chosen, by in (("task", "task"), ("none", None), ("suite", "suite")):
        page.page.select_option("#by", chosen)
        alike(page.rows("bars"), rows.bars(cells, by=by))


def test_panels_are_the_representations_or_ranges_of_nupa(cells, at_night):
    page = at_night("#suite=nupa")
    page.page.select_option("#by", "representation")
    alike(page.rows("bars"), rows.bars(where(cells, suite=["nupa"]), by="representation"))
    page.page.select_option("#by", "range")
    assert {row["panel"] for row in page.rows("bars")} == {"S", "M", "L", "XL"}


def test_well_learned_and_preserved_digits_are_those_of_the_report(night, at_night):
    table = at_night("#view=length").page.locator("#learned table")
    names = table.locator("thead th").all_text_contents()[1:]
    shown = {
        (line.locator("th").text_content(), name): digits
        for line in table.locator("tbody tr").all()
        for name, digits in zip(names, line.locator("td").all_text_contents(), strict=True)
    }
    lines = nupa_report_on(night).lines
    called = told_apart((full := names_of(by_asked(lines))).values())
    expected = {}
    for line in lines:
        held = line.by_grader["strict"].figures["exact_match"].digits
        assert held is not None
        task = " ".join(filter(None, (line.task.task, line.task.variant, line.task.representation)))
        expected[task, called[full[line.asked]]] = f"{held.well_learned} / {held.preserving}"
    assert shown == expected
    assert len(set(shown.values())) > 2


def test_choosing_nothing_says_so_and_breaks_nothing(at_night):
    page = at_night()
    page.page.click("[data-choice=model] > summary")
    page.page.click("[data-choice=model] button:text-is('none')")
    for view in VIEWS:
        page.view(view)
        assert page.page.locator("#view h2").count() == 1
    assert page.told == []


def test_who_is_not_ranked_has_no_place_and_the_best_stands_first(at_night):
    ranked = set()
    for table in at_night().page.locator("#standings details").all():
        has_place = "rank" in table.locator("thead th").all_text_contents()
        ranked.add(has_place)
        assert has_place == ("not ranked" not in table.locator("summary").text_content())
        shares = table.locator("tbody th + td").all_text_contents()
        assert shares == sorted(shares, key=lambda text: -float(text.partition("%")[0]))
    assert ranked == {True, False}


def test_where_problems_were_repeated_the_standings_tell_what_that_shows(simulated, at_night, opened):
    tables = opened(simulated).page.locator("#standings details").first.locator("table")
    heads = tables.nth(1).locator("thead th").all_text_contents()
    assert [head.partition("@")[0].partition("^")[0] for head in heads] == [
        *("model", "k", "problems"),
        *("pass", "majority", "pass"),
    ]
    lines = standings_on(simulated).rankings[0].lines
    rows = tables.nth(1).locator("tbody tr").all()
    assert [row.locator("td").all_text_contents() for row in rows] == [
        [
            str(at.k),
            str(at.pass_at_k.clusters),
            *(percent(of.share, of.interval).replace("-", "–") for of in at.figures),
        ]
        for line in lines
        for at in line.at_k
    ]
    assert "pass@" not in at_night().page.locator("#standings").text_content()


def test_dollars_stand_as_the_tables_on_a_terminal_have_them(at_night, opened, tmp_path):
    amounts = [0.0, 0.000_012_34, 0.000_999_4, 0.001, 0.388_44, 12.5, 1_234.567]
    shown = having("text", body="(amounts) => amounts.map(dollars)")
    assert at_night().page.evaluate(shown, amounts) == [*map(dollars, amounts)]
    free = folder_of(tmp_path / "free", [Asked(model="m", outcomes="+-", cost_usd=0.0)])
    write_page(free)
    assert opened(free).tile("Cost").startswith("$0.0000\n")


def test_a_frontier_says_over_what_it_compares(at_night, cells):
    page = at_night("#view=cost")
    told = page.page.inner_text("[data-chart=frontier_cost] .about")
    assert frontier.frontier_note(cells, "cost") in told


def test_equals_are_on_a_frontier_together(at_night):
    points = [(1.0, 0.5), (1.0, 0.5), (1.0, 0.4), (2.0, 0.5), (3.0, 0.9), (0.0, 0.0)]
    made = [{"model": f"{n}", "x": x, "value": value} for n, (x, value) in enumerate(points)]
    ahead = at_night().page.evaluate(having("rows", body="(rows) => [...front(rows)]"), made)
    assert tuple(one["model"] in ahead for one in made) == undominated(points)


def test_a_right_answer_costs_something_unknown_only_where_no_cost_is_known(at_night):
    made = [
        {"cost_usd": cost, "cost_per_correct": each} for cost, each in ((2, 0.5), (2, None), (None, None))
    ]
    column = "([name]) => name === 'each'"
    shown = having(
        "text",
        "overview",
        body=f"(lines) => lines.map(standingColumns({{per_correct: 'each'}}).find({column})[1])",
    )
    assert at_night().page.evaluate(shown, made) == ["$0.5000", "–", "unknown"]


def having(*scripts, body):
    """A function in which parts of the page's script are at hand, which nobody sees from outside."""
    parts = "\n".join((APP / f"{name}.js").read_text("utf-8") for name in scripts)
    return f"(given) => {{ {parts}\n return ({body})(given); }}"


def test_equals_stand_as_planned(at_night):
    told = {
        "cells": [{"asked": n, "name": name, "correct": 1, "trials": 2} for n, name in enumerate("bca")],
        "metrics": {"accuracy": {"over": ["correct"], "under": ["trials"], "scale": 1, "interval": False}},
        "summed": ["correct", "trials"],
    }
    body = (
        "(told) => { globalThis.page = told; return bestFirst(told.cells.reverse()).map((one) => one.name); }"
    )
    assert at_night().page.evaluate(having("rows", body=body), told) == ["b", "c", "a"]


def test_the_best_of_a_frontier_are_named_beside_their_points(at_night):
    page = at_night("#view=cost")
    best = {row["model"] for row in page.rows("frontier_cost") if row["front"]}
    assert best <= set(page.page.locator("[data-chart=frontier_cost] svg text").all_text_contents())


def test_a_model_under_two_conditions_is_one_model(at_night):
    assert at_night().tile("Trials").endswith("3 models, 2 conditions, 10 tasks")


def test_paired_differences_name_the_leader_once_and_each_other_in_full(at_night):
    card = at_night().page.locator("[data-chart=pairs]")
    found = at_night().rows("pairs")
    assert f"The best model is {found[0]['model']};" in card.locator(".about").inner_text()
    assert {row["other"] for row in found} <= set(card.locator("svg text").all_text_contents())


def test_on_a_desk_no_column_of_the_standings_is_out_of_sight(at_night):
    for table in at_night().page.locator("#standings details[open] .scroll").all():
        assert table.evaluate("one => one.scrollWidth - one.clientWidth") <= 1


def test_who_is_not_ranked_is_told_with_the_number_of_trials(opened, tmp_path):
    asked = [Asked(model="long", outcomes="+-" * 10), Asked(model="short", outcomes="+++", first=70)]
    write_page(folder_of(tmp_path / "apart", asked))
    table = opened(tmp_path / "apart").page.locator("#standings table").first
    assert table.locator("th:text-is('trials')").count() == 1
    names, trials = (table.locator(part).all_inner_texts() for part in ("tbody th", "tbody th + td"))
    told = dict(zip(names, trials, strict=True))
    assert told == {"long": "20", "short": "3"}


# ── the address ──────────────────────────────────────────────────────────────────────────────


def test_a_view_can_be_linked_and_gone_back_to(night, opened):
    page = opened(night)
    page.page.click("[data-choice=model] > summary")
    page.page.uncheck("input[name=model][value=small]")
    page.page.select_option("#metric", "of_answered")
    page.view("tasks")
    expected, address = page.rows("task_map"), page.page.url

    linked = opened(night, address[address.index("#") :])
    assert linked.rows("task_map") == expected
    assert not linked.page.is_checked("input[name=model][value=small]")

    page.page.go_back()
    page.page.go_back()
    page.page.go_back()
    assert page.page.is_checked("input[name=model][value=small]")
    assert page.page.locator("#view h2").inner_text() == "Overview"


def test_an_address_that_makes_no_sense_shows_the_overview(at_night):
    page = at_night("#view=nonsense&metric=none&model=<script>&from=x&page=-7")
    assert page.page.locator("#view h2").inner_text() == "Overview"
    assert page.told == []


# ── single trials ────────────────────────────────────────────────────────────────────────────


def found(page):
    return int(page.page.inner_text("#found").partition(" ")[0].replace(",", ""))


def test_trials_are_found_by_outcome_by_choice_and_by_text(cells, at_night):
    page = at_night("#view=trials")
    assert found(page) == 504
    page.page.select_option("#outcome", "wrong")
    assert found(page) == sum(cell["wrong"] for cell in cells)
    page.page.click("[data-choice=model] > summary")
    page.page.uncheck("input[name=model][value=small]")
    assert found(page) == sum(cell["wrong"] for cell in cells if cell["alias"] != "small")
    page.page.select_option("#outcome", "")
    page.page.fill("#text", "would rather")
    refused = sum(cell["no_answer"] for cell in cells if cell["alias"] != "small")
    page.page.get_by_text(f"{refused} found").wait_for()
    page.page.fill("#text", "no such text")
    page.page.get_by_text("0 found").wait_for()
    assert "No trial" in page.page.inner_text("#trial")


def test_a_trial_tells_what_was_asked_what_came_and_why_it_was_graded_so(at_night):
    page = at_night("#view=trials&outcome=no_answer&suite=llm_arithmetic")
    text = page.page.inner_text("#trial")
    for part in (
        "Compute the following",
        "I would rather not.",
        "no answer that the grader can read",
        "layered v1",
        "strict v1",
    ):
        assert part in text
    assert "Answer\nno answer" in page.page.inner_text("#trial .versus")


def test_what_differs_is_marked_from_the_end_at_which_less_does(at_night):
    page = at_night("#view=trials&outcome=wrong")  # each has a 7 before the right answer
    assert page.page.locator("#trial .digit-off").all_inner_texts() == ["7"]


def test_a_folder_without_trials_has_a_page_that_opens(opened, tmp_path):
    Store.open(tmp_path / "none", sweep="none").close()
    write_page(tmp_path / "none")
    page = opened(tmp_path / "none")
    for view in VIEWS:
        page.view(view)
    assert page.told == []


def test_the_list_is_walked_with_arrows_and_turned_by_pages(at_night):
    page = at_night("#view=trials")
    current = "#trial-list [aria-selected=true]"
    ids = page.page.locator("#trial-list li").evaluate_all("all => all.map((one) => one.id)")
    page.page.focus(current)
    for key, place in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", 49), ("Home", 0)):
        page.page.keyboard.press(key)
        assert page.page.get_attribute(current, "id") == ids[place]
        assert page.page.evaluate("document.activeElement.id") == ids[place]
        assert f"trial={ids[place][2:]}" in page.page.url
    page.page.keyboard.press("PageDown")
    assert "page 2 of 11" in page.page.inner_text("#found")
    page.page.click("#earlier")
    assert page.page.locator("#trial-list li").evaluate_all("all => all.map((one) => one.id)") == ids


# ── for everybody ────────────────────────────────────────────────────────────────────────────


def test_everything_is_reached_by_keyboard_and_shows_where_it_is(night, opened):
    page = opened(night)
    reached = []
    for _ in range(19):
        page.page.keyboard.press("Tab")
        reached.append(
            page.page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")
        )
        style = page.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert style == "solid", reached[-1]
    assert reached[:3] == ["Skip to the results", "theme", "Overview"]
    assert reached[10] == "About"
    assert {"metric", "reset"} & set(reached)

    page.page.focus("#tabs a[data-view=cost]")
    page.page.keyboard.press("Enter")
    assert page.page.locator("#view h2").inner_text() == "What accuracy costs"
    page.page.focus("[data-choice=model] > summary")
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("Space")
    assert "2 of 3" in page.page.inner_text("[data-choice=model] > summary")


def test_a_chart_has_a_name_and_the_same_figures_as_a_table(at_night):
    page = at_night()
    card = page.page.locator("[data-chart=bars]")
    assert card.locator(".picture").get_attribute("aria-label").startswith("Accuracy.")
    drawn = page.rows("bars")
    card.locator("summary").click()
    card.locator("tbody tr").first.wait_for()
    assert card.locator("tbody tr").count() == len(drawn)
    assert card.locator("tbody tr").first.locator("td").nth(1).inner_text() == drawn[0]["model"]


def test_colours_follow_the_system_until_they_are_chosen(night, opened):
    page = opened(night, color_scheme="dark")
    grounds = [page.page.evaluate(GROUND)]
    assert page.page.get_attribute("html", "data-theme") == "dark"
    page.page.emulate_media(color_scheme="light")
    page.page.wait_for_selector("html[data-theme=light]")
    grounds.append(page.page.evaluate(GROUND))
    page.page.click("#theme")
    assert page.page.get_attribute("html", "data-theme") == "dark"
    page.page.emulate_media(color_scheme="dark")
    page.page.click("#theme")
    assert page.page.get_attribute("html", "data-theme") == "light"
    assert page.page.evaluate(GROUND) == grounds[1] != grounds[0]
    page.rows("bars")
    assert page.told == []


GROUND = "getComputedStyle(document.body).backgroundColor"


def test_on_paper_there_are_results_and_no_controls(simulated, opened):
    page = opened(simulated, color_scheme="dark")
    page.page.emulate_media(media="print")
    page.page.wait_for_selector("html[data-theme=light]")
    for hidden in ("#filters", "#tabs", "#theme"):
        assert not page.page.is_visible(hidden)
    for shown in ("#simulated", "#scope", "#standings", "[data-chart=bars] svg"):
        assert page.page.is_visible(shown)
    assert len(page.page.pdf()) > 10_000
    assert page.told == []


def test_on_a_phone_no_view_is_wider_than_the_screen_and_simulated_results_say_so_on_each(simulated, opened):
    page = opened(simulated, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    table = page.page.locator("#standings .scroll").first
    table.evaluate("one => { one.scrollLeft = one.scrollWidth; }")  # within its card, and the names stay
    for shown in ("tbody th", "tbody td:last-child"):
        box = table.locator(shown).first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    for view in VIEWS:
        page.view(view)
        for chart in page.page.locator("[data-chart] .chart").all():
            chart.locator("svg").wait_for(state="attached")
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 390, view
        assert page.page.locator("#simulated").is_visible()
        assert "SIMULATED" in page.page.title()
    assert page.told == []


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Many models whose long names differ in their last letters."""
    names = [f"a-provider/some-model-of-2026-{n:02d}" for n in range(12)]
    folder = folder_of(
        tmp_path_factory.mktemp("page") / "many", [Asked(model=name, outcomes="+-+") for name in names]
    )
    write_page(folder)
    return folder


PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def test_on_a_phone_names_that_differ_at_their_end_still_do(many, opened):
    page = opened(many, **PHONE)
    page.rows("bars")
    texts = page.page.locator("[data-chart=bars] svg text").all_text_contents()
    shown = [text for text in texts if text.startswith("a-provide")]
    assert len(set(shown)) == 12
    assert all(
        "…" in text and text.endswith(f"{n:02d}")
        for n, text in enumerate(sorted(shown, key=lambda one: one[-2:]))
    )


def test_on_a_phone_legends_titles_and_labels_of_charts_are_whole(simulated, opened):
    page = opened(simulated, **PHONE)
    for view, chart, text in (
        ("overview", "pairs", "percentage points"),
        ("overview", "pairs", " points"),
        ("errors", "outcomes", "failed"),
        ("errors", "digit_errors", "from the last digit"),
    ):
        page.view(view)
        page.rows(chart)
        found = page.page.locator(f"[data-chart={chart}] svg text").filter(has_text=text)
        assert found.count(), text
        for one in found.all():
            box = one.bounding_box()
            assert 0 <= box["x"] < box["x"] + box["width"] <= 390, text
    page.view("errors")
    page.rows("outcomes")
    bars = page.page.locator("[data-chart=outcomes] svg .mark-rect").first.bounding_box()
    assert bars["width"] > 390 / 2


def test_on_paper_no_chart_is_taller_than_a_sheet(many, opened):
    page = opened(many, "#view=tasks", **PHONE)
    page.rows("length_map")
    drawing = page.page.locator("[data-chart=length_map] svg")
    room = (297 - 2 * 25) / 25.4 * 96  # pixels of A4 within margins
    assert drawing.bounding_box()["height"] > room
    page.page.emulate_media(media="print")
    assert drawing.bounding_box()["height"] < room


def test_what_models_answered_is_not_called_simulated(at_night):
    page = at_night()
    assert not page.page.locator(".simulated").first.is_visible()
    assert "SIMULATED" not in page.page.title()


# ── nothing else happens ─────────────────────────────────────────────────────────────────────


def test_whatever_a_model_wrote_is_text_and_does_nothing(hostile, opened):
    page = opened(hostile)
    for view in VIEWS:
        page.view(view)
        page.page.wait_for_timeout(50)
    page.view("trials")
    for item in page.page.locator("#trial-list li").all():
        item.click()
        page.page.locator("#trial details > summary").click()
    assert page.told == []
    assert page.page.evaluate("window.hacked") is None
    for tag in ("iframe", "img", "object", "embed", "base", "b", "[onclick]", "[onerror]", "[onload]"):
        assert page.page.locator(tag).count() == 0
    assert page.page.locator("script").count() == 2
    assert page.page.locator("style").count() == 1
    assert page.page.locator("a:not(#tabs a):not(.skip)").count() == 0


def test_what_a_model_wrote_is_shown_as_it_is_and_what_cannot_be_seen_is_spelled(hostile, opened):
    page = opened(hostile, "#view=trials")
    shown = {}
    for item in page.page.locator("#trial-list li").all():
        item.click()
        question = page.page.locator("#trial pre").first.evaluate("pre => pre.textContent")
        name, _, text = question.partition(": ")
        shown[name] = text
    for name in ("script", "end", "comment", "handler", "svg", "frame", "link", "places"):
        assert shown[name] == ATTACKS[name]
    assert shown["escapes"] == "\\x1b[2J\\x1b]0;owned\\x07\\x9b31m"
    assert shown["direction"] == "12\\u202e34\\u2066 5\\u2069\\u200f\\u061c"
    assert shown["unseen"] == "nul\\x00 soft\\xad wide\\ufeff line\\u2028 tag\\u{e0041}"
    assert "characters left out" in shown["long"]
    assert len(shown["long"]) < 3_200 < len(LONG)
    assert page.page.inner_text("h1").startswith("<b onclick=alert(1)>")
    assert page.told == []


def test_the_policy_lets_nothing_in_and_nothing_out(night, opened):
    page = opened(night)
    page.page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.hacked = 1";
        document.body.append(script);
        const image = document.createElement("img");
        image.src = "http://127.0.0.1:9/x.png";
        document.body.append(image);
        document.body.setAttribute("onclick", "window.hacked = 2");
        document.body.click();
    }""")
    assert page.page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    assert page.page.evaluate("window.hacked") is None
    assert not any(told.startswith("request:") for told in page.told)
    assert any("Content Security Policy" in told for told in page.told)
