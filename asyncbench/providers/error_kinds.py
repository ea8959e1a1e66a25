"""Meaning of a refusal: the body's own code decides, then its words, then the status.

A status means many things: a 429 may be a pause of a second or the end of the month's money. Sources:
the error types of the SDKs (openai 3.52, anthropic 2.11), bodies seen on vLLM, llama-server and litellm,
and the vendors' pages (OpenAI, Anthropic, Azure, DeepSeek, Google, Groq, OpenRouter, xAI; 2026).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import orjson

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.error_bodies import ErrorBody, holds_error, only_tells, read_error
from asyncbench.providers.secrets import keyless_body, keyless_json, may_hold, withhold_secret
from asyncbench.providers.waits import retry_after_s, wait_in_words
from asyncbench.providers.wire import Response, UnreadableError, read

# Codes that mean the same under any status; they are compared without case and signs. A number stands behind
# the name of its field: `code` 1113 of Z.ai and bigmodel, `status_code` of MiniMax, `error_code` of Baidu.
# Of `SensitiveContentDetected.Violence` the family counts where the whole is not here. Sources: the pages on
# error codes of Ark (82379/1299023), Qianfan (WENXINWORKSHOP/Cm2y4d5ha, tlmyncueh), bigmodel (api-code),
# MiniMax (errorcode), Workers AI (platform/errors) and Huawei (tokenplan-maas-0013); Tencent's SDK
# (hunyuan/v20230901/errorcodes.py), new-api's types/error.go, and bodies in public issues (2026).
_CODES: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.NO_QUOTA: """
        insufficient_quota, insufficient_balance, billing_hard_limit_reached, billing_not_active,
        billing_error, budget_exceeded, enforced_spend_limit_reached, contract_spend_limit_reached,
        linked_organization_spend_limit_reached, linked_organization_billing_unavailable,
        user_profile_not_billable, user_profile_billing_not_authorized, billing_disabled, limit_of_0,
        exceeded_current_quota_error, insufficient_balance_error, insufficient_user_quota,
        pre_consume_token_quota_failed, insufficient_funds, insufficient_credit, insufficient_credits,
        not_enough_balance, credit_balance_exhausted, organization_spend_limit_exceeded,
        project_spend_limit_exceeded, organization_usage_limit_exceeded, token_quota_reached,
        payment_required, free_quota_exceeded, reject_no_credit, quote_exceeded,
        Arrearage, PrepaidBillOverdue, PostpaidBillOverdue, CommodityNotPurchased,
        AllocationQuota.FreeTierOnly, AccountOverdueError, OperationDenied.ServiceOverdue, SetLimitExceeded,
        ResourceInsufficient.ChargeResourceExhaust, FailedOperation.ResourcePackExhausted,
        FailedOperation.FreeResourcePackExhausted, FailedOperation.ServiceStop,
        FailedOperation.ServiceStopArrears, account_arrears, BILLING_INSUFFICIENT_BALANCE,
        QUOTA_USER_DAILY_FREE, ModelArts.81022,
        code 1113, code 1309, code 1310, code 3036, code 4006, code 30001, status_code 1008,
        error_code 17, error_code 19
    """,
    ErrorKind.AUTH: """
        invalid_api_key, account_deactivated, organization_on_hold, unsupported_country_region_territory,
        api_key_invalid, api_key_service_blocked, service_disabled, consumer_invalid, consumer_suspended,
        organization_restricted, organization_disabled, model_terms_required, model_permission_blocked_org,
        model_permission_blocked_project, access_terminated, AccessDenied.Unpurchased, Model.AccessDenied,
        InvalidAccountStatus, SubscriptionDisabled, ReadOnlyDisabledSubscription, InvalidSubscription,
        customer_verification_required, expired_key, key_model_access_denied, invalid_iam_token,
        OperationDenied.ServiceNotOpen, FailedOperation.ServiceNotActivated, FailedOperation.UserUnAuthError,
        FailedOperation.PartnerAccountUnSupport, UnsupportedOperation.NonWhitelistAccount,
        ModelArts.81019, ModelArts.81021, ModelArts.81023,
        code 1110, code 1111, code 1112, code 1121, code 1220, code 1311, code 90402,
        status_code 1004, status_code 2042, status_code 2049, status_code 2061,
        error_code 6, error_code 13, error_code 14, error_code 15, error_code 100, error_code 110,
        error_code 111
    """,
    ErrorKind.NO_SUCH_MODEL: """
        model_not_found, model_not_available, model_decommissioned, DeploymentNotFound, ModelNotOpen,
        InvalidParameterValue.Model, model_not_supported,
        code 1211, code 1221, code 1222, code 5007, code 20012, code 30003, error_code 3
    """,
    ErrorKind.TOO_LONG: """
        context_length_exceeded, exceed_context_size_error, string_above_max_length, request_too_large,
        request_body_too_large_after_decoding, tokens_too_long, characters_too_long, prompt_too_long,
        context_window_exceeded, code 1261, code 5021, error_code 336007, error_code 336103
    """,
    ErrorKind.BLOCKED: """
        content_filter, content_policy_violation, ResponsibleAIPolicyViolation, invalid_prompt,
        bio_policy, cyber_policy, misalignment_policy_violation, safety_check_failed,
        data_inspection_failed, SensitiveContentDetected, InputTextSensitiveContentDetected,
        OutputTextSensitiveContentDetected, InputTextRiskDetection, OutputTextRiskDetection,
        OperationDenied.TextIllegalDetected, sensitive_words_detected, prompt_blocked,
        unsafe_request, system_unsafe, user_setting_unsafe, content_unsafe,
        code 1301, status_code 1026, status_code 1027
    """,
    # Amazon Bedrock's exceptions, which come within streams, too.
    ErrorKind.TIMEOUT: "ModelTimeoutException, FailedOperation.EngineRequestTimeout, status_code 1001",
    ErrorKind.SERVER_ERROR: """
        InternalServerException, ModelErrorException, ModelStreamErrorException,
        FailedOperation.EngineServerError, code 1120, code 1230, code 1234, error_code 1,
        error_code 336000, status_code 1000, status_code 1013, status_code 1024, status_code 1033
    """,
    ErrorKind.REJECTED_PARAMETER: """
        unsupported_parameter, unsupported_value, unknown_parameter, extra_forbidden
    """,
    ErrorKind.BAD_REQUEST: """
        unknown_question, recorded_failure, error_code 336001, error_code 336002, error_code 336003,
        status_code 1042, status_code 2013
    """,  # the first two are our simulator's, under a 404
    ErrorKind.OVERLOADED: """
        overloaded, overloaded_error, engine_overloaded_error, ModelNotReadyException, model_not_ready,
        ServiceUnavailableException, ServerOverloaded, ModelLoadingError, NoCapacity,
        code 1305, code 1312, code 3040, error_code 2, error_code 336100
    """,
    ErrorKind.RATE_LIMITED: """
        ramp_limit_exceeded, ThrottlingException, ServiceQuotaExceededException, RequestLimitExceeded,
        LimitExceeded, FailedOperation.EngineServerLimitExceeded,
        code 1302, code 1303, code 1304, code 1308, code 1313, error_code 4, error_code 18,
        error_code 336501, error_code 336502,
        status_code 1002, status_code 1039, status_code 1041, status_code 2045, status_code 2056
    """,
}
_SIGNS: Final = re.compile(r"[^0-9a-z]")


def _plain(code: str) -> str:
    return _SIGNS.sub("", code.lower())


_BY_CODE: Final = {_plain(code): kind for kind, codes in _CODES.items() for code in codes.split(",")}

# What servers without telling codes say in words; each is believed under these statuses only (None: any).
_ACCOUNT: Final = r"(account|organi[sz]ation|workspace|subscription|project|team|api[ _-]?key|access token)"
_BY_WORDS: Final = tuple(
    (kind, None if statuses is None else frozenset(statuses), re.compile(pattern, re.IGNORECASE))
    for kind, statuses, pattern in (
        (
            ErrorKind.NO_QUOTA,
            None,
            r"credit balance|(insufficient|(not|n't)( have)? enough) .{0,20}(balance|credit|fund|quota)"
            r"|out of call volume quota"
            r"|(balance|quota|credits?) (is|are) (insufficient|not enough|exhausted|used up|depleted)"
            r"|spend(ing)? (limit|cap)|API usage limits|subscription quota|key limit exceeded"
            r"|included credits"
            r"|(doesn't|does not) have any credits|credits? (have |has )?(expired|run out|been exhausted)"
            r"|free (tier|allocation) .{0,40}(exhausted|used up|not available)|daily free allocation"
            r"|exhausted (its|your|the) .{0,20}(quota|credits?|balance)|monthly (usage )?limit reached"
            r"|recharge|payment (is )?(required|overdue)|past invoices|arrears|invalid_payment_instrument"
            r"|overdue balance|enable billing|quota exceeded for .{0,200}\blimit: 0\b"
            r"|trial key.{0,60}month|crossed .{0,40}budget|budget .{0,20}exceeded"
            r"|余额不足|(额度|余量|配额)(不足|已?用尽|已用完)|欠费|充值|购买资源包",
        ),
        (
            ErrorKind.AUTH,
            (400, 412),
            r"\b(incorrect|invalid|missing|no) api[ _-]?key|\bexpired key\b"
            r"|api[ _-]?key .{0,20}(invalid|not valid|expired|required)|location is not supported",
        ),
        (
            ErrorKind.NO_QUOTA,
            (403,),
            r"quota has been exhausted",
        ),
        (
            ErrorKind.AUTH,
            (400, 401, 403, 412),
            rf"\b{_ACCOUNT}\b.{{0,60}}\b(suspended|disabled|deactivated|restricted|terminated|banned|locked"
            r"|on hold|frozen|revoked)\b|\baccount .{0,40}(blocked|flagged)\b|in good standing"
            r"|\b(accept|agree to) .{0,40}\bterms\b|\bterms acceptance|令牌(已过期|状态不可用)|封禁|冻结",
        ),
        (
            ErrorKind.TOO_LONG,
            (400, 403, 413, 422, 500),
            r"(context|prompt|input|sequence) (length|window|size)s? .{0,80}"
            r"(exceed|longer|less than|at most|should be)"
            r"|(exceeds?|longer than|greater than|less than|maximum|max) .{0,40}"
            r"(context|prompt|model|input|sequence)('s)? ?(length|window|size|limit)"
            r"|\b(prompt|inputs?|request|messages?|context|conversation) (is |are )?too (long|large)\b"
            r"|too many (input |prompt )?tokens|input token count .{0,60}(exceeds|less than)"
            r"|\b(inputs?|prompt)\b`?.{0,60}\btokens?`? .{0,60}(must|cannot|can not|should) "
            r"(be (no more|less|<=|smaller)|exceed)|`inputs` must have less than|exceeded model token limit"
            r"|prompt_tokens .{0,30}must be less|max_(completion_)?tokens must be at least 1, got -"
            r"|range of input length|(输入|提示词|上下文|请求).{0,12}(过长|超长|超过.{0,12}(长度|限制))",
        ),
        (
            ErrorKind.TOO_LONG,
            (429,),  # more than a whole minute's tokens: no waiting helps (OpenAI, Groq)
            r"request too large for|tokens must be reduced",
        ),
        (
            ErrorKind.BLOCKED,
            (400, 403, 422, 451, 500),
            r"content (management )?policy|content filter|usage (policy|guidelines)"
            r"|safety (filter|system|policy)"
            r"|flagged|moderation|(sensitive|inappropriate|prohibited)[ _]?(content|information|words)"
            r"|content exists risk|considered high risk|(new|output)_sensitive"
            r"|敏感|违法违规|审核不通过|内容安全",
        ),
        (
            ErrorKind.NO_SUCH_MODEL,
            (400, 403, 422),
            r"\bmodel\b.{0,120}(not exist|not found)|\b(invalid|unknown|no such|not a valid) model\b"
            r"|\bmodel (is |has been )?(disabled|deprecated|decommissioned|retired)\b",
        ),
        (
            ErrorKind.OVERLOADED,
            (400, 429),
            r"\boverloaded\b|model is (cold|(currently )?loading|not ready)",
        ),
        (
            ErrorKind.SERVER_ERROR,
            (400,),
            r"\b(model|runner|engine|worker)\b.{0,40}\b(crashed|terminated|unloaded)\b|out of memory",
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
    407: ErrorKind.AUTH,  # a proxy on the way wants a name and a password
    408: ErrorKind.TIMEOUT,
    409: ErrorKind.SERVER_ERROR,  # a lock held too long: either SDK would try again
    410: ErrorKind.NO_SUCH_MODEL,  # retired
    412: ErrorKind.BAD_REQUEST,
    413: ErrorKind.TOO_LONG,
    422: ErrorKind.BAD_REQUEST,
    424: ErrorKind.SERVER_ERROR,  # what the server calls failed: Bedrock's model, TGI's generation
    425: ErrorKind.SERVER_ERROR,
    429: ErrorKind.RATE_LIMITED,
    431: ErrorKind.BAD_REQUEST,
    451: ErrorKind.BLOCKED,
    498: ErrorKind.OVERLOADED,  # Groq: no capacity left in this service tier
    499: ErrorKind.SERVER_ERROR,  # a gateway believes that we hung up
    501: ErrorKind.BAD_REQUEST,
    503: ErrorKind.OVERLOADED,
    504: ErrorKind.TIMEOUT,
    511: ErrorKind.AUTH,  # the login page of a network
    524: ErrorKind.TIMEOUT,  # Cloudflare: connected, and no answer in time
    529: ErrorKind.OVERLOADED,
}
_BY_HUNDRED: Final[Mapping[int, ErrorKind]] = {
    3: ErrorKind.NO_SUCH_MODEL,  # moved: the address is not that of an API
    4: ErrorKind.BAD_REQUEST,
    5: ErrorKind.SERVER_ERROR,
}

# Families of errors, for a 200 that holds one: there, no status is more precise.
_FAMILIES: Final[Mapping[str, ErrorKind]] = {
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
_BY_FAMILY: Final = {_plain(family): kind for family, kind in _FAMILIES.items()}


def kind_of(status: int, error: ErrorBody, *, wait_s: float | None) -> ErrorKind:
    """Decide what a refusal means.

    Args:
        status: of the response; below 300 it says nothing, for the body holds an error all the same.
        error: what the body says.
        wait_s: how long the provider asks to wait; None when it does not say.
    """
    statuses = [number for number in (error.status, status) if number and number >= 300]
    return (
        _first(_BY_CODE, error.codes)
        or _kind_by_words(error.text[:_WORDS_READ], statuses, wait_s)
        or (BY_STATUS.get(statuses[0]) or _BY_HUNDRED.get(statuses[0] // 100) if statuses else None)
        or _first(_BY_FAMILY, error.codes)
        or ErrorKind.BAD_REPLY
    )


def _first(kinds: Mapping[str, ErrorKind], codes: tuple[str, ...]) -> ErrorKind | None:
    """Return the kind of the first code that is known, whole or by its family: what stands before a point."""
    families = (code.partition(".")[0] for code in codes if "." in code)
    return next((kinds[code] for code in map(_plain, (*codes, *families)) if code in kinds), None)


def _kind_by_words(words: str, statuses: list[int], wait_s: float | None) -> ErrorKind | None:
    # A budget that says when it fills again is a rate; a spent one (litellm) does not come back.
    if 429 in statuses and wait_s is None and "budget" in words.lower():
        return ErrorKind.NO_QUOTA
    for kind, believed, pattern in _BY_WORDS:
        if (not statuses or believed is None or not believed.isdisjoint(statuses)) and pattern.search(words):
            return kind
    return None


# ── Failed calls as `ProviderError`s

LONGEST_MESSAGE: Final = 500  # characters
_WAITED_FOR: Final = (ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED)
CUT_STREAM: Final = "the stream ended before its answer was complete"
_WEB_PAGE: Final = (
    "its body is a web page, not JSON. Check base_url. Or the login page of a network answers instead"
)


def refusal(response: Response, *, key: str) -> ProviderError:
    """Return the error that a response means. Never fails itself, whatever the response holds.

    Args:
        response: the status and headers are believed after the body.
        key: the API key, which the message must not repeat.
    """
    clean = replace(response, body=keyless_body(response.body, key=key))  # before codes are written small
    return _refusal(clean, lambda message: safe_line(message, key=key))


def stream_error(event: Mapping[str, object], response: Response) -> ProviderError:
    """Return the error that an answer holds: in the middle of a stream, or in place of one part.

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
    moved = ""
    if location := response.headers.get("location"):
        # Without what may let somebody in: a user's name, a query, a fragment.
        try:
            url = urlsplit(location)
            address = urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, "", ""))
        except ValueError:
            address = "an invalid address"
        moved = f" (moved to {address}: set base_url to the final address)"
    words = f": {error.text}" if error.text.strip() else ""
    kind = kind_of(response.status, error, wait_s=wait_s)
    if wait_s is None and kind in _WAITED_FOR:
        wait_s = wait_in_words(error.text[:_WORDS_READ])
    return ProviderError(
        kind,
        tell(f"HTTP {response.status}{code}{moved}{words}"),
        http_status=response.status,
        retry_after_s=wait_s,
        request_id=tell(response.request_id or error.request_id or "") or None,
        allowances=response.allowances or error.allowances,
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


def _foreign_reply(response: Response, why: str) -> ProviderError:
    error = bad_reply(response, why)
    error.foreign = True
    return error


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
    """Return the JSON object of a reply, from which the key is taken before anything else of it is read.

    Raises:
        ProviderError: `bad_reply` when it is none; else what its `error` means when it holds one, for some
            gateways answer 200 to a call that failed.
    """
    try:
        content = read(response.body, response.notes)
    except UnreadableError as error:
        page = response.body.lstrip().startswith(b"<")
        why = _WEB_PAGE if page else f"its body of {len(response.body):,} bytes is not JSON: {error}"
        raise _foreign_reply(response, why) from None
    if not isinstance(content, dict):
        raise _foreign_reply(response, "its body is not a JSON object")
    if holds_error(content) or only_tells(content):
        raise refusal(response, key=key)
    return keyless_json(content, key=key) if may_hold(response.body, key=key) else content


def safe_line(message: str, *, key: str) -> str:
    """Return a message in one line of bounded length, without the key and without control characters."""
    message = withhold_secret(message, key=key)  # before any cut, which could leave half of it
    message = message[: 4 * LONGEST_MESSAGE]
    if not message.isprintable():
        message = "".join([sign if sign.isprintable() else " " for sign in message])
    line = " ".join(message.split())
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 1]}…"


def withhold(error: ProviderError, *, key: str) -> None:
    """Take the key out of all that an error tells."""
    error.message = safe_line(error.message, key=key)
    error.args = (error.message,)
    error.request_id = safe_line(error.request_id or "", key=key) or None
