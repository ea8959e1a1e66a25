"""An answer laid beside the truth: the edit that is shown is the one that the anatomy names."""

import random
import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import cache
from operator import ne

import pytest
from hypothesis import given, settings, strategies as st

from asyncbench.analysis.anatomy import edits as distances
from asyncbench.analysis.anatomy.alignment import Part, aligned
from asyncbench.analysis.anatomy.edits import MOST_PAIRS, fewest_edits
from asyncbench.analysis.anatomy.error import OF_ANSWERS, UNCLASSIFIED, anatomy
from tests.recorded import rows
from tests.rows import each_row
from tests.tiers import first_rows

OPS = {"same", "replaced", "missing", "extra", "swapped", "carry", "moved"}


def parts_of(expected, answer, *, answer_type="integer", task="int_add", operands=()):
    return aligned(expected, answer, answer_type=answer_type, task=task, operands=operands)


def shown(parts):
    """Return parts as one reads them: what is the same as it is, the rest with its sort."""
    return " ".join(
        read if op == "same" and true == read else f"{op}[{true}|{read}]" for op, true, read in parts
    )


# ── one of each ──────────────────────────────────────────────────────────────────────────────


@each_row(
    ("task", "operands", "expected", "answer", "seen"),
    [
        ("int_mul", ("523143", "3"), "1569429", "11569429", "1 extra[|1] 569429"),
        ("int_mul", ("523143", "3"), "1569429", "91569429", "extra[|9] 1569429"),
        ("int_mul", ("523143", "3"), "1569429", "569429", "missing[1|] 569429"),
        ("int_add", ("523143", "120321"), "643464", "634464", "6 swapped[43|34] 464"),
        ("int_add", ("523143", "120321"), "643464", "443664", "swapped[6|4] 43 swapped[4|6] 64"),
        ("int_add", ("523143", "120321"), "643464", "693464", "6 replaced[4|9] 3464"),
        ("int_add", ("523143", "120321"), "643464", "6434", "6434 missing[64|]"),
        ("int_add", ("523143", "120321"), "643464", "643000", "643 replaced[464|000]"),
        ("int_add", ("9996", "0"), "9996", "10000", "extra[|1] replaced[9996|0000]"),
        ("int_sub", ("29", "72"), "-43", "43", "missing[-|] 43"),
        ("int_sub", ("72", "29"), "43", "-43", "extra[|-] 43"),
        ("int_add", ("52168", "12057"), "64225", "64125", "64 carry[2|1] 25"),
        ("int_add", ("604", "396"), "1000", "900", "carry[1|] carry[0|9] 00"),
        ("int_add", ("604", "395"), "999", "1009", "carry[|1] carry[99|00] 9"),
        ("int_add", ("5768", "6957"), "12725", "12615", "12 carry[72|61] 5"),
        ("int_add", ("5768", "6957"), "12725", "1615", "carry[1|] carry[272|161] 5"),
        ("int_add", ("578", "694"), "1272", "111612", "1 carry[|11] carry[27|61] 2"),
        ("int_sub", ("9213", "3847"), "5366", "6634", "carry[5366|6634]"),
        ("int_add", ("523193", "120321"), "643514", "650514", "6 carry[4|5] replaced[3|0] 514"),
        ("int_add", ("5214", "1203"), "6417", "6418", "641 replaced[7|8]"),
        ("int_add", ("5214", "1203"), "6417", "7146", "swapped[6417|7146]"),
        ("int_mul", ("300", "214"), "64200", "6420", "6420 moved[0|]"),
        ("int_mul", ("5", "5"), "1234567890", "1345678290", "1 missing[2|] 345678 extra[|2] 90"),
        ("int_mul", ("5", "5"), "12345678", "21345687", "swapped[12|21] 3456 swapped[78|87]"),
        ("float_add", ("52.14", "12.03"), "64.17", "64.1700", "64.17 extra[|00]"),  # the form is wrong
        ("float_add", ("52.14", "12.03"), "64.17", "69.1700", "6 replaced[4|9] .17 same[|00]"),
        ("float_add", ("52.14", "12.03"), "64.17", "641.7000", "64 moved[.|] 1 moved[|.] 7 same[|000]"),
        ("float_add", ("52.14", "12.03"), "64.17", "64.7000", "64. missing[1|] 7 same[|000]"),
        ("float_add", ("52.14", "12.03"), "64.17", "65", "6 replaced[4|5] missing[.17|]"),
        ("float_add", ("52.14", "12.03"), "64.17", "964.17", "extra[|9] 64.17"),
        ("float_mul", ("52.14", "12.03"), "627.2442", "627.2400", "627.24 replaced[42|00]"),
        ("float_add", ("1.25", "1.75"), "3.0", "3.25", "3. replaced[0|2] extra[|5]"),
        ("float_mul", ("0.5", "0.1"), "0.05", "0.5", "0. moved[0|] 5"),
        ("float_add", ("0.1", "0.2"), "0.3", "0.30000000000000004", "0.3 same[|000000000000000] extra[|4]"),
    ],
)
def test_a_number_is_shown_by_the_edit_that_explains_it(task, operands, expected, answer, seen):
    answer_type = "decimal" if "." in expected else "integer"
    parts = parts_of(expected, answer, answer_type=answer_type, task=task, operands=operands)
    assert shown(parts) == seen


