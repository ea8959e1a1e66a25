"""The result files of a part, held against its manifest: each trial once, in any order."""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from asyncbench.batches.checking import owners_of
from asyncbench.batches.formats import reading
from asyncbench.batches.packing import BatchPart
from asyncbench.batches.result_lines import LineKind, ResultLine, read_line


class Harvest:
    """Reads the files of one part, as many as there are and as often as one must.

    A line that says the same again changes nothing. In memory is a digest for each line of the part.
    """

    def __init__(self, part: BatchPart, folder: Path) -> None:
        """Begin; raises StoreError when the manifest cannot be read."""
        self._part = part
        self._missing = {part.custom_id(str(owner["trial_id"])) for owner in owners_of(part, folder)}
        self._seen: dict[str, bytes] = {}
        # Digests of lines, so that one is counted once however often it is read.
        self.foreign = set[bytes]()  # of requests that this part did not make
        self.contradicting = set[bytes]()  # of a request whose first line said something else, and counts
        self.broken = set[bytes]()  # that cannot be read, or not to their end

    @property
    def missing(self) -> frozenset[str]:
        """The trials that no line was found of, by id."""
        return frozenset(custom_id[: -len(self._part.batch_key)] for custom_id in self._missing)

    @property
    def sound(self) -> bool:
        """Whether every line was one of ours and could be read; else the files are worth keeping."""
        return not (self.foreign or self.contradicting or self.broken)

    def read(self, path: Path) -> Iterator[tuple[str, ResultLine]]:
        """Yield trial id and line, of each trial the first time that it is found.

        Lines end with `\\n` alone: U+2028 and its like may stand within a text.

        Raises:
            StoreError: the file cannot be read.
        """
        with reading(path) as file:
            for raw in file:
                if (line := self._new(raw)) is not None:
                    yield line.custom_id[: -len(self._part.batch_key)], line

    def _new(self, raw: bytes) -> ResultLine | None:
        """Return a line that says something new of a trial of ours, and count what is wrong."""
        line, digest = read_line(raw, self._part.vendor), blake2b(raw.strip(), digest_size=16).digest()
        if line.kind is LineKind.BROKEN:
            self.broken |= {digest} if raw.strip() else set()
        elif line.custom_id in self._missing:
            self._missing.remove(line.custom_id)
            self._seen[line.custom_id] = digest
            return line
        elif line.custom_id not in self._seen:
            self.foreign.add(digest)
        elif self._seen[line.custom_id] != digest:
            self.contradicting.add(digest)
        return None
