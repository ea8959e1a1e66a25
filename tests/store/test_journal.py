"""The journal knows what is unfinished, and takes it along from segment to segment."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given, strategies as st

from asyncbench.errors import StoreError
from asyncbench.records import Allowance, Ended, Reply, Usage
from asyncbench.store.journal import Journal, Unfinished
from asyncbench.store.rows import encode_json
from asyncbench.store.segment import payloads, segments
from tests.store.disk import disk_for
from tests.store.made import AT, answered, ended, refused, reply, result, sent, trial, trial_id


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "journal", number=1, unfinished=Unfinished())
    yield journal
    journal.close()


def found(folder):
    """What the segments of a journal's folder leave unfinished."""
    left = Unfinished()
    for segment in segments(folder):
        for payload in payloads(segment, []):
            left.follow(orjson.loads(payload))
    return left


def test_an_event_is_on_the_disk_when_append_returns(journal):
    journal.append(sent(trial(1)))
    assert found(journal.segment.path.parent).sent == {(trial_id(1), 1): sent(trial(1))}


def test_what_has_come_to_its_end_is_not_unfinished(journal):
    for event in [*answered(1), *refused(2), ended(trial(3), None)]:
        journal.append(event)
    assert found(journal.segment.path.parent) == Unfinished()


def test_a_later_reply_stands_for_the_trial(journal):
    later = ended(trial(1), reply(7), attempt=2)
    for event in [ended(trial(1), reply(1)), later]:
        journal.append(event)
    assert found(journal.segment.path.parent).replies == {trial_id(1): later}


def test_a_new_segment_alone_tells_what_is_unfinished(journal):
    open_call, paid = sent(trial(1)), ended(trial(2), reply(2))
    for event in [open_call, paid, *answered(3)]:
        journal.append(event)
    complete = journal.segment.path
    for _ in range(3):
        journal.rotate()
        complete.unlink()
        complete = journal.segment.path
        assert found(complete.parent) == Unfinished(
            sent={(trial_id(1), 1): open_call}, replies={trial_id(2): paid}
        )
    journal.append(ended(trial(1), None))
    journal.append(result(trial(2), reply(2)))
    assert found(complete.parent) == Unfinished()


def test_a_segment_counts_the_rows_it_will_become(journal):
    for event in [*answered(1), *answered(2), ended(trial(3), None), sent(trial(4))]:
        journal.append(event)
    assert (journal.results, journal.rows) == (2, 5)
    journal.rotate()
    assert (journal.results, journal.rows) == (0, 0)


def test_when_there_is_no_room_for_a_new_segment_the_old_one_goes_on(journal):
    journal.append(sent(trial(1)))
    with disk_for(20), pytest.raises(StoreError, match=r"000002\.wal could not be written"):
        journal.rotate()
    journal.append(ended(trial(1), None))
    assert [segment.name for segment in segments(journal.segment.path.parent)] == ["000001.wal"]
    assert found(journal.segment.path.parent) == Unfinished()
    journal.rotate()
    assert journal.segment.path.name == "000002.wal"


def test_an_empty_segment_is_removed_at_the_end(tmp_path):
    journal = Journal(tmp_path / "journal", number=1, unfinished=Unfinished())
    journal.close()
    assert not segments(tmp_path / "journal")


TOKENS = st.none() | st.integers(0, 10**9)
USAGES = st.builds(Usage, input_tokens=TOKENS, cache_write_1h_tokens=TOKENS, output_tokens=TOKENS)
REPLIES = st.builds(
    Reply,
    text=st.text(),
    reasoning=st.none() | st.text(),
    usage=st.none() | USAGES,
    allowances=st.just((Allowance(what="tokens", period_s=60, limit=5, remaining=4, reset_s=1),)),
    raw_usage=st.none() | st.dictionaries(st.text(), st.integers(0, 9) | st.text()),
    ttft_s=st.none() | st.floats(0, 1e6),
)


@given(answer=REPLIES, microseconds=st.integers(0, 10**7))
def test_a_reply_is_given_back_exactly_as_it_came(answer, microseconds):
    paid = ended(trial(1), answer)
    paid = Ended(
        attempt=replace(paid.attempt, started_at=AT + microseconds / 1e6, ttft_s=answer.ttft_s), reply=answer
    )
    carried, back = Unfinished(), Unfinished()
    carried.end(paid)
    for line in map(orjson.loads, carried.payloads()):
        back.follow(line)
    (given_back,) = back.replies.values()
    assert given_back.reply == paid.reply
    assert replace(given_back.attempt, started_at=0) == replace(paid.attempt, started_at=0)
    assert given_back.attempt.started_at == pytest.approx(paid.attempt.started_at, abs=1e-6)


def test_lines_of_a_kind_that_is_not_known_are_passed_over():
    left = Unfinished()
    for line in ({"note": "from a later version"}, {"sent": sent(trial(1))}):
        left.follow(orjson.loads(encode_json(line)))
    assert list(left.sent) == [(trial_id(1), 1)]