@pytest.mark.parametrize(
    ("answer_type", "expected", "answer", "seen"),
    [
        ("scientific", "1.2345e7", "1.2345e8", "1.2345 replaced[e7|e8]"),
        ("scientific", "1e5", "1e" + "9" * 5000, f"1 replaced[e5|e{'9' * 5000}]"),
        ("scientific", "1.2e7", "1.3E+07", "1. replaced[2|3] same[e7|E+07]"),
        ("scientific", "1.2345e7", "12.345e7", "1 moved[.|] 2 moved[|.] 345e7"),
        ("scientific", "1.2345e7", "1.2375e7", "1.23 replaced[4|7] 5e7"),
        ("fraction", "2/3", "3/2", "swapped[2|3] / swapped[3|2]"),
        ("fraction", "5/7", "5/14", "5/ extra[|1] replaced[7|4]"),
        ("fraction", "15/7", "14/7", "1 replaced[5|4] /7"),
        ("integer", "7", "7.0", "7 extra[|.0]"),
        ("text", "abcdef", "aBcdef", "a replaced[b|B] cdef"),
        ("text", "abcdef", "Xabcdef", "extra[|X] abcdef"),
        ("text", "abcdef", '"abcdef"', 'extra[|"] abcdef extra[|"]'),
        ("text", "abcdef", "The text is abcdef.", "extra[|The text is ] abcdef extra[|.]"),
        ("text", "abcdef", "fedcba", "swapped[abcdef|fedcba]"),
        ("text", "abc", "xyzw", "extra[|x] replaced[abc|yzw]"),
        ("text", "", "x", "extra[|x]"),
    ],
)
def test_so_are_fractions_exponents_and_texts(answer_type, expected, answer, seen):
    assert shown(parts_of(expected, answer, answer_type=answer_type, task="max", operands=("fedcb",))) == seen


@pytest.mark.parametrize(
    ("expected", "answer", "seen"),
    [("64.17", "64.1700", "64.17 same[|00]"), ("1/2", "0.5", "same[1/2|0.5]"), ("7", "007", "same[|00] 7")],
)
def test_in_a_right_answer_nothing_is_marked(expected, answer, seen):
    assert shown(aligned(expected, answer, answer_type="decimal", right=True)) == seen


# ── whatever is answered ─────────────────────────────────────────────────────────────────────

DIGITS = st.text("0123456789", min_size=1, max_size=30)
NUMBERS = st.builds(
    "{}{}{}".format, st.sampled_from(["", "-"]), DIGITS, st.just("") | DIGITS.map(".{}".format)
)
EXPONENTS = st.builds("{}e{}".format, NUMBERS, st.integers(-20, 20))
FRACTIONS = st.builds("{}/{}".format, DIGITS, DIGITS)
ANYTHING = st.text(max_size=40) | st.text("0159.-+e/ ,٣<>\u202e\ud800\0", max_size=30)
ANSWERS = NUMBERS | EXPONENTS | FRACTIONS | ANYTHING
TYPES = st.sampled_from(["integer", "decimal", "scientific", "fraction", "text"])
TASKS = st.sampled_from(["int_add", "float_sub", "mul", "max", ""])


def near(data, text):
    """Return a text with a few of its characters gone, doubled, changed or swapped."""
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, max(0, len(text) - 1)))
        before, one, two, after = text[:at], text[at : at + 1], text[at + 1 : at + 2], text[at + 2 :]
        other = data.draw(st.sampled_from("0179.-"))
        made = (before + two + after, before + one + one + two + after, before + two + one + after)
        text = data.draw(
            st.sampled_from([*made, before + other + two + after, before + other + one + two + after])
        )
    return text


