"""What every page is made of, whatever its results are: template, style, the app's script, the library."""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final, NamedTuple

from asyncbench.page.contents import ready_made

# The app's modules, in the order in which they are read; together they are one function.
APP: Final = (
    *("text", "source", "state", "select", "filters", "charts", "tables"),
    *("results", "heat", "errors", "measures", "about"),
    *("aligned", "answers", "trial", "live", "keys", "main"),
)
# A served page loads its own files and asks its own server; nothing else.
LIVE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class ServedFile(NamedTuple):
    """A file of the page as a server sends it."""

    content_type: str
    content: bytes


@cache
def served_files() -> dict[str, ServedFile]:
    """Return what a server of the page sends by path: `/`, `/app.js`, `/vega.js`, `/style.css`."""
    scripts = ("app.js", "vega.js")  # the app first: it asks for results while the library is read
    page = filled(
        live=" data-live",
        policy=LIVE_POLICY.replace("; frame-ancestors 'none'", ""),  # which counts in a header alone
        title="asyncbench",
        styles='<link rel="stylesheet" href="/style.css">',
        data="",
        scripts="\n".join(f'<script defer src="/{name}"></script>' for name in scripts),
    )
    return {
        "/": ServedFile("text/html", page.encode()),
        "/app.js": ServedFile("text/javascript", app_script().encode()),
        "/vega.js": ServedFile("text/javascript", library()),
        "/style.css": ServedFile("text/css", style().encode()),
    }


def filled(**parts: str) -> str:
    """Return the template with its parts, HTML each but `policy` and `title`, which are escaped here."""
    parts |= {name: escape(parts[name]) for name in ("policy", "title")}
    parts["licences"] = escape(files("asyncbench").joinpath("THIRD_PARTY.md").read_text("utf-8"))
    # At once: a part may hold what looks like a place.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _resource("template.html"))


def app_script() -> str:
    modules = "\n".join(_resource(f"app/{name}.js") for name in APP)
    return f'(() => {{\n"use strict";\n{modules}\n}})();'  # a function: the library's names are kept out


def style() -> str:
    return _resource("style.css")


@cache
def library() -> bytes:
    """Return Vega, Vega-Lite and Vega-Embed as `data/page.py` bundled them."""
    return ready_made("vega.js")


def _resource(name: str) -> str:
    return files("asyncbench.page").joinpath(name).read_text("utf-8")


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
