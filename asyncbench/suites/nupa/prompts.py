"""The words of NUPA's questions: how the answer is to be written, then the task (the paper, A.2)."""

from collections.abc import Callable, Mapping

from asyncbench.suites.numbers import FORMS
from asyncbench.suites.nupa.preparation import Operands
from asyncbench.suites.nupa.tasks import NupaTask

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
ASKED: Mapping[str, str] = {
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
AS_PUBLISHED: Mapping[str, str] = {"min": "Get the mininal number: %s and %s ="}  # a slip of the code


def template(task: NupaTask, profile: str) -> str:
    """Return the question of a task, with %s for each operand."""
    asked = ASKED[task.task]
    if task.representation == "fraction":
        asked = _OF_FRACTIONS.get(task.task, asked)
    if profile == "reference":
        asked = AS_PUBLISHED.get(task.task, asked)
    return f"{FORMAT[task.answer_type]} {asked}"


def question(task: NupaTask, operands: tuple[str, ...], profile: str = "fixed") -> str:
    """Return what is asked about these operands, each as it is written."""
    return template(task, profile) % operands


def writing(task: NupaTask) -> Callable[[Operands], tuple[str, ...]]:
    """Return what writes the operands of a task."""
    if task.second is None:
        alone = FORMS[task.representation].written
        return lambda operands: (alone % operands[0],)
    first, second = (FORMS[kind].written for kind in task.representations_of(2))
    return lambda operands: (first % operands[0], second % operands[1])
