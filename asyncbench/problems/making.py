"""Making problem sets: generating them from a seed, writing them, and copying them into results."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from shutil import copyfileobj

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.files import local, replacing, storing, writing
from asyncbench.problems.files import content_in, opened_parquet
from asyncbench.problems.problem_set import ProblemSet, Survey, metadata_in, metadata_of, state_of
from asyncbench.problems.schema import PROBLEM_SCHEMA, ROWS_AT_ONCE, add_ids, batches_of, draft_batches
from asyncbench.records import Problem
from asyncbench.suites.suite import Suite
from asyncbench.suites.table import SUITES

Writing = Callable[[Path], AbstractContextManager[None]]  # what becomes of the system's refusal to write


def generate(
    suite: str | Suite,
    out: str | PathLike[str],
    *,
    seed: int = 0,
    exclude: Iterable[str | PathLike[str]] = (),
    **parameters: object,
) -> ProblemSet:
    """Generate the problems of a suite and write them to a Parquet file, whole or not at all.

        problems = ab.generate("llm_arithmetic", "problems.parquet", seed=7)
        print(problems.rows)

    Args:
        suite: the name of a suite.
        out: the file. An existing one is replaced.
        seed: the same seed and parameters give the same problems on every machine. [0]
        exclude: problem sets whose questions are left out: a test set, of training data. [none]
        parameters: those of the suite; `asyncbench suites` lists them. [the suite's own]

    Returns:
        A `ProblemSet`: the path, the number of rows and the digest.

    Raises:
        ConfigError: A suite or parameter is unknown, or `out` cannot be a file.
        ProblemSetError: One of `exclude` is no problem set.
        StoreError: The file cannot be written.
    """
    if isinstance(suite, str) and suite not in SUITES:
        raise ConfigError(f"no suite {suite!r}. Known: {', '.join(SUITES)}.")
    chosen = SUITES[suite] if isinstance(suite, str) else suite
    place = f"generate {chosen.name}"
    values = chosen.parsed(parameters, place=place)
    if chosen.generate is None:
        raise ConfigError(f"{place}: the problems of this suite are your own file. Name it in the sweep.")
    out = local(out)

    def made(survey: Survey) -> ProblemSet:
        if not survey.rows:
            raise ConfigError(f"{place}: these parameters leave nothing to generate. Change them: {values}")
        if (suites := [*survey.facts["tasks"]]) != [chosen.name]:
            raise ConfigError(
                f"{place}: its problems are of suite {', '.join(suites)}. Write `suite={chosen.name!r}` in "
                "its drafts."
            )
        return ProblemSet(
            path=out,
            name=out.stem,
            generator_version=chosen.generator_version,
            seed=seed,
            parameters=values,
            **survey.facts,
        )

    drafts = draft_batches(chosen.generate(seed, values))
    if excluded := tuple(map(Path, exclude)):
        drafts = _new_drafts(drafts, excluded)
    return _written(add_ids(drafts), out, made, writing=writing, cells=chosen.has_small_cells)


def _new_drafts(drafts: Iterable[pa.RecordBatch], excluded: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    """Yield drafts but those whose question one of the excluded sets holds."""
    from asyncbench.problems.opening import open_set  # which reads what is made here

    batches = chain.from_iterable(open_set(path).batches(ROWS_AT_ONCE) for path in excluded)
    columns = [batch.column("question") for batch in batches]
    questions = pa.chunked_array(columns, pa.string()).combine_chunks()
    for batch in drafts:
        if kept := batch.filter(pc.invert(pc.is_in(batch.column("question"), value_set=questions))):
            yield kept


def write_problems(problems: Iterable[Problem], out: Path, *, writing: Writing = storing) -> ProblemSet:
    """Write problems that others made, by default into a results folder.

    Raises:
        StoreError: they cannot be written there; or as `writing` has it.
    """

    def made(survey: Survey) -> ProblemSet:
        return ProblemSet(path=out, name=out.stem, **survey.facts)

    return _written(batches_of(iter(problems)), out, made, writing=writing)


def copy_into(
    problems: ProblemSet,
    folder: Path,
    *,
    seal: Callable[[Path], None] = lambda _: None,
    is_sound: Callable[[Path], bool] = lambda _: False,
) -> ProblemSet:
    """Put a set into a results folder, in the contract's form, so that the folder stands alone.

    Args:
        problems: the set.
        folder: where copies are; one that is there already is kept if it is sound.
        seal: is given the written file before it has its name.
        is_sound: whether a file is as it was sealed.

    Raises:
        ProblemSetError: the file changed since it was checked.
        StoreError: the folder cannot be written.
    """
    out = _copy_path(folder, problems.name, problems.digest)
    copy = replace(problems, path=out, custom=None, state=None)

    def made(survey: Survey) -> ProblemSet:
        if survey.digest != problems.digest:
            raise _changed(problems)
        return copy

    if is_sound(out) and metadata_in(pq.read_metadata(out).metadata).get("digest") == problems.digest:
        return copy
    if _is_as_copied(problems):
        with storing(out), replacing(out) as file:
            with problems.path.open("rb") as source:
                copyfileobj(source, file, 2**20)
            file.flush()
            if state_of(problems.path) != problems.state:
                raise _changed(problems)
            seal(Path(file.name))
        return copy
    return _written(problems.batches(ROWS_AT_ONCE), out, made, writing=storing, seal=seal)


def copy_some(
    problems: ProblemSet,
    problem_ids: "pa.ChunkedArray[pa.StringScalar]",
    folder: Path,
    *,
    seal: Callable[[Path], None],
) -> ProblemSet:
    """Put the problems of a set that have some ids into a results folder, as a set of the same name.

    Raises:
        ProblemSetError: the set can no longer be read.
        StoreError: the folder cannot be written.
    """

    def chosen() -> Iterator[pa.RecordBatch]:
        for batch in problems.batches(ROWS_AT_ONCE):
            if kept := batch.filter(pc.is_in(batch.column("problem_id"), value_set=problem_ids)):
                yield kept

    survey = Survey()
    for batch in chosen():
        survey.add(batch)
    out = _copy_path(folder, problems.name, survey.digest)
    subset = replace(problems, path=out, counts={}, custom=None, state=None, **survey.facts)
    return _written(chosen(), out, lambda _: subset, writing=storing, seal=seal)


def _copy_path(folder: Path, name: str, digest: str) -> Path:
    return folder / f"{name}-{digest[:12]}.parquet"


def _is_as_copied(problems: ProblemSet) -> bool:
    """Return whether a set's file is what `_written` would make of it."""
    if problems.state is None or content_in(problems.path).form != "parquet":
        return False
    ours = {b"ARROW:schema", *(key.encode() for key in metadata_of(problems))}
    with opened_parquet(problems.path) as file:
        groups = map(file.metadata.row_group, range(file.num_row_groups))
        same = file.schema_arrow.equals(PROBLEM_SCHEMA) and {*(file.metadata.metadata or {})} == ours
        return same and all(group.num_rows <= ROWS_AT_ONCE for group in groups)


def _changed(problems: ProblemSet) -> ProblemSetError:
    return ProblemSetError(f"{problems.path}: the file changed while it was read. Start again.")


def _written(
    batches: Iterable[pa.RecordBatch],
    out: Path,
    made: Callable[[Survey], ProblemSet],
    *,
    writing: Writing,
    seal: Callable[[Path], None] = lambda _: None,
    cells: bool = False,
) -> ProblemSet:
    """Write batches to `out` and return the set that they are `made` into, which may still be refused."""
    survey = Survey(cells=cells)
    with writing(out), replacing(out) as file:
        with pq.ParquetWriter(file, PROBLEM_SCHEMA, compression="zstd") as writer:
            for batch in batches:
                survey.add(batch)
                writer.write_batch(batch)
            problems = made(survey)
            writer.add_key_value_metadata(metadata_of(problems))
        file.flush()
        seal(Path(file.name))
    return problems
