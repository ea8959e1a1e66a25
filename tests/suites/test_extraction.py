"""Reading numbers out of replies: the rules, one line each, and that no reply breaks or stalls them."""

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from asyncbench.suites.llm_arithmetic import (
    bare_number,
    drop_fractions,
    drop_thinking,
    last_box,
    layered_number,
    trailing_number,
)
from tests.rows import each_row

LONG = 1_000_000  # characters: what reads them again and again would take hours, on any machine
DEEP = 250_000

LAYERED = {
    "bold with commas": ("The sum is **11,026,217,783**.", "11026217783"),
    "last box": (r"\boxed{1} then \boxed{140}", "140"),
    "a box beats later text": (r"\boxed{138} Actually wait, 999", "138"),
    "latex commas": (r"\boxed{540{,}760{,}136}", "540760136"),
    "first number in the box": (r"\boxed{x_1 = 5}", "1"),
    "first term in the box": (r"\boxed{2 + 3 = 5}", "2"),
    "a space parts numbers": (r"\boxed{12 345}", "12"),
    "a thin latex space does not": (r"\boxed{12\,345}", "12345"),
    "braces round an exponent, boxed": (r"\boxed{3 \times 10^{5}}", "3"),
    "braces round an exponent": ("3 × 10^{5}", "5"),
    "an empty box": (r"\boxed{} 7", "7"),
    "a box without a number": (r"\boxed{none} of 3 or 4", "4"),
    "earlier boxes are not asked again": (r"\boxed{1} \boxed{none} 4", "4"),
    "the last number wins": ("300 (rounded to 2 decimals)", "2"),
    "even of a list": ("300\n\n1. step", "1"),
    "minus sign U+2212": ("−5", "5"),
    "en dash": ("– 5", "5"),
    "minus and space": ("- 5", "5"),
    "a hyphen is a sign": ("5-3", "-3"),
    "a date": ("2024-05-06", "-6"),
    "spaces do not group": ("1 234 567", "567"),
    "narrow spaces do not group": ("1\u202f234", "234"),
    "apostrophes do not group": ("1'234", "234"),
    "underscores do not group": ("1_000", "0"),
    "dots do not group": ("1.234.567", ".567"),
    "uncertainty": ("12.5(4)", "12.5"),
    "parentheses apart": ("12 (3)", "3"),
    "two parentheses": ("12(3)(4)", "4"),
    "hexadecimal": ("0x1F", "1"),
    "an unknown": ("NaN", None),
    "infinity": ("Infinity", None),
    "no digits": ("no digits", None),
    "nothing": ("", None),
    "a superscript power": ("3.41×10¹⁷", "3.41e17"),
    "a negative superscript power": ("3.41 x 10 ⁻³", "3.41e-3"),
    "a caret power": ("5 * 10 ^ 8", "5e8"),
    "a latex power": (r"2.5 \times 10^4", "2.5e4"),
    "a dotted power": (r"2.5 \cdot 10^4", "2.5e4"),
    "commas in the mantissa": ("1,234 × 10^3", "1234e3"),
    "a product needs a power": ("12 × 10 = 7", "7"),
    "powers do not chain": ("5×10^2×10^3", "3"),
    "superscript and caret powers chain": ("5×10²×10^3", "3"),
    "a latex command ends at a letter": (r"2\timesx 10^4", "4"),
    "lone superscripts are digits": ("10²", "102"),
    "a unit is a number": ("7 m²", "2"),
    "stars join": ("12*34", "1234"),
    "money": ("-$5", "-5"),
    "math delimiters part": (r"1\(2\)", "2"),
    "groups of three": ("1,234,567", "1234567"),
    "no groups of four": ("1,2345", "2345"),
    "indian groups": ("1,00,000", "0"),
    "a leading dot": ("-.5", "-.5"),
    "a trailing dot": ("7.", "7"),
    "full-width digits": ("１２．５ is １２", "12"),
    "arabic digits": ("-٢٤", "-24"),
    "an exponent beyond all limits": ("8 1e9999999999999999999", "8"),
    "the same in a box": (r"\boxed{1e9999999999999999999 8} 9", "8"),
    "a closed think block": ("<think>9</think>8", "8"),
    "neighbours of a think block join": ("1<think>x</think>2", "12"),
    "a think block without an end": ("7 <think>8 9", "7"),
    "a tag that appears when a block goes": ("7<thi<think></think>nk>8", "7"),
    "a lone end of thinking": ("7 </think> 8", "8"),
    "tags in any case": ("<THINK>7</Think>8", "8"),
    "another tag": ("<thinking>7", "7"),
    "a fraction": (r"\frac{1}{2} \approx 0.5", "0.5"),
    "only a fraction": (r"\dfrac {1}{2}", None),
    "a fraction of fractions": (r"5 \frac{\frac{1}{2}}{3}", "5"),
    "a fraction with a gap": (r"\frac{1} {2}", "2"),
    "inside a fraction with a gap": (r"\frac{5 \frac{1}{2}} {x}", "5"),
    "a short fraction": (r"\frac12", "12"),
    "a fraction in a box": (r"\boxed{\frac{1}{2}}", "1"),
    "nested boxes": (r"\boxed{1 \boxed{2} 3}", "2"),
    "an unclosed box": (r"\boxed{1 and 2", "2"),
    "an unclosed box after a good one": (r"\boxed{1} \boxed{2", "1"),
    "a box before its brace": (r"\boxed 5 {6} 7", "6"),
}


