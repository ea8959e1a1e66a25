"""A sweep run again: what is new is asked, what is there stays, a new answer replaces the earlier."""

import asyncio
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from asyncbench import read_attempts, read_grades, read_trials, regrade_folder, run_sweep, status
from asyncbench.errors import ConfigError
from asyncbench.planning.trials import trial_sources, trials_of
from asyncbench.problems.making import write_problems
from asyncbench.problems.opening import open_set
from asyncbench.records import Attempt, Ended, Outcome, Reply, Sent
from asyncbench.run.summary import Exit
from asyncbench.store.folder import Store
from asyncbench.store.verify import verify_folder
from tests.providers.raw_server import answering, raw_server
from tests.sweep_files import Said, calls, entry, outcomes, problem_set, run, simulator, sweep

PRICE = {"input": 2, "output": 10}
APIS = [
    pytest.param("simulated/oracle", {"api": "chat"}, id="chat"),
    pytest.param("simulated/oracle", {"api": "completions"}, id="completions"),
    pytest.param("simulated/oracle", {"api": "responses"}, id="responses"),
    pytest.param("simulated-anthropic/oracle", {}, id="messages"),
    pytest.param("simulated-http/oracle", {}, id="over plain http"),
    pytest.param("simulated/oracle", {"api": "chat", "stream": True}, id="streamed"),
]


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """A problem set, and one with the same problems and 72 more."""
    folder = tmp_path_factory.mktemp("sets")
    return problem_set(folder), problem_set(folder, name="more", trials=3)


@pytest.fixture(scope="module")
def server(sets):
    with simulator(*sets) as found:
        yield found


@pytest.fixture
def problems(tmp_path, sets):
    return Path(shutil.copy(sets[0], tmp_path))


def rows(out, *columns):
    return {row["trial_id"]: row for row in read_trials(out, ["trial_id", *columns]).to_pylist()}


# ── a sweep that changed ─────────────────────────────────────────────────────────────────────


def cost_of(out):
    """Every dollar of a folder, by its attempts."""
    return pc.sum(read_attempts(out)["cost_usd"]).as_py()


@pytest.mark.long
def test_changed_parameters_make_new_trials_and_leave_the_old(tmp_path, server, problems):
    out = tmp_path / "out"
    run(sweep(out, problems, entry(server, "simulated/oracle")))
    old = rows(out, "params", "finished_at")
    run(sweep(out, problems, entry(server, "simulated/oracle", temperature=0.5)))
    now = rows(out, "params", "finished_at")
    assert {one: now[one] for one in old} == old
    assert {row["params"] for one, row in now.items() if one not in old} == {'{"temperature":0.5}'}
    assert len(now) == 288


def test_a_model_with_a_new_alias_keeps_its_answers_and_is_counted_once(tmp_path, server, problems):
    out, said = tmp_path / "out", Said()
    run(
        sweep(out, problems, entry(server, "simulated/oracle", alias="old"), entry(server, "simulated/noisy"))
    )
    renamed = [entry(server, "simulated/oracle", alias="new"), entry(server, "simulated/noisy-2")]
    summary = run(sweep(out, problems, *renamed), screen=said)
    assert [(one.done, one.attempts) for one in summary.models.values()] == [(144, 0), (144, 144)]
    assert "new: the folder has all its trials under another alias. Reports keep that name." in said.lines
    counts = {one.model: (one.planned, one.done) for one in status(out).models}
    assert counts == dict.fromkeys(("old", "simulated/noisy", "simulated/noisy-2"), (144, 144))


def test_a_changed_question_is_new_work(tmp_path, server, problems):
    out, model, made = tmp_path / "out", entry(server, "simulated/oracle"), list(open_set(problems).read())
    before = calls(server)
    for first in (made[0], made[9]):
        problems.unlink()
        write_problems([first, *made[1:5]], problems)
        run(sweep(out, problems, model))
    assert calls(server) - before == 5 + 1
    assert len(outcomes(out)) == 6


def corrected_set(path):
    """Write the same questions with another answer to the first five."""
    made = list(open_set(path).read())
    path.unlink()
    write_problems([replace(one, expected="7") for one in made[:5]] + made[5:], path)


@pytest.mark.long
def test_changed_answers_ask_nothing_and_point_to_regrade(tmp_path, server, problems):
    out, model, screen = tmp_path / "out", entry(server, "simulated/oracle"), Said()
    run(sweep(out, problems, model), screen=screen)
    assert not any("regrade" in one for one in screen.lines)
    corrected_set(problems)
    before = calls(server)
    run(sweep(out, problems, model), screen=screen)
    assert calls(server) == before
    (told,) = (one for one in screen.lines if "regrade" in one)
    assert told.startswith("the expected answers of 5 finished trials have changed.")
    assert f"`asyncbench regrade {out}`" in told
    regrade_folder(out, write=True)
    run(sweep(out, problems, model), screen=(later := Said()))
    assert not any("regrade" in one for one in later.lines)
    assert Counter(outcomes(out).values()) == {"correct": 139, "wrong": 5}


