"""Reports in a notebook: tables as HTML, in which what others wrote is only shown."""

from html.parser import HTMLParser

import pytest

from asyncbench.tables.numbers import shaded
from asyncbench.tables.report import Report, Sheet, html_of

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</td></table></div><h1>free</h1>",
    "<!-- ",
    "&lt;b&gt; & &#60;i>",
    "`<b>`",
    "javascript:alert(1)",
    "$x^2$ and $y$",
    "a\x1b[31mred\x00\u202e",
    "x" * 1_000_000,
)


class Seen(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], set(), []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text.append(data)


class Said(Report):
    def notes_above(self):
        yield from HOSTILE

    def sheets(self):
        rows = [[one, one] for one in HOSTILE]
        yield Sheet(title=HOSTILE[0], head=["name", HOSTILE[1]], rows=rows)
        yield Sheet(title="without rows", head=["name"], rows=[])


@pytest.mark.parametrize("text", HOSTILE[:-1])
def test_hostile_text_is_shown_and_nothing_of_it_is_done(text):
    seen = Seen(html_of([text, Sheet(title=text, head=[text, text], rows=[[text, text]])]))
    assert set(seen.tags) <= {"div", "p", "code", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert seen.attributes <= {"class", "style", "title"}
    assert seen.tags.count("td") == 2


def test_a_report_shows_its_notes_and_tables_in_a_notebook():
    shown = Said()._repr_html_()
    seen = Seen(shown)
    assert seen.tags.count("table") == 1, "a table without rows is left out"
    assert (seen.tags.count("td"), seen.tags.count("p")) == (2 * len(HOSTILE), len(HOSTILE))
    assert HOSTILE[0] in seen.text
    assert len(shown) < 100_000
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_a_notebook_does_not_typeset_dollars_as_formulas():
    assert html_of(["$0.12 of $5"]).startswith('<div class="tex2jax_ignore mathjax_ignore">')


def test_a_cell_keeps_its_colour_and_a_column_without_text_is_left_out():
    sheet = Sheet(title="t", head=["model", "accuracy\n(all)", "note"], rows=[["m", shaded("12%", 0.12), ""]])
    shown = html_of([sheet])
    assert "background-color" in shown
    assert ">accuracy (all)</th>" in shown
    assert 'title="its alias; with condition' in shown
    assert "note" not in shown
