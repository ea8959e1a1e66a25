"""Seconds from the start of a process to its first request: a tiny sweep, beside the SDK alone.

    python -m benchmarks.start [--rounds 6]

Both are fresh processes, in turns, with warm caches. Bare is what a script does at least: it imports the SDK
(for http: aiohttp), makes a client and sends one call. The server is this process.
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


def seconds(*command: str) -> float:
    """Return how long a command takes to its first request."""
    FirstRequest.came = None
    begun = time.perf_counter()
    env = {**os.environ, "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=env)  # noqa: S603  our own
    assert not done.returncode, done.stderr
    assert FirstRequest.came is not None
    return FirstRequest.came - begun


def sweep_file(folder: Path, provider: str, url: str) -> str:
    """Write a sweep of eight calls."""
    base_url = url if provider == "anthropic" else f"{url}/v1"
    model = {
        "model": f"{provider}/{MODELS[provider]}",
        "base_url": base_url,
        "price": {"input": 1, "output": 1},
    }
    problems = [{"suite": "llm_arithmetic", "trials": 1, "depths": [1]}]
    sweep = {"name": "tiny", "problems": problems, "models": [model], "out": str(folder / "results")}
    (file := folder / "tiny.yaml").write_text(json.dumps(sweep), "utf-8")
    return str(file)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    rounds = parser.parse_args().rounds
    server = ThreadingHTTPServer(("127.0.0.1", 0), FirstRequest)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    took = defaultdict[tuple[str, str], list[float]](list)
    for number in range(rounds + 1):  # the first warms the caches
        for provider, code in BARE.items():
            with tempfile.TemporaryDirectory() as folder:
                file = sweep_file(Path(folder), provider, url)
                ours = seconds(sys.executable, "-m", "asyncbench", "run", file, "--quiet")
            bare = seconds(sys.executable, "-c", f"ASKED = {ASKED}\n{code}", url)
            if number:
                took[provider, "asyncbench"].append(ours)
                took[provider, "bare"].append(bare)
    for provider in BARE:
        times = {who: sorted(took[provider, who]) for who in ("asyncbench", "bare")}
        texts = [
            f"{who} {median(all_s):.2f} s ({all_s[0]:.2f}–{all_s[-1]:.2f})" for who, all_s in times.items()
        ]
        ratio = median(times["asyncbench"]) / median(times["bare"])
        print(f"{provider:10} {', '.join(texts)}, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
