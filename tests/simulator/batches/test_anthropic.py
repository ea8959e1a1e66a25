"""Anthropic's Message Batches, through its own SDK."""

import anthropic
import orjson
import pytest

from tests.simulator.batches.conftest import DAY_S, QUESTIONS, message_requests, right, texts


async def created(vendors, requests):
    asked = message_requests(requests) if isinstance(requests, int) else requests
    return await vendors.anthropic.messages.batches.create(requests=asked)


async def finished(vendors, requests):
    """A batch two days later, with its lines."""
    batch = await created(vendors, requests)
    await vendors.forward(2 * DAY_S)
    batch = await vendors.anthropic.messages.batches.retrieve(batch.id)
    return batch, [line async for line in await vendors.anthropic.messages.batches.results(batch.id)]


def kinds(lines):
    return {line.custom_id: line.result.type for line in lines}


async def test_counts_do_not_move_before_the_end(vendors):
    anthropics = await vendors()
    batch = await created(anthropics, 3)
    assert batch.id.startswith("msgbatch_")
    assert (batch.expires_at - batch.created_at).total_seconds() == DAY_S

    await anthropics.forward(63 + 900)
    reply = await anthropics.anthropic.messages.batches.with_raw_response.retrieve(batch.id)
    assert reply.headers["retry-after"] == "10"
    running = await reply.parse()
    assert (running.processing_status, running.ended_at, running.results_url) == ("in_progress", None, None)
    assert (running.request_counts.processing, running.request_counts.succeeded) == (3, 0)

    await anthropics.forward(DAY_S)
    reply = await anthropics.anthropic.messages.batches.with_raw_response.retrieve(batch.id)
    assert "retry-after" not in reply.headers
    ended = await reply.parse()
    assert (ended.processing_status, bool(ended.ended_at)) == ("ended", True)
    assert (ended.request_counts.processing, ended.request_counts.succeeded) == (0, 3)
    assert ended.results_url == f"{anthropics.plain.url}/v1/messages/batches/{batch.id}/results"
    assert texts(await anthropics.results(batch.id)) == right(3)


async def test_a_batch_answers_as_a_call_does_but_for_its_tier(vendors):
    anthropics = await vendors()
    _, (line,) = await finished(anthropics, message_requests(1, model="noisy"))

    said = (await anthropics.plain.ask(QUESTIONS[0], model="noisy", wire="anthropic")).body
    message = line.result.message
    assert [block.text for block in message.content] == [block["text"] for block in said["content"]]
    assert (message.usage.input_tokens, message.usage.output_tokens) == (
        said["usage"]["input_tokens"],
        said["usage"]["output_tokens"],
    )
    assert (message.usage.service_tier, said["usage"]["service_tier"]) == ("batch", "standard")


async def test_results_are_lines_in_chunks(vendors):
    anthropics = await vendors()
    batch, _ = await finished(anthropics, 2)
    reply = await anthropics.plain.send("GET", f"/v1/messages/batches/{batch.id}/results")

    assert reply.headers["content-type"] == "application/x-jsonl"
    assert "content-length" not in reply.headers


async def test_parameters_are_checked_at_the_end_and_models_may_be_mixed(vendors):
    mixed = [
        *message_requests(1),
        {"custom_id": "noisy", "params": message_requests(1, model="noisy")[0]["params"]},
        {"custom_id": "unknown", "params": message_requests(1, model="claude-0")[0]["params"]},
        {"custom_id": "bad", "params": message_requests(1, max_tokens=0)[0]["params"]},
        {"custom_id": "stream", "params": message_requests(1, stream=True)[0]["params"]},
    ]
    anthropics = await vendors()
    batch, lines = await finished(anthropics, mixed)

    assert kinds(lines) == {
        "q0": "succeeded",
        "noisy": "succeeded",
        "unknown": "errored",
        "bad": "errored",
        "stream": "errored",
    }
    assert (batch.request_counts.succeeded, batch.request_counts.errored) == (2, 3)
    errors = {line.custom_id: line.result.error.error.type for line in lines if line.result.type == "errored"}
    assert errors == {
        "unknown": "not_found_error",
        "bad": "invalid_request_error",
        "stream": "invalid_request_error",
    }
    assert sum(run["billed"] for run in await anthropics.executed()) == 2


