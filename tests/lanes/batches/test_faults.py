"""What goes wrong with batches, one thing at a time: every trial gets its answer, and none is paid twice."""

import pytest

from asyncbench.lanes.batches.ledger import BatchLedger
from asyncbench.lanes.batches.spending import left_open
from asyncbench.run.summary import Exit
from tests.world.batches import VENDORS

OPENAI, ANTHROPIC = VENDORS
FAULTS = [
    *((OPENAI, fault) for fault in ("upload_dropped=#1", "upload_reply_dropped=#1", "upload_500=#1")),
    *((vendor, "create_dropped=#1") for vendor in (OPENAI,)),
    *((vendor, f"{fault}=#1") for vendor in VENDORS for fault in ("create_reply_dropped", "create_500")),
    *((vendor, "create_429=#1") for vendor in VENDORS),
    *((vendor, "create_late=#1:60") for vendor in VENDORS),
    *((vendor, f"{fault}=#1") for vendor in VENDORS for fault in ("unlisted", "unknown", "results_unknown")),
    *((vendor, "skipped=0.3") for vendor in VENDORS),
    *((vendor, "list_behind=#1") for vendor in VENDORS),
    *((vendor, "unknown_again=0.3") for vendor in VENDORS),
    *((OPENAI, fault) for fault in ("pool_full=#1:3600", "pool_held=#1:3600", "token_limit_at_create=#1")),
    *((vendor, f"{fault}=#1") for vendor in VENDORS for fault in ("slow_start", "shuffled")),
    *(
        (OPENAI, f"{fault}=#1")
        for fault in ("stuck_validating", "stuck_finalizing", "empty_ids", "output_late")
    ),
    *((OPENAI, "failed_unexplained=#1"),),
    *((vendor, "expires=#1:0.5") for vendor in VENDORS),
    *(
        (vendor, f"{fault}=#1")
        for vendor in VENDORS
        for fault in ("content_502", "content_reset", "content_cut")
    ),
    *(
        (vendor, f"{fault}=#1")
        for vendor in VENDORS
        for fault in ("content_cut_in_line", "content_wrong_length")
    ),
    *(
        (vendor, f"{fault}=#3")
        for vendor in VENDORS
        for fault in ("line_429", "line_500", "line_504", "line_expired", "line_canceled")
    ),
    *((vendor, f"{fault}=#3") for vendor in VENDORS for fault in ("line_twice", "line_foreign")),
    *((vendor, f"{fault}=#3") for vendor in VENDORS for fault in ("line_separators", "line_long")),
    *((OPENAI, f"{fault}=#3") for fault in ("line_status_0", "line_missing")),
    *((ANTHROPIC, "results_elsewhere=#1"),),
]


@pytest.mark.long
@pytest.mark.parametrize(("vendor", "fault"), FAULTS)
def test_a_fault_costs_no_answer_and_no_money(night, vendor, fault):
    asked = night(vendor, fault, batch={"max_requests": 8, "rounds": 4})
    summary = asked.run(limit=12)
    assert summary.exit is Exit.COMPLETE, asked.screen.lines
    assert asked.answers == asked.undisturbed(limit=12)
    assert asked.billed == dict.fromkeys(asked.answers, 1)
    assert {row["mode"] for row in asked.attempts} == {"batch"}


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_lines_that_belong_to_no_request_are_kept_in_one_file_of_the_batch(night, vendor):
    asked = night(vendor, "line_twice=#2", "line_foreign=#3,4", "line_broken=#5")
    asked.run(limit=6)
    first = asked.parts[0]
    (strange,) = (asked.out / "batches").glob("*.strange")
    assert strange.name == f"{first.key}.strange"
    assert len(strange.read_bytes().splitlines()) == 4
    (said,) = [line for line in asked.screen.lines if "twice there" in line]
    assert str(strange) in said


def test_a_part_that_validation_refused_counts_no_round_of_a_later_run(night):
    asked = night(OPENAI, "failed=#1:context_length_exceeded@2", batch={"rounds": 1})
    asked.run(limit=6)
    refused = asked.parts[0]
    assert (refused.unanswered, bool(refused.faults)) == (6, True)
    assert left_open(BatchLedger(asked.out), refused.alias, asked.out).rounds == {}
    assert {row["mode"] for row in asked.attempts} == {"batch"}


@pytest.mark.long
def test_results_that_cannot_be_had_for_a_day_are_left_to_the_next_run(night):
    asked = night(OPENAI, "content_502=#" + ",".join(map(str, range(1, 111))))
    assert asked.run(limit=6).exit is Exit.UNFINISHED
    [said] = [line for line in asked.screen.lines if "could not be downloaded for a day" in line]
    assert f"batch {asked.parts[0].batch_id} " in said
    assert f"asyncbench import batch FILE --out {asked.out}" in said
    asked.completes(limit=6)
