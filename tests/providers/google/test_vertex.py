"""Gemini on Vertex, with application-default credentials: a loopback server gives a token, and renews it."""

import asyncio
import json
import time
from dataclasses import replace

import pytest

from asyncbench.errors import ErrorKind
from asyncbench.providers.provider import open_provider
from asyncbench.records import Timeouts
from tests.providers.asking import CONTENT, asking, failure_of
from tests.providers.raw_server import answering, raw_server, stalling

SECONDS = 3599  # a token lasts as long
PATH = "/v1beta1/projects/p-1/locations/europe-west4/publishers/google/models/gemini-2.5-flash"


@pytest.fixture
async def tokens(monkeypatch, tmp_path):
    """The server that gives tokens, of which the file of credentials tells."""
    async with raw_server() as server:
        (file := tmp_path / "adc.json").write_text(
            json.dumps(
                {
                    "type": "external_account",
                    "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/x",
                    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                    "token_url": f"{server.url}/token",
                    "credential_source": {"file": str(file)},
                }
            )
        )
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p-1")
        monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "europe-west4")
        given(server, "ya29.first-0123456789")
        yield server


def given(server, token, seconds=SECONDS):
    grant = {
        "access_token": token,
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "token_type": "Bearer",
        "expires_in": seconds,
    }
    server.manner = answering(body=grant, content_type="application/json")


def vertex(server, **keys):
    request = asking(model_id="gemini-2.5-flash", **keys)
    model = replace(request.trial.model, provider="vertex", api="contents", base_url=server.url)
    provider = open_provider(model, key="", simulator_url=None)
    return provider, replace(request, trial=replace(request.trial, model=model))


async def test_a_token_serves_many_calls_and_another_follows_when_it_ends(server, opened, tokens):
    server.manner = answering(body=CONTENT)
    provider, request = vertex(server)
    opened(provider)
    for _ in range(3):
        assert (await provider.ask(request)).text == "42"
    given(tokens, "ya29.second-0123456789")
    provider._cloud._now = lambda: time.time() + SECONDS
    await provider.ask(request)

    said = [received.headers["authorization"].rpartition("-")[0] for received in server.received]
    assert said == [*3 * ["Bearer ya29.first"], "Bearer ya29.second"]
    assert {received.path for received in server.received} == {f"{PATH}:generateContent"}
    assert len(tokens.received) == 2


@pytest.mark.usefixtures("tokens")
async def test_a_token_is_repeated_in_no_message(server, opened):
    provider, request = vertex(server)
    opened(provider)
    server.manner = answering(401, {"error": {"message": "ya29.first-0123456789 is not valid"}})

    error = await failure_of(provider, request)

    assert error.kind is ErrorKind.AUTH
    assert "ya29" not in error.message


async def test_a_token_that_does_not_come_holds_no_call_up_for_longer_than_its_deadline(
    server, opened, tokens
):
    provider, request = vertex(server, timeouts=Timeouts(total=0.3))
    opened(provider)
    tokens.manner = stalling()

    error = await failure_of(provider, request)

    assert (error.kind, error.may_have_been_billed) == (ErrorKind.UNREACHABLE, False)


async def test_a_token_that_is_refused_in_the_middle_is_renewed_once(server, opened, tokens):
    server.manner = answering(body=CONTENT)
    provider, request = vertex(server)
    opened(provider)
    await provider.ask(request)
    given(tokens, "ya29.second-0123456789")
    server.manner = answering(
        401, {"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "revoked"}}
    )

    ended = await asyncio.gather(*(failure_of(provider, request) for _ in range(3)))

    assert [error.kind for error in ended] == [ErrorKind.SERVER_ERROR] * 3  # worth another try
    server.manner = answering(body=CONTENT)
    assert (await provider.ask(request)).text == "42"
    assert server.received[-1].headers["authorization"] == "Bearer ya29.second-0123456789"
    assert len(tokens.received) == 2


async def test_a_server_of_tokens_that_is_down_ends_no_model(server, opened, tokens):
    server.manner = answering(body=CONTENT)
    provider, request = vertex(server)
    opened(provider)
    tokens.manner = answering(503, b"later")

    error = await failure_of(provider, request)

    assert (error.kind, error.never_sent) == (ErrorKind.UNREACHABLE, True)
    given(tokens, "ya29.second-0123456789")
    assert (await provider.ask(request)).text == "42"


async def test_a_token_that_is_not_given_stops_the_model(server, opened, tokens):
    provider, request = vertex(server)
    opened(provider)
    tokens.manner = answering(400, {"error": "invalid_grant", "error_description": "it was revoked"})

    error = await failure_of(provider, request)

    assert error.kind is ErrorKind.AUTH
    assert not server.received
