"""Every fault of batches, one at a time, as a client sees it and as it truly was."""

from collections import Counter
from pathlib import Path

import aiohttp
import anthropic
import openai
import orjson
import pytest

from asyncbench.errors import ConfigError
from asyncbench.simulator.batches.settings import KINDS, BatchFaultKind, Dealer, parse_batch_fault
from tests.simulator.batches.conftest import (
    CHAT,
    DAY_S,
    HOUR_S,
    QUESTIONS,
    chat_line,
    chat_lines,
    message_requests,
    right,
    texts,
)

LOST = openai.APIConnectionError  # of what a client knows when a connection breaks


# ── which ────────────────────────────────────────────────────────────────────────────────────


def test_each_kind_is_played_by_a_test_here():
    tests = Path(__file__).read_text("utf-8")
    assert [kind for kind in KINDS if f'"{kind}=' not in tests] == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rain=1", "no kind 'rain'; kinds: failed, slow_start"),
        ("expires", "write `expires=0.1`"),
        ("expires=2", "its share must be from 0 to 1"),
        ("expires=1:soon", "its value a number"),
        ("expires=#", "write `expires=0.1`"),
    ],
)
def test_a_slip_is_refused_with_the_rule(text, complaint):
    with pytest.raises(ConfigError, match=complaint):
        parse_batch_fault(text)


def test_a_fault_hits_by_place_or_by_chance_the_same_in_every_run():
    faults = [parse_batch_fault(text) for text in ("expires=#2:0.25", "slow_start=0.3", "line_400=1")]
    met = [Dealer("7").deal(faults, "batch", "noisy", number=number) for number in range(1, 500)]

    assert [number for number, found in enumerate(met, 1) if BatchFaultKind.EXPIRES in found] == [2]
    assert met[1][BatchFaultKind.EXPIRES] == "0.25"
    assert 100 < sum(BatchFaultKind.SLOW_START in found for found in met) < 200
    assert met == [Dealer("7").deal(faults, "batch", "noisy", number=number) for number in range(1, 500)]
    assert met != [Dealer("8").deal(faults, "batch", "noisy", number=number) for number in range(1, 500)]


async def test_a_seed_gives_the_same_lines_whatever_the_ids(vendors):
    async def lines(seed, prefix):
        openais = await vendors("line_500=0.3", "expires=1:0.6", seed=seed)
        content = b"".join(chat_line(f"{prefix}{n}", QUESTIONS[n]) for n in range(40))
        _, output, errors = await openais.finished(content)
        return [[line["custom_id"][1:] for line in file] for file in (output, errors)]

    first = await lines(1, "a")
    assert all(first)
    assert first == await lines(1, "b")
    assert first != await lines(2, "a")


# ── calls ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "uploaded"), [("upload_dropped=#1", 0), ("upload_reply_dropped=#1", 1), ("upload_500=#1", 1)]
)
async def test_an_upload_fails(vendors, fault, uploaded):
    openais = await vendors(fault)
    with pytest.raises(openai.InternalServerError if "500" in fault else LOST):
        await openais.upload(chat_lines(1))
    listed = [file async for file in openais.openai.files.list(purpose="batch")]
    assert len(listed) == uploaded
    await openais.upload(chat_lines(1))


CREATES = [
    ("create_dropped=#1", LOST, 0),
    ("create_reply_dropped=#1", LOST, 1),
    ("create_500=#1", openai.InternalServerError, 1),
    ("create_429=#1", openai.RateLimitError, 0),
    ("create_400=#1:billing_hard_limit_reached", openai.BadRequestError, 0),
]


@pytest.mark.parametrize(("fault", "error", "created"), CREATES)
async def test_a_create_fails_and_what_it_did_is_known(vendors, fault, error, created):
    openais = await vendors(fault)
    file_id = await openais.upload(chat_lines(3))
    create = {"completion_window": "24h", "endpoint": CHAT, "input_file_id": file_id}
    with pytest.raises(error) as failed:
        await openais.openai.batches.create(**create)
    if "400" in fault:
        assert failed.value.code == "billing_hard_limit_reached"

    listed = [batch.input_file_id async for batch in openais.openai.batches.list()]
    assert listed == [file_id] * created
    await openais.openai.batches.create(**create)
    await openais.forward(DAY_S)
    runs = Counter(run["custom_id"] for run in await openais.executed())
    assert set(runs.values()) == {1 + created}  # whoever asks again is billed twice


