"""Lines of the ledger that the disk has changed: what may have been sent is looked for, never sent again."""

import pytest

from asyncbench.errors import StoreError
from asyncbench.lanes.batches.ledger import BatchLedger, Step
from asyncbench.lanes.batches.status import PartState, part_statuses
from tests.tiers import first_rows
from tests.world.batches import VENDORS

OPENAI, ANTHROPIC = VENDORS


def damage(asked, *steps):
    """Change the lines of these steps."""
    [segment] = (asked.out / "batches" / "ledger").glob("*.wal")
    lines = segment.read_bytes().splitlines(keepends=True)
    changed = [
        line.replace(b'"at"', b'"aX"') if any(b'"%s"' % step.encode() in line for step in steps) else line
        for line in lines
    ]
    assert changed != lines
    segment.write_bytes(b"".join(changed))


def left_running(asked):
    asked.dies_after(1000, limit=6)


@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_a_part_whose_lines_are_damaged_is_looked_for_before_it_is_sent(night, vendor):
    asked = night(vendor, play={"latency_s": 4000})
    left_running(asked)
    damage(asked, Step.UPLOADED, Step.SUBMITTING, Step.SUBMITTED, Step.SEEN)
    ledger = BatchLedger(asked.out)
    assert [one.state for one in part_statuses(ledger, running=False, now=0.0)] == [PartState.IN_DOUBT]
    asked.completes(limit=6)
    assert len(asked.answers) == 6
    assert any("lines of the ledger of batches are damaged" in line for line in asked.screen.lines)


def test_a_part_of_which_no_line_can_be_read_stops_the_run(night):
    asked = night(OPENAI, play={"latency_s": 4000})
    left_running(asked)
    damage(asked, *Step)
    with pytest.raises(StoreError, match="may have been sent"):
        asked.run(limit=6)
    assert len(asked.truth) == 1


def test_a_last_line_that_was_cut_short_is_no_damage(night):
    asked = night(OPENAI, play={"latency_s": 4000})
    left_running(asked)
    [segment] = (asked.out / "batches" / "ledger").glob("*.wal")
    with segment.open("ab") as lines:
        lines.write(b'12345678 {"part":"cut sh')
    ledger = BatchLedger(asked.out)
    assert not ledger.damaged
    assert ledger.damage is None
