"""Messages before a question: small talk that fills the context, or worked examples.

A file of small talk, and our own `small_talk.json`, is JSON:

    {"messages": [{"role": "user", "content": "hi!"}, {"role": "assistant", "content": "hello :)"}]}

A file of worked examples is JSON Lines: {"question": "2 + 2?", "answer": "4"}.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from itertools import cycle
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.files import found_input, text_of
from asyncbench.records import Message

# How many messages of our small talk each padding is: about 770, 1,800 and 3,700 tokens, as those of the
# llm_arithmetic project are. Each is the beginning of the next.
PADDINGS: Mapping[str, int] = {"1k": 16, "2k": 28, "4k": 44}


def padding(name: str, *, place: str, near: Path | None = None) -> tuple[Message, ...]:
    """Return the small talk called `name`: a key of `PADDINGS`, or a file (`near`: see `input_path`).

    Raises:
        ConfigError: the file is missing or is not in the form described above; names `place`.
    """
    if name in PADDINGS:
        ours = files("asyncbench.suites").joinpath("small_talk.json").read_text("utf-8")
        return _dialog(ours, place=place)[: PADDINGS[name]]
    known = ", ".join(PADDINGS)
    text = _text(name, near, place=place, way_out=f"Name a file, or one of {known}")
    return _dialog(text, place=f"{place}: {name}")


def examples(path: str, *, place: str, near: Path | None = None) -> tuple[Message, ...]:
    """Return the worked examples of a file as turns, in its order: each question, then its answer.

    `near` is the sweep file that names it: see `input_path`.

    Raises:
        ConfigError: the file is missing or is not in the form described above; names `place`.
    """
    text = _text(path, near, place=place, way_out="Correct the path")
    turns: list[Message] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{place}: {path}, line {number}"
        match _json(line, place=where):
            case {"question": str() as question, "answer": str() as answer} if question and answer:
                turns.append(Message(role="user", content=question))
                turns.append(Message(role="assistant", content=answer))
            case _:
                raise ConfigError(f'{where}: the line is not {{"question": "…", "answer": "…"}}. Correct it.')
    if not turns:
        raise ConfigError(f"{place}: {path} holds no examples. Add one per line.")
    return tuple(turns)


def _text(name: str, near: Path | None, *, place: str, way_out: str) -> str:
    path = found_input(name, near, place=place, way_out=way_out)
    return text_of(path, place=f"{place}: {path}", way_out=way_out)


def _dialog(text: str, *, place: str) -> tuple[Message, ...]:
    match _json(text, place=place):
        case {"messages": [_, *_] as messages}:
            turns = tuple(_message(turn, f"{place}, messages[{i}]") for i, turn in enumerate(messages, 1))
        case _:
            raise ConfigError(
                f'{place}: the file is not {{"messages": [{{"role": …, "content": …}}, …]}}. Correct it.'
            )
    expected = cycle(("user", "assistant"))
    wrong = [i for i, (turn, role) in enumerate(zip(turns, expected, strict=False), 1) if turn.role != role]
    if wrong or len(turns) % 2:
        raise ConfigError(
            f"{place}, messages[{wrong[0] if wrong else len(turns)}]: user and assistant must take turns, "
            "the user first and the assistant last. Your question follows."
        )
    return turns


def _message(raw: object, place: str) -> Message:
    match raw:
        case {"role": ("user" | "assistant") as role, "content": str() as content} if content:
            return Message(role=role, content=content)
    raise ConfigError(f"{place}: a message needs a role (user or assistant) and a content (text).")


def _json(text: str, *, place: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{place}: not JSON: {error}. Correct it.") from None
    except RecursionError:
        raise ConfigError(f"{place}: nested too deeply. Write it flat.") from None