def power(text):
    """The exponent that a text writes, and digits before it: e7, E+07, 0E7."""
    found = re.fullmatch(r"(\d*)[eE]([+-]?\d+)", text)
    return found and (found[1], int(found[2]))


@pytest.mark.long
@settings(max_examples=150)
@given(st.data(), TYPES, TASKS)
def test_the_parts_are_the_truth_and_the_answer_and_what_is_the_same_is_so(data, answer_type, task):
    expected = data.draw(ANSWERS)
    answer = data.draw(st.just(near(data, expected)) | ANSWERS)
    operands = data.draw(st.lists(NUMBERS, max_size=3))
    parts = aligned(expected, answer, answer_type=answer_type, task=task, operands=operands)
    assert "".join(true for _, true, _ in parts) == expected
    assert "".join(read for _, _, read in parts) == answer
    for op, true, read in parts:
        assert op in OPS
        assert true or read
        alike = true == read or not (true or read).strip("0.") or {true, read} == {"", "+"}
        assert op != "same" or alike or power(true) == power(read) is not None
        assert op != "missing" or not read
        assert op != "extra" or not true
        assert op != "replaced" or true != read
    if expected == answer:
        assert {op for op, _, _ in parts} <= {"same"}


def as_defined(true, read):
    """The optimal string alignment distance, as it is defined."""

    @cache
    def of(i, j):
        if not i or not j:
            return i + j
        found = min(of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (true[i - 1] != read[j - 1]))
        if i > 1 and j > 1 and (true[i - 1], true[i - 2]) == (read[j - 2], read[j - 1]):
            return min(found, of(i - 2, j - 2) + 1)
        return found

    return of(len(true), len(read))


@settings(max_examples=300)
@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_where_no_kind_tells_the_edits_are_the_fewest_there_are(true, read):
    edits = fewest_edits(true, read)
    ops = [op for op, _, _ in edits]
    assert len(ops) - ops.count("same") - ops.count("swapped") / 2 == as_defined(true, read)
    assert distances.distance(true, read) == as_defined(true, read)
    assert [i for _, i, _ in edits if i is not None] == [*range(len(true))]
    assert [j for _, _, j in edits if j is not None] == [*range(len(read))]
    assert all(true[i] == read[j] for op, i, j in edits if op == "same")


@pytest.mark.parametrize("answer_type", ["integer", "decimal", "scientific", "fraction", "text"])
@pytest.mark.parametrize("size", first_rows(1, [4_000, 400, 1_000_000]))
def test_of_long_texts_no_more_pairs_are_compared_than_fit(answer_type, size, monkeypatch):
    compared, costs = [0], distances._costs

    def counting(one, other, most):
        compared.append(max(len(one), len(other)) * (2 * most + 1))
        return costs(one, other, most)

    monkeypatch.setattr(distances, "_costs", counting)
    rng, half = random.Random(size), size // 2
    expected, other = ("".join(rng.choices("123456789", k=size)) for _ in range(2))
    dropped, added = expected[:half] + expected[half + 1 :], expected[:half] + "0" + expected[half:]
    for answer in (other, dropped, added, other[:9], ""):
        parts = aligned(expected, answer, answer_type=answer_type, task="int_mul", operands=("7", other))
        assert "".join(true for _, true, _ in parts) == expected
        assert "".join(read for _, _, read in parts) == answer
        if answer in (dropped, added):
            assert len(parts) == 3
            assert max(len(parts[1][1]), len(parts[1][2])) == 1
    assert max(compared) <= MOST_PAIRS


# ── recorded answers: what is shown agrees with what the anatomy says ────────────────────────


class Seen:
    """The parts of an alignment without its sign, as one looks at them."""

    def __init__(self, expected: str, answer: str, parts: list[Part]) -> None:
        self.expected, self.answer = Decimal(expected), Decimal(answer)
        self.sign = [part for part in parts if part[0] != "same" and not (part[1] + part[2]).strip("+-")]
        self.parts = [part for part in parts if part not in self.sign]
        self.marks = [part for part in self.parts if part[0] != "same"]
        self.ops = [op for op, _, _ in self.marks]
        numbers = [part for part in self.parts if (part[1] + part[2]).strip("+-.") and part[1]]
        self.at_first = numbers[0][0] != "same"
        self.at_last = numbers[-1][0] != "same"

    def places(self, column):
        """The powers of ten of the marked digits of the truth (1) or the answer (2)."""
        whole = "".join(part[column] for part in self.parts)
        left, found = len(whole.lstrip("-").partition(".")[0]), set()
        for part in self.parts:
            for character in part[column].lstrip("-"):
                left -= character != "."
                if part[0] != "same" and character != ".":
                    found.add(left)
        return found

    def differing(self):
        """The powers of ten at which truth and answer differ, worked out from their values."""
        truth, answer = (f"{abs(value):060.20f}".replace(".", "") for value in (self.expected, self.answer))
        return {38 - i for i, (one, other) in enumerate(zip(truth, answer, strict=True)) if one != other}


