"""Recorded runs, graded again: what was imported today stands as it was graded."""

import json

import pytest

from asyncbench import regrade_folder
from tests.commands import asyncbench_here


@pytest.mark.long
def test_the_recorded_runs_are_graded_as_they_were_imported(imported):
    found = regrade_folder(imported)
    assert (found.trials, found.corrected, found.kept) == (17_153, 0, ())
    assert all(one.before == one.now for one in found.moves)
    assert [(one.grader, one.grades, one.changed) for one in found.graders] == [
        (grader, 17_153, 0) for grader in ("layered", "legacy", "strict")
    ]


@pytest.mark.long
def test_the_command_shows_the_grader_that_is_asked_for(imported):
    told = json.loads(asyncbench_here("regrade", imported, "--grader", "strict", "--json").stdout)
    assert {one["grader"] for one in told["moves"]} == {"strict"}
    assert sum(one["trials"] for one in told["moves"]) == 17_153