@pytest.mark.parametrize(("fault", "error", "created"), CREATES)
async def test_a_create_of_anthropic_s_fails_likewise(vendors, fault, error, created):
    anthropics = await vendors(fault)
    with pytest.raises(getattr(anthropic, error.__name__)):
        await anthropics.anthropic.messages.batches.create(requests=message_requests(3))
    listed = [batch async for batch in anthropics.anthropic.messages.batches.list()]
    assert [sum(dict(batch.request_counts).values()) for batch in listed] == [3] * created


async def test_a_create_is_handled_after_the_client_gave_up(vendors):
    openais = await vendors("create_late=#1:600")
    with pytest.raises(LOST):
        await openais.create(1)
    assert [batch async for batch in openais.openai.batches.list()] == []
    await openais.forward(601)
    assert len([batch async for batch in openais.openai.batches.list()]) == 1


async def test_a_late_create_finds_no_file_that_was_deleted_before(vendors):
    openais = await vendors("create_late=#1:600")
    with pytest.raises(LOST):
        await openais.create(1)
    (file,) = [file async for file in openais.openai.files.list()]
    await openais.openai.files.delete(file.id)
    await openais.forward(DAY_S)
    assert [batch async for batch in openais.openai.batches.list()] == []
    assert (await openais.truth(), await openais.executed()) == ([], [])


async def test_a_create_is_executed_twice(vendors):
    openais = await vendors("create_twice=#1")
    batch = await openais.create(2, metadata={"batch_key": "k"})
    twins = [twin async for twin in openais.openai.batches.list()]
    assert len({twin.id for twin in twins}) == 2
    assert {(twin.input_file_id, twin.metadata["batch_key"]) for twin in twins} == {
        (batch.input_file_id, "k")
    }
    await openais.forward(DAY_S)
    assert Counter(run["custom_id"] for run in await openais.executed()) == {"q0": 2, "q1": 2}


async def test_a_cancel_fails_after_it_is_done(vendors):
    openais = await vendors("cancel_500=#1")
    batch = await openais.create(1)
    with pytest.raises(openai.InternalServerError):
        await openais.openai.batches.cancel(batch.id)
    assert (await openais.openai.batches.retrieve(batch.id)).status == "cancelling"
    assert (await openais.openai.batches.cancel(batch.id)).status == "cancelling"


# ── visibility ───────────────────────────────────────────────────────────────────────────────


async def test_a_new_batch_is_not_listed_for_a_while(vendors):
    openais = await vendors("unlisted=1:300")
    batch = await openais.create(1)
    assert [batch async for batch in openais.openai.batches.list()] == []
    assert (await openais.openai.batches.retrieve(batch.id)).id == batch.id
    await openais.forward(301)
    assert [batch.id async for batch in openais.openai.batches.list()] == [batch.id]


async def test_a_list_is_behind(vendors):
    openais = await vendors("list_behind=1")
    batch = await openais.create(1)
    await openais.forward(DAY_S)
    assert [batch.status async for batch in openais.openai.batches.list()] == ["validating"]
    assert (await openais.openai.batches.retrieve(batch.id)).status == "completed"


async def test_a_new_batch_is_not_found_for_a_while(vendors):
    both = await vendors("unknown=1:60")
    ours = await both.create(1)
    theirs = await both.anthropic.messages.batches.create(requests=message_requests(1))
    with pytest.raises(openai.NotFoundError):
        await both.openai.batches.retrieve(ours.id)
    with pytest.raises(anthropic.NotFoundError):
        await both.anthropic.messages.batches.retrieve(theirs.id)
    await both.forward(61)
    assert (await both.openai.batches.retrieve(ours.id)).id == ours.id
    assert (await both.anthropic.messages.batches.retrieve(theirs.id)).id == theirs.id


