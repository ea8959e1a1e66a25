"""A grader of one's own: a function in a file, named with its source, whose faults lose no reply."""

import asyncio
import json
import pickle
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.problems.opening import open_set
from asyncbench.problems.row_graders import used_grader
from asyncbench.records import Outcome, Reply
from asyncbench.suites.table import SUITES
from tests.commands import asyncbench_here, succeeded
from tests.processes import HANG_S
from tests.tiers import first_rows

CSV = "question,expected\n1/2 + 1/4?,3/4\n1/2 + 1/2?,2/2\n"
SAME = """
from fractions import Fraction

def same(reply, problem):
    last = reply.split()[-1]
    right = Fraction(last) == Fraction(problem.expected)
    return {"correct": right, "answer": last, "format_ok": reply == last}
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with a problem file and a grader, which is not the working directory."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "own.csv").write_text(CSV)
    (folder / "mine.py").write_text(SAME)
    (folder / "own.yaml").write_text(
        "name: own\nproblems: [{path: own.csv, suite: custom, grader: 'mine:same'}]\n"
        f"models: [simulated/oracle]\nout: {folder / 'out'}\n"
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return folder


def run(home: Path):
    return asyncio.run(ab.run_sweep(home / "own.yaml"))


def grades(home: Path) -> list[dict[str, Any]]:
    return ab.read_grades(home / "out").to_pylist()


def digest(home: Path) -> str:
    return sha256((home / "mine.py").read_bytes()).hexdigest()


@pytest.mark.long
def test_results_name_the_grader_and_its_source(home):
    succeeded(asyncbench_here("run", home / "own.yaml"))
    version = int(digest(home)[:7], 16)
    names = ("grader", "grader_version", "headline", "outcome", "format_ok", "classification")
    rows = [tuple(row[name] for name in names) for row in grades(home)]

    assert rows == [("mine:same", version, True, "correct", True, "correct")] * 2
    assert json.loads((home / "out" / "manifest.json").read_text())["graders"] == {"mine:same": digest(home)}
    assert f"mine:same v{version}" in ab.report(home / "out").as_text(width=200)
    again = asyncbench_here("regrade", home / "out", "--grader", "mine:same")
    assert (again.returncode, "No outcome changes" in again.stdout) == (0, True), again.stderr


def test_a_function_goes_to_another_process_with_its_source(home):
    """A worker on another machine has no such file."""
    grader = used_grader("mine:same", home / "own.yaml", place="problems")
    (home / "mine.py").unlink()
    there = (
        "import pickle, sys; own = pickle.load(sys.stdin.buffer); "
        "print(own.name, own.digest, own.call('it is 3/4', type('P', (), {'expected': '6/8'}))['correct'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", there], input=pickle.dumps(grader), capture_output=True, check=True
    )
    digest = sha256(SAME.encode()).hexdigest()
    assert done.stdout.decode().split() == ["mine:same", digest, "True"]


@pytest.mark.long
def test_regrade_uses_the_function_as_it_is_now(home):
    run(home)
    (home / "mine.py").write_text("def same(reply, problem):\n    return '3' in reply\n")
    before = int(sha256(SAME.encode()).hexdigest()[:7], 16), int(digest(home)[:7], 16)
    found = ab.regrade_folder(home / "out", write=True)

    assert [(one.grader, one.version_before, one.version) for one in found.graders] == [
        ("mine:same", *before)
    ]
    assert sorted((row["outcome"], row["answer"]) for row in grades(home)) == [
        ("correct", "3/4"),
        ("wrong", "2/2"),
    ]
    assert run(home).models["simulated/oracle"].attempts == 0  # nothing is asked again
    assert ab.regrade_folder(home / "out").graders[0].changed == 0


@pytest.mark.long
def test_a_run_says_how_many_grades_are_of_another_version_and_keeps_all_digests(home):
    def begun() -> tuple[list[str], dict[str, Any]]:
        said = succeeded(asyncbench_here("run", home / "own.yaml"))
        words = " ".join((said.stdout + said.stderr).split())
        return re.findall(r"\S+ trials were graded by .*? --write", words), json.loads(
            (home / "out" / "manifest.json").read_text()
        )

    said, manifest = begun()
    first = digest(home)
    assert (said, "earlier_graders" in manifest) == ([], False)
    (home / "mine.py").write_text("def same(reply, problem):\n    return '3' in reply\n")
    said, manifest = begun()
    again = f"asyncbench regrade {home / 'out'} --write"
    note = f"2 trials were graded by another version of mine.py. Grade them again: {again}"
    assert [one.replace("`", "") for one in said] == [note] * 2  # at its beginning, and on its last screen
    assert manifest["graders"] == {"mine:same": digest(home)}
    assert manifest["earlier_graders"] == {"mine:same": [first]}
    ab.regrade_folder(home / "out", write=True)
    said, manifest = begun()
    assert (said, manifest["earlier_graders"]) == ([], {"mine:same": [first]})


def test_the_fault_of_a_function_loses_no_reply_which_can_be_graded_later(home):
    (home / "mine.py").write_text(SAME.replace("last = ", "last = 1 / 0, "))
    summary = run(home)

    assert {(row["grader"], row["reason"], *row["flags"]) for row in grades(home)} == {
        ("mine:same", "grader_error", "ZeroDivisionError")
    }
    assert "grader is corrected, grade these replies: asyncbench regrade" in summary.as_text()
    assert "ZeroDivisionError" in (home / "out" / "faults.txt").read_text()
    (home / "mine.py").write_text(SAME)
    ab.regrade_folder(home / "out", write=True)
    assert {row["outcome"] for row in ab.read_trials(home / "out").to_pylist()} == {"correct"}


def test_beside_the_sweep_file_comes_before_the_working_directory_and_no_other_place(home, monkeypatch):
    opened = {}
    for folder, word in ((home, "beside"), (Path.cwd(), "here")):
        (folder / "both.py").write_text(f"def f(reply, problem):\n    return reply == {word!r}\n")
    for near in (home / "own.yaml", None):
        (problem, _) = open_set(home / "own.csv", suite="custom", grader="both:f", near=near).read()
        graded = {
            word: SUITES["custom"].grade(problem, Reply(text=word), "chat")[0] for word in ("beside", "here")
        }
        opened[near] = [word for word, grade in graded.items() if grade.exact_match]
    assert opened == {home / "own.yaml": ["beside"], None: ["here"]}

    (home / "lib").mkdir()
    shutil.move(home / "both.py", home / "lib" / "hidden.py")
    monkeypatch.syspath_prepend(home / "lib")  # importable, but nobody said so
    with pytest.raises(ConfigError, match=r"hidden\.py was not found\. asyncbench looked in"):
        open_set(home / "own.csv", suite="custom", grader="hidden:f", near=home / "own.yaml")


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (None, r"mine\.py was not found\. asyncbench looked in .*Put the file beside the sweep file"),
        ("def other(reply, problem): ...", "it has no function 'same'. Define `def same"),
        ("same = 3", "it has no function 'same'"),
        ("def same(reply): ...", "'same' takes other arguments. Define `def same"),
        ("def same(a, b, c): ...", "'same' takes other arguments"),
        ("async def same(reply, problem): ...", "'same' is asynchronous. Define it without `async`"),
        ("import no_such_package", "cannot be imported: ModuleNotFoundError: No module named 'no_such_pa"),
        ("def same(:", "cannot be imported: SyntaxError: "),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
    ],
)
def test_a_function_that_cannot_be_used_is_refused_before_the_first_call(source, complaint, home):
    (home / "mine.py").unlink()
    if source is not None:
        (home / "mine.py").write_text(source)
    with pytest.raises(ConfigError, match=f"own.csv: grader 'mine:same': .*{complaint}"):
        run(home)
    with pytest.raises(ConfigError, match=complaint):
        ab.plan(home / "own.yaml")
    assert not (home / "out").exists()


def graded(home: Path, returned: str, text: str = " 3/4 \n"):
    (home / "mine.py").write_text(f"def same(reply, problem):\n    return {returned}\n")
    problem = next(open_set(home / "own.csv", suite="custom", grader=f"{home / 'mine.py'}:same").read())
    (one,) = SUITES["custom"].grade(problem, Reply(text=text), "chat")
    return one


@pytest.mark.parametrize(
    ("returned", "outcome", "answer", "format_ok"),
    [
        ("True", Outcome.CORRECT, "3/4", None),
        ("False", Outcome.WRONG, "3/4", None),
        ("reply.strip() == problem.expected", Outcome.CORRECT, "3/4", None),
        ("{'correct': False, 'answer': None}", Outcome.NO_ANSWER, None, None),
        ("{'correct': False, 'format_ok': False}", Outcome.WRONG, "3/4", False),
        ("{'correct': True, 'answer': '0.75', 'format_ok': True}", Outcome.CORRECT, "0.75", True),
    ],
)
def test_a_verdict_becomes_a_grade(returned, outcome, answer, format_ok, home):
    one = graded(home, returned)
    assert (one.outcome, one.answer, one.format_ok) == (outcome, answer, format_ok)
    assert one.exact_match == (outcome is Outcome.CORRECT)


@pytest.mark.parametrize(
    "returned", ["None", "7", "'correct'", "{}", "{'correct': 1}", "{'correct': True, 'score': 2}"]
)
def test_anything_else_is_a_fault_that_says_what_to_return(returned, home):
    with pytest.raises(TypeError, match=r"mine:same returned .*Return True, False, a score"):
        graded(home, returned)


def test_a_reply_without_text_is_not_given_to_the_function(home):
    one = graded(home, "1 / 0", text=" ")
    assert (one.outcome, one.reason) == (Outcome.NO_ANSWER, "empty")


@pytest.mark.long
@pytest.mark.parametrize(
    "raised", first_rows(1, ["SystemExit(0)", "KeyboardInterrupt", "asyncio.CancelledError"])
)
def test_a_function_that_would_end_the_process_is_a_fault_like_any_other(raised, home):
    (home / "mine.py").write_text(f"import asyncio\ndef same(reply, problem):\n    raise {raised}\n")
    inspected = asyncbench_here("problems", "inspect", home / "own.csv", "--grader", f"{home}/mine.py:same")
    done = asyncbench_here("run", home / "own.yaml")

    assert "Traceback" not in inspected.stderr
    assert "own.csv" in inspected.stdout
    assert [(row["grader"], row["reason"]) for row in grades(home)] == [("mine:same", "grader_error")] * 2
    assert "asyncbench regrade" in done.stdout
    assert f"mine:same raised {raised.split('.')[-1].split('(')[0]}" in (home / "out/faults.txt").read_text()


UNTIL_TOLD = """
import time
from pathlib import Path

