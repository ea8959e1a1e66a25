"""The 53 tasks of NUPA, in the order of the paper's sections, and the words of their questions (A.2 there).

44 of them are in the published test set (`released`), 41 in the paper (`paper41`); `full` is all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from operator import ge, le
from typing import NamedTuple, cast

from asyncbench.suites.numbers import FORMS, Parts, length_of
from asyncbench.suites.nupa import operands as prepared, truths
from asyncbench.suites.nupa.operands import Operands, Prepare
from asyncbench.suites.nupa.truths import Truth
from asyncbench.suites.suite import Kind

SETS = ("released", "full", "paper41")
REPRESENTATIONS = ("integer", "float", "fraction", "scientific")
VARIANTS: Mapping[str, str] = {"plain": "", "easy": "easy", "hard": "hard"}  # as chosen → as stored
PUBLISHED_NAMES: Mapping[str, str] = {
    "integer": "Integer",
    "float": "Float",
    "fraction": "Fraction",
    "scientific": "ScientificNotation",
    "int": "int",
    "none": "none",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NupaTask:
    """One of the tasks. `int` is a short whole number that counts nothing towards a problem's length."""

    name: str  # what the published code calls it: add_easy_Fraction_Fraction_Fraction
    task: str
    variant: str = ""
    representation: str  # of the first operand
    second: str | None  # of the second operand, or int; None: there is none
    answer: str  # a representation, or int
    answer_type: str  # the column: integer, decimal, fraction or scientific
    pool: str  # add, compare or compare_harder: how pairs are drawn
    lengths: range  # that are drawn
    sets: frozenset[str]
    prepare: Prepare
    prepare_as_published: Prepare  # where profile `reference` prepares otherwise; else the same
    truth: Truth
    truth_as_published: Truth  # where profile `reference` has other answers; else the same

    @property
    def kind(self) -> Kind:
        """The columns of a problem that name it."""
        return self.task, self.variant, self.representation

    @property
    def length_class(self) -> int:
        """Up to how many digits it asks, 20 or 100; ranges of lengths go by it."""
        return 20 if self.pool == "add" else 100

    @property
    def relabels(self) -> bool:
        """Return whether preparation changes lengths: only that of `to_float` does, of fractions."""
        return (self.task, self.representation) == ("to_float", "fraction")

    def representations_of(self, operands: int) -> tuple[str, ...]:
        """Return the representations of its first `operands` operands."""
        second = "integer" if self.second == "int" else self.second
        return (self.representation, second or self.representation)[:operands]

    def length(self, operands: Operands) -> int:
        """Return how long a problem is: its longest number as shown, in digits."""
        first = length_of(operands[0], self.representation)
        if self.second in (None, "int"):
            return first
        return max(first, length_of(operands[1], self.representation))


_SHORTEST: Mapping[tuple[str, str], int] = {  # by pool and representation; below, most problems are alike
    ("add", "fraction"): 1,
    ("compare", "integer"): 5,
    ("compare_harder", "integer"): 5,
}
_IN_PAPER_ALONE = ("min", "digit_min")  # known to the published code, but not in its test set


def _row(
    task: str,
    representation: str,
    prepare: Prepare,
    truth: Truth,
    *,
    variant: str = "",
    second: str | None = "same",
    answer: str = "same",
    pool: str = "add",
    prepare_as_published: Prepare | None = None,
    truth_as_published: Truth | None = None,
) -> NupaTask:
    in_paper = not variant or (task, variant) == ("multiply", "hard")
    second = representation if second == "same" else second
    answer = representation if answer == "same" else answer
    kinds = (PUBLISHED_NAMES[kind] for kind in (representation, second or "none", answer))
    sets = {"full": True, "released": task not in _IN_PAPER_ALONE, "paper41": in_paper}
    return NupaTask(
        name="_".join(filter(None, (task, variant, *kinds))),
        task=task,
        variant=variant,
        representation=representation,
        second=second,
        answer=answer,
        answer_type={"int": "integer", "float": "decimal"}.get(answer, answer),
        pool=pool,
        lengths=range(_SHORTEST.get((pool, representation), 3), 21 if pool == "add" else 101),
        sets=frozenset(name for name, included in sets.items() if included),
        prepare=prepare,
        prepare_as_published=prepare_as_published or prepare,
        truth=truth,
        truth_as_published=truth_as_published or truth,
    )


