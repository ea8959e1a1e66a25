"""What a provider's headers tell of its limits, in every form, and that replies and errors carry it."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from asyncbench.errors import ErrorKind
from asyncbench.providers.provider import open_provider as open_model
from asyncbench.providers.rate_headers import LONGEST_RESET_S, allowances, reset_s
from asyncbench.records import Allowance
from tests.providers.asking import KEY, asking, failure_of
from tests.providers.raw_server import answering, events, resetting, sending, stream_of
from tests.rows import each_row

DATE = "Fri, 20 Nov 2026 10:00:00 GMT"
AT = 1_795_168_800  # DATE
DAY = 86_400.0


def told(what, limit, remaining, reset_s=None, *, period_s=60.0):
    return Allowance(what=what, period_s=period_s, limit=limit, remaining=remaining, reset_s=reset_s)


@each_row(
    ("written", "expected"),
    [
        pytest.param("6m0s", 360.0, id="Go: minutes"),
        pytest.param("20ms", 0.02, id="Go: milliseconds"),
        pytest.param("1h2m3s", 3723.0, id="Go: hours"),
        pytest.param("2m59.56s", 179.56, id="Go: parts of a second"),
        pytest.param("1s", 1.0, id="Go: seconds"),
        pytest.param("24h0m0s", DAY, id="Go: a day"),
        pytest.param("250µs", 0.00025, id="Go: microseconds"),
        pytest.param("5m", 300.0, id="Go: minutes alone"),
        pytest.param("0s", 0.0, id="Go: now"),
        pytest.param("33.48", 33.48, id="float seconds"),
        pytest.param("60", 60.0, id="bare seconds"),
        pytest.param("-3", 0.0, id="not before now"),
        pytest.param("2026-11-20T10:00:12Z", 12.0, id="RFC 3339"),
        pytest.param("2026-11-20T10:00:12.5+00:00", 12.5, id="RFC 3339: parts of a second"),
        pytest.param("2026-11-20T11:00:12+01:00", 12.0, id="RFC 3339: another zone"),
        pytest.param("2026-11-20T10:00:12", 12.0, id="RFC 3339: no zone is UTC"),
        pytest.param("2026-11-20T09:59:59Z", 0.0, id="RFC 3339: gone by"),
        pytest.param(f"{AT + 30}", 30.0, id="seconds since 1970"),
        pytest.param(f"{AT + 30}000", 30.0, id="milliseconds since 1970"),
        pytest.param(f"{AT - 30}", 0.0, id="a moment gone by"),
        pytest.param("9999-01-01T00:00:00Z", None, id="never"),
        pytest.param("999999999", None, id="in thirty years"),
        pytest.param("inf", None, id="infinite"),
        pytest.param("nan", None, id="not a number"),
        pytest.param("nans", None, id="no duration"),
        pytest.param("1s tomorrows", None, id="not all of it a duration"),
        pytest.param("1" * 90_000 + "m", None, id="a long one"),
        pytest.param("soon", None, id="a word"),
        pytest.param("", None, id="empty"),
    ],
)
def test_a_reset_is_read_in_every_form(written, expected):
    assert reset_s(written, date=DATE) == (None if expected is None else pytest.approx(expected))


def test_a_moment_without_a_date_beside_it_is_read_by_our_clock():
    assert reset_s("2001-01-01T00:00:00Z") == 0.0
    assert reset_s("2001-01-01T00:00:00Z", date="yesterday") == 0.0


OPENAI = {
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-limit-tokens": "200000",
    "x-ratelimit-remaining-requests": "499",
    "x-ratelimit-remaining-tokens": "199938",
    "x-ratelimit-reset-requests": "120ms",
    "x-ratelimit-reset-tokens": "18ms",
}
ANTHROPIC = {
    "date": DATE,
    "anthropic-ratelimit-requests-limit": "4000",
    "anthropic-ratelimit-requests-remaining": "3999",
    "anthropic-ratelimit-requests-reset": "2026-11-20T10:00:01Z",
    "anthropic-ratelimit-input-tokens-limit": "400000",
    "anthropic-ratelimit-input-tokens-remaining": "391000",
    "anthropic-ratelimit-input-tokens-reset": "2026-11-20T10:00:02Z",
    "anthropic-ratelimit-output-tokens-limit": "80000",
    "anthropic-ratelimit-output-tokens-remaining": "0",
    "anthropic-ratelimit-output-tokens-reset": "2026-11-20T10:01:00Z",
    "anthropic-ratelimit-tokens-limit": "80000",
    "anthropic-ratelimit-tokens-remaining": "0",
    "anthropic-ratelimit-tokens-reset": "2026-11-20T10:01:00Z",
}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            OPENAI, [told("requests", 500, 499, 0.12), told("tokens", 200_000, 199_938, 0.018)], id="OpenAI"
        ),
        pytest.param(
            {name.title(): value for name, value in OPENAI.items()},
            [told("requests", 500, 499, 0.12), told("tokens", 200_000, 199_938, 0.018)],
            id="in any case",
        ),
        pytest.param(
            ANTHROPIC,
            [
                told("requests", 4000, 3999, 1),
                told("input_tokens", 400_000, 391_000, 2),
                told("output_tokens", 80_000, 0, 60),
            ],
            id="Anthropic, whose `tokens` repeats the strictest",
        ),
        pytest.param(
            {
                "anthropic-ratelimit-tokens-limit": "80000",
                "anthropic-ratelimit-tokens-remaining": "79000",
            },
            [told("tokens", 80_000, 79_000)],
            id="Anthropic's `tokens` alone",
        ),
        pytest.param(
            {
                "x-ratelimit-limit-requests-day": "14400",
                "x-ratelimit-remaining-requests-day": "14399",
                "x-ratelimit-reset-requests-day": "33011.382867813",
                "x-ratelimit-limit-tokens-minute": "60000",
                "x-ratelimit-remaining-tokens-minute": "59000",
                "x-ratelimit-reset-tokens-minute": "11.382",
            },
            [
                told("requests", 14_400, 14_399, 33_011.382867813, period_s=DAY),
                told("tokens", 60_000, 59_000, 11.382),
            ],
            id="Cerebras",
        ),
        pytest.param(
            {
                "x-ratelimit-limit-req-minute": "720",
                "x-ratelimit-remaining-req-minute": "717",
                "x-ratelimit-limit-tokens-minute": "5000000",
                "x-ratelimit-remaining-tokens-minute": "4999911",
                "x-ratelimit-limit-tokens-month": "1000000000",
                "x-ratelimit-tokens-query-cost": "52",
            },
            [told("requests", 720, 717), told("tokens", 5_000_000, 4_999_911)],
            id="Mistral",
        ),
        pytest.param(
            {
                "x-ratelimit-limit-tokens-prompt": "900000",
                "x-ratelimit-limit-tokens-generated": "36000",
                "x-ratelimit-limit-tokens-cache-adjusted-prompt": "1",
            },
            [told("input_tokens", 900_000, None), told("output_tokens", 36_000, None)],
            id="Fireworks",
        ),
        pytest.param(
            {
                "x-ratelimit-limit-requests": "10000",
                "x-ratelimit-remaining-requests": "9990",
                "x-ratelimit-reset-requests": "1m26.4s",
            },
            [told("requests", 10_000, 9_990, 86.4, period_s=DAY)],
            id="what is not back within a minute is a day's",
        ),
        pytest.param(
            {
                "x-ratelimit-limit-tokens": "10000",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            [told("tokens", 10_000, 0, 360)],
            id="but tokens are a minute's, and may be owed",
        ),
        pytest.param(
            {
                **OPENAI,
                "x-ratelimit-limit-project-requests": "3",
                "x-ratelimit-remaining-project-requests": "2",
                "x-ratelimit-reset-project-requests": "20s",
            },
            [told("requests", 3, 2, 20), told("tokens", 200_000, 199_938, 0.018)],
            id="a project's limit is stricter than its organization's",
        ),
        pytest.param(
            {**OPENAI, "x-ratelimit-limit-project-requests": "100000"},
            [told("requests", 500, 499, 0.12), told("tokens", 200_000, 199_938, 0.018)],
            id="or it is not",
        ),
        pytest.param(
            {"x-ratelimit-remaining-requests": "0"}, [told("requests", None, 0)], id="no limit is told"
        ),
        pytest.param(
            {"x-ratelimit-limit-requests": "0", "x-ratelimit-remaining-requests": "-1"},
            [],
            id="Azure's ways to say that there is none",
        ),
        pytest.param(
            {
                "x-ratelimit-limit-requests": "many",
                "x-ratelimit-remaining-requests": "5",
                "x-ratelimit-reset-requests": "soon",
            },
            [told("requests", None, 5)],
            id="what is unreadable is passed over",
        ),
        pytest.param({"x-ratelimit-reset-requests": "1s"}, [], id="a reset of nothing"),
        pytest.param(
            {
                "x-ratelimit-limit": "100",
                "x-ratelimit-limit-images": "5",
                "x-ratelimit-limit-audio-tokens": "5",
                "x-ratelimit-limit-requests-1h": "5",
                "anthropic-ratelimit-unified-5h-remaining": "5",
                "anthropic-priority-input-tokens-limit": "5",
            },
            [],
            id="what is not known is passed over",
        ),
    ],
)
def test_headers_tell_the_limits(headers, expected):
    assert list(allowances(headers)) == expected


def test_requests_without_a_span_are_for_what_the_endpoint_means():
    assert allowances(OPENAI, requests_per="day") == (
        told("requests", 500, 499, 0.12, period_s=DAY),
        told("tokens", 200_000, 199_938, 0.018),
    )
    named = {"x-ratelimit-limit-requests-minute": "7"}
    assert allowances(named, requests_per="day") == (told("requests", 7, None),)


NAMES = st.sampled_from([*OPENAI, *ANTHROPIC, "x-ratelimit-limit-project-tokens-day"]) | st.builds(
    "{}ratelimit-{}".format, st.sampled_from(["x-", "anthropic-", ""]), st.text()
)
VALUES = st.text() | st.from_regex(r"[0-9.e:TZ+-]{1,30}(ns|us|ms|s|m|h)?") | st.datetimes().map(str)


@pytest.mark.long
@given(st.dictionaries(NAMES, VALUES))
def test_whatever_headers_hold_the_limits_are_numbers(headers):
    found = allowances(headers | {"x-ratelimit-limit-tokens-generated": "7"})
    assert "output_tokens" in {limit.what for limit in found}
    for limit in found:
        assert limit.period_s in (60, DAY)
        assert limit.limit is None or 0 < limit.limit < math.inf
        assert limit.remaining is None or 0 <= limit.remaining < math.inf
        assert limit.reset_s is None or 0 <= limit.reset_s <= LONGEST_RESET_S
        assert (limit.limit, limit.remaining) != (None, None)


# ── through the adapters ─────────────────────────────────────────────────────────────────────

HEADERS: dict[str, Any] = {name.replace("-", "_"): value for name, value in OPENAI.items()}
LINES = "".join(f"{name}: {value}\r\n" for name, value in OPENAI.items()).encode()
TOLD = allowances(OPENAI)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_reply_carries_the_limits(adapter, server, provider, stream):
    server.manner = answering(body=adapter.body, **HEADERS)
    if stream:
        server.manner = sending(stream_of(events(*adapter.events), headers=LINES))

    assert (await provider.ask(asking(stream=stream))).allowances == TOLD


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        pytest.param(429, {"error": {"message": "x"}}, ErrorKind.RATE_LIMITED, id="refused"),
        pytest.param(200, {"error": {"code": 502}}, ErrorKind.SERVER_ERROR, id="200 is no success"),
        pytest.param(200, b"", ErrorKind.BAD_REPLY, id="a bad reply"),
    ],
)
async def test_a_failure_carries_the_limits(server, provider, status, body, kind, stream):
    server.manner = answering(status, body, **HEADERS)

    error = await failure_of(provider, asking(stream=stream))

    assert (error.kind, error.allowances) == (kind, TOLD)


async def test_an_error_within_a_stream_carries_the_limits(adapter, server, provider):
    broken = b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}'
    server.manner = sending(stream_of(events(adapter.events[0], broken), headers=LINES))

    assert (await failure_of(provider, asking(stream=True))).allowances == TOLD


async def test_without_headers_of_limits_nothing_is_carried(adapter, server, provider):
    server.manner = answering(body=adapter.body)
    assert (await provider.ask(asking())).allowances == ()

    server.manner = resetting()
    assert (await failure_of(provider, asking())).allowances == ()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_an_endpoints_own_span_reaches_every_reply(adapter, server, opened, stream):
    server.manner = answering(body=adapter.body, **HEADERS)
    if stream:
        server.manner = sending(stream_of(events(*adapter.events), headers=LINES))
    provider = opened(adapter.provider(server.url, requests_per="day"))
    assert (await provider.ask(asking(stream=stream))).allowances[0].period_s == DAY

    server.manner = answering(429, **HEADERS)
    assert (await failure_of(provider, asking(stream=stream))).allowances[0].period_s == DAY


async def test_groqs_requests_are_a_days(server, opened):
    request = asking()
    model = replace(request.trial.model, provider="groq", api="chat", base_url=f"{server.url}/v1")
    provider = opened(open_model(model, key=KEY, simulator_url=None))
    server.manner = answering(429, **HEADERS)

    error = await failure_of(provider, replace(request, trial=replace(request.trial, model=model)))

    assert [(one.what, one.period_s) for one in error.allowances] == [("requests", DAY), ("tokens", 60)]