async def test_a_batch_is_not_found_now_and_then(vendors):
    openais = await vendors("unknown_again=#2")
    batch = await openais.create(1)
    found = []
    for _ in range(3):
        try:
            await openais.openai.batches.retrieve(batch.id)
            found.append(True)
        except openai.NotFoundError:
            found.append(False)
    assert found == [True, False, True]


async def test_results_are_not_found_at_first(vendors):
    both = await vendors("results_unknown=1:7200")
    theirs = await both.anthropic.messages.batches.create(requests=message_requests(1))
    ours = await both.create(1)
    await both.forward(HOUR_S)
    ours = await both.openai.batches.retrieve(ours.id)
    assert ours.status == "completed"
    with pytest.raises(openai.NotFoundError):
        await both.openai.files.content(ours.output_file_id)
    with pytest.raises(anthropic.NotFoundError):
        await both.anthropic.messages.batches.results(theirs.id)
    await both.forward(2 * HOUR_S)
    assert texts(await both.lines(ours.output_file_id)) == texts(await both.results(theirs.id)) == right(1)


async def test_a_list_skips_an_entry(vendors):
    openais = await vendors("skipped=#1")
    batch = await openais.create(1)
    assert [batch async for batch in openais.openai.batches.list()] == []
    assert [batch.id async for batch in openais.openai.batches.list()] == [batch.id]


# ── validation ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "errors"),
    [
        ("failed=1:input_no_permissions", [("input_no_permissions", None)]),
        ("failed=1:invalid_json_line@2", [("invalid_json_line", 2)]),
        ("failed_unexplained=1", []),
    ],
)
async def test_validation_fails(vendors, fault, errors):
    openais = await vendors(fault)
    batch, _, _ = await openais.finished(2)
    assert batch.status == "failed"
    assert [(error.code, error.line) for error in batch.errors.data] == errors
    assert await openais.executed() == []


async def test_the_pool_is_full_for_an_hour(vendors):
    openais = await vendors("pool_full=1:3600")
    statuses = []
    for _ in range(3):
        batch = await openais.create(1)
        await openais.forward(HOUR_S / 2 + 1)
        batch = await openais.openai.batches.retrieve(batch.id)
        statuses.append(
            (batch.status, bool(batch.errors) and batch.errors.data[0].message.partition(" Please")[0])
        )
    message = (
        "Enqueued token limit reached for oracle in organization org-simulated. "
        "Limit: 2,000,000 enqueued tokens."
    )
    assert statuses == [("failed", message), ("failed", message), ("in_progress", False)]


async def test_the_limit_is_told_without_commas(vendors):
    batch, _, _ = await (await vendors("pool_full=1", "without_commas=1")).finished(1)
    assert "Limit: 2000000 enqueued" in batch.errors.data[0].message


async def test_the_limit_may_be_told_at_once(vendors):
    openais = await vendors("pool_full=1", "token_limit_at_create=1")
    with pytest.raises(openai.BadRequestError) as refused:
        await openais.create(1)
    assert refused.value.code == "token_limit_exceeded"
    assert await openais.truth() == []


async def test_the_longest_replies_may_count(vendors):
    openais = await vendors("pool_counts_replies=1", enqueued_tokens=100)
    batch, _, _ = await openais.finished(chat_lines(2, max_completion_tokens=50))
    assert batch.errors.data[0].code == "token_limit_exceeded"


async def test_an_ended_batch_holds_its_part_of_the_pool(vendors):
    openais = await vendors("pool_held=#1:90000", enqueued_tokens=8)
    batch, _, _ = await openais.finished(2)
    await openais.forward(-DAY_S)
    assert batch.status == "completed"
    held = await openais.create(2)
    await openais.forward(70)
    assert (await openais.openai.batches.retrieve(held.id)).status == "failed"
    batch, _, _ = await openais.finished(2)
    assert batch.status == "failed"  # it came while the first one still counted
    batch, _, _ = await openais.finished(2)
    assert batch.status == "completed"


