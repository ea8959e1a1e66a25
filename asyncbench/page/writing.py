"""The file to mail: it holds a folder's results and all it takes to look at them, without a network."""

import base64
import gzip
import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.entrants import asked_in
from asyncbench.errors import ConfigError
from asyncbench.files import local, replacing, writing
from asyncbench.page.answers import LONGEST, ShownTrial, answers_to
from asyncbench.page.blocks import BLOCKS, specs_block
from asyncbench.store.bucket.fetching import display_name
from asyncbench.store.bucket.objects import s3_address
from asyncbench.store.rows import encode_json
from asyncbench.store.schema import ENTRANT
from asyncbench.tables.data import Values

# ── parts of every page ──────────────────────────────────────────────────────────────────────────


# The app's modules, in the order in which they are read; together they are one function.
APP: Final = (
    *("text", "source", "state", "select", "filters", "charts", "tables"),
    *("results", "heat", "errors", "measures", "about"),
    *("aligned", "answers", "trial", "versus", "live", "keys", "main"),
)
LIST_APP: Final = ("text", "sweeps")  # of the page that lists the sweeps below a folder
# A served page loads its own files and asks its own server; nothing else.
LIVE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


LISTED, BELOW = "/list", "/below"  # pages by another address than their own: see `served_files`


class ServedFile(NamedTuple):
    """A file of the page as a server sends it."""

    content_type: str
    content: bytes


@cache
def served_files() -> dict[str, ServedFile]:
    """Return the files that a server of the page sends, by path.

    `/` is the page of results. Of a folder above several sweeps it is their list, here `LISTED`, and each
    sweep has a page that leads back to it, here `BELOW`.
    """
    app = ("app.js", "vega.js")  # the app first: it asks for results while the library is read
    return {
        "/": _served_page(*app),
        BELOW: _served_page(*app, above='<a class="above" href="/">← All sweeps</a>'),
        LISTED: _served_page("sweeps.js"),
        "/app.js": ServedFile("text/javascript", app_script(APP).encode()),
        "/sweeps.js": ServedFile("text/javascript", app_script(LIST_APP).encode()),
        "/vega.js": ServedFile("text/javascript", library()),
        "/style.css": ServedFile("text/css", resource("style.css").encode()),
    }


def _served_page(*scripts: str, above: str = "") -> ServedFile:
    page = filled(
        live=" data-live",
        policy=LIVE_POLICY.replace("; frame-ancestors 'none'", ""),  # which counts in a header alone
        title="asyncbench",
        styles='<link rel="stylesheet" href="/style.css">',
        above=above,
        data="",
        scripts="\n".join(f'<script defer src="/{name}"></script>' for name in scripts),
    )
    return ServedFile("text/html", page.encode())


def filled(**parts: str) -> str:
    """Return the template with its parts, HTML each but `policy` and `title`, which are escaped here."""
    parts |= {name: escape(parts[name]) for name in ("policy", "title")}
    parts["licences"] = escape(files("asyncbench").joinpath("THIRD_PARTY.md").read_text("utf-8"))
    # All are filled in at once, since a part may hold what looks like the place of another.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], resource("template.html"))


def app_script(names: Iterable[str]) -> str:
    """Return modules of the page as one script."""
    modules = "\n".join(resource(f"app/{name}.js") for name in names)
    return f'(() => {{\n"use strict";\n{modules}\n}})();'  # a function: the library's names are kept out


@cache
def library() -> bytes:
    """Return Vega, Vega-Lite and Vega-Embed as `data/page.py` bundled them, which takes seconds."""
    return gzip.decompress(files("asyncbench.page").joinpath("vega.js.gz").read_bytes())


def resource(name: str) -> str:
    """Return a file of the page."""
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


# ── sample of trials ─────────────────────────────────────────────────────────────────────────────


MOST_TRIALS: Final = 20_000  # a folder with no more trials is shown whole
MOST_OF_MORE: Final = 8_000  # trials that are shown of a larger folder
MOST_TEXT: Final = 9_000_000  # bytes of all their texts together
_TEXTS: Final = ("prompt", "expected", "answer", "reply", "reasoning", "message")

_ENTRANT: Final = ", ".join(ENTRANT)
_KIND: Final = "suite, task, variant, representation"
# A problem_id is a hash: the first ones of a group are as good as a draw, and the same on every machine. The
# last problem of a group may have more trials than this query counts.
_CHOICE: Final = f"""
SELECT problem_id, min(place) AS place, count(*) FILTER (of_kind) AS trials FROM (
    SELECT of_kind, unnest(first) AS problem_id, generate_subscripts(first, 1) AS place FROM (
        SELECT grouping(outcome) = 1 AS of_kind,
            CASE WHEN of_kind THEN min(problem_id, $each) ELSE [min(problem_id)] END AS first
        FROM trials GROUP BY GROUPING SETS (({_ENTRANT}, {_KIND}), ({_ENTRANT}, outcome))
    )
) GROUP BY problem_id ORDER BY place, problem_id
"""  # noqa: S608  made of our own words alone


