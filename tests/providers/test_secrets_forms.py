"""A key in every form that a server may repeat it in, in every field of what comes in."""

import html
import json
import time
from base64 import b64encode, urlsafe_b64encode
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from asyncbench.errors import ProviderError
from asyncbench.providers.anthropic.batches import AnthropicBatches
from asyncbench.providers.anthropic.messages import MessagesWire
from asyncbench.providers.batch_calls import RemoteBatch
from asyncbench.providers.endpoints import BatchWays, Endpoint, Quirks
from asyncbench.providers.error_kinds import refusal, withhold
from asyncbench.providers.google.batches import GoogleBatches
from asyncbench.providers.google.contents import ContentsWire
from asyncbench.providers.openai.batches import OpenAIBatches
from asyncbench.providers.openai.wires import ChatWire
from asyncbench.providers.secrets import MARK, keyless_body, withhold_secret
from asyncbench.providers.wire import Response
from asyncbench.records import Reply
from tests.providers.asking import ADAPTERS, asking
from tests.providers.raw_server import events, sending, stream_of
from tests.rows import each_row

KEYS = (
    "sk-PL4NTEDenvironment7f3aQx",
    'sk-proj-a1B2/c3+d4=E5%f6&g7"H8<i9>J0kLmNoPqRsTuV',
    "1f3a77c9d0e24b6f8a5c1f3a77c9d0e2",
)
FORMS = {
    "as it is": lambda key: key,
    "small": str.lower,
    "large": str.upper,
    "in an address": lambda key: quote(key, safe=""),
    "in an address, small": lambda key: quote(key, safe="").lower(),
    "in HTML": html.escape,
    "in JSON": lambda key: json.dumps(key)[1:-1].replace("/", r"\/").replace("-", r"\u002d"),
    "base64": lambda key: b64encode(key.encode()).decode(),
    "base64 for addresses": lambda key: urlsafe_b64encode(key.encode()).decode(),
    "Basic": lambda key: b64encode(f"user:{key}".encode()).decode(),
    "base64 one byte on": lambda key: b64encode(b"x" + key.encode()).decode(),
    "base64, small": lambda key: b64encode(key.encode()).decode().lower(),
    "hexadecimal": lambda key: key.encode().hex(),
    "HEXADECIMAL": lambda key: key.encode().hex().upper(),
    "cut by a line": lambda key: f"{key[:12]}\n{key[12:]}",
    "cut by a line with spaces": lambda key: f"{key[:12]}\r\n    {key[12:]}",
    "cut by a line, small": lambda key: f"{key[:12]}\n{key[12:]}".lower(),
    "base64 in lines": lambda key: (
        f"{b64encode(key.encode()).decode()[:20]}\n{b64encode(key.encode()).decode()[20:]}"
    ),
    "cut off": lambda key: key[:20],
}
WITH_EACH_KEY = pytest.mark.parametrize("key", KEYS)


def traces(told, key):
    """What of a key stands in a text: any ten characters in a row, coded or not, in letters of any case."""
    told = "".join(str(told).lower().split()).replace("\\n", "").replace("\\r", "")
    coded = b64encode(key.encode()).decode().rstrip("=")[:-1]
    whole = (key.lower(), coded.lower(), key.encode().hex(), quote(key, safe="").lower())
    return [form[i : i + 16] for form in whole for i in range(len(form) - 15) if form[i : i + 16] in told]


@each_row("key", KEYS)
@each_row("form", FORMS)
def test_no_form_of_a_key_stays_in_a_text(key, form):
    told = withhold_secret(f"You sent {FORMS[form](key)} to us", key=key)
    assert MARK in told
    assert traces(told, key) == []


@each_row("key", KEYS)
@each_row("form", FORMS)
@each_row("field", ["message", "code", "type", "status", "request_id"])
@each_row("status", [200, 400, 401, 429, 500])
def test_no_field_of_a_refusal_keeps_it(key, form, field, status):
    body = orjson.dumps({"error": {"message": "no", field: FORMS[form](key)}})
    error = refusal(Response(status=status, headers={"x-request-id": FORMS[form](key)}, body=body), key=key)
    assert traces((error.message, error.args, error.request_id), key) == []


@each_row("key", KEYS)
@each_row("form", FORMS)
def test_a_page_that_is_no_json_keeps_none(key, form):
    page = f"<html><b>{FORMS[form](key)}</b></html>".encode()
    error = refusal(Response(status=502, headers={}, body=page), key=key)
    assert traces(error.message, key) == []


ONCE = "KEY-STANDS-HERE"  # in a template of what comes in


