"""How much waits in batches at once: never more than a vendor takes, once it has said so."""

import math

import pytest
from hypothesis import given, strategies as st

from asyncbench.lanes.batches.context import EnqueuedPool
from asyncbench.lanes.batches.ledger import BatchLedger, BatchPart, Step

OPENAIS = (
    "Enqueued token limit reached for gpt-5-nano in organization org-Ab12. Limit: 2,000,000 enqueued tokens. "
    "Please try again once some in_progress batches have been completed."
)


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        (OPENAIS, 2_000_000),
        (OPENAIS.replace(",", ""), 2_000_000),
        ("The enqueued tokens exceed the limit of 90000.", 90_000),
        ("Rate limit reached. Limit: 1,350,000 tokens.", 1_350_000),
        ("More than 200,000 requests would wait in batches.", 200_000),
    ],
)
def test_the_limit_is_read_out_of_a_refusal(message, limit):
    pool = EnqueuedPool()
    pool.refused(message, 10_000_000, in_use=0)
    assert pool.limit == pytest.approx(0.9 * limit)


def test_a_limit_that_is_set_holds():
    pool = EnqueuedPool(100)
    assert [pool.fits(size, in_use=60) for size in (40, 41)] == [True, False]
    pool.accepted("a", in_use=100)
    assert pool.limit == 100


@pytest.mark.parametrize(("in_tokens", "first"), [(True, 80_000), (False, 100_000)])
def test_without_a_limit_it_begins_small_and_doubles_while_the_vendor_takes_it(in_tokens, first):
    pool, seen = EnqueuedPool(in_tokens=in_tokens), []
    for key in "abc":
        seen.append(pool.limit)
        pool.accepted(key, in_use=int(pool.limit))
    assert seen == [first, 2 * first, 4 * first]


def test_a_told_limit_above_the_one_that_is_set_changes_nothing():
    pool = EnqueuedPool(100)
    pool.refused(OPENAIS, 3_000_000, in_use=0)
    assert pool.limit == 100


def test_what_should_have_fitted_counts_for_more_up_to_a_bound_and_comes_back():
    pool = EnqueuedPool()
    pool.refused(OPENAIS, 2_000_000, in_use=10)
    assert pool.limit == 1_800_000  # it was too much
    pool.refused(OPENAIS, 10, in_use=10)
    assert pool.limit == pytest.approx(1_800_000 / 1.2)
    for _ in range(20):
        pool.refused(OPENAIS, 10, in_use=0)
    assert pool.limit == 450_000
    for polls in range(300):
        pool.accepted(str(polls // 2), in_use=10)  # each batch counts once, however often it is looked at
    assert pool.limit == pytest.approx(1_800_000)


def test_refusals_without_a_number_halve_what_may_wait_down_to_a_bound_and_it_grows_again():
    pool = EnqueuedPool()
    pool.refused("Too many enqueued tokens.", 60_000, in_use=0)
    assert pool.limit == 30_000
    for _ in range(20):
        pool.refused("Too many enqueued tokens.", int(pool.limit), in_use=0)
    assert pool.limit == 5_000
    pool.accepted("a", in_use=5_000)
    assert pool.limit == 10_000


def ledger_of(folder, *, limit=None):
    """A ledger in which a part was refused, if there is a limit, and another one was done."""
    ledger = BatchLedger(folder)
    for key, alias in (("a" * 16, "mine"), ("b" * 16, "other")):
        part = BatchPart(key=key, alias=alias, requests=5, size=1, sha256="", tokens=300_000)
        ledger.write(part, Step.PREPARED, at=1.0)
        if limit is not None:
            ledger.write(part, Step.REFUSED, at=2.0, why=f"Enqueued token limit. Limit: {limit:,} tokens.")
        ledger.write(part, Step.SUBMITTED, at=3.0, batch_id=f"batch_{alias}", created_at=3.0)
        said = {"status": "completed", "ended_at": 4.0, "files": (), "used": None, "faults": ()}
        ledger.write(part, Step.ENDED, at=4.0, **said)
    ledger.close()
    return BatchLedger(folder)


@pytest.mark.parametrize(("limit", "most"), [(500_000, 450_000), (None, 600_000)])
def test_what_was_learnt_survives_a_restart(tmp_path, limit, most):
    pool = EnqueuedPool()
    pool.remember(ledger_of(tmp_path, limit=limit), "mine")
    assert pool.limit == most


def test_a_pool_holds_the_open_parts_of_its_models(tmp_path):
    ledger, pool = BatchLedger(tmp_path), EnqueuedPool(in_tokens=False)
    for number, alias in enumerate(("one", "two", "of another key")):
        part = BatchPart(key=str(number), alias=alias, requests=5, size=1, sha256="", tokens=7)
        ledger.write(part, Step.PREPARED, at=1.0)
        if alias == "two":
            ledger.write(part, Step.SUBMITTED, at=3.0, batch_id="x", created_at=3.0)
    ledger.close()
    for alias in ("one", "two"):
        pool.remember(ledger, alias)
    assert pool.size_in_use(ledger) == 10
    assert [part.alias for part in pool.sent(ledger)] == ["two"]


@given(
    vendor_limit=st.integers(100_000, 10_000_000),
    factor=st.floats(1, 3),
    share=st.none() | st.floats(0.1, 10),
    commas=st.booleans(),
)
def test_everything_gets_through_with_few_refusals(vendor_limit, factor, share, commas):
    """A vendor takes what fits its own count, which is a constant more than ours."""
    pool, left = EnqueuedPool(share and int(share * vendor_limit)), 20.0 * vendor_limit
    running: list[float] = []  # the first one ends first
    parts = refusals = 0
    for step in range(10_000):
        part, held = min(left, pool.limit / 3), math.fsum(running)
        if left < 1:
            break
        if running and not pool.fits(part, in_use=held):
            running.pop(0)
            continue
        parts += 1
        if factor * (part + held) > vendor_limit:
            refusals += 1
            pool.refused(f"Limit: {vendor_limit:{',' if commas else ''}} enqueued tokens.", part, in_use=held)
            running = running[1:]  # what the wait is for
        else:
            running.append(part)
            pool.accepted(str(step), in_use=math.fsum(running))
            left -= part
    assert left < 1
    assert refusals <= parts / 8 + 20
