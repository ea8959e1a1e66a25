"""Servers that say too much, too late or twice: none of it becomes the answer to another question."""

import asyncio
import gzip
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import count
from random import Random
from uuid import UUID

import orjson
import pyarrow.parquet as pq
import pytest

from asyncbench import run_sweep
from asyncbench.engine import same_failures
from asyncbench.providers import unasked
from asyncbench.store.catalog import read_attempts, read_trials
from tests.providers.raw_server import _read, chunk, events, head, stream_of
from tests.sweep_files import ADAPTERS, Said, problem_set, sweep
from tests.tiers import first_rows

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
EVERY_ADAPTER = pytest.mark.parametrize("provider", ADAPTERS)
IDLE_408 = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"


def random_id(number: int) -> str:
    return f"chatcmpl-{Random(number).getrandbits(128):032x}"


class Echo:
    """Answers each question with itself, then says what its test wants it to."""

    def __init__(self, url: str, surplus, id_of) -> None:
        self.url, self.surplus, self.id_of = url, surplus, id_of
        self.connections = self.requests = 0
        self.kept: list[str] = []  # what requests said of their connections

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while not writer.is_closing():
            request = await _read(reader)
            self.kept.append(request.headers.get("connection", ""))
            answer = _echo(request, self.id_of(self.requests))
            self.requests += 1
            for piece in self.surplus(answer):
                if isinstance(piece, float):
                    await asyncio.sleep(piece)
                elif piece is None:
                    writer.close()
                    return
                else:
                    writer.write(piece)
                    await writer.drain()


def _echo(request, answer_id: str) -> bytes:
    question = request.body["messages"][-1]["content"]
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    if request.path.endswith("messages"):
        whole, parts = _as_message(question, answer_id)
    else:
        whole, parts = _as_completion(question, answer_id, usage)
    if request.body.get("stream"):
        return stream_of(events(*map(orjson.dumps, parts)))
    body = orjson.dumps(whole)
    return head(200, content_type="application/json", content_length=len(body)) + body