_compared = partial(_row, pool="compare")
_alone = partial(_compared, second=None)
_with_int = partial(_compared, second="int")


def _sums() -> Iterator[NupaTask]:
    for kind in REPRESENTATIONS:
        near = prepared.add_scientific if kind == "scientific" else prepared.unchanged
        yield _row("add", kind, near, partial(truths.total, kind))
    yield _row(
        "add", "fraction", prepared.add_easy_fraction, partial(truths.total, "fraction"), variant="easy"
    )
    for kind in REPRESENTATIONS:
        ordered = prepared.sub_scientific if kind == "scientific" else partial(prepared.larger_first, kind)
        yield _row("sub", kind, ordered, partial(truths.difference, kind))


def _extremes(task: str, truth: Callable[[str, Operands], Parts]) -> Iterator[NupaTask]:
    for kind in REPRESENTATIONS:
        if kind == "fraction":
            yield _row(task, kind, prepared.proper_fractions, partial(truth, kind))
        else:
            yield _compared(task, kind, prepared.unchanged, partial(truth, kind))
    for kind in ("integer", "float", "scientific"):
        yield _row(
            task, kind, prepared.unchanged, partial(truth, kind), variant="hard", pool="compare_harder"
        )


def _products() -> Iterator[NupaTask]:
    for kind in REPRESENTATIONS:
        yield _row("multiply", kind, prepared.unchanged, partial(truths.product, kind), variant="hard")
    for kind in REPRESENTATIONS:
        yield _row(
            "multiply",
            kind,
            partial(prepared.multiply_easy, kind),
            partial(truths.product, kind),
            variant="easy",
        )


def _digits(task: str, truth: Truth) -> Iterator[NupaTask]:
    for kind in ("integer", "float"):
        yield _compared(task, kind, prepared.unchanged, truth)


def _published_tasks() -> Iterator[NupaTask]:
    whole = ("integer", "float")
    yield from _sums()
    yield from _extremes("max", truths.larger)
    yield from _products()
    yield from _digits("digit_max", truths.digit_larger)
    yield from _digits("digit_add", truths.digit_sum)
    for kind in whole:
        yield _with_int("get_digit", kind, partial(prepared.get_digit, kind), truths.digit_at, answer="int")
    for kind in whole:
        yield _alone(
            "length", kind, partial(prepared.longer_alone, kind), truths.number_of_digits, answer="int"
        )
    yield _row("truediv", "integer", prepared.divide, truths.fraction_of_integers, answer="fraction")
    yield _row("truediv", "fraction", prepared.divide, truths.fraction_of_fractions)
    yield _row("floordiv", "integer", prepared.divide_whole, truths.quotient)
    yield _row("mod", "integer", prepared.mod, truths.remainder)
    yield _row("mod", "integer", prepared.mod_easy, truths.remainder, variant="easy")
    to_float = partial(_alone, "to_float", answer="float")
    yield to_float("fraction", prepared.finite_fraction, truths.float_of_fraction, pool="add")
    yield to_float("scientific", prepared.short_exponent, truths.float_of_scientific)
    to_scientific = partial(_alone, "to_scient", answer="scientific")
    yield to_scientific("integer", prepared.zeros_at_the_end, truths.scientific_of_decimal)
    yield to_scientific("float", partial(prepared.longer_alone, "float"), truths.scientific_of_decimal)
    yield _with_int("count", "integer", prepared.count, truths.occurrences, answer="int")
    for kind in whole:
        yield _with_int(
            "sig",
            kind,
            partial(prepared.significant_without_ties, kind),
            truths.rounded,
            answer="scientific",
            prepare_as_published=partial(prepared.significant, kind),
            truth_as_published=truths.rounded_as_published,
        )
    yield from _extremes("min", truths.smaller)
    yield from _digits("digit_min", truths.digit_smaller)


TASKS: Mapping[str, NupaTask] = {task.name: task for task in _published_tasks()}
BASE_TASKS = tuple(dict.fromkeys(task.task for task in TASKS.values()))
_BY_COLUMNS = {task.kind: task for task in TASKS.values()}


def task_of(task: str, variant: str, representation: str) -> NupaTask:
    """Return the task that the columns of a problem name.

    Raises:
        ValueError: there is none.
    """
    try:
        return _BY_COLUMNS[task, variant, representation]
    except KeyError:
        named = " ".join(filter(None, (task, variant, representation)))
        raise ValueError(f"nupa has no task {named}. Known: {', '.join(TASKS)}") from None


