"""The file to mail: it holds a folder's results and all it takes to look at them, without a network."""

import base64
import gzip
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from asyncbench.analysis.choosing import Folders, chosen
from asyncbench.errors import ConfigError
from asyncbench.files import local, replacing, writing
from asyncbench.page.contents import Contents, contents_of
from asyncbench.store.bucket.fetching import display_name
from asyncbench.store.bucket.objects import s3_address
from asyncbench.store.rows import encode_json

# ── parts of every page ──────────────────────────────────────────────────────────────────────────


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
    """Return Vega, Vega-Lite and Vega-Embed as `data/page.py` bundled them, which takes seconds."""
    return gzip.decompress(files("asyncbench.page").joinpath("vega.js.gz").read_bytes())


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


# ── writing the file ─────────────────────────────────────────────────────────────────────────────


NAME: Final = "report.html"  # in the results folder, where no other place is named

LARGE: Final = 64_000  # bytes of JSON; more is compressed
# What could end the element, or what some parser takes for the end of a line, written as JSON escapes.
_ESCAPES: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A written page: its path, and how much it holds."""

    path: Path
    size: int  # bytes
    trials_embedded: int
    trials: int  # in the folder
    rule: str  # by which those were chosen
    calls: int  # that were due to a load

    def as_text(self) -> str:
        """Return it as a sentence."""
        shown = "all" if self.trials_embedded == self.trials else f"{self.trials_embedded:,} of"
        trials = f"{shown} {self.trials:,} trials to read"
        loads = f"the figures of {self.calls:,} calls under load"
        contents = " and ".join([trials] * bool(self.trials or not self.calls) + [loads] * bool(self.calls))
        return f"{self.path} ({self.size / 1_000_000:.1f} MB, with {contents}). Open it in a browser."


def write_page(
    folder: Folders,
    out: PathLike[str] | str | None = None,
    *,
    suite: str | None = None,
    task: str | None = None,
    models: Sequence[str] | None = None,
    where: str | None = None,
) -> Written:
    """Write the page of a results folder: one HTML file that works without a server or network.

        ab.write_page("results/night")

    Args:
        folder: the results folder, or a list of several.
        out: the file. Needed for several folders. [`report.html` in the folder]
        suite: only trials of this suite. [all]
        task: only trials of this task. [all]
        models: only trials of these aliases. [all]
        where: only trials for which this SQL condition over the columns of `trials` is true. [all]

    Returns:
        A `Written`, with the path of the page.

    Raises:
        ConfigError: The folder is not a results folder, or `out` cannot be a file.
        StoreError: The folder cannot be read, or the page cannot be written.
        ProblemSetError: A copy of a problem set is damaged.
    """
    of = chosen(folder, suite=suite, task=task, models=models, where=where)
    if out is None and of.several:
        raise ConfigError("a page of several folders belongs to none of them. Name its file with --out.")
    if out is None and s3_address(display_name(of.paths[0])) is not None:
        raise ConfigError(f"{of}: a page is written to this machine. Name its file with --out.")
    path = of.paths[0] / NAME if out is None else local(out)
    contents = contents_of(of)
    page = _page(contents).encode()
    with writing(path), replacing(path) as file:
        file.write(page)
    sample = contents.sample
    return Written(
        path=path,
        size=len(page),
        trials_embedded=len(sample.trials),
        trials=sample.of,
        rule=sample.rule,
        calls=contents.load_calls,
    )


def _page(contents: Contents) -> str:
    own, drawing, styles = app_script(), library().decode(), style()
    return filled(
        live="",
        policy=policy([own, drawing], [styles]),
        title=f"{contents.title} · asyncbench",
        styles=element("style", styles),
        data="\n".join(data_block(f"block-{name}", value) for name, value in contents.blocks.items()),
        scripts="\n".join(element("script", code) for code in (own, drawing)),
    )


# ── data inside a page ───────────────────────────────────────────────────────────────────────


def data_block(name: str, value: object) -> str:
    """Return a value as a `script` element that no browser runs: JSON, or its gzip in base64 where large.

    Args:
        name: the id of the element, one of ours.
        value: anything that `encode_json` takes.
    """
    text = encode_json(value)
    if len(text) <= LARGE:
        escaped = text.decode().translate(_ESCAPES)
        return f'<script type="application/json" id="{name}">{escaped}</script>'
    packed = base64.b64encode(gzip.compress(text, 6, mtime=0)).decode()
    return f'<script type="application/gzip" id="{name}">{packed}</script>'


def element(kind: str, code: str) -> str:
    """Return code or style, of ours or of a library, as an element of a page: `script` or `style`.

    Raises:
        ValueError: it would end its own element.
    """
    lowered = code.lower()
    if f"</{kind}" in lowered or "<!--" in lowered:
        raise ValueError(f"a {kind} that holds its own end tag, or an open comment, cannot be embedded")
    return f"<{kind}>{code}</{kind}>"
