"""What a person reads: results on standard output, messages on standard error, neither with an API key."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from asyncbench.shown import Report

KEYS: set[str] = set()  # API keys that this command was given


def show(report: "Report", *, as_json: bool = False, markdown: bool = False, latex: bool = False) -> None:
    """Print a report in the form asked for; LaTeX before JSON before Markdown before text."""
    if latex:
        typer.echo(report.as_latex())
    else:
        typer.echo(report.as_json() if as_json else report.as_markdown() if markdown else report.as_text())


def harmless(text: str) -> str:
    """Return the lines of a message that may quote what others wrote."""
    from asyncbench.shown import safe_note

    return "\n".join(map(safe_note, text.split("\n")))


def withheld(text: str) -> str:
    """Return a traceback without what may be a key: libraries quote what a server said."""
    from asyncbench.providers import looks_secret, without_secret

    named = {value for name, value in os.environ.items() if looks_secret(name)}
    for secret in sorted(named | KEYS, key=len, reverse=True):
        text = without_secret(text, key=secret)
    return text


@contextmanager
def interruptible(what_now: str) -> Iterator[None]:
    """Answer Ctrl-C with one line and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"asyncbench: interrupted; {what_now}", err=True)
        raise typer.Exit(130) from None
