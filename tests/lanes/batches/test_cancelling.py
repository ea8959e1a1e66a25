"""Batches that a person cancels: what was done is collected and paid once, and the rest is open again."""

import asyncio
import json
import re
import socket

import pytest
from typer.testing import CliRunner

import asyncbench as ab
from asyncbench.cli import app
from asyncbench.errors import ConfigError
from asyncbench.lanes.batches.ledger import Step
from asyncbench.run.summary import Exit
from tests.lanes.batches.test_limits import Interrupting, priced
from tests.simulators import page
from tests.world.batches import VENDORS
from tests.world.cuts import CutError, cutting

OPENAI, ANTHROPIC = VENDORS
MANY = 12
LONG = {"latency_s": 4000}


def half_done(night, vendor, *faults, **keys):
    """Return a night whose batches are on their way, after 2,000 of some 4,000 seconds."""
    asked = night(vendor, *faults, **{"play": LONG, "batch": {"max_requests": 7}} | keys)
    asked.dies_after(2000, limit=MANY)
    assert sum(part.submitted for part in asked.parts) == 2
    return asked


def goes_on(asked):
    """See that a later run asks what is missing, and that nothing was lost or paid twice."""
    asked.completes(limit=MANY)
    assert asked.answers == asked.undisturbed(limit=MANY)
    assert {part.step for part in asked.parts} == {Step.CLEANED}


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_what_was_done_is_collected_and_the_rest_is_open_again(night, vendor):
    asked = half_done(night, vendor)
    found = asked.cancel()
    assert found.exit is Exit.COMPLETE
    assert (found.batches, found.requests, len(found.still_open)) == (2, MANY, 0)
    assert 0 < found.answered < MANY
    assert len(asked.answers) == found.answered == asked.billed.total()
    assert f"{found.answered:,} of 12 requests were answered" in found.as_text()
    assert "trials are open again" in found.as_text()
    cancelled = [row for row in asked.attempts if row["status"] == "cancelled"]
    assert {row["cost_usd"] for row in cancelled} == {0.0}
    goes_on(asked)


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("fault", ["cancel_500=1", "cancel_slow=1", "cancel_completes=1"])
def test_a_vendor_that_is_slow_to_cancel_or_does_not_loses_nothing(night, vendor, fault):
    asked = half_done(night, vendor, fault)
    found = asked.cancel()
    if fault.startswith("cancel_completes"):  # in its own time, which may be longer than half an hour
        assert {batch["status"] for batch in asked.truth} <= {"completed", "in_progress", "cancelling"}
    else:
        assert found.exit is Exit.COMPLETE
    goes_on(asked)


@pytest.mark.long
def test_what_a_person_cancelled_is_asked_in_batches_all_the_same(night):
    asked = night(OPENAI, play=LONG, batch={"rounds": 2})
    for _ in range(2):
        asked.dies_after(100, limit=MANY)
        assert asked.cancel().exit is Exit.COMPLETE
    goes_on(asked)
    assert {batch["status"] for batch in asked.truth} == {"cancelled", "completed"}
    assert {row["mode"] for row in asked.attempts} == {"batch"}


@pytest.mark.long
def test_a_batch_that_takes_longer_than_half_an_hour_stays_open_and_is_named(night):
    asked = half_done(night, OPENAI, "cancel_slow=1:5000")
    found = asked.cancel()
    assert found.exit is Exit.UNFINISHED
    assert len(found.still_open) == 2
    assert all(part.batch_id in found.as_text() for part in found.still_open)
    assert asked.cancel().exit is Exit.UNFINISHED
    goes_on(asked)


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_that_had_ended_is_collected_though_it_is_cancelled(night, vendor):
    asked = half_done(night, vendor)
    page(asked.server, "/clock", {"forward_s": 9000})
    found = asked.cancel()
    assert (found.exit, found.answered) == (Exit.COMPLETE, MANY)
    assert {batch["status"] for batch in asked.truth} == {"completed"}


@pytest.mark.long
def test_parts_that_were_never_sent_are_given_back(night):
    asked = night(OPENAI, "pool_full=1:100000", batch={"max_requests": 7})
    asked.dies_after(2000, limit=MANY)
    found = asked.cancel()
    assert (found.exit, found.answered, found.requests) == (Exit.COMPLETE, 0, MANY)
    assert asked.billed == {}
    assert {part.step for part in asked.parts} == {Step.CLEANED}


