"""Error bodies of every shape are read, and reading one never fails."""

import orjson
import pytest
from hypothesis import given, strategies as st

from asyncbench.providers.error_bodies import read_error

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["error", "message", "detail", "details", "code", "type", "status", "x"]), inner
        )
    ),
)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(b'{"error": {"message": "no"}}', "no", id="OpenAI"),
        pytest.param(
            b'{"type": "error", "error": {"type": "api_error", "message": "no"}}', "no", id="Anthropic"
        ),
        pytest.param(b'[{"error": {"message": "no", "code": 429}}]', "no", id="a list (Gemini)"),
        pytest.param(b'{"error": "no"}', "no", id="text"),
        pytest.param(b'{"detail": "no"}', "no", id="detail (FastAPI)"),
        pytest.param(b'{"detail": [{"loc": ["body"], "msg": "no"}]}', "no", id="details of a form"),
        pytest.param(b'{"detail": {"error": {"message": "no"}}}', "no", id="nested"),
        pytest.param(b'{"object": "error", "message": "no", "code": 404}', "no", id="at the top"),
        pytest.param(b'event: error\ndata: {"error": {"message": "no"}}\n\n', "no", id="a stream of events"),
        pytest.param(b"no", "no", id="plain text"),
        pytest.param(b'"no"', "no", id="text in JSON"),
        pytest.param(b"<b>no</b>", " no ", id="HTML"),
        pytest.param(b"", "", id="nothing"),
        pytest.param(b"\xff\xfe", "\ufffd\ufffd", id="not text"),
        pytest.param(b'{"error": {"code": 1}}', '{"error": {"code": 1}}', id="no words: all of it"),
    ],
)
def test_the_message_is_found(body, text):
    assert read_error(body).text == text


def test_codes_stand_with_the_most_telling_first_and_in_lower_case():
    body = {"error": {"type": "A", "code": "B", "status": "C", "details": {"error_code": "D"}}}

    assert read_error(orjson.dumps(body)).codes == ("d", "b", "a", "c")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (402, 402),
        ("429", 429),
        ("1302", None),
        (7, None),
        (True, None),
        ("429 ", None),
        ("４29", None),
        (None, None),
    ],
)
def test_a_code_may_be_a_status(code, status):
    assert read_error(orjson.dumps({"error": {"code": code}})).status == status


def test_a_request_id_and_a_delay_may_stand_in_the_body():
    error = {"message": "no", "details": [{"@type": "Help"}, {"@type": "RetryInfo", "retryDelay": "34s"}]}

    found = read_error(orjson.dumps({"error": error, "request_id": "req_1"}))

    assert (found.retry_delay, found.request_id) == ("34s", "req_1")


@given(st.binary())
def test_any_bytes_are_read(body):
    assert read_error(body).text is not None


@pytest.mark.long
@given(JSON)
def test_any_json_is_read(value):
    assert read_error(orjson.dumps(value)).text is not None
