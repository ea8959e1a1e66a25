"""Answers that are mathematics: expressions, intervals, sets and equations, by Hugging Face's math-verify.

    1/2, 0.5, \\frac{2}{4}    x^2+2x+1, (x+1)^2    {1, 2}, {2, 1}    x > 3, (3, oo)    500 cm, 5 m

SymPy may compute for years: 9^{9^{9^9}}. So a process reads and compares, which can be ended.
"""

import re
from functools import cache
from importlib.util import find_spec
from typing import Final

from asyncbench.errors import ConfigError
from asyncbench.records import Problem
from asyncbench.suites.grading_process import GradingProcess
from asyncbench.suites.judgement import Judgement

MOST_CHECKED: Final = 200  # expected values that are read before anything is asked, in a process
MOST_UNENDING: Final = 3  # of them, each of which takes its whole time
NAMES: Final = re.compile(r"\\?\b(sqrt|pi|sin|cos|tan|log|ln|exp|infty|infinity|inf|oo|theta|alpha|beta)\b")
WORD: Final = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")


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
        RuntimeError: the process ends for another reason than its limit.
    """
    verdict = _process().ask("judged", reply=reply, accepted=problem.accepted)
    if verdict is None:
        return Judgement(correct=False, answer=None, reason="timed_out")
    return Judgement(correct=verdict.get("right", False), answer=verdict.get("answer"))


def mathematics(text: str) -> str | None:
    """Return an expected value without spaces at its ends, or None if there is nothing to compute.

    The first `MOST_CHECKED` values are read as a reply is. The words of later ones are looked at: reading
    takes a twentieth of a second, and a file may have many thousands.

    Raises:
        ValueError: it takes too long to compute.
    """
    text = text.strip()
    if WORD.search(NAMES.sub("", text)) and not re.search(r"[0-9\\^=<>+*/]", text):
        return None
    if not text:
        return text
    if text not in _checked:
        if len(_checked) >= MOST_CHECKED or [*_checked.values()].count(None) >= MOST_UNENDING:
            return text
        verdict = _process().ask("is_read", expected=text)
        _checked[text] = None if verdict is None else verdict.get("read", False)
    is_read = _checked[text]
    if is_read is None:
        raise ValueError("it takes too long to compute")
    return text if is_read else None


_checked: Final = dict[str, bool | None]()  # whether a text can be read; None: computing it does not end


@cache
def _process() -> GradingProcess:
    return GradingProcess("asyncbench.suites.math_reading")
