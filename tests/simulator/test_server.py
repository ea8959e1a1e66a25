"""What the server answers over HTTP, in both vendors' words, and what it counts."""

import asyncio
import contextlib
import errno
import io

import aiohttp
import pytest

from asyncbench.simulator.settings import OF_STREAMS, FaultKind, parse_fault

QUESTION = "What is 10 + 10?"
REFUSALS = {  # the fault, and what each vendor says to it
    "429": {"openai": (429, "rate_limit_exceeded"), "anthropic": (429, "rate_limit_error")},
    "500": {"openai": (500, "server_error"), "anthropic": (500, "api_error")},
    "529": {"openai": (503, "overloaded"), "anthropic": (529, "overloaded_error")},
    "dead_key": {"openai": (401, "invalid_api_key"), "anthropic": (401, "authentication_error")},
    "no_quota": {"openai": (429, "insufficient_quota"), "anthropic": (429, "enforced_spend_limit_reached")},
}
SPOILED = ("stall", "reset", "cut", "invalid_json", "error_200", "stale")


def error_of(response):
    """The vendor's word for what is wrong: OpenAI's code, or Anthropic's detail, else the type."""
    error = response.body["error"]
    return error.get("code") or error.get("details", {}).get("error_code") or error["type"]


async def answers(client, questions, *, model="noisy", wire="openai"):
    return {question: (await client.ask(question, model=model, wire=wire)).text for question in questions}


async def statuses(client, *models):
    return [(await client.ask(QUESTION, model=model)).status for model in models]


# ── answers ──────────────────────────────────────────────────────────────────────────────────


async def test_oracle_answers_every_question_right(simulator, wire, expected):
    assert await answers(await simulator(), expected, model="oracle", wire=wire) == expected


async def test_order_restart_and_wire_format_change_no_answer(simulator, expected):
    forwards = await answers(await simulator(seed=3), expected)
    backwards = await answers(await simulator(seed=3), reversed(expected), wire="anthropic")

    assert forwards == backwards
    assert forwards != expected


async def test_faults_change_no_answer(simulator, expected):
    calm, troubled = await simulator(), await simulator(faults=(parse_fault("500=0.5"),))

    answered, refused = {}, 0
    for question in expected:
        while (response := await troubled.ask(question, model="noisy")).status == 500:
            refused += 1
        answered[question] = response.text
    assert answered == {question: (await calm.ask(question, model="noisy")).text for question in expected}
    assert refused > 0


async def test_another_name_and_another_seed_err_on_other_problems(simulator, expected):
    one, other = await simulator(seed=3), await simulator(seed=4)
    noisy = await answers(one, expected)

    assert noisy != await answers(one, expected, model="noisy-2")
    assert noisy != await answers(other, expected)


async def test_a_reply_longer_than_wanted_is_cut_and_says_so(simulator, wire):
    client = await simulator()
    whole = await client.ask("What is 12345678 + 1?", wire=wire, max_tokens=2)
    cut = await client.ask("What is 12345678 + 1?", wire=wire, max_tokens=1)

    assert (whole.text, cut.text) == ("12345679", "1234")


@pytest.mark.parametrize("path", ["/chat/completions", "/messages"])
async def test_the_path_may_leave_the_version_out(simulator, path):
    body = b'{"model":"oracle","max_tokens":9,"messages":[{"role":"user","content":"What is 10 + 10?"}]}'

    assert (await (await simulator()).send("POST", path, body=body)).text == "20"


async def test_everything_says_that_it_is_simulated(simulator, wire):
    client = await simulator(rpm=1)
    right, refused = await client.ask(QUESTION, wire=wire), await client.ask(QUESTION, wire=wire)

    assert right.body["system_fingerprint"] == "simulated"
    assert right.headers["x-simulated"] == refused.headers["x-simulated"] == "asyncbench"
    assert "simulated" in refused.body["error"]["message"]


# ── refusals ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"model": "gpt-5"}, 404, "model_not_found"),
        ({"question": "What is love?"}, 404, "unknown_question"),
        ({"model": None}, 400, "invalid_request_error"),
        ({"messages": QUESTION}, 400, "invalid_request_error"),
        ({"messages": []}, 400, "invalid_request_error"),
        ({"messages": [{"role": "assistant", "content": QUESTION}]}, 400, "invalid_request_error"),
        ({"messages": [{"role": "user", "content": 20}]}, 400, "invalid_request_error"),
        ({"max_tokens": 0}, 400, "invalid_request_error"),
        ({"max_tokens": "many"}, 400, "invalid_request_error"),
    ],
    ids=str,
)
async def test_a_request_that_cannot_be_answered_is_refused(simulator, wire, fields, status, error):
    response = await (await simulator()).ask(**{"question": QUESTION, "wire": wire} | fields)

    assert (response.status, error_of(response)) == (status, error)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff"])
