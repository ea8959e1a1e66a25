"""Doors of clouds on the loopback interface, before a simulator that answers: who is let in, in which form.

Credentials are given out as each cloud gives them to a machine of its own: AWS's container endpoint, Google's
token endpoint for a service account, Azure's managed identity. Signatures are computed again with botocore's
own signer; tokens must be known, and not revoked. Refusals are word for word those that AWS, Google and
Microsoft give (their documentation, and reports of them; 2026). What is answered is counted.
"""

import asyncio
import json
import struct
import threading
import zlib
from base64 import b64encode
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.processes import HANG_S

REGION, PROJECT = "us-east-1", "quiet-moon-7"
OUR_KEY = "key-of-ours-PL4NTED"  # at OpenAI's, Anthropic's and Google's own doors
LENT_BY = "ask-for-PL4NTED-roles"  # what a container shows to be given its role
UNKNOWN_AT_AWS = "The security token included in the request is invalid."
EXPIRED = "The security token included in the request is expired"
BAD_SIGNATURE = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
    "Access Key and signing method. Consult the service documentation for details."
)
MINUTE = "Too many tokens, please wait before trying again."
DAY = "Too many tokens per day, please wait before trying again."
UNKNOWN_AT_GOOGLE = (
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
    "valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
)
GOOGLE_QUOTA = (
    "Quota exceeded for aiplatform.googleapis.com/online_prediction_input_tokens_per_minute_per_base_model "
    "with base model: anthropic-claude-opus-4. Please submit a quota increase request. "
    "https://cloud.google.com/vertex-ai/docs/generative-ai/quotas-genai."
)
UNKNOWN_AT_AZURE = (
    "Unauthorized. Access token is missing, invalid, audience is incorrect "
    "(https://cognitiveservices.azure.com), or have expired."
)


class Turned(Exception):  # noqa: N818  away
    """Somebody who is not let in, and what is said."""

    def __init__(self, status: int, body: object, **headers: str) -> None:
        self.answer = web.json_response(body, status=status, headers=headers)


def aws_error(status: int, name: str, message: str) -> Turned:
    kind = f"{name}:http://internal.amazon.com/coral/com.amazon.bedrock/"
    return Turned(
        status, {"message": message}, **{"x-amzn-ErrorType": kind, "x-amzn-RequestId": "ca47a5ce-e260"}
    )


def google_error(status: int, word: str, message: str) -> Turned:
    return Turned(status, {"error": {"code": status, "message": message, "status": word}})


