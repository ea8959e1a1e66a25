"""Keys are planted wherever a real one may come by, and then looked for in every byte that is left behind."""

import asyncio
import html
import json
import os
import sys
from base64 import b64encode
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import orjson
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from asyncbench import read_attempts, read_trials
from asyncbench.cli import app
from asyncbench.errors import ConfigError
from tests.processes import HANG_S
from tests.providers.asking import CHAT, CHUNKS, EVENTS, MESSAGE
from tests.providers.raw_server import answering, events, raw_server, sending, stalling, stream_of
from tests.providers.workers.worker_processes import environment_of, memory_of, workers_of
from tests.sweep_files import problem_set

ROOT = Path(__file__).resolve().parent.parent
CLEAN = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
# Letters that every escaping changes, around words that none does.
IN_ENVIRONMENT = 'sk-PL4NTEDenvironment7f3a/Q+x=%41&y"<z>\\9'
IN_FILE = "sk-PL4NTEDfile09b1c2d3e/R+w=%42&v'<u>\\8"
OF_PROXY = "PL4NTEDproxypassword55"
OF_GATEWAY = 'PL4NTEDgateway66f00d/G+g=%43&z"<g>\\7'  # what a gateway asks for, in a header and in the query
BESIDE = "PL4NTEDbeside00112233"  # a variable that no model uses
SECRETS = (IN_ENVIRONMENT, IN_FILE, OF_PROXY, OF_GATEWAY, BESIDE)
WORDS = [secret.removeprefix("sk-").partition("/")[0] for secret in SECRETS]


def traces_in(data):
    """Return what of the secrets stands in some bytes: as it is, escaped, in base64, in hexadecimal."""
    if isinstance(data, str):
        data = data.encode()
    coded = [
        b64encode(b"." * before + secret.encode())[4:-4] for secret in SECRETS for before in range(3)
    ] + [secret.encode().hex().encode() for secret in SECRETS]
    return [form for form in (*(word.encode() for word in WORDS), *coded) if form in data]


def traces_in_folder(folder):
    """Return each file of a folder that holds a secret; what Parquet has packed is unpacked."""
    found = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes() + str(path).encode()
        if path.suffix == ".parquet":
            data += repr(pq.ParquetFile(path).read().to_pylist()).encode()
            data += repr(pq.read_schema(path).metadata).encode()
        if traces := traces_in(data):
            found[str(path.relative_to(folder))] = traces
    return found


# ── a server that repeats what it was told ───────────────────────────────────────────────────


def escaped(key):
    """Everything a server may make of a key that it shows."""
    twice = quote(quote(key, safe=""), safe="")
    forms = (key, quote(key, safe=""), html.escape(key), json.dumps(key), twice, html.escape(quote(key)))
    coded = (b64encode(f"{'.' * n}{key}".encode()).decode() for n in range(3))
    return " ".join([*forms, *coded, key.encode().hex(), f"Authorization: Bearer {key}"])


def headed(key):
    """Headers that repeat a key, where they can hold it."""
    return {"x_request_id": key, "request_id": key, "retry_after": key, "x_key": key, "server": key}


def good(key, wire):
    """A reply that holds the key wherever it holds words."""
    shown = escaped(key)
    if wire == "messages":
        return {**MESSAGE, "id": key, "model": key, "content": [{"type": "text", "text": shown}]} | {
            "usage": {**MESSAGE["usage"], "service_tier": key, key: {"said": [shown]}},
        }
    message = {"role": "assistant", "content": shown, "reasoning_content": shown}
    choice = {"index": 0, "message": message, "finish_reason": key}
    told = {"id": key, "model": key, "system_fingerprint": key, "provider": key, "service_tier": key}
    return {**CHAT, **told, "choices": [choice], "usage": {**CHAT["usage"], key: {"said": [shown]}}}


def streamed(key, wire):
    if wire == "messages":
        return stream_of(events(*(one.replace(b'"4"', _json(escaped(key))) for one in EVENTS)))
    return stream_of(events(*(one.replace(b'"4"', _json(escaped(key))) for one in CHUNKS)))


