"""The grader `math`: what is worth the same, in threads, and with expressions that never end."""

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import psutil
import pytest

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.records import Outcome, Reply
from asyncbench.suites import math_match
from asyncbench.suites.custom import check_custom, check_expected, grade
from tests.suites.made import problem

pytestmark = pytest.mark.long  # each session starts a process that loads SymPy
needs_math = pytest.mark.skipif(find_spec("math_verify") is None, reason="the extra `math` is not installed")
ENDLESS = "$9^{9^{9^{9}}}$"


def graded(reply: str, *accepted: str):
    extra = json.dumps({"grader": "math", "accepted": list(accepted)})
    return grade(problem("custom", accepted[0], extra=extra), Reply(text=reply))[0]


EQUAL = [
    ("0.5", "1/2"),
    (r"The answer is $\boxed{\frac{2}{4}}$.", "1/2"),
    ("½", "0.5"),
    ("1½", "3/2"),
    ("–5", "-5"),
    ("1,000", "1000"),
    ("10%", "0.1"),
    ("42 km", "42"),
    ("x = 12", "12"),
    ("I think it is 12", "12"),
    ("The answer is 2*sqrt(2).", "sqrt(8)"),
    (r"$\sqrt{8}$", "2*sqrt(2)"),
    ("√2", r"\sqrt2"),
    ("2**3", "8"),
    ("pi/2", r"\frac{\pi}{2}"),
    ("(x+1)^2", "x^2+2x+1"),
    ("[0, 1)", "[0,1)"),
    ("{3,2,1}", "{1,2,3}"),
    ("x > 3", r"(3,\infty)"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
    ("5", "5 cm"),
    ("5 centimeters", "5 cm"),
    (r"The area is $\boxed{5\text{ cm}^2}$, as 1 + 4 = 5.", "5 cm^2"),
    ("It is 5 cm².", "5 cm^2"),
    ("It is 5 cm^2.", "5"),
    ("500 cm", "5 m"),
    (r"$10\,\mathrm{m/s}$", "36 km/h"),
    ("5 pears", "5 apples"),
    ("5m", "5*m"),
    ("x^2 - 1", "x**2-1"),
    ("x^(2)", "x**(2)"),
    ("3e5", "300000"),
    ("0.003333", "1/300"),
]
APART = [
    ("2", "2*sqrt(2)"),
    ("2*sqrt(2)", "2"),
    ("0.33", "1/3"),
    ("$(0,1)$", "[0,1)"),
    ("{1,2}", "{1,2,3}"),
    ("x^2+2x", "x^2+2x+1"),
    ("$2^{10000000}$", "3"),
    ("5 cm", "5 m"),
    (r"\boxed{5\text{ m}}", "5 cm"),
    ("5 m^2", "5 m"),
    ("20 °C", "20 °F"),
    ("It takes 5 s.", "5 min"),
    ("2e-7", "1e-7"),
    (r"$\frac{1}{2004!}$", r"$\frac{1}{2006!}$"),
]


@needs_math
@pytest.mark.parametrize(("reply", "expected"), EQUAL)
def test_what_is_worth_the_same_is_right(reply, expected):
    assert graded(reply, expected).outcome == Outcome.CORRECT


@needs_math
@pytest.mark.parametrize(("reply", "expected"), APART)
def test_what_is_not_is_wrong(reply, expected):
    assert graded(reply, expected).outcome == Outcome.WRONG


@needs_math
def test_a_reply_without_mathematics_has_no_answer_and_several_may_be_accepted():
    assert graded("Sorry, I cannot.", "12").outcome == Outcome.NO_ANSWER
    assert graded("0.25", "1/2", "1/4").outcome == Outcome.CORRECT


@needs_math
def test_threads_share_one_process_which_is_replaced_when_an_expression_never_ends():
    earlier = psutil.Process().children()
    with ThreadPoolExecutor(4) as threads:
        grades = list(threads.map(graded, [ENDLESS, "0.5", "0.5", "1/2", ENDLESS, "2/4"], ["1/2"] * 6))
    assert [(each.outcome, each.reason) for each in grades if each.reason] == [
        (Outcome.NO_ANSWER, "timed_out")
    ] * 2
    assert [each.outcome for each in grades].count(Outcome.CORRECT) == 4
    now = [child for child in psutil.Process().children() if child not in earlier]
    assert [child.cmdline()[-1] for child in now] == ["asyncbench.suites.math_reading"]


ASKING = """
from asyncbench.suites.math_match import _process
process = _process()
process.ask("judged", reply="1", accepted=["1"])
print(process._process.pid, flush=True)
"""


@needs_math
@pytest.mark.parametrize("end", [None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_behind_however_python_ends(end):
    ask = f'process.ask("judged", reply={ENDLESS!r}, accepted=["1"])' if end else ""
    python = subprocess.Popen(
        [sys.executable, "-c", ASKING + ask],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert python.stdout
    worker = psutil.Process(int(python.stdout.readline()))
    if end:
        python.send_signal(end)
    python.wait()
    python.stdout.close()
    psutil.wait_procs([worker], timeout=60)
    assert not worker.is_running()


@needs_math
def test_an_expected_value_must_be_mathematics():
    for expected in ("Paris", "hello world", "", "(a, b", "x = ", "^"):
        with pytest.raises(ProblemSetError, match="finds no answer"):
            check_expected("math", expected, place="here")
    for expected in ("[0,1)", "x", "sqrt(2)", "pi", r"\infty", "5 apples", "(a, b)", "5 cm"):
        check_expected("math", expected, place="here")


def test_without_the_extra_it_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(math_match, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"pip install 'asyncbench\[math\]'"):
        check_custom("math", place="here")


@needs_math
def test_reading_expected_values_is_bounded(monkeypatch):
    monkeypatch.setattr(math_match, "_checked", {})
    monkeypatch.setattr(math_match, "MOST_CHECKED", 2)
    monkeypatch.setattr(math_match, "MOST_UNENDING", 1)
    with pytest.raises(ProblemSetError, match="takes too long to compute"):
        check_expected("math", ENDLESS, place="here")
    check_expected("math", "(a, b", place="here")  # no longer read
    assert list(math_match._checked) == [ENDLESS]
