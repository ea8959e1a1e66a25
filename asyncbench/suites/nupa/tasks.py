"""The 53 tasks of NUPA as a table, in the order of the paper's sections; each row is one test of a model.

44 of them are in the published test set (`released`), 41 in the paper (`paper41`); `full` is all of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from asyncbench.suites.numbers import length_of
from asyncbench.suites.nupa import preparation as prepared
from asyncbench.suites.nupa import truths
from asyncbench.suites.nupa.preparation import Operands, Prepare
from asyncbench.suites.nupa.truths import Truth

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
    def length_class(self) -> int:
        """Up to how many digits it asks, 20 or 100; ranges of lengths go by it."""
        return 20 if self.pool == "add" else 100

    @property
    def relabels(self) -> bool:
        """Whether preparation changes lengths: that of `to_float` alone does, of fractions."""
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
    shortest = _SHORTEST.get((pool, representation), 3)
    in_paper = not variant or (task, variant) == ("multiply", "hard")
    second = representation if second == "same" else second
    answer = representation if answer == "same" else answer
    sets = {"full": True, "released": task not in _IN_PAPER_ALONE, "paper41": in_paper}
    return NupaTask(
        name=_published_name(task, variant, representation, second or "none", answer),
        task=task,
        variant=variant,
        representation=representation,
        second=second,
        answer=answer,
        answer_type={"int": "integer", "float": "decimal"}.get(answer, answer),
        pool=pool,
        lengths=range(shortest, 21 if pool == "add" else 101),
        sets=frozenset(name for name, held in sets.items() if held),
        prepare=prepare,
        prepare_as_published=prepare_as_published or prepare,
        truth=truth,
        truth_as_published=truth_as_published or truth,
    )


def _published_name(task: str, variant: str, *kinds: str) -> str:
    words = [task, variant] if variant else [task]
    return "_".join([*words, *(PUBLISHED_NAMES[kind] for kind in kinds)])


def _sums() -> Iterator[NupaTask]:
    prepare: Prepare
    for kind in REPRESENTATIONS:
        prepare = prepared.add_scientific if kind == "scientific" else prepared.unchanged
        yield _row("add", kind, prepare, truths.total(kind))
    yield _row("add", "fraction", prepared.add_easy_fraction, truths.total("fraction"), variant="easy")
    for kind in REPRESENTATIONS:
        prepare = prepared.sub_scientific if kind == "scientific" else prepared.larger_first(kind)
        yield _row("sub", kind, prepare, truths.difference(kind))


def _comparisons(task: str) -> Iterator[NupaTask]:
    truth = {"max": truths.larger, "min": truths.smaller}[task]
    for kind in REPRESENTATIONS:
        fraction = kind == "fraction"
        prepare = prepared.proper_fractions if fraction else prepared.unchanged
        yield _row(task, kind, prepare, truth(kind), pool="add" if fraction else "compare")
    for kind in ("integer", "float", "scientific"):
        yield _row(task, kind, prepared.unchanged, truth(kind), variant="hard", pool="compare_harder")


def _products() -> Iterator[NupaTask]:
    for kind in REPRESENTATIONS:
        yield _row("multiply", kind, prepared.unchanged, truths.product(kind), variant="hard")
    for kind in REPRESENTATIONS:
        yield _row("multiply", kind, prepared.multiply_easy(kind), truths.product(kind), variant="easy")


def _digit_wise(tasks: Mapping[str, Truth]) -> Iterator[NupaTask]:
    for task, truth in tasks.items():
        for kind in ("integer", "float"):
            yield _row(task, kind, prepared.unchanged, truth, pool="compare")


def _digits() -> Iterator[NupaTask]:
    yield from _digit_wise({"digit_max": truths.digit_larger, "digit_add": truths.digit_sum})
    for kind in ("integer", "float"):
        get = prepared.get_digit(kind)
        yield _row("get_digit", kind, get, truths.digit_at, second="int", answer="int", pool="compare")
    for kind in ("integer", "float"):
        alone = prepared.longer_alone(kind)
        yield _row("length", kind, alone, truths.number_of_digits, second=None, answer="int", pool="compare")


def _quotients() -> Iterator[NupaTask]:
    yield _row("truediv", "integer", prepared.divide, truths.fraction_of_integers, answer="fraction")
    yield _row("truediv", "fraction", prepared.divide, truths.fraction_of_fractions)
    yield _row("floordiv", "integer", prepared.divide_whole, truths.quotient)
    yield _row("mod", "integer", prepared.mod, truths.remainder)
    yield _row("mod", "integer", prepared.mod_easy, truths.remainder, variant="easy")


def _conversions() -> Iterator[NupaTask]:
    yield _row(
        "to_float",
        "fraction",
        prepared.finite_fraction,
        truths.float_of_fraction,
        second=None,
        answer="float",
    )
    yield _row(
        "to_float",
        "scientific",
        prepared.short_exponent,
        truths.float_of_scientific,
        second=None,
        answer="float",
        pool="compare",
    )
    yield _row(
        "to_scient",
        "integer",
        prepared.zeros_at_the_end,
        truths.scientific_of_integer,
        second=None,
        answer="scientific",
        pool="compare",
    )
    yield _row(
        "to_scient",
        "float",
        prepared.longer_alone("float"),
        truths.scientific_of_float,
        second=None,
        answer="scientific",
        pool="compare",
    )


def _counts() -> Iterator[NupaTask]:
    yield _row(
        "count",
        "integer",
        prepared.count,
        truths.occurrences,
        second="int",
        answer="int",
        pool="compare",
    )
    for kind in ("integer", "float"):
        yield _row(
            "sig",
            kind,
            prepared.significant_without_ties(kind),
            truths.rounded,
            second="int",
            answer="scientific",
            pool="compare",
            prepare_as_published=prepared.significant(kind),
            truth_as_published=truths.rounded_as_published,
        )


def _all() -> Iterator[NupaTask]:
    yield from _sums()
    yield from _comparisons("max")
    yield from _products()
    yield from _digits()
    yield from _quotients()
    yield from _conversions()
    yield from _counts()
    yield from _comparisons("min")
    yield from _digit_wise({"digit_min": truths.digit_smaller})


TASKS: Mapping[str, NupaTask] = {task.name: task for task in _all()}
BASE_TASKS = tuple(dict.fromkeys(task.task for task in TASKS.values()))
_BY_COLUMNS = {(task.task, task.variant, task.representation): task for task in TASKS.values()}


def task_of(task: str, variant: str, representation: str) -> NupaTask:
    """Return the task that the columns of a problem name.

    Raises:
        ValueError: there is none.
    """
    try:
        return _BY_COLUMNS[task, variant, representation]
    except KeyError:
        named = " ".join(filter(None, (task, variant, representation)))
        raise ValueError(f"nupa has no task {named}; known: {', '.join(TASKS)}") from None


def chosen(
    set_name: str, tasks: Iterable[str], representations: Iterable[str], variants: Iterable[str]
) -> tuple[NupaTask, ...]:
    """Return the tasks of a set that have these names, representations and variants, in order."""
    names, kinds, forms = set(tasks), set(representations), {VARIANTS[name] for name in variants}
    return tuple(
        task
        for task in TASKS.values()
        if set_name in task.sets
        and task.task in names
        and task.representation in kinds
        and task.variant in forms
    )