def _json(text):
    return orjson.dumps(text)


def refusing(status, key, **headers):
    body = {"error": {"message": f"Bad: {escaped(key)}", "code": key, "type": key, "request_id": key}}
    return answering(status, body, **headed(key), **headers)


def page(key):
    return f"<html><head><title>{escaped(key)}</title></head><body>{escaped(key)}</body></html>".encode()


MANNERS = {
    "success": lambda key, wire: answering(
        200, good(key, wire), content_type="application/json", x_request_id=key
    ),
    "stream": lambda key, wire: sending(streamed(key, wire)),
    "unreadable-stream": lambda key, _: sending(
        stream_of(events(b"{" + key.encode()), headers=f"x-request-id: {key}\r\n".encode())
    ),
    "401": lambda key, _: refusing(401, key),
    "400": lambda key, _: refusing(400, key),
    "429": lambda key, _: refusing(429, key),
    "500": lambda key, _: refusing(500, key),
    "html": lambda key, _: answering(502, page(key), content_type="text/html", **headed(key)),
    "error-in-200": lambda key, _: refusing(200, key, content_type="application/json"),
    "not-json": lambda key, _: answering(200, page(key), content_type="application/json", **headed(key)),
    "redirect": lambda key, _: answering(
        307,
        page(key),
        location=f"https://me:{quote(key, safe='')}@host/v1/{quote(key)}?api_key={quote(key)}#{quote(key)}",
    ),
    "bad-location": lambda key, _: answering(307, b"", location=f"https://[{key}"),
    "false-gzip": lambda key, _: answering(200, page(key), content_encoding="gzip", **headed(key)),
    "bad-header": lambda key, _: sending(
        f"HTTP/1.1 200 OK\r\nbad {key}: {key}\r\n\r\n".encode(), then_close=True
    ),
    "bad-status": lambda key, _: sending(f"HTTP/1.1 {key} OK\r\n\r\n".encode(), then_close=True),
    "no-http": lambda key, _: sending(key.encode() + b"\r\n\r\n", then_close=True),
    "stall": lambda _, __: stalling(),
}
WAYS = {"http": "chat", "openai": "chat", "anthropic": "messages"}  # adapter → wire format


def key_in(received):
    """What a request brings: a gateway's word, or else the key."""
    if told := received.headers.get("x-gateway") or parse_qs(urlsplit(received.path).query).get("gateway"):
        return told if isinstance(told, str) else told[0]
    bearer = received.headers.get("authorization", "").removeprefix("Bearer ")
    return received.headers.get("x-api-key") or bearer


@asynccontextmanager
async def repeating():
    """A server that repeats the key it is given, in the manner that the model's name says."""
    async with raw_server() as server:

        async def manner(writer):
            received = server.received[-1]
            key, name = key_in(received), str(received.body["model"])
            wire = "messages" if "/messages" in received.path else "chat"
            await MANNERS[name](key, wire)(writer)

        server.manner = manner
        yield server


def model(server, adapter, manner, *, key_env):
    base = server.url if adapter == "anthropic" else f"{server.url}/v1"
    return {
        "model": f"{adapter}/{manner}",
        "alias": f"{adapter}-{manner}-{key_env}".lower(),
        "base_url": base,
        "key_env": key_env,
        "stream": "stream" in manner,
        "temperature": 1 if key_env == "FROM_FILE" else 0,  # or two entries would ask the same
        "concurrency": 2,
        "max_tokens": 64,
        "retry": {"attempts": 1},
        "timeouts": {"total": 60},
    }


# A vendor's own variable, and one whose name does not say that it holds a key.
ENVIRONMENT = {
    "OPENAI_API_KEY": IN_ENVIRONMENT,
    "MY_VENDOR": IN_ENVIRONMENT,
    "OTHER_API_KEY": BESIDE,
    "OF_GATEWAY": OF_GATEWAY,
    "OPENAI_LOG": "debug",
    "ANTHROPIC_LOG": "debug",
}


