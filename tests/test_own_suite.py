"""A suite of one's own: a `Suite` in a file, or handed over, known by its definition."""

import asyncio
import json
import pickle
import shutil
from pathlib import Path

import pytest

import asyncbench as ab
from asyncbench.config.sweep import all_sources, load_sweep
from asyncbench.errors import ConfigError
from asyncbench.suites.own_suites import suite_named
from asyncbench.suites.table import SUITES
from tests.commands import asyncbench_here, succeeded
from tests.rows import each_row

MINE = """
from asyncbench.records import Draft, Grade, outcome_of
from asyncbench.suites import Suite

ROWS = 3

def drafts(seed, parameters):
    for n in range(seed, seed + ROWS):
        yield Draft(suite="doubling", task="double", representation="integer", length=1,
                    question=f"Double {n}.", expected=str(2 * n), answer_type="integer")

def graded(problem, reply, style):
    answer = None if reply is None else reply.text
    right = answer == problem.expected
    return (Grade(grader="plain", grader_version=1, headline=True, answer=answer, classification=None,
                  outcome=outcome_of(reply, answer=answer, exact_match=right), exact_match=right),)

DOUBLING = Suite(name="doubling", generator_version=1, prompt_version=1, graders=("plain",),
                 generate=drafts, grade=graded)
TAKEN = Suite(name="nupa", generator_version=1, prompt_version=1, graders=("plain",),
              generate=drafts, grade=graded)
NOTHING = Suite(name="nothing", generator_version=1, prompt_version=1, graders=("plain",),
                generate=None, grade=graded)
STRAY = Suite(name="stray", generator_version=1, prompt_version=1, graders=("plain",),
              generate=drafts, grade=graded)

def double(question):
    return str(2 * int(question.split()[1].rstrip(".")))
"""
SWEEP = "name: own\nproblems: [{suite: 'mine.py:DOUBLING', seed: 5}]\nmodels: ['mine.py:double']\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a suite, which is the working directory; what the test makes known is forgotten."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "own.yaml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SUITES, "_loaded", dict(SUITES._loaded))
    return tmp_path


@pytest.mark.usefixtures("folder")
@each_row(
    ("suite", "message"),
    [
        ("mine.py:DUBLING", "mine.py: it has no 'DUBLING'. Its suites: DOUBLING, TAKEN, NOTHING, STRAY"),
        ("mine.py:drafts", "'drafts' is no suite, but function. Its suites: DOUBLING"),
        ("mime.py:DOUBLING", "mime.py was not found"),
        ("mine.py:TAKEN", "the name 'nupa' is taken. Choose another in `Suite(name=…)`"),
        ("mine.py:NOTHING", "'NOTHING' makes no problems. Set `generate` of the suite"),
        ("session:doubling@0123456789ab", "'doubling' is of a Python session that has ended"),
    ],
)
def test_a_suite_that_cannot_be_used_is_refused_where_it_is_named(suite, message):
    with pytest.raises(ConfigError) as caught:
        load_sweep({"name": "x", "problems": [{"suite": suite}], "models": ["simulated/oracle"]})
    assert "problems[1]" in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.usefixtures("folder")
def test_a_suite_whose_problems_are_of_another_suite_is_refused():
    sweep = {"name": "x", "problems": [{"suite": "mine.py:STRAY"}], "models": ["simulated/oracle"]}
    with pytest.raises(ConfigError, match="its problems are of suite doubling"):
        ab.plan(sweep)


def test_two_suites_of_one_name_are_refused(folder):
    (folder / "other.py").write_text(MINE.replace("ROWS = 3", "ROWS = 4"))
    entries = [{"suite": "mine.py:DOUBLING"}, {"suite": "other.py:DOUBLING"}]
    with pytest.raises(ConfigError, match="are both called 'doubling'"):
        load_sweep({"name": "x", "problems": entries, "models": ["simulated/oracle"]})


def test_versions_are_those_of_what_the_suite_uses_in_its_file(folder):
    def versions() -> int:
        return suite_named("mine.py:DOUBLING", None, place="test").suite.generator_version

    before = versions()
    (folder / "mine.py").write_text(MINE.replace("def double(question)", "def double(asked)"))
    assert versions() == before
    (folder / "mine.py").write_text(MINE.replace("ROWS = 3", "ROWS = 4"))
    assert versions() != before


def test_a_suite_goes_to_another_machine_as_its_source(folder):
    sweep = pickle.dumps(all_sources(load_sweep("own.yaml")))
    (folder / "mine.py").unlink()
    SUITES._loaded.clear()
    (source,) = pickle.loads(sweep)  # noqa: S301  made above
    assert (source.name, source.suite) == ("DOUBLING", "doubling")
    assert "doubling" in SUITES


@pytest.mark.long
def test_a_sweep_of_a_suite_in_a_file_is_asked_resumed_changed_and_graded_again(folder, tmp_path_factory):
    done = succeeded(asyncbench_here("run", "own.yaml", cwd=folder))
    assert "3/3 done. Accuracy 100 %" in done.stdout
    plugins = json.loads((folder / "results/own/manifest.json").read_text())["plugins"]
    assert [(entry["name"], entry["package"]) for entry in plugins] == [("doubling", "mine.py")]

    # a later run asks what is new, and tells of older grades
    (folder / "mine.py").write_text(MINE.replace("ROWS = 3", "ROWS = 4"))
    done = succeeded(asyncbench_here("run", "own.yaml", cwd=folder))
    assert "4/4 done (1 this run)" in done.stdout
    assert "3 trials were graded by another version of plain" in done.stdout + done.stderr
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = succeeded(asyncbench_here("regrade", folder / "results/own", "--write", cwd=elsewhere))
    assert "doubling" in done.stdout

    # without the file, reports go on, and regrade says what it lacks
    shutil.move(folder / "mine.py", elsewhere / "mine.py")
    for command in ("report", "status"):
        assert "mine.py" not in succeeded(asyncbench_here(command, "results/own", cwd=folder)).stderr
    SUITES._loaded.clear()
    refused = asyncbench_here("regrade", "results/own", cwd=folder)
    assert refused.returncode == 2
    assert "mine.py was not found" in refused.stderr


@pytest.mark.long
def test_a_suite_that_a_program_hands_over_is_named_by_its_file_if_it_has_one(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    (folder / "handed_suite.py").write_text(MINE)
    import handed_suite  # type: ignore[import-not-found]  # it was written just now

    sweep = {"name": "handed", "problems": handed_suite.DOUBLING, "models": [handed_suite.double]}
    summary = asyncio.run(ab.run_sweep(sweep))
    assert summary.models["double"].done == 3
    assert f"suite: {folder / 'handed_suite.py'}:DOUBLING" in Path("results/handed/sweep.yaml").read_text()
