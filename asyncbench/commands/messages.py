"""What a person reads on standard error: messages that may quote others, and the answer to Ctrl-C."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer


def harmless(text: str) -> str:
    """Return the lines of a message that may quote what others wrote."""
    from asyncbench.shown import safe_note

    return "\n".join(map(safe_note, text.split("\n")))


@contextmanager
def interruptible(what_now: str) -> Iterator[None]:
    """Answer Ctrl-C with one line and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"asyncbench: interrupted; {what_now}", err=True)
        raise typer.Exit(130) from None
