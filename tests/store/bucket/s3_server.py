"""S3 on the loopback interface: a bucket in memory, or one of a real server behind it; requests are watched.

Of S3 it speaks what asyncbench uses: put (also create-only), get, list by pages, delete many.
"""

import hashlib
import http.client
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from tests.processes import HANG_S

BUCKET = "bucket"
PAGE = 7  # keys of a list: so few that lists have pages
KEY = {"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "sEcReT", "AWS_REGION": "us-east-1"}


class Request(NamedTuple):
    method: str
    path: str  # as it was sent, with what follows `?`
    headers: Mapping[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").lstrip("/")


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


Serve = Callable[[Request], Answer]
Watch = Callable[[int, Request], Answer | None]


@dataclass
class Memory:
    """One bucket, in memory."""

    objects: dict[str, bytes] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> Answer:
        with self.lock:
            if not request.path.startswith(f"/{BUCKET}"):
                return refusal(404, "NoSuchBucket")
            match request.method:
                case "PUT":
                    return self._put(request)
                case "GET" if request.key:
                    data = self.objects.get(request.key)
                    return refusal(404, "NoSuchKey") if data is None else Answer(200, data, _about(data))
                case "GET":
                    return self._list({name: said[0] for name, said in _query(request).items()})
                case "POST":
                    keys = re.findall(r"<Key>(.*?)</Key>", request.body.decode())
                    for key in keys:
                        self.objects.pop(unescape(key), None)
                    deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
                    return Answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())
        return refusal(501, "NotImplemented")

    def _put(self, request: Request) -> Answer:
        if request.headers.get("if-none-match") == "*" and request.key in self.objects:
            return refusal(412, "PreconditionFailed")
        self.objects[request.key] = request.body
        return Answer(200, headers=_about(request.body))

    def _list(self, asked: Mapping[str, str]) -> Answer:
        prefix, cut = asked.get("prefix", ""), asked.get("delimiter", "")
        rows: dict[str, str] = {}
        for key in sorted(self.objects):
            if not key.startswith(prefix):
                continue
            head, found, _ = key[len(prefix) :].partition(cut) if cut else (key, "", "")
            if found:
                folder = prefix + head + cut
                rows[folder] = f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            else:
                rows[key] = (
                    f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size>"
                    f"<LastModified>2026-11-22T10:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
                )
        left = [name for name in rows if name > asked.get("continuation-token", "")]
        page, more = left[:PAGE], left[PAGE:]
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        listed = "".join(rows[name] for name in page)
        body = f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>{token}{listed}"
        return Answer(200, f"<ListBucketResult>{body}</ListBucketResult>".encode())


def forwarded(port: int) -> Serve:
    """Return what asks a real server on this machine."""

    def serve(request: Request) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_S)
        try:
            connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                connection.putheader(name, value)
            connection.endheaders(request.body or None)
            answer = connection.getresponse()
            body = answer.read()
            kept = {"etag", "last-modified", "content-type", "content-range", "accept-ranges"}
            kept |= {"content-length"} if request.method == "HEAD" else set()
            headers = {name: value for name, value in answer.getheaders() if name.lower() in kept}
            return Answer(answer.status, body, headers)
        finally:
            connection.close()

    return serve


def refusal(status: int, code: str) -> Answer:
    return Answer(status, f"<Error><Code>{code}</Code></Error>".encode())


def _about(data: bytes) -> dict[str, str]:
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return {"ETag": f'"{digest}"', "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT"}


def _query(request: Request) -> dict[str, list[str]]:
    return parse_qs(urlsplit(request.path).query, keep_blank_values=True)


def nothing(_: int, __: Request) -> Answer | None:
    """Watch a request, before or after it is done; whoever returns an answer answers instead."""
    return None


class S3Server:
    """A server whose every request can be watched, refused, or be somebody's last."""

    def __init__(self, behind: Serve, port: int, url: str) -> None:
        self.behind, self.port, self.url = behind, port, url
        self.requests: list[Request] = []
        self.before: Watch
        self.after: Watch
        self.before = self.after = nothing  # with the number of a request
        self._lock = threading.Lock()

    @property
    def env(self) -> dict[str, str]:
        return {**KEY, "AWS_ENDPOINT_URL": self.url}

    def serve(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            count = len(self.requests)
        if (answer := self.before(count, request)) is not None:
            return answer
        answer = self.behind(request)
        return self.after(count, request) or answer


@contextmanager
def serving(behind: Serve) -> Iterator[S3Server]:
    """Serve until the body ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, self.rfile.read(length))
            answer = server.serve(request)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if "content-length" not in map(str.lower, answer.headers):
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815  # as the library calls them

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # whoever asked was killed
                self.close_connection = True

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    with Quiet(("127.0.0.1", 0), Handler) as listening:
        port = listening.server_address[1]
        server = S3Server(behind, port, f"http://127.0.0.1:{port}")
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()
