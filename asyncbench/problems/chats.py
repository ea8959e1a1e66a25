"""A chat as the question of a row: a list of messages, or a text that is one in JSON.

    messages: [{"role": "user", "content": "6 x 7?"}]     asked as `6 x 7?`

A chat of several messages is asked as one: a system prompt if it has one, then turns of user and assistant,
the last one of the user.
"""

import json
from itertools import cycle
from typing import Any, Final, TypeAlias

from asyncbench.errors import ProblemSetError
from asyncbench.problems.text_files import text_value
from asyncbench.records import Message
from asyncbench.suites.chats import chat_question

RawMessage: TypeAlias = dict[str, Any]  # Any: JSON
_ROLES: Final = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
}
_CALLS: Final = ("tool_calls", "function_call")  # of tools, which no question has


def question_of_row(value: Any, *, place: str) -> Any:  # Any: a text, or what JSON or Arrow holds
    """Return a chat as a question: its text if a user says all; any other value as it is.

    Raises:
        ProblemSetError: the chat cannot be asked: its roles are others or stand in another order, or a
            message is no text.
    """
    # A chat may also be a text of JSON.
    listed = value
    if isinstance(value, str):
        if not (value.lstrip().startswith("[") and '"role"' in value):
            return value
        try:
            listed = json.loads(value)
        except (ValueError, RecursionError):
            return value
    if not is_chat(listed):
        return value
    messages = [
        _message(raw, f"{place}: message {number} of the chat") for number, raw in enumerate(listed, 1)
    ]

    # A system prompt may come first; then user and assistant take turns.
    turns = messages[1:] if messages[0].role == "system" else messages
    in_turn = all(turn.role == role for turn, role in zip(turns, cycle(("user", "assistant")), strict=False))
    if len(turns) % 2 == 0 or not in_turn:
        roles = ", ".join(message.role for message in messages)
        raise ProblemSetError(
            f"{place}: the roles of the chat are {roles}. A system message may stand first, then user and "
            "assistant take turns, and the user has the last word. Join messages of the same role, and leave "
            "out the reply that is to be given."
        )
    return messages[0].content if len(messages) == 1 else chat_question(messages)


def is_chat(value: Any) -> bool:  # Any: as above
    """Return whether a value is a list of messages."""
    messages = isinstance(value, list) and value
    return bool(messages) and all(isinstance(item, dict) and {*item} >= {"role", "content"} for item in value)


def _message(message: RawMessage, where: str) -> Message:
    """Return a message as it is asked; its content may be a list of parts that are all text."""
    role = message["role"]
    if any(message.get(name) for name in _CALLS):
        raise ProblemSetError(f"{where} calls a tool. Write it as text, or remove its row.")
    if not isinstance(role, str) or role not in _ROLES:
        raise ProblemSetError(
            f"{where} has the role {role!r:.60}. Only system, user and assistant are asked. Write it as a "
            "message of one of them, or remove its row."
        )

    content = message["content"]
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise ProblemSetError(f"{where} is no text. Write it as text, or remove its row.")
    if not (text := "\n".join(map(str, texts))).strip():
        raise ProblemSetError(f"{where} is empty. Write its text, or remove it.")
    return Message(role=_ROLES[role], content=text_value({"content": text}, "content", place=where))