@pytest.mark.parametrize(
    ("requests", "complaint"),
    [
        ([], "at least 1 item"),
        ([{"custom_id": "a b", "params": {}}], "should match pattern"),
        ([{"custom_id": "a" * 65, "params": {}}], "should match pattern"),
        ([{"custom_id": "a"}], "params: Field required"),
        (message_requests(1) * 2, "q0 is used twice"),
        ([3], "must be JSON: a list of"),
    ],
    ids=["none", "bad id", "long id", "no params", "id twice", "no request"],
)
async def test_a_wrong_list_is_refused_at_once(vendors, requests, complaint):
    anthropics = await vendors()
    with pytest.raises(anthropic.BadRequestError, match=complaint):
        await created(anthropics, requests)
    assert await anthropics.truth() == []


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"requests": [{"custom_id": "a", "params": {}}]', b'{"requests": [{]}']
)
async def test_a_body_that_is_no_list_is_refused(vendors, body):
    anthropics = await vendors()
    reply = await anthropics.plain.send("POST", "/v1/messages/batches", body=body)
    assert (reply.status, reply.body["type"]) == (400, "error")
    assert reply.body["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("limit", [{"max_requests": 2}, {"max_bytes": 200}])
async def test_a_batch_over_a_limit_is_too_large(vendors, limit):
    with pytest.raises(anthropic.RequestTooLargeError):
        await created(await vendors(**limit), 3)


async def test_so_many_requests_may_wait_in_all_batches(vendors):
    anthropics = await vendors(waiting_requests=5)
    await created(anthropics, 3)
    with pytest.raises(anthropic.RateLimitError, match="would wait"):
        await created(anthropics, 3)
    await anthropics.forward(2 * DAY_S)
    await created(anthropics, 3)


async def test_a_canceled_batch_has_a_line_for_each_request(vendors):
    anthropics = await vendors()
    batch = await created(anthropics, 10)
    await anthropics.forward(63 + 900)
    canceling = await anthropics.anthropic.messages.batches.cancel(batch.id)
    assert (canceling.processing_status, bool(canceling.cancel_initiated_at)) == ("canceling", True)

    await anthropics.forward(601)
    lines = [line async for line in await anthropics.anthropic.messages.batches.results(batch.id)]
    assert sorted(kinds(lines).values()) == ["canceled"] * 5 + ["succeeded"] * 5
    counts = (await anthropics.anthropic.messages.batches.retrieve(batch.id)).request_counts
    assert (counts.canceled, counts.succeeded) == (5, 5)


async def test_a_batch_that_takes_longer_than_a_day_expires(vendors):
    anthropics = await vendors(latency_s=4 * DAY_S)
    batch, lines = await finished(anthropics, 20)

    assert batch.processing_status == "ended"
    assert sorted(kinds(lines).values()) == ["expired"] * 16 + ["succeeded"] * 4
    assert {run["custom_id"] for run in await anthropics.executed()} == {
        line.custom_id for line in lines if line.result.type == "succeeded"
    }


async def test_results_are_archived_29_days_after_the_creation(vendors):
    anthropics = await vendors()
    batch, _ = await finished(anthropics, 1)
    await anthropics.forward(27 * DAY_S)

    batch = await anthropics.anthropic.messages.batches.retrieve(batch.id)
    assert (bool(batch.archived_at), batch.results_url) == (True, None)
    assert (await anthropics.plain.send("GET", f"/v1/messages/batches/{batch.id}/results")).status == 404
    assert [listed.id async for listed in anthropics.anthropic.messages.batches.list()] == [batch.id]


async def test_the_newest_batches_are_listed_first_page_by_page(vendors):
    anthropics = await vendors()
    made: list[str] = []
    for _ in range(3):
        made.insert(0, (await created(anthropics, 1)).id)
        await anthropics.forward(1)

    assert [batch.id async for batch in anthropics.anthropic.messages.batches.list(limit=2)] == made
    page = await anthropics.anthropic.messages.batches.list(before_id=made[1])
    assert [batch.id for batch in page.data] == made[:1]
    with pytest.raises(anthropic.BadRequestError, match="before_id: no 'x'"):
        await anthropics.anthropic.messages.batches.list(before_id="x")
    page = await anthropics.anthropic.messages.batches.list(limit=1, after_id=made[0])
    assert ([batch.id for batch in page.data], page.has_more) == ([made[1]], True)


async def test_an_ended_batch_can_be_deleted_and_is_not_forgotten(vendors):
    anthropics = await vendors()
    batch = await created(anthropics, 1)
    with pytest.raises(anthropic.BadRequestError, match="cancel it first"):
        await anthropics.anthropic.messages.batches.delete(batch.id)
    await anthropics.forward(DAY_S)
    assert (await anthropics.anthropic.messages.batches.delete(batch.id)).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        await anthropics.anthropic.messages.batches.retrieve(batch.id)
    assert [told["billed"] for told in await anthropics.truth()] == [1]


async def test_another_workspace_sees_nothing(vendors):
    anthropics = await vendors()
    batch = await created(anthropics, 1)
    stranger = await vendors.connect(anthropics.plain, "k@elsewhere")

    assert [batch async for batch in stranger.anthropic.messages.batches.list()] == []
    with pytest.raises(anthropic.NotFoundError):
        await stranger.anthropic.messages.batches.retrieve(batch.id)
    reply = await stranger.anthropic.messages.batches.with_raw_response.list()
    assert reply.headers["anthropic-workspace-id"] == "wrkspc_elsewhere"


async def test_a_batch_itself_may_say_how_it_goes(vendors):
    anthropics = await vendors()
    batch = await created(anthropics, message_requests(2, simulate={"batch": {"speedup": 3600}}))
    await anthropics.forward(2)
    assert (await anthropics.anthropic.messages.batches.retrieve(batch.id)).processing_status == "ended"


async def test_a_body_may_come_in_any_pieces(vendors):
    anthropics = await vendors()
    body = orjson.dumps({"requests": message_requests(40, system="Zählen — \u2028 bitte")})

    async def pieces():
        for start in range(0, len(body), 7):
            yield body[start : start + 7]

    reply = await anthropics.plain.send("POST", "/v1/messages/batches", body=pieces())
    assert (reply.status, reply.body["request_counts"]["processing"]) == (200, 40)
    await anthropics.forward(DAY_S)
    assert texts(await anthropics.results(reply.body["id"])) == right(40)
