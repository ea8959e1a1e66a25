"""Data inside an HTML file: text that no parser takes for markup, and a policy that lets only our own run."""

import base64
import gzip
import hashlib
from collections.abc import Sequence
from typing import Final

from asyncbench.store import encode_json

LARGE: Final = 64_000  # bytes of JSON; more is compressed
# What could end the element, or what some parser takes for the end of a line, written as JSON escapes.
_ESCAPES: Final = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


def data_block(name: str, value: object) -> str:
    """Return a value as a `script` element that no browser runs: JSON, or its gzip in base64 where large.

    Args:
        name: the id of the element, one of ours.
        value: anything that `encode_json` takes.
    """
    text = encode_json(value)
    if len(text) <= LARGE:
        return f'<script type="application/json" id="{name}">{_escaped(text.decode())}</script>'
    packed = base64.b64encode(gzip.compress(text, 6, mtime=0)).decode()
    return f'<script type="application/gzip" id="{name}">{packed}</script>'


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def script(code: str) -> str:
    """Return code of ours, or of a library, as an element of a page.

    Raises:
        ValueError: it would end its own element.
    """
    return _element("script", code)


def style(code: str) -> str:
    """Return style of ours as an element of a page; raises as `script` does."""
    return _element("style", code)


def _element(kind: str, code: str) -> str:
    lowered = code.lower()
    if f"</{kind}" in lowered or "<!--" in lowered:
        raise ValueError(f"a {kind} that holds its own end tag, or an open comment, cannot be embedded")
    return f"<{kind}>{code}</{kind}>"


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return a Content-Security-Policy: these run, by their hash; nothing else runs or loads."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(scripts)}",
            f"style-src {_hashes(styles)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hashes(codes: Sequence[str]) -> str:
    digests = (hashlib.sha256(code.encode()).digest() for code in codes)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
