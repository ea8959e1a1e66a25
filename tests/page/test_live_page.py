"""The page of `asyncbench view`: the same page of all trials, which follows what a running sweep writes."""

from dataclasses import replace

import pytest

from asyncbench import sql
from asyncbench.store.folder import Store
from tests.page.conftest import PHONE, Opened, served
from tests.page.made import events, trial_of
from tests.reports.answered import Asked, folder_of, problem
from tests.store import made
from tests.store.made import AT, minute

# The next requests of a path that begins so are held, or answered by this, one each.
FAULTS = """() => {
    const sent = fetch;
    window.held = Promise.resolve();
    window.faults = [];
    window.fetch = async (path) => {
        await held;
        return faults[0]?.[0] === path.split("?")[0] ? faults.shift()[1]() : sent(path);
    };
}"""

WRONG_FIRST = ["wrong", "no answer", "truncated", "refused", "failed", "correct"]
SEARCHED = "!document.getElementById('found')?.textContent.includes('searched')"
SHOWN = "location.hash.includes(document.querySelector('#trial article').dataset.trial)"
TYPED_JUST_BEFORE_ANOTHER_IS_SHOWN = """() => {
    document.getElementById("theme").click();
    const box = document.getElementById("text");
    box.focus();
    box.value = "no such text";
    box.dispatchEvent(new Event("input"));
}"""


@pytest.fixture(scope="module")
def standing_live(night, tab):
    with served(night) as address:
        page = Opened(tab(), address.partition("?")[0]).goto(address)
        yield page
        page.page.close()


@pytest.fixture
def at_server(standing_live):
    """The page of a server of the night, one for all tests that leave it as it was."""
    return standing_live.again


@pytest.mark.long
def test_a_server_and_a_file_show_the_same(at_server, at_night, blocks):
    live, still = at_server(), at_night()
    assert "token" not in live.page.url
    for chart in ("dots", "curves", "halves"):
        assert live.rows(chart) == still.rows(chart)
    assert live.heat("heat") == still.heat("heat")
    live.view("errors")
    still.view("errors")
    assert live.rows("outcomes") == still.rows("outcomes")
    error = f"error={blocks['errors']['kinds'][0]['error']}"
    queries = ("outcome=wrong&model=small", error, "asked=0&kind=1&least=3&most=6")
    texts = ("text=would+rather", "text=Compute+the", "text=BUSY", "text=77", "text=0000")
    for query in (*queries, *texts, "versus=large&versus=small"):
        live.again(f"#view=answers&{query}")
        still.again(f"#view=answers&{query}")
        live.until(SEARCHED)
        assert live.found() == still.found() > 0, query
        badges = [one.page.locator("#trial-list .badge").all_inner_texts() for one in (live, still)]
        assert badges[0] == badges[1], query
    assert live.told == still.told == []


@pytest.mark.long
def test_from_a_cell_to_an_answer_and_to_all_answers_of_its_question(at_server):
    page = at_server()
    cell = page.page.locator("#heat td a[aria-label*='small']").last
    of = int(cell.get_attribute("aria-label").rpartition(" of ")[2])
    cell.click()
    page.page.wait_for_selector("#trial .operands")
    page.settled()
    assert page.found() == of
    badges = page.page.locator("#trial-list .badge").all_inner_texts()
    assert badges == sorted(badges, key=WRONG_FIRST.index) != [badges[0]] * of
    first = page.page.inner_text("#trial .operands")
    page.page.keyboard.press("j")
    page.until(f"document.querySelector('#trial .operands').textContent !== {first!r}")
    page.page.click("#beside")
    page.page.wait_for_selector("#trial .beside")
    assert page.page.locator("#trial .beside .badge").count() == 4
    page.page.go_back()
    page.page.wait_for_selector("#trial .operands")
    assert page.told == []


