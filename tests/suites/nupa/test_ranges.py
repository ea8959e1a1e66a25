"""From lengths to ranges and digits, held against the published code's own statistics."""

from fractions import Fraction

import pytest

from asyncbench.suites.nupa.tasks import TASKS, PassedLengths, Sum, digits, range_means, range_of
from tests.recorded import json_lines

PUBLISHED = {
    "short_range": "S",
    "medium_range": "M",
    "long_range": "L",
    "very_long_range": "XL",
    "in_domain": "in_domain",
    "out_domain": "out_domain",
}


def test_every_recorded_statistic_comes_out_the_same(golden):
    cases = json_lines(golden / "nupa" / "aggregate.jsonl")
    for case in cases:
        longest = TASKS[case["task_name"]].length_class
        for figure, rows in case["per_digit"].items():
            sums = {length: Sum(total, answers) for length, total, answers in rows}
            found, held = range_means(sums, longest), digits(sums, figure, longest)
            if case["expected"] is None:  # the published code fails where a range is empty
                assert None in found.values()
                continue
            expected = case["expected"][figure]
            for name, ours in PUBLISHED.items():
                assert float(found[ours] or 0) == pytest.approx(expected[name], rel=1e-9), (case["id"], name)
            assert held.well_learned == expected["well_learned_digit"], (case["id"], figure)
            assert held.preserving == expected["has_performance_digit"], (case["id"], figure)
    assert len(cases) == 50


@pytest.mark.parametrize(
    ("length", "longest", "name"),
    [
        *(
            (length, 20, name)
            for length, name in ((1, "S"), (4, "S"), (5, "M"), (9, "L"), (15, "XL"), (21, None))
        ),
        *((length, 100, name) for length, name in ((10, "S"), (11, "M"), (21, "L"), (60, "L"), (61, "XL"))),
    ],
)
def test_a_length_is_in_the_range_of_its_class(length, longest, name):
    assert range_of(length, longest) == name


def test_a_range_is_the_mean_over_answers_not_over_lengths():
    assert range_means({3: Sum(9, 9), 4: Sum(0, 1)}, 20)["S"] == Fraction(9, 10)


def test_a_range_without_answers_is_null():
    found = range_means({3: Sum(1, 1), 21: Sum(1, 1)}, 20)
    assert found == {"S": 1, "M": None, "L": None, "XL": None, "in_domain": 1, "out_domain": None}


def test_digits_ignore_gaps_as_published_and_the_contiguous_ones_do_not():
    sums = {3: Sum(10, 10), 4: Sum(9, 10), 5: Sum(5, 10), 12: Sum(10, 10), 21: Sum(10, 10)}
    assert digits(sums, "exact_match", 20) == PassedLengths(
        well_learned=12, well_learned_contiguous=4, preserving=12, preserving_contiguous=12
    )


def test_a_mean_on_the_threshold_passes_exactly():
    ninths = {3: Sum(sum([Fraction(9, 10)] * 7, Fraction(0)), 7)}  # as binary floats: 0.8999999999999999
    assert digits(ninths, "digit_match", 20).well_learned == 3
    assert digits({3: Sum(1, 10)}, "dlength", 20).well_learned == 3
    assert digits({3: Sum(11, 100)}, "dlength", 20).well_learned == 0


def test_without_answers_nothing_is_known_and_without_passing_ones_it_is_zero():
    assert digits({}, "exact_match", 20) == PassedLengths()
    assert digits({3: Sum(0, 5)}, "exact_match", 20).well_learned == 0