def single(op, digits=1):
    """One mark of so many digits, and nothing else."""
    return lambda seen: seen.ops == [op] and len("".join(seen.marks[0][1:]).replace(".", "")) == digits


def replaced(seen):
    op, true, read = seen.marks[0]
    written = (op, len(true), len(read)) in (("replaced", 1, 1), ("extra", 0, 1), ("missing", 1, 0))
    return len(seen.marks) == 1 and written and seen.differing() == seen.places(1) | seen.places(2)


def doubled(seen):
    place = seen.parts.index(seen.marks[0])
    return single("extra")(seen) and seen.parts[place - 1][2][-1] == seen.marks[0][2]


def swapped(seen, apart):
    true, read = ("".join(part[column] for part in seen.marks) for column in (1, 2))
    whole = "".join(part[1] for part in seen.parts)
    there = [place for place, (op, one) in enumerate(_characters(seen.parts)) if op == "swapped"]
    if {*seen.ops} != {"swapped"} or len(true) != 2:
        return False
    between = whole[there[0] + 1 : there[-1]].replace(".", "")
    return true == read[::-1] and bool(between) == apart


def _characters(parts):
    return [(op, character) for op, true, _ in parts for character in true]


def end_missing(seen, first):
    parts = [part for part in seen.parts if (part[1] + part[2]).strip("-.")]
    return (
        {*seen.ops} == {"missing"}
        and (parts[0] if first else parts[-1])[0] == "missing"
        and len(seen.marks) == 1
    )


def run(seen, first, last, *, several=False):
    sizes = [sum(len(part[column].replace(".", "")) for part in seen.marks) for column in (1, 2)]
    others = "".join(true for op, true, _ in seen.parts if op == "same")
    runs = len(
        re.findall(
            r"\d+", "".join("1" if op != "same" else "." for op, one in _characters(seen.parts) if one != ".")
        )
    )
    at_ends = several or (seen.at_first, seen.at_last) == (first, last)
    return sizes[0] == sizes[1] and at_ends and (runs > 1) >= several and others and "carry" not in seen.ops


def longer(seen, by):
    """Too few or too many digits between two right ends."""
    more = sum(len(read) - len(true) for _, true, read in seen.marks)
    return more * by > 0 and not seen.at_first and not seen.at_last


def carried(seen):
    """Digits off by a carry stand exactly where the values differ, each one off by one, or 9 and 0."""
    true, read = ("".join(part[column] for part in seen.marks).replace(".", "") for column in (1, 2))
    size = max(len(true), len(read))
    pairs = zip(true.rjust(size, "0"), read.rjust(size, "0"), strict=True)
    by_one = all((int(one) - int(other)) % 10 in (1, 9) for one, other in pairs)
    return {*seen.ops} == {"carry"} and by_one and seen.differing() == seen.places(1) | seen.places(2)


def one_column(seen):
    """One digit is replaced; it has the place of the error, and digits before it are off by a carry."""
    off = abs(abs(seen.expected) - abs(seen.answer)).normalize()
    wrong = [part for part in seen.marks if part[0] != "carry"]
    places = seen.places(1) | seen.places(2)
    return (
        len(wrong) == 1
        and seen.marks[-1] == wrong[0]
        and min(places) == off.adjusted()
        and seen.differing() == places
    )


def rounded(seen):
    """Behind the first digit that changed there are only zeros, or digits that rounding up changed."""
    truth, answer = abs(seen.expected), abs(seen.answer)
    units = [Decimal(10) ** place for place in range(-20, 20)]
    values = {
        (truth / unit).to_integral_value(how) * unit for unit in units for how in (ROUND_DOWN, ROUND_HALF_UP)
    }
    after = seen.parts[seen.parts.index(seen.marks[0]) + 1 :]
    right = "".join(read for op, _, read in after if op == "same")
    return answer in values and not right.strip("0.") and seen.differing() == seen.places(1) | seen.places(2)


