"""Answers of another folder are taken over where the same was asked: nothing is paid twice."""

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest

from asyncbench import read_attempts, read_grades, read_trials
from asyncbench.analysis.counting import counted
from asyncbench.errors import ConfigError
from asyncbench.problems.making import write_problems
from asyncbench.problems.opening import open_set
from asyncbench.records import Outcome
from asyncbench.reports.overview import overview_of
from asyncbench.run.summary import Exit
from asyncbench.store.verify import verify_folder
from tests.commands import asyncbench, succeeded
from tests.sweep_files import Said, entry, outcomes, problem_set, run, simulator, sweep, sweep_file

PRICE = {"input": 2, "output": 10}
MODEL = "simulated-http/oracle"


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    return problem_set(tmp_path_factory.mktemp("sets"))


@pytest.fixture
def asking(tmp_path, server, problems):
    """Makes a sweep of one model, with a folder of its own, with these keys of its entry."""

    def make(out, **keys):
        return sweep(tmp_path / out, problems, entry(server, MODEL, price=PRICE, **keys), name=out)

    return make


@pytest.fixture
def requests(server):
    """Counts the requests since the test began."""
    before = server.stats()["requests"]
    return lambda: server.stats()["requests"] - before


def rows(out, *columns):
    return {row["trial_id"]: row for row in read_trials(out, ["trial_id", *columns]).to_pylist()}


# ── the same trial ───────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_what_another_folder_has_answered_is_not_asked_and_the_rest_is(asking, requests):
    one, two = asking("one"), asking("two")
    run(one, limit=100)
    screen = Said()
    summary = run(two, reuse=one.out, screen=screen)
    assert requests() == 144
    assert summary.exit is Exit.COMPLETE
    assert outcomes(two.out).items() >= outcomes(one.out).items()
    assert f"took over 100 answers from {one.out}" in screen.lines


@pytest.mark.long
def test_answers_of_several_folders_are_taken_over_in_order(tmp_path, asking, requests):
    run(asking("first"), limit=20)
    run(asking("second"), limit=50)
    assert requests() == 70
    summary = run(asking("third"), reuse=[tmp_path / "first", tmp_path / "second"])
    assert (summary.models[MODEL].done, requests()) == (144, 70 + 144 - 50)
    sources = Counter(row["reused_from"] for row in rows(tmp_path / "third", "reused_from").values())
    assert sources == {"first": 20, "second": 30, None: 94}


def test_a_row_taken_over_says_whose_it_is_and_is_the_same_otherwise(asking):
    one, two = asking("one"), asking("two")
    run(one, limit=20)
    run(two, limit=20, reuse=one.out)
    same = ("reply_text", "answer", "outcome", "output_tokens", "finish_reason", "model_served", "params")
    times = ("latency_s", "finished_at", "request_id")
    assert rows(two.out, *same, *times) == rows(one.out, *same, *times)
    assert {row["reused_from"] for row in rows(two.out, "reused_from").values()} == {"one"}
    assert {row["run"] for row in rows(two.out, "run").values()} == {"two"}
    assert {row["reused_from"] for row in rows(one.out, "reused_from").values()} == {None}


def test_the_first_to_ask_is_named_however_often_an_answer_is_taken_over(asking):
    one, two, three = asking("one"), asking("two"), asking("three")
    run(one, limit=5)
    run(two, limit=5, reuse=one.out)
    run(three, limit=5, reuse=two.out)
    assert {row["reused_from"] for row in rows(three.out, "reused_from").values()} == {"one"}


def test_what_was_taken_over_costs_nothing_here_and_has_no_call(asking):
    one, two = asking("one"), asking("two")
    run(one, limit=20)
    run(two, limit=30, reuse=one.out)
    taken = read_trials(two.out, ["trial_id", "cost_usd", "attempts", "price_source"], [("attempts", "=", 0)])
    assert len(taken) == 20
    assert set(taken["cost_usd"].to_pylist()) == {0.0}
    assert set(taken["price_source"].to_pylist()) == {"reused"}
    calls = read_attempts(two.out, ["trial_id", "cost_usd"]).to_pylist()
    assert len(calls) == 10
    paid = sum(row["cost_usd"] for row in rows(two.out, "cost_usd").values())
    assert paid == pytest.approx(sum(row["cost_usd"] for row in calls))
    assert verify_folder(two.out).sound


@pytest.mark.long
def test_answers_taken_over_are_graded_and_reported_like_any_other(asking):
    one, two = asking("one"), asking("two")
    run(one)
    run(two, reuse=one.out)
    assert len(read_grades(two.out)) == 3 * 144
    (line,) = counted(two.out, overview_of).suites
    assert (line.trials, line.accuracy, line.cost_usd) == (144, 1.0, 0.0)
    assert run(two).exit is Exit.COMPLETE


@pytest.mark.long
def test_only_complete_answers_are_taken_over(asking, problems, requests):
    one, two = asking("one", max_tokens=2), asking("two", max_tokens=2)
    run(one, limit=50)
    with simulator() as broken:  # which knows no question
        model = entry(broken, MODEL, max_tokens=2, price=PRICE, retry={"attempts": 1})
        run(sweep(one.out, problems, model, name="one"), limit=80)
    found = Counter(row["finish_reason"] for row in rows(one.out, "finish_reason").values())
    assert found[None] == 30, "no reply"
    assert found["length"] > 5
    before = requests()
    run(two, limit=80, reuse=one.out)
    assert requests() - before == found[None] + found["length"], "right or not, what was cut is not complete"


