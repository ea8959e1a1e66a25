"""The suite of NUPA, and the styles of its questions: for chat models, to be completed, or with a rule.

    chat         a system prompt that says how to answer; examples are turns; the question as it stands
    completion   examples and question line by line in one text, which goes on with the answer
    rules        one message: a procedure of the task, to be carried out line by line (RF-CoT), the question

The same problem is asked in all of them. Nothing here depends on what else is in a problem set.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import islice, pairwise
from typing import cast

from asyncbench.records import Draft, Message, Problem
from asyncbench.suites.numbers import REVERSED, rewritten
from asyncbench.suites.nupa import grading
from asyncbench.suites.nupa.generation import (
    EXAMPLES,
    GENERATOR_VERSION,
    PROFILES,
    SPLITS,
    generate,
    rows_of,
)
from asyncbench.suites.nupa.grading import ANSWER
from asyncbench.suites.nupa.operands import SHORTER
from asyncbench.suites.nupa.tasks import (
    BASE_TASKS,
    REPRESENTATIONS,
    SETS,
    TASKS,
    VARIANTS,
    NupaTask,
    chosen,
    task_of,
    template,
)
from asyncbench.suites.suite import (
    Asking,
    FirstSize,
    Kind,
    Parameter,
    Suite,
    Wording,
    one_of,
    some_of,
    whole_number,
    whole_numbers,
)

STYLES = ("chat", "completion", "rules")
SYSTEM = (
    "You are a capable math assistant. Return your solution without any process in the format: The answer is "
    "[YOUR ANSWER]. The final answer must strictly match the format {}."
)
REGEXES: Mapping[str, str] = {  # by answer_type, as the system prompt shows them
    "integer": r'r"\d+"',
    "decimal": r'r"\d+\.\d+"',
    "fraction": r'r"\d+/\d+"',
    "scientific": r'r"\d+\.\d+e\d+"',
}
LONGEST_NUMBER = 210  # characters: the longest answer has about 203


def wording(problem: Problem, style: str, shots: int, digits: Sequence[str] = ()) -> Wording:
    """Return the words that ask a problem; `digits`: the forms of its numbers and of those of examples.

    Raises:
        ValueError: examples of a task that is none of NUPA's.
        KeyError: style `rules`, and the task has none.
    """
    if style == "rules":
        question = rule_prompt(problem.question, task=problem.task, representation=problem.representation)
        return Wording(question=question)
    worked = [
        (rewritten(example.question, digits, example.operands), rewritten(example.expected, digits))
        for example in (examples_for(problem, shots) if shots else ())
    ]
    question = rewritten(problem.question, digits, problem.operands)
    if style == "completion":
        lines = [f"{asked} {answer}" for asked, answer in worked]
        return Wording(question="\n".join([*lines, question]))
    turns: list[Message] = []
    for asked, answer in worked:
        turns.append(Message(role="user", content=asked))
        turns.append(Message(role="assistant", content=f"{ANSWER} {answer}"))
    system = SYSTEM.format(REGEXES[problem.answer_type])
    return Wording(system=system, turns=tuple(turns), question=question)


def question_in(message: str) -> str | None:
    """Return the question in the last message of a user: the last line, or what a rule is asked about."""
    return question_of_rule(message) or message.rpartition("\n")[2] or None


@cache
def added_characters(style: str, shots: int) -> int:
    """Return the most characters that are said beside a question."""
    if style == "rules":
        return max(len(rule_prompt("", task=task, representation=kind)) for task, kind in RULES)
    system = len(SYSTEM) + max(map(len, REGEXES.values())) if style == "chat" else 0
    numbers = 3 * LONGEST_NUMBER + len(f"{ANSWER} \n")
    longest = max(len(template(task, "fixed")) for task in TASKS.values()) + numbers
    return system + shots * longest


# Of numbers in these forms the task asks something else: digits stand elsewhere, or there are more of them.
OTHER_DIGITS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(REVERSED, frozenset({"get_digit"})),
    "zero_padded": frozenset({"get_digit", "length", "count"}),
}


def complaint(kind: Kind, style: str, digits: Sequence[str] = ()) -> str | None:
    """Return why problems of a kind cannot be asked in a style, or with their numbers in other forms.

    Most tasks have a rule, some have none.
    """
    task, _, representation = kind
    try:
        task_of(*kind)
    except ValueError as error:  # a set of one's own may call anything a task of this suite
        return str(error)
    if lost := [form for form in digits if task in OTHER_DIGITS.get(form, ())]:
        return f"nupa's {task} has another answer if its numbers are {lost[0]}"
    if style != "rules" or (task, representation) in RULES:
        return None
    return f"nupa has no rule for {task} of representation {representation!r}"


# ── rules
#
# Procedures (procedures.txt) are short Python functions of texts, which count on no arithmetic beyond three
# digits; those of decimals, fractions and scientific notation call those of whole numbers. They run as they
# stand. The paper trains on written-out executions; here a model is only asked for one, so `max_tokens`
# should leave room: 2000.


# What a procedure calls, in the order in which a prompt has it.
CALLS: Mapping[str, tuple[str, ...]] = {
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
ROUTINES: Mapping[str, str] = {
    source.removeprefix("def ").partition("(")[0]: source
    for source in files("asyncbench.suites.nupa")
    .joinpath("procedures.txt")
    .read_text("utf-8")
    .strip()
    .split("\n\n\n")
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
    return "\n\n".join(ROUTINES[name] for name in _needed(RULES[task, representation]))


def _needed(name: str) -> dict[str, None]:
    """Return a routine and all that it calls, each once and after what it calls itself."""
    before = [routine for called in CALLS.get(name, ()) for routine in _needed(called)]
    return dict.fromkeys([*before, name])


def rule_prompt(question: str, *, task: str, representation: str) -> str:
    """Return how a question is asked with the procedure of its task.

    Raises:
        KeyError: the task has none.
    """
    return _PROMPT.format(rule=rule(task, representation), question=question.removesuffix(_EQUALS))


def question_of_rule(text: str) -> str | None:
    """Return the question that a `rule_prompt` asks, or None if the text is no such prompt."""
    _, separator, question = text.removesuffix(_HEADING).rpartition(_QUESTION)
    return question + _EQUALS if separator and text.endswith(_HEADING) else None


# ── worked examples
#
# A task has the same for every problem, and none of any set that we generate. N examples have N lengths, one
# from each of N equal parts of the task's, ascending. They are drawn once and for all: only another profile
# has others, since it may ask in other words.

MOST = min(len(task.lengths) for task in TASKS.values())  # every one has a length of its own


def examples_for(problem: Problem, shots: int) -> tuple[Draft, ...]:
    """Return the examples that are shown before a problem, with answers that are right in value.

    One that is the problem itself, as may be in a set that others made, gives place to another.

    Raises:
        ValueError: the problem's task is none of NUPA's.
    """
    task = task_of(problem.task, problem.variant, problem.representation)
    profile = json.loads(problem.extra).get("profile")
    pairs = _drawn(task.name, shots, profile if profile in PROFILES else "fixed")
    return tuple(spare if example.question == problem.question else example for example, spare in pairs)


@cache
def _drawn(name: str, shots: int, profile: str) -> tuple[tuple[Draft, Draft], ...]:
    """Return each example with the one that may take its place."""
    task = TASKS[name]
    rows = rows_of(task, lengths_of(task, shots), seed=0, profile=profile, stream=EXAMPLES)
    # Each with its exact answer, also where the published code's is another.
    firsts, spares = (
        [
            replace(draft, expected=json.loads(draft.extra).get("expected_exact", draft.expected))
            for draft in row
        ]
        for row in islice(rows, 2)
    )
    return tuple(zip(firsts, spares, strict=True))


def lengths_of(task: NupaTask, shots: int) -> Sequence[int]:
    """Return the lengths of a task's examples: one from each of so many equal parts, ascending."""
    draw, lengths = random.Random(f"nupa/shots/{task.name}/{shots}"), task.lengths
    ends = [len(lengths) * i // max(shots, 1) for i in range(shots + 1)]
    return [draw.choice(lengths[start:end]) for start, end in pairwise(ends)]


# ── the suite

_LENGTHS = range(1, 101)


def check(values: Mapping[str, object]) -> None:
    """Refuse a choice that no task answers to.

    Raises:
        ValueError: what was chosen does not go together.
    """
    tasks = chosen(values)
    if not tasks:
        raise ValueError("no task of the set has these names, representations and variants. Choose others.")
    lengths = set(cast("tuple[int, ...]", values["lengths"]))
    if not any(lengths.intersection(task.lengths) for task in tasks):
        ranges = ", ".join(f"{task.name} {task.lengths[0]}-{task.lengths[-1]}" for task in tasks[:3])
        raise ValueError(f"lengths: none of the chosen tasks has these lengths. They have: {ranges}.")


SUITE = Suite(
    name="nupa",
    about="44 tasks on numbers of up to 100 digits (Number Cookbook)",
    unit="digits",
    first=FirstSize(parameter="per_length", most=100, usual=1),
    generator_version=GENERATOR_VERSION,
    prompt_version=1,
    graders=(*grading.GRADERS, grading.BEHIND_THINKING),
    styles=STYLES,
    rewritable=("chat", "completion"),  # a rule counts on plain digits
    asking=Asking(
        wording=wording,
        question_in=question_in,
        added_characters=added_characters,
        complaint=complaint,
        shots={"chat": MOST, "completion": MOST},
    ),
    parameters={
        "per_length": Parameter(
            default=100, parse=whole_number(1), help="problems of each task and length; the paper has 1000"
        ),
        "set": Parameter(
            default=SETS[0],
            parse=one_of(SETS),
            help="which tasks: released (44), full (53) or paper41",
        ),
        "profile": Parameter(
            default="fixed",
            parse=one_of(PROFILES),
            help="fixed, or reference (with the published errors)",
        ),
        "shorter": Parameter(
            default=SHORTER[0],
            parse=one_of(SHORTER),
            help="digits of the shorter operand: half of the length or more (A.1.7 of the paper), any (2.2)",
            later=True,
        ),
        "split": Parameter(
            default=SPLITS[0],
            parse=one_of(SPLITS),
            help="test, train or validation, each drawn by itself; --exclude leaves out what both have",
            later=True,
        ),
        "tasks": Parameter(default=BASE_TASKS, parse=some_of(BASE_TASKS), help="the tasks"),
        "representations": Parameter(
            default=REPRESENTATIONS, parse=some_of(REPRESENTATIONS), help="how the first operand is written"
        ),
        "variants": Parameter(default=tuple(VARIANTS), parse=some_of(VARIANTS), help="the variants"),
        "lengths": Parameter(
            default=tuple(_LENGTHS),
            parse=whole_numbers(1, _LENGTHS[-1]),
            help="lengths: 1-20, or 5,10,20",
        ),
    },
    check=check,
    generate=generate,
    has_small_cells=True,
    grade=grading.grade,
)