def _as_message(text: str, answer_id: str):
    start = {"id": answer_id, "type": "message", "model": "m", "role": "assistant", "content": []}
    usage = {"input_tokens": 9, "output_tokens": 1}
    whole = start | {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage}
    return whole, [
        {"type": "message_start", "message": start | {"stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def _as_completion(text: str, answer_id: str, usage):
    start = {"id": answer_id, "object": "chat.completion", "model": "m"}
    message = {"role": "assistant", "content": text}
    whole = start | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    part = {"index": 0, "delta": message, "finish_reason": "stop"}
    return whole, [start | {"choices": [part], "usage": usage}]


@asynccontextmanager
async def echoing(
    surplus, *, greeting: bytes = b"", id_of=random_id, at_once: int = 1_000
) -> AsyncIterator[Echo]:
    talks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
    served = asyncio.Semaphore(at_once)  # connections: the others wait until one of these is closed

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with served:
            await server.talk(reader, writer)

    def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        talks[asyncio.create_task(serve(reader, writer))] = writer

    listener = await asyncio.start_server(welcome, "127.0.0.1", 0)
    server = Echo(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", surplus, id_of)
    try:
        yield server
    finally:
        listener.close()
        for talk, writer in talks.items():
            talk.cancel()
            writer.close()
        await asyncio.gather(*talks, return_exceptions=True)


async def questions_and_replies(server, tmp_path, provider, **model):
    """Ask 72 questions, one after the other; return each question with the reply that it has."""
    url = server.url if provider == "simulated-anthropic" else f"{server.url}/v1"
    problems, out = problem_set(tmp_path, trials=1), tmp_path / "out"
    keys = {"base_url": url, "concurrency": 1, "max_tokens": 50, "retry": {"attempts": 30, "total_s": 60}}
    workers, screen = model.pop("workers", None), model.pop("screen", None)
    asked = sweep(out, problems, {"model": f"{provider}/m", "alias": "m", **keys, **model})
    await run_sweep(asked, workers=workers, screen=screen)
    rows = pq.read_table(problems, columns=["problem_id", "question"]).to_pylist()
    questions = {row["problem_id"]: row["question"] for row in rows}
    replies = read_trials(out, columns=["problem_id", "reply_text"]).to_pylist()
    return [(questions[row["problem_id"]], row["reply_text"]) for row in replies]


def late_twice(answer: bytes) -> Iterable[bytes | float]:
    return answer, 0.01, answer


@pytest.mark.long
@EVERY_ADAPTER
async def test_a_server_that_serves_one_connection_at_a_time_waits_for_no_idle_one(
    tmp_path, provider, monkeypatch
):
    monkeypatch.setattr(unasked, "LISTENS_S", 0.01)
    async with echoing(lambda answer: (answer,), at_once=1) as server:
        await questions_and_replies(server, tmp_path, provider)
    assert statuses(tmp_path) == ["ok"] * 72
    assert server.requests == 72


@pytest.mark.long
@pytest.mark.parametrize(
    ("provider", "keys"),
    [
        *((provider, {"stream": stream}) for provider in ADAPTERS for stream in (False, True)),
        ("simulated", {"door": "sdk"}),
        ("simulated-http", {"workers": 2, "concurrency": 4}),
    ],
)
async def test_a_server_that_was_caught_answering_twice_gets_no_used_connection(tmp_path, provider, keys):
    """Its ids are all the same: only the connection tells whose an answer is."""
    screen = Said()
    async with echoing(late_twice, id_of=lambda _: "constant") as server:
        pairs = await questions_and_replies(server, tmp_path, provider, screen=screen, **keys)
    assert [(question, reply) for question, reply in pairs if question != reply] == []
    assert statuses(tmp_path) == ["ok"] * 72
    assert (server.connections, server.requests) == (72, 72)
    assert server.kept[-1] == "close"
    assert sum("answers twice" in line for line in screen.lines) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "extra",
    [b"", b"\r\n", b"\r\n\r\n", IDLE_408, b"HTTP/1.0 408 Request Time-out\r\n\r\n", INTERIM],
    ids=["nothing", "an empty line", "two", "408", "408 of HTTP/1.0", "hints"],
)
async def test_what_a_server_says_before_it_hangs_up_is_no_second_answer(tmp_path, extra, monkeypatch):
    monkeypatch.setattr(unasked, "LISTENS_S", 0.0)
    screen = Said()
    end = [None] if b"408" in extra else []  # it hangs up: the body of such an answer has no other end
    async with echoing(lambda answer: (answer[:-9], 0.001, answer[-9:], 0.001, extra, *end)) as server:
        await questions_and_replies(server, tmp_path, "simulated-http", screen=screen)
    assert not [line for line in screen.lines if "answers twice" in line]


def _http_10(answer: bytes) -> bytes:
    return answer.replace(b"HTTP/1.1", b"HTTP/1.0", 1).replace(b"\r\n", b"\r\nconnection: keep-alive\r\n", 1)


def _gzipped(answer: bytes) -> bytes:
    body = gzip.compress(answer.partition(b"\r\n\r\n")[2])
    headers = {"content_type": "application/json", "content_encoding": "gzip", "content_length": len(body)}
    return head(200, **headers) + body


def _chunked(answer: bytes) -> bytes:
    body = answer.partition(b"\r\n\r\n")[2]
    headers = {"content_type": "application/json", "transfer_encoding": "chunked"}
    return head(200, **headers) + chunk(body[:20]) + chunk(body[20:]) + b"0\r\n\r\n"


# How honest servers write an answer. Each: one call a question, and nothing that looks like a second answer.
HONEST = {
    "HTTP/1.0 that keeps": lambda answer: (_http_10(answer),),
    "gzip": lambda answer: (_gzipped(answer),),
    "gzip, in pieces": lambda answer: (_gzipped(answer)[:-7], 0.001, _gzipped(answer)[-7:]),
    "chunked": lambda answer: (_chunked(answer),),
    "chunked, its end late": lambda answer: (_chunked(answer)[:-5], 0.001, _chunked(answer)[-5:]),
    "chunked, half of its end late": lambda answer: (_chunked(answer)[:-2], 0.001, _chunked(answer)[-2:]),
    "a trailer": lambda answer: (_chunked(answer)[:-2] + b"x-sum: 1\r\n\r\n",),
    "hints before it": lambda answer: (INTERIM + answer,),
    "100 before it": lambda answer: (b"HTTP/1.1 100 Continue\r\n\r\n" + answer,),
    "an empty line in the same piece": lambda answer: (answer + b"\r\n",),
}


@pytest.mark.parametrize("id_of", [random_id, lambda _: "constant"], ids=["own id", "shared id"])
@pytest.mark.parametrize("manner", first_rows(4, HONEST))
async def test_no_honest_way_to_answer_is_taken_for_a_second_answer(tmp_path, manner, id_of, monkeypatch):
    monkeypatch.setattr(unasked, "LISTENS_S", 0.0)
    screen = Said()
    async with echoing(HONEST[manner], id_of=id_of) as server:
        await questions_and_replies(server, tmp_path, "simulated-http", screen=screen)
    assert statuses(tmp_path) == ["ok"] * 72
    assert (server.requests, [line for line in screen.lines if "answers twice" in line]) == (72, [])
    assert server.connections < 72 or manner == "an empty line in the same piece"


@pytest.mark.parametrize(
    ("id_of", "refused"), [(lambda _: "constant", 1), (random_id, 0)], ids=["shared id", "own id"]
)
async def test_the_answer_before_the_catch_is_asked_again_unless_its_id_proves_it(
    tmp_path, id_of, refused, monkeypatch
):
    monkeypatch.setattr(unasked, "LISTENS_S", 0.0)
    numbers = count()
    async with echoing(lambda answer: (answer * (1 + (next(numbers) == 40)),), id_of=id_of) as server:
        pairs = await questions_and_replies(server, tmp_path, "simulated-http")
    assert all(question == reply for question, reply in pairs)
    assert Counter(statuses(tmp_path))["bad_reply"] == refused


def statuses(tmp_path) -> list[str]:
    return [str(row["status"]) for row in read_attempts(tmp_path / "out", columns=["status"]).to_pylist()]


def twice(answer: bytes) -> Iterable[bytes | float]:
    return answer, answer


def twice_in_one_piece(answer: bytes) -> Iterable[bytes | float]:
    return (answer + answer,)


def idle_408(answer: bytes) -> Iterable[bytes | float]:
    return answer, IDLE_408


@pytest.mark.long
@pytest.mark.parametrize(
    ("provider", "keys"),
    [
        *((provider, {"stream": stream}) for provider in ADAPTERS for stream in (False, True)),
        ("simulated-http", {"workers": 2}),
    ],
)
async def test_an_answer_that_comes_twice_is_never_the_answer_to_the_next_question(tmp_path, provider, keys):
    async with echoing(twice) as server:
        pairs = await questions_and_replies(server, tmp_path, provider, **keys)
    assert len(pairs) == 72
    assert [(question, reply) for question, reply in pairs if question != reply] == []


@pytest.mark.long
@EVERY_ADAPTER
async def test_a_408_on_an_idle_connection_costs_no_attempt(tmp_path, provider):
    async with echoing(idle_408) as server:
        await questions_and_replies(server, tmp_path, provider)
    assert statuses(tmp_path) == ["ok"] * 72
    assert server.requests == 72


@STREAMS
@EVERY_ADAPTER
async def test_a_server_that_says_what_it_should_keeps_its_connections(
    tmp_path, provider, stream, monkeypatch
):
    monkeypatch.setattr(unasked, "LISTENS_S", 0.0)
    async with echoing(lambda answer: (answer,)) as server:
        pairs = await questions_and_replies(server, tmp_path, provider, stream=stream)
    assert all(question == reply for question, reply in pairs)
    assert (server.connections, server.requests) == (unasked.LISTENED_TO, 72)


async def test_a_server_that_speaks_before_it_is_asked_has_answered_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(same_failures, "MINUTE_S", 1.0)
    foreign = head(200, content_length=2) + b"{}"
    async with echoing(lambda answer: (answer,), greeting=foreign) as server:
        pairs = await questions_and_replies(server, tmp_path, "simulated-http", retry={"attempts": 1})
    assert all(reply in (question, None) for question, reply in pairs)


# What a server says for an answer; numbers are pauses in seconds.
FAULTS = {
    "twice": twice,
    "twice in one piece": twice_in_one_piece,
    "twice, the second late": lambda answer: (answer, 0.001, answer),
    "twice, the second in two pieces": lambda answer: (answer + answer[:9], 0.001, answer[9:]),
    "the headers again": lambda answer: (answer, answer[: answer.index(b"\r\n\r\n") + 4]),
    "half of the headers again": lambda answer: (answer, answer[:20]),
    "half of the headers again, in one piece": lambda answer: (answer + answer[:20],),
    "a longer body than told": lambda answer: (answer, b'{"more": 1}'),
    "one chunk more": lambda answer: (answer, chunk(b"more")),
    "a trailer more": lambda answer: (answer + b"x-more: 1\r\n\r\n",),
    "garbage": lambda answer: (answer, b"\x00\xff\r\n"),
    "408": idle_408,
    "408, late": lambda answer: (answer, 0.002, IDLE_408),
    "hints while nothing is due": lambda answer: (answer, INTERIM),
    "hints before the answer": lambda answer: (INTERIM + answer,),
    "slowly, in pieces": lambda answer: (answer[:30], 0.001, answer[30:]),
}


@pytest.mark.long
@STREAMS
@EVERY_ADAPTER
async def test_a_storm_of_responses_that_nobody_asked_for_answers_no_question(
    tmp_path, provider, stream, request
):
    """From the 17th answer on: then the client knows that this server's ids tell its answers apart."""
    seed = request.node.nodeid
    chance = Random(seed)
    begun = count()

    def any_fault(answer: bytes):
        if next(begun) < unasked.KNOWN_FROM:
            return (answer,)
        return FAULTS[chance.choice(list(FAULTS))](answer)

    async with echoing(any_fault) as server:
        pairs = await questions_and_replies(server, tmp_path, provider, stream=stream)
    print(f"{server.connections} connections for {server.requests} requests; seed {seed!r}")
    answered = [(question, reply) for question, reply in pairs if reply is not None]
    assert len(answered) > 60
    assert [(question, reply) for question, reply in answered if question != reply] == []


ID_OF_THE_MODEL = "0b6d6a2e-6f1d-4c59-9a47-2f9c2f6f4e11"

# How servers name their answers: which question it is, from 0 → the id. None tells its answers apart.
SHARED_IDS = {
    "one for all": lambda _: "chatcmpl-1",
    "none": lambda _: "",
    "of the model": lambda _: ID_OF_THE_MODEL,
    "up to 999": lambda n: f"chatcmpl-{(n * 7919 // 2) % 3 + 100}",
    "the second": lambda n: f"chatcmpl-{1_764_000_000 + n // 4}",
    "the second, as long hexadecimal": lambda n: f"cmpl-{(1_764_000_000 + n // 4) << 64:032x}",
    "two servers behind one name": lambda n: str(UUID(int=Random(n // 3 % 2).getrandbits(128))),
    "anew after a restart": lambda n: "chatcmpl-" + ("a" if n < 20 else "b") * 24,
}


@pytest.mark.long
@pytest.mark.parametrize("naming", SHARED_IDS)
@EVERY_ADAPTER
async def test_an_id_that_answers_share_makes_none_of_them_a_repetition(
    tmp_path, provider, naming, monkeypatch
):
    monkeypatch.setattr(unasked, "LISTENS_S", 0.0)
    async with echoing(lambda answer: (answer,), id_of=SHARED_IDS[naming]) as server:
        await questions_and_replies(server, tmp_path, provider)
    assert Counter(statuses(tmp_path)) == {"ok": 72}
    assert server.requests == 72


async def test_a_cache_that_answers_equal_requests_equally_is_believed(tmp_path):
    seen: dict[bytes, bytes] = {}

    def cached(answer: bytes):
        return (seen.setdefault(answer.split(b'"content"')[1], answer),)

    async with echoing(cached) as server:
        pairs = await questions_and_replies(server, tmp_path, "simulated")
    assert statuses(tmp_path) == ["ok"] * 72
    assert all(question == reply for question, reply in pairs)