@pytest.mark.long
def test_two_models_stand_side_by_side_with_the_questions_on_which_they_differ(at_server, night):
    page = at_server()
    page.page.select_option("#versus-1", label="small")
    page.page.click("#differ")
    page.page.wait_for_selector("#trial .halves")
    right = "max(outcome = 'correct') FILTER (model = '{}')"
    differ = f"{right.format('large')} <> {right.format('small')}"
    wanted = f"SELECT problem_id FROM trials GROUP BY ALL HAVING {differ}"  # noqa: S608  ours
    assert page.found() == sql(night, wanted).num_rows
    for key in ("Home", "End"):
        page.page.focus("#trial-list [aria-selected=true]")
        page.page.keyboard.press(key)
        page.until(SHOWN)
        halves = page.page.locator("#trial .halves > section")
        assert [half.locator(".who").inner_text() for half in halves.all()] == ["large", "small"]
        assert halves.locator(".badge").all_inner_texts().count("correct") == 1
        assert halves.locator("h4", has_text="Reply").count() >= 1
    page.page.select_option("#versus-0", label="small")  # the same twice
    page.page.get_by_text("No answer matches").wait_for()
    assert page.told == []


@pytest.mark.long
def test_a_link_shows_in_another_tab_what_it_was_copied_from(opened_live, night):
    def seen(page):
        page.until(SEARCHED)
        values = "[...document.querySelectorAll('select, #text')].map((one) => one.value)"
        return page.page.inner_text("#filters"), page.page.inner_text("#view"), page.page.evaluate(values)

    with served(night) as address:
        page, other = opened_live(address), opened_live(address)
        page.only("model", "large")
        page.page.click("text=Standings as a table")
        answers = ("outcome=wrong", "text=7&page=2&open=prompt", "versus=large&versus=small")
        for words in ("open=standings", "view=errors&by=condition", *(f"view=answers&{q}" for q in answers)):
            if words != "open=standings":
                page.again(f"#{words}")
            if "answers" in words:
                page.page.locator("#trial-list li").nth(1).click()
                page.until(SHOWN)
            page.until(f"location.hash.includes('{words.split('&')[0]}')")
            other.page.goto("about:blank")
            other.goto(page.page.url)
            assert seen(other) == seen(page), words
        assert page.told == other.told == []


def test_nothing_but_the_server_is_asked_and_its_policy_is_strict(at_server):
    page = at_server()
    answer = page.page.evaluate(
        "fetch('/').then((one) => one.headers.get('content-security-policy').split('; ').slice(0, 4))"
    )
    assert answer == ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"]
    assert page.told == []
    assert page.page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    assert not any(told.startswith("request:") for told in page.told)


@pytest.mark.long
def test_what_fails_between_page_and_server_is_told_and_tried_again(at_server):
    page = at_server("#view=answers")
    page.page.evaluate(FAULTS)
    found = "document.getElementById('found')?.textContent.startsWith('0 of')"
    page.page.evaluate("() => { held = new Promise((release) => { window.release = release; }); }")
    page.page.click("#theme")  # the list is asked for anew, and while it comes something is typed
    page.page.fill("#text", "no such text")
    page.until("location.hash.includes('text=')")
    page.page.evaluate("release()")
    page.until(found)
    page.page.fill("#text", "")
    page.until(f"!({found})")
    page.page.evaluate(TYPED_JUST_BEFORE_ANOTHER_IS_SHOWN)
    page.until(found)
    page.page.evaluate("faults = [['trials', () => new Response('Ask again.', { status: 503 })]]")
    page.page.fill("#text", "")
    page.until(f"!({found}) && document.querySelector('#trial article') !== null")
    assert not page.page.is_visible("#loading")
    page.page.evaluate("faults = [['trials', () => new Response('It is broken.', { status: 500 })]]")
    page.page.fill("#text", "1")
    page.page.get_by_text("This cannot be shown: It is broken.").wait_for()
    assert page.page.locator("#trial-list.waiting").count() == 0
    page.page.evaluate("faults = [['blocks/cost', () => Promise.reject(new Error('It is gone.'))]]")
    page.view("cost")
    assert "It is gone." in page.page.inner_text("#view")
    page.view("about")
    page.view("cost")
    assert page.page.locator("#spent").count() == 1
    assert page.told == []
    heads = "**/blocks/head"
    page.page.route(heads, lambda route: route.fulfill(status=500, body="The disk is gone."))
    page.page.reload()
    page.page.get_by_text("This cannot be shown: The disk is gone.").wait_for()
    page.page.unroute(heads)
    page.page.wait_for_selector("#spent")  # it has asked again