def chosen(parameters: Mapping[str, object]) -> tuple[NupaTask, ...]:
    """Return the tasks that the generator's set, tasks, representations and variants name, in order."""
    names, kinds, variants = (
        set(cast("tuple[str, ...]", parameters[name])) for name in ("tasks", "representations", "variants")
    )
    forms = {VARIANTS[name] for name in variants}
    return tuple(
        task
        for task in TASKS.values()
        if parameters["set"] in task.sets
        and task.task in names
        and task.representation in kinds
        and task.variant in forms
    )


# ── the words of questions: the form of the answer, then the task

FORMAT: Mapping[str, str] = {  # by answer_type
    "integer": "Directly return the answer as an integer without any comma separator, like 123 .",
    "decimal": "Directly return the answer as a float without any comma separator, like 10.4 .",
    "fraction": "Directly return the answer as an **irreducible** fraction without any comma separator, "
    "like 7/13 .",
    "scientific": "Directly return the answer as a scientific notation without any comma separator, "
    "like 1.23e4 . The float part should be in the range [1, 10).",
}

_DIGIT_BY_DIGIT = (
    "Compare two numbers digit by digit and return the {} digit at each position, "
    "treating any missing digits as 0. %s and %s ="
)
QUESTIONS: Mapping[str, str] = {
    "add": "Add two numbers: %s + %s =",
    "sub": "Subtract two numbers: %s - %s =",
    "multiply": "Multiply two numbers: %s * %s =",
    "truediv": "Divide two numbers and return the result as a fraction. %s / %s =",
    "floordiv": "Divide two numbers and return the result as an integer. %s // %s =",
    "mod": "Divide two numbers and return the remainder. %s %% %s =",
    "max": "Get the maximal number: %s and %s =",
    "min": "Get the minimal number: %s and %s =",
    "digit_max": _DIGIT_BY_DIGIT.replace("{}", "larger"),
    "digit_min": _DIGIT_BY_DIGIT.replace("{}", "smaller"),
    "digit_add": "The task is to add two given numbers digit by digit and return the result modulo 10 "
    "(ignoring carry), treating any missing digits as 0. %s digit add %s =",
    "get_digit": "Get the digit at the given position (from left to right, starting from 0). "
    "%s at position %s =",
    "length": "The total number of digits of %s =",
    "to_float": "Convert the number to float: %s =",
    "to_scient": "Convert the number to scientific notation: %s =",
    "count": "Count the number of the given digit in the given number: "
    "%s count the occurrence time of digit %s =",
    "sig": "Convert the number to scientific notation: %s and keep significant figures as %s =",
}
_OF_FRACTIONS = {"truediv": "Divide two numbers and return the result as a fraction. (%s) / (%s) ="}
PUBLISHED_QUESTIONS: Mapping[str, str] = {"min": "Get the mininal number: %s and %s ="}  # a slip of the code


def template(task: NupaTask, profile: str) -> str:
    """Return the question of a task, with %s for each operand."""
    question = QUESTIONS[task.task]
    if task.representation == "fraction":
        question = _OF_FRACTIONS.get(task.task, question)
    if profile == "reference":
        question = PUBLISHED_QUESTIONS.get(task.task, question)
    return f"{FORMAT[task.answer_type]} {question}"


def writing(task: NupaTask) -> Callable[[Operands], tuple[str, ...]]:
    """Return a function that writes the operands of a task."""
    if task.second is None:
        alone = FORMS[task.representation].written
        return lambda operands: (alone % operands[0],)
    first, second = (FORMS[kind].written for kind in task.representations_of(2))
    return lambda operands: (first % operands[0], second % operands[1])


# ── published figures of a task, from the answers of each length
# A task is of the class whose longest problems have 20 digits, or of that with 100: its table says which,
# not the data. Means are exact where the sums are: whole numbers and fractions.


Number = int | float | Fraction


class Sum(NamedTuple):
    """A figure of some answers, added up."""

    total: Number = 0
    answers: int = 0
    squares: Number = 0  # of the figure of each answer, summed
    largest: int = 1  # that the figure of an answer may be
    independent: float = 0  # answers that it is worth at least, where problems were asked again

    def plus(self, added: "Sum") -> "Sum":
        """Return both together."""
        return Sum(
            self.total + added.total,
            self.answers + added.answers,
            self.squares + added.squares,
            max(self.largest, added.largest),
            self.independent + added.independent,
        )

    @property
    def mean(self) -> Number:
        """Exact, unless the sum is a float."""
        if isinstance(self.total, float):
            return self.total / self.answers
        return Fraction(self.total, self.answers)


