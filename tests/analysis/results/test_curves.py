"""Accuracy against length: the curve, its intervals, and what is said where there is none."""

import random
import warnings
from math import exp, log, sqrt

import pytest
from hypothesis import assume, given, settings, strategies as st

from asyncbench.analysis.curves import CurveState, Length, curves_by, fit, hardest
from asyncbench.analysis.entrants import finest
from asyncbench.stats.proportions import Proportion

COUNTS = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
POINTS = st.dictionaries(st.integers(1, 60), COUNTS, min_size=1, max_size=12).map(
    lambda found: [(float(length), right, n) for length, (right, n) in sorted(found.items())]
)


def curve_of(points):
    """The curve of points that have one."""
    curve = fit(points)
    assert curve is not None
    return curve


def drawn(seed, *, half, slope, lengths, trials):
    """Counts as a model makes them whose accuracy is logistic and one half at `half`."""
    rng = random.Random(seed)
    return [
        (x, sum(rng.random() < 1 / (1 + exp(-slope * (x - half))) for _ in range(trials)), trials)
        for x in lengths
    ]


# ── the fit ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(POINTS)
def test_the_fit_is_the_binomial_glm_of_statsmodels(points):
    import numpy as np
    import statsmodels.api as sm

    curve = curve_of(points)
    assume(curve.state == CurveState.FITTED)
    lengths = np.array([x for x, _, _ in points])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of shares that are all but 0 or 1
        model = sm.GLM(
            np.array([(right, n - right) for _, right, n in points]),
            sm.add_constant(lengths),
            family=sm.families.Binomial(),
        ).fit(tol=1e-13, maxiter=300)
    line = curve.line
    assume(abs(line.slope) < 5)  # steeper ones statsmodels gives up on
    assert (line.intercept, line.slope) == pytest.approx(tuple(model.params), rel=1e-4, abs=1e-6)
    covariance = [line.variance_of_intercept, line.covariance, line.variance_of_slope]
    expected = model.cov_params()
    assert covariance == pytest.approx([expected[0, 0], expected[0, 1], expected[1, 1]], rel=1e-3)
    interval = model.get_prediction(sm.add_constant(lengths)).summary_frame(alpha=0.05)
    for x, mean, low, high in zip(
        lengths, interval["mean"], interval["mean_ci_lower"], interval["mean_ci_upper"], strict=True
    ):
        assert curve.share_at(x) == pytest.approx((mean, low, high), rel=1e-3, abs=1e-5)


def test_a_length_that_comes_twice_counts_as_one():
    assert curve_of([(3, 1, 2), (5, 1, 4), (3, 2, 2)]) == curve_of([(3, 3, 4), (5, 1, 4)])


def test_without_trials_there_is_no_curve():
    assert fit([]) is None
    assert fit([(3, 0, 0)]) is None


@pytest.mark.long
@given(POINTS)
def test_whatever_is_said_of_a_length_holds_together(points):
    curve = curve_of(points)
    for share in (0.5, 0.9):
        found = curve.length_at(share)
        said = [found.value is not None, found.bound is not None, found.between is not None, bool(found.why)]
        assert said.count(True) == 1
        inner = [one for one in (found.low, found.value, found.high) if one is not None]
        assert inner == sorted(inner)
        assert all(curve.shortest <= one <= curve.longest for one in inner)
        assert str(found)
    for x in (0.0, *(x for x, _, _ in points), 100.0):
        value, low, high = curve.share_at(x)
        assert 0 <= low <= high <= 1
        assert value is None or low - 1e-9 <= value <= high + 1e-9


# ── where there is no number, none is made up ────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("points", "at_90", "at_50"),
    [
        pytest.param([(5, 100, 100), (20, 100, 100)], "> 20", "> 20", id="all right"),
        pytest.param([(5, 2, 2), (20, 2, 2)], "> 20 (< 5 to > 20)", "> 20 (18.2 to > 20)", id="all of few"),
        pytest.param([(3, 0, 100), (9, 0, 100)], "< 3", "< 3", id="all wrong"),
        pytest.param([(6, 50, 50), (7, 0, 50)], "6 to 7 (6.0 to 7.0)", "6 to 7 (6.0 to 7.0)", id="separated"),
        pytest.param([(7, 9, 10)], "-", "-", id="one length"),
        pytest.param([(3, 0, 9), (9, 9, 9)], "-", "-", id="wrong, then right"),
        pytest.param([(3, 30, 60), (9, 55, 60)], "-", "> 9", id="rising through 90 %"),
        pytest.param([(3, 5, 60), (9, 20, 60)], "< 3", "< 3", id="rising below 50 %"),
    ],
)
def test_a_length_that_cannot_be_told_is_a_bound_or_nothing(points, at_90, at_50):
    curve = curve_of(points)
    assert [str(curve.length_at(share)) for share in (0.9, 0.5)] == [at_90, at_50]


def test_a_length_beyond_those_asked_is_not_extrapolated():
    curve = curve_of(drawn(1, half=30, slope=-0.4, lengths=range(5, 21), trials=400))
    assert curve.length_at(0.5).bound == "above"
    assert curve.length_at(0.5).value is None
    assert curve.length_at(0.5).longest == 20


