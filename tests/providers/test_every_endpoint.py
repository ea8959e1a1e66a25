"""Every known endpoint × wire format × way of asking: what reaches the server, through the real SDKs."""

from dataclasses import replace

import pytest

from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.params import wire_complaint
from asyncbench.providers.provider import open_provider as open_model
from asyncbench.records import Reply
from tests.providers.asking import CHAT, CONTENT, KEY, MESSAGE
from tests.providers.raw_server import answering
from tests.providers.test_bodies import ADDED, ASKED, PLAIN

REPLIES = {
    "chat": CHAT,
    "completions": {"choices": [{"index": 0, "text": "42", "finish_reason": "stop"}]},
    "responses": {
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "42"}]}],
    },
    "messages": MESSAGE,
    "contents": CONTENT,
}
PATHS = {"chat": "/chat/completions", "completions": "/completions", "responses": "/responses"}
OF_CONTENTS = {False: "generateContent", True: "streamGenerateContent?alt=sse"}

# Endpoints that say some things in chat with other words than OpenAI.
Said = dict[str, dict[str, object]]  # what is asked → what is said beside the plain request
MAX_TOKENS: Said = {"max_tokens": {"max_tokens": 50}}
UNASKED: Said = {"stream": {"stream": True}}
OTHERWISE: dict[str, Said] = {
    "gemini": {
        "budget": {"extra_body": {"google": {"thinking_config": {"thinking_budget": 2048}}}},
    },
    "mistral": MAX_TOKENS | UNASKED | {"seed": {"random_seed": 0}},
    "openrouter": MAX_TOKENS
    | {"effort": {"reasoning": {"effort": "high"}}, "budget": {"reasoning": {"max_tokens": 2048}}},
    "dashscope": MAX_TOKENS | {"budget": {"thinking_budget": 2048}},
    "ollama": MAX_TOKENS | UNASKED,
    **dict.fromkeys(("deepseek", "together", "fireworks", "deepinfra", "moonshot", "zai"), MAX_TOKENS),
    **dict.fromkeys(("novita", "maritaca"), MAX_TOKENS),
    **dict.fromkeys(("http", "lmstudio", "vllm", "simulated-http"), MAX_TOKENS),
}
EVERY = [
    pytest.param(name, api, asked, id=f"{name}-{api}-{asked}")
    for name, endpoint in known_endpoints().items()
    if endpoint.credentials is None  # clouds have their own tests, with credentials
    and endpoint.via != "python"  # functions have no server
    for api in endpoint.apis
    for asked in ASKED
]


def asked_of(name, api, asked, server):
    """The request, put to this endpoint as if it were at the server."""
    request = ASKED[asked]
    model = replace(request.trial.model, provider=name, api=api, base_url=server.url)
    return replace(request, trial=replace(request.trial, model=model))


def expected(name, api, asked):
    """What is said beside the plain request; None: it cannot be said."""
    own = OTHERWISE.get(name, {}) if api == "chat" else {}
    if api == "completions" and asked == "stream" and name in ("mistral", "ollama"):
        own = UNASKED
    return own.get(asked, ADDED[api].get(asked))


@pytest.mark.parametrize(("name", "api", "asked"), EVERY)
async def test_what_is_asked_arrives_or_is_refused_before_it_is_asked(server, opened, name, api, asked):
    request = asked_of(name, api, asked, server)
    added = expected(name, api, asked)
    if added is None:
        assert wire_complaint(request.trial.model, known_endpoints()[name].quirks)
        return
    server.manner = answering(body=REPLIES[api])

    reply = await opened(open_model(request.trial.model, key=KEY, simulator_url=None)).ask(request)

    assert isinstance(reply, Reply)
    assert reply.text == "42"
    received = server.received[-1]
    assert received.body == PLAIN[api] | added
    contents = f"/v1beta/models/m:{OF_CONTENTS[request.trial.model.stream]}"
    assert received.path == (contents if api == "contents" else PATHS.get(api, "/v1/messages"))
    headers, named = received.headers, {"azure": "api-key", "google": "x-goog-api-key"}.get(name)
    assert headers[named or "authorization"].removeprefix("Bearer ") == KEY
    assert ("authorization" in headers) is (named is None)