def sample_of(
    views: FolderViews,
    *,
    whole_up_to: int = MOST_TRIALS,
    max_trials: int = MOST_OF_MORE,
    max_bytes: int = MOST_TEXT,
) -> Values:
    """Return the block `sample`: all trials, or those of as many questions as there is room for.

    Questions come in a fixed random order: one of each kind and model, then the next of each, and so on. The
    first questions show each outcome of each model. `of` counts the folder's trials; `rule` says how these
    were chosen.

    Args:
        views: the views of the results folders.
        whole_up_to: a folder with no more trials than this is shown whole.
        max_trials: how many trials of a larger folder are shown.
        max_bytes: bytes of all texts together; one trial is shown whatever its size.

    Raises:
        ConfigError, StoreError: the folder cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    counts = [entrant.trials for entrant in asked_in(views).entrants]
    total = sum(counts)
    room = total if total <= whole_up_to else max_trials
    answers = answers_to(views, _questions(views, counts, room))
    trials = list(_fitting(answers, room, max_bytes))

    rule = f"The page has all {total:,} trials."
    if len(trials) != total:
        rule = (
            f"The page has {len(trials):,} of {total:,} trials: all answers to questions drawn at random, "
            "equally many of each model and task as far as there are enough, and of each model one with each "
            "outcome at least."
        )
    rule = f"{rule} Texts longer than {LONGEST:,} characters are shown without their middle."
    return {"rule": rule, "of": total, "trials": trials}


def _questions(views: FolderViews, counts: Sequence[int], max_trials: int) -> list[str]:
    """Return problems that have `max_trials` trials together, or a few more."""

    def chosen(each: int) -> int:
        return sum(min(each, trials) for trials in counts)

    # The number of each kind and entrant that is enough, even where an entrant was asked one kind alone.
    each = max(1, bisect_left(range(max(counts, default=0)), max_trials, key=chosen))
    problem_ids, trials = list[str](), 0
    for row in views.rows(_CHOICE, {"each": each}):
        if trials >= max_trials:
            break
        problem_ids.append(row["problem_id"])
        trials += row["trials"]
    return problem_ids


def _fitting(trials: Iterable[ShownTrial], max_trials: int, max_bytes: int) -> Iterator[ShownTrial]:
    """Yield the trials of one question after the other, as long as they and their texts have room."""
    count, size = 0, 0
    for _, answers in groupby(trials, key=itemgetter("question")):
        together = list(answers)
        texts = [trial[name] for trial in together for name in _TEXTS]
        texts += [grade["answer"] for trial in together for grade in trial["grades"]]
        first, count = not count, count + len(together)
        size += sum(len((text or "").encode("utf-8", "replace")) for text in texts)
        if count > max_trials or size > max_bytes:
            yield from together[: max_trials if size <= max_bytes else 1] if first else ()
            return
        yield from together


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
    rule: str  # how the embedded trials were chosen
    calls: int  # calls that were due to a load

    def as_text(self) -> str:
        """Return where the page is and what it holds, as a sentence."""
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
    folders = chosen(folder, suite=suite, task=task, models=models, where=where)
    path = page_path(folders, out)
    blocks = contents_of(folders)
    page = _page(blocks).encode()
    with writing(path), replacing(path) as file:
        file.write(page)
    sample = blocks["sample"]
    return Written(
        path=path,
        size=len(page),
        trials_embedded=len(sample["trials"]),
        trials=sample["of"],
        rule=sample["rule"],
        calls=blocks["head"]["load_calls"],
    )


def page_path(folders: Chosen, out: PathLike[str] | str | None, *, name: str = NAME) -> Path:
    """Return where a page of folders is written: `out`, or a file of this name in the folder.

    Raises:
        ConfigError: `out` cannot be a file, or is needed.
    """
    if out is not None:
        return local(out)
    if folders.several:
        raise ConfigError("a page of several folders belongs to none of them. Name its file with --out.")
    if s3_address(display_name(folders.paths[0])) is not None:
        raise ConfigError(f"{folders}: a page is written to this machine. Name its file with --out.")
    return folders.paths[0] / name


def contents_of(folder: Folders) -> dict[str, Values]:
    """Return the blocks of a results folder's page, by the ids of their elements.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: it cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    return counted(
        chosen(folder),
        lambda views: {
            **{name: make(views) for name, make in BLOCKS.items()},
            "specs": specs_block(),
            "sample": views.made_of_rows("sample", Values, lambda: sample_of(views)),
        },
    )


def _page(blocks: Mapping[str, Values]) -> str:
    app, drawing, styles = app_script(APP), library().decode(), resource("style.css")
    return filled(
        live="",
        above="",
        policy=policy([app, drawing], [styles]),
        title=f"{blocks['head']['title']} · asyncbench",
        styles=element("style", styles),
        data="\n".join(data_block(f"block-{name}", value) for name, value in blocks.items()),
        scripts="\n".join(element("script", code) for code in (app, drawing)),
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
