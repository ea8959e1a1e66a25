"""A chat as the question of a problem of `custom`: its messages as one text, from which they are read again.

    [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "6 x 7?"}]

This text is the problem's question, so that its id covers every message. It is JSON in this form alone; any
other text is asked as it stands.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Final

from asyncbench.records import Message

ROLES: Final = ("system", "user", "assistant")
OPENING: Final = '[{"role": "'  # of the question of every chat


def chat_question(messages: Sequence[Message]) -> str:
    """Return the question that holds these messages."""
    return json.dumps([asdict(message) for message in messages], ensure_ascii=False)


def chat_in(question: str) -> tuple[Message, ...]:
    """Return the messages of a question; none: it is no chat."""
    if not question.startswith(OPENING):
        return ()
    try:
        messages = tuple(Message(**message) for message in json.loads(question))
    except (ValueError, TypeError, RecursionError):
        return ()
    are_texts = all(turn.role in ROLES and isinstance(turn.content, str) for turn in messages)
    return messages if are_texts and chat_question(messages) == question else ()


def map_contents(question: str, change: Callable[[str], str]) -> str:
    """Return a question with its text changed; of a chat, the text of every message."""
    if messages := chat_in(question):
        return chat_question([Message(role=turn.role, content=change(turn.content)) for turn in messages])
    return change(question)


def readable_question(question: str) -> str:
    """Return a question for people: of a chat, each message behind its role."""
    return "\n".join(f"{turn.role}: {turn.content}" for turn in chat_in(question)) or question