async def test_a_body_that_is_no_json_object_is_refused(simulator, body):
    response = await (await simulator()).send("POST", "/v1/messages", body=body)

    assert (response.status, error_of(response)) == (400, "invalid_request_error")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_a_body_of_more_than_a_megabyte_is_refused(simulator, path):
    response = await (await simulator()).send("POST", path, body=io.BytesIO(b" " * 2**20 + b"{}"))

    assert response.status == 413


async def test_anthropic_requires_max_tokens(simulator):
    body = b'{"model":"oracle","messages":[{"role":"user","content":"What is 10 + 10?"}]}'
    response = await (await simulator()).send("POST", "/v1/messages", body=body)

    assert (response.status, "max_tokens" in response.body["error"]["message"]) == (400, True)


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v2", 404), ("GET", "/v1/messages", 405)])
async def test_there_is_nothing_else(simulator, method, path, status):
    response = await (await simulator()).send(method, path)

    assert (response.status, response.body["error"]["type"]) == (status, "invalid_request_error")


# ── keys ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("header", "value"), [("authorization", "Bearer any"), ("x-api-key", "any"), ("api-key", "any")]
)
@pytest.mark.parametrize(("keys", "status"), [((), 200), (("any", "b"), 200), (("a", "b"), 401)])
async def test_any_key_is_accepted_or_those_given(simulator, header, value, keys, status):
    client = await simulator(keys=keys)
    response = await client.send("GET", "/v1/models", headers={"authorization": "", header: value})

    assert response.status == status


@pytest.mark.parametrize("key", ["", " "])
async def test_a_call_without_a_key_is_refused(simulator, wire, key):
    response = await (await simulator()).ask(QUESTION, wire=wire, key=key)

    assert response.status == 401
    assert error_of(response) == {"openai": "invalid_api_key", "anthropic": "authentication_error"}[wire]


async def test_a_refused_key_is_never_repeated(simulator, wire):
    response = await (await simulator(keys=("a",))).ask(QUESTION, wire=wire, key="sk-secret")

    assert b"sk-secret" not in response.content


# ── limits ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [{"rpm": 1}, {"tpm": 1}, {"input_tpm": 1}, {"output_tpm": 1}], ids=str)
async def test_past_a_limit_a_call_is_told_when_to_come_again(simulator, wire, limit):
    client = await simulator(**limit)
    first, second = await client.ask(QUESTION, wire=wire), await client.ask(QUESTION, wire=wire)

    assert (first.status, second.status) == (200, 429)
    assert "retry-after" not in first.headers
    assert 50 <= int(second.headers["retry-after"]) <= 600


async def test_each_model_has_limits_of_its_own(simulator):
    client = await simulator(rpm=1)

    assert await statuses(client, "oracle", "noisy", "noisy-2", "oracle") == [200, 200, 200, 429]


async def test_a_call_past_a_limit_meets_no_fault(simulator):
    client = await simulator(rpm=1, faults=(parse_fault("500=1"),))

    assert await statuses(client, "oracle", "oracle", "oracle") == [500, 429, 429]
    stats = await client.stats()
    assert (stats["faults"], stats["rate_limited"]) == ({"500": 1}, 2)


# ── faults ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", REFUSALS)
async def test_a_fault_that_refuses_does_so_in_the_vendor_s_words(simulator, wire, kind):
    client = await simulator(faults=(parse_fault(f"{kind}=1"),))
    response = await client.ask(QUESTION, wire=wire)

    assert (response.status, error_of(response)) == REFUSALS[kind][wire]
    assert ("retry-after" in response.headers) == (kind == "429")


async def test_reset_ends_the_connection_before_a_status(simulator, wire):
    client = await simulator(faults=(parse_fault("reset=1"),))

    with pytest.raises(aiohttp.ClientOSError) as caught:
        await client.ask(QUESTION, wire=wire)

    assert caught.value.errno == errno.ECONNRESET


