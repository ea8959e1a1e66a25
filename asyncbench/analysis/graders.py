"""The graders of the trials of a folder."""

from collections.abc import Iterable
from dataclasses import dataclass

from asyncbench.analysis.counting import FolderViews


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """Who graded a suite."""

    suite: str
    grader: str
    versions: tuple[int, ...]  # ascending


def graders_of(views: FolderViews, grades: str) -> tuple[Graded, ...]:
    """Return the graders of some grades, by suite.

    Args:
        views: of the folder.
        grades: a table of them, with the columns suite, grader and grader_version.
    """
    rows = views.rows(
        "SELECT suite, grader, list(DISTINCT grader_version ORDER BY grader_version) AS versions "  # noqa: S608  ours
        f"FROM {grades} GROUP BY suite, grader ORDER BY suite, grader"
    )
    return tuple(Graded(**row | {"versions": tuple(row["versions"])}) for row in rows)


def headline_graders(views: FolderViews) -> tuple[Graded, ...]:
    """Return the graders whose grades count."""
    grades = "headline_grades" if "headline_grades" in views.definitions else "(FROM grades WHERE headline)"
    return graders_of(views, grades)


def graded_by(graders: Iterable[Graded]) -> str:
    """Return in a sentence who graded which suite."""
    phrases = (
        f"{graded.suite} by {graded.grader} "
        f"{' and '.join(f'v{n}' for n in graded.versions) or '(version unknown)'}"
        for graded in graders
    )
    return f"Graders: {', '.join(phrases)}."
