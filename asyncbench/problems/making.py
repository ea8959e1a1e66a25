"""Making problem sets: generated from a seed, written with results, copied beside them."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.files import replacing, storing, writing
from asyncbench.problems.identity import with_ids
from asyncbench.problems.problem_set import ProblemSet, Said, metadata_of
from asyncbench.problems.schema import PROBLEM_SCHEMA, ROWS_AT_ONCE, batches_of
from asyncbench.problems.survey import CellCounts, Survey
from asyncbench.problems.workers import draft_batches
from asyncbench.records import Problem
from asyncbench.suites.suite import Suite
from asyncbench.suites.table import SUITES

Writing = Callable[[Path], AbstractContextManager[None]]  # what becomes of the system's refusal to write


def generate(
    suite: str | Suite, out: str | PathLike[str], *, seed: int = 0, workers: int = 1, **parameters: object
) -> ProblemSet:
    """Generate the problems of a suite and write them to a Parquet file, whole or not at all.

        problems = ab.generate("llm_arithmetic", "problems.parquet", seed=7)
        print(problems.rows)

    Args:
        suite: the name of a suite.
        out: the file. An existing one is replaced.
        seed: the same seed and parameters give the same problems on every machine.
        workers: how many processes work on it; the problems stay the same. In a script, more than one needs
            `if __name__ == "__main__":`.
        parameters: those of the suite; `asyncbench suites` lists them.

    Returns:
        A `ProblemSet`: the path, the number of rows and the digest.

    Raises:
        ConfigError: A suite or parameter is unknown, or `out` cannot be a file.
        StoreError: The file cannot be written.
    """
    if isinstance(suite, str) and suite not in SUITES:
        raise ConfigError(f"no suite {suite!r}. Known: {', '.join(SUITES)}.")
    chosen = SUITES[suite] if isinstance(suite, str) else suite
    place = f"generate {chosen.name}"
    values = chosen.parsed(parameters, place=place)
    if chosen.generate is None:
        raise ConfigError(f"{place}: the problems of this suite are your own file. Name it in the sweep.")
    if workers < 1:
        raise ConfigError(f"{place}: workers: {workers} is too small: at least 1")
    out, cells = Path(out), CellCounts()

    def made(survey: Survey) -> ProblemSet:
        if not survey.rows:
            raise ConfigError(f"{place}: these parameters leave nothing to generate. Change them: {values}")
        return ProblemSet(
            path=out,
            name=out.stem,
            generator_version=chosen.generator_version,
            seed=seed,
            parameters=values,
            counts=cells.counts,
            **survey.facts,
        )

    batches = with_ids(draft_batches(chosen, seed, values, workers=workers, rows=ROWS_AT_ONCE))
    return _written(map(cells.add, batches) if chosen.rows else batches, out, made, told=writing)


def write_problems(problems: Iterable[Problem], out: Path, *, told: Writing = storing) -> ProblemSet:
    """Write problems that others made, by default into a results folder.

    Raises:
        StoreError: they cannot be written there; what else `told` makes of that.
    """

    def made(survey: Survey) -> ProblemSet:
        return ProblemSet(path=out, name=out.stem, **survey.facts)

    return _written(batches_of(iter(problems), rows=ROWS_AT_ONCE), out, made, told=told)


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
    out = folder / f"{problems.name}-{problems.digest[:12]}.parquet"
    copy = replace(problems, path=out, custom=None)

    def made(survey: Survey) -> ProblemSet:
        if survey.digest != problems.digest:
            raise ProblemSetError(f"{problems.path}: the file changed while it was read. Start again.")
        return copy

    if is_sound(out) and Said.by(pq.read_metadata(out).metadata).digest == problems.digest:
        return copy
    return _written(problems.batches(ROWS_AT_ONCE), out, made, told=storing, seal=seal)


def _written(
    batches: Iterable[pa.RecordBatch],
    out: Path,
    made: Callable[[Survey], ProblemSet],
    *,
    told: Writing,
    seal: Callable[[Path], None] = lambda _: None,
) -> ProblemSet:
    """Write batches to `out` and return the set that they are `made` into, which may still be refused."""
    survey = Survey()
    with told(out), replacing(out) as file:
        with pq.ParquetWriter(file, PROBLEM_SCHEMA, compression="zstd") as writer:
            for batch in batches:
                survey.add(batch)
                writer.write_batch(batch)
            problems = made(survey)
            writer.add_key_value_metadata(metadata_of(problems))
        file.flush()
        seal(Path(file.name))
    return problems