def holding(template, key, form):
    """Return what comes in, with a form of the key wherever the template has its mark."""
    return orjson.dumps(template).replace(ONCE.encode(), orjson.dumps(FORMS[form](key))[1:-1])


SAID = {"id": ONCE, "model": ONCE, "system_fingerprint": ONCE, "provider": ONCE, "service_tier": ONCE}
USED = {"prompt_tokens": 1, "completion_tokens": 40, "total_tokens": 41, ONCE: {"told": [ONCE]}}
MESSAGE_USED = {"input_tokens": 1, "output_tokens": 40, "service_tier": ONCE, ONCE: [ONCE]}
CHAT_SAID = {"content": f"You are {ONCE}", "reasoning_content": ONCE}
MESSAGE_SAID = [{"type": "thinking", "thinking": ONCE}, {"type": "text", "text": ONCE}]
PARTS_SAID = {"parts": [{"text": ONCE, "thought": True}, {"text": ONCE}]}
# Adapter → a whole reply.
REPLIES = {
    "openai": {**SAID, "choices": [{"message": CHAT_SAID, "finish_reason": ONCE}], "usage": USED},
    "anthropic": {**SAID, "content": MESSAGE_SAID, "stop_reason": ONCE, "usage": MESSAGE_USED},
    "google": {
        "candidates": [{"content": PARTS_SAID, "finishReason": ONCE}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 40, ONCE: ONCE},
        "modelVersion": ONCE,
        "responseId": ONCE,
    },
}
REPLIES["http"] = REPLIES["openai"]
# Adapter → the events of a stream.
CHUNKS = [
    {**SAID, "choices": [{"delta": {"content": "You are "}}]},
    {"choices": [{"delta": CHAT_SAID}]},
    {"choices": [{"delta": {}, "finish_reason": ONCE}]},
    {"choices": [], "usage": USED},
]
STREAMS: dict[str, Any] = {
    "openai": CHUNKS,
    "http": CHUNKS,
    "anthropic": [
        {"type": "message_start", "message": {"id": ONCE, "model": ONCE, "usage": MESSAGE_USED}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ONCE}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": ONCE}},
        {"type": "message_delta", "delta": {"stop_reason": ONCE}, "usage": MESSAGE_USED},
        {"type": "message_stop"},
    ],
    "google": [REPLIES["google"]],
}
ERROR = {"error": {"message": f"Bad: {ONCE}", "type": ONCE, "code": ONCE, "status": ONCE, "request_id": ONCE}}


def headers_with(shown):
    """Return headers that repeat a key, as far as one can hold it."""
    return "".join(
        f"{name}: {' '.join(shown.split())}\r\n"
        for name in ("x-request-id", "request-id", "x-gemini-service-tier", "retry-after", "server")
    ).encode()


def everything(told):
    """Return all that is kept of a reply or a failure, as one text."""
    if isinstance(told, ProviderError):
        return f"{told.message} {told.args} {told.request_id} {told.allowances}"
    return f"{told} {told.usage} {told.raw_usage}"


@WITH_EACH_KEY
async def test_nothing_of_an_answer_keeps_it(adapter, server, opened, key):
    """Whole, refused and streamed, with an error or noise among the events; in headers, too."""
    provider = opened(adapter.provider(server.url, api_key=key))
    for form, shown in ((form, write(key)) for form, write in FORMS.items()):
        headers = headers_with(shown)
        reply, refused = holding(REPLIES[adapter.name], key, form), holding(ERROR, key, form)
        stream = [holding(event, key, form) for event in STREAMS[adapter.name]]
        noise = events(f"{'-' * 30} {' '.join(shown.split())}".encode())
        answers = {
            "whole": whole_of(200, headers, reply),
            "refused": whole_of(400, headers, refused),
            "refused in a 200": whole_of(200, headers, refused),
            "streamed": stream_of(noise, events(*stream), headers=headers),
            "error in a stream": stream_of(events(stream[0], refused), headers=headers),
            "no JSON in a stream": stream_of(events(stream[0], b"{" + shown.encode()), headers=headers),
        }
        for name, answer in answers.items():
            server.manner = sending(answer)
            try:
                told = await provider.ask(asking(stream="stream" in name))
            except ProviderError as error:
                told = error
            assert traces(everything(told), key) == [], (form, name)
            if name != "no JSON in a stream":  # behind Google's whole answer it is passed over
                assert isinstance(told, Reply) == (name in ("whole", "streamed")), (form, name)


def whole_of(status, headers, body):
    length = f"content-length: {len(body)}\r\n\r\n".encode()
    return f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n".encode() + headers + length + body


