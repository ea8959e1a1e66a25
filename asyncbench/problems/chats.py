"""A chat as the question of a row: a list of messages, or a text that is one in JSON.

    messages: [{"role": "user", "content": "6 x 7?"}]     asked as `6 x 7?`

Only a chat of one message of a user is a question. A system prompt is a condition's, and earlier turns would
have to be sent with each question: such rows are refused.
"""

import json
from typing import Any, Final, TypeAlias

from asyncbench.errors import ProblemSetError

Message: TypeAlias = dict[str, Any]  # Any: JSON
_WAY_OUT: Final = (
    "Only one message of a user is asked. Set the same system prompt of all rows in `conditions: [{name: …, "
    "system: …}]`, and write each question as text."
)


def chat_text(value: Any, *, place: str) -> Any:  # Any: a text, or what JSON or Arrow holds
    """Return the question of a chat; any other value as it is.

    Raises:
        ProblemSetError: the chat has other messages than one of a user, or one that is no text.
    """
    if (messages := _messages(value)) is None:
        return value
    roles = [str(message["role"]) for message in messages]
    if roles not in (["user"], ["human"]):
        raise ProblemSetError(f"{place}: a chat of {len(roles)} messages ({', '.join(roles)}). {_WAY_OUT}")

    # the text, or a list of parts that are all text
    content = messages[0]["content"]
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise ProblemSetError(
            f"{place}: a message of the chat is no text. Write it as text, or remove its row."
        )
    return "\n".join(map(str, texts))


def _messages(value: Any) -> list[Message] | None:  # Any: as above
    """Return the messages of a chat; None: the value is none."""
    if isinstance(value, str):
        if not (value.lstrip().startswith("[") and '"role"' in value):
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if is_chat(value) else None


def is_chat(value: Any) -> bool:  # Any: as above
    """Return whether a value is a list of messages."""
    messages = isinstance(value, list) and value
    return bool(messages) and all(isinstance(item, dict) and {*item} >= {"role", "content"} for item in value)