# ── course ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "states"),
    [
        ("stuck_validating=1:3600", ["validating", "in_progress", "completed"]),
        ("stuck_finalizing=1:3600", ["finalizing", "finalizing", "completed"]),
        ("slow_start=1:7200", ["in_progress", "in_progress", "completed"]),
    ],
)
async def test_a_batch_takes_its_time(vendors, fault, states):
    openais = await vendors(fault)
    batch, seen = await openais.create(1), []
    for forward_s in (3000, 1500, 7200):
        await openais.forward(forward_s)
        seen.append((await openais.openai.batches.retrieve(batch.id)).status)
    assert seen == states


async def test_a_batch_expires_with_a_share_done(vendors):
    both = await vendors("expires=1:0.3")
    theirs = await both.anthropic.messages.batches.create(requests=message_requests(10))
    batch, output, errors = await both.finished(10)
    assert (batch.status, len(output), len(errors)) == ("expired", 3, 7)
    assert Counter(line["result"]["type"] for line in await both.results(theirs.id)) == {
        "succeeded": 3,
        "expired": 7,
    }
    assert sum(run["billed"] for run in await both.executed()) == 6


async def test_a_batch_never_expires(vendors):
    openais = await vendors("never_expires=1", latency_s=3 * DAY_S)
    batch = await openais.create(2)
    await openais.forward(2 * DAY_S)
    assert (await openais.openai.batches.retrieve(batch.id)).status == "in_progress"
    await openais.forward(2 * DAY_S)
    assert (await openais.openai.batches.retrieve(batch.id)).status == "completed"


@pytest.mark.parametrize(("fault", "status"), [("input_needed=1", "failed"), ("skipped=0", "in_progress")])
async def test_a_batch_may_need_its_input_file_to_its_end(vendors, fault, status):
    openais = await vendors(fault)
    batch = await openais.create(2)
    await openais.forward(600)
    await openais.openai.files.delete(batch.input_file_id)
    assert (await openais.openai.batches.retrieve(batch.id)).status == status
    await openais.forward(DAY_S)
    assert len(await openais.executed()) == (0 if status == "failed" else 2)


async def test_a_large_batch_whose_results_are_being_written_cannot_be_cancelled(vendors):
    openais = await vendors()
    batch = await openais.create(chat_lines(1500))
    await openais.forward(DAY_S)
    assert (await openais.openai.batches.retrieve(batch.id)).status == "finalizing"
    with pytest.raises(openai.ConflictError):
        await openais.openai.batches.cancel(batch.id)
    assert [told["billed"] for told in await openais.truth()] == [1500]


@pytest.mark.parametrize(
    ("fault", "states", "answered"),
    [
        ("cancel_slow=1:1500", ["cancelling", "cancelled"], 5),
        ("cancel_completes=1", ["cancelling", "completed"], 10),
    ],
)
async def test_a_cancel_takes_long_or_comes_to_nothing(vendors, fault, states, answered):
    openais = await vendors(fault)
    batch = await openais.create(10)
    await openais.forward(63 + 900)
    await openais.openai.batches.cancel(batch.id)
    seen = []
    for forward_s in (800, 800):
        await openais.forward(forward_s)
        batch = await openais.openai.batches.retrieve(batch.id)
        seen.append(batch.status)
    assert seen == states
    assert len(await openais.lines(batch.output_file_id)) == answered == len(await openais.executed())


# ── files ────────────────────────────────────────────────────────────────────────────────────


async def test_lines_come_in_any_order(vendors):
    both = await vendors("shuffled=1")
    theirs = await both.anthropic.messages.batches.create(requests=message_requests(30))
    _, output, _ = await both.finished(30)
    for lines in (output, await both.results(theirs.id)):
        assert texts(lines) == right(30)
        assert [line["custom_id"] for line in lines] != [*right(30)]


