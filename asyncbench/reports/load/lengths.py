"""The lengths that a load asked for, beside those that the server counted."""

from pathlib import Path

import pyarrow.compute as pc

from asyncbench.store.catalog import read_attempts


def lengths_text(folder: Path, tokens: int, reply_tokens: int) -> str:
    """Return what the server counted of questions and replies that were to have so many tokens.

    Raises:
        StoreError: the folder cannot be read.
    """
    answered = read_attempts(folder, ["input_tokens", "output_tokens"], [("status", "==", "ok")])
    counted, written = (answered[name].drop_null() for name in ("input_tokens", "output_tokens"))
    if not len(counted):
        return f"Asked {tokens:,} in (the server counted none), {reply_tokens:,} out."
    least, most = pc.min(counted).as_py(), pc.max(counted).as_py()
    shorter = sum((length or 0) < reply_tokens for length in written.to_pylist())
    return (
        f"Asked {tokens:,} in (server counted {least:,}–{most:,}), {reply_tokens:,} out; "
        f"{shorter:,} of {len(answered):,} shorter."
    )
