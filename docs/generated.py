"""What pages say from the code: `<!-- from the code: NAME -->` in a page is replaced by a text made here."""

import re
from collections.abc import Callable, Mapping

_MARK = re.compile(r"<!-- from the code: (\S+) -->")


def filled(page: str) -> str:
    """Return a page with the texts that its marks name."""
    return _MARK.sub(lambda mark: TEXTS[mark[1]](), page)


def _commands() -> str:
    return ""


TEXTS: Mapping[str, Callable[[], str]] = {
    "commands": _commands,
    "sweep-keys": _commands,
    "columns": _commands,
    "names": _commands,
    "suites": _commands,
    "providers": _commands,
}