async def test_ids_of_files_that_are_not_there_may_be_empty(vendors):
    openais = await vendors("empty_ids=1")
    batch = await openais.create(1)
    assert (batch.output_file_id, batch.error_file_id) == ("", "")
    batch, _, _ = await openais.finished(1)
    assert (bool(batch.output_file_id), batch.error_file_id) == (True, "")


async def test_a_file_of_errors_may_be_there_and_empty(vendors):
    openais = await vendors("empty_error_file=1")
    batch, output, errors = await openais.finished(1)
    assert (bool(batch.error_file_id), len(output), errors) == (True, 1, [])


async def test_the_id_of_the_output_comes_late(vendors):
    openais = await vendors("output_late=1:3600")
    batch = await openais.create(1)
    await openais.forward(HOUR_S)
    batch = await openais.openai.batches.retrieve(batch.id)
    assert (batch.status, batch.request_counts.completed, batch.output_file_id) == ("completed", 1, None)
    (file,) = [
        file async for file in openais.openai.files.list() if file.filename == f"{batch.id}_output.jsonl"
    ]
    await openais.forward(HOUR_S)
    assert (await openais.openai.batches.retrieve(batch.id)).output_file_id == file.id


async def test_results_are_gone(vendors):
    both = await vendors("file_expired=1")
    theirs = await both.anthropic.messages.batches.create(requests=message_requests(1))
    with pytest.raises(openai.NotFoundError):
        await both.finished(1)
    with pytest.raises(anthropic.AnthropicError):
        await both.anthropic.messages.batches.results(theirs.id)


async def test_results_are_said_to_be_on_another_host(vendors):
    anthropics = await vendors("results_elsewhere=1:http://127.0.0.3:9")
    batch = await anthropics.anthropic.messages.batches.create(requests=message_requests(1))
    await anthropics.forward(DAY_S)
    batch = await anthropics.anthropic.messages.batches.retrieve(batch.id)
    assert batch.results_url == f"http://127.0.0.3:9/v1/messages/batches/{batch.id}/results"
    assert texts(await anthropics.results(batch.id)) == right(1)  # at its own address, too


async def content_path(both, vendor, count):
    """Where the results of so many questions are, a day later."""
    if vendor == "openai":
        batch = await both.create(count)
        await both.forward(DAY_S)
        return f"/v1/files/{(await both.openai.batches.retrieve(batch.id)).output_file_id}/content"
    batch = await both.anthropic.messages.batches.create(requests=message_requests(count))
    await both.forward(DAY_S)
    return f"/v1/messages/batches/{batch.id}/results"


SPOILED = [
    "content_502=#1",
    "content_cut=#1",
    "content_cut_in_line=#1",
    "content_reset=#1",
    "content_wrong_length=#1",
]


@pytest.mark.parametrize("fault", SPOILED)
@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_the_content_comes_spoiled_once(vendors, fault, vendor):
    both = await vendors(fault)
    path = await content_path(both, vendor, 9)
    try:
        spoiled = await both.plain.send("GET", path)
    except aiohttp.ClientError as error:
        spoiled = error
    whole = (await both.plain.send("GET", path)).content
    assert whole.count(b"\n") == 9
    if fault == "content_502=#1":
        assert (spoiled.status, spoiled.content[:1]) == (502, b"<")
    elif fault == "content_reset=#1":
        assert "payload" in repr(spoiled).lower() or "reset" in repr(spoiled).lower()
    else:
        assert spoiled.status == 200
        assert whole.startswith(spoiled.content)
        assert 0 < len(spoiled.content) < len(whole)
        assert spoiled.content.endswith(b"\n") == (fault == "content_cut=#1")