def test_a_sweep_without_open_batches_has_nothing_to_cancel(night):
    asked = night(OPENAI)
    asked.run(limit=2)
    found = asked.cancel()
    assert (found.exit, found.batches) == (Exit.COMPLETE, 0)
    assert "no batch is open" in found.as_text()


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_ctrl_c_leaves_what_is_being_cancelled_to_the_next_run(night, server, vendor):
    asked = half_done(night, vendor, "cancel_slow=1:1500")
    assert asked.cancel(clock=Interrupting(server, 60)).exit is Exit.INTERRUPTED
    assert all(part.cancelled_at for part in asked.parts)
    goes_on(asked)


POINTS = [
    f"{when} {what}"
    for what in ("line cancelling 1", "cancel 1", "cancel 2", "line ended 1", "line collected 1")
    for when in ("before", "after")
]


@pytest.mark.long
@pytest.mark.parametrize("again", ["cancel", "run"])
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("point", POINTS)
def test_a_cancel_that_is_cut_off_anywhere_is_taken_up(night, vendor, point, again):
    asked = half_done(night, vendor)
    with cutting(point) as cutter, pytest.raises((CutError, ExceptionGroup)):
        asked.cancel()
    assert cutter.cut
    if again == "cancel":
        assert asked.cancel().exit is Exit.COMPLETE
    goes_on(asked)
    if (point, again) != ("before line cancelling 1", "run"):  # else nobody knows that it was wanted
        assert any(row["status"] == "cancelled" for row in asked.attempts)


# ── in doubt ─────────────────────────────────────────────────────────────────────────────────


def cap_of(summary):
    return summary.budget.ledger.caps[0]


def in_doubt(night, **keys):
    """Return a night with a part of which nobody can know whether it was sent: it was not."""
    asked = priced(night(ANTHROPIC, "create_dropped=#1"), budget_usd=1.0, **keys)
    assert asked.run(limit=6).exit is Exit.UNFINISHED
    [part] = asked.parts
    return asked, part.key


@pytest.mark.long
def test_an_abandoned_part_is_not_asked_until_somebody_wants_it(night):
    asked, key = in_doubt(night)
    found = asked.cancel(key)
    assert (found.exit, [part.key for part in found.abandoned]) == (Exit.COMPLETE, [key])
    summary = asked.run(limit=6)
    assert (summary.exit, asked.truth, asked.answers) == (Exit.UNFINISHED, [], {})
    assert any("abandoned" in line for line in asked.screen.lines)
    assert cap_of(summary).doubted == cap_of(summary).spent > 0  # it may have been spent
    asked.completes(limit=6, resubmit=[key])
    assert len(asked.answers) == 6


@pytest.mark.long
def test_a_part_without_a_trace_is_sent_again_for_who_wants_it_and_its_reserve_stays(night):
    asked, key = in_doubt(night)
    before = cap_of(asked.run(limit=6)).doubted
    summary = asked.run(limit=6, resubmit=[key])
    assert summary.exit is Exit.COMPLETE
    assert cap_of(summary).doubted == before > 0
    assert cap_of(asked.run(limit=6)).doubted == before
    assert asked.billed == dict.fromkeys(asked.answers, 1)
    assert any("paid twice" in line for line in asked.screen.lines)


@pytest.mark.long
def test_trials_beside_a_part_in_doubt_do_not_wait_for_its_money(night):
    asked, _ = in_doubt(night)
    asked.raw["budget_usd"] = 1.1 * cap_of(asked.run(limit=6)).doubted / 1e12
    assert asked.run(limit=MANY).exit is Exit.BUDGET


@pytest.mark.long
def test_a_part_is_not_sent_again_beyond_the_budget(night):
    asked, key = in_doubt(night)
    asked.raw["budget_usd"] = 1.1 * cap_of(asked.run(limit=6)).doubted / 1e12
    assert asked.run(limit=6, resubmit=[key]).exit is Exit.BUDGET
    assert (asked.truth, asked.answers) == ([], {})