here = Path(__file__).parent

def same(reply, problem):
    (here / "begun").touch()
    while not (here / "go").exists():
        time.sleep(0.001)
    return True
"""


def test_other_work_goes_on_while_a_function_takes_its_time(home):
    (home / "mine.py").write_text(UNTIL_TOLD)

    async def run_and_tell():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(ab.run_sweep(home / "own.yaml"))
            while not (home / "begun").exists():  # noqa: ASYNC110  the grader is in another thread
                await asyncio.sleep(0.001)
            (home / "go").touch()  # on the same event loop

    asyncio.run(run_and_tell())
    assert [row["outcome"] for row in grades(home)] == ["correct"] * 2


@pytest.mark.long
@pytest.mark.parametrize("endless", ["while True: pass", "time.sleep(3600)"])
def test_a_function_that_never_ends_holds_up_neither_the_run_nor_its_end(endless, home):
    (home / "mine.py").write_text(f"import time\ndef same(reply, problem):\n    {endless}\n")
    program = (
        "import asyncio, sys, threading, time\nimport asyncbench as ab\n"
        "from asyncbench.suites import own_graders\nown_graders.TIME_LIMIT_S = 0.05\n"
        "asyncio.run(ab.run_sweep(sys.argv[1]))\n"
        "spins = [t for t in threading.enumerate() if t.name == 'mine:same']\n"
        "[t.join(5) for t in spins if 'pass' in sys.argv[2]]\n"
        "print(sum(t.is_alive() for t in spins))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, home / "own.yaml", endless],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("0\n" if "pass" in endless else "2\n")  # what only sleeps is left behind
    assert {(row["reason"], *row["flags"]) for row in grades(home)} == {("grader_error", "TimeoutError")}
    assert "mine:same took more than 0.05 s for one reply" in (home / "out" / "faults.txt").read_text()
