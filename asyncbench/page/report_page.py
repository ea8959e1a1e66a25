"""A report as a page: its notes and tables in one HTML file, to read or to print, without a script."""

import re
from collections.abc import Iterator
from html import escape
from os import PathLike
from pathlib import Path
from typing import Final

from asyncbench.files import local, replacing, writing
from asyncbench.page.writing import element, resource
from asyncbench.tables import html
from asyncbench.tables.report import Report, Sheet
from asyncbench.tables.screen import safe_note

NARROW: Final = 3  # columns of a table that takes half the page at most
# Nothing runs and nothing is loaded; the cells of tables have styles of their own.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_DARK: Final = re.compile(r':root\[data-theme="dark"\] (\{.*?\n\})', re.DOTALL)
_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="asyncbench">
<title>{title} · asyncbench</title>
{styles}
</head>
<body class="report">
<header class="top"><div class="top-line"><h1>{title}</h1><p class="brand">asyncbench</p></div></header>
<main>
{content}</main>
</body>
</html>
"""


def write_report(report: Report, out: PathLike[str] | str, *, title: str | None = None) -> Path:
    """Write a report as one HTML file that works without a server, a network or a script.

        ab.write_report(ab.report("results/night", "card", models=["red"]), "red.html")

    Args:
        report: any report, such as that of `report`, `compare` or `plan`.
        out: the file.
        title: the heading of the page. [of a card, its model; else the first note]

    Returns:
        The path of the page.

    Raises:
        ConfigError: `out` cannot be a file.
        StoreError: The page cannot be written.
    """
    path = local(out)
    page = page_of(report, title or report.heading() or next(iter(report.notes_above()), "Report"))
    with writing(path), replacing(path) as file:
        file.write(page.encode())
    return path


def page_of(report: Report, title: str) -> str:
    """Return the page of a report. What others wrote is escaped."""
    styles = resource("style.css")
    dark = _DARK.search(styles)
    if dark is None:
        raise ValueError("style.css has no dark colours")
    styles += f"@media screen and (prefers-color-scheme: dark) {{ :root {dark[1]} }}\n"
    return _PAGE.format(
        policy=escape(_POLICY),
        title=escape(safe_note(title)),
        styles=element("style", styles),
        content="".join(_sections(report, title)),
    )


def _sections(report: Report, title: str) -> Iterator[str]:
    """Yield notes and tables; where there is room, narrow tables stand beside each other."""
    for item in report.with_gates(report.content()):
        if isinstance(item, Sheet):
            heading = f"<h2>{escape(safe_note(item.title))}</h2>\n" if item.title else ""
            table = html.table(item.head, item.rows, labels=item.labels, title="")
            body = f'{heading}<div class="scroll" tabindex="0">{table}</div>\n'
            width = "wide" if len(item.head) > NARROW else "narrow"
            yield f'<section class="card {width}">\n{body}</section>\n'
        elif item.startswith("SIMULATED"):
            yield f'<div class="note grave">{html.paragraph(item)}</div>\n'
        elif item.rstrip(".") != title:
            yield html.paragraph(item)
