"""What of the files behind a report could not be imported."""

from collections.abc import Collection, Mapping

from asyncbench.store import Manifest


def left_out_of(manifest: Manifest, *, runs: Collection[str]) -> dict[str, int]:
    """Return how many entries of their files could not be used: run → entries, never 0.

    A file that gave nothing is named with any runs: it has no trials that would tell its suites.
    """
    return {
        run: entries
        for run, said in manifest.get("runs", {}).items()
        if (entries := said.get("left_out", 0)) and (run in runs or not said["planned"])
    }


def left_out_at_import(entries: Mapping[str, int]) -> list[str]:
    """Return it as a sentence; none where nothing was left out."""
    runs = ", ".join(f"{run} {count:,}" for run, count in entries.items())
    return [f"Entries of files left out at import, by run: {runs}."] if runs else []
