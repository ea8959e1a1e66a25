"""What else is done to a folder with open batches: nothing is lost by it, and nothing paid twice."""

import shutil
from collections import Counter

import pytest

from asyncbench import merge_folders
from asyncbench.errors import ConfigError
from asyncbench.lanes.batches.ledger import Step
from asyncbench.reports.status.report import status_of
from asyncbench.run.summary import Exit
from tests.commands import asyncbench_here
from tests.lanes.batches.test_limits import priced
from tests.world.batches import VENDORS
from tests.world.cuts import CutError, cutting

OPENAI, ANTHROPIC = VENDORS
SLOW = {"latency_s": 4000}
SOON_S = 300.0


def interrupted(night, *words, **keys):
    """A night of which 20 trials were answered one by one; six are in a batch that goes on."""
    asked = night(*words, play=SLOW, **keys)
    asked.raw["mode"] = "realtime"
    assert asked.run(limit=20).exit is Exit.COMPLETE
    asked.raw["mode"] = "batch"
    asked.dies_after(SOON_S, limit=26)
    assert [part.requests for part in asked.parts if part.open] == [6]
    return asked


COMMANDS = (
    (("report", "{}"), ("status", "{}", "--verify"), ("regrade", "{}", "--write")),
    (
        *(("report", "{}", "--style", style) for style in ("anatomy", "cost", "quota", "llm-arithmetic")),
        *(("report", "{}", "--html"), ("sql", "{}", "FROM cost")),
        ("compare", "{model}", "{model}", "{}", "{}-copy"),
        ("export", "llm-arithmetic", "{}", "--out", "{}-exported"),
    ),
)


@pytest.mark.long
@pytest.mark.parametrize("commands", COMMANDS, ids=["that write", "that read"])
def test_every_command_takes_a_folder_with_open_batches_and_leaves_them(night, commands):
    asked = interrupted(night, OPENAI)
    model = asked.raw["models"][0]["model"]
    before = asked.parts
    shutil.copytree(asked.out, f"{asked.out}-copy")
    for words in commands:
        done = asyncbench_here(*(word.format(asked.out, model=model) for word in words))
        assert done.returncode == 0, (words, done.stderr)
    assert asked.parts == before
    assert asked.run(limit=26).exit is Exit.COMPLETE
    assert len(asked.answers) == len(asked.attempts) == 26
    assert asked.billed == dict.fromkeys(asked.billed, 1)


def test_a_folder_with_open_batches_is_not_merged_until_they_are_collected(night):
    asked = interrupted(night, OPENAI)
    shutil.copytree(asked.out, asked.folder / "copy")
    with pytest.raises(ConfigError, match=r"6 trials are in open batches.*asyncbench cancel"):
        merge_folders([asked.out, asked.folder / "copy"], asked.folder / "both")
    assert not (asked.folder / "both").exists()


@pytest.mark.long
def test_answers_are_not_taken_over_beside_open_batches_with_trials_of_the_sweep(night):
    asked = interrupted(night, OPENAI)
    again = night(OPENAI, model=asked.model)
    again.raw["models"] = asked.raw["models"]
    with pytest.raises(ConfigError, match=r"6 trials are in open batches of that folder.*asyncbench cancel"):
        again.run(reuse=[asked.out])
    assert again.run(reuse=[asked.out], limit=20).exit is Exit.COMPLETE  # of those none is in a batch
    assert asked.run(limit=26).exit is Exit.COMPLETE
    assert again.run(reuse=[asked.out]).exit is Exit.COMPLETE
    assert Counter(row["mode"] for row in again.attempts) == {"batch": 72 - 26}


@pytest.mark.long
def test_answers_are_not_taken_over_beside_abandoned_batches_with_trials_of_the_sweep(night):
    asked = night(ANTHROPIC, "create_dropped=#1")
    assert asked.run(limit=4).exit is Exit.UNFINISHED
    [part] = asked.parts
    asked.cancel(part.key)
    again = night(ANTHROPIC, model=asked.model)
    again.raw["models"] = asked.raw["models"]
    with pytest.raises(ConfigError, match=r"4 trials .* may be in abandoned ones.*--resubmit"):
        again.run(reuse=[asked.out], limit=4)
    assert again.truth == []
    assert asked.run(limit=4, resubmit=(part.key,)).exit is Exit.COMPLETE
    assert again.run(reuse=[asked.out], limit=4).exit is Exit.COMPLETE
    assert again.attempts == []