# ── recognising what is finished ─────────────────────────────────────────────────────────────


def test_a_problem_whose_trials_are_finished_is_not_even_made(tmp_path, problems, monkeypatch):
    asked = sweep(tmp_path / "out", problems, "simulated/oracle")
    sets = trial_sources([open_set(problems)])
    every = list(trials_of(asked, asked.models[0], sets, limit=None))
    left = {every[3].trial_id, every[140].trial_id}
    told = []

    def finished(trial_id):
        told.append(trial_id)
        return trial_id not in left

    found = list(trials_of(asked, asked.models[0], sets, limit=None, skip=finished))
    assert found == [every[3], every[140]]
    assert told == [one.trial_id for one in every], "each is asked about once, in order"
    with monkeypatch.context() as patched:
        patched.setattr("asyncbench.problems.schema.ProblemRows.problem", None)
        assert not list(trials_of(asked, asked.models[0], sets, limit=None, skip=lambda _: True))


@pytest.mark.long
def test_what_was_suspended_is_asked_by_a_plain_run(tmp_path, problems):
    out = tmp_path / "out"
    with simulator(problems, keys=("right",)) as server:
        asked = sweep(out, problems, entry(server, "simulated/oracle", key_env="KEY", concurrency=3))
        suspended = run(asked, env={"KEY": "wrong-key"})
        assert suspended.exit is Exit.UNFINISHED
        assert outcomes(out) == {}
        assert run(asked, env={"KEY": "right"}).exit is Exit.COMPLETE
    assert set(outcomes(out).values()) == {"correct"}
    made = read_attempts(out, ["trial_id", "status", "attempt"]).to_pylist()
    refused = {row["trial_id"] for row in made if row["status"] == "auth"}
    assert {row["attempt"] for row in made if row["trial_id"] in refused and row["status"] == "ok"} == {2}


# ── asked again ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cut(tmp_path, server, problems):
    """A folder in which some replies were cut at two tokens, and the sweep that did it."""
    asked = sweep(tmp_path / "out", problems, entry(server, "simulated/oracle", max_tokens=2, price=PRICE))
    run(asked)
    found = [one for one, outcome in outcomes(asked.out).items() if outcome == "truncated"]
    assert 20 < len(found) < 124
    return asked, frozenset(found)


def answered(text, finish_reason):
    return {"choices": [{"message": {"content": text}, "finish_reason": finish_reason}]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("outcome", "body"),
    [
        ("no_answer", answered("I would rather not guess.", "stop")),
        ("refused", answered("I cannot help with that.", "content_filter")),
        ("truncated", answered("Let me think", "length")),
    ],
)
def test_what_ended_so_is_asked_again_when_told_and_nothing_else_is(
    tmp_path, server, problems, outcome, body
):
    out = tmp_path / "out"

    async def first():
        async with raw_server() as odd:
            odd.manner = answering(body=body)
            model = {"model": "simulated-http/oracle", "base_url": f"{odd.url}/v1"}
            await run_sweep(sweep(out, problems, model), limit=3)

    asyncio.run(first())
    assert set(outcomes(out).values()) == {outcome}
    before, asked = calls(server), sweep(out, problems, entry(server, "simulated-http/oracle"))
    others = {Outcome.FAILED, Outcome.NO_ANSWER, Outcome.REFUSED, Outcome.TRUNCATED} - {outcome}
    run(asked, retry=others, limit=5)
    assert calls(server) - before == 2, "only what was never asked"
    run(asked, retry=[Outcome(outcome)], limit=5)
    assert calls(server) - before == 2 + 3
    assert Counter(outcomes(out).values()) == {"correct": 5}


@pytest.mark.long
@pytest.mark.parametrize(("model", "keys"), APIS)
def test_a_cut_reply_gets_more_room_as_the_same_trial_in_every_wire_format(
    tmp_path, server, problems, model, keys
):
    asked = sweep(tmp_path / "out", problems, entry(server, model, max_tokens=2, **keys))
    run(asked, limit=30)
    before = outcomes(asked.out)
    cut = {one for one, outcome in before.items() if outcome == "truncated"}
    run(asked, limit=30, retry=[Outcome.TRUNCATED], max_tokens=50)
    assert cut
    assert outcomes(asked.out) == dict.fromkeys(before, "correct")


@pytest.mark.long
def test_what_was_sent_stands_with_the_trial_and_with_each_call(cut):
    asked, ids = cut
    run(asked, retry=[Outcome.TRUNCATED], max_tokens=50)
    said = {one: json.loads(row["params"])["max_tokens"] for one, row in rows(asked.out, "params").items()}
    assert {one for one, tokens in said.items() if tokens == 50} == ids
    assert set(said.values()) == {2, 50}
    calls = read_attempts(asked.out, ["trial_id", "attempt", "max_tokens"]).to_pylist()
    assert {(row["attempt"], row["max_tokens"]) for row in calls if row["trial_id"] in ids} == {
        (1, 2),
        (2, 50),
    }


