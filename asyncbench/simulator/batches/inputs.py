"""Reading what was handed in: a file of requests line by line, a body of requests piece by piece."""

import codecs
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import orjson

from asyncbench.simulator.models import WIRES
from asyncbench.simulator.wire import Json, RefusedError, Why, tokens

MOST_ERRORS = 20  # of validation that are told
CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # Anthropic's rule
_OPENING, _BETWEEN = re.compile(r'\s*\{\s*"requests"\s*:\s*\['), re.compile(r"[\s,]*")
_LONGEST_OPENING = 100  # characters before the first request


@dataclass(slots=True, kw_only=True)
class BatchInput:
    """What a batch of requests is."""

    requests: int = 0
    tokens: int = 0  # of all prompts, estimated
    reply_tokens: int = 0  # of the longest replies allowed
    model: str = ""  # of the first request
    errors: list[Json] = field(default_factory=list)  # of validation, as OpenAI tells them


def settings_asked(path: Path, key: str) -> object:
    """Return the settings that the first request of a file has for its batch; `key`: of the body."""
    with path.open("rb") as file:
        body = _object(_object(_parsed(file.readline())).get(key))
    return _object(body.get("simulate")).get("batch")


def check_file(path: Path, endpoint: str, *, most: int, knows: Callable[[str], object]) -> BatchInput:
    """Read a file of OpenAI's as its validation does: one wrong line, and nothing of it is run.

    Args:
        path: the file.
        endpoint: the path that each line must name.
        most: the most requests.
        knows: raises RefusedError for a model that does not exist.
    """
    handed, ids = BatchInput(), set[str]()
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            handed.requests += 1
            if (wrong := _line_error(raw, endpoint, handed, ids, knows)) and len(handed.errors) < MOST_ERRORS:
                code, message = wrong
                handed.errors.append(told_error(code, message, number))
    if not handed.requests or handed.requests > most:
        code = "too_many_tasks" if handed.requests else "empty_file"
        handed.errors = [
            told_error(code, f"The file has {handed.requests} requests; it may have 1 to {most}.")
        ]
    return handed


def told_error(code: str, message: str, line: int | None = None) -> Json:
    """Write an error of validation; `line`: the wrong one, from 1."""
    return {"code": code, "line": line, "message": f"{message} (simulated)", "param": None}


def _line_error(
    raw: bytes, endpoint: str, handed: BatchInput, ids: set[str], knows: Callable[[str], object]
) -> tuple[str, str] | None:
    """Return code and message of what is wrong with a line, and count it; None: nothing is."""
    line = _parsed(raw)
    if not isinstance(line, dict):
        return "invalid_json_line", "This line is not parseable as valid JSON."
    custom_id, body = line.get("custom_id"), line.get("body")
    if not isinstance(custom_id, str) or line.get("method") != "POST" or not isinstance(body, dict):
        return "invalid_request", "A line must have custom_id, method POST, url and body."
    if custom_id in ids:
        return "duplicate_custom_id", f"The custom_id {custom_id!r} is used twice."
    ids.add(custom_id)
    if line.get("url") not in (endpoint, f"/v1{endpoint}"):
        return "url_mismatch", f"The url must be {endpoint}, the endpoint of the batch."
    model = body.get("model")
    if handed.model and model != handed.model:
        return "model_mismatch", f"All lines must name one model; the first names {handed.model!r}."
    handed.model = str(model)
    try:
        knows(handed.model)
    except RefusedError:
        return "model_not_found", f"The model {model!r} does not exist."
    try:
        wire_request = WIRES[endpoint].read(body)
    except RefusedError:  # parameters are not validated here: a line of its own will tell
        handed.tokens += tokens(len(raw))
    else:
        handed.tokens += tokens(wire_request.prompt_characters)
        handed.reply_tokens += wire_request.max_tokens or 0
    return None


class RequestSplitter:
    """Splits a body of Anthropic's into its requests, as its pieces come; `requests` is its first key.

    Raises:
        RefusedError: it is not such a body.
    """

    def __init__(self) -> None:
        self._decoder, self._parser = codecs.getincrementaldecoder("utf-8")(), json.JSONDecoder()
        self._text = ""
        self._opened = self._closed = False

    def feed(self, piece: bytes) -> Iterator[Json]:
        """Yield the requests that are whole now."""
        try:
            self._text += self._decoder.decode(piece)
        except UnicodeDecodeError:
            raise _not_requests() from None
        place = 0
        if not self._opened:
            if (opening := _OPENING.match(self._text)) is None:
                if len(self._text) > _LONGEST_OPENING:
                    raise _not_requests()
                return
            self._opened, place = True, opening.end()
        while not self._closed:
            place = cast("re.Match[str]", _BETWEEN.match(self._text, place)).end()
            if self._text.startswith("]", place):
                self._closed = True
            try:
                request, place = self._parser.raw_decode(self._text, place)
            except json.JSONDecodeError:
                break  # not whole yet, or never: `end` tells
            if not isinstance(request, dict):
                raise _not_requests()
            yield request
        self._text = self._text[place:]

    def end(self) -> None:
        """Raise RefusedError unless the body is whole."""
        if not (self._closed and self._text.rstrip().endswith("}")):
            raise _not_requests()


def _not_requests() -> RefusedError:
    return RefusedError(Why.BAD_REQUEST, "The body must be JSON: a list of `requests`.")


async def split_requests(pieces: AsyncIterator[bytes], path: Path) -> BatchInput:
    """Write the requests of a body to a file, one a line, and return what they are.

    Raises:
        RefusedError: the body is not JSON, or a custom id is missing, used twice or not of the rule.
    """
    handed, ids, splitter = BatchInput(), set[str](), RequestSplitter()
    with path.open("wb") as file:
        async for piece in pieces:
            for request in splitter.feed(piece):
                custom_id, params = request.get("custom_id"), request.get("params")
                place = f"requests.{handed.requests}"
                if not isinstance(custom_id, str) or not CUSTOM_ID.fullmatch(custom_id):
                    rule = f"String should match pattern '^{CUSTOM_ID.pattern}$'"
                    raise RefusedError(Why.BAD_REQUEST, f"{place}.custom_id: {rule}.")
                if not isinstance(params, dict):
                    raise RefusedError(Why.BAD_REQUEST, f"{place}.params: Field required.")
                if custom_id in ids:
                    raise RefusedError(Why.BAD_REQUEST, f"{place}.custom_id: {custom_id} is used twice.")
                ids.add(custom_id)
                handed.requests += 1
                handed.model = handed.model or str(params.get("model"))
                file.write(orjson.dumps(request) + b"\n")
        splitter.end()
    if not handed.requests:
        raise RefusedError(Why.BAD_REQUEST, "requests: List should have at least 1 item.")
    return handed


def _parsed(raw: bytes) -> object:
    """Return the JSON of a line; None: it is none, such as a line that begins with a byte order mark."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
