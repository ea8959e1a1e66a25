"""Sweeps against servers with ways of their own: what they leave out or say wrong costs nobody a result."""

from dataclasses import dataclass

import orjson
import pyarrow.parquet as pq
import pytest

from asyncbench import read_attempts, read_trials, run_sweep
from asyncbench.analysis.counting import counted
from asyncbench.reports.cost.report import cost_report_of
from asyncbench.store.schema import LONGEST_ERROR
from tests.providers.raw_server import Manner, answering, events, head, raw_server, sending, stream_of
from tests.sweep_files import sweep

KEY = "sk-0123456789"
MOST = 300
AT_ONCE = {"retry_after": 0}
WRONG = "The answer is 7."
APIS = {"chat": "openai", "responses": "openai", "messages": "anthropic"}  # wire format → adapter


@dataclass(frozen=True, kw_only=True)
class Server:
    """One server's way to answer."""

    manner: Manner
    api: str = "chat"
    adapter: str | None = None  # None: the usual one
    stream: bool = False


@pytest.fixture(scope="module")
def right(problems):
    """The right answer to the first problem."""
    return pq.read_table(problems, columns=["expected"])["expected"][0].as_py()


async def asked(out, problems, servers, *, retry=1, reuse=None, **keys):
    """Ask each server the first problem in one sweep; return the row of `trials` of each."""
    async with raw_server() as server:

        async def manner(writer):
            await servers[server.received[-1].body["model"]].manner(writer)

        server.manner = manner
        entries = [entry(server.url, name, one, attempts=retry) | keys for name, one in servers.items()]
        await run_sweep(sweep(out, problems, *entries), limit=1, reuse=reuse, env={"A_KEY": KEY})
    return {row["model"]: row for row in read_trials(out).to_pylist()}


def entry(url, name, one, *, attempts):
    adapter = one.adapter or APIS[one.api]
    return {
        "model": f"{adapter}/{name}",
        "alias": name,
        "api": one.api,
        "base_url": url if adapter == "anthropic" else f"{url}/v1",
        "key_env": "A_KEY",
        "max_tokens": MOST,
        "stream": one.stream,
        "retry": {"attempts": attempts},
    }


def response(text=WRONG, *, status="completed", tokens=MOST, **more):
    """A body of Responses."""
    content = [{"type": "output_text", "text": text}]
    usage = {"input_tokens": 20, "output_tokens": tokens, "total_tokens": 20 + tokens}
    message = {"type": "message", "role": "assistant", "content": content}
    return {"id": "resp_1", "model": "m", "status": status, "output": [message], "usage": usage, **more}


def whole(body, **headers):
    return answering(body=body, content_type="application/json", **headers)


# ── replies that were cut ────────────────────────────────────────────────────────────────────


def responses(body, *, stream=False):
    """A server of Responses that answers with a body, whole or as the last event of a stream."""
    last = {"type": f"response.{body['status']}", "response": body}
    manner = sending(stream_of(events(orjson.dumps(last)))) if stream else whole(body)
    return Server(manner=manner, api="responses", stream=stream)


def completion(finish_reason):
    """A server of chat completions whose reply took all tokens."""
    choice = {"index": 0, "message": {"content": WRONG}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 20, "completion_tokens": MOST}
    return Server(manner=whole({"id": "chatcmpl-4", "choices": [choice], "usage": usage}))


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_response_is_truncated_by_its_status_or_its_count(tmp_path, problems, right, stream):
    bodies = {
        "no-details": response(status="incomplete", tokens=9),
        "odd-reason": response(status="incomplete", tokens=9, incomplete_details={"reason": "other"}),
        "all-tokens": response(),
        "no-answer": response("Hm"),
        "right": response(right),
        "one-less": response(tokens=MOST - 1),
        "no-count": response(usage=None),
    }
    servers = {name: responses(body, stream=stream) for name, body in bodies.items()}
    rows = await asked(tmp_path, problems, servers)
    assert {name: row["outcome"] for name, row in rows.items()} == {
        "no-details": "truncated",
        "odd-reason": "truncated",
        "all-tokens": "truncated",
        "no-answer": "truncated",
        "right": "correct",
        "one-less": "wrong",
        "no-count": "wrong",
    }


async def test_a_chat_completion_that_took_all_tokens_is_what_its_word_says(tmp_path, problems):
    servers = {"stop": completion("stop"), "length": completion("length"), "no-word": completion(None)}
    rows = await asked(tmp_path, problems, servers)
    assert {name: row["outcome"] for name, row in rows.items()} == {
        "stop": "wrong",
        "length": "truncated",
        "no-word": "truncated",
    }


async def test_a_cut_reply_is_not_taken_over(tmp_path, problems):
    await asked(tmp_path / "one", problems, {"m": responses(response())})
    servers = {"m": responses(response(tokens=9))}
    row = (await asked(tmp_path / "two", problems, servers, reuse=tmp_path / "one"))["m"]
    assert (row["reused_from"], row["outcome"]) == (None, "wrong")


# ── calls that failed before one was answered ────────────────────────────────────────────────


async def test_a_retried_failure_is_told_with_its_request_id(tmp_path, problems):
    failures = iter(
        [
            answering(
                503, {"error": {"message": f"the pool\x1b[2J is {KEY} empty"}}, cf_ray="r-1", **AT_ONCE
            ),
            sending(head(500, content_length=900, x_litellm_call_id="c-2", **AT_ONCE), then_close=True),
            answering(500, f"{'long ' * 900}".encode(), apim_request_id="a-3", **AT_ONCE),
        ]
    )

    async def manner(writer):
        await next(failures, completion("stop").manner)(writer)

    rows = await asked(tmp_path, problems, {"m": Server(manner=manner)}, retry=4)
    assert (rows["m"]["outcome"], rows["m"]["error_message"]) == ("wrong", None)
    calls = sorted(read_attempts(tmp_path).to_pylist(), key=lambda row: row["attempt"])
    assert [row["request_id"] for row in calls] == ["r-1", "c-2", "a-3", "chatcmpl-4"]
    assert calls[0]["error"] == "HTTP 503: the pool [2J is [key] empty"
    assert calls[1]["error"].startswith("the reply broke off")
    assert 400 < len(calls[2]["error"]) <= LONGEST_ERROR
    assert calls[3]["error"] is None


# ── replies without a count ──────────────────────────────────────────────────────────────────


async def test_a_stream_without_usage_leaves_tokens_and_cost_unknown_and_an_estimate_apart(
    tmp_path, problems
):
    said = {"index": 0, "delta": {"content": WRONG}, "finish_reason": "stop"}
    manner = sending(stream_of(events(orjson.dumps({"choices": [said]}), b"[DONE]")))
    servers = {"m": Server(manner=manner, stream=True)}
    row = (await asked(tmp_path, problems, servers, price={"input": 1, "output": 2}))["m"]
    assert (row["output_tokens"], row["cost_usd"]) == (None, None)
    report = counted(tmp_path, cost_report_of)
    assert [(one["replies"], one["characters"]) for one in report.untold] == [(1, len(WRONG))]
    assert report.whole.spent.tokens == 0
