"""Trials counted by columns: the same as one by one, in the same order, and no id where none is needed."""

import asyncio
from collections import Counter

import pyarrow as pa
import pytest

from asyncbench import generate, plan, run_sweep
from asyncbench.engine.stopping import cell_of
from asyncbench.planning.preflight import sets_in_folder
from asyncbench.planning.remaining_trials import Shape, remaining_by_model
from asyncbench.planning.trials import closed_trials, sources_by_model, trials_of
from asyncbench.problems.opening import open_set
from asyncbench.problems.schema import ProblemRows
from asyncbench.records import Cell, Problem
from asyncbench.run.summary import Exit
from asyncbench.store import id_set
from asyncbench.store.id_set import IdSet
from asyncbench.suites.requests import TrialIds, worded_size
from tests.sweep_files import entry, problem_set, simulator, sweep


@pytest.fixture
def matrix(tmp_path):
    """Two models, two sets of which one is worded by its suite, three conditions, two repeats."""
    nupa = generate("nupa", tmp_path / "nupa.parquet", per_length=2, tasks=["add", "sub"], lengths="1-4")
    sums = problem_set(tmp_path, trials=2)
    conditions = [
        {"name": "plain"},
        {"name": "spaced", "digits": ["spaced"], "suites": ["llm_arithmetic"]},
        {"name": "shots", "shots": 2, "suites": ["nupa"]},
    ]
    models = [{"model": "simulated-http/oracle", "alias": alias, "seed": n} for n, alias in enumerate("ab")]
    asked = sweep(tmp_path / "out", [sums, nupa.path], *models, conditions=conditions, repeats=2)
    places = {source.place: open_set(str(source.path)) for source in asked.problems}
    return asked, sources_by_model(asked, asked.models, places)


@pytest.mark.long
@pytest.mark.parametrize("limit", [None, 1, 37])
@pytest.mark.parametrize("every", [0, 2, 3, 1], ids=["fresh", "half", "a third", "complete"])
def test_trials_are_counted_as_one_by_one(matrix, limit, every):
    asked, sets = matrix
    trials = {
        model.alias: list(trials_of(asked, model, sets[model.alias], limit=limit)) for model in asked.models
    }
    ids = [trial.trial_id for some in trials.values() for trial in some]
    finished = frozenset(ids[::every]) if every else frozenset[str]()
    skipped = frozenset(ids[1::5]) if every else frozenset[str]()
    found = remaining_by_model(asked, asked.models, sets, limit=limit, finished=finished, skipped=skipped)
    for alias, some in trials.items():
        shapes, closed = Counter[Shape](), Counter[tuple[str, Cell]]()
        characters, longest = Counter[tuple[str, Cell]](), dict[str, tuple[int, Problem]]()
        for trial in some:
            if trial.trial_id in skipped:
                continue
            problem, (name, cell) = trial.problem, cell_of(trial)
            question, most = worded_size(problem, trial.condition)
            if trial.trial_id in finished:
                closed[name, cell] += 1
                characters[name, cell] += question
                continue
            shapes[Shape(cell, name, question, most, len(problem.expected))] += 1
            if name not in longest or question > longest[name][0]:
                longest[name] = question, problem
        left = found[alias]
        assert list(left.shapes.items()) == list(shapes.items())
        assert (left.finished, left.characters) == (closed, characters)
        assert {name: one.problem(i) for name, (one, i) in left.longest.items()} == {
            name: problem for name, (_, problem) in longest.items()
        }
        known = {one for column in left.ids.values() for one in column.to_pylist()}
        assert known == {trial.trial_id for trial in some} & (finished - skipped)


@pytest.mark.long
@pytest.mark.parametrize("limit", [None, 1, 37])
@pytest.mark.parametrize("every", [1, 2, 7])
def test_trials_that_are_closed_by_columns_are_those_that_are_skipped_one_by_one(matrix, limit, every):
    asked, sets = matrix
    ids = [
        one.trial_id
        for model in asked.models
        for one in trials_of(asked, model, sets[model.alias], limit=limit)
    ]
    finished, failed = IdSet.collect(ids[::every]), IdSet.collect(ids[:: 2 * every])
    closed = closed_trials(asked, asked.models, sets, limit=limit, finished=finished, failed=failed)
    assert sum(its.done for its in closed.values()) == len(finished)
    assert sum(its.failed for its in closed.values()) == len(failed)
    for model in asked.models:
        its = sets[model.alias]
        one_by_one = trials_of(asked, model, its, limit=limit, skip=finished.__contains__)
        by_columns = trials_of(asked, model, its, limit=limit, closed=closed[model.alias])
        assert list(by_columns) == list(one_by_one)


