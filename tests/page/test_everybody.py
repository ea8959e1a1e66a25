"""For everybody: by keyboard alone, on a phone, in the dark, on paper, and as axe-core judges it."""

import pytest

VIEWS = ("results", "answers", "errors", "time", "cost", "about")
GROUND = "getComputedStyle(document.body).backgroundColor"


def test_everything_is_reached_by_keyboard_and_shows_where_it_is(night, opened):
    page = opened(night)
    reached = []
    for _ in range(24):
        page.page.keyboard.press("Tab")
        reached.append(
            page.page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")
        )
        assert page.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", (
            reached[-1]
        )
    assert reached[:4] == ["Skip to the results", "help", "theme", "Results"]
    assert "About" in reached
    assert {"by", "over", "from", "to"} <= set(reached)
    page.page.focus("[data-choice=model] > summary")
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("Tab")  # all
    page.page.keyboard.press("Tab")  # the first box
    page.page.keyboard.press("Space")
    page.settled()
    assert page.page.inner_text("[data-choice=model] .chosen") == "2 of 3"
    page.page.keyboard.press("Tab")  # only
    page.page.keyboard.press("Enter")
    page.settled()
    assert page.page.inner_text("[data-choice=model] .chosen") == "large"
    page.page.keyboard.press("Escape")
    assert not page.page.is_visible("[data-choice=model] fieldset")
    page.page.focus("#tabs a[data-view=answers]")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("#trial-list li")
    assert page.told == []


@pytest.mark.long
@pytest.mark.parametrize(("scheme", "rules"), [("light", ()), ("dark", ("color-contrast",))])
def test_axe_finds_nothing_serious(night, opened, scheme, rules):
    page = opened(night, color_scheme=scheme)
    for view in VIEWS:
        page.view(view)
        assert page.axe(*rules) == [], view
    page.again("#view=answers&outcome=wrong&suite=nupa&beside=yes")
    assert page.axe(*rules) == []
    assert page.told == []


@pytest.mark.long
def test_on_a_phone_no_view_is_wider_than_the_screen_and_tables_keep_their_names(simulated, on_phone):
    page = on_phone.open(simulated)
    assert page.page.inner_text("#mark") == "SIMULATED"
    assert "asyncbench's own server" in page.page.inner_text("#foot")
    first = page.page.locator("#view > *").evaluate_all(
        "all => all.sort((a, b) => a.offsetTop - b.offsetTop).map((one) => one.id || one.className)"
    )
    assert first[:2] == ["finding", "standings"]
    assert page.page.locator("[data-chart=dots] svg").bounding_box()["y"] < 600  # on the first screen
    table = page.page.locator("#heat .scroll")
    table.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
    for shown in ("tbody th", "tbody td:last-child"):
        box = table.locator(shown).first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert table.evaluate("one => one.scrollWidth - one.clientWidth") <= 0  # four models fit
    for view in VIEWS:
        page.view(view)
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 390, view
        assert page.page.locator("#mark").is_visible()
        for drawing in page.page.locator("[data-chart] svg").all():
            box = drawing.bounding_box()
            assert box["x"] + box["width"] <= 395, view
    assert page.told == []


def test_colours_follow_the_system_until_they_are_chosen(night, opened):
    page = opened(night, color_scheme="dark")
    grounds = [page.page.evaluate(GROUND)]
    dark = {row["colour"] for row in page.rows("dots")}
    page.page.emulate_media(color_scheme="light")
    page.page.wait_for_selector("html[data-theme=light]")
    page.settled()
    assert {row["colour"] for row in page.rows("dots")}.isdisjoint(dark)
    grounds.append(page.page.evaluate(GROUND))
    page.page.click("#theme")
    assert page.page.get_attribute("html", "data-theme") == "dark"
    page.page.emulate_media(color_scheme="dark")
    page.page.click("#theme")
    assert page.page.get_attribute("html", "data-theme") == "light"
    page.settled()
    assert page.page.evaluate(GROUND) == grounds[1] != grounds[0]
    assert page.told == []


def test_on_paper_there_are_results_and_no_controls(simulated, opened):
    page = opened(simulated, color_scheme="dark")
    page.page.emulate_media(media="print")
    page.page.wait_for_selector("html[data-theme=light]")
    page.settled()
    for hidden in ("#filters", "#tabs", "#theme", "#help", "#metric"):
        assert not page.page.is_visible(hidden)
    for shown in ("#mark", "#view .finding", "#heat table", "[data-chart=dots] svg"):
        assert page.page.is_visible(shown)
    assert len(page.page.pdf()) > 10_000
    assert page.told == []


def test_who_wants_no_motion_has_none(at_night):
    page = at_night().page
    moving = "(one) => parseFloat(getComputedStyle(one).transitionDuration) > 0"
    anything = f"[...document.querySelectorAll('*')].some({moving})"
    assert page.evaluate(anything)
    page.emulate_media(reduced_motion="reduce")
    assert not page.evaluate(anything)
    page.emulate_media(reduced_motion="no-preference")
