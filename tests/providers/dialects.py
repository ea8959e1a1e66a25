"""Refusals of vendors, in their shapes and in words of our own. One more is one more line of `REFUSALS`."""

from typing import Any, Final, NamedTuple

from asyncbench.errors import ErrorKind


class Refusal(NamedTuple):
    """What a server answers, and what it means."""

    whose: str
    status: int
    body: Any  # Any: JSON
    kind: ErrorKind


def _error(message: str, type_: str | None = None, code: str | int | None = None) -> dict[str, object]:
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}


def _passed_on(status: int, raw: str) -> dict[str, object]:
    return {"error": {"message": "Provider returned error", "code": status, "metadata": {"raw": raw}}}


def _base(code: int, message: str) -> dict[str, object]:
    return {"id": "x", "choices": None, "base_resp": {"status_code": code, "status_msg": message}}


def _numbered(code: int, message: str) -> dict[str, object]:
    return {"errors": [{"code": code, "message": message}], "success": False, "result": {}}


NO_QUOTA, AUTH, BLOCKED, RATE = (
    ErrorKind.NO_QUOTA,
    ErrorKind.AUTH,
    ErrorKind.BLOCKED,
    ErrorKind.RATE_LIMITED,
)
TOO_LONG, NO_MODEL, BUSY, BROKEN, REQUEST = (
    ErrorKind.TOO_LONG,
    ErrorKind.NO_SUCH_MODEL,
    ErrorKind.OVERLOADED,
    ErrorKind.SERVER_ERROR,
    ErrorKind.BAD_REQUEST,
)
_GOOGLE_QUOTA: Final = _error("You exceeded your current quota. Check your plan and billing details.")
REFUSALS: Final = [
    # An account without money.
    Refusal("Moonshot", 429, _error("see your plan", "exceeded_current_quota_error"), NO_QUOTA),
    Refusal("Moonshot, words", 429, _error("The account is suspended: insufficient balance"), NO_QUOTA),
    Refusal("Z.ai 1113", 429, _error("Please pay first.", None, "1113"), NO_QUOTA),
    Refusal("bigmodel 1113", 429, _error("余额不足", None, "1113"), NO_QUOTA),
    Refusal("bigmodel, words alone", 429, _error("您的账户已欠费"), NO_QUOTA),
    Refusal("Z.ai 1309", 429, _error("The plan ended.", None, "1309"), NO_QUOTA),
    Refusal("Cohere, trial key", 429, {"message": "Trial key: 1000 calls / month are used."}, NO_QUOTA),
    Refusal("Fireworks", 412, _error("Account a is suspended: past invoices.", "error", "X"), NO_QUOTA),
    Refusal("DashScope", 400, _error("Access denied.", "Arrearage", "Arrearage"), NO_QUOTA),
    Refusal("DashScope, its own format", 400, {"code": "Arrearage", "message": "No."}, NO_QUOTA),
    Refusal("DashScope, free", 403, _error("No.", None, "AllocationQuota.FreeTierOnly"), NO_QUOTA),
    Refusal("DashScope, bill", 400, _error("No.", None, "PostpaidBillOverdue"), NO_QUOTA),
    Refusal("MiniMax 1008", 200, _base(1008, "no money"), NO_QUOTA),
    Refusal("MiniMax 500", 500, _error("insufficient balance (1008)", "api_error"), NO_QUOTA),
    Refusal("MiniMax 429", 429, _error("no (1008)", "insufficient_balance_error"), NO_QUOTA),
    Refusal("Ark", 403, _error("Settle it.", "Forbidden", "AccountOverdueError"), NO_QUOTA),
    Refusal("Ark, trial", 429, _error("Paused.", "TooManyRequests", "SetLimitExceeded"), NO_QUOTA),
    Refusal("Tencent", 400, _error("No.", None, "FailedOperation.ServiceStopArrears"), NO_QUOTA),
    Refusal("Tencent, pack", 400, _error("No.", None, "FailedOperation.ResourcePackExhausted"), NO_QUOTA),
    Refusal("Baidu 19", 200, {"error_code": 19, "error_msg": "Open api total limit"}, NO_QUOTA),
    Refusal("SiliconFlow", 403, {"code": 30001, "message": "Too little.", "data": None}, NO_QUOTA),
    Refusal("SiliconFlow, words", 403, {"message": "Your balance is insufficient"}, NO_QUOTA),
    Refusal("StepFun", 402, _error("quota", "quota_exceeded"), NO_QUOTA),
    Refusal("one-api, key", 403, _error("该令牌额度已用尽", "new_api_error"), NO_QUOTA),
    Refusal("one-api, key, 401", 401, _error("该令牌额度已用尽", "one_api_error"), NO_QUOTA),
    Refusal("one-api, user", 403, _error("no", "one_api_error", "insufficient_user_quota"), NO_QUOTA),
    Refusal("one-api, English", 403, _error("user quota is not enough (request id: 1)"), NO_QUOTA),
    Refusal("OpenRouter", 402, _error("More credits are needed.", None, 402), NO_QUOTA),
    Refusal("OpenRouter, key", 403, _error("Key limit exceeded (total).", None, 403), NO_QUOTA),
    Refusal("Together", 402, _error("Credit limit exceeded", "credit_limit"), NO_QUOTA),
    Refusal("DeepInfra", 402, {"detail": {"error": "Too low."}}, NO_QUOTA),
    Refusal("Novita", 403, {"code": 403, "reason": "x", "message": "not enough balance"}, NO_QUOTA),
    Refusal("Hugging Face", 402, {"error": "You used your monthly included credits."}, NO_QUOTA),
    Refusal("Vercel", 403, _error("No.", "insufficient_funds"), NO_QUOTA),
    Refusal("Perplexity", 401, _error("quota exceeded", "insufficient_quota", 401), NO_QUOTA),
    Refusal("xAI", 429, {"code": "x", "error": "The team reached its spending limit."}, NO_QUOTA),
    Refusal("xAI, new", 403, {"code": "x", "error": "It doesn't have any credits yet."}, NO_QUOTA),
    Refusal("OpenAI, organization", 429, _error("No.", None, "organization_spend_limit_exceeded"), NO_QUOTA),
    Refusal("302.AI", 400, {"error": {"message": "It does not have enough balance"}}, NO_QUOTA),
    Refusal("Azure API Management", 403, {"message": "Out of call volume quota."}, NO_QUOTA),
    Refusal("OpenCode", 429, {"message": "Subscription quota exceeded."}, NO_QUOTA),
    Refusal("Cloudflare", 429, {"errors": [{"code": 4006, "message": "daily free allocation"}]}, NO_QUOTA),
    Refusal("NVIDIA", 402, {"detail": "Cloud credits expired"}, NO_QUOTA),
    Refusal("watsonx", 403, {"errors": [{"code": "token_quota_reached", "message": "x"}]}, NO_QUOTA),
    Refusal("Venice", 400, _error("Too little.", None, "INSUFFICIENT_BALANCE"), NO_QUOTA),
    Refusal("Bedrock", 403, {"message": "INVALID_PAYMENT_INSTRUMENT: none is valid"}, NO_QUOTA),
    # An account that is switched off, or a key that may not.
    Refusal("Anthropic", 400, _error("This organization has been disabled.", "invalid_request_error"), AUTH),
    Refusal("Groq", 400, _error("No.", "invalid_request_error", "organization_restricted"), AUTH),
    Refusal("Groq, terms", 400, _error("No.", "invalid_request_error", "model_terms_required"), AUTH),
    Refusal("Groq, project", 403, _error("No.", "x", "model_permission_blocked_project"), AUTH),
    Refusal("Fireworks, off", 412, _error("Account a is suspended.", "error", "PRECONDITION_FAILED"), AUTH),
    Refusal("bigmodel 1112", 400, _error("Locked.", None, "1112"), AUTH),
    Refusal("MiniMax 1004", 200, _base(1004, "login fail"), AUTH),
    Refusal("MiniMax 2049", 200, _base(2049, "invalid"), AUTH),
    Refusal("one-api, late", 400, _error("该令牌已过期", "new_api_error"), AUTH),
    Refusal("a flagged account", 403, _error("Your account was flagged for our usage policy."), AUTH),
    Refusal("Azure", 403, _error("No.", None, "SubscriptionDisabled"), AUTH),
    Refusal("Google", 403, _error("Permission denied: Consumer has been suspended."), AUTH),
    # Numbers and families of codes, as pages of vendors list them.
    Refusal("Ark, a family", 400, _error("No.", "BadRequest", "SensitiveContentDetected.Violence"), BLOCKED),
    Refusal("Ark, input", 400, _error("No.", "BadRequest", "InputTextRiskDetection"), BLOCKED),
    Refusal("Ark, output", 400, _error("No.", "BadRequest", "OutputTextSensitiveContentDetected"), BLOCKED),
    Refusal("Ark, words alone", 400, _error("The input may hold sensitive information."), BLOCKED),
    Refusal("Ark, busy", 429, _error("No.", "TooManyRequests", "ServerOverloaded"), BUSY),
    Refusal("Ark, plan", 400, _error("No.", "BadRequest", "InvalidSubscription"), AUTH),
    Refusal("Ark, closed", 403, _error("No.", "Forbidden", "OperationDenied.ServiceNotOpen"), AUTH),
    Refusal("Ark, trial words", 429, _error("You have exhausted your free trial quota.", "x"), NO_QUOTA),
    Refusal("Qianfan, tokens", 400, _error("No.", "invalid_request_error", "tokens_too_long"), TOO_LONG),
    Refusal("Qianfan, letters", 400, _error("No.", "x", "characters_too_long"), TOO_LONG),
    Refusal("Qianfan, unsafe", 400, _error("No.", "unsafe_request", "system_unsafe"), BLOCKED),
    Refusal("Baidu, a bill", 429, {"code": "BILLING_INSUFFICIENT_BALANCE", "message": "x"}, NO_QUOTA),
    Refusal("Baidu 17", 200, {"error_code": 17, "error_msg": "daily"}, NO_QUOTA),
    Refusal("Baidu 14", 200, {"error_code": 14, "error_msg": "IAM"}, AUTH),
    Refusal("Baidu 2", 200, {"error_code": 2, "error_msg": "later"}, BUSY),
    Refusal("Baidu 336000", 200, {"error_code": 336000, "error_msg": "internal"}, BROKEN),
    Refusal("Baidu 336501", 200, {"error_code": 336501, "error_msg": "RPM"}, RATE),
    Refusal("Baidu 336003", 200, {"error_code": 336003, "error_msg": "role"}, REQUEST),
    Refusal("Tencent, text", 400, _error("No.", "x", "OperationDenied.TextIllegalDetected"), BLOCKED),
    Refusal("Tencent, closed", 400, _error("No.", "x", "FailedOperation.ServiceNotActivated"), AUTH),
    Refusal("Tencent, engine", 400, _error("No.", "x", "FailedOperation.EngineServerLimitExceeded"), RATE),
    Refusal("Tencent, model", 400, _error("No.", "x", "InvalidParameterValue.Model"), NO_MODEL),
    Refusal("Tencent, words alone", 400, _error("免费资源包余量已用尽"), NO_QUOTA),
    Refusal("Cloudflare 3036", 429, _numbered(3036, "limited"), NO_QUOTA),
    Refusal("Cloudflare 3040", 429, _numbered(3040, "no data center"), BUSY),
    Refusal("Cloudflare 5007", 400, _numbered(5007, "none"), NO_MODEL),
    Refusal("Cloudflare, in a 200", 200, _numbered(3036, "limited"), NO_QUOTA),
    Refusal("new-api, words", 400, _error("No.", "new_api_error", "sensitive_words_detected"), BLOCKED),
    Refusal("new-api, blocked", 500, _error("No.", "new_api_error", "prompt_blocked"), BLOCKED),
    Refusal("new-api, no channel", 503, _error("No.", "new_api_error", "model_not_found"), NO_MODEL),
    Refusal("MiniMax, sensitive", 400, _error("input new_sensitive (1026)"), BLOCKED),
    Refusal("Huawei", 403, {"error_code": "ModelArts.81022", "error_msg": "Used."}, NO_QUOTA),
    Refusal("Huawei, frozen", 403, {"error_code": "ModelArts.81021", "error_msg": "No."}, AUTH),
    Refusal("bigmodel 1121", 429, _error("No.", None, "1121"), AUTH),
    Refusal("bigmodel 1234", 400, _error("No.", None, "1234"), BROKEN),
    Refusal("iFlow", 200, {"code": 60400, "message": "Insufficient credits", "success": False}, NO_QUOTA),
    Refusal("Gemini, cap", 429, _error("The project is over its spending cap."), NO_QUOTA),
    Refusal("Gemini, nought", 429, _error("Quota exceeded for metric: m, limit: 0"), NO_QUOTA),
    Refusal("Mistral, a month", 429, {"message": "Monthly usage limit reached"}, NO_QUOTA),
    Refusal("litellm, late key", 400, _error("Authentication Error - Expired Key.", "expired_key"), AUTH),
    Refusal("xAI, content", 403, {"code": "x", "error": "It violates usage guidelines."}, BLOCKED),
    Refusal("ZenMux", 403, _error("No.", "safety_check_failed", "403"), BLOCKED),
    Refusal("DeepSeek, content", 400, _error("Content Exists Risk"), BLOCKED),
    # A prompt that is too long, which must not stop a model. Each server counts in words of its own.
    Refusal("Together, long", 403, _error("Input token count must be less than 9."), TOO_LONG),
    Refusal("Together, sum", 422, _error("`inputs` tokens + `max_new_tokens` must be <= 8193."), TOO_LONG),
    Refusal("TGI", 422, {"error": "`inputs` must have less than 4095 tokens.", "error_type": "x"}, TOO_LONG),
    Refusal("TensorRT-LLM", 400, {"error": "Prompt length (9) exceeds maximum input length (4)."}, TOO_LONG),
    Refusal("vLLM, decoder", 400, _error("It is longer than the maximum model length of 4096."), TOO_LONG),
    Refusal("vLLM, the rest", 400, _error("max_tokens must be at least 1, got -904."), TOO_LONG),
    Refusal("llama.cpp 500", 500, _error("the request exceeds the available context size."), TOO_LONG),
    Refusal("xAI, long", 400, {"error": "This model's maximum prompt length is 131072."}, TOO_LONG),
    Refusal("Moonshot, long", 400, _error("The request exceeded model token limit: 8192"), TOO_LONG),
    Refusal("DashScope, long", 400, _error("Range of input length should be [1, 9]"), TOO_LONG),
    Refusal("SiliconFlow, long", 400, {"message": "prompt_tokens (9) must be less than 4."}, TOO_LONG),
    Refusal("watsonx, long", 400, _error("the number of input tokens 9 cannot exceed the limit 4"), TOO_LONG),
    Refusal("Yandex, long", 400, _error("number of input tokens must be no more than 8192"), TOO_LONG),
    Refusal("Claude, sum", 400, _error("input length and `max_tokens` exceed context limit"), TOO_LONG),
    Refusal("OpenAI, a minute's", 429, _error("Request too large for m on TPM: Limit 4"), TOO_LONG),
    Refusal("OpenRouter, long", 400, _passed_on(400, '{"error":"maximum context length is 9"}'), TOO_LONG),
    Refusal("OpenRouter, content", 400, _passed_on(400, "Content Exists Risk"), BLOCKED),
    Refusal("OpenRouter, busy", 429, _passed_on(429, "m is temporarily rate-limited upstream"), RATE),
    # What a server calls, or has loaded, fails.
    Refusal("TGI, generation", 424, {"error": "failed", "error_type": "generation"}, BROKEN),
    Refusal("TGI, full", 429, {"error": "Model is overloaded", "error_type": "overloaded"}, BUSY),
    Refusal("LM Studio", 400, {"error": "The model has crashed (Exit code: 9)"}, BROKEN),
    Refusal("Moonshot, full", 429, _error("No.", "engine_overloaded_error"), BUSY),
    Refusal("Featherless", 400, _error("This model is cold", "model_not_ready"), BUSY),
    # What passes, what is about one question, and what is neither: no word of these may stop a model.
    Refusal("Mistral 1300", 429, {"message": "Rate limit", "type": "rate_limited", "code": "1300"}, RATE),
    Refusal("Bedrock, a minute", 429, {"message": "Too many tokens, please wait."}, RATE),
    Refusal("Vertex, full", 429, _error("Resource has been exhausted (e.g. check quota)."), RATE),
    Refusal("Google, ten a minute", 429, _error("Quota exceeded for metric: m, limit: 10"), RATE),
    Refusal("a parameter", 400, _error("max_tokens must be less than or equal to 4096"), REQUEST),
    Refusal("a parameter too large", 400, _error("max_completion_tokens is too large: 9."), REQUEST),
    Refusal("a key of JSON", 400, _error("Invalid key 'foo' in messages[0]"), REQUEST),
    Refusal("one-api, full", 429, _error("当前分组上游负载已饱和，请稍后再试"), RATE),
    Refusal("Z.ai 1302", 429, _error("Too many at once.", None, "1302"), RATE),
    Refusal("MiniMax 1002", 200, _base(1002, "rate limit"), RATE),
    Refusal("Baidu 18", 200, {"error_code": 18, "error_msg": "Open api qps request limit"}, RATE),
    Refusal("Cohere, a minute", 429, {"message": "Trial key: 20 calls / minute."}, RATE),
    Refusal("Google, a minute", 429, _GOOGLE_QUOTA, RATE),
    Refusal("Azure, a minute", 429, _error("exceeded call rate limit", None, "429"), RATE),
    Refusal("Z.ai 1301", 400, _error("Unsafe.", None, "1301"), BLOCKED),
    Refusal("DashScope, content", 400, _error("No.", "DataInspectionFailed"), BLOCKED),
    Refusal("MiniMax 1026", 200, _base(1026, "input"), BLOCKED),
    Refusal("a policy of an organization", 403, _error("Your organization's content filter."), BLOCKED),
    Refusal("Z.ai 1261", 400, _error("Shorten it.", None, "1261"), ErrorKind.TOO_LONG),
    Refusal("MiniMax 1013", 200, _base(1013, "unknown"), ErrorKind.SERVER_ERROR),
    Refusal("MiniMax 2013", 200, _base(2013, "invalid params"), ErrorKind.BAD_REQUEST),
    Refusal("Cloudflare 1033", 530, "error code: 1033", ErrorKind.SERVER_ERROR),
    Refusal("a body that is no answer", 200, {"code": -1, "msg": "no"}, ErrorKind.BAD_REPLY),
]
