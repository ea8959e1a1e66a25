"""Answers that are mathematics: expressions, intervals, sets and equations, by Hugging Face's math-verify.

    1/2, 0.5, \\frac{2}{4}    x^2+2x+1, (x+1)^2    {1, 2}, {2, 1}    x > 3, (3, oo)

SymPy may compute for years: 9^{9^{9^9}}. So a worker process reads and compares, with limits on its time and
memory. The system ends it when it exceeds its time, and the next reply gets a new one. math-verify's own
limit is a signal that only a main thread can take.
"""

import atexit
import json
import os
import re
import signal
import subprocess
import sys
import unicodedata
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.records import Problem
from asyncbench.suites.judgement import Judgement, accepted_answers

LIMIT_S: Final = 5.0  # of CPU time, for one reply; time of CPU, so that a busy machine changes no grade
MOST_ALONE: Final = 300  # characters of a line that may be an expression alone
MEMORY: Final = 4_000_000_000  # bytes of addresses, for the process
_LATEX: Final = re.compile(r"\$|\\boxed|\\\(|\\\[")
_PLAIN_NUMBER: Final = re.compile(  # with a sign of percent or a unit of one word or more
    r"\s*[-+]?[$€£]?[0-9][0-9.,/ ]*(%|\\%|[^\W\d_][^\W_]{0,12}([ /*][^\W\d_]+)*)?\s*\.?\s*"
)
_HALVES: Final = re.compile("([0-9]*)([¼-¾⅐-⅞])")
_SIGNS: Final = str.maketrans(
    {"−": "-", "–": "-", "﹣": "-", "－": "-", "×": r"\times ", "·": r"\cdot ", "÷": "/", "π": r"\pi "}
    | {"∞": r"\infty ", "≤": r"\leq ", "≥": r"\geq ", "≠": r"\neq ", "∪": r"\cup ", "∩": r"\cap "}
    | {"∈": r"\in ", "°": r"^\circ "}
)
_NAMES: Final = re.compile(r"\\?\b(sqrt|pi|sin|cos|tan|log|ln|exp|infty|infinity|inf|oo|theta|alpha|beta)\b")
_WORD: Final = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_LEAD: Final = re.compile(r"^(?:so |thus |hence )?(?:the )?(?:final )?answer(?: is|:)\s*:?\s*", re.IGNORECASE)


def check_math(place: str) -> None:
    """Refuse to grade without math-verify.

    Raises:
        ConfigError: it is not installed.
    """
    if find_spec("math_verify") is None:
        raise ConfigError(f"{place}: grader 'math' needs the extra `math`: pip install 'asyncbench[math]'")


def equal_math(reply: str, problem: Problem) -> Judgement:
    """Return whether a reply is worth an accepted answer; the answer is what was read in it.

    Raises:
        RuntimeError: the worker process ends for another reason than its limit.
    """
    verdict = _worker().ask({"reply": reply, "accepted": accepted_answers(problem)})
    if verdict is None:
        return Judgement(correct=False, answer=None, reason="timed_out")
    return Judgement(correct=verdict["right"], answer=verdict["answer"])


def mathematics(text: str) -> str | None:
    """Return an expected value without spaces at its ends; None: it is words, in which nothing is to compute.

    It is not parsed: that takes a twentieth of a second, and a file may have many thousands.
    """
    is_words = _WORD.search(_NAMES.sub("", text)) and not re.search(r"[0-9\\^=<>+*/]", text)
    return None if is_words else text.strip()


class _Worker:
    """A process that grades, started when there is something to grade, and again after it was ended."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        atexit.register(self.close)

    def ask(self, question: dict[str, Any]) -> dict[str, Any] | None:  # Any: JSON
        """Return what the process answers; None: it was ended by its limit of time."""
        line = json.dumps(question) + "\n"
        with self._lock:
            for _ in range(2):  # another may have ended it in between
                answer = self._exchange(line)
                if answer:
                    verdict: dict[str, Any] = json.loads(answer)
                    return verdict
                if self._ended() == -signal.SIGPROF:
                    return None
            raise RuntimeError("the process that grades mathematics ended unexpectedly.")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._ended()

    def _exchange(self, line: str) -> str:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "asyncbench.suites.math_worker"],
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
        to, back = self._process.stdin, self._process.stdout
        assert to is not None  # noqa: S101  both are pipes
        assert back is not None  # noqa: S101
        try:
            to.write(line)
            to.flush()
        except BrokenPipeError:
            return ""
        return back.readline()

    def _ended(self) -> int:
        """Wait for the process, which has ended, and return its code."""
        assert self._process is not None  # noqa: S101  one was started
        process, self._process = self._process, None
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        return code


def _environment() -> dict[str, str]:
    """Return what the process has to know: where Python's modules are, and no key."""
    modules = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(filter(None, modules))}


@cache
def _worker() -> _Worker:
    return _Worker()


# ── what the worker process reads


def judged(reply: str, accepted: list[str]) -> dict[str, Any]:
    """Return what is read in a reply, and whether it is worth one of the accepted answers."""
    from math_verify import verify

    read = _parsed_reply(reply)
    right = any(
        bool(gold) and verify(gold, read, allow_set_relation_comp=True, timeout_seconds=None)
        for gold in map(_parsed, accepted)
    )
    return {"answer": str(read[-1]) if read else None, "right": right}


def _parsed(text: str) -> list[Any]:  # Any: expressions of SymPy, of which there are no types
    """Return what an expected value may mean: a plain number as it stands, anything else as LaTeX."""
    from math_verify import parse

    text = _plain_signs(text).strip()
    if not _LATEX.search(text) and not _PLAIN_NUMBER.fullmatch(text):
        text = f"${_as_latex(text)}$"
    read: list[Any] = parse(text, parsing_timeout=None)
    return read


def _parsed_reply(reply: str) -> list[Any]:
    """Return what is read in a reply: in a last line that is an expression alone, as in an expected value."""
    from math_verify import parse

    text = _plain_signs(reply)
    lines = [line for line in text.strip().splitlines() if line.strip()]
    last = _LEAD.sub("", lines[-1].strip(" *`")).rstrip(" .") if lines else ""
    if not _LATEX.search(text) and len(last) <= MOST_ALONE:
        if not _WORD.search(_NAMES.sub("", last)) and (found := _parsed(last)):
            return found
        if last.startswith("\\") and (found := parse(f"${last}$", parsing_timeout=None)):
            return list(found)
    read: list[Any] = parse(text, parsing_timeout=None)
    return read


def _plain_signs(text: str) -> str:
    """Return a text whose signs are those of LaTeX: 1½ as 1+1/2, – as -."""
    text = _HALVES.sub(lambda match: _as_fraction(match[1], match[2]), text)
    return text.translate(_SIGNS)


def _as_fraction(whole: str, part: str) -> str:
    over, under = unicodedata.normalize("NFKC", part).split("⁄")
    return f"{int(whole or 0) * int(under) + int(over)}/{under}"


def _as_latex(text: str) -> str:
    """Return an expression as it is typed, such as 2*sqrt(3), as LaTeX."""
    text = re.sub(r"\\?\bsqrt\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"√\(?([^\s()]+)\)?", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<!\\)\b(pi|sin|cos|tan|log|ln|exp|theta|alpha|beta)\b", r"\\\1 ", text)
    text = re.sub(r"(?<!\\)\b(?:infinity|infty|inf|oo)\b", r"\\infty ", text)
    text = re.sub(r"\*\*([^\s*{(]+)", r"^{\1}", text).replace("*", r"\cdot ")
    return re.sub(r"^\{(.*)\}$", r"\\{\1\\}", text)
