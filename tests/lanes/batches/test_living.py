"""Living with batches: they are sent and left, looked at while nobody runs, collected by running again."""

import asyncio
import json
import re
import sys
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from asyncbench.cli import app
from asyncbench.lanes.batches.ledger import BatchLedger, BatchPart, Step
from asyncbench.lanes.batches.status import PartState, left_in_batches, part_statuses, warnings_on
from asyncbench.reports.status.report import batches_in, status_of
from asyncbench.run.open_batches import refresh_batches
from asyncbench.run.summary import Exit
from tests.lanes.batches.test_limits import Interrupting, priced
from tests.simulators import page
from tests.tiers import first_rows
from tests.world.batches import VENDORS, Forwarded

OPENAI, ANTHROPIC = VENDORS
DAY_S = 86_400.0


def states(asked, *, running=False):
    found = part_statuses(BatchLedger(asked.out), running=running, now=time.time())
    return [part.state.value for part in found]


def days_kept(text):
    """The days until results are deleted, and more: other nights put the simulator's clock ahead."""
    (days,) = re.findall(r"Their results are deleted (\d+)\S* days from now", text)
    return int(days)


# ── run --detach ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_a_run_that_detaches_sends_everything_and_the_next_one_collects_it(night, vendor):
    asked = priced(night(vendor, batch={"max_requests": 10}), budget_usd=1)
    summary = asked.run(limit=36, detach=True)
    assert summary.exit is Exit.COMPLETE
    assert (asked.answers, sum(part.trials for part in summary.batches)) == ({}, 36)
    text = summary.as_text()
    assert f"36 trials stay in batches: {len(asked.truth)} " in text
    assert " of the budget is set aside for them." in text
    assert asked.parts[0].batch_id in text
    assert days_kept(text) >= 29
    collect = "To collect them: asyncbench run "
    assert "--detach" not in next(line for line in text.splitlines() if line.startswith(collect))
    told = json.loads(summary.as_json())["batches"]
    assert told[0]["batch_id"] == asked.parts[0].batch_id
    looked = json.loads(status_of(asked.out).as_json())["batches"]  # a moment later, in the same form
    assert [one | {"age_s": 0} for one in told] == [one | {"age_s": 0} for one in looked]
    assert told[0]["created_at"].endswith("+00:00")
    asked.completes(limit=36)
    assert len(asked.answers) == 36


@pytest.mark.long
def test_who_detaches_waits_until_accepted_batches_have_made_room_for_the_rest(night):
    asked = night(OPENAI)
    asked.raw["models"][0]["system"] = 110_000 * "x"  # 27,500 tokens: the first batch takes two requests
    assert asked.run(limit=6, detach=True).exit is Exit.COMPLETE
    assert sum(part.requests for part in asked.parts if part.batch_id) == 6
    assert len(asked.parts) > 1


def test_who_detaches_does_not_wait_for_a_pool_that_is_full(night, server):
    asked = night(OPENAI, "create_400=1:token_limit_exceeded", batch={"max_requests": 4})
    clock = Forwarded(server, until_s=3600)
    assert asked.run(limit=12, detach=True, clock=clock).exit is Exit.UNFINISHED  # nothing could be sent
    assert states(asked)[0] == "waits for the pool"
    assert "pool of enqueued tokens is full" in status_of(asked.out).as_text()


def test_a_doubt_is_left_to_the_next_run(night, server):
    asked = night(ANTHROPIC, "create_dropped=#1", batch={"max_requests": 6})
    assert asked.run(limit=11, detach=True, clock=Forwarded(server, until_s=600)).exit is Exit.COMPLETE
    assert sorted(states(asked)) == ["in doubt", "running"]
    said = status_of(asked.out).as_text()
    assert f"part {asked.parts[0].key}: nobody knows yet whether a batch was created" in said


def test_who_detaches_is_told_that_nobody_leaves_batches_for_a_deadline(night):
    asked = night(OPENAI, mode="auto", deadline="10h")
    asked.run(limit=6, detach=True)
    assert [line for line in asked.screen.lines if "run again well before the deadline" in line]


# ── Ctrl-C ───────────────────────────────────────────────────────────────────────────────────


