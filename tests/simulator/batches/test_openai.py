"""OpenAI's files and batches, through its own SDK."""

import openai
import pytest

from tests.simulator.batches.conftest import (
    CHAT,
    DAY_S,
    HOUR_S,
    QUESTIONS,
    chat_line,
    chat_lines,
    right,
    texts,
)

MONTH_S = 30 * DAY_S


async def test_a_batch_goes_through_its_states(vendors):
    openais = await vendors("stuck_finalizing=1:60")
    batch = await openais.create(3, metadata={"batch_key": "k1"})
    assert (batch.status, batch.model, batch.request_counts.total) == ("validating", None, 0)
    assert batch.id.startswith("batch_")
    assert batch.expires_at == batch.created_at + DAY_S
    assert batch.metadata == {"batch_key": "k1"}

    seen = {}
    for forward_s in (64, 900, 900, 60):
        await openais.forward(forward_s)
        batch = await openais.openai.batches.retrieve(batch.id)
        seen[batch.status] = (
            batch.request_counts.completed,
            batch.output_file_id is None,
            batch.usage.total_tokens > 0,
        )

    assert seen == {
        "in_progress": (1, True, False),
        "finalizing": (3, True, False),
        "completed": (3, False, True),
    }
    assert (batch.model, batch.error_file_id) == ("oracle", None)
    assert batch.created_at < batch.in_progress_at < batch.finalizing_at < batch.completed_at
    assert texts(await openais.lines(batch.output_file_id)) == right(3)


@pytest.mark.parametrize("url", [CHAT, "/v1/responses"])
async def test_a_batch_answers_as_a_call_does(vendors, url):
    openais = await vendors()
    line = chat_line("a", QUESTIONS[0], model="noisy", url=url)
    _, output, _ = await openais.finished(line, endpoint=url)

    wire = "responses" if url.endswith("responses") else "openai"
    body = (await openais.plain.ask(QUESTIONS[0], model="noisy", wire=wire)).body
    same = ("usage", "model", "object", "service_tier")
    assert {key: body[key] for key in same} == {key: output[0]["response"]["body"][key] for key in same}
    said = [
        answer["choices"][0]["message"] if "choices" in answer else answer["output"][0]["content"]
        for answer in (body, output[0]["response"]["body"])
    ]
    assert said[0] == said[1]
    assert output[0]["id"].startswith("batch_req_")


async def test_usage_is_what_the_lines_add_up_to(vendors):
    batch, output, _ = await (await vendors()).finished(5)

    used = [line["response"]["body"]["usage"] for line in output]
    assert batch.usage.input_tokens == sum(usage["prompt_tokens"] for usage in used)
    assert batch.usage.output_tokens == sum(usage["completion_tokens"] for usage in used)


async def test_a_line_that_is_refused_is_in_the_error_file(vendors):
    bad = chat_line("bad", QUESTIONS[0], max_completion_tokens=0)
    unknown = chat_line("unknown", "What is love?")
    batch, output, errors = await (await vendors()).finished(chat_lines(2) + bad + unknown)

    assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("completed", 2, 2)
    assert texts(output) == right(2)
    assert {line["custom_id"]: line["response"]["status_code"] for line in errors} == {
        "bad": 400,
        "unknown": 404,
    }
    assert all(line["error"] is None and line["response"]["body"]["error"]["message"] for line in errors)


