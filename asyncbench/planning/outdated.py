"""Grades that are out of date: of trials whose problem has another answer now, or another grader."""

from collections import Counter
from collections.abc import Collection, Container, Sequence
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.files import quoted
from asyncbench.planning.belonging import current_copies
from asyncbench.problems.copies import ProblemTable, copy_files
from asyncbench.problems.problem_set import contract_batches
from asyncbench.records import GRADER_ERROR, NO_VERSION
from asyncbench.store.bucket.fetching import display_name
from asyncbench.store.catalog import read_grades, read_trials
from asyncbench.suites import custom
from asyncbench.suites.handed_functions import SESSION, session_name
from asyncbench.suites.plugins import is_in_file
from asyncbench.suites.table import SUITES, grader_versions
from asyncbench.tables.numbers import number_of


def corrected(folder: Path, used: Sequence[Path]) -> int:
    """Return how many finished trials were graded by an answer that their problem has no longer.

    Args:
        folder: a results folder.
        used: the copies in it that count now; where two hold a problem, the first does.

    Raises:
        ProblemSetError, StoreError: a copy or a part cannot be read.
    """
    names = {path.name for path in used}
    earlier = [path for path in copy_files(folder) if path.name not in names]
    if not earlier:
        return 0  # nothing can have changed: a set with another answer is another copy
    now = pa.concat_tables(map(_answers, used)).combine_chunks()
    changed = pa.concat_tables(_others(_answers(path), now) for path in earlier).combine_chunks()
    if not len(changed):
        return 0
    ids = pc.unique(changed["problem_id"])
    graded = read_trials(folder, ["problem_id", "expected"], pc.field("problem_id").isin(ids))
    return len(_others(graded, now))


def ungraded(folder: Path, by: Literal["model", "grader"], *, again: Container[str] = ()) -> Counter[str]:
    """Return how many finished trials a grader stumbled over, by alias or grader.

    Args:
        folder: a results folder.
        by: which of the two.
        again: trials that are asked again, and graded then: they do not count.

    Raises:
        StoreError: a part cannot be read.
    """
    # By the version parts without such grades are passed over unread.
    failed = (pc.field("grader_version") == NO_VERSION) & (pc.field("reason") == GRADER_ERROR)
    rows = read_grades(folder, ["trial_id", by], failed & pc.field("headline")).to_pylist()
    return Counter(row[by] for row in rows if row["trial_id"] not in again)


OF_SESSION: Final = " of a Python session"
StoredGrader = tuple[str, str, int]  # suite, name and version


def outgraded_notes(folder: Path, stored: Collection[StoredGrader] | None = None) -> list[str]:
    """Return notes on trials without a grade, or with a grade of another grader or version than today's.

    Args:
        folder: a results folder, on this machine.
        stored: whose headline grades it holds, and perhaps others. [those are looked up]

    Raises:
        ProblemSetError, StoreError: a copy or a part cannot be read.
    """
    if stored is None:
        columns = ["suite", "grader", "grader_version"]
        grades = read_grades(folder, columns, pc.field("headline")).group_by(columns).aggregate([])
        stored = {(row["suite"], row["grader"], row["grader_version"]) for row in grades.to_pylist()}
    counts = Counter[str]()
    for suite in {suite for suite, _, _ in stored} & {*SUITES}:
        graders = {(name, version) for graded_suite, name, version in stored if graded_suite == suite}
        if suite == custom.SUITE.name:
            counts += _own_grader_counts(folder, graders)
            continue

        # Other versions of the suite's graders than today's.
        today = grader_versions(suite)
        for name, version in graders:
            if version not in (today.get(name, version), NO_VERSION):
                wanted = (pc.field("suite") == suite) & (pc.field("grader") == name) & pc.field("headline")
                rows = read_grades(folder, ["grader"], wanted & (pc.field("grader_version") == version))
                counts[f"another version of {name}"] += len(rows)

    again = f"asyncbench regrade {quoted(display_name(folder))} --write"
    notes = list[str]()
    for grader, trials in sorted(counts.items()):
        way_out = f"Grade them again: `{again}`"
        if grader.endswith(OF_SESSION):
            way_out = "To grade them again, define the grader in a file"
        notes.append(f"{trials:,} trials were graded by {grader}. {way_out}")
    if any(version == NO_VERSION for _, _, version in stored):
        notes += [
            f"{number_of(trials, 'trial')} without a grade (counted as not right): {grader} failed on the "
            f"reply. Correct it, then grade again: `{again}`"
            for grader, trials in sorted(ungraded(folder, "grader").items())
        ]
    return notes


def _own_grader_counts(folder: Path, stored: Collection[tuple[str, int]]) -> Counter[str]:
    """Return how many trials of somebody's own problems another grader graded than they name now."""
    problems = ProblemTable(current_copies(folder), (), ["problem_id", "extra"])
    extras: list[str] = problems.rows["extra"].to_pylist()  # type: ignore[assignment]  # never NULL
    graders = {extra: custom.named_grader(extra) for extra in {*extras}}
    if len(stored) == 1 and {*stored} == {*graders.values()}:
        return Counter()  # as of most folders: one grader, today as before

    wanted = pc.field("suite") == custom.SUITE.name
    trials = read_trials(folder, ["trial_id", "problem_set", "problem_id"], wanted)
    grades = read_grades(folder, ["trial_id", "grader", "grader_version"], wanted & pc.field("headline"))
    graded = trials.take(pc.index_in(grades["trial_id"], value_set=trials["trial_id"]))
    names = pa.array([graders[extra][0] for extra in extras], pa.string())
    versions = pa.array([graders[extra][1] for extra in extras], pa.int64())
    rows = problems.rows_of(graded)
    compared = pa.table(
        {
            "grader": grades["grader"],
            "version": grades["grader_version"],
            "grader_now": names.take(rows),
            "version_now": versions.take(rows),
        }
    )
    counts = Counter[str]()
    for row in compared.group_by(compared.column_names).aggregate([([], "count_all")]).to_pylist():
        grader, now = row["grader"], row["grader_now"]
        if now is not None and grader != now:
            counts[f"{grader}, but the sweep names {now} now"] += row["count_all"]
        elif now is not None and row["version"] not in (row["version_now"], NO_VERSION):
            file = f"{grader.partition(':')[0]}.py" if is_in_file(grader) else grader
            version = f"another version of {file}"
            if grader.startswith(SESSION):
                version = f"another function {session_name(grader)!r}{OF_SESSION}"
            counts[version] += row["count_all"]
    return counts


def _answers(path: Path) -> pa.Table:
    return pa.Table.from_batches(contract_batches(path, columns=["problem_id", "expected"]))


def _others(rows: pa.Table, now: pa.Table) -> pa.Table:
    """Return the rows whose problem is there now, with another answer than theirs."""
    index = pc.index_in(rows["problem_id"], value_set=now["problem_id"])
    both = rows.append_column("now", now["expected"].take(index))
    return both.filter(pc.field("expected") != pc.field("now")).select(rows.column_names)
