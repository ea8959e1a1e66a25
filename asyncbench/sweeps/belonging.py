"""Whether a sweep and a results folder belong together: a folder that was moved or copied is its own."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from asyncbench.bucket import s3_address
from asyncbench.config import ProblemSource, Sweep
from asyncbench.files import input_path
from asyncbench.plugins import is_in_file
from asyncbench.problems import ProblemSet, open_set, remote_address
from asyncbench.store import copies, folder_of_sweep_file, is_results_folder, read_manifest


def cautions_on_copy(sweep: Sweep, in_batches: int) -> Iterator[str]:
    """Yield what to know of a folder that is a copy, or no longer the one that a bucket gets.

    Args:
        sweep: read from the folder's own sweep file.
        in_batches: how many of its trials are in open batches.
    """
    here, before = sweep.out, sweep.moved_from
    if before is None:
        return
    if (address := s3_address(before)) is not None:
        yield f"{here} was copied from {address}, and stands alone: {address} gets nothing of this run"
        return
    if not _is_copy(here, Path(before)):
        return
    yield (
        f"{here} is a copy of {before}, which is still there. Each asks, and pays, what it lacks itself. Go "
        "on in one of the two"
    )
    if in_batches:
        yield (
            f"{in_batches:,} trials are in open batches that {before} waits for, too. Collect or cancel them "
            "in one of the two, and delete the other: it may find them gone, and ask them again"
        )


def _is_copy(folder: Path, other: Path) -> bool:
    """Return whether two folders began as one."""
    if not is_results_folder(other) or folder.samefile(other):
        return False
    return _birth(read_manifest(folder)) == _birth(read_manifest(other))


def _birth(manifest: Mapping[str, object]) -> tuple[object, object]:
    return manifest["sweep"], manifest.get("created_at")


def copy_of_lost(source: ProblemSource, sweep: Sweep) -> ProblemSet | None:
    """Return the copy of a set in the folder that a sweep was read from, where its file is not at hand.

    None: it is, or the copy does not suffice: recorded answers and graders of somebody's own are files, too.

    Raises:
        ProblemSetError: the copy is damaged.
        StoreError: the folder's manifest cannot be read.
    """
    folder = None if sweep.file is None else folder_of_sweep_file(sweep.file)
    if folder is None or source.path is None or remote_address(source.path) is not None:
        return None
    if source.run is not None or is_in_file(source.grader or ""):
        return None
    if input_path(source.path, sweep.file).exists():
        return None
    used = read_manifest(folder).get("problem_sets", {})
    name = source.path.stem
    alike = [copy.path for copy in copies(folder) if copy.problem_set == name and copy.path.name in used]
    return open_set(alike[0], name=name) if len(alike) == 1 else None
