"""The table of tasks, the paper's own examples, and what preparation promises."""

import random
from collections import Counter
from fractions import Fraction

import pytest

from asyncbench.suites.numbers import FORMS, Parts, parts
from asyncbench.suites.nupa.generation import PROFILES, draft_nupa
from asyncbench.suites.nupa.operands import (
    Operands,
    below_of,
    choose_by_operand,
    is_half,
    is_less,
    pairs_of,
    uniform,
)
from asyncbench.suites.nupa.tasks import TASKS, chosen, task_of
from tests.rows import each_row
from tests.suites.nupa.arithmetic import written

# The paper, A.1.3, as columns: task, variant, representation, operands, answer.
EXAMPLES = """
add - integer 744 543 1287
add - float 93.81 9.976 103.786
add - fraction 3/8 2/5 31/40
add - scientific 9.92e16 9.731e18 9.8302e18
sub - integer 744 543 201
sub - float 93.81 9.976 83.834
sub - fraction 2/5 3/8 1/40
sub - scientific 9.731e38 9.92e36 9.6318e38
multiply hard integer 968 8 7744
multiply hard float 8.4 9.555 80.262
multiply hard fraction 8/7 5/2 20/7
multiply hard scientific 9.92e16 9.731e38 9.653152e55
truediv - integer 744 543 248/181
truediv - fraction 3/8 2/5 15/16
floordiv - integer 845 152 5
mod - integer 845 152 85
max - integer 50404 97871 97871
max - float 44.418 65.669 65.669
max - fraction 3/5 3/8 3/5
max - scientific 8.15e64 1.063e73 1.063e73
digit_max - integer 50194 14283 54294
digit_max - float 35.905 8.4 38.905
digit_add - integer 50404 97871 47275
digit_add - float 44.418 65.669 9.077
digit_add - integer 12345 34567 46802
digit_add - integer 50404 57871 7275
get_digit - integer 50404 4 4
get_digit - float 44.418 3 1
length - integer 50404 - 5
length - float 262.534 - 6
count - integer 27422 2 3
to_float - fraction 9/5 - 1.8
to_float - scientific 8.538e2 - 853.8
to_scient - integer 50400 - 5.04e4
to_scient - float 262.534 - 2.62534e2
sig - integer 50194 3 5.02e4
sig - float 65.669 2 6.6e1
"""


@each_row("line", EXAMPLES.strip().splitlines())
def test_the_examples_of_the_paper_are_answered_as_there(line):
    task, variant, representation, a, b, answer = line.split()
    operands = (a,) if b == "-" else (a, b)

    made = draft_nupa(task_of(task, variant.strip("-"), representation), operands)

    assert made.expected == answer
    assert made.operands == operands
    assert made.question.endswith(" =")


def test_there_are_53_tasks_44_of_them_released_and_41_in_the_paper():
    counted = Counter(name for task in TASKS.values() for name in task.sets)

    assert counted == {"full": 53, "released": 44, "paper41": 41}
    assert sum(len(task.lengths) for task in TASKS.values() if "released" in task.sets) == 2390
    assert len({task.task for task in TASKS.values()}) == 17


def test_the_paper_has_16_12_7_and_6_tasks_of_the_four_representations():
    of = Counter(task.representation for task in TASKS.values() if "paper41" in task.sets)

    assert of == {"integer": 16, "float": 12, "fraction": 7, "scientific": 6}


def test_what_was_not_released_is_the_mirror_of_max():
    left_out = Counter(task.task for task in TASKS.values() if "released" not in task.sets)

    assert left_out == {"min": 7, "digit_min": 2}


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("add_Integer_Integer_Integer", range(3, 21)),
        ("add_Fraction_Fraction_Fraction", range(1, 21)),
        ("max_Integer_Integer_Integer", range(5, 101)),
        ("max_Fraction_Fraction_Fraction", range(1, 21)),
        ("max_hard_Float_Float_Float", range(3, 101)),
        ("to_float_Fraction_none_Float", range(1, 21)),
        ("to_float_ScientificNotation_none_Float", range(3, 101)),
        ("sig_Integer_int_ScientificNotation", range(5, 101)),
    ],
)
def test_a_task_is_asked_at_the_published_lengths(name, lengths):
    assert TASKS[name].lengths == lengths
    assert TASKS[name].length_class == lengths[-1]


def test_a_task_that_there_is_not_is_named():
    with pytest.raises(ValueError, match=r"nupa has no task add hard integer\. Known: add_Integer"):
        task_of("add", "hard", "integer")


def test_operands_of_another_task_are_refused():
    with pytest.raises(ValueError, match="takes 2 operands, not 1"):
        draft_nupa(task_of("add", "", "integer"), ("5",))
    with pytest.raises(ValueError, match=r"'5\.0' is not written as integer"):
        draft_nupa(task_of("add", "", "integer"), ("5.0", "3"))


def test_tasks_are_chosen_by_set_name_representation_and_variant():
    asked = {"set": "released", "tasks": ("add", "min"), "representations": ("fraction",)}
    names = [task.name for task in chosen({**asked, "variants": ("plain", "easy")})]

    assert names == ["add_Fraction_Fraction_Fraction", "add_easy_Fraction_Fraction_Fraction"]
    asked = {"set": "full", "tasks": ("min",), "representations": ("integer",), "variants": ("hard",)}
    assert [task.name for task in chosen(asked)] == ["min_hard_Integer_Integer_Integer"]


