"""OpenAI's chat completions: a request as a body, a body or a stream as a reply."""

from collections.abc import Mapping

from asyncbench.prompting import merged_params
from asyncbench.providers.body import at, finished
from asyncbench.providers.content import text_and_thinking
from asyncbench.providers.failures import bad_reply
from asyncbench.providers.loose_json import mapping_in, text
from asyncbench.providers.openai.choices import Chunks, Piece, first_choice, reply_of
from asyncbench.providers.quirks import Quirks
from asyncbench.providers.response import Response
from asyncbench.providers.wire import Json
from asyncbench.records import Model, Reply, Request


class ChatWire:
    """/chat/completions, as OpenAI and many others speak it."""

    path = "chat/completions"

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks

    def body(self, request: Request) -> dict[str, object]:
        """Return what is sent; see `Wire`."""
        model = request.trial.model
        system = [{"role": "system", "content": request.system}] if request.system is not None else []
        body = {
            "model": model.model_id,
            "messages": system + [{"role": turn.role, "content": turn.content} for turn in request.messages],
            "temperature": model.temperature,
            "top_p": model.top_p,
            self._quirks.max_tokens: model.max_tokens,
            **at(self._quirks.seed, model.seed),
            **self._thinking(model),
            **streaming(model, self._quirks),
        }
        return finished(body, model, request.trial.condition)

    def reply(self, payload: Json, response: Response) -> Reply:
        """Read the first choice of a chat completion.

        Raises:
            ProviderError: `bad_reply` when there is no choice; see `first_choice` and `reply_of`.
        """
        choice = first_choice(payload, response)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise bad_reply(response, "it holds no choice with a message")
        finish_reason = choice.get("finish_reason")
        return reply_of(payload, response, piece=_piece(message), finish_reason=finish_reason)

    def stream(self, response: Response) -> Chunks:
        """Begin to read a stream; see `Wire`."""
        return Chunks(response, lambda choice: _piece(mapping_in(choice.get("delta"))))

    def _thinking(self, model: Model) -> dict[str, object]:
        # Both may stand in one object: OpenRouter's `reasoning`.
        return merged_params(
            at(self._quirks.effort, model.effort), at(self._quirks.thinking, model.thinking_tokens)
        )


def streaming(model: Model, quirks: Quirks) -> dict[str, object]:
    """Return what asks for a stream of chunks, with the usage in it."""
    if not model.stream:
        return {}
    asked = {"stream_options": {"include_usage": True}} if quirks.usage_in_streams == "ask" else {}
    return {"stream": True, **asked}


def _piece(message: Mapping[str, object]) -> Piece:
    """Return what a message, or a piece of one, says, thinks and refuses.

    Thinking stands in `reasoning_content` (DeepSeek), in `reasoning` (vLLM, Groq, OpenRouter) or among the
    parts of the content (Mistral).
    """
    said, thought = text_and_thinking(message.get("content"))
    thought = text(message.get("reasoning_content")) or text(message.get("reasoning")) or thought
    return said, thought or "", text(message.get("refusal")) or ""
