r"""The box of an answer, as mathematicians mark it: \boxed{42}, \fbox{B}."""

import re
from typing import Final

_BRACES: Final = re.compile(r"(?P<box>\\(?:boxed|fbox|framebox)\s*+\{)|\\[{}]|(?P<open>\{)|(?P<close>\})")


def last_box(text: str) -> str | None:
    r"""Return what is in the last box that holds anything; None where there is none.

    Braces in a box are balanced: of \boxed{\frac{1}{2}} it is \frac{1}{2}. A box that is not closed is
    none. A sign before a box belongs to it: -\boxed{5} holds -5.
    """
    if "box" not in text:
        return None
    content: str | None = None
    starts: list[tuple[int, int] | None] = []  # of open braces: where a box and its content begin
    for brace in _BRACES.finditer(text):
        if brace["box"] or brace["open"]:
            starts.append(brace.span() if brace["box"] else None)
        elif brace["close"] and starts and (box := starts.pop()) is not None:
            start, inside = box
            if text[inside : brace.start()].strip():
                sign = text[start - 1] if start and text[start - 1] in "-−–" else ""
                content = sign + text[inside : brace.start()]
    return content