async def test_a_key_in_pieces_of_a_stream_is_taken_out(server, opened):
    provider = opened(ADAPTERS[0].provider(server.url, api_key=KEYS[0]))
    pieces = [
        {"choices": [{"delta": {"content": KEYS[0][begin : begin + 3]}}]}
        for begin in range(0, len(KEYS[0]), 3)
    ]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    server.manner = sending(stream_of(events(*map(orjson.dumps, [*pieces, end]))))

    assert (await provider.ask(asking(stream=True))).text == MARK


# ── Batches

# Vendor → the lines of a file of results.
LINES = {
    "openai": [
        {"custom_id": "a", "response": {"status_code": 200, "body": REPLIES["openai"]}},
        {"custom_id": "b", "response": {"status_code": 400, "body": ERROR}},
        {"custom_id": "c", "error": {"code": ONCE, "message": ONCE}},
        {"custom_id": "d", "response": {"status_code": 0, "body": ONCE}},
    ],
    "anthropic": [
        {"custom_id": "a", "result": {"type": "succeeded", "message": REPLIES["anthropic"]}},
        {"custom_id": "b", "result": {"type": "errored", "error": ERROR}},
        {"custom_id": "c", "result": {"type": ONCE}},
    ],
    "google": [
        {"key": "a", "response": REPLIES["google"]},
        {"key": "b", "error": {"code": 3, "message": ONCE, "status": ONCE}},
        {"key": "c", "response": {"error": {"message": ONCE}}},
    ],
}
BATCH = {
    "id": "batch_1",
    "name": "batches/1",
    "status": "failed",
    "errors": {"data": [{"code": ONCE, "message": f"Bad: {ONCE}"}]},
    "metadata": {"state": "BATCH_STATE_FAILED", "batch_key": ONCE},
    "error": {"code": 3, "message": ONCE},
    "processing_status": ONCE,
}


def batches_of(vendor, url, key):
    base_url = f"{url}/v1" if vendor == "openai" else url
    endpoint = Endpoint(base_url=base_url, api_key=key)
    if vendor == "openai":
        return OpenAIBatches(endpoint, ChatWire(Quirks()), time.time, BatchWays())
    if vendor == "anthropic":
        return AnthropicBatches(endpoint, MessagesWire(), time.time)
    return GoogleBatches(endpoint, ContentsWire(), time.time, "m")


@pytest.mark.long
@pytest.mark.parametrize("vendor", LINES)
@WITH_EACH_KEY
async def test_nothing_of_a_batch_keeps_it(vendor, server, tmp_path, key):
    """Its lines as they are read, its file on the disk with what is no line of ours, what is told of it."""
    api, results = batches_of(vendor, server.url, key), tmp_path / "results"
    batch = RemoteBatch(id="batch_1", ended=True, status="x", created_at=1.0, files=("files/1",))
    try:
        for form, write in FORMS.items():
            lines = [holding(line, key, form) for line in LINES[vendor]]
            ended = [api.read(line).ended for line in lines]
            assert [traces(everything(each), key) for each in ended] == [[]] * len(lines), form

            stray = b"{" + orjson.dumps(write(key))
            server.manner = sending(whole_of(200, b"", b"\n".join([*lines, stray])))
            await api.download(batch, results)
            assert traces(results.read_text(), key) == [], form
            assert results.read_bytes().count(b"\n") == len(lines) + 1, form

            server.manner = sending(whole_of(200, headers_with(write(key)), holding(BATCH, key, form)))
            assert traces(await api.retrieve("batch_1"), key) == [], form
    finally:
        await api.aclose()


def test_what_holds_no_key_stays_as_it_is():
    masked = "Incorrect API key provided: sk-PL4***f3aQ"
    body = orjson.dumps({"error": {"message": masked, "code": "invalid_api_key"}})
    assert keyless_body(body, key=KEYS[0]) is body
    error = refusal(Response(status=401, headers={}, body=body), key=KEYS[0])
    assert "sk-PL4***f3aQ" in error.message  # the vendor masked it
    withhold(error, key=KEYS[0])
    assert "sk-PL4***f3aQ" in error.message


def test_of_a_key_that_begins_with_another_nothing_is_left(monkeypatch):
    short, long = KEYS[0], f"{KEYS[0]}0"
    withheld = {"withheld": (short,)}
    monkeypatch.setattr("asyncbench.providers.secrets._others", lambda: withheld["withheld"])
    assert withhold_secret(f"no {long}, and", key=long) == "no [key], and"
    withheld["withheld"] = (long,)
    assert withhold_secret(f"no {long}, and", key=short) == "no [key], and"
