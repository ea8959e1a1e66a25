"""Nobody knows whether a batch was created: it is looked for, and nothing is sent twice by chance."""

import pytest

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.lanes.batches.ledger import Step
from asyncbench.providers import sdk_batches
from asyncbench.providers.sdk_batches import SdkBatches
from asyncbench.reports.status.report import status_of
from asyncbench.run.summary import Exit
from tests.lanes.batches.test_limits import priced
from tests.tiers import first_rows
from tests.world.batches import VENDORS, Forwarded

OPENAI, ANTHROPIC = VENDORS


@pytest.mark.long
def test_a_create_that_nobody_handled_is_made_again_once_a_late_one_must_fail(night):
    asked = night(OPENAI, "create_dropped=#1")
    asked.completes(limit=6)
    assert sorted(part.step for part in asked.parts) == [Step.CLEANED, Step.NEVER_CREATED]


@pytest.mark.long
def test_a_create_that_comes_after_all_looks_finds_no_file(night):
    asked = night(OPENAI, "create_late=#1:1000")  # the last look is at 900 s, the file gone then
    asked.completes(limit=6)


@pytest.mark.long
def test_a_nameless_batch_without_a_trace_is_not_sent_again(night):
    asked = night(ANTHROPIC, "create_dropped=#1")
    summary = asked.run(limit=6)
    assert summary.exit is Exit.UNFINISHED
    assert (asked.truth, asked.answers) == ([], {})
    [said] = [line for line in asked.screen.lines if "no trace" in line]
    assert "on_doubt: resubmit" in said
    assert asked.run(limit=6).exit is Exit.UNFINISHED  # nor by the next run
    assert asked.truth == []
    asked.raw["batch"] = {"on_doubt": "resubmit"}
    asked.completes(limit=6)
    assert [row["attempt"] for row in asked.attempts] == 6 * [1]


def test_other_trials_of_the_model_go_on_beside_a_batch_in_doubt(night):
    asked = night(ANTHROPIC, "create_dropped=#1", batch={"max_requests": 4})
    summary = asked.run(limit=12)
    assert summary.exit is Exit.UNFINISHED
    assert len(asked.answers) == 12 - max(part.requests for part in asked.parts if part.in_doubt)


def test_a_nameless_batch_is_known_by_its_results_and_a_foreign_one_is_struck_out(night):
    other = night(ANTHROPIC, play={"latency_s": 50})
    asked = night(ANTHROPIC, "create_reply_dropped=#1", play={"latency_s": 5000})
    # The other sweep's batch has as many requests, and was created at the same time.
    other.dies_after(100, limit=6)
    asked.completes(limit=6)
    assert [len(part.struck) for part in asked.parts] == [1]
    other.completes(limit=6)


@pytest.mark.long
@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_open_batches_of_another_key_are_told_at_once(night, vendor):
    asked = night(vendor, play={"latency_s": 5000})
    asked.raw["models"][0]["key_env"] = "KEY"
    asked.dies_after(30, limit=6, env={"KEY": "key@one"})
    assert asked.run_for(120, limit=6, env={"KEY": "key@two"}).exit is Exit.UNFINISHED
    (said,) = [line for line in asked.screen.lines if "another project or workspace" in line]
    assert asked.parts[0].batch_id in said
    asked.completes(limit=6, env={"KEY": "key@one"})


@pytest.mark.long
@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_a_key_of_another_workspace_proves_nothing(night, monkeypatch, vendor, told):
    asked = night(vendor, "create_reply_dropped=#1")
    asked.raw["models"][0]["key_env"] = "KEY"
    if not told:
        monkeypatch.setattr(sdk_batches, "ACCOUNTS", ())
    asked.dies_after(5, limit=6, env={"KEY": "key@one"})
    assert asked.run(limit=6, env={"KEY": "key@two"}).exit is Exit.UNFINISHED
    assert any("another project or workspace" in line for line in asked.screen.lines)
    assert len(asked.parts) == len(asked.truth) == 1
    asked.completes(limit=6, env={"KEY": "key@one"})


@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_a_part_of_a_key_that_is_lost_is_sent_again_if_a_person_wants_that(night, vendor):
    asked = night(vendor, "create_dropped=#1", batch={"on_doubt": "resubmit"})
    asked.raw["models"][0]["key_env"] = "KEY"
    asked.dies_after(5, limit=6, env={"KEY": "key@one"})
    assert asked.run(limit=6, env={"KEY": "key@two"}).exit is Exit.UNFINISHED
    [part] = asked.parts
    asked.completes(limit=6, env={"KEY": "key@two"}, resubmit=[part.key])
    given_up, *sent_again = (part.step for part in asked.parts)
    assert (given_up, {*sent_again}) == (Step.GIVEN_UP, {Step.CLEANED})