@each_row(("text", "number"), LAYERED.values())
def test_the_layered_reading(text, number):
    answered, _ = drop_thinking(text)

    assert layered_number(answered) == (None if number is None else Decimal(number))


TRAILING = {
    "a number": ("300", "300"),
    "a trailing dot": ("300.", "300."),
    "negative": ("-72.51", "-72.51"),
    "after words": ("answer: 300 \n", "300"),
    "bold": ("**300**", None),
    "boxed": (r"\boxed{300}", None),
    "a word after it": ("300 apples", None),
    "brackets": ("[300]", None),
    "percent": ("300%", None),
    "a trailing comma": ("12,345,", None),
    "commas": ("12,345", "345"),
    "a leading dot": (".5", "5"),
    "a plus": ("+5", "5"),
    "an exponent": ("1e5", "5"),
    "many dots": ("1.234.567", "234.567"),
    "dots in a row": ("1..5", "5"),
    "two dots at the end": ("5..", None),
    "only a dot": (".", None),
    "a hyphen": ("5-3", "-3"),
    "two signs": ("--5", "-5"),
    "a sign after a dot": ("1.-5", "-5"),
    "an unclosed think block": ("<think>... 5", "5"),
    "arabic digits": ("-٢.٤", "-2.4"),
    "nothing": ("", None),
}


@pytest.mark.parametrize(("text", "number"), TRAILING.values(), ids=TRAILING)
def test_the_trailing_reading(text, number):
    assert trailing_number(text) == (None if number is None else Decimal(number))


@pytest.mark.parametrize("text", ["5", "-5", "+5", "007", "5.25", " 5\n", "\u00a05.0"])
def test_a_bare_number_is_read_alike_in_all_three_ways(text):
    number = Decimal(text.strip())

    assert (bare_number(text), trailing_number(text), layered_number(text)) == (number,) * 3


@pytest.mark.parametrize(
    "text", ["", "5.", ".5", "1e5", "1,234", "٥", "5 5", "--5", "$5", "5%", "**5**", "−5"]
)
def test_anything_else_is_not_bare(text):
    assert bare_number(text) is None


@given(st.from_regex(r"\s{0,2}[+-]?[0-9]{1,40}(\.[0-9]{1,40})?\s{0,2}", fullmatch=True))
def test_whatever_is_bare_is_read_alike_in_all_three_ways(text):
    number = bare_number(text)

    assert number is not None
    assert str(trailing_number(text)) == str(layered_number(text)) == str(number)