@pytest.mark.long
def test_what_is_in_an_open_batch_is_not_taken_over_from_elsewhere(night):
    asked = interrupted(night, OPENAI)
    done = night(OPENAI, model=asked.model)
    done.raw["models"] = asked.raw["models"]
    done.raw["mode"] = "realtime"
    assert done.run().exit is Exit.COMPLETE
    summary = asked.run(reuse=[done.out])
    assert summary.exit is Exit.COMPLETE
    assert "took over 46 answers" in "\n".join(asked.screen.lines)
    assert Counter(row["mode"] for row in asked.attempts) == {"realtime": 20, "batch": 6}
    assert len(asked.answers) == 72


@pytest.mark.long
def test_a_merged_folder_keeps_what_a_batch_in_doubt_may_have_cost(night):
    asked = night(ANTHROPIC, "create_dropped=#1", batch={"on_doubt": "resubmit"}, budget_usd=10)
    asked.raw["models"][0] |= {"price": {"input": 1, "output": 1, "batch": 0.5}, "max_tokens": 100}
    assert asked.run(limit=6).exit is Exit.COMPLETE
    assert [part.step for part in asked.parts if part.step is not Step.CLEANED] == [Step.GIVEN_UP]
    shutil.copytree(asked.out, asked.folder / "copy")
    merge_folders([asked.out, asked.folder / "copy"], asked.folder / "both")
    asked.raw["out"] = str(asked.folder / "both")
    asked.out = asked.folder / "both"
    assert [part.step for part in asked.parts] == [Step.GIVEN_UP]
    (cap,) = asked.run(limit=6).budget.ledger.caps
    assert cap.doubted > 0


@pytest.mark.long
def test_a_merged_folder_keeps_what_a_second_batch_of_a_part_may_have_cost(night):
    asked = night(OPENAI, "create_twice=#1", "cancel_completes=1", play=SLOW, budget_usd=10)
    asked.raw["models"][0] |= {"price": {"input": 1, "output": 1, "batch": 0.5}, "max_tokens": 100}
    (before,) = asked.run(limit=6).budget.ledger.caps
    assert (asked.parts[0].paid_twins, before.doubted > 0) == (1, True)
    shutil.copytree(asked.out, asked.folder / "copy")
    merge_folders([asked.out, asked.folder / "copy"], asked.folder / "both")
    asked.raw["out"] = str(asked.folder / "both")
    (cap,) = asked.run(limit=6).budget.ledger.caps
    assert (cap.reserved, cap.doubted, cap.spent) == (before.reserved, before.doubted, before.spent)


@pytest.mark.long
@pytest.mark.parametrize(("vendor", "step"), [(OPENAI, "uploaded"), (ANTHROPIC, "prepared")])
def test_a_part_that_was_not_sent_is_given_back_when_its_trials_have_left_the_sweep(night, vendor, step):
    asked = priced(night(vendor), budget_usd=1)
    with cutting(f"after line {step} 1"), pytest.raises((CutError, ExceptionGroup)):
        asked.run(limit=10)
    asked.raw["models"][0]["temperature"] = 0.5  # other trials
    with asked.watched():
        asked.completes(limit=2)
    assert sum(batch["requests"] for batch in asked.truth) == len(asked.answers) == 2
    assert asked.ledger.caps[0].reserved == 0
    assert not list(asked.out.glob("batches/*.jsonl"))


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_nobody_promises_to_grade_answers_whose_trials_have_left_the_sweep(night, vendor):
    asked = night(vendor, play=SLOW)
    asked.dies_after(SOON_S, limit=6)
    asked.raw["models"][0]["temperature"] = 0.5
    assert asked.run(limit=6).exit is Exit.COMPLETE
    assert len(asked.answers) == 6
    status = status_of(asked.out)
    assert (status.ungraded, status.outside) == (0, 6)
    assert "6 answers of batches are of trials that have left the sweep" in status.as_text()
    assert "answers wait to be graded" not in asyncbench_here("report", asked.out).stdout
    del asked.raw["models"][0]["temperature"]
    assert asked.run(limit=6).exit is Exit.COMPLETE
    assert asked.billed == dict.fromkeys(asked.billed, 1)
    assert status_of(asked.out).outside == 0
