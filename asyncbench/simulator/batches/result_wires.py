"""How both vendors write the lines of result files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from asyncbench.simulator.anthropic_wire import ANTHROPIC
from asyncbench.simulator.batches.faults import BatchFaultKind as Kind
from asyncbench.simulator.casting import WIRES
from asyncbench.simulator.openai_wire import CHAT
from asyncbench.simulator.wire import Json, RefusedError, VendorWire, Why

_TOO_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
)
REFUSED_LINES: Mapping[Kind, RefusedError] = {
    Kind.LINE_TOO_LONG: RefusedError(Why.TOO_LONG, _TOO_LONG),
    Kind.LINE_400: RefusedError(Why.BAD_REQUEST, "Invalid value for 'temperature'."),
    Kind.LINE_429: RefusedError(Why.RATE_LIMITED, "Rate limit reached, by chance."),
    Kind.LINE_NO_QUOTA: RefusedError(Why.NO_QUOTA, "You exceeded your current quota."),
    Kind.LINE_500: RefusedError(Why.SERVER_ERROR, "The server had an error."),
    Kind.LINE_504: RefusedError(Why.TIMED_OUT, "The request timed out generating."),
    Kind.LINE_STATUS_0: RefusedError(Why.SERVER_ERROR, "The connection to the model was lost."),
    Kind.LINE_ERROR_200: RefusedError(Why.UPSTREAM, "The model returned an error."),
}
# As it comes, on hundreds of lines, under `invalid_request_error`.
_NO_CREDIT = RefusedError(Why.BAD_REQUEST, "Your credit balance is too low to access the Anthropic API.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultWire:
    """One vendor's lines."""

    request: Callable[[Json], tuple[VendorWire, Json]]  # a line that was handed in → its wire format and body
    answered: Callable[[str, str, Json], Json]  # custom id, request id, the answer's body
    refused: Callable[[str, str, RefusedError, int | None], Json]  # …, why, another status
    not_run: Callable[[str, str], Json]  # custom id; expired or cancelled
    refusals: Mapping[Kind, RefusedError]
    one_file: bool  # errors are in the file of the answers


def _openai_request(line: Json) -> tuple[VendorWire, Json]:
    return WIRES[str(line["url"])], _dict(line["body"])


def _openai_answered(custom_id: str, request_id: str, body: Json) -> Json:
    return _openai_line(custom_id, request_id, 200, body)


def _openai_refused(custom_id: str, request_id: str, refused: RefusedError, status: int | None) -> Json:
    usual, body = CHAT.error(refused, request_id)
    return _openai_line(custom_id, request_id, usual if status is None else status, body)


def _openai_line(custom_id: str, request_id: str, status: int, body: Json) -> Json:
    response = {"status_code": status, "request_id": request_id, "body": body}
    return {"id": f"batch_req_{request_id}", "custom_id": custom_id, "response": response, "error": None}


def _openai_not_run(custom_id: str, state: str) -> Json:
    said = {
        "expired": "This request could not be executed before the completion window expired.",
        "cancelled": "This request was cancelled before it was executed.",
    }
    error = {"code": f"batch_{state}", "message": said[state]}
    return {"id": f"batch_req_{custom_id}", "custom_id": custom_id, "response": None, "error": error}


OPENAI_RESULTS = ResultWire(
    request=_openai_request,
    answered=_openai_answered,
    refused=_openai_refused,
    not_run=_openai_not_run,
    refusals=REFUSED_LINES,
    one_file=False,
)


def _anthropic_request(line: Json) -> tuple[VendorWire, Json]:
    return ANTHROPIC, _dict(line["params"])


def _anthropic_answered(custom_id: str, _request_id: str, body: Json) -> Json:
    usage = {**_dict(body.get("usage", {})), "service_tier": "batch", "inference_geo": "not_available"}
    message = {**body, "usage": usage} if "usage" in body else body
    return {"custom_id": custom_id, "result": {"type": "succeeded", "message": message}}


def _anthropic_refused(custom_id: str, request_id: str, refused: RefusedError, _status: int | None) -> Json:
    _, error = ANTHROPIC.error(refused, request_id)
    return {"custom_id": custom_id, "result": {"type": "errored", "error": error}}


def _anthropic_not_run(custom_id: str, state: str) -> Json:
    return {"custom_id": custom_id, "result": {"type": {"cancelled": "canceled"}.get(state, state)}}


ANTHROPIC_RESULTS = ResultWire(
    request=_anthropic_request,
    answered=_anthropic_answered,
    refused=_anthropic_refused,
    not_run=_anthropic_not_run,
    refusals={**REFUSED_LINES, Kind.LINE_NO_QUOTA: _NO_CREDIT},
    one_file=True,
)

RESULT_WIRES: Mapping[str, ResultWire] = {"openai": OPENAI_RESULTS, "anthropic": ANTHROPIC_RESULTS}


def _dict(value: object) -> Json:
    return value if isinstance(value, dict) else {}
