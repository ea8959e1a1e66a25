"""What is said before a question: small talk that fills the context, or worked examples.

A file of small talk, and our own `small_talk.json`, is JSON:

    {"messages": [{"role": "user", "content": "hi!"}, {"role": "assistant", "content": "hello :)"}]}

A file of worked examples is JSON Lines: {"question": "2 + 2?", "answer": "4"}.
"""

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import cycle
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.files import text_of
from asyncbench.records import Message

# How many messages of our small talk each padding is: about 770, 1,800 and 3,700 tokens, as those of the
# llm_arithmetic project are. Each is the beginning of the next.
PADDINGS: Mapping[str, int] = {"1k": 16, "2k": 28, "4k": 44}


def padding(said: str, *, place: str) -> tuple[Message, ...]:
    """Return the small talk that `said` names: a key of `PADDINGS`, or a file.

    Raises:
        ConfigError: the file is missing or is not in the form described above; names `place`.
    """
    if said in PADDINGS:
        ours = files("asyncbench.prompting").joinpath("small_talk.json").read_text("utf-8")
        return _dialog(ours, place=place)[: PADDINGS[said]]
    known = ", ".join(PADDINGS)
    text = _text(said, place=place, way_out=f"name a file, or one of {known}")
    return _dialog(text, place=f"{place}: {said}")


def examples(path: str, *, place: str) -> tuple[Message, ...]:
    """Return the worked examples of a file as turns, in its order: each question, then its answer.

    Raises:
        ConfigError: the file is missing or is not in the form described above; names `place`.
    """
    text = _text(path, place=place, way_out="name a file that is there")
    turns = tuple(turn for line in _lines(text, place=f"{place}: {path}") for turn in line)
    if not turns:
        raise ConfigError(f"{place}: {path} holds no examples")
    return turns


def _text(path: str, *, place: str, way_out: str) -> str:
    return text_of(Path(path), place=f"{place}: {path!r}", way_out=way_out)


def _dialog(text: str, *, place: str) -> tuple[Message, ...]:
    match _json(text, place=place):
        case {"messages": [_, *_] as messages}:
            turns = tuple(_message(one, f"{place}, messages[{i}]") for i, one in enumerate(messages, 1))
        case _:
            raise ConfigError(f'{place}: not {{"messages": [{{"role": …, "content": …}}, …]}}')
    expected = cycle(("user", "assistant"))
    wrong = [i for i, (turn, role) in enumerate(zip(turns, expected, strict=False), 1) if turn.role != role]
    if wrong or len(turns) % 2:
        raise ConfigError(
            f"{place}, messages[{wrong[0] if wrong else len(turns)}]: user and assistant must take turns, "
            "the user first and the assistant last, so that the question can follow"
        )
    return turns


def _message(raw: object, place: str) -> Message:
    match raw:
        case {"role": ("user" | "assistant") as role, "content": str() as content} if content:
            return Message(role=role, content=content)
    raise ConfigError(f"{place}: needs a role, user or assistant, and a content that is text")


def _lines(text: str, *, place: str) -> Iterator[tuple[Message, Message]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _example(_json(line, place=f"{place}, line {number}"), f"{place}, line {number}")


def _example(raw: object, place: str) -> tuple[Message, Message]:
    match raw:
        case {"question": str() as question, "answer": str() as answer} if question and answer:
            return Message(role="user", content=question), Message(role="assistant", content=answer)
    raise ConfigError(f'{place}: not {{"question": "…", "answer": "…"}}')


def _json(text: str, *, place: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{place}: not JSON: {error}") from None
    except RecursionError:
        raise ConfigError(f"{place}: nested too deeply; the form is flat") from None