class UntilCreated(Forwarded):
    """A clock of a process that dies once the server has a batch of the night's model, whatever others do."""

    def __init__(self, night):
        super().__init__(night.server)
        self._night = night

    async def sleep(self, seconds):
        if self._night.truth:
            raise TimeoutError
        await super().sleep(seconds)


@pytest.mark.long
@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
def test_the_second_model_of_a_key_concludes_nothing_with_another_or_an_unknown_one(night, monkeypatch, told):
    asked = night(ANTHROPIC, "create_reply_dropped=#1", batch={"on_doubt": "resubmit"})
    model = {**asked.raw["models"][0], "key_env": "KEY"}
    other = {**model, "model": f"{ANTHROPIC}/noisy-1", "params": {}}
    asked.raw["models"] = [{**other, "alias": "first"}, {**model, "alias": "second"}]
    if not told:
        monkeypatch.setattr(sdk_batches, "ACCOUNTS", ())
    with pytest.raises((TimeoutError, ExceptionGroup)):
        asked.run(clock=UntilCreated(asked), limit=4, env={"KEY": "key@one"})
    monkeypatch.undo()
    [doubtful] = [part for part in asked.parts if part.in_doubt]
    assert doubtful.alias == "second"
    assert {part.account for part in asked.parts if part.intended_at} == {doubtful.account}
    assert asked.run(models=["second"], limit=4, env={"KEY": "key@two"}).exit is Exit.UNFINISHED
    assert any("another project or workspace" in line for line in asked.screen.lines)
    assert asked.run(models=["second"], limit=4, env={"KEY": "key@one"}).exit is Exit.COMPLETE
    # Its trials may be in two parts, as no other part has so many; of these the second key may send one.
    assert {asked.billed[trial_id] for trial_id in asked.answers} == {1}
    assert len(asked.answers) == 4


@pytest.mark.long
def test_of_two_batches_of_one_part_the_second_is_cancelled(night):
    asked = night(OPENAI, "create_twice=#1", play={"latency_s": 4000})
    assert asked.run(limit=6).exit is Exit.COMPLETE
    assert sorted(batch["status"] for batch in asked.truth) == ["cancelled", "completed"]
    assert any("two batches of the same part" in line for line in asked.screen.lines)


@pytest.mark.long
def test_of_two_batches_of_one_part_both_reserves_are_kept_until_both_have_ended(night):
    asked = priced(night(OPENAI, "create_twice=#1", play={"latency_s": 4000}), budget_usd=1)
    asked.dies_after(100, limit=6)  # both are open when it dies
    reserved = list[int]()

    class Watching(Forwarded):
        async def sleep(self, seconds):
            await super().sleep(seconds)
            reserved.append(asked.ledger.caps[0].reserved)

    with asked.watched():
        assert asked.run(limit=6, clock=Watching(asked.server)).exit is Exit.COMPLETE
    assert reserved[0] == 2 * min(reserved)
    assert set(reserved) == {min(reserved), 2 * min(reserved)}
    assert asked.ledger.caps[0].reserved == 0


@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_a_doubt_that_no_list_can_end_is_left_to_the_next_run(night, vendor, monkeypatch):
    async def unlisted(_batches, _since):
        raise ProviderError(ErrorKind.BAD_REQUEST, "no such page", http_status=404)

    asked = night(vendor, "create_reply_dropped=#1")
    with monkeypatch.context() as patch:
        patch.setattr(SdkBatches, "recent", unlisted)
        assert asked.run(limit=6).exit is Exit.UNFINISHED
    assert sum("are not sent again" in line for line in asked.screen.lines) == 1
    asked.completes(limit=6)


def test_an_unnamed_batch_whose_list_stays_behind_is_found_by_its_own_answer(night):
    asked = night("simulated-anthropic", "create_reply_dropped=#1", "list_behind=1")
    asked.completes(clock=Forwarded(asked.server, until_s=10_000), limit=6)


def test_without_a_trace_the_two_ways_out_come_first(night):
    asked = night(ANTHROPIC, "create_dropped=#1")
    summary = asked.run(limit=6)
    [key] = [part.key for part in asked.parts]
    again, leave = f"--resubmit {key}", f"--abandon {key}"
    assert f"asyncbench cancel {asked.out} --abandon {key}" in "".join(asked.screen.lines)
    [said] = [line for line in asked.screen.lines if "no trace" in line]
    assert said.index(again) < said.index(leave) < said.index("console")
    for text in (summary.as_text(), status_of(asked.out).as_text()):
        assert text.index(again) < text.index(leave) < text.index("console")
        assert "A run looks for it" not in text
    assert summary.as_text().index(again) < summary.as_text().index("To continue:")
