"""Plain completions, for base models: text in, the text that follows out; no roles, no thinking."""

from collections.abc import Mapping

from asyncbench.providers.body import at, finished
from asyncbench.providers.failures import bad_reply
from asyncbench.providers.loose_json import text
from asyncbench.providers.openai.chat import streaming
from asyncbench.providers.openai.choices import Chunks, Piece, first_choice, reply_of
from asyncbench.providers.quirks import Quirks
from asyncbench.providers.response import Response
from asyncbench.providers.wire import Json
from asyncbench.records import Reply, Request


class CompletionsWire:
    """/completions: the older of OpenAI's formats, which self-hosted servers still speak."""

    path = "completions"

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks

    def body(self, request: Request) -> dict[str, object]:
        """Return what is sent; see `Wire`.

        The prompt is the question alone. A system prompt and earlier turns stand before it in their order,
        each on lines of its own, with nothing that tells who said them.
        """
        model = request.trial.model
        before = [] if request.system is None else [request.system]
        body = {
            "model": model.model_id,
            "prompt": "\n".join([*before, *(turn.content for turn in request.messages)]),
            "temperature": model.temperature,
            "top_p": model.top_p,
            "max_tokens": model.max_tokens,  # the format has no newer name for it
            **at(self._quirks.seed, model.seed),
            **streaming(model, self._quirks),
        }
        return finished(body, model, request.trial.condition)

    def reply(self, payload: Json, response: Response) -> Reply:
        """Read the first choice of a completion.

        Raises:
            ProviderError: `bad_reply` when there is no choice; see `first_choice` and `reply_of`.
        """
        choice = first_choice(payload, response)
        if not isinstance(choice.get("text"), str):
            raise bad_reply(response, "it holds no choice with a text")
        finish_reason = choice.get("finish_reason")
        return reply_of(payload, response, piece=_piece(choice), finish_reason=finish_reason)

    def stream(self, response: Response) -> Chunks:
        """Begin to read a stream; see `Wire`."""
        return Chunks(response, _piece)


def _piece(choice: Mapping[str, object]) -> Piece:
    return text(choice.get("text")) or "", "", ""