AGREES = {
    "sign": lambda seen: len(seen.sign) == 1 and not seen.marks,
    "point_moved": lambda seen: {*seen.ops} == {"moved"},
    "dropped_carry": carried,
    "needless_carry": carried,
    "carries_wrong": carried,
    "carries_ignored": lambda seen: {*seen.ops} == {"carry"},
    "smaller_from_larger": lambda seen: {*seen.ops} == {"carry"},
    "off_by_one": one_column,
    "column_wrong": one_column,
    "rounded": rounded,
    "leading_missing": lambda seen: end_missing(seen, first=True),
    "trailing_missing": lambda seen: end_missing(seen, first=False),
    "neighbours_swapped": lambda seen: swapped(seen, apart=False),
    "two_swapped": lambda seen: swapped(seen, apart=True),
    "one_doubled": doubled,
    "one_added": single("extra"),
    "one_dropped": single("missing"),
    "one_replaced": replaced,
    "first_digits_wrong": lambda seen: run(seen, first=True, last=False),
    "last_digits_wrong": lambda seen: run(seen, first=False, last=True),
    "middle_digits_wrong": lambda seen: run(seen, first=False, last=False),
    "scattered_digits_wrong": lambda seen: run(seen, first=False, last=False, several=True),
    "digits_missing": lambda seen: longer(seen, by=-1),
    "digits_extra": lambda seen: longer(seen, by=1),
}
# No edit made these, or none that is told: an operand, another operation, a number that is far off.
NO_EDIT = {
    "operand_echoed",
    "other_operation",
    "operand_miscopied",
    "misaligned",
    "complement",
    "grouped_digits",
}
NO_EDIT |= {"estimate", "wrong_magnitude", UNCLASSIFIED}


@pytest.fixture(scope="module")
def recorded(golden):
    """The recorded wrong answers of sums and differences: their kind, and what `aligned` is given."""
    return [
        (
            anatomy(row["correct"], row["parsed"], row["raw_response"], **about).kind,
            (row["correct"], row["parsed"]),
            about,
        )
        for row in rows(golden)
        if row["classification"] == "Deviate" and row["variant"].endswith(("add", "sub"))
        for whole in (row["variant"].startswith("int"),)
        for about in (
            {
                "answer_type": "integer" if whole else "decimal",
                "task": row["variant"],
                "operands": (row["lhs"], row["rhs"]),
            },
        )
    ]


def agreeing(recorded, align):
    """How many alignments agree with the kind of their error, and those that do not."""
    of_kinds = [case for case in recorded if case[0] in AGREES]
    wrong = [
        (kind, shown(parts))
        for kind, texts, about in of_kinds
        for parts in (align(*texts, **about),)
        if not AGREES[kind](Seen(texts[0], texts[1], parts))
    ]
    return len(of_kinds) - len(wrong), wrong


def test_the_alignment_of_every_recorded_error_agrees_with_its_kind(recorded):
    assert len(recorded) == 459
    assert {kind for kind, _, _ in recorded} <= AGREES.keys() | NO_EDIT
    agreed, wrong = agreeing(recorded, aligned)
    assert wrong == []
    assert agreed == 399


def by_position(expected, answer, **_):
    """What people saw before: digits that differ, laid to the end at which fewer do."""
    size = max(len(expected), len(answer))
    laid = [(expected.ljust(size), answer.ljust(size)), (expected.rjust(size), answer.rjust(size))]
    true, read = min(laid, key=lambda two: sum(map(ne, *two)))
    pairs = zip(true, read, strict=True)
    return [("same" if one == other else "replaced", one.strip(), other.strip()) for one, other in pairs]


def test_digits_that_are_marked_by_their_position_do_not_agree(recorded):
    """So the predicates can fail."""
    agreed, wrong = agreeing(recorded, by_position)
    assert agreed < 250
    assert {"one_added", "one_dropped", "digits_extra", "dropped_carry"} <= {kind for kind, _ in wrong}


def test_every_kind_of_a_number_has_its_edit_or_none():
    of_texts = {"same_value", "case", "reciprocal", "exponent_off", "float_noise", "reversed"}
    of_texts |= {"numerator_wrong", "denominator_wrong", "other_words"}
    assert AGREES.keys() | NO_EDIT | of_texts >= OF_ANSWERS.keys()