def test_why_there_is_neither_a_length_nor_a_bound_is_said():
    assert curve_of([(7, 9, 10)]).length_at(0.9).why == "only one length was asked"
    assert curve_of([(3, 30, 60), (9, 55, 60)]).length_at(0.9).why == "accuracy rises with length"


def test_of_one_length_the_curve_is_its_share():
    curve = curve_of([(7, 9, 10)])
    seen = Proportion(successes=9, trials=10)
    assert curve.share_at(7)[0] == 0.9
    assert curve.share_at(7)[1:] == seen.interval
    assert curve.share_at(8) == (None, 0.0, 1.0)


def test_a_step_is_right_before_and_wrong_behind_and_open_between():
    curve = curve_of([(5, 40, 40), (6, 40, 40), (7, 0, 40)])
    assert [curve.share_at(x)[0] for x in (4, 6, 6.5, 7, 9)] == [1, 1, None, 0, 0]
    assert curve.share_at(6)[1] > 0.9
    assert curve.share_at(7)[2] < 0.1
    assert curve.share_at(6.5)[1:] == pytest.approx((0, 1), abs=1e-6)


def test_a_step_with_one_mixed_length_has_its_share_there():
    curve = curve_of([(5, 40, 40), (6, 30, 40), (7, 0, 40)])
    assert curve.state == CurveState.SEPARATED
    assert curve.share_at(6)[0] == 0.75
    assert curve.length_at(0.9).between == (5, 6)
    assert curve.length_at(0.5).between == (6, 7)


def test_a_step_upwards_is_the_mirror_of_one_downwards():
    down, up = curve_of([(1, 9, 9), (2, 0, 9)]), curve_of([(-2, 0, 9), (-1, 9, 9)])
    assert up.share_at(-1) == pytest.approx(down.share_at(1))


def test_all_right_of_few_trials_is_little_evidence():
    few, many = (curve_of([(5, n, n), (10, n, n)]) for n in (3, 300))
    assert few.share_at(10)[1] < 0.7 < 0.98 < many.share_at(10)[1]


# ── the intervals hold what they promise ─────────────────────────────────────────────────────

TRUE = {"half": 8.0, "slope": -1.1, "lengths": range(3, 15), "trials": 30}
SIMULATIONS = 200


def at_least(covered, wanted=0.95):
    """Whether so many of SIMULATIONS are no evidence against the promise: within 3.3 standard errors."""
    return covered / SIMULATIONS >= wanted - 3.3 * sqrt(wanted * (1 - wanted) / SIMULATIONS)


def inside(length, low, high):
    return (low is None or low <= length) and (high is None or length <= high)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("slope", [-0.5, -4.0])
def test_limits_of_a_length_cover_the_truth(share, slope):
    crossing = TRUE["half"] + log(share / (1 - share)) / slope
    covered = 0
    for seed in range(SIMULATIONS):
        found = curve_of(drawn(seed, **TRUE | {"slope": slope})).length_at(share)
        covered += inside(crossing, found.low, found.high)
    assert at_least(covered)


# ── over cells ───────────────────────────────────────────────────────────────────────────────


def cells(*rows):
    names = ("run", "model", "condition", "suite", "task", "variant", "length", "trials", "correct", "failed")
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_cells_become_a_curve_for_each_model_and_task():
    table = cells(
        ("r", "b", "plain", "s", "add", "", 3, 10, 10, 0),
        ("r", "b", "plain", "s", "add", "x", 3, 10, 8, 0),
        ("r", "b", "plain", "s", "add", "", 9, 12, 2, 2),
        ("r", "a", "plain", "s", "add", "", 3, 4, 4, 0),
        ("r", "a", "plain", "s", "sub", "", None, 4, 4, 0),
    )
    first, second = curves_by(table).items()
    assert first[0] == ("r", "a", "plain", "s", "add")
    assert (second[0][1], second[1].points) == ("b", ((3, 18, 20), (9, 2, 10)))
    assert [*curves_by(table, ("model", "variant"))] == [("a", ""), ("b", ""), ("b", "x")]


def length(**told):
    unknown = {"value": None, "low": None, "high": None, "bound": None, "between": None, "why": None}
    return Length(**unknown | {"shortest": 3.0, "longest": 20.0} | told)


def test_the_hardest_task_is_the_one_with_the_least_length():
    lengths = {
        "none": length(why="only one length was asked"),
        "easy": length(bound="above"),
        "step": length(between=(6.0, 7.0), low=5.0, high=8.0),
        "fitted": length(value=6.5, low=6.0, high=7.0),
    }
    step, bad = hardest(lengths), hardest(lengths | {"bad": length(bound="below")})
    simple = hardest({"easy": lengths["easy"], "simple": lengths["easy"]})
    assert step is not None
    assert bad is not None
    assert simple is not None
    assert step.task == "step"
    assert bad.brief() == "< 3 digits (bad)"
    assert simple.brief() == "20 digits or more"
    assert hardest({"none": lengths["none"]}) is None


def test_a_task_with_several_representations_is_named_with_them():
    kinds = finest([("add", "easy", ""), ("add", "hard", ""), ("sub", "easy", "")])
    assert sorted(kinds.values()) == ["add easy", "add hard", "sub"]


def test_a_group_that_only_failed_has_no_curve():
    assert curves_by(cells(("r", "a", "plain", "s", "add", "", 3, 4, 0, 4))) == {}
