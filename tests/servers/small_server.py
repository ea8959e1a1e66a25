"""A small server like OpenAI's, for tests: it loads, answers "4", notes its process, and can end by itself.

python small_server.py PORT NOTES [--loads N] [--ends-after N] [--stubborn]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

parser = argparse.ArgumentParser()
parser.add_argument("port", type=int)
parser.add_argument("notes")
parser.add_argument("--loads", type=int, default=0)  # times that /health says 503
parser.add_argument("--ends-after", type=int, default=-1)  # calls
parser.add_argument("--stubborn", action="store_true")  # stays after SIGTERM, and has a child
told = parser.parse_args()
left = {"loads": told.loads, "calls": told.ends_after}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        left["loads"] -= 1
        loading = 401 if self.path == "/key" else 503
        self._answer(200 if left["loads"] < 0 else loading, b"", "text/plain")

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if left["calls"] == 0:
            print("out of memory", flush=True)
            os._exit(9)
        left["calls"] -= 1
        choice = {"index": 0, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
        said = {"id": "1", "object": "x", "created": 1, "model": "m", "usage": usage}
        message = {"role": "assistant", "content": "4"}
        if asked.get("stream"):
            chunk = json.dumps(said | {"choices": [choice | {"delta": message}]})
            self._answer(200, f"data: {chunk}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")
        else:
            body = json.dumps(said | {"choices": [choice | {"message": message}]})
            self._answer(200, body.encode(), "application/json")

    def _answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


pids = [os.getpid()]
if told.stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
    pids.append(subprocess.Popen(child).pid)
with open(told.notes, "a") as notes:
    notes.write("".join(f"{pid}\n" for pid in pids))
print("loading", flush=True)
ThreadingHTTPServer(("127.0.0.1", told.port), Handler).serve_forever()
