"""The message of a failed call: short, one line, without the key."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncbench.providers.failures import LONGEST_MESSAGE, encoded, refusal, told
from asyncbench.providers.response import Response

KEY = "sk-0123456789abcdef"


def test_a_message_names_status_code_and_words():
    body = b'{"error": {"message": "Slow down.", "code": "rate_limit_exceeded"}}'

    error = refusal(Response(status=429, headers={}, body=body), key=KEY)

    assert error.message == str(error) == "HTTP 429 rate_limit_exceeded: Slow down."


def test_a_redirect_names_the_address_and_the_way_out():
    error = refusal(Response(status=301, headers={"location": "https://host/v1"}, body=b""), key=KEY)

    assert "moved to https://host/v1: let base_url be the final address" in error.message


@given(st.text(), st.text())
def test_a_message_is_one_short_printable_line_without_the_key(before, after):
    message = told(f"{before}{KEY}{after}", key=KEY)

    assert KEY not in message
    assert len(message) <= LONGEST_MESSAGE
    assert message.isprintable()


@pytest.mark.parametrize("filler", ["x", "\n", " x"])
@pytest.mark.parametrize("length", range(LONGEST_MESSAGE * 4 - 20, LONGEST_MESSAGE * 4 + 1, 5))
def test_no_cut_leaves_a_part_of_the_key(filler, length):
    assert KEY[:5] not in told(f"{(filler * length)[:length]}{KEY}", key=KEY)


def test_a_key_that_is_a_word_is_left_where_it_stands():
    assert told("none of it (simulated)", key="none") == "none of it (simulated)"


def test_without_a_key_nothing_is_replaced():
    assert told("all of it", key="") == "all of it"


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
