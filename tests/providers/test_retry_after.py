"""How long to wait, in every way that providers say it."""

import math

import pytest
from hypothesis import given, strategies as st

from asyncbench.providers.rate_headers import retry_after_s


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({"retry-after": "7"}, 7.0, id="seconds"),
        pytest.param({"retry-after": "0.25"}, 0.25, id="parts of a second"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "2"}, 1.5, id="milliseconds are more exact"),
        pytest.param(
            {"retry-after-ms": "soon", "retry-after": "2"}, 2.0, id="what is unreadable is passed over"
        ),
        pytest.param({"retry-after": "0"}, None, id="nought tells nothing"),
        pytest.param({"retry-after": "0.0"}, None, id="nought, in parts of a second"),
        pytest.param({"retry-after-ms": "0"}, None, id="nought milliseconds, as from Azure"),
        pytest.param({"retry-after-ms": "0", "retry-after": "20"}, 20.0, id="nought beside a wait"),
        pytest.param({"retry-after": "-3"}, None, id="negative"),
        pytest.param({"retry-after": "-0"}, None, id="negative nought"),
        pytest.param({"retry-after": "1e300"}, None, id="for ever"),
        pytest.param({"retry-after": "0x10"}, None, id="no number"),
        pytest.param({"retry-after": "nan"}, None, id="not a number"),
        pytest.param({"retry-after": "inf"}, None, id="never"),
        pytest.param({"retry-after": ""}, None, id="empty"),
        pytest.param({}, None, id="nothing"),
        pytest.param({"llm_provider-retry-after": "9"}, 9.0, id="litellm"),
        pytest.param(
            {"retry-after": "Fri, 20 Nov 2026 10:00:30 GMT", "date": "Fri, 20 Nov 2026 10:00:00 GMT"},
            30.0,
            id="a date, by the server's own clock",
        ),
        pytest.param(
            {"retry-after": "Fri, 20 Nov 2026 09:00:00 -0000", "date": "Fri, 20 Nov 2026 10:00:00 GMT"},
            None,
            id="a date gone by",
        ),
        pytest.param({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, None, id="gone by, by our clock"),
    ],
)
def test_headers_say_how_long(headers, expected):
    assert retry_after_s(headers) == expected


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        ("34s", 34.0),
        ("0.5s", 0.5),
        ("0s", None),
        ("0.000s", None),
        ("-1s", None),
        ("later", None),
        ("", None),
    ],
)
def test_the_body_says_it_where_the_headers_are_silent(delay, expected):
    assert retry_after_s({}, delay) == expected
    assert retry_after_s({"retry-after": "1"}, delay) == 1.0


@given(st.text(), st.text())
def test_whatever_a_header_holds_the_wait_is_a_time_or_none(written, now):
    wait = retry_after_s({"retry-after": written, "date": now}, written)

    assert wait is None or (wait > 0 and math.isfinite(wait))
