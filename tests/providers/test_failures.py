"""The message of a failed call: short, one line, without the key."""

import html
import json
import tracemalloc
from base64 import b64encode
from dataclasses import replace
from functools import partial
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, strategies as st

from asyncbench.providers.error_kinds import LONGEST_MESSAGE, encoded, refusal, safe_line
from asyncbench.providers.secrets import keyless
from asyncbench.providers.wire import Response
from asyncbench.records import Reply

KEY = "sk-0123456789abcdef"


def test_a_message_names_status_code_and_words():
    body = b'{"error": {"message": "Slow down.", "code": "rate_limit_exceeded"}}'

    error = refusal(Response(status=429, headers={}, body=body), key=KEY)

    assert error.message == str(error) == "HTTP 429 rate_limit_exceeded: Slow down."


def test_a_refusal_without_words_ends_with_its_status():
    assert refusal(Response(status=418, headers={}, body=b" \n"), key=KEY).message == "HTTP 418"


@pytest.mark.parametrize(
    ("status", "headers", "waits"),
    [(429, {}, 20.0), (503, {}, 20.0), (429, {"retry-after": "2"}, 2.0), (400, {}, None)],
)
def test_a_wait_in_words_counts_where_the_headers_are_silent_and_another_try_is_worth_it(
    status, headers, waits
):
    body = b'{"error": {"message": "Please try again in 20s."}}'

    assert refusal(Response(status=status, headers=headers, body=body), key=KEY).retry_after_s == waits


def test_a_redirect_names_the_address_and_the_way_out():
    error = refusal(Response(status=301, headers={"location": "https://host/v1"}, body=b""), key=KEY)

    assert "(moved to https://host/v1: set base_url to the final address)" in error.message


@given(st.text(), st.text())
def test_a_message_is_one_short_printable_line_without_the_key(before, after):
    message = safe_line(f"{before}{KEY}{after}", key=KEY)

    assert KEY not in message
    assert len(message) <= LONGEST_MESSAGE
    assert message.isprintable()


@pytest.mark.parametrize("filler", ["x", "\n", " x"])
@pytest.mark.parametrize("length", range(LONGEST_MESSAGE * 4 - 20, LONGEST_MESSAGE * 4 + 1, 5))
def test_no_cut_leaves_a_part_of_the_key(filler, length):
    assert KEY[:5] not in safe_line(f"{(filler * length)[:length]}{KEY}", key=KEY)


def test_a_key_that_is_a_word_is_left_where_it_stands():
    assert safe_line("none of it (simulated)", key="none") == "none of it (simulated)"


def test_without_a_key_nothing_is_replaced():
    assert safe_line("all of it", key="") == "all of it"


def test_a_body_holds_on_to_little_more_than_its_bytes():
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        body = encoded({"model": "m"})
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert body == b'{"model":"m"}'
    assert after - before < 500


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_key_is_found_however_it_was_escaped_or_coded(before, after):
    key = 'sk-a/b+c=%41&d"<e>\\f0123456'
    coded = b64encode(f"{before}{key}{after}".encode()).decode()
    assert b64encode(key.encode()).decode()[8:-8] not in safe_line(coded, key=key)
    for escape in (partial(quote, safe=""), quote_plus, html.escape, json.dumps):
        told_of = safe_line(f"{before} {escape(key)} {after}", key=key)
        assert escape(key) not in told_of
        assert "0123456" not in told_of


def test_a_long_run_of_letters_of_the_key_is_told_by_nobody():
    assert safe_line("0123456789abcdefg", key="sk.0123456789abcdefg.x") == "[key]"


def test_nothing_of_a_reply_without_the_key_is_changed():
    reply = Reply(text=r"\(50\%\) &amp; so on", raw_usage={"a": [1, {"b": "c"}]})
    assert keyless(reply, key=KEY) == {}


@given(st.text(max_size=20), st.sampled_from((str, partial(quote, safe=""), html.escape, json.dumps)))
def test_a_key_in_any_part_of_a_reply_is_taken_out(before, escape):
    key = "sk-a/b+c=%41&d'\\<e>\"f0123456"
    said = before + escape(key)
    for reply in (
        Reply(text="", fingerprint=said),
        Reply(text="", raw_usage={"a": [{said: 1}, {"b": said}]}),
    ):
        clean = replace(reply, **keyless(reply, key=key))
        assert "0123456" not in str(clean)
        assert clean != reply


def test_an_address_is_told_without_what_may_let_somebody_in():
    location = "https://me:word@host:8443/v1?token=1#2"
    error = refusal(Response(status=301, headers={"location": location}, body=b""), key=KEY)
    assert "moved to https://host:8443/v1: set" in error.message
