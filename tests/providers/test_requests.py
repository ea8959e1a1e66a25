"""What goes over the wire: what the sweep says, and nothing else."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from asyncbench.config.entry import Place
from asyncbench.config.questions import ConditionEntry, condition_from
from asyncbench.records import Condition, Message
from asyncbench.suites.chats import chat_question
from asyncbench.suites.requests import request_for
from tests.providers.asking import ADAPTERS, KEY, PROBLEM, asking
from tests.providers.raw_server import answering

OPENAI, ANTHROPIC, HTTP, GOOGLE = ADAPTERS
QUESTION = {"role": "user", "content": PROBLEM.question}


@pytest.fixture
def sent(server, opened):
    """Send a request through an adapter and return what arrived."""

    async def send(adapter, request, **endpoint):
        server.manner = answering(body=adapter.body)
        await opened(adapter.provider(server.url, **endpoint)).ask(request)
        return server.received[-1]

    return send


TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
PLAIN: dict[str, object] = {"messages": [QUESTION]}
CONDITIONS: dict[
    str, tuple[dict[str, object], dict[str, object]]
] = {  # a condition as written in a sweep → what it adds to OpenAI's body
    "plain": ({}, PLAIN),
    "system": ({"system": "be brief"}, {"messages": [{"role": "system", "content": "be brief"}, QUESTION]}),
    "context": ({"context": "talk.json"}, {"messages": [*TALK, QUESTION]}),
    "shots": ({"shots": "shots.jsonl"}, {"messages": [*TALK, QUESTION]}),
    "both": ({"context": "talk.json", "shots": "shots.jsonl"}, {"messages": [*TALK, *TALK, QUESTION]}),
    "params": ({"params": {"stop": ["x"], "top_p": 0.1}}, {**PLAIN, "stop": ["x"], "top_p": 0.1}),
}


def _with_system_apart(body):
    """Return the same in Anthropic's form: the system prompt beside the messages."""
    first, *rest = body["messages"]
    return body | {"system": first["content"], "messages": rest} if first["role"] == "system" else body


def _with_messages(body):
    """Return a body of contents with its turns in OpenAI's form; any other as it is."""
    if "contents" not in body:
        return body
    others = {name: body[name] for name in body.keys() - {"contents", "systemInstruction"}}
    turns = [{"role": "system", **body["systemInstruction"]}] if "systemInstruction" in body else []
    roles = {"model": "assistant"}
    turns = [
        {"role": roles.get(turn["role"], turn["role"]), "content": turn["parts"][0]["text"]}
        for turn in [*turns, *body["contents"]]
    ]
    return {"messages": turns, **others}


def read(**said):
    """Return a condition as it stands in a sweep file."""
    return condition_from(ConditionEntry.model_validate(said), place=Place(source="sweep.yaml"))


@pytest.fixture(params=CONDITIONS)
def condition(request, tmp_path, monkeypatch):
    """A condition with the files it names, and what it adds to OpenAI's body."""
    monkeypatch.chdir(tmp_path)
    Path("talk.json").write_text(json.dumps({"messages": TALK}))
    Path("shots.jsonl").write_text(json.dumps({"question": "hi", "answer": "hello"}))
    said, expected = CONDITIONS[request.param]
    return read(name=request.param, **said), expected


async def test_each_condition_is_sent_as_it_is_written(sent, adapter, condition):
    asked_so, expected = condition
    trial = replace(asking(model_id="m", max_tokens=50, top_p=0.9).trial, condition=asked_so)

    request = await sent(adapter, request_for(trial))

    most = "max_completion_tokens" if adapter is OPENAI else "max_tokens"
    body = _with_system_apart(expected) if adapter is ANTHROPIC else expected
    asked = {"model": "m", most: 50, "top_p": 0.9}
    if adapter is GOOGLE:
        asked = {"generationConfig": {"maxOutputTokens": 50, "topP": 0.9}}
    assert _with_messages(request.body) == asked | body


async def test_a_chat_is_sent_turn_by_turn_behind_what_its_condition_says(sent, adapter):
    chat = (Message(role="system", content="as digits"), *(Message(**turn) for turn in TALK))
    question = chat_question([*chat, Message(role="user", content=PROBLEM.question)])
    problem = replace(PROBLEM, suite="custom", question=question)
    shots = (Message(role="user", content="1 + 1?"), Message(role="assistant", content="2"))
    condition = Condition(system="be brief", turns=shots)
    trial = replace(asking(model_id="m").trial, problem=problem, condition=condition)

    request = await sent(adapter, request_for(trial))

    system = {"role": "system", "content": "be brief\n\nas digits"}
    said = {"messages": [system, *map(asdict, shots), *TALK, QUESTION]}
    body = _with_messages(request.body)
    expected = _with_system_apart(said) if adapter is ANTHROPIC else said
    assert {name: body[name] for name in expected} == expected


