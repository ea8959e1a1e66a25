"""Gates, by which the checks of another program pass or fail: their answers, also as a JUnit file.

A record per answer. Text, JUnit, JSON and Python read the same one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final
from xml.etree import ElementTree  # only written here, never read

from asyncbench.errors import ConfigError


class GateStatus(StrEnum):
    """How a gate answered."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """The answer of a gate. Each kind of gate adds what it is held against."""

    gate: str  # as it was typed
    subject: str  # whose figure it is
    status: GateStatus
    sentence: str  # with the figures behind the answer
    metric: str
    value: float | None  # of the metric; None: unknown, or endless, as the sentence says

    @property
    def line(self) -> str:
        """The line that a log shows."""
        return f"{self.status}: {self.sentence}"


_EXITS: Final = {GateStatus.FAILED: 4, GateStatus.UNDECIDED: 3, GateStatus.PASSED: 0}
_ELEMENTS: Final = {GateStatus.FAILED: "failure", GateStatus.UNDECIDED: "error"}


def exit_code(results: Sequence[GateResult]) -> int:
    """Return the exit code of a command with gates: 4 if one failed, else 3 if one is undecided, else 0."""
    statuses = {result.status for result in results}
    return next((code for status, code in _EXITS.items() if status in statuses), 0)


def write_junit(path: Path, results: Sequence[GateResult], *, notes: Sequence[str] = ()) -> None:
    """Write the answers as a JUnit file: a test case per answer.

    A failed gate has a `failure`, an undecided one an `error`.

    Args:
        path: of the file.
        results: the answers.
        notes: what a reader has to know of all of them, such as that results are simulated.

    Raises:
        ConfigError: the file cannot be written.
    """
    statuses = [result.status for result in results]
    suite = ElementTree.Element(
        "testsuite",
        name="asyncbench",
        tests=str(len(results)),
        failures=str(statuses.count(GateStatus.FAILED)),
        errors=str(statuses.count(GateStatus.UNDECIDED)),
    )
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_writable(result.subject), name=_writable(result.gate)
        )
        if result.status in _ELEMENTS:
            ElementTree.SubElement(case, _ELEMENTS[result.status], message=_writable(result.sentence))
        ElementTree.SubElement(case, "system-out").text = _writable(result.line)
    if notes:
        ElementTree.SubElement(suite, "system-out").text = _writable("\n".join(notes))

    ElementTree.indent(suite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise ConfigError(
            f"--junit {path}: cannot be written ({error.strerror}). Name another file"
        ) from error


def _writable(text: str) -> str:
    """Return a text without the control characters that XML cannot hold."""
    return "".join(
        character if character.isprintable() or character == "\n" else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )
