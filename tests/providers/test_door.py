"""A call that the SDK built once and one that it builds itself are the same to a server."""

from dataclasses import replace

import anthropic
import httpx2
import openai
import pytest

from asyncbench.providers import sdk
from asyncbench.providers.anthropic.client import AnthropicProvider
from asyncbench.providers.endpoints import Endpoint, known_endpoints
from asyncbench.providers.openai.client import OpenAIProvider
from asyncbench.providers.provider import open_provider
from tests.providers.asking import ADAPTERS, KEY, asking
from tests.providers.raw_server import answering, events, sending, stalling, stream_of
from tests.providers.test_every_endpoint import REPLIES

OF_SDKS = ADAPTERS[:2]
EVERY = [
    pytest.param(name, api, stream, id=f"{name}-{api}-{'streamed' if stream else 'whole'}")
    for name, endpoint in known_endpoints().items()
    if endpoint.via in ("openai", "anthropic", "google")
    for api in endpoint.apis
    for stream in (False, True)
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "api", "stream"), EVERY)
async def test_both_doors_put_the_same_on_the_wire(server, opened, name, api, stream):
    server.manner = answering(body=REPLIES[api], content_type="application/json")
    model = replace(asking().trial.model, provider=name, api=api, base_url=server.url, stream=stream)
    for door in ("sdk", None):
        asked = replace(model, door=door)
        provider = opened(open_provider(asked, key=KEY, simulator_url=None))
        request = asking()
        request = replace(request, trial=replace(request.trial, model=asked))
        assert (await provider.ask(request)).text == "42"
        assert bool(getattr(provider, "_doors")) is (door is None)  # noqa: B009  what is looked at is private

    by_sdk, by_door = server.received
    assert by_sdk == by_door
    assert KEY in " ".join(by_door.headers.values())


@pytest.mark.parametrize("adapter", OF_SDKS, ids=lambda adapter: adapter.name)
async def test_other_options_are_built_anew(server, opened, adapter):
    server.manner = answering(body=adapter.body)
    provider = opened(adapter.provider(server.url))
    for temperature in (None, 0.5, None, 0.5):
        await provider.ask(asking(model_id="claude-opus-4-1", temperature=temperature))
    versions = [received.headers.get("anthropic-version") for received in server.received]
    assert versions[:2] == versions[2:]
    assert (versions[0] != versions[1]) is (adapter.name == "anthropic")


class SigningOpenAI(openai.AsyncOpenAI):
    """A cloud's client, which signs each request."""

    signed = 0

    async def _prepare_request(self, request):
        type(self).signed += 1
        request.headers["x-signature"] = f"{self.signed} {len(request.content)}"


class SigningAnthropic(anthropic.AsyncAnthropic):
    """Likewise."""

    signed = 0
    _prepare_request = SigningOpenAI._prepare_request


@pytest.mark.parametrize(
    ("kind", "client", "adapter"),
    [
        (OpenAIProvider, SigningOpenAI, OF_SDKS[0]),
        (AnthropicProvider, SigningAnthropic, OF_SDKS[1]),
    ],
    ids=["openai", "anthropic"],
)
async def test_a_client_that_signs_each_request_builds_each(
    server, opened, monkeypatch, kind, client, adapter
):
    module = openai if kind is OpenAIProvider else anthropic
    name = client.__mro__[1].__name__
    monkeypatch.setattr(module, name, client)
    server.manner = answering(body=adapter.body)
    provider = opened(kind(Endpoint(base_url=server.url + adapter.base, api_key=KEY), adapter.wire))
    for question in ("1", "22"):
        await provider.ask(asking(system=question))
    signed = [received.headers["x-signature"] for received in server.received]
    lengths = [received.headers["content-length"] for received in server.received]
    assert signed == [f"{n} {length}" for n, length in enumerate(lengths, 1)]


@pytest.mark.parametrize("adapter", OF_SDKS, ids=lambda adapter: adapter.name)
@pytest.mark.parametrize("status", [200, 400])
async def test_a_release_that_sends_past_the_given_transport_builds_each_and_says_so_once(
    server, opened, adapter, status
):
    """What was to be rehearsed reaches the server then, as a body that asks nothing."""
    provider = opened(adapter.provider(server.url))
    getattr(provider, "_client")._client = httpx2.AsyncClient()  # noqa: B009  as such a release would do
    good, rehearsed = answering(body=adapter.body), answering(body=adapter.body, status=status)
    manners = iter((rehearsed, good, good))
    server.manner = lambda writer: next(manners)(writer)
    replies = [await provider.ask(asking()) for _ in range(2)]
    assert [reply.text for reply in replies] == ["42", "42"]
    assert [reply.note for reply in replies] == [sdk.NO_DOOR, None]
    assert [received.headers["content-length"] == "2" for received in server.received] == [True, False, False]


@pytest.mark.parametrize("adapter", OF_SDKS, ids=lambda adapter: adapter.name)
async def test_a_rehearsal_that_nobody_answers_holds_no_call(server, opened, adapter, monkeypatch):
    monkeypatch.setattr(sdk, "REHEARSES_S", 0.1)
    provider = opened(adapter.provider(server.url))
    getattr(provider, "_client")._client = httpx2.AsyncClient()  # noqa: B009  as such a release would do
    silent, good = stalling(), answering(body=adapter.body)

    def only_good_bodies(writer):
        is_rehearsal = (
            server.received[-1].headers["content-length"] == "2"
        )  # it may be given up before it comes
        return (silent if is_rehearsal else good)(writer)

    server.manner = only_good_bodies
    reply = await provider.ask(asking())
    assert (reply.text, reply.note) == ("42", sdk.NO_DOOR)


@pytest.mark.parametrize("adapter", OF_SDKS, ids=lambda adapter: adapter.name)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_the_sdk_alone_reads_what_the_door_reads(server, opened, adapter, stream):
    body = sending(stream_of(events(*adapter.events))) if stream else answering(body=adapter.body)
    server.manner = body
    replies = []
    for sdk_only in (True, False):
        provider = opened(adapter.provider(server.url, sdk_only=sdk_only))
        replies.append(await provider.ask(asking(stream=stream)))
    by_sdk, by_door = (replace(reply, latency_s=None, ttft_s=None, times=None) for reply in replies)
    assert by_sdk == by_door
    assert by_door.text == "42"