# ── what preparation promises ────────────────────────────────────────────────────────────────


def prepared(name: str, profile: str, pairs: int = 40) -> list[Operands]:
    """Return operands of a task, of all its lengths."""
    task, below = TASKS[name], below_of(random.Random(f"{name}/{profile}"))
    drawn = pairs_of(task.pool, task.representation)
    fixed = profile == "fixed"
    prepare, choose = (
        (task.prepare, uniform(below)) if fixed else (task.prepare_as_published, choose_by_operand)
    )
    lengths = task.lengths[:: max(1, len(task.lengths) // 8)]
    found = [prepare(*drawn(below, length), choose) for length in lengths for _ in range(pairs)]
    assert len(found) >= 8 * pairs
    return found


@each_row("profile", PROFILES)
@each_row("name", TASKS)
def test_whatever_is_asked_is_written_canonically_and_has_an_answer(name, profile):
    task = TASKS[name]
    for operands in prepared(name, profile, pairs=8):
        kinds = task.representations_of(len(operands))
        for number, kind in zip(operands, kinds, strict=True):
            text = FORMS[kind].written % number
            assert parts(text, kind) == number
            assert text == written(Fraction(text), kind)
        assert all(one.isdigit() for one in task.truth(operands))
        assert len(operands) == (1 if task.second is None else 2)


def value(number: Parts, kind: str) -> Fraction:
    return Fraction(FORMS[kind].written % number)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.task == "sub"])
def test_no_difference_is_negative(name, profile):
    kind = TASKS[name].representation
    for a, b in prepared(name, profile):
        difference = value(a, kind) - value(b, kind)
        assert difference > 1 if kind == "scientific" else difference >= 0


@pytest.mark.parametrize("profile", PROFILES)
def test_exponents_of_sums_are_near_and_of_differences_descend(profile):
    name = "{}_ScientificNotation_ScientificNotation_ScientificNotation"
    for a, b in prepared(name.format("add"), profile):
        assert abs(int(a[2]) - int(b[2])) <= 5
        assert max(int(a[2]), int(b[2])) <= 98
    for a, b in prepared(name.format("sub"), profile):
        assert 1 <= int(a[2]) - int(b[2]) <= 6  # 6: a difference that was too small raised the first one


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.variant == "easy"])
def test_the_shorter_operand_of_an_easy_task_has_three_digits_at_most(name):
    task = TASKS[name]
    for operands in prepared(name, "fixed"):
        shortest = min(task.length((number,) * 2) for number in operands)
        assert shortest <= 3
        if task.task == "multiply" and task.representation == "float":
            assert min(len(number[0]) for number in operands) <= 3


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.task in ("floordiv", "mod")])
def test_a_larger_number_is_divided_by_one_that_is_not_zero(name):
    for a, b in prepared(name, "fixed"):
        assert int(a[0]) >= int(b[0]) >= 1 or int(a[0]) == 0


def test_a_remainder_leaves_three_tenths_of_the_digits_to_divide():
    for a, b in prepared("mod_Integer_Integer_Integer", "fixed"):
        assert len(b[0]) <= 7 * len(a[0]) // 10 + 1


def test_fractions_are_compared_below_one():
    for operands in prepared("max_Fraction_Fraction_Fraction", "fixed"):
        assert all(Fraction(int(a), int(b)) <= 1 for a, b in operands)


def test_positions_stand_in_the_number_and_significant_digits_are_two_or_more():
    for number, position in prepared("get_digit_Float_int_int", "fixed"):
        assert 0 <= int(position[0]) < len("".join(number))
    for number, kept in prepared("sig_Integer_int_ScientificNotation", "fixed"):
        assert 2 <= int(kept[0]) <= len(number[0])


@pytest.mark.parametrize("kind", ["Integer", "Float"])
def test_no_rounding_meets_a_tie(kind):
    for number, kept in prepared(f"sig_{kind}_int_ScientificNotation", "fixed", pairs=400):
        assert not is_half("".join(number)[int(kept[0]) :])


@pytest.mark.parametrize(
    ("a", "b", "fixed", "published"),
    [
        pytest.param("99961", "3", "1.00e5", "1.0000e4", id="a-carry-to-a-new-digit"),
        pytest.param("12351", "3", "1.24e4", "1.23e4", id="a-five-is-cut-off"),
        pytest.param("50000", "2", "5.0e4", "5.00e4", id="zeros-alone"),
        pytest.param("12361", "3", "1.24e4", "1.24e4", id="right-in-both"),
        pytest.param("12345", "5", "1.2345e4", "1.2345e4", id="all-digits"),
    ],
)
def test_rounding_is_corrected_where_the_published_code_errs(a, b, fixed, published):
    task = task_of("sig", "", "integer")

    assert draft_nupa(task, (a, b)).expected == fixed
    assert draft_nupa(task, (a, b), profile="reference").expected == published


@pytest.mark.parametrize("kind", ["integer", "float", "fraction", "scientific"])
def test_numbers_are_ordered_by_value(kind):
    below = below_of(random.Random(kind))
    for length in (3, 4, 12):
        for pool in ("add", "compare") if kind == "fraction" else ("compare", "compare_harder"):
            for _ in range(60):
                a, b = pairs_of(pool, kind)(below, length)
                exact = value(a, kind) < value(b, kind)
                assert is_less(a, b, kind) == exact
