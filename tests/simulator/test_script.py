"""A stream written out: its pieces make the text, its half never ends it."""

import orjson
import pytest
from hypothesis import given, strategies as st

from asyncbench.simulator.wire import HOLE, Script, cut_up, deltas, event


@given(st.text(), st.none() | st.integers(1, 9))
def test_the_pieces_make_the_text(text, chunks):
    pieces = cut_up(text, chunks)

    assert "".join(pieces) == text
    assert len(pieces) <= (chunks or len(text))
    assert all(pieces)


@given(st.text(min_size=1))
def test_a_delta_is_the_event_with_the_text_in_its_hole(text):
    shape = {"id": "%s", "choices": [{"delta": {"content": HOLE}, "finish_reason": None}]}
    (written,) = deltas(shape, [text], "delta")

    assert written.startswith(b"event: delta\ndata: ")
    assert orjson.loads(written.partition(b"data: ")[2]) == {
        "id": "%s",
        "choices": [{"delta": {"content": text}, "finish_reason": None}],
    }


@pytest.mark.parametrize(
    ("opening", "pieces", "closing", "left"),
    [(1, 5, 2, (1, 3)), (1, 0, 3, (1, 0)), (0, 1, 1, (0, 1)), (2, 1, 0, (1, 0)), (0, 0, 1, (0, 0))],
)
def test_half_of_a_stream_holds_nothing_that_closes_it(opening, pieces, closing, left):
    some = event({})
    half = Script(
        opening=[some] * opening, pieces=[some] * pieces, closing=[some] * closing, error=some
    ).first_half()

    assert (len(half.opening), len(half.pieces)) == left
    assert not half.closing
