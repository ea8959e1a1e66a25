"""Whatever a model, a name or a folder says is text: nothing runs, nothing is fetched, nothing is hidden."""

import pytest

from tests.page.hostile import ATTACKS, LONG

VIEWS = ("results", "answers", "errors", "time", "cost", "about")


@pytest.mark.long
def test_whatever_a_model_wrote_is_text_and_does_nothing(hostile, opened):
    page = opened(hostile)
    for view in VIEWS:
        page.view(view)
        assert "cannot be shown" not in page.page.inner_text("#view")
    page.view("answers")
    for item in page.page.locator("#trial-list li").all():
        item.click()
        page.page.wait_for_selector("#trial article")
        assert page.page.locator("#beside").count() == 0  # nobody else was asked this
    for link in page.page.locator("a").evaluate_all("all => all.map((one) => one.getAttribute('href'))"):
        assert link.startswith("#")
    page.again(f"{page.page.evaluate('location.hash')}&beside=yes")
    page.page.wait_for_selector("#trial .beside")
    assert page.told == []
    assert page.page.evaluate("window.hacked") is None
    for tag in ("iframe", "img", "object", "embed", "base", "[onclick]", "[onerror]", "[onload]"):
        assert page.page.locator(tag).count() == 0
    assert page.page.locator("script:not([type])").count() == 2  # others hold blocks
    assert page.page.locator("style").count() == 1


def test_what_a_model_wrote_is_shown_as_it_is_and_what_cannot_be_seen_is_spelled(hostile, opened):
    page = opened(hostile, "#view=answers")
    shown = {}
    for item in page.page.locator("#trial-list li").all():
        item.click()
        page.page.wait_for_selector(f"#trial article[data-trial='{item.get_attribute('id')[2:]}']")
        question = page.page.locator("#trial pre").last.evaluate("pre => pre.textContent")
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
