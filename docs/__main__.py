"""Build the docs site: `python -m docs` writes it to site/.

Beside each page lies the same as Markdown, for programs that read docs, and `llms.txt` lists these.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.generated import filled

ROOT = Path(__file__).resolve().parent.parent
# In a page that is opened from the disk, search needs this script: ours is beside the pages.
_SHIM = re.compile(r"https://[^\"]+/iframe-worker/shim")
_MARKS = re.compile(r"^<!-- not run: [^>]*-->\n", re.MULTILINE)
# The head of a section; the first cell of a row, if it holds a name alone; an option of a command.
_NAMED = re.compile(
    r'<h[23] id="(?P<section>[^"]+)"'
    r"|<tr>\s*<(?P<cell>td)>(?P<open><a [^>]*>)?<code>(?P<name>[^\W\d]\w*)</code>(?:</a>)?</td>"
    r"|<li><code>(?P<typed>--(?P<option>[\w-]+)[^<]*)</code>"
)
# The same with their links, and what is said of them.
_EXPLAINED = re.compile(
    r'<(?:td|li) id="([^"]+)"><a [^>]*><code>([^<]+)</code></a>(.*?)</(?:tr|li)>', re.DOTALL
)
_TAG = re.compile("<[^>]*>")


def stage(folder: Path) -> None:
    """Lay out what the generator reads: its settings and the pages, with what they say from the code."""
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for page in (folder / "docs").rglob("*.md"):
        text = filled(page.read_text("utf-8"))
        # without prompts, as commands stand in our pages, `console` would be coloured as output
        page.write_text(text.replace("```console", "```bash"), "utf-8")


def build(site: Path) -> None:
    """Write the site. A broken link, a missing anchor or any other warning ends the build."""
    with tempfile.TemporaryDirectory() as place:
        stage(Path(place))
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)  # noqa: S603  our own words
        if done.returncode:
            sys.exit(f"{done.stdout}{done.stderr}")
        built = Path(place, "site")
        for page in built.rglob("*.html"):
            up = "../" * (len(page.relative_to(built).parts) - 1)
            text = _SHIM.sub(f"{up}assets/iframe-worker.js", page.read_text("utf-8"))
            page.write_text(with_twin(with_anchors(text), page.with_suffix(".md").name), "utf-8")
        make_findable(built)
        write_twins(Path(place, "docs"), built)
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(built, site)


def with_anchors(page: str) -> str:
    """Return a page on which each key, column and option that it explains has a link of its own."""
    section, known = "", set[str]()

    def linked(found: re.Match[str]) -> str:
        nonlocal section
        section = found["section"] or section
        anchor = f"{section}-{found['name'] or found['option']}"
        if found["section"] or anchor in known:
            return found[0]
        known.add(anchor)
        link = found["open"] or f'<a href="#{anchor}">'
        text = f"{link}<code>{found['name'] or found['typed']}</code></a>"
        return f'<tr>\n<td id="{anchor}">{text}</td>' if found["cell"] else f'<li id="{anchor}">{text}'

    return _NAMED.sub(linked, page)


def make_findable(site: Path) -> None:
    """Let search find each key, column and option by its name, where the index knows sections alone."""
    index = json.loads((site / "search.json").read_text("utf-8"))
    pages = {item["location"]: item["path"] for item in index["items"] if "#" not in item["location"]}
    for location, path in pages.items():
        for anchor, name, rest in _EXPLAINED.findall((site / location).read_text("utf-8")):
            text = " ".join(_TAG.sub(" ", rest).split())
            section = anchor.removesuffix(f"-{name.lstrip('-').split()[0]}").replace("-", " ")
            title = f"{name}, {section}"  # budget_usd, in models
            item = {"location": f"{location}#{anchor}", "level": 3, "title": title, "text": text}
            index["items"].append({**item, "path": path, "tags": []})
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (site / "search.json").write_text(text, "utf-8")
    (site / "search.js").write_text(f"var __index = {text};", "utf-8")  # which a page from the disk reads


def with_twin(page: str, name: str) -> str:
    """Return a page that says where the same stands as Markdown."""
    return page.replace("</head>", f'<link rel="alternate" type="text/markdown" href="{name}"></head>', 1)


def write_twins(pages: Path, site: Path) -> None:
    """Write each page as Markdown into the site, and `llms.txt`, which lists them."""
    for page in pages.rglob("*.md"):
        (site / page.relative_to(pages)).write_text(_MARKS.sub("", page.read_text("utf-8")), "utf-8")
    project = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}", ""]
    for entry in project["nav"]:
        (name, held), *_ = entry.items()
        lines += [f"## {name}", "", *(_link(pages, page) for page in _pages_in(held)), ""]
    (site / "llms.txt").write_text("\n".join(lines), "utf-8")


def _pages_in(nav: Any) -> Iterator[str]:  # Any: a page, a list, or a mapping of titles to such
    """Yield the pages of a part of the table of contents."""
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from _pages_in(entry)


def _link(pages: Path, page: str) -> str:
    """Return a link to a page, with its title."""
    title = (pages / page).read_text("utf-8").partition("\n")[0].removeprefix("# ")
    return f"- [{title}]({page})"


if __name__ == "__main__":
    build(ROOT / "site")
    print(f"open {Path('site', 'index.html')}")