@pytest.mark.long
def test_an_answer_given_again_replaces_the_earlier_and_both_are_paid(cut):
    asked, ids = cut
    spent = cost_of(asked.out)
    run(asked, retry=[Outcome.TRUNCATED], max_tokens=50)
    assert len(rows(asked.out)) == 144
    assert len(read_grades(asked.out)) == 3 * 144
    parts = [pq.read_table(path, partitioning=None) for path in (asked.out / "trials").rglob("*.parquet")]
    assert sum(map(len, parts)) == 144, "no plain reader counts an answer twice"
    attempts = read_attempts(asked.out)
    assert len(attempts) == 144 + len(ids)
    assert cost_of(asked.out) > spent
    totals = rows(asked.out, "cost_usd").values()
    assert sum(row["cost_usd"] for row in totals) == pytest.approx(cost_of(asked.out))
    assert verify_folder(asked.out).sound


@pytest.mark.long
def test_trials_that_were_never_asked_get_what_the_sweep_says(tmp_path, server, problems):
    asked = sweep(tmp_path / "out", problems, entry(server, "simulated/oracle", max_tokens=2))
    run(asked, limit=72)
    cut = sum(outcome == "truncated" for outcome in outcomes(asked.out).values())
    run(asked, retry=[Outcome.TRUNCATED], max_tokens=50)
    sent = Counter(read_attempts(asked.out, ["max_tokens"])["max_tokens"].to_pylist())
    assert sent == {2: 144, 50: cut}


@pytest.mark.long
def test_what_was_cut_with_as_much_room_before_is_not_asked_again(cut):
    asked, _ = cut
    screen = Said()
    run(asked, retry=[Outcome.TRUNCATED], max_tokens=3)
    still = {one for one, outcome in outcomes(asked.out).items() if outcome == "truncated"}
    assert still
    with pytest.raises(
        ConfigError, match=rf"all {len(still)} truncated trials were cut off at 3 tokens or more"
    ):
        run(asked, retry=[Outcome.TRUNCATED], max_tokens=3)
    run(asked, retry=[Outcome.TRUNCATED], max_tokens=4, screen=screen)
    assert not any("stay as they are" in one for one in screen.lines)


@pytest.mark.parametrize(
    ("keys", "given", "complaint"),
    [
        pytest.param(
            {"max_tokens": 2}, {"max_tokens": 50}, "needs --retry truncated: add", id="nothing to retry"
        ),
        pytest.param(
            {"max_tokens": 50},
            {"max_tokens": 50, "retry": [Outcome.TRUNCATED]},
            r"simulated/oracle: --max-tokens 50 is not more than its max_tokens, 50",
            id="not larger",
        ),
        pytest.param(
            {"params": {"max_completion_tokens": 2}},
            {"max_tokens": 50, "retry": [Outcome.TRUNCATED]},
            r"its `params` set max_completion_tokens, which --max-tokens does not change",
            id="said by params",
        ),
    ],
)
def test_more_room_that_is_none_is_refused_before_anything_is_made(
    tmp_path, server, problems, keys, given, complaint
):
    with pytest.raises(ConfigError, match=complaint):
        run(sweep(tmp_path / "out", problems, entry(server, "simulated/oracle", **keys)), **given)
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_an_answer_that_was_paid_for_outlives_a_new_call_that_failed(tmp_path, cut):
    asked, ids = cut
    before = rows(asked.out, "reply_text", "outcome")
    with simulator() as broken:  # which knows no question
        model = entry(
            broken, "simulated/oracle", max_tokens=2, price=PRICE, retry={"attempts": 1}, concurrency=2
        )
        failed = run(sweep(asked.out, tmp_path / "problems.parquet", model), retry=[Outcome.TRUNCATED])
    assert failed.exit is Exit.UNFINISHED
    assert rows(asked.out, "reply_text", "outcome") == before
    assert len(read_attempts(asked.out)) == 144 + len(ids)
    assert verify_folder(asked.out).sound
    assert run(asked).exit is Exit.COMPLETE, "nothing is left to ask"


@pytest.mark.long
def test_an_answer_with_more_room_that_was_not_graded_yet_says_what_it_was_given(server, cut):
    asked, ids = cut
    one = min(ids)
    call = {"trial_id": one, "attempt": 2, "model": "simulated/oracle", "provider": "simulated"}
    reply = Reply(text=rows(asked.out, "expected")[one]["expected"], finish_reason="stop")
    with Store.open(asked.out, sweep="test", again=[Outcome.TRUNCATED]) as store:
        store.keep(Sent(**call, started_at=1e9))
        store.keep(Ended(attempt=Attempt(**call, started_at=1e9, status="ok", max_tokens=50), reply=reply))
    before = calls(server)
    run(asked)
    assert calls(server) == before
    now = rows(asked.out, "params", "outcome", "attempts")[one]
    assert (now["outcome"], now["params"], now["attempts"]) == ("correct", '{"max_tokens":50}', 2)
