"""Carrying out a rule: its lines one by one, and the first line of a reply that differs from them.

A reply is read as lines of the rule and as values of its variables, in any of the usual ways to write them:
`block = 579`, `block: "579"`, `carry, block = 0, 579`, behind a `#` or an arrow, in lists and fences. A line
of the rule may be left out, and a value that stays as it is may be said again. But each value that changes
must come, and in its order. All else is a comment.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from asyncbench.suites.nupa.suite import RULES, rule, rule_prompt
from asyncbench.suites.nupa.tasks import TASKS, template

_FILE: Final = "<rule>"  # of its code, by which its frames are told from others
_HEADING: Final = "\nQ: "
_END: Final = re.compile(r"so the answer is", re.IGNORECASE)

Values = Mapping[str, str]  # of variables, by name; texts without quotes


class ExecutedLine(NamedTuple):
    """A line of a rule as it is carried out, before (`changed` is None) or after."""

    number: int  # of the line among all that are carried out, from 1 on
    routine: str
    line: str
    changed: Values | None
    all_values: Values  # that the routine has now


# ── the execution ────────────────────────────────────────────────────────────────────────────────


class _EnoughError(Exception):
    """Nobody wants another step."""


def carry_out(
    task: str, representation: str, operands: Sequence[str], tell: Callable[[ExecutedLine], bool]
) -> None:
    """Carry out the rule of a task, and tell each step.

    Args:
        task, representation: of a problem that has a rule.
        operands: its operands.
        tell: takes a step, and returns whether it wants another one.

    Raises:
        KeyError: the task has no rule.
        ValueError: the rule cannot be carried out with these operands.
    """
    code, lines = _code_of(task, representation)
    routines: dict[str, Any] = {}
    exec(code, routines)  # noqa: S102  it is our own text, with which no text of others is mixed
    running: list[ExecutedLine] = []  # the line that each open routine is at
    count = 0

    def state_of(frame: FrameType) -> dict[str, str]:
        return {name: str(value) for name, value in frame.f_locals.items()}

    def tell_changes(frame: FrameType) -> None:
        before, after = running[-1], state_of(frame)
        changed = {name: value for name, value in after.items() if before.all_values.get(name) != value}
        if changed and before.line:
            _require(tell(before._replace(changed=changed, all_values=after)))

    def follow(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != _FILE:
            return None
        name = frame.f_code.co_name
        if event == "call":
            running.append(ExecutedLine(0, name, "", None, state_of(frame)))
        elif event == "line":
            tell_changes(frame)
            count += 1
            running[-1] = ExecutedLine(count, name, lines[frame.f_lineno - 1], None, state_of(frame))
            _require(tell(running[-1]))
        elif event == "return":
            tell_changes(frame)
            running.pop()
        return follow

    earlier = sys.gettrace()
    sys.settrace(follow)
    try:
        routines[RULES[task, representation]](*operands)
    except _EnoughError:
        pass
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{task} {representation} cannot be carried out with {operands}: {error}") from None
    finally:
        sys.settrace(earlier)


def _require(wants_more: bool) -> None:
    if not wants_more:
        raise _EnoughError


@cache
def _code_of(task: str, representation: str) -> tuple[CodeType, tuple[str, ...]]:
    """Return the code of a rule, and its lines without their indentation."""
    source = rule(task, representation)
    return compile(source, _FILE, "exec"), tuple(map(str.strip, source.split("\n")))


def written_execution(task: str, representation: str, operands: Sequence[str], *, most: int) -> list[str]:
    """Return the execution of a rule as its prompt asks for it: each line, then the values that changed.

    Args:
        task, representation, operands: of a problem that has a rule.
        most: lines; of a longer execution its beginning is returned.

    Raises:
        KeyError, ValueError: as `carry_out`.
    """
    written: list[str] = []
    empty = '""'

    def write(step: ExecutedLine) -> bool:
        if step.changed is None:
            written.append(step.line)
        else:
            written.append(", ".join(f"{name} = {value or empty}" for name, value in step.changed.items()))
        return len(written) < most

    carry_out(task, representation, operands, write)
    return written


# ── what a prompt asks ───────────────────────────────────────────────────────────────────────────


class AskedRule(NamedTuple):
    """The problem of a prompt that asks to carry out a rule."""

    task: str
    representation: str
    operands: tuple[str, ...]


def asked_rule(prompt: str) -> AskedRule | None:
    """Return the rule and the problem of a `rule_prompt`, or None for any other text."""
    instructions, heading, rest = prompt.rpartition(_HEADING)
    if not heading or (kind := _rules_by_instructions().get(instructions)) is None:
        return None
    question = rest.partition("\n")[0]
    match = next((match for each in _questions(*kind) if (match := each.fullmatch(question))), None)
    return None if match is None else AskedRule(*kind, match.groups())


@cache
def _rules_by_instructions() -> Mapping[str, tuple[str, str]]:
    """Return the task and representation of each rule by all that a prompt says before its question."""
    return {
        rule_prompt("", task=task, representation=form).rpartition(_HEADING)[0]: (task, form)
        for task, form in RULES
    }


@cache
def _questions(task: str, representation: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns of the questions of a task, with a group for each operand."""
    kinds = [each for each in TASKS.values() if (each.task, each.representation) == (task, representation)]
    texts = {template(kind, "fixed") % (("\0",) * (1 + (kind.second is not None))) for kind in kinds}
    return tuple(
        re.compile(re.escape(text.removesuffix(" =")).replace("\0", r"([^\s()]+)")) for text in sorted(texts)
    )