def summed(sums: Iterable[Sum]) -> Sum:
    """Return several sums as one."""
    return reduce(Sum.plus, sums, Sum())


def pooled(sums: Iterable[Sum]) -> Number | None:
    """Return the mean over the answers of several sums; None where there is none."""
    whole = summed(sums)
    return whole.mean if whole.answers else None


RANGES: Mapping[int, Mapping[str, range]] = {  # by class, lengths in digits
    20: {"S": range(1, 5), "M": range(5, 9), "L": range(9, 15), "XL": range(15, 21)},
    100: {"S": range(1, 11), "M": range(11, 21), "L": range(21, 61), "XL": range(61, 101)},
}
DOMAINS: Mapping[str, Sequence[str]] = {"in_domain": ("S", "M"), "out_domain": ("L", "XL")}


@dataclass(frozen=True, slots=True)
class Threshold:
    """From where on a length is well learned, and from where on some performance is preserved."""

    well_learned: Fraction
    preserving: Fraction
    passes: Callable[[Number, Fraction], bool]


THRESHOLDS: Mapping[str, Threshold] = {  # by figure
    "exact_match": Threshold(Fraction(9, 10), Fraction(1, 10), ge),
    "digit_match": Threshold(Fraction(9, 10), Fraction(1, 2), ge),
    "dlength": Threshold(Fraction(1, 10), Fraction(1), le),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedLengths:
    """The longest lengths that pass; 0: none does. None: nothing was answered.

    As published, shorter lengths may fail: who fails 3 to 11 and passes 12 has 12. `contiguous`, ours: all
    answered lengths up to it pass.
    """

    well_learned: int | None = None
    well_learned_contiguous: int | None = None
    preserving: int | None = None
    preserving_contiguous: int | None = None


def range_of(length: int, length_class: int) -> str | None:
    """Return the range of a length among tasks with this longest length, or None if no range has it."""
    return next((name for name, lengths in RANGES[length_class].items() if length in lengths), None)


def range_sums(sums: Mapping[int, Sum], length_class: int) -> dict[str, Sum]:
    """Return the sums of the answers in S, M, L and XL and in both domains.

    Args:
        sums: length → the sum of a figure.
        length_class: 20 or 100.
    """
    ranges = RANGES[length_class]
    domains = {domain: [n for name in names for n in ranges[name]] for domain, names in DOMAINS.items()}
    return {
        name: summed(sums[length] for length in lengths if length in sums)
        for name, lengths in {**ranges, **domains}.items()
    }


def range_means(sums: Mapping[int, Sum], length_class: int) -> dict[str, Number | None]:
    """Return the means of `range_sums`; None where there is no answer."""
    return {
        name: added.mean if added.answers else None for name, added in range_sums(sums, length_class).items()
    }


def digits(sums: Mapping[int, Sum], figure: str, length_class: int) -> PassedLengths:
    """Return how many digits a task is mastered to by a figure: exact_match, digit_match or dlength.

    Lengths beyond the class's longest are left aside: to_float of fractions has problems of 21 digits.
    """
    threshold = THRESHOLDS[figure]
    lengths = sorted(length for length, added in sums.items() if length <= length_class and added.answers)
    if not lengths:
        return PassedLengths()
    well = [threshold.passes(sums[length].mean, threshold.well_learned) for length in lengths]
    preserved = [threshold.passes(sums[length].mean, threshold.preserving) for length in lengths]
    return PassedLengths(
        well_learned=_longest(lengths, well),
        well_learned_contiguous=_contiguous(lengths, well),
        preserving=_longest(lengths, preserved),
        preserving_contiguous=_contiguous(lengths, preserved),
    )


def _longest(lengths: Sequence[int], passed: Sequence[bool]) -> int:
    return max((length for length, passes in zip(lengths, passed, strict=True) if passes), default=0)


def _contiguous(lengths: Sequence[int], passed: Sequence[bool]) -> int:
    before_a_failure = passed.index(False) if False in passed else len(passed)
    return lengths[before_a_failure - 1] if before_a_failure else 0
