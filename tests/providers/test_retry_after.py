"""How long to wait, in every way that providers say it."""

import math

import pytest
from hypothesis import given, strategies as st

from asyncbench.providers.waits import retry_after_s, wait_in_fields, wait_in_words


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
        pytest.param({"retry-after": "1m2.5s"}, 62.5, id="as Go prints it"),
        pytest.param({"retry-after": "30 seconds"}, 30.0, id="as people write it"),
        pytest.param(
            {"retry-after": "2026-11-20T10:00:30Z", "date": "Fri, 20 Nov 2026 10:00:00 GMT"},
            30.0,
            id="RFC 3339",
        ),
        pytest.param(
            {"retry-after": "1795168830", "date": "Fri, 20 Nov 2026 10:00:00 GMT"}, 30.0, id="since 1970"
        ),
        pytest.param({"x-retry-after": "5"}, 5.0, id="a name of one's own"),
        pytest.param({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "7"}, 7.0, id="the end of a limit"),
        pytest.param({"x-ratelimit-remaining": "3", "x-ratelimit-reset": "7"}, None, id="some is left"),
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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Limit 3, Used 3. Please try again in 20s. Visit the page.", 20.0),
        ("Please try again in 7m12.5s.", 432.5),
        ("Please try again in 486ms.", 0.486),
        ("try again in 2d3h", 183_600.0),
        ("Please retry after 21 seconds.", 21.0),
        ("Rate limit of 50 per 86400s exceeded. Please wait 3600 seconds before retrying.", 3600.0),
        ("Please retry in 56.25s.", 56.25),
        ("Try again in about 5 minutes", 300.0),
        ("it resets in 1 hour, 2 minutes and 3 seconds", 3723.0),
        ("请在 30 秒后重试", 30.0),
        ("Please try again in 0s.", None),
        ("Please try again in -3s.", None),
        ("Please try again in a moment.", None),
        ("Please try again later. Limit 10 a minute.", None),
        ("wait for 3 messages", None),
        ("1分钟内最多请求10次", None),
        ("resets at 2001-01-01T00:00:00Z", None),
        ("resets at 9999-01-01T00:00:00Z", None),
    ],
)
def test_words_say_it(words, expected):
    assert wait_in_words(words) == expected


def test_words_tell_a_moment(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1795168800.0)
    for words in (
        "it resets at 2026-11-20T10:00:30Z (2056)",
        "available again 2026-11-20 10:00:30 UTC",
        "try again at 2026-11-20T12:00:30+02:00",
    ):
        assert wait_in_words(words) == 30.0
    assert wait_in_words("it resets at 2026-11-20 10:00:30") is None  # of which zone, nobody says


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"retry_after": 9}, 9.0),
        ({"retryAfter": "9s"}, 9.0),
        ({"retry_after_ms": 1500}, 1.5),
        ({"estimated_time": 20.5}, 20.5),
        ({"retry_after": 0, "retry_after_seconds": 4}, 4.0),
        ({"retry_after": True}, None),
        ({"retry_after": {"seconds": 3}}, None),
        ({"message": "9"}, None),
    ],
)
def test_a_field_of_the_body_says_it(fields, expected):
    assert wait_in_fields(fields) == expected
    assert wait_in_fields({}, fields) == expected


@given(st.text(), st.text())
def test_whatever_a_header_holds_the_wait_is_a_time_or_none(written, now):
    wait = retry_after_s({"retry-after": written, "date": now}, written)

    assert wait is None or (wait > 0 and math.isfinite(wait))
