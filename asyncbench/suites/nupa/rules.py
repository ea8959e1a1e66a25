"""The style `rules`: the model is given a procedure, and is to carry it out line by line (RF-CoT).

Procedures are short Python functions of texts, which count on no arithmetic beyond three digits; those of
decimals, fractions and scientific notation call those of whole numbers. They run as they stand. The paper
trains on written-out executions; here a model is only asked for one, so `max_tokens` should leave room: 2000.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple


class Routine(NamedTuple):
    """A function, and the functions that it calls."""

    source: str
    calls: tuple[str, ...] = ()


ROUTINES: Mapping[str, Routine] = {
    "add": Routine('''\
def add(a, b):
    answer, carry = "", 0
    while a or b or carry:
        block = int(a[-3:] or 0) + int(b[-3:] or 0) + carry
        answer = f"{block % 1000:03d}" + answer
        carry = block // 1000
        a, b = a[:-3], b[:-3]
    return answer.lstrip("0") or "0"'''),
    "sub": Routine('''\
def sub(a, b):
    answer, borrow = "", 0
    while a:
        block = int(a[-3:]) - int(b[-3:] or 0) - borrow
        borrow = 1 if block < 0 else 0
        answer = f"{block + 1000 * borrow:03d}" + answer
        a, b = a[:-3], b[:-3]
    return answer.lstrip("0") or "0"'''),
    "times": Routine('''\
def times(a, block):
    answer, carry = "", 0
    while a or carry:
        product = int(a[-3:] or 0) * int(block) + carry
        answer = f"{product % 1000:03d}" + answer
        carry = product // 1000
        a = a[:-3]
    return answer.lstrip("0") or "0"'''),
    "multiply": Routine('''\
def multiply(a, b):
    answer, zeros = "0", ""
    while b:
        answer = add(answer, times(a, b[-3:]) + zeros)
        b, zeros = b[:-3], zeros + "000"
    return answer''', ("add", "times")),
    "larger": Routine('''\
def larger(a, b):
    if len(a) != len(b):
        return a if len(a) > len(b) else b
    for x, y in zip(a, b):
        if x != y:
            return a if x > y else b
    return a'''),
    "divide": Routine('''\
def divide(a, b):
    quotient, rest = "", "0"
    for digit in a:
        rest = (rest + digit).lstrip("0") or "0"
        count = 0
        while larger(rest, b) == rest:
            rest = sub(rest, b)
            count = count + 1
        quotient = quotient + str(count)
    return quotient.lstrip("0") or "0", rest''', ("larger", "sub")),
    "floordiv": Routine('''\
def floordiv(a, b):
    quotient, rest = divide(a, b)
    return quotient''', ("divide",)),
    "mod": Routine('''\
def mod(a, b):
    quotient, rest = divide(a, b)
    return rest''', ("divide",)),
    "digit_max": Routine('''\
def digit_max(a, b):
    places = max(len(a), len(b))
    answer = ""
    for x, y in zip(a.rjust(places, "0"), b.rjust(places, "0")):
        answer = answer + max(x, y)
    return answer.lstrip("0") or "0"'''),
    "get_digit": Routine('''\
def get_digit(a, position):
    place = 0
    for digit in a:
        if place == int(position):
            return digit
        place = place + 1'''),
    "get_digit_float": Routine('''\
def get_digit_float(a, position):
    whole, decimals = a.split(".")
    return get_digit(whole + decimals, position)''', ("get_digit",)),
    "length": Routine('''\
def length(a):
    count = 0
    while a:
        count = count + len(a[-3:])
        a = a[:-3]
    return str(count)'''),
    "align": Routine('''\
def align(a, b):
    a_whole, a_decimals = a.split(".")
    b_whole, b_decimals = b.split(".")
    places = max(len(a_decimals), len(b_decimals))
    x = a_whole + a_decimals.ljust(places, "0")
    y = b_whole + b_decimals.ljust(places, "0")
    return x, y, places'''),
    "with_point": Routine('''\
def with_point(digits, places):
    digits = digits.rjust(places + 1, "0")
    decimals = digits[-places:].rstrip("0") or "0"
    return digits[:-places] + "." + decimals'''),
    "add_float": Routine('''\
def add_float(a, b):
    x, y, places = align(a, b)
    return with_point(add(x, y), places)''', ("align", "with_point", "add")),
    "sub_float": Routine('''\
def sub_float(a, b):
    x, y, places = align(a, b)
    return with_point(sub(x, y), places)''', ("align", "with_point", "sub")),
    "multiply_float": Routine('''\
def multiply_float(a, b):
    a_whole, a_decimals = a.split(".")
    b_whole, b_decimals = b.split(".")
    digits = multiply(a_whole + a_decimals, b_whole + b_decimals)
    return with_point(digits, len(a_decimals) + len(b_decimals))''', ("with_point", "multiply")),
    "max_float": Routine('''\
def max_float(a, b):
    x, y, places = align(a, b)
    return a if larger(x, y) == x else b''', ("align", "larger")),
    "reduce": Routine('''\
def reduce(numerator, denominator):
    common, rest = numerator, denominator
    while rest != "0":
        common, rest = rest, divide(common, rest)[1]
    return divide(numerator, common)[0] + "/" + divide(denominator, common)[0]''', ("divide",)),
    "add_fraction": Routine('''\
def add_fraction(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    return reduce(add(multiply(p, s), multiply(r, q)), multiply(q, s))''', ("multiply", "reduce")),
    "sub_fraction": Routine('''\
def sub_fraction(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    return reduce(sub(multiply(p, s), multiply(r, q)), multiply(q, s))''', ("multiply", "reduce")),
    "multiply_fraction": Routine('''\
def multiply_fraction(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    return reduce(multiply(p, r), multiply(q, s))''', ("multiply", "reduce")),
    "max_fraction": Routine('''\
def max_fraction(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    x, y = multiply(p, s), multiply(r, q)
    return a if larger(x, y) == x else b''', ("multiply", "larger")),
    "move_right": Routine('''\
def move_right(a, places):
    whole, decimals = a.split(".")
    decimals = decimals.ljust(places + 1, "0")
    return whole + decimals[:places] + "." + decimals[places:]'''),
    "normal": Routine('''\
def normal(a, exponent):
    whole, decimals = a.split(".")
    digits = (whole + decimals).lstrip("0")
    if not digits:
        return "0.0e0"
    exponent = int(exponent) + len(digits) - len(decimals) - 1
    return digits[0] + "." + (digits[1:].rstrip("0") or "0") + "e" + str(exponent)'''),
    "add_scientific": Routine('''\
def add_scientific(a, b):
    m, x = a.split("e")
    n, y = b.split("e")
    if int(x) < int(y):
        m, x, n, y = n, y, m, x
    return normal(add_float(move_right(m, int(x) - int(y)), n), y)''', ("move_right", "normal", "add_float")),
    "sub_scientific": Routine('''\
def sub_scientific(a, b):
    m, x = a.split("e")
    n, y = b.split("e")
    return normal(sub_float(move_right(m, int(x) - int(y)), n), y)''', ("move_right", "normal", "sub_float")),
    "multiply_scientific": Routine('''\
def multiply_scientific(a, b):
    m, x = a.split("e")
    n, y = b.split("e")
    return normal(multiply_float(m, n), add(x, y))''', ("normal", "multiply_float")),
    "max_scientific": Routine('''\
def max_scientific(a, b):
    m, x = a.split("e")
    n, y = b.split("e")
    if int(x) != int(y):
        return a if int(x) > int(y) else b
    return a if max_float(m, n) == m else b''', ("max_float",)),
}  # fmt: skip

# By task and representation; easy and hard variants share one. The other tasks have none, as in the paper.
_OF_INTEGERS = ("add", "sub", "multiply", "floordiv", "mod", "digit_max", "get_digit", "length")
RULES: Mapping[tuple[str, str], str] = {
    **{(task, "integer"): task for task in _OF_INTEGERS},
    ("max", "integer"): "larger",
    ("get_digit", "float"): "get_digit_float",
    **{
        (task, kind): f"{task}_{kind}"
        for task in ("add", "sub", "multiply", "max")
        for kind in ("float", "fraction", "scientific")
    },
}

_PROMPT = """\
Follow the given rule to solve the question.
Its last function gives the answer. Carry it out line by line: write each line that you execute, then the \
values that changed. End with: So the answer is X.

```python
{rule}
```

Q: {question}

## Response:
"""
_QUESTION = "\nQ: "
_HEADING = "\n\n## Response:\n"
_EQUALS = " ="


@cache
def rule(task: str, representation: str) -> str:
    """Return the procedure of a task: what it calls comes first, itself last.

    Raises:
        KeyError: the task has none.
    """
    return "\n\n".join(ROUTINES[name].source for name in _needed(RULES[task, representation]))


def _needed(name: str) -> dict[str, None]:
    """Return a routine and all that it calls, each once and after what it calls itself."""
    before = [routine for called in ROUTINES[name].calls for routine in _needed(called)]
    return dict.fromkeys([*before, name])


def prompt(question: str, *, task: str, representation: str) -> str:
    """Return how a question is asked with the procedure of its task.

    Raises:
        KeyError: the task has none.
    """
    return _PROMPT.format(rule=rule(task, representation), question=question.removesuffix(_EQUALS))


def question_in(text: str) -> str | None:
    """Return the question that a `prompt` asks; None: the text is none."""
    _, found, asked = text.removesuffix(_HEADING).rpartition(_QUESTION)
    return asked + _EQUALS if found and text.endswith(_HEADING) else None