async def begun(*words, env=None, code=("-m", "asyncbench"), said=asyncio.subprocess.DEVNULL):
    """Begin a command in a process of its own; what it says on standard error is read by the caller."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *code,
        *map(str, words),
        env=CLEAN | ENVIRONMENT | (env or {}),
        cwd=ROOT,
        stdout=said,
        stderr=asyncio.subprocess.STDOUT if said == asyncio.subprocess.PIPE else asyncio.subprocess.PIPE,
    )


async def told_by(*words, **keywords):
    """Run a command in a process of its own; return its exit code and all it printed."""
    process = await begun(*words, **keywords, said=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return process.returncode, output.decode()


def written(folder, *models):
    """A sweep file, and a file of keys."""
    problems = problem_set(folder, trials=1)
    content = {
        "name": "night",
        "problems": [str(problems)],
        "models": list(models),
        "out": str(folder / "out"),
    }
    (folder / "sweep.yaml").write_text(yaml.safe_dump(content))
    (folder / "keys.env").write_text(f"# keys\nexport FROM_FILE={IN_FILE}\n")
    return folder / "sweep.yaml", folder / "keys.env"


# ── what a night leaves behind ───────────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize(
    ("workers", "gateway"),
    [
        (0, {}),
        (2, {}),
        (0, {"headers": {"X-Gateway": "OF_GATEWAY"}}),
        (2, {"query": {"gateway": "OF_GATEWAY"}}),
    ],
    ids=["key", "key-of-workers", "header", "query-of-workers"],
)
async def test_no_key_is_left_in_a_folder_nor_in_anything_that_is_printed(tmp_path, workers, gateway):
    async with repeating() as server:
        asked = [
            model(server, adapter, manner, key_env=("MY_VENDOR", "FROM_FILE")[i % 2]) | gateway
            for adapter in WAYS
            for i, manner in enumerate(MANNERS)
            if manner != "stall"
        ]
        sweep_file, keys = written(tmp_path, *asked)
        out = tmp_path / "out"
        options = ("--limit", 1, "--env-file", keys, "--workers", workers)
        code, told = await told_by("run", sweep_file, *options, env={"PYTHONASYNCIODEBUG": "1"})
        brought = {OF_GATEWAY} if gateway else {IN_ENVIRONMENT, IN_FILE}
        assert {key_in(one) for one in server.received} == brought, told  # they were sent

    assert code == 3
    assert traces_in(told) == []
    assert traces_in_folder(out) == {}
    messages = {row["error_message"] for row in read_trials(out).to_pylist() if row["error_message"]}
    assert any("[key]" in message for message in messages)  # they were repeated
    calls = read_attempts(out).to_pylist()
    assert {row["status"] for row in calls} >= {"ok", "auth", "rate_limited"}
    assert {row["status"] for row in calls if row["error"] is None} == {"ok"}
    assert {adapter_of(row) for row in calls if "[key]" in (row["error"] or "")} == set(WAYS)
    answers = [row for row in read_trials(out).to_pylist() if row["reply_text"]]
    assert {adapter_of(row) for row in answers} == set(WAYS)
    assert all("[key]" in row["reply_text"] for row in answers)
    for words in (
        ["report"],
        ["report", "--json"],
        ["report", "--markdown"],
        ["status"],
        ["status", "--json"],
    ):
        assert traces_in(printed(words[0], out, *words[1:])) == []


def adapter_of(row):
    return row["model"].split("-")[0]


def printed(*words):
    """Return what a command of this process prints, its complaint included."""
    result = CliRunner().invoke(app, list(map(str, words)))
    assert isinstance(result.exception, ConfigError | SystemExit | None)
    return f"{result.output} {result.exception}"


@pytest.mark.long
async def test_no_key_is_in_the_journal_of_a_run_that_was_killed(tmp_path):
    async with repeating() as server:
        manners = ("success", "stream", "401", "500", "html", "redirect", "stall")
        asked = [model(server, "openai", manner, key_env="FROM_FILE") for manner in manners]
        sweep_file, keys = written(tmp_path, *asked)
        process = await begun("run", sweep_file, "--limit", "2", "--env-file", keys)
        journal = tmp_path / "out" / "journal"
        try:
            async with asyncio.timeout(HANG_S):
                while held_in(journal).count(b'{"trial"') < 6:  # noqa: ASYNC110  another process writes it
                    await asyncio.sleep(0.02)
        finally:
            process.kill()
            _, told = await process.communicate()

    held = held_in(journal)
    assert b"[key]" in held
    assert traces_in(held) == []
    assert traces_in(told) == []
    assert traces_in_folder(tmp_path / "out") == {}


def held_in(journal):
    return b"".join(path.read_bytes() for path in journal.glob("*.wal"))


@pytest.mark.long
async def test_a_worker_is_started_with_no_key_and_gets_those_of_its_own_models(tmp_path):
    async with repeating() as server:
        asked = [
            model(server, "openai", "stall", key_env="MY_VENDOR"),
            model(server, "openai", "stall", key_env="FROM_FILE"),
        ]
        sweep_file, keys = written(tmp_path, *asked)
        left_out = model(server, "openai", "stall", key_env="LEFT_OUT") | {"temperature": 0.5}
        left_out["headers"] = {"X-Gateway": "OF_GATEWAY"}
        content = yaml.safe_load(sweep_file.read_text())
        asked_aliases = ",".join(entry["alias"] for entry in content["models"])
        content["models"].append(left_out)
        sweep_file.write_text(yaml.safe_dump(content))
        options = ("--limit", "2", "--env-file", keys, "--workers", "2", "--models", asked_aliases)
        beside = {"HTTPS_PROXY": "http://127.0.0.1:9", "TOKEN_DIR": "x", "LEFT_OUT": "x"}
        process = await begun("run", sweep_file, *options, env=beside)
        try:
            async with asyncio.timeout(HANG_S):
                while len(server.received) < 4:  # noqa: ASYNC110  another process sends them
                    await asyncio.sleep(0.02)
            started = workers_of(process.pid)
            environments = {pid: environment_of(pid) for pid in started}
            held = {pid: {word for word in WORDS if word.encode() in memory_of(pid)} for pid in started}
        finally:
            process.kill()
            await process.communicate()

    assert len(started) == 2
    assert traces_in(" ".join(started.values())) == []
    for environment in environments.values():
        assert traces_in(repr(environment)) == []
        assert environment["HTTPS_PROXY"] == "http://127.0.0.1:9"
        assert {"TOKEN_DIR", "LEFT_OUT"}.isdisjoint(environment)
    assert sorted(map(sorted, held.values())) == [[WORDS[0]], [WORDS[1]]]


@pytest.mark.long
async def test_the_doctor_tells_no_key(tmp_path):
    async with repeating() as server:
        manners = {"http": "success", "openai": "401", "anthropic": "html"}
        asked = [model(server, *way, key_env="FROM_FILE") for way in manners.items()]
        sweep_file, keys = written(tmp_path, *asked)
        code, told = await told_by("doctor", sweep_file, "--env-file", keys, "--json")
    assert (code, traces_in(told)) == (3, [])
    assert "[key]" in told


BUG = """
import sys
from asyncbench import cli
from asyncbench.providers import error_kinds

