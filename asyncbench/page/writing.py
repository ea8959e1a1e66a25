"""One file that holds a folder's results and all it takes to look at them: no network, nothing to install."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.files import local, replacing, writing
from asyncbench.page.contents import Contents, contents_of
from asyncbench.page.embedding import data_block, policy, script, style

NAME: Final = "report.html"  # in the results folder, where no other place is named
INSTALL: Final = "pip install 'asyncbench[report]'"

# The page's own script, in the order in which it is read.
_APP: Final = (
    *("text", "data", "state", "rows", "placing", "curves", "charts", "filters"),
    *("overview", "views", "trials", "main"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A page on the disk."""

    path: Path
    size: int  # bytes
    trials_embedded: int
    trials: int  # in the folder
    rule: str  # by which those were chosen

    def as_text(self) -> str:
        """Return it as a sentence."""
        shown = "all" if self.trials_embedded == self.trials else f"{self.trials_embedded:,} of"
        size = f"{self.size / 1_000_000:.1f} MB"
        return (
            f"{self.path}: {size}, {shown} {self.trials:,} trials to look at one by one; open it in a browser"
        )


def write_page(folder: PathLike[str] | str, out: PathLike[str] | str | None = None) -> Written:
    """Write the page of a results folder, whole or not at all.

    Args:
        folder: a results folder.
        out: the file; None: `report.html` in the folder.

    Raises:
        ConfigError: it is not a results folder, `out` can be no file, or the extra is not installed.
        StoreError: the folder cannot be read, or the disk does not take the page.
        ProblemSetError: a copy of a problem set is damaged.
    """
    place = Path(folder)
    path = place / NAME if out is None else local(out)
    library = _library()
    contents = contents_of(place)
    page = _page(contents, library).encode()
    with writing(path), replacing(path) as file:
        file.write(page)
    sample = contents.sample
    return Written(
        path=path, size=len(page), trials_embedded=len(sample.trials), trials=sample.of, rule=sample.rule
    )


def _page(contents: Contents, library: str) -> str:
    own, styles = _script(), _resource("style.css")
    parts = {
        "policy": escape(policy([library, own], [styles])),
        "title": escape(f"{contents.title} · asyncbench"),
        "styles": style(styles),
        "licences": escape(files("asyncbench").joinpath("THIRD_PARTY.md").read_text("utf-8")),
        "data": "\n".join(data_block(name, value) for name, value in contents.blocks.items()),
        "scripts": f"{script(library)}\n{script(own)}",
    }
    return _filled(_resource("template.html"), parts)


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Return a template with its parts in place, at once: a part may hold what looks like a place."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)


def _script() -> str:
    """Return the page's script, within a function of its own: the library's names are kept out of it."""
    modules = "\n".join(_resource(f"app/{name}.js") for name in _APP)
    return f'(() => {{\n"use strict";\n{modules}\n}})();'


def _resource(name: str) -> str:
    return files("asyncbench.page").joinpath(name).read_text("utf-8")


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    bundled: Any  # the module has no types
    try:
        import vl_convert as bundled
    except ModuleNotFoundError as error:
        raise ConfigError(f"the page needs {error.name}: {INSTALL}") from None
    return str(bundled.javascript_bundle())
