"""How NUPA's problems are asked: to chat models, to be completed, or with a rule to follow.

    chat         a system prompt that says how to answer; examples are turns; the question as it stands
    completion   examples and question line by line in one text, which goes on with the answer
    rules        one message: a procedure of the task and the question (`rules`); no examples

The same problem is asked in all of them. Nothing here depends on what else is in a problem set.
"""

from collections.abc import Mapping
from functools import cache

from asyncbench.records import Message, Problem
from asyncbench.suites.nupa import rules
from asyncbench.suites.nupa.grading import ANSWER
from asyncbench.suites.nupa.prompts import template
from asyncbench.suites.nupa.shots import MOST, Shot, examples_for
from asyncbench.suites.nupa.tasks import TASKS, task_of
from asyncbench.suites.suite import Asking, Kind, Wording

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


def wording(problem: Problem, style: str, shots: int) -> Wording:
    """Return what is said to ask a problem.

    Raises:
        ValueError: examples of a task that is none of NUPA's.
        KeyError: style `rules`, and the task has none.
    """
    if style == "rules":
        asked = rules.prompt(problem.question, task=problem.task, representation=problem.representation)
        return Wording(question=asked)
    shown = examples_for(problem, shots) if shots else ()
    if style == "completion":
        return Wording(question="\n".join([*map(_line, shown), problem.question]))
    turns = tuple(turn for example in shown for turn in _turns(example))
    return Wording(system=SYSTEM.format(REGEXES[problem.answer_type]), turns=turns, question=problem.question)


def _line(example: Shot) -> str:
    return f"{example.question} {example.answer}"


def _turns(example: Shot) -> tuple[Message, Message]:
    answer = Message(role="assistant", content=f"{ANSWER} {example.answer}")
    return Message(role="user", content=example.question), answer


def question_in(message: str) -> str | None:
    """Return the question in the last message of a user: the last line, or what a rule is asked about."""
    return rules.question_in(message) or message.rpartition("\n")[2] or None


@cache
def beside(style: str, shots: int) -> int:
    """Return the most characters that are said beside a question."""
    if style == "rules":
        return max(len(rules.prompt("", task=task, representation=kind)) for task, kind in rules.RULES)
    system = len(SYSTEM) + max(map(len, REGEXES.values())) if style == "chat" else 0
    numbers = 3 * LONGEST_NUMBER + len(f"{ANSWER} \n")
    longest = max(len(template(task, "fixed")) for task in TASKS.values()) + numbers
    return system + shots * longest


def complaint(kind: Kind, style: str) -> str | None:
    """Return why problems of a kind cannot be asked in a style: most tasks have a rule, some have none."""
    task, _, representation = kind
    try:
        task_of(*kind)
    except ValueError as error:  # a set of one's own may call anything a task of this suite
        return str(error)
    if style != "rules" or (task, representation) in rules.RULES:
        return None
    return f"nupa has no rule for {task} of representation {representation!r}"


ASKING = Asking(
    wording=wording,
    question_in=question_in,
    beside=beside,
    complaint=complaint,
    shots={"chat": MOST, "completion": MOST},
)