def bug(*_, **__):
    raise RuntimeError("a bug of ours")

error_kinds.safe_line = error_kinds.kind_of = bug
cli.main()
"""


@pytest.mark.long
async def test_the_traceback_of_a_bug_tells_no_key(tmp_path):
    manners = {"http": "bad-header", "openai": "401", "anthropic": "401"}
    async with repeating() as server:
        asked = [model(server, *way, key_env="FROM_FILE") for way in manners.items()]
        sweep_file, keys = written(tmp_path, *asked)
        code, told = await told_by("run", sweep_file, "--limit", 1, "--env-file", keys, code=("-c", BUG))
    assert code == 3
    faults = (tmp_path / "out" / "faults.txt").read_text()
    assert faults.count("RuntimeError: a bug of ours") == len(manners)
    assert traces_in(faults) == []
    assert traces_in(told) == []
    assert traces_in_folder(tmp_path / "out") == {}


@pytest.mark.long
@pytest.mark.parametrize("manner", ["407", "gone"])
async def test_a_proxy_s_password_is_told_to_nobody(tmp_path, manner):
    async with raw_server() as proxy:

        async def repeat(writer):
            told = " ".join(proxy.received[-1].headers.values())
            await answering(407, told.encode(), proxy_authenticate="Basic")(writer)

        proxy.manner = repeat
        asked = model(proxy, "openai", "success", key_env="MY_VENDOR") | {
            "base_url": "http://models.invalid/v1"
        }
        sweep_file, _ = written(tmp_path, asked)
        place = proxy.url.removeprefix("http://") if manner == "407" else "127.0.0.1:1"
        through = {"HTTP_PROXY": f"http://me:{OF_PROXY}@{place}", "NO_PROXY": ""}
        code, told = await told_by("run", sweep_file, "--limit", 1, env=through)
        assert len(proxy.received) == (manner == "407")
    assert code == 3
    assert traces_in(told) == []
    assert traces_in_folder(tmp_path / "out") == {}


# ── what is refused before anything is asked ─────────────────────────────────────────────────


@pytest.mark.parametrize(
    "slip",
    [
        pytest.param({"base_url": f"https://me:{OF_PROXY}@host/v1"}, id="a-password-in-an-address"),
        pytest.param({"base_url": f"https://host/v1?api_key={quote(BESIDE)}"}, id="a-query"),
        pytest.param({"base_url": f"https://host/v1#{BESIDE}"}, id="a-fragment"),
        pytest.param({"key_env": BESIDE}, id="a-key-for-its-name"),
        pytest.param({"api_key": BESIDE}, id="a-key-of-no-such-name"),
        pytest.param({"headers": {"Authorization": BESIDE}}, id="a-header"),
    ],
)
def test_a_secret_in_a_sweep_file_is_refused_and_not_repeated(tmp_path, slip):
    sweep_file, _ = written(tmp_path, {"model": "openai/gpt-5-mini", **slip})
    for command in ("plan", "run", "doctor"):
        told = printed(command, sweep_file)
        assert str(sweep_file) in told
        assert traces_in(told) == []
    assert not (tmp_path / "out").exists()


def test_a_sweep_file_that_is_no_yaml_is_refused_and_not_repeated(tmp_path):
    (tmp_path / "sweep.yaml").write_text(f"name: night\nmodels: [{{api_key: '{BESIDE}, model: 3}}]\n")
    told = printed("plan", tmp_path / "sweep.yaml")
    assert "cannot be read as YAML" in told
    assert "line " in told
    assert traces_in(told) == []


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(IN_FILE.encode(), id="a-key-alone"),
        pytest.param(f"FROM FILE: {IN_FILE}".encode(), id="no-name"),
        pytest.param(f"FROM_FILE={IN_FILE}\n".encode() + b"\xff\xfe", id="not-utf-8"),
        pytest.param(f"FROM_FILE={IN_FILE} {BESIDE}".encode(), id="two-words"),
    ],
)
def test_a_file_of_keys_that_is_none_is_refused_and_not_repeated(tmp_path, content):
    asked = {"model": "openai/m", "base_url": "http://127.0.0.1:1/v1", "key_env": "FROM_FILE"}
    sweep_file, keys = written(tmp_path, asked)
    keys.write_bytes(content)
    told = printed("run", sweep_file, "--env-file", keys)
    assert "keys.env" in told or "API key" in told
    assert traces_in(told) == []