def test_another_parameter_is_another_trial(asking, requests):
    one, two = asking("one"), asking("two", temperature=0.5)
    run(one, limit=20)
    run(two, limit=20, reuse=one.out)
    assert requests() == 40


@pytest.mark.long
def test_what_is_answered_here_is_left_alone(asking, requests):
    one, two = asking("one"), asking("two")
    run(two, limit=20)
    run(one, limit=20)
    run(two, limit=20, reuse=one.out)
    assert requests() == 40
    assert {row["reused_from"] for row in rows(two.out, "reused_from").values()} == {None}


@pytest.mark.long
def test_what_is_to_be_asked_again_is_taken_over_with_what_was_spent_on_it_here(asking, problems, requests):
    one, two = asking("one"), asking("two")
    run(one, limit=10)
    with simulator() as broken:  # which knows no question
        model = entry(broken, MODEL, price=PRICE, retry={"attempts": 1})
        run(sweep(two.out, problems, model, name="two"), limit=10)
    run(two, limit=10, retry=[Outcome.FAILED], reuse=one.out)
    assert requests() == 10
    now = rows(two.out, "outcome", "attempts", "cost_usd", "reused_from").values()
    assert {tuple(row.values())[1:] for row in now} == {("correct", 1, 0.0, "one")}
    assert len(read_attempts(two.out)) == 10
    parts = [pq.read_table(path, partitioning=None) for path in (two.out / "trials").rglob("*.parquet")]
    assert sum(map(len, parts)) == 10


# ── asked with another max_tokens ────────────────────────────────────────────────────────────


@pytest.mark.long
def test_ignoring_max_tokens_takes_over_what_was_asked_with_less_or_none(asking, requests):
    one, two = asking("one", max_tokens=50), asking("two")
    run(one, limit=20)
    run(two, limit=20, reuse=one.out)
    assert requests() == 40, "not ignored, it makes another trial"
    run(asking("three", max_tokens=80), limit=20, reuse=one.out, ignore=["max_tokens"])
    run(asking("four", max_tokens=80), limit=20, reuse=two.out, ignore=["max_tokens"])
    run(asking("five"), limit=20, reuse=one.out, ignore=["max_tokens"])
    assert requests() == 40


def test_the_row_says_which_max_tokens_the_answer_was_given(asking):
    one, two = asking("one", max_tokens=50), asking("two", max_tokens=80)
    run(one, limit=5)
    run(two, limit=8, reuse=one.out, ignore=["max_tokens"])
    said = Counter(json.loads(row["params"])["max_tokens"] for row in rows(two.out, "params").values())
    assert said == {50: 5, 80: 3}
    assert run(two, limit=8).exit is Exit.COMPLETE


@pytest.mark.long
def test_an_answer_longer_than_the_new_max_tokens_is_not_taken_over(asking, requests):
    one, two = asking("one", max_tokens=50), asking("two", max_tokens=2)
    run(one)
    longer = sum(row["output_tokens"] > 2 for row in rows(one.out, "output_tokens").values())
    assert 20 < longer < 124
    run(two, reuse=one.out, ignore=["max_tokens"])
    assert requests() == 144 + longer


@pytest.mark.long
def test_an_answer_that_was_given_more_room_is_found_by_its_first_call(tmp_path, problems, server, requests):
    long = tmp_path / "long.parquet"
    write_problems((one for one in open_set(problems).read() if len(one.expected.rstrip("0.")) > 8), long)
    one, two = (
        sweep(tmp_path / name, long, entry(server, MODEL, max_tokens=tokens), name=name)
        for name, tokens in (("one", 2), ("two", 80))
    )
    run(one)
    run(one, retry=[Outcome.TRUNCATED], max_tokens=50)
    assert {row["params"] for row in rows(one.out, "params").values()} == {'{"max_tokens":50}'}
    before = requests()
    run(two, reuse=one.out, ignore=["max_tokens"])
    assert requests() == before
    assert set(outcomes(two.out).values()) == {"correct"}


# ── refused ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        pytest.param({"reuse": "nowhere"}, "nowhere does not exist", id="no folder"),
        pytest.param({"reuse": "two"}, "two is the sweep's own folder", id="its own"),
        pytest.param({"ignore": ["max_tokens"]}, "--ignore needs --reuse", id="ignored by itself"),
        pytest.param(
            {"reuse": "one", "ignore": ["seed"]}, "--ignore seed: only max_tokens can be ignored", id="seed"
        ),
    ],
)
def test_what_cannot_be_reused_is_refused_with_the_way_out(tmp_path, asking, given, complaint):
    for out in ("one", "two"):
        run(asking(out), limit=1)
    if "reuse" in given:
        given = given | {"reuse": tmp_path / given["reuse"]}
    with pytest.raises(ConfigError, match=complaint):
        run(asking("two"), **given)


# ── as a person types it ─────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_the_command_line_gives_more_room_and_takes_over(tmp_path, server, problems, requests):
    first = sweep_file(tmp_path, problems, entry(server, MODEL, max_tokens=1))
    for more in ((), ("--retry", "truncated", "--max-tokens", 50)):
        assert asyncbench("run", first, "--limit", 30, "--quiet", *more).returncode == 0
    (tmp_path / "later").mkdir()
    second = sweep_file(tmp_path / "later", problems, entry(server, MODEL, max_tokens=80))
    before, reuse = requests(), ("--reuse", tmp_path / "out", "--ignore", "max_tokens")
    done = succeeded(asyncbench("run", second, "--limit", 30, *reuse))
    assert requests() == before
    assert f"took over 30 answers from {tmp_path / 'out'}" in done.stderr
    assert set(outcomes(tmp_path / "later" / "out").values()) == {"correct"}
