"""Results that somebody fetched for batches of a run: the next one takes them in, and asks nothing twice."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from asyncbench import hand_in_results
from asyncbench.errors import ConfigError
from asyncbench.lanes.batches.ledger import Step
from asyncbench.run.summary import Exit
from tests.commands import asyncbench_here
from tests.processes import HANG_S
from tests.simulators import page
from tests.world.batches import VENDORS

OPENAI, ANTHROPIC = VENDORS
DAY_S = 86_400
SLOW = {"latency_s": 4000}
SOON_S = 300.0  # batches exist by then, and none has ended
HEADERS = {"authorization": "Bearer k", "anthropic-version": "2023-06-01", "x-api-key": "k"}


def fetched(server, path):
    place = urlsplit(server.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=HANG_S)
    try:
        connection.request("GET", path, headers=HEADERS)
        response = connection.getresponse()
        assert response.status == 200
        return response.read()
    finally:
        connection.close()


def files_of(night, vendor):
    """Fetch the results of every batch of a night, as a person would; return the files."""
    page(night.server, "/clock", {"forward_s": 2 * DAY_S})
    files = []
    for batch_id in [batch["batch_id"] for batch in night.truth]:
        if vendor == OPENAI:
            batch = json.loads(fetched(night.server, f"/v1/batches/{batch_id}"))
            ids = [batch[name] for name in ("output_file_id", "error_file_id") if batch[name]]
            content = {f"{batch_id}_{id_}.jsonl": f"/v1/files/{id_}/content" for id_ in ids}
        else:
            content = {f"{batch_id}_results.jsonl": f"/v1/messages/batches/{batch_id}/results"}
        for name, path in content.items():
            files.append(night.folder / name)
            files[-1].write_bytes(fetched(night.server, path))
    return files


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_results_fetched_by_hand_end_a_batch_that_the_provider_deleted(night, vendor):
    asked = night(vendor, "line_too_long=0.1", play=SLOW, batch={"max_requests": 40})
    asked.dies_after(SOON_S)
    files = files_of(asked, vendor)
    found = hand_in_results(files, asked.out)
    assert (found.left_out, found.exit) == ((), Exit.COMPLETE)
    assert sum(part.results for part in found.parts) == 72
    page(asked.server, "/clock", {"forward_s": 40 * DAY_S})
    asked.run()
    assert asked.billed == dict.fromkeys(asked.billed, 1)
    assert len(asked.answers) == len(asked.attempts) == 72
    assert {row["batch_id"] for row in asked.attempts} == {batch["batch_id"] for batch in asked.truth}
    assert {row["status"] for row in asked.attempts} == {"ok", "too_long"}
    assert {part.step for part in asked.parts} == {Step.CLEANED}


@pytest.mark.long
@pytest.mark.parametrize("abandoned", [False, True], ids=["that waits", "that was abandoned"])
def test_results_fetched_by_hand_settle_a_doubt(night, abandoned):
    asked = night(ANTHROPIC, "create_reply_dropped=#1", "unlisted=#1:1e7")
    assert asked.run(limit=6).exit is Exit.UNFINISHED
    assert any("no trace" in line for line in asked.screen.lines)
    if abandoned:
        asked.cancel(*[part.key for part in asked.parts])
        assert [part.step for part in asked.parts] == [Step.ABANDONED]
    hand_in_results(files_of(asked, ANTHROPIC), asked.out)
    asked.completes(limit=6)
    assert {row["batch_id"] for row in asked.attempts} == {batch["batch_id"] for batch in asked.truth}


@pytest.mark.long
def test_files_may_come_one_after_the_other_and_what_lacks_a_line_is_asked_again_if_wanted(night):
    asked = night(OPENAI, play=SLOW)
    asked.dies_after(SOON_S, limit=6)
    [whole] = files_of(asked, OPENAI)
    lines = whole.read_bytes().splitlines(keepends=True)
    first, second = asked.folder / "first.jsonl", asked.folder / "second.jsonl"
    first.write_bytes(b"".join(lines[:2]))
    second.write_bytes(b"".join(lines[1:5]))
    said = asyncbench_here("import", "batch", first, "--out", asked.out)
    assert said.returncode == Exit.UNFINISHED
    assert "2 of 6 results are in place" in said.stdout
    assert "repeat the command with --partial" in said.stdout
    assert {part.step for part in asked.parts} == {Step.SUBMITTED}
    found = hand_in_results([second], asked.out, partial=True)
    assert [part.results for part in found.parts] == [5]
    assert len(found.left_out) == 1
    assert "has a result already" in found.left_out[0]
    assert asked.run(limit=6).exit is Exit.COMPLETE
    assert sorted(row["status"] for row in asked.attempts) == ["lost", *6 * ["ok"]]


@pytest.mark.long
def test_a_part_of_the_results_is_completed_by_the_provider_and_nothing_is_paid_twice(night):
    asked = night(OPENAI, play=SLOW)
    asked.dies_after(SOON_S, limit=6)
    [whole] = files_of(asked, OPENAI)
    whole.write_bytes(b"".join(whole.read_bytes().splitlines(keepends=True)[:2]))
    assert hand_in_results([whole], asked.out).exit is Exit.UNFINISHED
    asked.completes(limit=6)
    assert [row["status"] for row in asked.attempts] == 6 * ["ok"]


@pytest.mark.long
def test_what_is_no_result_of_an_open_batch_is_refused_and_the_batch_stays_as_it_is(night):
    asked = night(OPENAI, play=SLOW)
    asked.dies_after(SOON_S, limit=6)
    [part] = asked.parts
    sent = asked.out / "batches" / f"{part.key}.jsonl"
    foreign = asked.folder / "foreign.jsonl"
    foreign.write_text('{"custom_id": "request-1", "response": null, "error": {"code": "batch_expired"}}')
    for file, why in ((sent, "is a request, not a result"), (foreign, "of no batch of this folder")):
        with pytest.raises(ConfigError, match=why):
            hand_in_results([file], asked.out)
    with pytest.raises(ConfigError, match="--requests"):
        hand_in_results([foreign], asked.folder)
    assert [(part.step, part.batch_id) for part in asked.parts] == [(part.step, part.batch_id)]
    results = files_of(asked, OPENAI)
    assert asked.run(limit=6).exit is Exit.COMPLETE
    with pytest.raises(ConfigError, match=r"6 results of batch .* is not open any more"):
        hand_in_results(results, asked.out)
