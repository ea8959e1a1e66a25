"""Failed calls as ProviderErrors, in one place for every adapter."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import orjson

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.error_kinds import kind_of, read_error
from asyncbench.providers.loose_json import UnreadableError, read
from asyncbench.providers.rate_headers import retry_after_s
from asyncbench.providers.secrets import without_secret
from asyncbench.providers.wire import Response

LONGEST_MESSAGE: Final = 500  # characters
CUT_STREAM: Final = "the stream ended before its answer was complete"


def refusal(response: Response, *, key: str) -> ProviderError:
    """Say what a response with an error means. Never fails itself, whatever the response holds.

    Args:
        response: the status and headers are believed after the body.
        key: the API key, which the message must not repeat.
    """
    return _refusal(response, lambda message: told(message, key=key))


def stream_error(event: Mapping[str, object], response: Response) -> ProviderError:
    """Say what an error within an answer means: in the middle of a stream, or in place of one part.

    The answer had begun: what it costs is unknown. The message is as the provider wrote it: for whoever knows
    the API key to `withhold`.
    """
    try:
        body = orjson.dumps(event)
    except orjson.JSONEncodeError:  # it nests deeper than can be written
        body = b""
    error = _refusal(replace(response, body=body), str)
    error.may_have_been_billed = True
    return error


def _refusal(response: Response, tell: Callable[[str], str]) -> ProviderError:
    error = read_error(response.body)
    wait_s = retry_after_s(response.headers, error.retry_delay)
    code = f" {error.codes[0]}" if error.codes else ""
    location = response.headers.get("location")
    moved = f" (moved to {_address(location)}: set base_url to the final address)" if location else ""
    return ProviderError(
        kind_of(response.status, error, wait_s=wait_s),
        tell(f"HTTP {response.status}{code}{moved}: {error.text}"),
        http_status=response.status,
        retry_after_s=wait_s,
        request_id=tell(response.request_id or error.request_id or "") or None,
        allowances=response.allowances,
    )


def bad_reply(response: Response, why: str, *, kind: ErrorKind = ErrorKind.BAD_REPLY) -> ProviderError:
    """Say why a reply that came, and may be billed, cannot be used."""
    return ProviderError(
        kind,
        f"HTTP {response.status}, but {why}",
        http_status=response.status,
        request_id=response.request_id,
        may_have_been_billed=True,
        allowances=response.allowances,
    )


def encoded(body: Mapping[str, object]) -> bytes:
    """Return a request's body as JSON.

    Raises:
        ProviderError: `bad_request` when a parameter cannot be written, such as a number beyond 64 bits.
    """
    try:
        # A copy: what orjson returns holds on to 4 KB, whatever its length, and it lives as long as the call.
        return bytes(memoryview(orjson.dumps(body)))
    except orjson.JSONEncodeError as error:
        raise ProviderError(
            ErrorKind.BAD_REQUEST, f"the request cannot be written as JSON: {error}"
        ) from error


def payload(response: Response, *, key: str) -> dict[str, object]:
    """Return the JSON object of a reply.

    Raises:
        ProviderError: `bad_reply` when it is none; else what its `error` means when it holds one, for some
            gateways answer 200 to a call that failed.
    """
    try:
        found = read(response.body, response.notes)
    except UnreadableError as error:
        why = f"its body of {len(response.body):,} bytes is not JSON: {error}"
        raise bad_reply(response, why) from None
    if not isinstance(found, dict):
        raise bad_reply(response, "its body is not a JSON object")
    if found.get("error"):
        raise refusal(response, key=key)
    return found


def told(message: str, *, key: str) -> str:
    """Return a message in one line of bounded length, without the key and without control characters."""
    message = without_secret(message, key=key)  # before any cut, which could leave half of it
    message = message[: 4 * LONGEST_MESSAGE]
    if not message.isprintable():
        message = "".join([sign if sign.isprintable() else " " for sign in message])
    line = " ".join(message.split())
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 1]}…"


def withhold(error: ProviderError, *, key: str) -> None:
    """Take the key out of all that an error tells."""
    error.message = told(error.message, key=key)
    error.args = (error.message,)
    error.request_id = told(error.request_id or "", key=key) or None


def _address(location: str) -> str:
    """Return an address without what may let somebody in: a user's name, a query, a fragment."""
    try:
        parts = urlsplit(location)
    except ValueError:
        return "an invalid address"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
