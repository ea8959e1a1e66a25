"""The course of a batch is a function of its record and the time: it goes one way, and ends."""

from itertools import pairwise

from hypothesis import given, strategies as st

from asyncbench.simulator.batches.records import DAY_S, TERMINAL, ServedBatch, course_of
from asyncbench.simulator.batches.settings import BatchFaultKind as Kind, BatchSettings

NEXT = {
    "validating": {"in_progress", "failed", "cancelling", "expired"},
    "in_progress": {"finalizing", "cancelling", "expired"},
    "finalizing": {"completed", "cancelling", "expired"},
    "cancelling": {"cancelled", "completed", "expired", "failed"},
}
SECONDS = st.floats(0, 100_000).map(str)
MET = st.fixed_dictionaries(
    {},
    optional={
        Kind.SLOW_START: SECONDS,
        Kind.STUCK_VALIDATING: SECONDS,
        Kind.STUCK_FINALIZING: SECONDS,
        Kind.CANCEL_SLOW: SECONDS,
        Kind.EXPIRES: st.floats(0, 1).map(str),
        Kind.NEVER_EXPIRES: st.just(""),
        Kind.CANCEL_COMPLETES: st.just(""),
    },
)


@st.composite
def batches(draw):
    """A batch with any faults, which may be cancelled at any time."""
    settings = BatchSettings(speedup=draw(st.sampled_from([1.0, 3600.0])))
    batch = ServedBatch(
        id="batch_1",
        vendor="openai",
        workspace="w",
        number=1,
        created_at=1_000_000.0,
        endpoint="/v1/chat/completions",
        input_file_id="file-1",
        model="m",
        requests=draw(st.integers(1, 1000)),
        tokens=0,
        errors=draw(st.sampled_from([None, None, ()])),
        settings=settings,
        latency_s=draw(st.floats(1, 200_000)),
        met=draw(MET),
        cancelled_at=None,
    )
    cancelled_s = draw(st.none() | st.floats(0, 200_000))
    if cancelled_s is None:
        return batch
    at = batch.created_at + cancelled_s / settings.speedup
    if course_of(batch, at).ended:  # a batch that has ended is not cancelled
        return batch
    return ServedBatch(**{name: getattr(batch, name) for name in batch.__slots__} | {"cancelled_at": at})


@given(batch=batches(), moments=st.lists(st.floats(0, 500_000), min_size=2, max_size=12))
def test_a_batch_goes_one_way_and_ends(batch, moments):
    passed = [batch.created_at + moment / batch.settings.speedup for moment in sorted(moments)]
    seen = [course_of(batch, at) for at in passed]

    assert [course.done for course in seen] == sorted(course.done for course in seen)
    assert all(0 <= course.done <= batch.requests for course in seen)
    for earlier, later in pairwise(seen):
        assert earlier.began_s.items() <= later.began_s.items()
        assert not earlier.ended or (later.status, later.done) == (earlier.status, earlier.done)
    last = course_of(batch, batch.created_at + (seen[-1].ends_s + 1) / batch.settings.speedup)
    assert last.status in TERMINAL
    assert (last.done == batch.requests) >= (last.status == "completed")
    assert last.done == 0 or last.status != "failed"


@given(batch=batches())
def test_the_states_of_a_batch_follow_each_other(batch):
    end = course_of(batch, batch.created_at + 1e7)
    states = sorted(end.began_s, key=lambda state: (end.began_s[state], [*end.began_s].index(state)))
    assert all(after in NEXT[before] for before, after in pairwise(states))
    assert end.began_s.get("expired", DAY_S) == DAY_S