# ── lines ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "status", "code", "error"),
    [
        ("line_too_long=#2", 400, "context_length_exceeded", "invalid_request_error"),
        ("line_400=#2", 400, None, "invalid_request_error"),
        ("line_429=#2", 429, "rate_limit_exceeded", "rate_limit_error"),
        ("line_no_quota=#2", 429, "insufficient_quota", "invalid_request_error"),
        ("line_500=#2", 500, None, "api_error"),
        ("line_504=#2", 504, "timeout", "timeout_error"),
        ("line_status_0=#2", 0, None, "api_error"),
        ("line_error_200=#2", 200, "bad_gateway", "api_error"),
    ],
)
async def test_a_line_fails(vendors, fault, status, code, error):
    both = await vendors(fault)
    theirs = await both.anthropic.messages.batches.create(requests=message_requests(3))
    batch, output, errors = await both.finished(3)

    failed = {line["custom_id"]: line for line in [*output, *errors]}["q1"]
    assert (failed["response"]["status_code"], failed["error"]) == (status, None)
    assert failed["response"]["body"]["error"]["code"] == code
    assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("completed", 2, 1)
    errored = {line["custom_id"]: line for line in await both.results(theirs.id)}["q1"]["result"]
    assert (errored["type"], errored["error"]["error"]["type"]) == ("errored", error)
    assert ("credit balance is too low" in errored["error"]["error"]["message"]) == (
        fault == "line_no_quota=#2"
    )
    assert {run["custom_id"] for run in await both.executed() if not run["billed"]} == {"q1"}


@pytest.mark.parametrize(
    ("fault", "code", "kind"),
    [("line_expired=#2", "batch_expired", "expired"), ("line_canceled=#2", "batch_cancelled", "canceled")],
)
async def test_a_line_was_not_run(vendors, fault, code, kind):
    both = await vendors(fault)
    theirs = await both.anthropic.messages.batches.create(requests=message_requests(3))
    _, _, (line,) = await both.finished(3)

    assert (line["custom_id"], line["response"], line["error"]["code"]) == ("q1", None, code)
    results = {line["custom_id"]: line["result"] for line in await both.results(theirs.id)}
    assert results["q1"] == {"type": kind}
    assert {run["custom_id"] for run in await both.executed()} == {"q0", "q2"}


@pytest.mark.parametrize(("fault", "billed"), [("line_missing=#2", 2), ("line_lost=#2", 3)])
async def test_a_line_is_in_no_file(vendors, fault, billed):
    both = await vendors(fault)
    batch, output, errors = await both.finished(3)

    assert (batch.status, [line["custom_id"] for line in output], errors) == ("completed", ["q0", "q2"], [])
    assert len(await both.executed()) == billed
    held = sum(line["response"]["body"]["usage"]["total_tokens"] for line in output)
    assert (batch.usage.total_tokens == held) == (billed == 2)  # usage tells which it was


async def test_a_line_comes_twice(vendors):
    openais = await vendors("line_twice=#2")
    _, output, _ = await openais.finished(3)
    assert [line["custom_id"] for line in output] == ["q0", "q1", "q1", "q2"]
    assert output[1] == output[2]
    assert len(await openais.executed()) == 3


async def test_a_line_is_of_nobody(vendors):
    both = await vendors("line_foreign=#2")
    theirs = await both.anthropic.messages.batches.create(requests=message_requests(3))
    _, output, _ = await both.finished(3)
    for lines in (output, await both.results(theirs.id)):
        assert len({line["custom_id"] for line in lines} - right(3).keys()) == 1
        assert texts(lines).items() >= right(3).items()


async def content_of(both, vendor):
    return (await both.plain.send("GET", await content_path(both, vendor, 3))).content


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_a_line_is_odd(vendors, vendor):
    lines = (await content_of(await vendors("line_separators=#1"), vendor)).split(b"\n")
    assert len(lines) == 3 + 1
    assert len(lines[0].decode().splitlines()) == 4  # who splits text has four
    assert texts(map(orjson.loads, lines[:-1])) == right(3)

    lines = (await content_of(await vendors("line_long=#1:1000000"), vendor)).split(b"\n")
    assert len(lines[0]) > 1_000_000
    assert texts(map(orjson.loads, lines[:-1])) == right(3)

    lines = (await content_of(await vendors("line_broken=#1"), vendor)).split(b"\n")
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(lines[0])
    assert texts(map(orjson.loads, lines[1:-1])).keys() == {"q1", "q2"}
