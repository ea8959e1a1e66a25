"""A key in every form that a server may repeat it in, in every field of what comes in."""

import html
import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import orjson
import pytest

from asyncbench.providers.endpoints import Quirks
from asyncbench.providers.error_kinds import refusal, withhold
from asyncbench.providers.openai.wires import ChatWire
from asyncbench.providers.secrets import MARK, keyless_body, without_secret
from asyncbench.providers.streams import finished_reply
from asyncbench.providers.wire import Response
from tests.providers.asking import CHAT

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
FORM_CASES = pytest.mark.parametrize("form", FORMS)
KEY_CASES = pytest.mark.parametrize("key", KEYS)


def traces(told, key):
    """What of a key stands in a text: any ten characters in a row, coded or not, in letters of any case."""
    told = "".join(str(told).lower().split()).replace("\\n", "").replace("\\r", "")
    coded = b64encode(key.encode()).decode().rstrip("=")[:-1]
    whole = (key.lower(), coded.lower(), key.encode().hex(), quote(key, safe="").lower())
    return [form[i : i + 16] for form in whole for i in range(len(form) - 15) if form[i : i + 16] in told]


@KEY_CASES
@FORM_CASES
def test_no_form_of_a_key_stays_in_a_text(key, form):
    told = without_secret(f"You sent {FORMS[form](key)} to us", key=key)
    assert MARK in told
    assert traces(told, key) == []


@KEY_CASES
@FORM_CASES
@pytest.mark.parametrize("field", ["message", "code", "type", "status", "request_id"])
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_no_field_of_a_refusal_keeps_it(key, form, field, status):
    body = orjson.dumps({"error": {"message": "no", field: FORMS[form](key)}})
    error = refusal(Response(status=status, headers={"x-request-id": FORMS[form](key)}, body=body), key=key)
    assert traces((error.message, error.args, error.request_id), key) == []


@KEY_CASES
@FORM_CASES
def test_a_page_that_is_no_json_keeps_none(key, form):
    page = f"<html><b>{FORMS[form](key)}</b></html>".encode()
    error = refusal(Response(status=502, headers={}, body=page), key=key)
    assert traces(error.message, key) == []


@KEY_CASES
@FORM_CASES
def test_no_field_of_a_reply_keeps_it(key, form):
    shown = FORMS[form](key)
    choice = {"message": {"content": shown, "reasoning_content": shown}, "finish_reason": shown}
    told = {"model": shown, "system_fingerprint": shown, "service_tier": shown, "provider": shown}
    body = orjson.dumps({**CHAT, **told, "choices": [choice], "usage": {"prompt_tokens": 1, shown: [shown]}})
    response = Response(status=200, headers={}, body=body)
    reply = ChatWire(Quirks()).reply(orjson.loads(body), response)
    for at_hand in (body, b""):  # as it comes whole, and in a stream
        assert traces(finished_reply(reply, response, None, key=key, body=at_hand), key) == []


def test_what_holds_no_key_stays_as_it_is():
    masked = "Incorrect API key provided: sk-PL4***f3aQ"
    body = orjson.dumps({"error": {"message": masked, "code": "invalid_api_key"}})
    assert keyless_body(body, key=KEYS[0]) is body
    error = refusal(Response(status=401, headers={}, body=body), key=KEYS[0])
    assert "sk-PL4***f3aQ" in error.message  # the vendor masked it
    withhold(error, key=KEYS[0])
    assert "sk-PL4***f3aQ" in error.message
