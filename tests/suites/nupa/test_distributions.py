"""Operands are drawn as the paper says: chi-square, with fixed seeds, at one in a thousand."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import takewhile
from math import sqrt
from operator import eq

import pytest

from asyncbench.suites.nupa.operands import below_of, choose_by_operand, pairs_of, uniform
from asyncbench.suites.nupa.tasks import TASKS

PAIRS = 4000


def pairs(pool: str, kind: str, length: int = 20, count: int = PAIRS):
    below, draw = below_of(random.Random(f"{pool}/{kind}/{length}")), pairs_of(pool, kind)
    return [draw(below, length) for _ in range(count)]


def operands(name: str, length: int = 20, count: int = PAIRS):
    """Return the operands of a task in profile `fixed`, each with the pair that was drawn."""
    task, below = TASKS[name], below_of(random.Random(name))
    draw = pairs_of(task.pool, task.representation)
    drawn = [draw(below, length) for _ in range(count)]
    return [(pair, task.prepare(*pair, uniform(below))) for pair in drawn]


def assert_drawn(seen: Iterable[object], shares: Mapping[object, float]) -> None:
    """Refuse counts that are as far from their shares as one in a thousand would be."""
    counts = Counter(seen)
    total = counts.total()
    assert set(counts) <= set(shares), f"never to be drawn: {set(counts) - set(shares)}"
    chi_square = sum((counts[key] - total * share) ** 2 / (total * share) for key, share in shares.items())
    assert chi_square < critical(len(shares) - 1), f"{chi_square:.1f}: {counts}"


def critical(degrees: int) -> float:
    """The chi-square that one sample in a thousand exceeds (Wilson and Hilferty, 1931)."""
    spread = 2 / (9 * degrees)
    return degrees * (1 - spread + 3.0902 * sqrt(spread)) ** 3


def evenly(keys: Iterable[object]) -> dict[object, float]:
    every = list(keys)
    return {key: 1 / len(every) for key in every}


def length_of(kind: str, number: tuple[str, ...]) -> int:
    return {"integer": len(number[0]), "fraction": len(number[-1])}.get(kind) or len(number[1])


@pytest.mark.parametrize(("degrees", "exceeded"), [(4, 18.47), (9, 27.88), (19, 43.82)])
def test_the_limit_is_that_of_the_tables(degrees, exceeded):
    assert critical(degrees) == pytest.approx(exceeded, rel=0.02)


@pytest.mark.parametrize("kind", ["integer", "float", "fraction", "scientific"])
@pytest.mark.parametrize("length", [20, 7])
def test_the_shorter_operand_has_half_the_digits_or_more(kind, length):
    shorter = (min(length_of(kind, a), length_of(kind, b)) for a, b in pairs("add", kind, length))

    assert_drawn(shorter, evenly(range(length // 2, length + 1)))


@pytest.mark.parametrize("kind", ["integer", "float", "fraction", "scientific"])
def test_the_shorter_operand_may_have_any_number_of_digits_as_section_2_2_says(kind):
    below, draw = below_of(random.Random(f"any/{kind}")), pairs_of("add", kind, shorter="any")
    drawn = [draw(below, 7) for _ in range(PAIRS)]

    assert_drawn((min(length_of(kind, a), length_of(kind, b)) for a, b in drawn), evenly(range(1, 8)))


@pytest.mark.parametrize("kind", ["integer", "float", "fraction", "scientific"])
def test_the_shorter_operand_comes_first_half_of_the_time(kind):
    lengths = ((length_of(kind, a), length_of(kind, b)) for a, b in pairs("add", kind))

    assert_drawn((a < b for a, b in lengths if a != b), evenly([True, False]))


def test_integers_are_uniform():
    numbers = [int(a[0]) for a, _ in pairs("compare_harder", "integer", 3)]

    assert_drawn((n // 100 for n in numbers), evenly(range(1, 10)))
    assert_drawn((n % 10 for n in numbers), evenly(range(10)))


def test_floats_have_any_number_of_digits_before_the_point_and_no_zero_at_the_end():
    longest = [number for pair in pairs("add", "float") for number in pair if len(number[1]) == 20]

    assert_drawn((len(whole) for whole, _ in longest), evenly(range(1, 21)))
    assert_drawn((decimals[-1] for _, decimals in longest), evenly("123456789"))
    assert_drawn((decimals[0] for _, decimals in longest), evenly("0123456789"))
    assert_drawn((whole[0] for whole, _ in longest), evenly("123456789"))


def test_exponents_are_uniform_to_99():
    numbers = [number for pair in pairs("compare", "scientific") for number in pair]

    assert_drawn((int(exponent) for _, _, exponent in numbers), evenly(range(100)))
    assert_drawn((mantissa for mantissa, _, _ in numbers), evenly("123456789"))


def test_denominators_keep_their_length_in_lowest_terms():
    for a, _ in pairs("add", "fraction", 1, 500):
        assert len(a[1]) == 1
    assert {len(a[1]) for a, b in pairs("add", "fraction", 5, 500) if len(a[1]) >= len(b[1])} == {5}


def test_hard_integers_share_any_number_of_first_digits():
    shared = (sum(takewhile(bool, map(eq, a[0], b[0]))) for a, b in pairs("compare_harder", "integer", 10))

    # d digits are copied, d uniform below 10; then digits agree by chance: first ones 1 in 9, others 1 in 10.
    assert_drawn(shared, {k: sum(0.1 * agreeing(d, k, 10) for d in range(min(k, 9) + 1)) for k in range(11)})


def agreeing(copied: int, shared: int, length: int) -> float:
    """Return the probability that exactly `shared` first digits agree when `copied` of them were copied."""
    share = 1.0
    for place in range(copied, shared):
        share *= by_chance(place)
    return share if shared == length else share * (1 - by_chance(shared))


def by_chance(place: int) -> float:
    return 1 / 9 if place == 0 else 1 / 10


def test_seven_in_ten_hard_floats_share_what_is_before_the_point():
    same = (a[0] == b[0] for a, b in pairs("compare_harder", "float", 60))
    by_accident = 0.3 * 0.0021  # both have one digit, or two, before it

    assert_drawn(same, {True: 0.7 + by_accident, False: 0.3 - by_accident})


def test_eight_in_ten_hard_scientific_numbers_share_the_exponent():
    same = (a[2] == b[2] for a, b in pairs("compare_harder", "scientific", 30))

    assert_drawn(same, {True: 0.8 + 0.2 / 100, False: 0.2 * 99 / 100})


@pytest.mark.parametrize("kind", ["integer", "float", "scientific"])
def test_easy_comparisons_share_nothing(kind):
    shared = sum(a[0][:3] == b[0][:3] and len(a[0]) > 3 for a, b in pairs("compare", kind, 40, 1000))

    assert shared < 15  # about one in a thousand


# ── what is chosen for the second operand ────────────────────────────────────────────────────


def test_exponents_of_sums_are_at_any_distance_up_to_five():
    name = "add_ScientificNotation_ScientificNotation_ScientificNotation"
    gaps = (int(b[2]) - int(a[2]) for _, (a, b) in operands(name) if 5 <= int(a[2]) <= 93)

    assert_drawn(gaps, evenly(range(-5, 6)))


def test_exponents_of_differences_are_one_to_five_below():
    name = "sub_ScientificNotation_ScientificNotation_ScientificNotation"
    gaps = (int(a[2]) - int(b[2]) for _, (a, b) in operands(name) if int(a[2]) > 5)

    assert_drawn(gaps, evenly(range(1, 6)))


def test_the_published_exponents_are_at_six_distances_alone():
    task = TASKS["add_ScientificNotation_ScientificNotation_ScientificNotation"]
    made = [
        task.prepare_as_published(a, b, choose_by_operand) for a, b in pairs("add", "scientific", 8, 1000)
    ]

    assert {int(b[2]) - int(a[2]) for a, b in made if 5 <= int(a[2]) <= 93} == {-5, -3, -2, 0, 2, 4}


def test_the_digit_to_count_is_any():
    assert_drawn((b[0] for _, (_, b) in operands("count_Integer_int_int")), evenly("0123456789"))


def test_the_place_of_a_digit_is_any():
    made = operands("get_digit_Integer_int_int")

    assert_drawn((int(place[0]) for _, (_, place) in made), evenly(range(20)))


def test_significant_digits_are_two_to_all():
    made = operands("sig_Integer_int_ScientificNotation")

    # A tie is drawn again, which is one in ten where one digit is cut off: the share there is a little less.
    weights = {kept: 1 - (0.1 ** (20 - kept) if kept < 20 else 0) for kept in range(2, 21)}
    total = sum(weights.values())
    assert_drawn((int(b[0]) for _, (_, b) in made), {kept: w / total for kept, w in weights.items()})


def test_up_to_half_of_the_digits_become_zeros():
    made = operands("to_scient_Integer_none_ScientificNotation")
    zeros = (len(a[0]) - len(a[0].rstrip("0")) for _, (a,) in made)

    # z digits are set to zero, z uniform to 10; those before them are zeros by chance, one in ten each.
    shares = [sum(0.9 * 0.1 ** (k - z) / 11 for z in range(min(k, 10) + 1)) for k in range(14)]
    assert_drawn((min(k, 14) for k in zeros), dict(enumerate([*shares, 1 - sum(shares)])))


def test_exponents_of_conversions_reach_as_far_as_the_decimals():
    made = operands("to_float_ScientificNotation_none_Float")
    deep = (int(a[2]) for pair, (a,) in made if int(longer(pair)[2]) >= 20)

    assert_drawn(deep, evenly(range(21)))


def longer(pair: tuple[tuple[str, ...], tuple[str, ...]]) -> tuple[str, ...]:
    return max(pair, key=lambda number: len(number[1]))