async def test_a_batch_of_refused_lines_alone_is_completed_without_output(vendors):
    batch, _, errors = await (await vendors()).finished(chat_line("a", "What is love?"))

    assert (batch.status, batch.output_file_id, len(errors)) == ("completed", None, 1)


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b"", "empty_file", None),
        (chat_lines(2) + b"{\n", "invalid_json_line", 3),
        (b"\xef\xbb\xbf" + chat_lines(1), "invalid_json_line", 1),
        (chat_lines(1) + b"\n", "invalid_json_line", 2),
        (chat_lines(1) + chat_lines(1), "duplicate_custom_id", 2),
        (chat_lines(1) + chat_line("b", QUESTIONS[0], model="noisy"), "model_mismatch", 2),
        (chat_lines(1) + chat_line("b", QUESTIONS[0], url="/v1/responses"), "url_mismatch", 2),
        (chat_line("a", QUESTIONS[0], model="gpt-0"), "model_not_found", 1),
        (chat_lines(4), "too_many_tasks", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_one_wrong_line_fails_the_whole_file_by_polling(vendors, content, code, line):
    openais = await vendors(max_requests=3)
    batch, output, errors = await openais.finished(content)

    assert (batch.status, output, errors) == ("failed", [], [])
    assert (batch.errors.data[0].code, batch.errors.data[0].line) == (code, line)
    assert batch.failed_at
    assert await openais.executed() == []


async def test_a_file_over_the_limit_is_refused_with_the_upload(vendors):
    openais = await vendors(max_bytes=100)
    with pytest.raises(openai.APIStatusError, match="at most 100 bytes") as refused:
        await openais.upload(chat_lines(1))
    assert refused.value.status_code == 413
    assert [file async for file in openais.openai.files.list()] == []


async def test_files_are_listed_read_and_deleted(vendors):
    openais = await vendors()
    first, second = [await openais.upload(chat_lines(n), name=f"{n}.jsonl") for n in (1, 2)]

    listed = [file async for file in openais.openai.files.list(purpose="batch", order="desc", limit=1)]
    assert [(file.id, file.filename, file.bytes) for file in listed] == [
        (second, "2.jsonl", len(chat_lines(2))),
        (first, "1.jsonl", len(chat_lines(1))),
    ]
    assert (await openais.openai.files.content(first)).content == chat_lines(1)
    assert listed[0].expires_at - listed[0].created_at == MONTH_S
    assert listed[0].status == "processed"

    assert (await openais.openai.files.delete(first)).deleted
    for gone in (openais.openai.files.retrieve, openais.openai.files.content, openais.openai.files.delete):
        with pytest.raises(openai.NotFoundError):
            await gone(first)


async def test_a_file_expires_when_it_should(vendors):
    openais = await vendors()
    file_id = await openais.upload(chat_lines(1), expires_after={"anchor": "created_at", "seconds": 3600})
    await openais.forward(HOUR_S + 1)
    with pytest.raises(openai.NotFoundError):
        await openais.openai.files.retrieve(file_id)


async def test_results_are_named_after_their_batch_and_expire(vendors):
    openais = await vendors()
    batch, _, _ = await openais.finished(1)
    content = await openais.openai.files.content(batch.output_file_id)
    assert content.response.headers["content-type"] == "application/octet-stream"
    assert f"{batch.id}_output.jsonl" in content.response.headers["content-disposition"]
    assert int(content.response.headers["content-length"]) == len(content.content)

    await openais.forward(MONTH_S)
    with pytest.raises(openai.NotFoundError):
        await openais.openai.files.content(batch.output_file_id)


async def test_the_newest_batches_are_listed_first_page_by_page(vendors):
    openais = await vendors()
    made = []
    for _ in range(3):
        made.append((await openais.create(1)).id)
        await openais.forward(1)

    page = await openais.openai.batches.list(limit=2)
    assert ([batch.id for batch in page.data], page.has_more) == ([made[2], made[1]], True)
    page = await openais.openai.batches.list(limit=2, after=page.data[-1].id)
    assert ([batch.id for batch in page.data], page.has_more) == ([made[0]], False)


async def test_a_cancelled_batch_keeps_what_was_done(vendors):
    openais = await vendors()
    batch = await openais.create(10)
    await openais.forward(63 + 900)
    cancelled = await openais.openai.batches.cancel(batch.id)
    assert (cancelled.status, bool(cancelled.cancelling_at)) == ("cancelling", True)

    await openais.forward(601)
    batch = await openais.openai.batches.retrieve(batch.id)
    output, errors = await openais.lines(batch.output_file_id), await openais.lines(batch.error_file_id)
    assert (batch.status, len(output), len(errors)) == ("cancelled", 5, 5)
    assert {(line["response"], line["error"]["code"]) for line in errors} == {(None, "batch_cancelled")}
    assert {line["custom_id"] for line in await openais.executed()} == texts(output).keys()
    with pytest.raises(openai.ConflictError):
        await openais.openai.batches.cancel(batch.id)


async def test_a_batch_that_takes_longer_than_a_day_expires(vendors):
    openais = await vendors(latency_s=4 * DAY_S)
    batch, output, errors = await openais.finished(20)

    assert (batch.status, len(output), len(errors)) == ("expired", 4, 16)
    assert batch.expired_at == batch.expires_at
    assert texts(output).items() <= right(20).items()
    assert {(line["response"], line["error"]["code"]) for line in errors} == {(None, "batch_expired")}


async def test_the_clock_may_run_faster(vendors):
    openais = await vendors(speedup=3600)
    batch = await openais.create(3)
    await openais.forward(25)  # s, which are 25 h of the batch
    batch = await openais.openai.batches.retrieve(batch.id)

    assert batch.status == "completed"
    assert batch.expires_at - batch.created_at == DAY_S
    assert batch.completed_at - batch.created_at == pytest.approx(63 + 1800, abs=2)


async def test_a_batch_itself_may_say_how_it_goes(vendors):
    openais = await vendors()
    simulate = {"latency_s": 1.0, "batch": {"speedup": 3600, "latency_s": 60}}
    batch = await openais.create(chat_lines(3, simulate=simulate))
    await openais.forward(1)

    assert (await openais.openai.batches.retrieve(batch.id)).status == "completed"


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"speed": 2}, r"batch\.speed"),
        ({"speedup": 0}, "speedup is 0"),
        ({"faults": ["rain=1"]}, "no kind 'rain'"),
        (3, "mapping"),
    ],
    ids=["unknown key", "no number", "unknown fault", "no mapping"],
)
async def test_a_slip_in_what_a_batch_says_is_refused(vendors, asked, complaint):
    openais = await vendors()
    with pytest.raises(openai.BadRequestError, match=complaint):
        await openais.upload(chat_lines(1, simulate={"batch": asked}))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"completion_window": "1h"}, "must be 24h"),
        ({"endpoint": "/v1/images"}, "endpoint must be"),
        ({"metadata": {"k": "v" * 513}}, "metadata"),
        ({"input_file_id": "file-0"}, "No such File"),
    ],
)
async def test_a_wrong_create_is_refused_at_once(vendors, fields, complaint):
    openais = await vendors()
    usual = {
        "completion_window": "24h",
        "endpoint": CHAT,
        "input_file_id": await openais.upload(chat_lines(1)),
    }
    with pytest.raises(openai.APIStatusError, match=complaint):
        await openais.openai.batches.create(**(usual | fields))
    assert await openais.truth() == []


