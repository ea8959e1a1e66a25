"""Events are found however they are cut, ended and spaced."""

import itertools

import pytest
from hypothesis import given, strategies as st

from asyncbench.providers.streams import Scanner, TooLongError


def found_in(*chunks: bytes, most: int = 10**6) -> list[bytes]:
    """Return the data of every event, to the end of the stream."""
    scanner = Scanner(most)
    return [*itertools.chain.from_iterable(map(scanner.feed, chunks)), *scanner.end()]


def stripped(events: list[bytes]) -> list[bytes]:
    return [event.strip() for event in events]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(b"data: 1\n\ndata: 2\n\n", [b"1", b"2"], id="LF"),
        pytest.param(b"data: 1\r\n\r\ndata: 2\r\n\r\n", [b"1", b"2"], id="CRLF"),
        pytest.param(b"data: 1\r\rdata: 2\r\r", [b"1", b"2"], id="CR"),
        pytest.param(b"data:1\n\n", [b"1"], id="no space"),
        pytest.param(b'data: {"a":\ndata: 1}\n\n', [b'{"a":\n 1}'], id="many lines"),
        pytest.param(b"event: delta\nid: 7\nretry: 1\ndata: 1\n\n", [b"1"], id="other fields"),
        pytest.param(b": ping\n\n:\n\ndata: 1\n\n", [b"1"], id="comments"),
        pytest.param(b"\n\n\ndata: 1\n\n\n\n", [b"1"], id="blank lines"),
        pytest.param(b"data:\n\ndata: \n\ndata: 1\n\n", [b"1"], id="nothing in it"),
        pytest.param(b"data: 1\n\ndata: 2", [b"1", b"2"], id="the last without an end"),
        pytest.param(b'{"a": 1}\n\ndata: 1\n\n', [b"1"], id="JSON without data"),
        pytest.param(b"\xef\xbb\xbfdata: 1\n\ndata: 2\n\n", [b"1", b"2"], id="a byte-order mark"),
        pytest.param(b"\xef\xbb\xbf\ndata: 1\n\n", [b"1"], id="a byte-order mark alone"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_what_is_an_event(stream, events):
    assert stripped(found_in(stream)) == events


@pytest.mark.parametrize("word", [b"data: [DONE]", b"data:[DONE]", b"[DONE]", b"[DONE] "])
def test_done_is_told_and_nothing_after_it_counts(word):
    scanner = Scanner(100)

    assert stripped(scanner.feed(b"data: 1\n\n" + word + b"\n\ndata: 2\n\n")) == [b"1"]
    assert scanner.done


def test_done_inside_a_text_is_text():
    assert found_in(b'data: "[DONE]"\n\n') == [b' "[DONE]"']


SIGNS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=20)


@given(
    texts=st.lists(SIGNS.filter(lambda text: text.strip() not in {"", "[DONE]"}), max_size=6),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    comments=st.booleans(),
    cuts=st.lists(st.integers(0, 400), max_size=30),
)
def test_a_stream_may_be_cut_anywhere(texts, end, comments, cuts):
    comment = f": ü{end}{end}" if comments else ""
    stream = "".join(f"{comment}event: x{end}data:{text}{end}{end}" for text in texts).encode()
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]

    pieces = [stream[start:stop] for start, stop in itertools.pairwise(places)]

    assert [event.decode() for event in found_in(*pieces)] == texts


def test_byte_by_byte_is_the_same():
    stream = '\ufeffdata: {"text": "😀"}\r\n\r\n: ping\r\n\r\ndata: [DONE]\r\n\r\n'.encode()

    assert found_in(*(bytes([byte]) for byte in stream)) == found_in(stream) != []


@pytest.mark.parametrize(
    "chunk",
    [
        pytest.param(b"x" * 10, id="a line without an end"),
        pytest.param(b"data: 0123\n", id="lines without an end"),
        pytest.param(b"data:\n", id="empty lines"),
    ],
)
def test_an_event_without_an_end_is_refused(chunk):
    with pytest.raises(TooLongError, match="more than 100 bytes"):
        found_in(*[chunk] * 101, most=100)


def test_keep_alive_for_ever_is_no_event():
    assert found_in(*[b": pi", b"ng\n", b"\n"] * 1000, most=100) == []
