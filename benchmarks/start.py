"""Seconds from the start of a process to its first request: a tiny sweep, beside the SDK alone.

    python -m benchmarks.start [--rounds 6] [--workers 1] [--problems million.parquet]

Both are fresh processes, in turns, with warm caches. Bare is what a script does at least: it imports the SDK
(for http: aiohttp), makes a client and sends one call. The server is this process. With `--problems` a sweep
asks 72 problems of that file. CPU is of the whole process, to its end.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Final

MODELS: Final = {"openai": "gpt-5-mini", "anthropic": "claude-haiku-4-5", "http": "any"}
MESSAGES: Final = [{"role": "user", "content": "1 + 1 ="}]
ASKED: Final = {"model": "any", "max_tokens": 9, "messages": MESSAGES}
CHAT: Final = {"choices": [{"index": 0, "message": {"content": "2"}, "finish_reason": "stop"}]}
MESSAGE: Final = {"type": "message", "content": [{"type": "text", "text": "2"}], "stop_reason": "end_turn"}
BARE: Final = {
    "openai": """
import asyncio, openai, sys
aiohttp = openai.DefaultAioHttpClient()
client = openai.AsyncOpenAI(base_url=sys.argv[1] + "/v1", api_key="none", http_client=aiohttp)
asyncio.run(client.chat.completions.create(**ASKED))
""",
    "anthropic": """
import anthropic, asyncio, sys
aiohttp = anthropic.DefaultAioHttpClient()
client = anthropic.AsyncAnthropic(base_url=sys.argv[1], api_key="none", http_client=aiohttp)
asyncio.run(client.messages.create(**ASKED))
""",
    "http": """
import aiohttp, asyncio, sys
async def ask():
    async with aiohttp.ClientSession() as session:
        async with session.post(sys.argv[1] + "/v1/chat", json=ASKED) as response:
            await response.read()
asyncio.run(ask())
""",
}


class FirstRequest(BaseHTTPRequestHandler):
    """Answers every call; notes when the first one came."""

    came: float | None = None
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # as http.server calls it
        if FirstRequest.came is None:
            FirstRequest.came = time.perf_counter()
        self.rfile.read(int(self.headers["content-length"]))
        answer = json.dumps(MESSAGE if self.path.endswith("messages") else CHAT).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Server(ThreadingHTTPServer):
    """Takes all connections of a run at once."""

    request_queue_size = 128


def seconds(*command: str) -> tuple[float, float]:
    """Return how long a command takes to its first request, and the CPU seconds of all of it."""
    FirstRequest.came = None
    begun, before = time.perf_counter(), os.times()
    env = {**os.environ, "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=env)  # noqa: S603  our own
    assert not done.returncode, done.stderr
    assert FirstRequest.came is not None
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return FirstRequest.came - begun, cpu


def sweep_file(folder: Path, provider: str, url: str, file: Path | None = None) -> str:
    """Write a sweep of eight calls, or of the problems of a file."""
    base_url = url if provider == "anthropic" else f"{url}/v1"
    model = {
        "model": f"{provider}/{MODELS[provider]}",
        "base_url": base_url,
        "price": {"input": 1, "output": 1},
    }
    tiny = {"suite": "llm_arithmetic", "trials": 1, "depths": [1]}
    problems = [{"path": str(file)} if file else tiny]
    sweep = {"name": "tiny", "problems": problems, "models": [model], "out": str(folder / "results")}
    (written := folder / "tiny.yaml").write_text(json.dumps(sweep), "utf-8")
    return str(written)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--workers", default="0")
    parser.add_argument("--problems", type=Path)
    options = parser.parse_args()
    server = Server(("127.0.0.1", 0), FirstRequest)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    own = ("--quiet", "--limit", "72", "--workers", options.workers)
    took = defaultdict[tuple[str, str], list[tuple[float, float]]](list)
    for number in range(options.rounds + 1):  # the first warms the caches
        for provider, code in BARE.items():
            with tempfile.TemporaryDirectory() as folder:
                file = sweep_file(Path(folder), provider, url, options.problems)
                ours = seconds(sys.executable, "-m", "asyncbench", "run", file, *own)
            bare = seconds(sys.executable, "-c", f"ASKED = {ASKED}\n{code}", url)
            if number:
                took[provider, "asyncbench"].append(ours)
                took[provider, "bare"].append(bare)
    for provider in BARE:
        times = {who: sorted(took[provider, who]) for who in ("asyncbench", "bare")}
        texts = [
            f"{who} {median(first_s for first_s, _ in every):.2f} s ({every[0][0]:.2f}–{every[-1][0]:.2f}), "
            f"CPU {median(cpu_s for _, cpu_s in every):.2f} s"
            for who, every in times.items()
        ]
        print(f"{provider:10} {'; '.join(texts)}")


if __name__ == "__main__":
    main()
