"""What changed in a golden file, in words: one sentence for each thing that a user sees otherwise."""

from collections import Counter
from collections.abc import Iterator, Sequence

# What a line of a file is, and what the line above it names that is indented less.
LINES = {
    "options.txt": "option or argument",
    "exit-codes.txt": "exit code",
    "python.txt": "Python name",
    "sweep-file.json": "line of the schema of sweep files",
    "json-keys.txt": "key of JSON",
    "tables.txt": "column",
    "printed-tables.txt": "heading",
    "files.txt": "file or key of a results folder",
    "ids.txt": "id",
}


def change_lines(name: str, before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Return what was added, removed and changed, a sentence each."""
    kind = LINES.get(name, "figure")
    removed, added = Counter(_placed(before)), Counter(_placed(now))
    gone, come = list((removed - added).elements()), list((added - removed).elements())

    # A line whose name stayed and whose value is another one is a change, not two.
    values = {(place, line.partition(": ")[0]): line for place, line in come if ": " in line}
    changed = [
        (place, line, values[place, line.partition(": ")[0]])
        for place, line in gone
        if (place, line.partition(": ")[0]) in values
    ]
    told = {(place, line) for place, line, _ in changed} | {(place, line) for place, _, line in changed}
    sentences = [
        f"changed {kind}{_within(place)}: {old}  →  {new.partition(': ')[2]}" for place, old, new in changed
    ]
    sentences += [f"new {kind}{_within(place)}: {line}" for place, line in come if (place, line) not in told]
    sentences += [
        f"no longer there, {kind}{_within(place)}: {line}"
        for place, line in gone
        if (place, line) not in told
    ]
    if not sentences and list(before) != list(now):
        line = next(new for old, new in zip(before, now, strict=True) if old != new)
        sentences.append(f"the same lines in another order, from {line.strip()!r} on")
    return sentences


def _placed(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each line with the lines that it stands below."""
    above: list[str] = []
    for line in lines:
        depth = 0 if line.startswith("##") else 1 + (len(line) - len(line.lstrip())) // 2
        del above[depth:]
        above += [""] * (depth - len(above))
        yield " › ".join(filter(None, above)), line.strip()
        above.append(line.strip().removeprefix("## ").partition(": ")[0].rstrip(" :="))


def _within(place: str) -> str:
    return f" of {place}" if place else ""
