"""What the body of a refusal says, whatever its shape: it is read without ever failing."""

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from asyncbench.providers.loose_json import UnreadableError, items, mapping_in, read, text


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """The facts of a refusal, as far as it gives them."""

    text: str  # for a person
    codes: tuple[str, ...] = ()  # in lower case, the most telling first
    status: int | None = None  # an HTTP status in the place of a code
    retry_delay: str | None = None  # such as "34s": Google's RetryInfo
    request_id: str | None = None


_MESSAGES: Final = ("message", "msg", "detail", "error", "error_description", "title")
_CODES: Final = ("code", "type", "status", "error")
_READ: Final = 2**16  # bytes of what is no JSON; what matters stands at the beginning
_TAG: Final = re.compile(r"<[^<>]*>")


def read_error(body: bytes) -> ErrorBody:
    """Read a body: an error in JSON of many shapes, a stream of events, HTML, plain text, nothing."""
    written = body[:_READ].decode("utf-8", "replace")
    found = _json(body)
    error = _innermost(found)
    told = next((words for name in _MESSAGES if (words := text(error.get(name)))), None)
    whole = mapping_in(found)
    ids = (whole.get("request_id"), error.get("request_id"), whole.get("id"))
    return ErrorBody(
        text=told or text(found) or _TAG.sub(" ", written),
        codes=_codes(error),
        status=_status(error.get("code")) or _status(error.get("status")),
        retry_delay=_retry_delay(error),
        request_id=next(filter(None, map(text, ids)), None),
    )


def _json(body: bytes) -> object:
    """Return the JSON of the body, or of the first event of a stream that holds an object."""
    events = (line[5:] for line in body[:_READ].splitlines() if line.startswith(b"data:"))
    for candidate in (body, *events):
        with suppress(UnreadableError):
            found = read(candidate, [])
            if isinstance(found, dict | list | str):
                return found
    return None


def _innermost(found: object) -> dict[str, object]:
    """Return the object that describes the error: {"error": {…}}, {"detail": […]}, [{"error": {…}}]."""
    while True:
        here = mapping_in(found)
        within = (
            items(found)[:1] or here.get("error") or (here.get("detail") if "message" not in here else None)
        )
        if isinstance(within, list) and within:
            within = within[0]
        if not isinstance(within, dict | list):
            return here
        found = within


def _codes(error: dict[str, object]) -> tuple[str, ...]:
    details, inner = mapping_in(error.get("details")), mapping_in(error.get("innererror"))
    given = [details.get("error_code"), inner.get("code"), *(error.get(name) for name in _CODES)]
    return tuple(code.lower() for value in given if (code := text(value)))


def _status(code: object) -> int | None:
    """Return a code that is an HTTP status in truth, such as 402 or "429"."""
    if isinstance(code, str) and re.fullmatch(r"[45]\d\d", code, re.ASCII):
        return int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else None


def _retry_delay(error: dict[str, object]) -> str | None:
    delays = (text(mapping_in(detail).get("retryDelay")) for detail in items(error.get("details")))
    return next((delay for delay in delays if delay), None)
