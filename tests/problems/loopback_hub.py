"""A Hub of datasets on the loopback interface: it answers what huggingface_hub asks to find and download."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote

ASKED = re.compile(r"/(api/)?datasets/([^/]+/[^/]+)(?:/(?:revision|resolve)/([^/]+)(?:/(.+))?)?")


@dataclass(kw_only=True)
class Dataset:
    """A dataset with its commits: branches lead to them."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)  # commit → file → content
    branches: dict[str, str] = field(default_factory=dict)
    gated: bool = False  # its files are for those who asked for access

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """Let a branch hold these files; return its commit."""
        commit = sha1(repr((len(self.commits), files)).encode(), usedforsecurity=False).hexdigest()
        self.commits[commit] = files
        self.branches[branch] = commit
        return commit


@dataclass(kw_only=True)
class Hub:
    """What a Hub holds, and what it was asked."""

    url: str
    datasets: dict[str, Dataset] = field(default_factory=dict)
    token: str | None = None  # the only one that it takes
    status: int | None = None  # with which it answers everything
    asked: list[str] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)

    def answer(self, path: str, sent: str | None) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the answer to a request, as the Hub gives them."""
        self.asked.append(path)
        self.tokens.add(sent)
        found = ASKED.fullmatch(path)
        if self.status is not None or found is None:
            return self.status or 404, {}, b""
        api, repo, revision, file = found.groups()
        dataset = self.datasets.get(repo)
        if sent is not None and sent != f"Bearer {self.token}":
            return 401, {"X-Error-Message": "Invalid credentials in Authorization header"}, b""
        if dataset is None:
            return (404 if sent else 401), {"X-Error-Code": "RepoNotFound"} if sent else {}, b""
        revision = unquote(revision or "main")
        commit = dataset.branches.get(revision, revision)
        if (files := dataset.commits.get(commit)) is None:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        if api:
            said = {"id": repo, "sha": commit, "siblings": [{"rfilename": name} for name in files]}
            return 200, {}, json.dumps(said).encode()
        if dataset.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b""
        if (content := files.get(unquote(file or ""))) is None:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
        etag = sha1(content, usedforsecurity=False).hexdigest()
        return 200, {"X-Repo-Commit": commit, "ETag": f'"{etag}"'}, content


@contextmanager
def loopback_hub() -> Iterator[Hub]:
    """Yield a Hub that answers until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = hub.answer(self.path, self.headers["Authorization"])
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  likewise

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub = Hub(url=f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
