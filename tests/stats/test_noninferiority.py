"""Whether B is worse than A by a margin: what its interval decides, and how often that is wrong."""

from collections import Counter
from math import inf

import pytest

from asyncbench.stats.noninferiority import PairedValues, Verdict, judge, problems_to_judge, relative_change
from tests.rows import each_row


@each_row(
    ("low", "high", "verdict"),
    [
        (-0.01, 0.01, "not_worse"),
        (0.001, 0.019, "not_worse"),  # worse, but by less than the margin
        (0.001, 0.02, "worse"),
        (0.05, 0.09, "worse"),
        (0.0, 0.03, "undecided"),
        (-0.1, 0.1, "undecided"),
        (-0.1, inf, "undecided"),
    ],
)
def test_a_loss_passes_where_the_margin_is_ruled_out_and_is_worse_where_none_is(low, high, verdict):
    assert judge((low, high), 0.02) is Verdict(verdict)


def test_undecided_losses_need_more_problems_than_were_asked_and_never_an_endless_number():
    for loss in (-0.03, -0.01, 0.0, 0.01, 0.019, 0.03, 0.2):
        half = max(loss, 0.02 - loss)  # just undecided
        needed = problems_to_judge(loss, (loss - half, loss + half), 0.02, 600)
        assert needed is not None
        assert 1_200 <= needed <= 1_260
    assert problems_to_judge(0.0, (-0.1, inf), 0.02, 600) is None


def test_a_change_is_that_of_the_figure_and_draws_a_problem_with_its_repeats():
    a, b = [1.0, 2.0, 3.0, 4.0] * 50, [2.0, 4.0, 6.0, 8.0] * 50
    apart = relative_change(PairedValues(a=a, b=b, problems=range(200)), None, seed=8)
    assert apart is not None
    assert (apart.a, apart.b, apart.change) == (2.5, 5.0, 1.0)
    assert apart.interval == (1.0, 1.0)  # each trial takes twice as long

    # Ten repeats of twenty problems tell less than two hundred problems.
    slower = [value + (n % 20 < 5) for n, value in enumerate(a)]
    widths = []
    for problems in (range(200), [n % 20 for n in range(200)]):
        found = relative_change(PairedValues(a=a, b=slower, problems=list(problems)), None, seed=8)
        assert found is not None
        low, high = found.interval
        widths.append(high - low)
    assert widths[1] > 2 * widths[0]


def test_a_change_has_no_end_where_too_many_trials_never_ended():
    a, b = [1.0] * 100, [1.0] * 92 + [inf] * 8
    found = relative_change(PairedValues(a=a, b=b, problems=range(100)), 0.95, seed=8)
    assert found is not None
    assert found.interval[1] == inf
    assert relative_change(PairedValues(a=[0.0], b=[1.0], problems=[0]), None, seed=8) is None


@pytest.mark.long
def test_gates_call_equal_models_worse_and_pass_worse_ones_in_at_most_one_of_twenty():
    from benchmarks.gates import SITUATIONS, verdicts

    for situation in SITUATIONS:
        counts = Counter(verdicts(situation, seeds=range(200)))
        wrong = Verdict.NOT_WORSE if situation.loss >= situation.margin else Verdict.WORSE
        limit = 200 if 0 < situation.loss < situation.margin else 22  # once in a million at 5 %: 22 of 200
        assert counts[wrong] <= limit, situation
