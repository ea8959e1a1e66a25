"""What each line of a result file says, in both vendors' words."""

import orjson
import pytest
from hypothesis import given, strategies as st

from asyncbench.batches import LineKind, ResultLine
from asyncbench.batches.result_lines import ANTHROPIC_STATUSES, read_line

ANSWER = {"id": "chatcmpl-1", "choices": []}


def openai(status=200, body=ANSWER, **line):
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "batch_req_1", "custom_id": "a", "response": response, "error": None} | line


def anthropic(kind, **result):
    return {"custom_id": "a", "result": {"type": kind} | result}


def errored(kind, message="m"):
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"}
    return anthropic("errored", error=error)


def read(line, vendor):
    return read_line(orjson.dumps(line) + b"\n", vendor)


def test_an_answer_is_what_a_call_would_have_got():
    told = read(openai(), "openai")
    assert (told.kind, told.status, told.request_id) == (LineKind.ANSWERED, 200, "r")
    assert orjson.loads(told.body) == ANSWER

    message = {"type": "message", "content": [], "usage": {"service_tier": "batch"}}
    told = read(anthropic("succeeded", message=message), "anthropic")
    assert (told.kind, told.status) == (LineKind.ANSWERED, 200)
    assert orjson.loads(told.body) == message


@pytest.mark.parametrize("status", [400, 404, 429, 500, 504])
def test_a_refused_line_has_the_status_and_body_of_a_failed_call(status):
    body = {"error": {"message": "m", "type": "t", "param": None, "code": "c"}}
    told = read(openai(status, body), "openai")
    assert (told.kind, told.status, orjson.loads(told.body)) == (LineKind.REFUSED, status, body)


@pytest.mark.parametrize(("kind", "status"), [*ANTHROPIC_STATUSES.items(), ("new_error", 500)])
def test_an_errored_line_gets_the_status_of_its_type(kind, status):
    told = read(errored(kind), "anthropic")
    assert (told.kind, told.status, told.request_id) == (LineKind.REFUSED, status, "r")
    assert orjson.loads(told.body)["error"]["type"] == kind


@pytest.mark.parametrize(
    ("line", "vendor", "why"),
    [
        (openai(response=None, error={"code": "batch_expired", "message": "m"}), "openai", "expired"),
        (openai(response=None, error={"code": "batch_cancelled", "message": "m"}), "openai", "cancelled"),
        (openai(response=None, error={"code": "new_code", "message": "m"}), "openai", "new_code"),
        (anthropic("canceled"), "anthropic", "cancelled"),
        (anthropic("expired"), "anthropic", "expired"),
    ],
)
def test_a_line_that_was_never_run_says_why(line, vendor, why):
    assert read(line, vendor) == ResultLine(custom_id="a", kind=LineKind.NOT_RUN, why=why)


@pytest.mark.parametrize(
    ("line", "vendor"),
    [
        (openai(0, {}), "openai"),
        (openai(200, {"error": {"message": "m"}}), "openai"),
        (openai(200, None), "openai"),
        (openai("200"), "openai"),
        (openai(302), "openai"),
        (openai(response=None), "openai"),
        (openai(response="yes"), "openai"),
        (anthropic("succeeded"), "anthropic"),
        (anthropic("succeeded", message={"type": "error"}), "anthropic"),
        (anthropic("errored"), "anthropic"),
        (anthropic("paused"), "anthropic"),
        ({"custom_id": "a"}, "anthropic"),
    ],
)
def test_a_line_that_is_neither_answer_nor_error_is_strange(line, vendor):
    told = read(line, vendor)
    assert (told.custom_id, told.kind, bool(told.why)) == ("a", LineKind.STRANGE, True)


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"{}", b'{"custom_id": 3}', b'{"custom_id": ""}', b"\xff"])
def test_a_line_without_a_custom_id_is_broken(raw, vendor):
    told = read_line(raw, vendor)
    assert (told.custom_id, told.kind) == ("", LineKind.BROKEN)


KEYS = st.sampled_from(["response", "error", "result", "status_code", "body", "type", "message", "code"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 600) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["response", "error", "result", "status_code", "body", "type", "message", "code"]
            ),
            inner,
        )
    ),
    max_leaves=8,
)


@given(line=st.dictionaries(st.sampled_from(["response", "error", "result"]), JSON))
@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_whatever_a_line_holds_it_is_read(line, vendor):
    assert read({"custom_id": "a", **line}, vendor).custom_id == "a"
