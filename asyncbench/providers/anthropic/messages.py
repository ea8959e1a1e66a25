"""Anthropic's messages: a request as a body, a body as a reply. Knows neither SDK nor connection."""

from collections.abc import Mapping

from asyncbench.providers.content import text_and_thinking
from asyncbench.providers.failures import bad_reply
from asyncbench.providers.loose_json import mapping, text
from asyncbench.providers.response import Response
from asyncbench.providers.usage import from_anthropic
from asyncbench.records import Reply, Request

PATH = "v1/messages"


def body(request: Request) -> dict[str, object]:
    """Return what is sent: the model's parameters where they are set, `params` last, nothing else.

    Anthropic demands `max_tokens`; `config` sets it where the sweep does not.
    """
    model = request.trial.model
    optional = {
        "system": request.system,
        "temperature": model.temperature,
        "top_p": model.top_p,
        "max_tokens": model.max_tokens,
    }
    return {
        "model": model.model_id,
        "messages": [{"role": turn.role, "content": turn.content} for turn in request.messages],
        **{name: value for name, value in optional.items() if value is not None},
        **model.params,
        **request.trial.condition.params,
    }


def reply(payload: Mapping[str, object], response: Response) -> Reply:
    """Read a message.

    Raises:
        ProviderError: `bad_reply` when it has no content.
    """
    content = payload.get("content")
    if not isinstance(content, list):
        raise bad_reply(response, "it holds no content")
    said, thought = text_and_thinking(content)
    raw_usage = mapping(payload.get("usage")) or None
    return Reply(
        text=said,
        reasoning=thought,
        finish_reason=text(payload.get("stop_reason")),
        model_served=text(payload.get("model")),
        usage=from_anthropic(raw_usage) if raw_usage else None,
        raw_usage=raw_usage,
        request_id=response.request_id,
        http_status=response.status,
    )