@pytest.mark.long
def test_charts_wait_for_a_drawing_library_that_comes_late(tab, hostile):
    with served(hostile) as address:
        page = Opened(tab(), address.partition("?")[0])
        late = []
        page.page.route("**/vega.js", lambda route: late.append(route))
        page.page.goto(address, wait_until="commit")
        page.page.wait_for_selector("[data-chart]")  # the view is there, and its charts are asked to be drawn
        late[0].continue_()
        page.settled()
        assert page.page.locator("[data-chart] svg").count() > 0
        assert page.told == []


@pytest.mark.long
def test_a_hostile_folder_does_nothing_live(opened_live, hostile):
    with served(hostile) as address:
        page = opened_live(address)
        for view in ("results", "answers", "errors", "time", "cost", "about"):
            page.view(view)
            assert "cannot be shown" not in page.page.inner_text("#view"), view
        page.view("answers")
        for item in page.page.locator("#trial-list li").all():
            item.click()
            page.page.wait_for_selector(f"#trial article[data-trial='{item.get_attribute('id')[2:]}']")
        assert page.page.evaluate("window.hacked") is None
        assert page.page.locator("script").count() == 2
        assert page.page.locator("iframe, img, object, [onclick], [onerror], [onload]").count() == 0
        assert page.told == []


@pytest.mark.long
def test_the_page_follows_a_running_sweep_and_stays_where_one_is(opened_live, tmp_path):
    models = ("large", "middle", "small")
    planned: dict[str, object] = {"small": {"plain": {"nupa": {"add": 99}}}}
    night = [Asked(model=name, outcomes="+-+" * 10) for name in models]
    folder = folder_of(tmp_path / "night", night, planned=planned)
    problems = [*(problem(n) for n in range(30)), problem(0, suite="llm_arithmetic", task="add")]
    with served(folder) as address, Store.open(folder, sweep="s") as store:
        page = opened_live(address, "#view=answers&kind=0")
        other = opened_live(address, "#lengths=0", **PHONE)
        asked = sql(folder, "FROM trials").num_rows
        assert page.found() == asked
        page.page.wait_for_selector("#band:not([hidden])")
        page.page.focus("#text")
        page.page.keyboard.type("77777777")
        page.until("document.getElementById('found').textContent.startsWith('0 of')")
        other.page.focus("[data-chart=dots] summary")
        other.page.keyboard.press("Enter")
        place = other.page.locator("[data-chart=dots] summary").first
        other.page.evaluate("scrollTo(0, 300)")
        top = place.bounding_box()["y"]
        for n, other_problem in enumerate(problems):
            trial = trial_of(5_000 + n, other_problem, model="new")
            made.keep(store, *events(trial, "77777777", at=AT + n))
        store.keep(minute("large"))
        store.keep(made.sent(made.trial(9_000)))
        refused = made.ended(made.trial(9_000), None)
        store.keep(replace(refused, attempt=replace(refused.attempt, status="auth", started_at=AT + 9e6)))
        found = f"document.getElementById('found').textContent.startsWith('30 of {asked + 31}')"
        page.until(found)
        assert page.page.evaluate("[document.activeElement.id, document.activeElement.value]") == [
            *("text", "77777777")
        ]
        assert "kind=nupa%2Fadd" in page.page.url  # the same task, which stands after another one now
        assert "running" in page.page.inner_text("#band")
        page.page.get_by_text("small is suspended: auth").wait_for()
        other.page.wait_for_selector("#heat a[aria-label^='llm_arithmetic/add, new']")  # the last one
        assert "lengths=nupa%2Fadd" in other.page.url
        other.settled()  # drawings above have grown
        assert place.bounding_box()["y"] == pytest.approx(top, abs=5)
        assert other.page.evaluate("document.activeElement.textContent") == "Figures as a table"
        assert other.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.told == other.told == []  # below, a question may come while files are sealed
        store.close()
        page.until("document.getElementById('band').hidden")
    page.page.wait_for_selector("#band .lost")  # the server has ended