def test_no_id_is_made_where_nothing_is_finished(tmp_path, monkeypatch):
    asked = sweep(tmp_path / "out", problem_set(tmp_path), "simulated-http/oracle")
    monkeypatch.setattr(TrialIds, "make_all", None)
    assert plan(asked).models[0].left == plan(asked).models[0].trials > 0


def test_a_complete_sweep_is_recognised_with_one_id_a_trial_and_no_problem(tmp_path, monkeypatch):
    problems = problem_set(tmp_path, trials=1)
    with simulator(problems) as server:
        asked = sweep(tmp_path / "out", problems, entry(server, "simulated-http/oracle"))
        first = asyncio.run(run_sweep(asked))
        made, make_all = [], TrialIds.make_all

        def counted(self, problem_ids, **named):
            ids = make_all(self, problem_ids, **named)
            made.extend(ids)
            return ids

        monkeypatch.setattr(
            "asyncbench.run.preparing.write_forecast", lambda _: None
        )  # small sweeps have one
        monkeypatch.setattr(TrialIds, "make_all", counted)
        monkeypatch.setattr(ProblemRows, "problem", None)
        again = asyncio.run(run_sweep(asked))
    assert (first.exit, again.exit) == (Exit.COMPLETE, Exit.COMPLETE)
    (before,) = again.models.values()
    assert before.done_before == len(made) == len(set(made)) > 0


def test_a_copy_of_a_problem_set_is_written_again_only_if_it_is_damaged(tmp_path):
    asked = sweep(tmp_path / "out", problem_set(tmp_path, trials=1), "simulated-http/oracle")
    opened = {source.place: open_set(str(source.path)) for source in asked.problems}

    def copied():
        (sets,) = sets_in_folder(asked, asked.models, opened, asked.out).values()
        path = sets[0].problems.path
        return path, path.stat().st_ino, path.read_bytes()

    path, number, content = copied()
    assert copied() == (path, number, content)
    path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    assert copied()[2] == content
    path.write_bytes(content[:-100])
    assert copied()[2] == content


@pytest.mark.parametrize("least", [1, 3, 100])
def test_ids_are_looked_up_block_by_block(monkeypatch, least):
    monkeypatch.setattr(id_set, "LEAST", least)
    known = IdSet(pa.chunked_array([["a", "b"], [], ["c", "d", "e"]], pa.string()))
    asked = pa.chunked_array([["e", "x"], ["a", None, "c"]], pa.string())
    assert known.among(asked).to_pylist() == [True, False, True, False, True]
    assert known.places(asked).to_pylist() == [4, None, 0, None, 2]
    assert IdSet.collect(()).among(asked).to_pylist() == [False] * 5
    assert (known, len(known)) == ({"a", "b", "c", "d", "e"}, 5)
    assert known | {"e", "f"} == {"a", "b", "c", "d", "e", "f"}
    assert "c" in known
    assert "x" not in known


@pytest.mark.parametrize("least", [1, 100])
def test_ids_are_found_among_a_models_own_and_under_another_name(monkeypatch, least):
    monkeypatch.setattr(id_set, "LEAST", least)
    own = {"a": pa.chunked_array([["1"], ["2"]], pa.string()), "b": pa.chunked_array([["3"]], pa.string())}
    known = IdSet.join_models(own)
    asked: dict[str, list[str | None]] = {"a": ["2", "3", None], "renamed": ["1", "x"], "b": []}
    columns = [(alias, pa.chunked_array([ids], pa.string())) for alias, ids in asked.items()]
    found = [places.to_pylist() for places in known.places_each(columns)]
    assert found == [[1, 2, None], [0, None], []]
    assert known == {"1", "2", "3"}
    assert (known | {"4"}).places_each(columns)[0].to_pylist() == [1, 2, None]