async def test_a_model_s_unfinished_batches_share_a_pool_of_tokens(vendors):
    openais = await vendors(enqueued_tokens=11)  # of a question: 4
    await openais.create(2)
    over = await openais.create(1)
    other = await openais.create(chat_lines(2, model="noisy"))
    await openais.forward(70)
    over, other = [await openais.openai.batches.retrieve(batch.id) for batch in (over, other)]
    assert (over.status, other.status) == ("failed", "in_progress")
    assert over.errors.data[0].code == "token_limit_exceeded"
    assert "Limit: 11 enqueued tokens" in over.errors.data[0].message

    await openais.forward(HOUR_S)
    again = await openais.openai.batches.create(
        completion_window="24h", endpoint=CHAT, input_file_id=over.input_file_id
    )
    await openais.forward(70)
    assert (await openais.openai.batches.retrieve(again.id)).status == "in_progress"


async def test_so_many_batches_are_created_an_hour(vendors):
    openais = await vendors(creates_per_hour=2)
    for _ in range(2):
        await openais.create(1)
    with pytest.raises(openai.RateLimitError, match="within an hour"):
        await openais.create(1)
    await openais.forward(HOUR_S)
    await openais.create(1)


async def test_another_project_sees_nothing(vendors):
    openais = await vendors()
    batch = await openais.create(1)
    stranger = await vendors.connect(openais.plain, "k@elsewhere")

    assert [batch async for batch in stranger.openai.batches.list()] == []
    assert [file async for file in stranger.openai.files.list()] == []
    with pytest.raises(openai.NotFoundError):
        await stranger.openai.batches.retrieve(batch.id)
    reply = await stranger.openai.batches.with_raw_response.list()
    assert reply.headers["openai-project"] == "proj_elsewhere"


async def test_batches_take_no_real_time_limits(vendors):
    openais = await vendors()
    await openais.finished(30)
    assert (await openais.plain.stats())["requests"] == 0
