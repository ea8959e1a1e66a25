"""Answers: found by what is asked, walked by keys, laid on the expected value, side by side by question."""

import pytest

from asyncbench import sql
from asyncbench.page.writing import write_page
from asyncbench.store.folder import Store

CURRENT = "#trial-list [aria-selected=true]"


@pytest.mark.long
def test_answers_are_found_by_outcome_by_filter_and_by_text(at_night, night):
    page = at_night("#view=answers")
    assert page.found() == 504
    page.only("outcome", "wrong")
    assert page.found() == sql(night, "FROM trials WHERE outcome = 'wrong'").num_rows
    page.only("model", "large")
    assert page.found() == sql(night, "FROM trials WHERE outcome = 'wrong' AND model = 'large'").num_rows
    page.page.keyboard.press("r")
    page.settled()
    page.page.fill("#text", "would rather")
    refused = sql(night, "FROM trials WHERE outcome = 'no_answer'").num_rows
    page.until(f"document.getElementById('found').textContent.startsWith('{refused} of')")
    page.page.fill("#text", "no such text")
    page.page.get_by_text("No answer matches").wait_for()
    assert page.page.inner_text("#trial") == ""
    assert page.told == []


def test_an_answer_tells_what_was_asked_what_came_and_why_it_was_graded_so(at_night):
    page = at_night("#view=answers&outcome=no_answer&suite=llm_arithmetic")
    text = page.page.inner_text("#trial")
    for part in ("I would rather not.", "no answer that the grader can read", "layered v3", "strict v3"):
        assert part in text
    assert "Compute the following" not in text  # the question is folded, its operands are not
    page.page.click("text=Question as it was asked")
    assert "Compute the following" in page.page.inner_text("#trial")
    assert page.page.locator("#trial .operands").inner_text() in page.page.inner_text("#trial pre >> nth=-1")
    names = page.page.locator("#trial table th[scope=col]").all_inner_texts()
    assert "answer" not in names  # no grader read one


def test_an_answer_is_laid_on_the_expected_value_and_told_without_colour(at_night, night):
    page = at_night("#view=answers&outcome=wrong")  # each has a 7 before the right answer
    extra = page.page.locator("#trial .laid .op-extra")
    assert extra.locator(".read").all_inner_texts() == ["7"]
    assert extra.locator(".read").evaluate("one => getComputedStyle(one).textDecorationStyle") == "double"
    assert "too much" in page.page.inner_text("#trial .edits")
    assert "The answer adds 7." in page.page.locator("#trial .compared .visually-hidden").inner_text()
    signs = page.page.locator("#trial .laid .read").all_text_contents()
    trial = page.page.get_attribute(CURRENT, "id")[2:]
    (answer,) = sql(night, f"SELECT answer FROM trials WHERE trial_id = '{trial}'")["answer"].to_pylist()  # noqa: S608  an id of ours
    assert "".join(signs) == answer


def test_the_list_is_walked_by_keys_and_turned_by_pages(at_night):
    page = at_night("#view=answers")
    ids = page.page.locator("#trial-list li").evaluate_all("all => all.map((one) => one.id)")
    page.page.focus(CURRENT)
    for key, place in (
        *(("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", 49), ("Home", 0)),
        *(("j", 1), ("j", 2), ("k", 1)),
    ):
        page.page.keyboard.press(key)
        assert page.page.get_attribute(CURRENT, "id") == ids[place]
        assert page.page.evaluate("document.activeElement.id") == ids[place]
        assert f"trial={ids[place][2:]}" in page.page.url
    page.page.keyboard.press("PageDown")
    page.until("document.getElementById('found').textContent.includes('page 2 of 11')")
    page.until("document.activeElement.id.startsWith('t-')")
    page.page.click("#earlier")
    page.until("document.getElementById('found').textContent.includes('page 1 of')")
    assert page.page.locator("#trial-list li").evaluate_all("all => all.map((one) => one.id)") == ids
    page.page.click("#later")
    page.until("location.hash.includes('trial=')")
    page.only("outcome", "wrong")  # another list, which begins anew
    assert "page=" not in page.page.url
    shown = page.page.get_attribute("#trial article", "data-trial")
    assert page.page.get_attribute(CURRENT, "id") == f"t-{shown}"
    assert page.told == []


