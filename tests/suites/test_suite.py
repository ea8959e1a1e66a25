"""Parameters of a suite: what may be written, and what is refused with its place and its rule."""

import pytest

from asyncbench.errors import ConfigError
from asyncbench.suites.suite import one_of, some_of, whole_number, whole_numbers
from asyncbench.suites.table import SUITES

PLACE = "overnight.yaml, problems[1]"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        pytest.param("2-10", (2, 3, 4, 5, 6, 7, 8, 9, 10), id="a-range"),
        pytest.param("2,5,8", (2, 5, 8), id="a-list-as-text"),
        pytest.param(" 2 - 4 , 8", (2, 3, 4, 8), id="both-with-spaces"),
        pytest.param([8, 2, 5], (2, 5, 8), id="a-list-comes-out-ascending"),
        pytest.param(["2-3", 7], (2, 3, 7), id="a-list-with-a-range"),
        pytest.param("3,3,2-3", (2, 3), id="each-once"),
        pytest.param(5, (5,), id="a-number"),
        pytest.param("5", (5,), id="a-number-as-text"),
        pytest.param((2, 5, 8), (2, 5, 8), id="what-it-returned"),
    ],
)
def test_whole_numbers_are_written_as_ranges_lists_or_one_number(written, meant):
    assert whole_numbers(1, 1000)(written) == meant


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        pytest.param("10-2", "write 2-10", id="backwards"),
        pytest.param("0-3", "at least 1", id="below"),
        pytest.param([5, 1001], "at most 1,000", id="above"),
        pytest.param("2-", "not a whole number", id="half-a-range"),
        pytest.param("", "not a whole number", id="nothing"),
        pytest.param("2,,3", "not a whole number", id="a-gap"),
        pytest.param([], "at least one", id="an-empty-list"),
        pytest.param(2.5, "not a whole number", id="a-fraction"),
        pytest.param(True, "not a whole number", id="a-truth-value"),
        pytest.param(None, "not a whole number", id="null"),
        pytest.param({2: 3}, "not a whole number", id="a-mapping"),
    ],
)
def test_whole_numbers_refuse_what_cannot_be_meant(written, rule):
    with pytest.raises(ValueError, match=rule):
        whole_numbers(1, 1000)(written)


def test_a_whole_number_stays_within_its_bounds():
    parse = whole_number(2, 5)

    assert [parse(n) for n in (2, "5")] == [2, 5]
    for outside in (1, "6"):
        with pytest.raises(ValueError, match="too"):
            parse(outside)


@pytest.mark.parametrize("written", ["b,a", ["a", "b", "a"], " a, b ", ("b", "a")])
def test_names_come_out_once_in_the_known_order(written):
    assert some_of(["a", "b", "c"])(written) == ("a", "b")


@pytest.mark.parametrize("written", ["a,d", ["a", 1], "", [], None])
def test_unknown_names_are_refused(written):
    with pytest.raises(ValueError, match=r"Known: a, b|at least one"):
        some_of(["a", "b"])(written)


def test_a_choice_of_one_may_be_left_open():
    parse = one_of(["fast", "slow"])

    assert (parse("fast"), parse(None)) == ("fast", None)
    with pytest.raises(ValueError, match="Known: fast, slow"):
        parse("quick")


def test_parameters_that_are_not_given_have_their_defaults():
    values = SUITES["llm_arithmetic"].parsed({"trials": 3}, place=PLACE)

    assert values["trials"] == 3
    assert values["depths"] == (2, 3, 4, 5, 6, 7, 8, 9, 10)
    assert values["variants"] == (
        *("int_add", "int_sub", "int_mul", "int_div"),
        *("float_add", "float_sub", "float_mul", "float_div"),
    )


@pytest.mark.parametrize("suite", SUITES)
def test_parsed_parameters_may_be_given_again(suite):
    parsed = SUITES[suite].parsed({}, place=PLACE)

    assert SUITES[suite].parsed(parsed, place=PLACE) == parsed


@pytest.mark.parametrize(
    ("suite", "given", "message"),
    [
        pytest.param("llm_arithmetic", {"depth": 2}, "no parameter 'depth'. Known: depths", id="unknown"),
        pytest.param("custom", {"trials": 2}, "no parameter 'trials'. Known: none", id="none-at-all"),
        pytest.param("llm_arithmetic", {"depths": "9-2"}, "depths: '9-2' has a range", id="a-bad-value"),
        pytest.param("llm_arithmetic", {"variants": "int_pow"}, "Known: int_add, int_sub", id="a-bad-name"),
        pytest.param("llm_arithmetic", {"trials": 0}, "trials: 0 is too small", id="nothing-to-ask"),
        pytest.param(
            "integer_addition",
            {"min_digits": 9, "max_digits": 4},
            "min_digits (9) is greater than max_digits (4)",
            id="bounds-crossed",
        ),
        pytest.param(
            "string_reversal",
            {"min_length": 31},
            "min_length (31) is greater than max",
            id="above-the-default",
        ),
        pytest.param("integer_addition", {"max_digits": 4300}, "at most 4,299", id="sums-no-grader-reads"),
        pytest.param("integer_addition", {"preset": "paper"}, "Known: upstream-code", id="no-such-preset"),
        pytest.param(
            "integer_addition",
            {"preset": "upstream-code", "max_digits": 20},
            "max_digits is 20, but preset 'upstream-code' sets 30",
            id="against-the-preset",
        ),
    ],
)
def test_a_slip_is_named_with_its_place_and_the_rule(suite, given, message):
    with pytest.raises(ConfigError) as caught:
        SUITES[suite].parsed(given, place=PLACE)

    assert str(caught.value).startswith(PLACE)
    assert message in str(caught.value)


def test_a_preset_sets_its_parameters_and_is_kept():
    suite = SUITES["integer_addition"]

    values = suite.parsed({"preset": "upstream-code"}, place=PLACE)

    assert values == {"tries": 100, "min_digits": 3, "max_digits": 30, "preset": "upstream-code"}
    assert suite.parsed({"preset": "upstream-code", "min_digits": "3"}, place=PLACE) == values
