"""Whatever a provider or a file puts into a value, it can be written down."""

import signal
from dataclasses import fields
from types import MappingProxyType

import orjson
import pytest
from hypothesis import given, strategies as st

from asyncbench.records import Allowance, Outcome, Reply, Usage
from asyncbench.store.rows import canonical, encode_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.long
@given(JSON)
def test_json_comes_back_as_it_was(value):
    finite = orjson.loads(orjson.dumps(value))  # infinity is null in JSON
    assert orjson.loads(encode_json(value)) == finite


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("half \ud83d a pair", "half � a pair", id="half a surrogate pair"),
        pytest.param("\ud83d\ude00", "😀", id="a whole pair in two halves"),
        pytest.param(2**64, str(2**64), id="an integer beyond 64 bits"),
        pytest.param(float("nan"), None, id="not a number"),
        pytest.param(MappingProxyType({"a": 1}), {"a": 1}, id="a mapping that is no dict"),
        pytest.param(1j, "1j", id="a type that JSON does not have"),
        pytest.param((1, 2), [1, 2], id="a tuple"),
        pytest.param(Outcome.CORRECT, "correct", id="a word of ours"),
    ],
)
def test_what_json_cannot_hold_is_kept_as_near_as_can_be(value, kept):
    beside = {"value": value, "neighbour": ["é", 1.5, {"deep": value}]}
    assert orjson.loads(encode_json(beside)) == {"value": kept, "neighbour": ["é", 1.5, {"deep": kept}]}


def test_a_record_is_an_object_even_where_a_part_of_it_is_odd():
    odd = Reply(text="\ud83d", usage=Usage(output_tokens=3), raw_usage={"cost": 2**70})
    written = orjson.loads(encode_json({"reply": odd}))["reply"]
    assert (written["text"], written["usage"]["output_tokens"]) == ("�", 3)
    assert written["raw_usage"] == {"cost": str(2**70)}


@pytest.mark.parametrize("text", ["4", "\ud83d"], ids=["plain", "odd"])
def test_what_is_not_to_be_stored_is_left_out(text):
    limit = Allowance(what="requests", period_s=60, limit=5, remaining=4, reset_s=None)
    reply = Reply(text=text, allowances=(limit,), max_tokens=9, worker="1", loop_lag_s=0.5)

    written = orjson.loads(encode_json({"reply": reply}))["reply"]

    left_out = {"allowances", "max_tokens", "times", "worker", "loop_lag_s"}
    assert set(written) == {one.name for one in fields(Reply)} - left_out
    assert Reply(**{**written, "text": text}) == reply


def test_keys_of_any_kind_are_written_in_order():
    assert canonical({"b": 1, "a": {50256: -100}}) == '{"a":{"50256":-100},"b":1}'


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, also where a shell started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_a_value_is_written_is_not_taken_for_a_value_that_json_cannot_hold():
    class Slow:
        def __str__(self):
            signal.raise_signal(signal.SIGINT)
            return "slow"

    with pytest.raises(KeyboardInterrupt):
        encode_json({"value": Slow()})