def test_a_question_shows_all_answers_under_one_another_the_wrong_ones_first(at_night, night):
    page = at_night("#view=answers&outcome=wrong&suite=nupa&model=small")
    trial = page.page.get_attribute(CURRENT, "id")[2:]
    page.page.click("#beside")
    page.page.wait_for_selector("#trial .beside")
    answers = sql(
        night,
        "SELECT outcome, answer FROM trials WHERE problem_id = "  # noqa: S608  an id of ours
        f"(SELECT problem_id FROM trials WHERE trial_id = '{trial}')",
    )
    badges = page.page.locator("#trial .beside .badge").all_inner_texts()
    assert len(badges) == answers.num_rows == 4
    assert badges == sorted(badges, key=lambda one: one != "wrong")
    lines = page.page.locator("#trial .beside .signs").evaluate_all(
        "all => all.map((one) => one.textContent.length)"
    )
    assert len(set(lines)) == 1  # digits stand under one another
    page.page.locator("#trial .beside tbody tr:not(.expected):not(.current) a").first.click()
    page.page.wait_for_selector("#trial .operands ~ *")
    page.settled()
    assert f"trial={trial}" not in page.page.url
    assert page.page.locator("#trial .beside").count() == 0
    assert page.told == []


def test_a_kind_of_error_and_a_place_of_a_digit_open_their_answers(at_night):
    page = at_night("#view=errors")
    drawn = page.heat("kinds")
    assert drawn
    cell = page.page.locator("#kinds td a").first
    words = cell.get_attribute("aria-label")
    cell.click()
    page.settled()
    assert page.found() == int(words.rpartition(" of ")[2])
    page.again("#view=errors")
    row = page.rows("digit_errors")[0]
    page.page.locator("[data-chart=digit_errors] summary").click()
    page.page.locator("[data-chart=digit_errors] tbody a").first.click()
    page.settled()
    assert page.found() == row["errors"]
    assert page.told == []


def test_times_and_outcomes_open_their_answers_and_few_points_make_no_chart(at_night, blocks):
    page = at_night("#view=errors")
    row = next(row for row in page.rows("outcomes") if row["outcome"] == "wrong")
    page.page.locator("[data-chart=outcomes] summary").click()
    page.page.locator("[data-chart=outcomes] tbody tr", has_text="wrong").locator("a").first.click()
    page.settled()
    assert page.found() == row["trials"]
    page.view("time")
    assert {row["quantity"] for row in page.rows("times")} <= {"TTFT", "latency", "queued"}
    page.page.locator("[data-chart=latency] summary").click()
    page.page.locator("[data-chart=latency] tbody a").first.click()
    page.settled()
    assert page.found() >= 1
    page.view("cost")
    for chart in ("frontier_cost", "frontier_reasoning"):
        points = len({row["asked"] for row in blocks["cost"][chart]})
        assert page.page.locator(f"[data-chart={chart}] svg").count() == (points >= 3)
    assert page.page.locator("#spent tbody tr").count() == len(blocks["cost"]["spent"])
    assert page.told == []


@pytest.mark.long
def test_a_folder_without_trials_has_a_page_that_opens(opened, tmp_path):
    Store.open(tmp_path / "none", sweep="none").close()
    written = write_page(tmp_path / "none")
    assert (written.trials, written.trials_embedded) == (0, 0)
    page = opened(tmp_path / "none")
    for tab in page.page.locator("#tabs a").evaluate_all("all => all.map((one) => one.dataset.view)"):
        page.view(tab)
        assert "cannot be shown" not in page.page.inner_text("#view")
    assert page.told == []


def test_zeros_without_a_meaning_are_shown_and_not_marked(at_night, night):
    right = sql(night, "FROM trials WHERE outcome = 'correct' AND answer = expected || '00'").to_pylist()
    page = at_night(f"#view=answers&trial={right[0]['trial_id']}&beside=yes")
    line = page.page.locator("#trial .beside .current")
    line.wait_for()
    assert line.locator(".signs").inner_text().replace(" ", "") == right[0]["answer"]
    assert line.locator("[class*=op-]").count() == 0
