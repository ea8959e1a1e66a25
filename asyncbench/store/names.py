"""Names that become names of folders and files, on disks that do not keep all of them apart."""

from collections.abc import Collection, Iterable
from itertools import chain, combinations
from unicodedata import normalize

from asyncbench.errors import ConfigError


def folded(name: str) -> str:
    """Return the same text for names that some disk takes for one.

    macOS and Windows take no notice of capitals, macOS none of how an accent is written, and Windows none
    of dots and blanks at the end.
    """
    return normalize("NFC", normalize("NFD", name).casefold()).rstrip(". ")


def check_apart(names: Iterable[str], *taken: Collection[str], place: str, way_out: str) -> None:
    """Refuse names that a disk may take for one: the files of one would take the place of the other's.

    Args:
        names: of models, of shared limits or of runs.
        held: the names that each results folder holds already. Those of one folder are not refused, for its
            disk keeps them apart.
        place: where they are named, for the message.
        way_out: what to do, for the message.

    Raises:
        ConfigError: names two of them, or one that ends with a dot, which Windows leaves out.
    """
    every = sorted({*names, *chain(*taken)})
    for name in every:
        if name.endswith(".") and not any(name in folder for folder in taken):
            raise ConfigError(
                f"{place}: {name!r} names a folder, and Windows leaves out the dot at its end. {way_out}."
            )
    for first, second in combinations(every, 2):
        together = any(first in folder and second in folder for folder in taken)
        if folded(first) == folded(second) and not together:
            raise ConfigError(
                f"{place}: {first!r} and {second!r} differ only in capitals or in how characters are "
                "written. Disks of macOS and Windows take them for one, and the files of one model would "
                f"replace those of the other. {way_out}."
            )