@pytest.mark.parametrize("way", ["cancel", "run"])
def test_only_parts_in_doubt_can_be_given_up_or_sent_again(night, way):
    asked = half_done(night, OPENAI)
    with pytest.raises(ConfigError, match="not in doubt"):
        asked.cancel(asked.parts[0].key) if way == "cancel" else asked.run(resubmit=[asked.parts[0].key])
    with pytest.raises(ConfigError, match="no such part"):
        asked.cancel("0" * 16) if way == "cancel" else asked.run(resubmit=["0" * 16])
    assert all(part.submitted for part in asked.parts)


# ── the command ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def going_on(night, server):
    """A night whose batches go on after Ctrl-C, in a simulator a thousand times faster than time."""
    play = {"latency_s": 80_000, "latency_sigma": 0, "speedup": 1000}
    asked = priced(night(OPENAI, play=play, batch={"max_requests": 7}), budget_usd=1.0)
    asked.run(limit=MANY, clock=Interrupting(server, 30))
    assert all(part.submitted for part in asked.parts)
    return asked


def cancel(asked, *words, answer=None):
    return CliRunner().invoke(app, ["cancel", str(asked.out), *words], input=answer)


@pytest.mark.long
def test_the_command_asks_first_and_says_what_is_billed(going_on):
    refused = cancel(going_on, answer="n\n")
    assert refused.exit_code == 3  # as batches are still open
    assert refused.stdout.split("\n")[-2] == "nothing was cancelled, and the batches are still open"
    assert "These batches are open, as written down at " in refused.stderr
    assert "Up to 12 requests may be billed, at most $0.0" in refused.stderr
    assert "Their answers are collected. The rest costs nothing." in refused.stderr
    assert refused.stderr.count(" requests, running\n") == 2
    assert all(part.batch_id in refused.stderr for part in going_on.parts)
    nobody = cancel(going_on)
    assert isinstance(nobody.exception, ConfigError)
    assert "--yes" in str(nobody.exception)
    assert nobody.stderr.endswith("\n")  # the error has a line of its own
    assert {batch["status"] for batch in going_on.truth} == {"in_progress"}
    done = cancel(going_on, answer="y\n")
    assert done.exit_code == 0
    assert "2 of 2 batches ended" in done.stdout


@pytest.mark.parametrize("typed", ["", "0f3a51c2b4d6e879,"])
def test_an_empty_name_of_a_part_is_refused_before_anything_is_done(going_on, typed):
    given_up = cancel(going_on, "--abandon", typed, "--yes")
    assert "--abandon" in str(given_up.exception)
    assert "is empty" in str(given_up.exception)
    sweep = going_on.out / "sweep.yaml"
    again = CliRunner().invoke(app, ["run", str(sweep), "--resubmit", typed])
    assert "--resubmit" in str(again.exception)
    assert {batch["status"] for batch in going_on.truth} == {"in_progress"}
    assert {part.cancelled_at for part in going_on.parts} == {None}


@pytest.mark.long
def test_a_provider_that_cannot_be_reached_is_named_with_the_time(night):
    asked = half_done(night, OPENAI)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        host = f"127.0.0.1:{nobody.getsockname()[1]}"
    asked.raw["models"][0]["base_url"] = f"http://{host}/v1"
    asked.dies_after(10, limit=MANY)
    found = asked.cancel()
    assert found.exit is Exit.UNFINISHED
    assert re.search(rf": cannot reach {host} since \d\d:\d\d$", found.as_text(), re.MULTILINE)
    assert "0 of 2 batches ended\n" in found.as_text()
    assert "answered" not in found.as_text()


@pytest.mark.long
def test_the_command_cancels_without_a_question_and_tells_scripts_what_came_of_it(going_on):
    done = cancel(going_on, "--yes", "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["exit"], told["batches"], told["requests"]) == (0, 0, 2, MANY)
    assert told["answered"] == len(going_on.answers) == going_on.billed.total() > 0
    assert told["cost_usd"] > 0
    assert told["still_open"] == []


@pytest.mark.long
def test_python_cancels_and_gives_up_likewise(going_on):
    with pytest.raises(ConfigError, match="no such part"):
        asyncio.run(ab.cancel_batches(going_on.out, abandon=["0" * 16]))
    found = asyncio.run(ab.cancel_batches(going_on.out, env={}))
    assert (found.exit, found.batches) == (Exit.COMPLETE, 2)