@given(st.integers())
def test_any_integer_is_read_back_whatever_its_length(n):
    assert layered_number(f"So the sum is {n:,}.") == n


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=4), st.sampled_from(["{}", "**{}**", "${}$"])
)
def test_a_boxed_decimal_is_read_back(number, decoration):
    assert layered_number(rf"\boxed{{{decoration.format(number)}}} as 1 of 2 ways") == number


def test_whether_thinking_was_cut_off_is_told():
    assert drop_thinking("<think>1</think>2") == ("2", False)
    assert drop_thinking("2<think>1") == ("2", True)
    assert drop_thinking("1 < 2") == ("1 < 2", False)


def test_text_without_boxes_or_fractions_stays():
    assert last_box("{1}") is None
    assert drop_fractions("a {b} c") == "a {b} c"


CHARACTERS = "0159٣１²⁻+-−.,eExX×·*^(){}[]$`\\_ \n\u00a0\u2028"
PIECES = (
    r"\boxed \boxed{ \frac \dfrac{ \times \, {,} <think> </think> <thi nk> 10 ×10^ e400 1e9999999999999999999"
)
NASTY = st.lists(st.sampled_from([*CHARACTERS, *PIECES.split()]), max_size=40).map("".join)


@given(NASTY)
def test_no_text_breaks_a_reading(text):
    answered, _ = drop_thinking(text)
    for number in (bare_number(text), trailing_number(text), layered_number(answered)):
        assert number is None or number.is_finite()


@given(NASTY)
def test_a_box_is_a_part_of_its_text_with_its_braces_in_balance(text):
    box = last_box(text)

    assert box is None or (f"{{{box}}}" in text and box.count("{") == box.count("}"))


HOSTILE = {
    "digits": ("7", ""),
    "digits and a word": ("7", " apples"),
    "dotted digits": ("7.", ""),
    "dots": (".", ""),
    "signs": ("+-", ""),
    "commas": (",111", ""),
    "bad commas": ("1,1111", ""),
    "numbers": ("1 ", ""),
    "exponents": ("1e99999999999999999999 ", ""),
    "an exponent of digits": ("9", "e1"),
    "huge powers": ("1e1000000 ", ""),
    "powers of ten": ("1×10", "²"),
    "caret powers": ("5×10^5", ""),
    "caret powers without an end": ("1×10^", ""),
    "superscripts": ("²", ""),
    "a digit, then spaces": (" ", "×"),
    "parentheses": ("(1)", ""),
    "open parentheses": ("1(1", ""),
    "open braces": ("{", ""),
    "closing braces": ("}", ""),
    "boxes that never close": (r"\boxed{", ""),
    "boxes without braces": (r"\boxed ", ""),
    "empty boxes": (r"\boxed{}", ""),
    "fractions that never close": (r"\frac{", ""),
    "half fractions": (r"\frac{1}{", ""),
    "fractions": (r"\frac{1}{2}", ""),
    "think blocks that never close": ("<think>", ""),
    "think blocks": ("<think>1</think>", ""),
    "ends of thinking": ("</think>", ""),
    "half tags": ("<think", ""),
    "backslashes": ("\\", ""),
    "stars": ("*1", ""),
    "spaces": (" ", "."),
}


@pytest.mark.long
@pytest.mark.parametrize(("repeated", "end"), HOSTILE.values(), ids=HOSTILE)
def test_no_reply_takes_long_to_read(repeated, end):
    text = "1" + (repeated * LONG)[:LONG] + end

    answered, _ = drop_thinking(text)
    numbers = bare_number(text), trailing_number(text), layered_number(answered)

    assert all(number is None or number.is_finite() for number in numbers)


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "box"),
    [
        pytest.param("{" * DEEP + "}" * DEEP, None, id="braces"),
        pytest.param(r"\boxed{" * DEEP + "7" + "}" * DEEP, "7", id="boxes"),
        pytest.param(r"\frac{" * DEEP + "7" + "}{8}" * DEEP, None, id="fractions"),
    ],
)
def test_depth_of_nesting_has_no_limit(text, box):
    assert last_box(text) == box
    assert layered_number(text) == (None if box is None else 7)
