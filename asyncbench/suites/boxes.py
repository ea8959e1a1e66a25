r"""The box of an answer, as mathematicians and prompts mark it: \boxed{42}, \fbox{B}, <answer>42</answer>."""

import re
from typing import Final

_BRACES: Final = re.compile(
    r"(?P<box>\\(?:boxed|fbox|framebox)\s*+\{)|\\boxed[ ]++(?P<bare>[-+−–]?[0-9][^\s{}\\$]*+|[A-Z]\b)"
    r"|\\[{}]|(?P<open>\{)|(?P<close>\})"
)
_TAG: Final = re.compile(r"<(?P<end>/?)(?:final_)?answer>", re.IGNORECASE)


def last_box(text: str) -> str | None:
    r"""Return the content of the last box that holds anything, or None where there is none.

    Braces in a box are balanced: of \boxed{\frac{1}{2}} it is \frac{1}{2}. A box that is not closed is
    none, and \boxed 5 needs no braces. A sign before a box belongs to it: -\boxed{5} holds -5. Of what stands
    between tags it is the box, or all of it.
    """
    # The last pair of tags that holds anything, and the text behind it.
    inside: str | None = None
    outside = ""
    opened: int | None = None
    for tag in _TAG.finditer(text):
        if not tag["end"]:
            opened = tag.end()
        elif opened is not None:
            if tagged := text[opened : tag.start()].strip():
                inside, outside = tagged, text[tag.end() :]
            opened = None
    if inside is not None and "\\boxed" not in outside:
        return last_box(inside) or inside
    if "box" not in text:
        return None

    # The last box, with braces or without.
    content: str | None = None
    starts: list[tuple[int, int] | None] = []  # of open braces: where a box and its content begin
    for brace in _BRACES.finditer(text):
        if brace["box"] or brace["open"]:
            starts.append(brace.span() if brace["box"] else None)
        elif brace["bare"]:
            content = brace["bare"]
        elif brace["close"] and starts and (box := starts.pop()) is not None:
            start, begins = box
            if text[begins : brace.start()].strip():
                sign = text[start - 1] if start and text[start - 1] in "-−–" else ""
                content = sign + text[begins : brace.start()]
    return content