def test_ctrl_c_says_which_batches_go_on_and_how_to_collect_them(night, server):
    asked = night(OPENAI)
    summary = asked.run(limit=12, clock=Interrupting(server, 30))
    assert summary.exit is Exit.INTERRUPTED
    assert any("Batches go on without this program, with 12 trials" in line for line in asked.screen.lines)
    text = summary.as_text()
    assert f"They go on without this program: {asked.parts[0].batch_id}." in text
    assert days_kept(text) >= 30
    assert "To continue: asyncbench run " in text


# ── status ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_status_shows_batches_without_asking_anybody_and_without_writing(night):
    asked = priced(night(OPENAI, batch={"max_requests": 8}), budget_usd=1)
    asked.run(limit=16, detach=True)
    before = {path: path.stat().st_mtime_ns for path in asked.out.rglob("*")}
    found = status_of(asked.out)
    assert {path: path.stat().st_mtime_ns for path in asked.out.rglob("*")} == before
    (model,) = found.models
    assert (model.open, model.in_batches) == (72, 16)
    (cap,) = found.budget
    assert 0 < cap.in_batches_usd == pytest.approx(sum(part.reserved_usd for part in asked.parts))
    text = found.as_text()
    assert "last written never" not in text  # though nothing is answered yet
    assert "Batches: 2 " in text
    assert "56 open trials are in no batch yet" in text
    told = json.loads(found.as_json())
    assert [part["trials"] for part in told["batches"]] == [8, 8]
    assert told["models"][0]["in_batches"] == 16
    asked.run(limit=16)
    assert "Batches: 2 collected (16 trials)." in status_of(asked.out).as_text()
    assert status_of(asked.out).models[0].in_batches == 0


@pytest.mark.long
def test_status_tells_how_a_batch_went_on_while_it_was_looked_at(night):
    asked = night(OPENAI, play={"latency_s": 4_000})
    asked.dies_after(30, limit=20)
    assert states(asked, running=True) == ["validating"]
    asked.dies_after(2_500, limit=20)
    found = status_of(asked.out)
    [part] = found.batches.parts if found.batches else ()
    assert (part.state, part.status) == (PartState.RUNNING, "in_progress")
    assert 0 < (part.answered or 0) < 20
    assert f"running ({part.answered} of 20 trials done)" in found.as_text()


STATES: dict[PartState, list[tuple[Step, dict[str, object]]]] = {
    PartState.PREPARED: [],
    PartState.SUBMITTING: [(Step.SUBMITTING, {"server_at": 0.0, "account": ""})],
    PartState.IN_DOUBT: [(Step.SUBMITTING, {"server_at": 0.0, "account": ""}), (Step.FENCING, {})],
    PartState.POOL: [(Step.REFUSED, {"why": "Enqueued token limit reached for gpt"})],
    PartState.CANCELLING: [
        (Step.SUBMITTED, {"batch_id": "b", "created_at": 0.0}),
        (Step.SEEN, {"status": "cancelling", "counted": True, "done": 2}),
    ],
    PartState.ENDED: [
        (Step.SUBMITTED, {"batch_id": "b", "created_at": 0.0}),
        (Step.ENDED, {"status": "expired", "ended_at": 9.0, "files": [], "used": None, "faults": []}),
    ],
    PartState.LEFT: [(Step.SUBMITTING, {"server_at": 0.0, "account": ""}), (Step.GIVEN_UP, {})],
}


@pytest.mark.parametrize("state", STATES)
def test_a_part_stands_where_its_last_step_left_it(tmp_path, state):
    ledger = BatchLedger(tmp_path)
    part = BatchPart(key="0" * 16, alias="a", requests=4, size=9, sha256="", tokens=1)
    ledger.write(part, Step.PREPARED, at=0.0)
    for step, said in STATES[state]:
        ledger.write(part, step, at=0.0, **said)
    ledger.close()
    [found] = part_statuses(BatchLedger(tmp_path), running=True, now=5.0)
    assert found.state is state
    later = part_statuses(BatchLedger(tmp_path), running=False, now=5.0)[0]
    assert later.state is (PartState.IN_DOUBT if state is PartState.SUBMITTING else state)


