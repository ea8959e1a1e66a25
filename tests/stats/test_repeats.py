"""Would one of k answers be right, would all k be?"""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncbench.errors import ConfigError
from asyncbench.stats import pass_at_k, pass_hat_k


@given(st.integers(1, 9), st.data())
def test_both_are_the_share_of_all_choices_of_k_answers(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    choices = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_of_one_answer_both_are_the_accuracy():
    assert pass_at_k(10, 3, 1) == pytest.approx(0.3)
    assert pass_hat_k(10, 3, 1) == pytest.approx(0.3)


def test_thousands_of_answers_do_not_overflow():
    assert pass_at_k(10_000, 1, 5_000) == pytest.approx(0.5)


@pytest.mark.parametrize("k", [0, 6])
def test_k_beyond_what_was_asked_is_refused(k):
    with pytest.raises(ConfigError, match=f"k = {k}.*1 to 5"):
        pass_at_k(5, 2, k)
