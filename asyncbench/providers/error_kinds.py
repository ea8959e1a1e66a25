"""What a refusal means: the body's own code decides, then its words, then the status.

A status means many things: a 429 may be a pause of a second or the end of the month's money. Sources:
the error types of the SDKs (openai 3.52, anthropic 2.11), bodies seen on vLLM, llama-server and litellm,
and the vendors' pages (OpenAI, Anthropic, Azure, DeepSeek, Google, Groq, OpenRouter, xAI; 2026).
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from asyncbench.errors import ErrorKind
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
_CODE_NAMES: Final = ("code", "type", "status", "error")
_READ: Final = 2**16  # bytes of what is no JSON; what matters stands at the beginning
_TAG: Final = re.compile(r"<[^<>]*>")


def read_error(body: bytes) -> ErrorBody:
    """Read a body: an error in JSON of many shapes, a stream of events, HTML, plain text, nothing."""
    written = body[:_READ].decode("utf-8", "replace")
    found = _json(body)
    error = _innermost(found)
    told = next((words for name in _MESSAGES if (words := text(error.get(name)))), None)
    whole = mapping_in(found)
    details, inner = mapping_in(error.get("details")), mapping_in(error.get("innererror"))
    given = [details.get("error_code"), inner.get("code"), *(error.get(name) for name in _CODE_NAMES)]
    delays = (text(mapping_in(detail).get("retryDelay")) for detail in items(error.get("details")))
    ids = (whole.get("request_id"), error.get("request_id"), whole.get("id"))
    return ErrorBody(
        text=told or text(found) or _TAG.sub(" ", written),
        codes=tuple(code.lower() for value in given if (code := text(value))),
        status=_status(error.get("code")) or _status(error.get("status")),
        retry_delay=next(filter(None, delays), None),
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


def _status(code: object) -> int | None:
    """Return a code that is an HTTP status in truth, such as 402 or "429"."""
    if isinstance(code, str) and re.fullmatch(r"[45]\d\d", code, re.ASCII):
        return int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else None


# Codes that mean the same under any status.
_CODES: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.NO_QUOTA: """
        insufficient_quota insufficient_balance billing_hard_limit_reached billing_not_active billing_error
        budget_exceeded enforced_spend_limit_reached contract_spend_limit_reached
        linked_organization_spend_limit_reached linked_organization_billing_unavailable
        user_profile_not_billable user_profile_billing_not_authorized
    """,
    ErrorKind.AUTH: """
        invalid_api_key account_deactivated organization_on_hold unsupported_country_region_territory
    """,
    ErrorKind.NO_SUCH_MODEL: "model_not_found model_not_available model_decommissioned deploymentnotfound",
    ErrorKind.TOO_LONG: """
        context_length_exceeded exceed_context_size_error string_above_max_length request_too_large
        request_body_too_large_after_decoding
    """,
    ErrorKind.BLOCKED: """
        content_filter content_policy_violation responsibleaipolicyviolation invalid_prompt
        data_inspection_failed
    """,
    ErrorKind.REJECTED_PARAMETER: """
        unsupported_parameter unsupported_value unknown_parameter extra_forbidden
    """,
    ErrorKind.BAD_REQUEST: "unknown_question recorded_failure",  # our simulator, under a 404
    ErrorKind.OVERLOADED: "overloaded overloaded_error",
    ErrorKind.RATE_LIMITED: "ramp_limit_exceeded",
}
_BY_CODE: Final = {code: kind for kind, codes in _CODES.items() for code in codes.split()}

# What servers without telling codes say in words; each is believed under these statuses only.
_BY_WORDS: Final = tuple(
    (kind, frozenset(statuses), re.compile(pattern, re.IGNORECASE))
    for kind, statuses, pattern in (
        (
            ErrorKind.NO_QUOTA,
            (400, 402, 403, 429),
            r"credit balance|insufficient (balance|credit|fund|quota)|spend(ing)? limit|API usage limits"
            r"|crossed .{0,40}budget|budget .{0,20}exceeded",
        ),
        (
            ErrorKind.AUTH,
            (400,),
            r"\b(incorrect|invalid|missing|no) api[ _-]?key"
            r"|api[ _-]?key .{0,20}(invalid|not valid|expired|required)",
        ),
        (
            ErrorKind.TOO_LONG,
            (400, 422),
            r"context (length|window|size)|(prompt|input) is too long|too many (input |prompt )?tokens",
        ),
        (
            ErrorKind.BLOCKED,
            (400, 403),
            r"content (management )?policy|content filter|usage policy|safety (filter|system)"
            r"|flagged|moderation",
        ),
        (
            ErrorKind.NO_SUCH_MODEL,
            (400, 403, 422),
            r"\bmodel\b.{0,120}(not exist|not found)|\b(invalid|unknown|no such|not a valid) model\b",
        ),
    )
)
_WORDS_READ: Final = 2000  # characters; what matters stands at the beginning

BY_STATUS: Final[Mapping[int, ErrorKind]] = {
    400: ErrorKind.BAD_REQUEST,
    401: ErrorKind.AUTH,
    402: ErrorKind.NO_QUOTA,
    403: ErrorKind.AUTH,  # region, permission; blocked content is known by its code or words
    404: ErrorKind.NO_SUCH_MODEL,  # nothing of that name at that address: no trial of the lane can succeed
    405: ErrorKind.NO_SUCH_MODEL,  # the address of something else
    408: ErrorKind.TIMEOUT,
    409: ErrorKind.SERVER_ERROR,  # a lock held too long: either SDK would try again
    410: ErrorKind.NO_SUCH_MODEL,  # retired
    412: ErrorKind.BAD_REQUEST,
    413: ErrorKind.TOO_LONG,
    422: ErrorKind.BAD_REQUEST,
    425: ErrorKind.SERVER_ERROR,
    429: ErrorKind.RATE_LIMITED,
    431: ErrorKind.BAD_REQUEST,
    498: ErrorKind.OVERLOADED,  # Groq: no capacity left in this service tier
    499: ErrorKind.SERVER_ERROR,  # a gateway believes that we hung up
    501: ErrorKind.BAD_REQUEST,
    503: ErrorKind.OVERLOADED,
    504: ErrorKind.TIMEOUT,
    524: ErrorKind.TIMEOUT,  # Cloudflare: connected, and no answer in time
    529: ErrorKind.OVERLOADED,
}
_BY_HUNDRED: Final[Mapping[int, ErrorKind]] = {
    3: ErrorKind.NO_SUCH_MODEL,  # moved: the address is not that of an API
    4: ErrorKind.BAD_REQUEST,
    5: ErrorKind.SERVER_ERROR,
}

# Families of errors, for a 200 that holds one: there, no status is more precise.
_BY_FAMILY: Final[Mapping[str, ErrorKind]] = {
    "invalid_request_error": ErrorKind.BAD_REQUEST,
    "authentication_error": ErrorKind.AUTH,
    "permission_error": ErrorKind.AUTH,
    "not_found_error": ErrorKind.NO_SUCH_MODEL,
    "rate_limit_error": ErrorKind.RATE_LIMITED,
    "rate_limit_exceeded": ErrorKind.RATE_LIMITED,
    "timeout_error": ErrorKind.TIMEOUT,
    "api_error": ErrorKind.SERVER_ERROR,
    "server_error": ErrorKind.SERVER_ERROR,
    "internal_server_error": ErrorKind.SERVER_ERROR,
}


def kind_of(status: int, error: ErrorBody, *, wait_s: float | None) -> ErrorKind:
    """Decide what a refusal means.

    Args:
        status: of the response; below 300 it says nothing, for the body holds an error all the same.
        error: what the body says.
        wait_s: how long the provider asks to wait; None when it does not say.
    """
    statuses = [known for known in (error.status, status) if known and known >= 300]
    return (
        _first(_BY_CODE, error.codes)
        or _by_words(error.text[:_WORDS_READ], statuses, wait_s)
        or (BY_STATUS.get(statuses[0]) or _BY_HUNDRED.get(statuses[0] // 100) if statuses else None)
        or _first(_BY_FAMILY, error.codes)
        or ErrorKind.BAD_REPLY
    )


def _first(kinds: Mapping[str, ErrorKind], codes: tuple[str, ...]) -> ErrorKind | None:
    return next((kinds[code] for code in codes if code in kinds), None)


def _by_words(words: str, statuses: list[int], wait_s: float | None) -> ErrorKind | None:
    # A budget that says when it fills again is a rate; a spent one (litellm) does not come back.
    if 429 in statuses and wait_s is None and "budget" in words.lower():
        return ErrorKind.NO_QUOTA
    for kind, believed, pattern in _BY_WORDS:
        if (not statuses or not believed.isdisjoint(statuses)) and pattern.search(words):
            return kind
    return None
