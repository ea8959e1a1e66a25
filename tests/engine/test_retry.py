"""Error → try again when, or give up."""

import pytest
from hypothesis import given, strategies as st

from asyncbench.engine.pending_trial import wait_before_retry
from asyncbench.errors import FINAL_FOR_LANE, WORTH_ANOTHER_TRY, ErrorKind, ProviderError
from asyncbench.records import RetryPolicy

FINAL_FOR_TRIAL = {ErrorKind.BAD_REQUEST, ErrorKind.TOO_LONG, ErrorKind.BLOCKED}
POLICY = RetryPolicy(attempts=10, total_s=3600)


def wait(
    kind=ErrorKind.SERVER_ERROR, *, attempt=1, elapsed_s=0.0, jitter=0.0, retry_after_s=None, policy=POLICY
):
    error = ProviderError(kind, "no", retry_after_s=retry_after_s)
    return wait_before_retry(error, attempt=attempt, elapsed_s=elapsed_s, policy=policy, jitter=jitter)


def test_the_thirteen_kinds_are_each_in_one_class():
    classes = [WORTH_ANOTHER_TRY, FINAL_FOR_TRIAL, FINAL_FOR_LANE]
    assert sorted(kind for one in classes for kind in one) == sorted(ErrorKind)
    assert len(ErrorKind) == 13


@pytest.mark.parametrize("kind", sorted(WORTH_ANOTHER_TRY))
def test_these_are_worth_another_try(kind):
    assert wait(kind) is not None


@pytest.mark.parametrize("kind", sorted(FINAL_FOR_TRIAL | FINAL_FOR_LANE))
def test_these_are_final(kind):
    assert wait(kind) is None


def test_waits_double_up_to_the_longest():
    assert [wait(attempt=n, jitter=0.0) for n in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_a_trial_is_given_up_at_its_last_attempt():
    assert wait(attempt=9) is not None
    assert wait(attempt=10) is None


def test_a_trial_is_given_up_when_the_wait_would_pass_its_time():
    assert wait(elapsed_s=3599.0) is not None
    assert wait(elapsed_s=3599.9) is None


def test_a_providers_own_retry_after_wins_even_when_it_is_long():
    assert wait(retry_after_s=89.0) == 89.0


def test_a_retry_after_that_was_too_short_again_and_again_is_not_believed():
    assert [wait(attempt=n, jitter=0.0, retry_after_s=0.01) for n in range(1, 7)] == [
        0.01,
        0.01,
        0.01,
        4,
        8,
        16,
    ]


@given(st.floats(0, 0.999), st.floats(0, 1000))
def test_a_retry_after_is_never_undercut(jitter, asked_s):
    assert wait(jitter=jitter, retry_after_s=asked_s) >= asked_s


@given(st.integers(1, 10**9), st.floats(0, 0.999))
def test_no_wait_of_our_own_is_longer_than_the_policy_allows(attempt, jitter):
    policy = RetryPolicy(attempts=10**9 + 1, total_s=10**9)
    assert 0 < wait(attempt=attempt, jitter=jitter, policy=policy) <= policy.longest_s
