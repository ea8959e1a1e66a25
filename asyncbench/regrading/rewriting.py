"""The new generation of `trials` and `grades`: part by part in the places of the old."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from asyncbench.errors import StoreError
from asyncbench.store import Generation, Part

Place = tuple[str, ...]  # the folders of a partition: suite=…, model=…


def rewritten(
    trials: Generation, grades: Generation, *, changed: Collection[Path]
) -> Iterator[tuple[Path, Part, Part]]:
    """Yield each part of `trials` with the two parts that its rows and their grades go to.

    A part is finished before the next one begins, so that few rows wait in memory.

    Args:
        trials: what takes the place of the trials.
        grades: what takes the place of the grades.
        changed: the parts of `trials`, of those yielded so far, whose rows or grades are others now. Where a
            partition has none of them, its earlier parts stay. (A part of `grades` may hold those of any
            trial of its partition, so a part alone cannot tell.)

    Raises:
        StoreError: trials stand without any grades beside them.
    """
    stored = _by_place(grades.earlier)
    for place, paths in _by_place(trials.earlier).items():
        beside = stored.pop(place, [])
        yield from _in_partition(paths, beside, trials, grades)
        if not any(path in changed for path in paths):
            trials.keep_after_all(paths)
            grades.keep_after_all(beside)
    for path in (path for paths in stored.values() for path in paths):  # of trials that are gone
        grades.keep(path)


def _in_partition(
    paths: Sequence[Path], stored: Sequence[Path], trials: Generation, grades: Generation
) -> Iterator[tuple[Path, Part, Part]]:
    """Pair the parts of a partition in their order; there may be more of one table than of the other."""
    if not stored:
        raise StoreError(f"no grades stand beside {paths[0]}: put back a copy of that part of `grades`")
    last = len(paths) - 1
    beside: Part | None = None
    for n, path in enumerate(paths):
        if own := stored[n:] if n == last else stored[n : n + 1]:
            if beside is not None:
                beside.finish()
            beside = grades.part(own)
        assert beside is not None  # noqa: S101  the first always has its own
        part = trials.part([path])
        yield path, part, beside
        part.finish()
    assert beside is not None  # noqa: S101  there is a part: the first had its own
    beside.finish()


def _by_place(paths: Iterable[Path]) -> dict[Place, list[Path]]:
    places: dict[Place, list[Path]] = {}
    for path in paths:
        places.setdefault(path.parent.parts[-2:], []).append(path)
    return places