async def test_text_arrives_as_it_was(sent, adapter):
    odd = 'ünï "quoted" \\ \u2028 😀\n\t'

    request = await sent(adapter, asking(messages=(Message(role="user", content=odd),)))

    assert _with_messages(request.body)["messages"] == [{"role": "user", "content": odd}]


async def test_the_key_travels_in_one_header(sent, adapter):
    request = await sent(adapter, asking())

    assert request.path == adapter.path
    assert request.headers[adapter.key_header].removeprefix("Bearer ") == KEY
    assert repr(request.headers).count(KEY) == 1
    assert request.headers["content-type"] == "application/json"


async def test_the_openai_sdk_says_nothing_of_this_machine(sent):
    request = await sent(OPENAI, asking())

    assert "user-agent" in request.headers
    assert not [name for name in request.headers if name.startswith("x-stainless")]


@pytest.mark.parametrize("adapter", [OPENAI, ANTHROPIC, GOOGLE], ids=["openai", "anthropic", "google"])
async def test_an_sdk_that_insists_on_a_key_says_that_there_is_none(sent, adapter):
    headers = (await sent(adapter, asking(), api_key="")).headers
    assert headers[adapter.key_header].removeprefix("Bearer ") == "none"


async def test_without_a_key_nothing_is_said_of_one(sent):
    assert "authorization" not in (await sent(HTTP, asking(), api_key="")).headers


@pytest.mark.parametrize("base", ["/v1", "/v1/", "", "/", "/gateway/openai/v1"])
@pytest.mark.parametrize("adapter", [OPENAI, HTTP], ids=["openai", "http"])
async def test_a_base_url_is_taken_as_it_is_written(sent, adapter, base):
    request = await sent(replace(adapter, base=base), asking())

    assert request.path == f"{base.rstrip('/')}/chat/completions"


@pytest.mark.parametrize(
    ("model", "version"),
    [
        pytest.param({"temperature": 0.0}, "2023-06-01", id="temperature"),
        pytest.param({"top_p": 0.5}, "2023-06-01", id="top_p"),
        pytest.param({"params": {"top_k": 1}}, "2023-06-01", id="params"),
        pytest.param({}, "2026-10-21", id="neither"),
        pytest.param({"model_id": "claude-opus-5", "params": {"top_k": 1}}, "2026-10-21", id="newer model"),
        pytest.param({"model_id": "noisy-2", "temperature": 0.0}, "2023-06-01", id="simulator"),
    ],
)
async def test_the_older_version_is_asked_for_where_a_model_takes_sampling_under_it(sent, model, version):
    request = await sent(ANTHROPIC, asking(**model))

    assert request.headers["anthropic-version"] == version


ELSEWHERE = "Bearer elsewhere"
ENVIRONMENT = {
    "OPENAI_API_KEY": "elsewhere",
    "OPENAI_ADMIN_KEY": "elsewhere",
    "OPENAI_ORG_ID": "org-elsewhere",
    "OPENAI_PROJECT_ID": "proj-elsewhere",
    "OPENAI_CUSTOM_HEADERS": f"X-Elsewhere: elsewhere\nAuthorization: {ELSEWHERE}",
    "ANTHROPIC_API_KEY": "elsewhere",
    "ANTHROPIC_AUTH_TOKEN": "elsewhere",
    "ANTHROPIC_CUSTOM_HEADERS": f"X-Elsewhere: elsewhere\nAuthorization: {ELSEWHERE}",
    "ANTHROPIC_ORGANIZATION_ID": "org-elsewhere",
    "ANTHROPIC_WORKSPACE_ID": "elsewhere",
    "ANTHROPIC_PROFILE": "elsewhere",
    "GOOGLE_API_KEY": "elsewhere",
    "GEMINI_API_KEY": "elsewhere",
    "GOOGLE_GEMINI_BASE_URL": "http://elsewhere",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_API_VERSION": "elsewhere",
    "GOOGLE_CLOUD_PROJECT": "elsewhere",
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_nothing_of_the_environment_is_sent(sent, adapter, monkeypatch, stream):
    plain = await sent(adapter, asking(stream=stream))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    request = await sent(adapter, asking(stream=stream))

    assert _with_messages(request.body)["messages"] == [QUESTION]
    assert "elsewhere" not in repr(request).lower()
    assert request.headers.keys() == plain.headers.keys()


async def test_streaming_changes_the_body_or_the_address_alone(sent, adapter):
    whole, streamed = [await sent(adapter, asking(stream=stream)) for stream in (False, True)]

    words = {ANTHROPIC.name: {"stream"}, GOOGLE.name: set()}.get(adapter.name, {"stream", "stream_options"})
    assert (streamed.path == whole.path) is (adapter is not GOOGLE)
    assert {name: streamed.body[name] for name in streamed.body.keys() - words} == whole.body
    assert words <= streamed.body.keys()
    assert streamed.headers.keys() == whole.headers.keys()
