"""Bodies of refusals, of many shapes: their words, their codes, and their waits."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from asyncbench.errors import Allowance
from asyncbench.providers.quota_details import quota_details
from asyncbench.providers.waits import wait_in_fields
from asyncbench.providers.wire import UnreadableError, items, mapping_in, read, text


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """The facts of a refusal, as far as it gives them."""

    text: str  # for a person
    codes: tuple[str, ...] = ()  # in lower case, the most telling first
    status: int | None = None  # an HTTP status in the place of a code
    retry_delay: str | float | None = (
        None  # such as "34s": Google's RetryInfo; or seconds, of another's field
    )
    request_id: str | None = None
    allowances: tuple[Allowance, ...] = ()  # limits that the body tells


_MESSAGES: Final = (
    *("message", "msg", "detail", "error", "error_description", "title"),
    *("status_msg", "error_msg", "errmsg"),  # MiniMax, Baidu
)
_CODE_NAMES: Final = ("code", "type", "status", "error", "status_code", "error_code", "error_type")
# A whole body with one of them is an answer, whatever else it holds.
_OF_ANSWERS: Final = frozenset({"choices", "output", "content", "candidates", "id", "object", "data", "name"})
_NO_QUOTA_AT_ALL: Final = "limit_of_0"  # our word for it
_READ: Final = 2**16  # bytes of what is no JSON; what matters stands at the beginning
_TAG: Final = re.compile(r"<[^<>]*>")


def read_error(body: bytes) -> ErrorBody:
    """Read a body: an error in JSON of many shapes, a stream of events, HTML, plain text, nothing."""
    written = body[:_READ].decode("utf-8", "replace")
    content = _json(body)
    error = _innermost(content)
    message = next((words for name in _MESSAGES if (words := text(error.get(name)))), None)
    whole = mapping_in(content)
    details, inner = mapping_in(error.get("details")), mapping_in(error.get("innererror"))
    quota = quota_details(items(error.get("details")))
    none = _NO_QUOTA_AT_ALL if quota.none_at_all else None
    named_codes = (_named_code(name, error.get(name)) for name in _CODE_NAMES)
    codes = [none, details.get("error_code"), inner.get("code"), *quota.reasons, *named_codes]
    # A router says that its provider failed; what that one wrote stands beside it (OpenRouter).
    raw = text(mapping_in(error.get("metadata")).get("raw"))
    quotas = f"quota {', '.join(quota.quotas)}: " if quota.quotas else ""
    ids = (whole.get("request_id"), error.get("request_id"), whole.get("id"))
    return ErrorBody(
        text=quotas + (message or text(content) or _TAG.sub(" ", written)) + (f" ({raw})" if raw else ""),
        codes=tuple(code.lower() for value in codes if (code := text(value))),
        status=_status(error.get("code")) or _status(error.get("status")),
        retry_delay=quota.retry_delay or wait_in_fields(error, mapping_in(error.get("metadata")), whole),
        request_id=next(filter(None, map(text, ids)), None),
        allowances=quota.allowances,
    )


def _json(body: bytes) -> object:
    """Return the JSON of the body, or of the first event of a stream that holds an object."""
    events = (line[5:] for line in body[:_READ].splitlines() if line.startswith(b"data:"))
    for candidate in (body, *events):
        with suppress(UnreadableError):
            content = read(candidate, [])
            if isinstance(content, dict | list | str):
                return content
    return None


def _innermost(content: object) -> dict[str, object]:
    """Return the object that describes the error: {"error": {…}}, {"detail": […]}, [{"error": {…}}].

    MiniMax has it in `base_resp`, Cloudflare in `errors`, Mistral in `message`.
    """
    while True:
        here = mapping_in(content)
        detail = None if "message" in here else here.get("detail")
        inner = items(content)[:1] or here.get("error") or detail or _failed(here) or here.get("errors")
        inner = inner or mapping_in(here.get("message")) or None
        if isinstance(inner, list) and inner:
            inner = inner[0]
        if not isinstance(inner, dict | list):
            return here
        content = inner


def _failed(content: Mapping[str, object]) -> dict[str, object] | None:
    """Return MiniMax's `base_resp` of a failed call, also under status 200, or None."""
    base = mapping_in(content.get("base_resp"))
    return base if base.get("status_code") else None


def holds_error(content: Mapping[str, object]) -> bool:
    """Whether a body, or an event of a stream, tells that the call failed, whatever its status says.

    Older servers of vLLM write `{"object": "error", "message": …}`, FastAPI `{"detail": …}`, gateways a code.
    """
    failed = content.get("success") is False or content.get("object") == "error" or _failed(content)
    if failed or content.get("error") or content.get("error_code"):
        return True
    if not _OF_ANSWERS.isdisjoint(content):
        return False
    # A code of words, or a number that says neither success nor nothing.
    code = content.get("code")
    refuses = bool(code) and str(code).lower() not in ("0", "200", "ok", "success")
    return refuses or bool(content.get("detail") or content.get("errors"))


def only_tells(content: Mapping[str, object]) -> bool:
    """Whether a whole body holds a message or a code, and nothing that could be an answer."""
    return _OF_ANSWERS.isdisjoint(content) and any(content.get(name) for name in (*_MESSAGES, "code"))


def _named_code(name: str, code: object) -> str | None:
    """Return a code as `_CODES` has it: a number means something by its field alone, such as `code 1113`."""
    written = str(code) if type(code) is int else text(code)
    if written is None or _status(code):
        return written if isinstance(code, str) else None
    return f"{name} {written}" if written.isdecimal() else written


def _status(code: object) -> int | None:
    """Return a code that is an HTTP status in truth, such as 402 or "429"."""
    if isinstance(code, str) and re.fullmatch(r"[45]\d\d", code, re.ASCII):
        return int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else None