@dataclass(slots=True)
class Count:
    """What went through one door."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True)
class Clouds:
    """The doors, and what a test may turn on them while they are open."""

    upstream: str  # a simulator, without /v1
    model: str = "noisy"  # what the simulator is asked for, whatever the door was
    url: str = ""
    lent: dict[str, str] = field(
        default_factory=dict
    )  # a session's token or a bearer token → AWS's secret key
    revoked: set[str] = field(default_factory=set)
    revokes_at: int | None = None  # how many calls came when all that was lent ends
    lives_s: int = 3600  # of what is lent from now on
    unable: bool = False  # whoever asks for credentials is told to come back
    counts: defaultdict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    refusals: deque[Turned] = field(default_factory=deque)  # for the next calls
    breaks: deque[tuple[str, str]] = field(
        default_factory=deque
    )  # exceptions in the middle of Bedrock's streams
    bodies: list[dict[str, Any]] = field(default_factory=list)

    def revoke_all(self) -> None:
        """End all that was lent, before its time."""
        self.revoked |= self.lent.keys()

    # ── credentials

    def _check_up(self) -> None:
        """Turn away who asks for credentials, where they cannot be given now."""
        if self.unable:
            raise Turned(503, {"error": "temporarily_unavailable"})

    def _lend(self, kind: str, secret: str = "") -> str:
        token = f"{kind}-PL4NTED-{len(self.lent):04}"
        self.lent[token] = secret
        return token

    async def aws(self, request: web.Request) -> web.Response:
        self._check_up()
        assert request.headers["authorization"] == LENT_BY
        secret = f"secret-PL4NTED-{len(self.lent):04}"
        ends = datetime.now(UTC) + timedelta(seconds=self.lives_s)
        given = {
            "AccessKeyId": "ASIAPL4NTED",
            "SecretAccessKey": secret,
            "Token": self._lend("session", secret),
        }
        return web.json_response({**given, "Expiration": f"{ends:%Y-%m-%dT%H:%M:%SZ}"})

    async def google(self, request: web.Request) -> web.Response:
        self._check_up()
        asked = await request.post()
        assert asked["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        token = self._lend("ya29.google")
        return web.json_response({"access_token": token, "expires_in": self.lives_s, "token_type": "Bearer"})

    async def entra(self, request: web.Request) -> web.Response:
        self._check_up()
        assert request.headers["x-identity-header"] == LENT_BY
        assert request.query["resource"] == "https://cognitiveservices.azure.com"
        ends = int(datetime.now(UTC).timestamp()) + self.lives_s
        given = {"access_token": self._lend("eyJ.entra"), "expires_on": str(ends), "token_type": "Bearer"}
        return web.json_response({**given, "resource": request.query["resource"]})

    # ── doors

    def _check_signature(self, request: web.Request, body: bytes) -> None:
        headers = request.headers
        token = headers.get("x-amz-security-token", "")
        if token not in self.lent:
            raise aws_error(403, "UnrecognizedClientException", UNKNOWN_AT_AWS)
        if token in self.revoked:
            raise aws_error(403, "ExpiredTokenException", EXPIRED)
        scheme, _, parts = headers["authorization"].partition(" ")
        said = dict(part.split("=", 1) for part in parts.split(", "))
        signed = {name: headers[name] for name in said["SignedHeaders"].split(";")}
        again = AWSRequest("POST", f"{self.url}{request.raw_path}", headers=signed, data=body)
        again.context["timestamp"] = headers["x-amz-date"]
        key, _, region, service, _ = said["Credential"].split("/")
        signer = SigV4Auth(Credentials(key, self.lent[token], token), service, region)
        signature = signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)
        right = (scheme, region, service) == ("AWS4-HMAC-SHA256", REGION, "bedrock")
        if not right or signature != said["Signature"] or "x-amz-date" not in signed:
            raise aws_error(403, "InvalidSignatureException", BAD_SIGNATURE)

    def _knows(self, request: web.Request, kind: str) -> bool:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        return token.startswith(kind) and token in self.lent and token not in self.revoked

    async def bedrock(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self._check_signature(request, body)
        fields = {**json.loads(body), "stream": request.path.endswith("-stream")}
        assert "model" not in fields or fields["model"] is None
        return await self._answer("bedrock", request, fields, "v1/messages", framed=True)

    async def vertex(self, request: web.Request) -> web.StreamResponse:
        if not self._knows(request, "ya29."):
            raise google_error(401, "UNAUTHENTICATED", UNKNOWN_AT_GOOGLE)
        assert request.match_info["project"] == PROJECT
        fields = await request.json()
        assert "model" not in fields
        return await self._answer("vertex", request, fields, "v1/messages")

    async def azure(self, request: web.Request) -> web.StreamResponse:
        if not self._knows(request, "eyJ."):
            raise Turned(401, {"statusCode": 401, "message": UNKNOWN_AT_AZURE})
        return await self._answer("azure", request, await request.json(), "v1/chat/completions")

    async def plain(self, request: web.Request) -> web.StreamResponse:
        """OpenAI's and Anthropic's own doors, with a key each."""
        door = "anthropic" if request.path.endswith("messages") else "openai"
        assert OUR_KEY in (request.headers.get("x-api-key") or request.headers["authorization"])
        return await self._answer(door, request, await request.json(), request.path.removeprefix("/plain/"))

    async def gemini(self, request: web.Request) -> web.StreamResponse:
        """Google's own door, in the form of its `generateContent`."""
        assert request.headers["x-goog-api-key"] == OUR_KEY
        fields = await request.json()
        messages = [{"role": "user", "content": turn["parts"][0]["text"]} for turn in fields["contents"]]
        most = fields["generationConfig"]["maxOutputTokens"]
        asked = {"messages": messages, "max_completion_tokens": most}
        told = await self._answer("gemini", request, asked, "v1/chat/completions")
        assert isinstance(told, web.Response)
        body = json.loads(told.body)  # type: ignore[arg-type]  # bytes
        usage = body["usage"]
        said = {"parts": [{"text": body["choices"][0]["message"]["content"]}]}
        part = {"content": said, "finishReason": "STOP"}
        names = {"promptTokenCount": "prompt", "candidatesTokenCount": "completion"}
        counts = {name: usage[f"{side}_tokens"] for name, side in names.items()}
        return web.json_response(
            {"candidates": [part], "modelVersion": "gemini-2.5-flash", "responseId": "r"}
            | {"usageMetadata": counts | {"totalTokenCount": usage["total_tokens"]}}
        )

    async def _answer(
        self, door: str, request: web.Request, fields: dict[str, Any], path: str, *, framed: bool = False
    ) -> web.StreamResponse:
        self.bodies.append(fields)
        if len(self.bodies) == self.revokes_at:
            self.revoke_all()
        if self.refusals:
            raise self.refusals.popleft()
        asked = {**fields, "model": self.model}
        version = {"anthropic-version": "2023-06-01"} if asked.pop("anthropic_version", None) else {}
        headers = {"authorization": "Bearer k", "x-api-key": "k", **version}
        async with self.session.post(f"{self.upstream}/{path}", json=asked, headers=headers) as told:
            if not fields.get("stream") or told.status != 200:
                body = await told.json()
                self._count(door, body.get("usage") or {})
                return web.json_response(body, status=told.status)
            return await self._stream(door, request, told, framed=framed)

    async def _stream(
        self, door: str, request: web.Request, told: aiohttp.ClientResponse, *, framed: bool
    ) -> web.StreamResponse:
        kind = "application/vnd.amazon.eventstream" if framed else "text/event-stream"
        answer = web.StreamResponse(headers={"content-type": kind})
        await answer.prepare(request)
        usage: dict[str, Any] = {}
        async for line in told.content:
            data = line.removeprefix(b"data: ").strip() if line.startswith(b"data: ") else b""
            if data.startswith(b"{"):
                event = json.loads(data)
                usage |= event.get("usage") or event.get("message", {}).get("usage") or {}
            if not framed:
                await answer.write(line)
            elif data:
                if self.breaks and event["type"] == "content_block_delta":
                    name, message = self.breaks.popleft()
                    await answer.write(
                        frame({":message-type": "exception", ":exception-type": name}, {"message": message})
                    )
                    return answer
                chunk = {"bytes": b64encode(data).decode(), "p": "abcd"}
                await answer.write(frame({":message-type": "event", ":event-type": "chunk"}, chunk))
        self._count(door, usage)
        return answer

    def _count(self, door: str, usage: dict[str, Any]) -> None:
        count = self.counts[door]
        count.calls += 1
        count.input_tokens += usage.get("input_tokens", usage.get("prompt_tokens", 0))
        count.output_tokens += usage.get("output_tokens", usage.get("completion_tokens", 0))

    session: aiohttp.ClientSession = field(init=False)


