"""How much waits in batches at once: never more than a vendor takes, once it has said so."""

import pytest
from hypothesis import given, strategies as st

from asyncbench.batches import EnqueuedLimit, limit_told, without_organization

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
        ("Too many requests.", None),
        ("limit reached", None),
    ],
)
def test_the_limit_is_read_out_of_a_refusal(message, limit):
    assert limit_told(message) == limit


def test_the_organization_is_not_told_on():
    told = without_organization(OPENAIS)
    assert "Ab12" not in told
    assert "Limit: 2,000,000" in told


def test_a_limit_that_is_set_holds():
    limit = EnqueuedLimit(100)
    assert limit.admits(100)
    limit.submitted("a", 60)
    assert (limit.free, limit.admits(40), limit.admits(41)) == (40, True, False)
    limit.taken("a")
    assert limit.free == 40
    limit.ended("a")
    limit.ended("a")
    assert limit.free == 100


def test_without_a_limit_it_begins_small_and_doubles_while_the_vendor_takes_it():
    limit, seen = EnqueuedLimit(first=10), []
    for key in "abcd":
        limit.submitted(key, limit.free)
        limit.taken(key)
        seen.append(limit.most)
    assert seen == [20, 40, 80, 160]


def test_a_refusal_tells_the_limit():
    limit = EnqueuedLimit(first=5_000_000)
    limit.submitted("a", 3_000_000)
    limit.refused("a", OPENAIS)
    assert (limit.most, limit.free) == (1_800_000, 1_800_000)
    limit.submitted("b", 1_000_000)
    limit.taken("b")
    assert limit.free == 800_000
    limit.submitted("c", 1_500_000)
    limit.refused("c", OPENAIS.replace("2,000,000", "2,500,000"))  # the account has grown
    assert limit.most == 2_250_000


def test_a_told_limit_above_the_one_that_is_set_changes_nothing():
    limit = EnqueuedLimit(100)
    limit.submitted("a", 100)
    limit.refused("a", OPENAIS)
    assert limit.most == pytest.approx(100 / 1.2)  # it should have fitted: its tokens count for more


def test_what_should_have_fitted_counts_for_more_up_to_a_bound():
    limit = EnqueuedLimit(most_factor=2)
    for _ in range(20):
        limit.submitted("a", 10)
        limit.refused("a", OPENAIS)
    assert limit.most == 900_000
    for _ in range(100):
        limit.submitted("a", 10)
        limit.taken("a")
    assert limit.most == 1_800_000


def test_a_refusal_without_a_number_halves_what_may_wait():
    limit = EnqueuedLimit(first=80)
    limit.submitted("a", 60)
    limit.refused("a", "Too many enqueued tokens.")
    assert limit.most == 30


def test_the_wait_grows_with_refusals_in_a_row_and_never_ends():
    limit, waits = EnqueuedLimit(), [0.0]
    for _ in range(7):
        limit.submitted("a", 10)
        limit.refused("a", OPENAIS)
        waits.append(limit.wait_s)
    assert waits == [0, 60, 120, 240, 480, 900, 900, 900]
    limit.submitted("a", 10)
    limit.taken("a")
    assert limit.wait_s == 0


@given(
    vendor_limit=st.integers(1_000, 10_000_000),
    factor=st.floats(1, 3),
    share=st.none() | st.floats(0.1, 10),
    commas=st.booleans(),
)
def test_everything_gets_through_with_few_refusals(vendor_limit, factor, share, commas):
    """A vendor takes what fits its own count, which is a constant more than ours."""
    limit, left = EnqueuedLimit(share and share * vendor_limit), 20.0 * vendor_limit
    running: list[tuple[str, float]] = []  # the first one ends first
    parts = refusals = 0
    for step in range(10_000):
        part = min(left, limit.most / 3)
        if left < 1:
            break
        if not limit.admits(part):
            limit.ended(running.pop(0)[0])
            continue
        parts, key = parts + 1, str(step)
        limit.submitted(key, part)
        if factor * (part + sum(tokens for _, tokens in running)) > vendor_limit:
            refusals += 1
            limit.refused(key, f"Limit: {vendor_limit:{',' if commas else ''}} enqueued tokens.")
            for ended, _ in running[:1]:  # what the wait is for
                limit.ended(ended)
            running = running[1:]
        else:
            limit.taken(key)
            running.append((key, part))
            left -= part
    assert left < 1
    assert refusals <= parts / 8 + 20
