"""Which graders, and which versions of them, stand behind a report."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """Who graded a suite."""

    suite: str
    grader: str
    versions: tuple[int, ...]  # ascending


def graders_of(grades: pa.Table) -> tuple[Graded, ...]:
    """Return who graded, by suite; `grades` has the columns suite, grader and grader_version."""
    used = grades.group_by(["suite", "grader", "grader_version"], use_threads=False).aggregate([])
    versions = defaultdict[tuple[str, str], set[int]](set)
    for row in used.to_pylist():
        versions[row["suite"], row["grader"]].add(row["grader_version"])
    return tuple(
        Graded(suite=suite, grader=grader, versions=tuple(sorted(versions[suite, grader])))
        for suite, grader in sorted(versions)
    )


def graded_by(graders: Iterable[Graded]) -> str:
    """Return it as a sentence."""
    return f"Graded: {', '.join(map(_by, graders))}."


def _by(one: Graded) -> str:
    versions = " and ".join(f"v{n}" for n in one.versions) or "in no known version"
    return f"{one.suite} by {one.grader} {versions}"
