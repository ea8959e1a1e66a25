"""Colours of the heatmaps, and that they show on terminals only."""

import pytest
from hypothesis import given, strategies as st
from rich.style import Style

from asyncbench.tables.numbers import (
    accuracy_goodness,
    colour,
    deviate_rate_goodness,
    nan_rate_goodness,
    shaded,
)
from asyncbench.tables.report import Sheet
from asyncbench.tables.screen import columns, render

SHARES = st.floats(min_value=0, max_value=1)


def style_of(goodness):
    style = shaded("x", goodness).style
    assert isinstance(style, Style)
    return style


@pytest.mark.parametrize(
    ("goodness", "expected"),
    [
        pytest.param(accuracy_goodness(0.25), 0.25, id="accuracy is good"),
        pytest.param(deviate_rate_goodness(0.25), 0.75, id="a wrong number is not"),
        pytest.param(nan_rate_goodness(0.25), 1 - 0.25**0.3, id="no number is worse"),
    ],
)
def test_each_rate_has_its_own_goodness(goodness, expected):
    assert goodness == pytest.approx(expected)


@given(SHARES, SHARES)
def test_more_of_a_rate_is_never_better_and_more_accuracy_never_worse(a, b):
    less, more = sorted((a, b))
    assert accuracy_goodness(less) <= accuracy_goodness(more)
    assert deviate_rate_goodness(less) >= deviate_rate_goodness(more)
    assert nan_rate_goodness(less) >= nan_rate_goodness(more)


def test_the_scale_goes_from_dark_red_to_light_green():
    bad, good = (colour(goodness).get_truecolor() for goodness in (0.0, 1.0))
    assert bad.red > bad.green == bad.blue
    assert good.green > good.red == good.blue
    assert (max(bad) + min(bad)) / 510 == pytest.approx(0.3, abs=0.01)
    assert (max(good) + min(good)) / 510 == pytest.approx(0.7, abs=0.01)


@given(SHARES)
def test_the_text_is_legible_on_every_goodness(goodness):
    style = style_of(goodness)
    assert style.bold or (style.color and style.bgcolor)
    if style.color and style.bgcolor:
        assert contrast(style.color.get_truecolor(), style.bgcolor.get_truecolor()) > 4


def contrast(ink, ground):
    """The contrast ratio of two colours (WCAG 2)."""
    lighter, darker = sorted((luminance(ink), luminance(ground)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour):
    parts = (part / 255 for part in colour)
    linear = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_what_is_perfect_is_bold_without_colour():
    style = style_of(1.0)
    assert style.bold
    assert style.bgcolor is None


def test_a_table_that_is_piped_has_no_escape_codes(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert render(columns(["a", "b"], [["x", shaded("50", 0.5)]], labels=1)) == "a   b\nx  50"


def test_markdown_has_the_text_alone():
    assert "| x | 50 |" in Sheet(title="t", head=["a", "b"], rows=[["x", shaded("50", 0.5)]]).as_markdown()