def test_a_person_is_warned_a_week_before_results_are_deleted(night):
    asked = night(OPENAI)
    asked.run(limit=6, detach=True)
    [part] = part_statuses(BatchLedger(asked.out), running=False, now=time.time())
    created_at = part.created_at or 0.0
    assert part.deleted_at == created_at + 30 * DAY_S
    assert warnings_on([part], now=created_at + 22 * DAY_S) == []
    [said] = warnings_on([part], now=created_at + 24 * DAY_S)
    assert said == f"The results of {part.batch_id} are deleted in 6 days. Run again before that."
    unnamed = replace(part, deleted_at=created_at + 29 * DAY_S)
    assert "in 5 days" in warnings_on([unnamed], now=created_at + 24 * DAY_S)[0]
    assert "30 days" in left_in_batches([part], now=created_at)[2]


# ── notify ───────────────────────────────────────────────────────────────────────────────────


def told_by(asked, **options):
    """What people are told of batches by a run: (what, first line, batches)."""
    file = asked.folder / "told.jsonl"
    file.write_text("")
    program = f"import sys; open({str(file)!r}, 'a').write(sys.stdin.read())"
    asked.raw["notify"] = {"command": [sys.executable, "-c", program], "on": ["batches"]}
    asked.run(**options)
    messages = [json.loads(line) for line in file.read_text().splitlines()]
    assert {message["event"] for message in messages} <= {"batches"}
    return [(told["what"], told["text"], len(told["batches"])) for told in messages]


@pytest.mark.long
def test_people_are_told_once_that_all_batches_are_sent(night):
    asked = night(OPENAI, batch={"max_requests": 6})
    [(what, text, batches)] = told_by(asked, limit=12, detach=True)
    assert (what, batches) == ("sent", 2)
    assert "all batches are sent" in text
    assert "12 trials stay in batches" in text
    assert "to collect: cd " in text
    assert told_by(asked, limit=12) == []


@pytest.mark.long
def test_people_are_told_of_a_batch_that_ended_early_and_of_a_doubt(night):
    asked = night(OPENAI, "expires=#1:0.5", play={"speedup": 60})
    ended = [text for what, text, _ in told_by(asked, limit=12) if what == "ended"]
    assert f"batch {asked.truth[0]['batch_id']} expired" in ended[0]  # a slow machine may see others end, too
    doubtful = night(ANTHROPIC, "create_dropped=#1")
    [(what, text, _)] = told_by(doubtful, limit=6)
    assert (what, doubtful.parts[0].key in text) == ("doubt", True)


@pytest.mark.long
def test_people_are_told_that_results_are_deleted_soon(night, server):
    asked = night(OPENAI, "file_expired=#1", batch={"fallback": "none"})
    asked.run(limit=6)  # its results are not found
    page(server, "/clock", {"forward_s": 25 * DAY_S})
    [(what, text, _)] = told_by(asked, limit=6)
    assert what == "deleted_soon"
    assert "are deleted in 5 days. Run again before that" in text


@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_status_says_as_of_when_it_knows_a_batch_and_asks_if_told_to(night, server, vendor):
    asked = night(vendor)
    asked.run(limit=6, detach=True)
    (before,) = batches_in(asked.out, running=False).parts
    assert before.state.value in ("validating", "running")
    assert "as of" in status_of(asked.out).as_text()
    page(server, "/clock", {"forward_s": 7200})
    began_s = time.time()
    assert asyncio.run(refresh_batches(asked.out, env={})) == []
    (after,) = batches_in(asked.out, running=False).parts
    assert (after.state.value, after.answered) == ("ended", 6)
    assert (after.known_at or 0.0) >= began_s
    assert asked.answers == {}  # nothing is collected
    asked.completes(limit=6)


def test_status_that_cannot_ask_says_so(night):
    asked = night(OPENAI, "unknown=1:1e9")
    asked.run(limit=6, detach=True)
    typed = CliRunner().invoke(app, ["status", str(asked.out), "--refresh"])
    assert typed.exit_code == 0
    assert f"batch {asked.parts[0].batch_id} cannot be looked at" in typed.stderr
    assert "as of" in typed.stdout
