"""Warm-up calls that let a server count pieces of questions."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from asyncbench.errors import ConfigError
from asyncbench.run.calibrating import WARM_UP_CALLS, calibrate
from asyncbench.run.checkup import models_from
from asyncbench.suites.synthetic import PIECES


@contextmanager
def counting(*, refused=(), tells=True, full=0, wait_s=0.01):
    """Serve chat completions that count a token for each four characters, and refuse some fields.

    The first `full` calls are answered with 429, and told to wait so many seconds.
    """
    bodies = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            bodies.append(body := json.loads(self.rfile.read(int(self.headers["content-length"]))))
            odd = [name for name in refused if name in body]
            message = {"role": "assistant", "content": "x"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": len(body["messages"][-1]["content"]) // 4, "completion_tokens": 1}
            reply: dict[str, object] = {
                "id": "1",
                "object": "chat.completion",
                "model": "m",
                "choices": [choice],
            }
            reply |= {"usage": usage} if tells else {}
            no_room = len(bodies) <= full
            content = {"error": {"message": f"{odd[0]}: extra fields not permitted"}} if odd else reply
            content = {"error": {"message": "too many requests"}} if no_room else content
            raw = json.dumps(content).encode()
            self.send_response(429 if no_room else 400 if odd else 200)
            if no_room:
                self.send_header("retry-after", str(wait_s))
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", bodies
    finally:
        server.shutdown()
        server.server_close()


async def calibrated(url):
    (model,) = models_from(["http/m"], base_url=url, key_env="NO_KEY", or_nothing=False)
    return await calibrate(model, 128, seed=0, env={"NO_KEY": "none"})


async def test_a_server_that_takes_ignore_eos_is_sent_it_in_each_call():
    with counting() as (url, bodies):
        found = await calibrated(url)
    assert (found.ignores_eos, found.refusal) == (True, "")
    assert [(body["ignore_eos"], body["min_tokens"]) for body in bodies] == [(True, 16)] * WARM_UP_CALLS
    assert len(found.counted.tokens) == PIECES


async def test_a_server_that_refuses_ignore_eos_is_asked_without_it_and_says_why():
    with counting(refused=["ignore_eos"]) as (url, bodies):
        found = await calibrated(url)
    assert not found.ignores_eos
    assert "ignore_eos: extra fields not permitted" in found.refusal
    assert sum("ignore_eos" in body for body in bodies) == 1
    assert len(bodies) == WARM_UP_CALLS + 1


async def test_a_server_that_counts_nothing_or_refuses_all_is_told_before_a_load():
    with counting(tells=False) as (url, _), pytest.raises(ConfigError, match="does not say how many tokens"):
        await calibrated(url)
    with counting(refused=["messages"]) as (url, _), pytest.raises(ConfigError, match="warm-up call failed"):
        await calibrated(url)


async def test_a_refusal_for_lack_of_room_is_waited_out_as_told_but_not_for_long():
    with counting(full=3) as (url, bodies):
        found = await calibrated(url)
    assert (found.ignores_eos, len(bodies)) == (True, WARM_UP_CALLS + 3)
    assert len({body["messages"][-1]["content"] for body in bodies[:4]}) == 1  # the same call, again

    with (
        counting(full=1, wait_s=3600) as (url, bodies),
        pytest.raises(ConfigError, match="too many requests"),
    ):
        await calibrated(url)
    assert len(bodies) == 1
