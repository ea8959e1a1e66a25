"""Filters: everything on the page follows them or says that it cannot, and the address holds all of it."""

import pytest


def models(page, card="heat"):
    return page.page.locator(f"#{card} thead th:not(:first-child)").all_inner_texts()


def test_only_leaves_one_value_and_everything_follows(at_night, blocks):
    page = at_night()
    page.only("model", "middle")
    head = blocks["head"]
    places = {n for n, entrant in enumerate(head["entrants"]) if entrant["model"] == "middle"}
    for chart in ("dots", "curves", "halves"):
        rows = page.rows(chart)
        assert rows
        assert {row["asked"] for row in rows} <= places
    assert len(models(page)) == len(places) == 2
    page.only("condition", "shots")
    assert models(page) == ["middle (shots)"]
    page.view("answers")
    assert page.found() == next(one["trials"] for one in head["entrants"] if one["condition"] == "shots")
    page.view("errors")
    assert {row["asked"] for row in page.rows("outcomes")} < places
    assert page.told == []


def test_a_figure_that_cannot_follow_a_filter_says_on_what_it_is(at_night):
    page = at_night()
    assert page.page.locator(".limits").count() == 0
    finding = page.page.inner_text(".finding h2")
    page.page.fill("#from", "4")
    page.page.press("#from", "Enter")
    page.settled()
    assert "all lengths" in page.page.inner_text("#heat .limits")
    assert page.page.inner_text(".finding h2") == finding
    assert "all lengths" in page.page.inner_text(".finding .limits")
    assert all(row["length"] >= 4 for row in page.rows("curves"))
    assert min(int(name.split(" ")[0].split("–")[0]) for name, _ in page.heat("by-length")) >= 4
    page.only("task", "add")
    assert "all tasks and all lengths" in page.page.inner_text("#standings .limits")
    assert {name for name, _ in page.heat("heat")} == {"add integer", "add float"}


def test_the_address_holds_the_state_and_back_goes_back(night, at_night, opened):
    page = at_night()
    page.only("model", "small")
    page.page.select_option("#metric", "of_answered")
    page.view("errors")
    expected, address = page.rows("outcomes"), page.page.url
    linked = opened(night, address[address.index("#") :])
    assert linked.rows("outcomes") == expected
    assert linked.page.inner_text("[data-choice=model] .chosen") == "small"
    for _ in range(2):
        page.page.go_back()
    page.settled()
    assert page.page.input_value("#metric") == "accuracy"
    assert page.page.inner_text("[data-choice=model] .chosen") == "small"
    page.page.go_back()
    page.settled()
    assert page.page.inner_text("[data-choice=model] .chosen") == "all"
    page.page.go_forward()
    page.settled()
    assert page.page.inner_text("[data-choice=model] .chosen") == "small"


def test_one_key_resets_but_not_while_something_is_typed(at_night):
    page = at_night("#model=small&from=3&by=condition")
    page.page.keyboard.press("r")
    page.settled()
    assert page.page.url.partition("#")[2] == ""
    page.view("answers")
    page.page.keyboard.press("/")
    page.page.keyboard.type("r/?jk")
    assert page.page.input_value("#text") == "r/?jk"
    page.until("location.hash.includes('text=')")
    page.settled()
    assert page.page.locator("dialog").count() == 0
    assert page.page.evaluate("document.activeElement.id") == "text"
    page.page.evaluate("document.activeElement.blur()")
    page.page.keyboard.press("?")
    assert "reset all filters" in page.page.inner_text("dialog")
    page.page.keyboard.press("Escape")
    page.until("document.querySelector('dialog') === null")


def test_by_what_was_varied_colours_are_its_values_and_panels_are_of_a_model(at_night):
    page = at_night()
    assert page.page.locator("#by option").evaluate_all("all => all.map((one) => one.value)") == [
        "",
        "condition",
    ]
    page.page.select_option("#by", "condition")
    curves = page.rows("curves")
    assert {row["model"] for row in curves} == {"plain", "shots"}
    assert {row["task"].partition(" · ")[2] for row in curves} == {"middle"}  # of the others there is one
    assert len({row["colour"] for row in curves}) == 2
    assert {row["model"] for row in page.rows("dots")} == {"large", "middle", "small"}
    assert page.page.inner_text("#standings .legend").split() == ["plain", "shots"]
    for view, chart, spot in (
        ("errors", "outcomes", ("outcome",)),
        ("errors", "digit_errors", ("task", "end", "position")),
        ("time", "times", ("quantity",)),
    ):
        page.view(view)
        assert page.page.inner_text("#view > .legend").split() == ["plain", "shots"]
        drawn = [(row["model"], *(row[name] for name in spot)) for row in page.rows(chart)]
        assert len({*drawn}) == len(drawn)  # nothing lies on something else
    assert page.told == []


@pytest.mark.parametrize(
    "hash_",
    ["#view=nonsense&metric=none&model=<script>&from=x&page=-7&asked=99&kind=abc&by=x&over=y", "#model=∅"],
)
def test_an_address_that_makes_no_sense_and_nothing_chosen_break_nothing(at_night, hash_):
    page = at_night(hash_)
    assert page.page.locator("#view h2").count() == 1
    for view in ("answers", "errors", "time", "cost", "about", "results"):
        page.view(view)
        assert "cannot be shown" not in page.page.inner_text("#view")
    assert page.told == []
