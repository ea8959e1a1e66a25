"""A regrade as a person or a script meets it."""

import pytest
from typer.testing import CliRunner

from asyncbench.cli import app
from asyncbench.errors import ConfigError
from asyncbench.problems.making import write_problems
from asyncbench.reports.regrading import regrade_report
from tests.upkeep.regrading.made import as_now, fill, right, sums


@pytest.fixture
def folder(tmp_path):
    fill(tmp_path, sums(1, 2), right, aliases=["a", "b"])
    return tmp_path


def asyncbench(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)


def test_it_shows_models_changes_examples_and_graders(folder):
    told = asyncbench("regrade", folder).stdout
    assert "4 stored trials were graded again, without a call. 4 outcomes change." in told
    for title in (
        "By model (all its conditions and runs together)",
        "Changed outcomes",
        "Examples",
        "All graders",
    ):
        assert title in told
    assert "no_answer → correct" in told
    assert "The sum is 11." in told
    assert "v0 → v1" in told
    assert f"`asyncbench regrade {folder} --write`" in told


@pytest.mark.long
def test_after_writing_there_is_nothing_to_write(folder):
    assert "The new grades were written." in asyncbench("regrade", folder, "--write").stdout
    told = asyncbench("regrade", folder).stdout
    assert "There is nothing to write" in told
    assert "Examples" not in told


def test_what_another_grader_changes_is_shown_when_asked_for(folder):
    told = regrade_report(folder, grader="legacy").as_text()
    assert "legacy" in told
    assert "4 outcomes change." in told


def test_an_unknown_grader_is_refused_before_anything_is_written(folder):
    with pytest.raises(
        ConfigError, match=r"--grader lenient: no suite has this grader. Choose one of: .*layered"
    ):
        regrade_report(folder, write=True, grader="lenient")
    assert "4 outcomes change." in regrade_report(folder).as_text()


def test_corrected_answers_and_missing_problems_are_said(tmp_path):
    one, two = sums(1, 2)
    fill(tmp_path, [one, two], right, graders=as_now)
    write_problems(sums(3), tmp_path / "problems" / "sums.parquet")
    told = regrade_report(tmp_path).as_text()
    assert "(problem set 'sums') keep their grades" in told
    assert "2 trials of" in told
