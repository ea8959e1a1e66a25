"""The style `rules`: the model is given a procedure, and is to carry it out line by line (RF-CoT).

Procedures (procedures.txt) are short Python functions of texts, which count on no arithmetic beyond three
digits; those of decimals, fractions and scientific notation call those of whole numbers. They run as they
stand. The paper trains on written-out executions; here a model is only asked for one, so `max_tokens` should
leave room: 2000.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Routine(NamedTuple):
    """A function, and the functions that it calls."""

    source: str
    calls: tuple[str, ...] = ()


# What a procedure calls, in the order in which a prompt has it.
_CALLS: Mapping[str, tuple[str, ...]] = {
    "multiply": ("add", "times"),
    "divide": ("larger", "sub"),
    "floordiv": ("divide",),
    "mod": ("divide",),
    "get_digit_float": ("get_digit",),
    "add_float": ("align", "with_point", "add"),
    "sub_float": ("align", "with_point", "sub"),
    "multiply_float": ("with_point", "multiply"),
    "max_float": ("align", "larger"),
    "reduce": ("divide",),
    "add_fraction": ("multiply", "reduce"),
    "sub_fraction": ("multiply", "reduce"),
    "multiply_fraction": ("multiply", "reduce"),
    "max_fraction": ("multiply", "larger"),
    "add_scientific": ("move_right", "normal", "add_float"),
    "sub_scientific": ("move_right", "normal", "sub_float"),
    "multiply_scientific": ("normal", "multiply_float"),
    "max_scientific": ("max_float",),
}
_SOURCES = (
    files("asyncbench.suites.nupa").joinpath("procedures.txt").read_text("utf-8").strip().split("\n\n\n")
)
ROUTINES: Mapping[str, Routine] = {
    name: Routine(source, _CALLS.get(name, ()))
    for source in _SOURCES
    for name in [source.removeprefix("def ").partition("(")[0]]
}

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
    """Return the procedure of a task: those that it calls come first, itself last.

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
    _, separator, question = text.removesuffix(_HEADING).rpartition(_QUESTION)
    return question + _EQUALS if separator and text.endswith(_HEADING) else None