async def test_stall_lasts_until_the_client_leaves(simulator, wire):
    client = await simulator(faults=(parse_fault("stall=1"),))
    asking = asyncio.create_task(client.ask(QUESTION, wire=wire))
    await client.until(lambda stats: stats["in_flight"] == 1)
    asking.cancel()

    assert (await client.until(lambda stats: stats["in_flight"] == 0))["left"] == 1


@pytest.mark.parametrize("kind", [*REFUSALS, "cut", "invalid_json", "reset"])
async def test_after_a_fault_the_next_call_is_answered(simulator, kind):
    client = await simulator(faults=(parse_fault(f"{kind}=1@noisy"),))
    with contextlib.suppress(aiohttp.ClientError):
        assert (await client.ask(QUESTION, model="noisy")).status in (200, 401, 429, 500, 503)

    assert (await client.ask(QUESTION)).text == "20"


async def test_stale_is_a_whole_answer_on_a_connection_that_then_closes(simulator, wire):
    client = await simulator(faults=(parse_fault("stale=1"),), keep_alive=False)
    first, second = await client.ask(QUESTION, wire=wire), await client.ask(QUESTION, wire=wire)

    assert (first.text, first.headers["connection"]) == ("20", "keep-alive")
    assert second.text == "20"
    assert (await client.stats())["delivered"] == 2


def test_every_kind_of_fault_is_tested_here_or_with_the_streams():
    assert {*REFUSALS, *SPOILED} | OF_STREAMS == set(FaultKind)


# ── counts ───────────────────────────────────────────────────────────────────────────────────


async def test_the_counts_add_up(simulator, wire):
    client = await simulator(faults=(parse_fault("cut=1@noisy-2"), parse_fault("invalid_json=1@noisy-3")))
    for model in ("oracle", "oracle", "noisy", "noisy-2", "noisy-3", "nobody"):
        with contextlib.suppress(aiohttp.ClientPayloadError):
            await client.ask(QUESTION, model=model, wire=wire)
    stats = await client.stats()

    assert stats["simulated"] is True
    assert (stats["requests"], stats["delivered"], stats["in_flight"]) == (6, 3, 0)
    assert stats["statuses"] == {"200": 5, "404": 1}
    assert stats["faults"] == {"cut": 1, "invalid_json": 1}
    assert {model: counts["delivered"] for model, counts in stats["models"].items()} == {
        "oracle": 2,
        "noisy": 1,
        "noisy-2": 0,
        "noisy-3": 0,
    }


async def test_what_limits_did_is_counted_second_by_second(simulator):
    client = await simulator(rpm=2, limit_model="sliding_window")
    for _ in range(5):
        await client.ask(QUESTION)
    seconds = (await client.send("GET", "/stats/seconds")).body
    rows = seconds["models"]["oracle"]

    assert seconds["simulated"] is True
    assert sum(row["accepted"] for row in rows) == sum(row["charged"].get("requests", 0) for row in rows) == 2
    assert sum(row["rejected"] for row in rows) == 3
    assert sum(row["charged"].get("output-tokens", 0) for row in rows) == 2
    assert all(row["at_s"] <= seconds["now_s"] for row in rows)


async def test_a_look_at_the_models_or_the_counts_is_no_request(simulator):
    client = await simulator()
    await client.send("GET", "/v1/models")
    await client.stats()

    assert (await client.stats())["requests"] == 0


async def test_max_in_flight_is_the_most_calls_at_one_time(simulator):
    client = await simulator(faults=(parse_fault("stall=1@noisy"),))
    for _ in range(20):
        await client.ask(QUESTION)
    stalled = [asyncio.create_task(client.ask(QUESTION, model="noisy")) for _ in range(50)]
    await client.until(lambda stats: stats["in_flight"] == 50)
    for task in stalled:
        task.cancel()
    stats = await client.until(lambda stats: stats["in_flight"] == 0)

    assert (stats["requests"], stats["delivered"], stats["left"], stats["max_in_flight"]) == (70, 20, 50, 50)
    assert (stats["models"]["oracle"]["max_in_flight"], stats["models"]["noisy"]["max_in_flight"]) == (1, 50)


# ── latency ──────────────────────────────────────────────────────────────────────────────────


async def test_a_request_may_say_how_slow_its_answer_is(simulator):
    client = await simulator()
    waiting = asyncio.create_task(client.ask(QUESTION, simulate={"latency_s": 60}))
    quick = await client.ask(QUESTION, simulate={"latency_s": 0})

    assert quick.status == 200
    assert not waiting.done()
    waiting.cancel()