@cache
def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kept = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, *kept).decode()


def machine(clouds: Clouds, folder: Path) -> dict[str, str]:
    """Return the variables of a machine to which each cloud lends credentials; write Google's file."""
    account = {"type": "service_account", "project_id": PROJECT, "private_key": _private_key()}
    account |= {"client_email": "me@here", "private_key_id": "1", "token_uri": f"{clouds.url}/google/token"}
    (folder / "account.json").write_text(json.dumps(account))
    return {
        "HOME": str(folder),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": REGION,
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{clouds.url}/aws/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": LENT_BY,
        "GOOGLE_APPLICATION_CREDENTIALS": str(folder / "account.json"),
        "IDENTITY_ENDPOINT": f"{clouds.url}/entra/token",
        "IDENTITY_HEADER": LENT_BY,
        "OUR_KEY": OUR_KEY,
    }


def frame(headers: dict[str, str], payload: object) -> bytes:
    """Return a frame of AWS's event streams: lengths, headers, payload, and two checksums."""
    written = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in {**headers, ":content-type": "application/json"}.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(written) + len(body), len(written))
    prelude += struct.pack(">I", zlib.crc32(prelude))
    whole = prelude + written + body
    return whole + struct.pack(">I", zlib.crc32(whole))


@web.middleware
async def _turning(request: web.Request, handler: Any) -> web.StreamResponse:
    try:
        answer: web.StreamResponse = await handler(request)
    except Turned as turned:
        return turned.answer
    return answer


def _application(clouds: Clouds) -> web.Application:
    app = web.Application(middlewares=[_turning], client_max_size=2**24)
    of_vertex = "/v1/projects/{project}/locations/{region}/publishers/anthropic/models/{model:.+}"
    app.add_routes(
        [
            web.get("/aws/credentials", clouds.aws),
            web.post("/google/token", clouds.google),
            web.get("/entra/token", clouds.entra),
            web.post("/model/{model:.+}/invoke", clouds.bedrock),
            web.post("/model/{model:.+}/invoke-with-response-stream", clouds.bedrock),
            web.post(of_vertex, clouds.vertex),
            web.post("/openai/v1/chat/completions", clouds.azure),
            web.post("/plain/v1beta/models/{model}:generateContent", clouds.gemini),
            web.post("/plain/{path:.+}", clouds.plain),
        ]
    )
    return app


@contextmanager
def clouds_before(upstream: str) -> Iterator[Clouds]:
    """Open the doors before a simulator, in a thread of their own."""
    clouds, loop, ready = Clouds(upstream), asyncio.new_event_loop(), threading.Event()

    async def serve(stop: asyncio.Event) -> None:
        async with aiohttp.ClientSession() as clouds.session:
            runner = web.AppRunner(_application(clouds), access_log=None)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            clouds.url = f"http://{host}:{port}"
            ready.set()
            await stop.wait()
            await runner.cleanup()

    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve(stop)))
    thread.start()
    assert ready.wait(HANG_S)
    try:
        yield clouds
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(HANG_S)
        loop.close()