# ── the first wrong line ─────────────────────────────────────────────────────────────────────────

VALUE, OTHER_LINE, ENDED, NO_LINE = "another value", "another line", "ended before", "no line"
WRONG_LINES: Final = (VALUE, OTHER_LINE, ENDED, NO_LINE)


class WrongLine(NamedTuple):
    """The first line of a reply that differs from the executed rule."""

    kind: str  # of `WRONG_LINES`
    number: int  # of the executed line, from 1 on
    routine: str
    line: str
    expected: str  # the value that it gives
    found: str | None  # None: the reply says nothing more


def first_wrong_line(reply: str, task: str, representation: str, operands: Sequence[str]) -> WrongLine | None:
    """Return the first line of a reply that differs from the executed rule; None: it has all of them.

    Time grows with the reply alone: the rule is carried out only as far as the reply goes.

    Raises:
        KeyError: the task has no rule.
        ValueError: the rule cannot be carried out with these operands.
    """
    comparison = _Comparison(statements=tuple(_statements(reply, task, representation)))
    carry_out(task, representation, operands, comparison.compare)
    return comparison.wrong


class _Statement(NamedTuple):
    """One line of a reply: a line of the rule, values of variables, or a line that is read as both."""

    text: str
    line: str | None  # None: it is no line of the rule
    values: tuple[tuple[str, str], ...]

    def repeats(self, values: Values) -> bool:
        """Return whether it only says again what variables have."""
        return bool(self.values) and all(values.get(name) == value for name, value in self.values)


@dataclass(slots=True, kw_only=True)
class _Comparison:
    """The statements of a reply, compared with the steps of the rule as they come."""

    statements: Sequence[_Statement]
    next: int = 0  # the index of the first statement that was not compared yet
    written: set[int] = field(default_factory=set)  # numbers of executed lines that the reply wrote
    wrong: WrongLine | None = None

    def compare(self, step: ExecutedLine) -> bool:
        """Compare one step; return whether the reply is right so far."""
        if step.changed is None:
            while self.next < len(self.statements):
                statement = self.statements[self.next]
                if statement.line == step.line:
                    self.written.add(step.number)
                elif not statement.repeats(step.all_values):
                    break
                self.next += 1
                if statement.line == step.line:
                    break
            return True

        # `count = 0` needs no value behind it.
        beside = dict(self.statements[self.next - 1].values) if step.number in self.written else {}
        missing = {name: value for name, value in step.changed.items() if beside.get(name) != value}
        while missing:
            if self.next == len(self.statements):
                return self._differ(step, missing, ENDED if self.statements else NO_LINE, None)
            statement = self.statements[self.next]
            if not statement.values:
                return self._differ(step, missing, OTHER_LINE, statement.text)
            for name, value in statement.values:
                if step.all_values.get(name) != value:
                    kind = VALUE if name in missing else OTHER_LINE
                    return self._differ(step, missing, kind, statement.text)
                missing.pop(name, None)
            self.next += 1
        return True

    def _differ(self, step: ExecutedLine, missing: Values, kind: str, found: str | None) -> bool:
        expected = ", ".join(f"{name} = {value}" for name, value in missing.items())
        self.wrong = WrongLine(kind, step.number, step.routine, step.line, expected, found)
        return False


_MARKS: Final = re.compile(r"^(?:[-*•>]\s+|\d+[.)]\s+)+")
_BOLD: Final = re.compile(r"\*\*|`")
_LITERAL: Final = re.compile(r"\"[^\"]*\"|'[^']*'|[0-9]+")
_BESIDE: Final = re.compile(r"\s*(?:#|→|⇒|->|=>)\s*")
_NAMES: Final = r"[a-z_]\w*(?:\s*,\s*[a-z_]\w*)*"
_ASSIGNED: Final = re.compile(rf"({_NAMES})\s*(?:=|:)\s*(.+)")
_NEXT_NAME: Final = re.compile(r"[,;]\s*(?=[a-z_]\w*\s*[=:])")


def _statements(reply: str, task: str, representation: str) -> Iterator[_Statement]:
    """Yield the statements in the lines of a reply, up to its answer."""
    code, lines = _code_of(task, representation)
    rule_lines = {" ".join(line.split()): line for line in lines}
    names = {name for each in code.co_consts if isinstance(each, CodeType) for name in each.co_varnames}
    for raw in _END.split(reply, maxsplit=1)[0].split("\n"):
        unmarked = _MARKS.sub("", " ".join(_BOLD.sub("", raw).split()))
        for plain in (text.strip(" ;") for text in _BESIDE.split(unmarked)):
            line = rule_lines.get(plain) or rule_lines.get(f"{plain}:")
            values = tuple(_values(plain, names))
            if line is not None and not all(_LITERAL.fullmatch(value) for _, value in values):
                values = ()  # it says what is to be computed
            if (line or values) and not plain.startswith("def "):
                unquoted = tuple((name, value.strip("'\"")) for name, value in values)
                yield _Statement(plain, line or None, unquoted)


def _values(text: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the variables and values in a text; the value of a calculation stands behind its last `=`."""
    together = _ASSIGNED.fullmatch(text)
    if together is not None and "," in together[1]:  # a, b = 12, 0
        variables, values = (re.split(r"\s*,\s*", together[n]) for n in (1, 2))
        if len(variables) == len(values) and all(name in names for name in variables):
            yield from zip(variables, values, strict=True)
            return
    for match in map(_ASSIGNED.fullmatch, _NEXT_NAME.split(text)):
        if match is not None and match[1] in names:
            yield match[1], match[2].rpartition("=")[2].strip()
