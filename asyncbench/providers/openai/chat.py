"""OpenAI's chat completions: a request as a body, a body as a reply. Knows neither SDK nor connection."""

from collections.abc import Mapping

from asyncbench.providers.content import text_and_thinking
from asyncbench.providers.failures import bad_reply
from asyncbench.providers.loose_json import mapping, text
from asyncbench.providers.response import Response
from asyncbench.providers.usage import from_openai
from asyncbench.records import Reply, Request

PATH = "chat/completions"


def body(request: Request, *, max_tokens_key: str = "max_completion_tokens") -> dict[str, object]:
    """Return what is sent: the sweep's parameters where they are set, `params` last, nothing else."""
    model = request.trial.model
    system = [{"role": "system", "content": request.system}] if request.system is not None else []
    optional = {
        "temperature": model.temperature,
        "top_p": model.top_p,
        "seed": model.seed,
        max_tokens_key: model.max_tokens,
    }
    return {
        "model": model.model_id,
        "messages": system + [{"role": turn.role, "content": turn.content} for turn in request.messages],
        **{name: value for name, value in optional.items() if value is not None},
        **model.params,
        **request.trial.condition.params,
    }


def reply(payload: Mapping[str, object], response: Response) -> Reply:
    """Read the first choice of a chat completion.

    Raises:
        ProviderError: `bad_reply` when there is no choice, or it failed on its own (OpenRouter).
    """
    choice = _first_choice(payload, response)
    message = mapping(choice["message"])
    said, thought = text_and_thinking(message.get("content"))
    raw_usage = mapping(payload.get("usage")) or None
    return Reply(
        text=said or text(message.get("refusal")) or "",
        reasoning=text(message.get("reasoning_content")) or text(message.get("reasoning")) or thought,
        finish_reason=text(choice.get("finish_reason")),
        model_served=text(payload.get("model")),
        usage=from_openai(raw_usage) if raw_usage else None,
        raw_usage=raw_usage,
        request_id=response.request_id,
        http_status=response.status,
    )


def _first_choice(payload: Mapping[str, object], response: Response) -> Mapping[str, object]:
    choices = payload.get("choices")
    choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
    if choice.get("error"):
        raise bad_reply(response, "its first choice is an error")
    if not isinstance(choice.get("message"), dict):
        raise bad_reply(response, "it holds no choice with a message")
    return choice
