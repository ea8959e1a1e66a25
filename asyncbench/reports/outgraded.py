"""A note on trials whose grades are those of another grader than the sweep names now."""

from contextlib import suppress

from asyncbench.analysis.counting import FolderViews, once
from asyncbench.analysis.graders import headline_graders
from asyncbench.errors import ProblemSetError
from asyncbench.planning.outdated import outgraded_notes


@once
def outgraded_in(views: FolderViews) -> tuple[str, ...]:
    """Return notes on all such trials of the folders, if there are any."""
    stored = {(who.suite, who.grader, n) for who in headline_graders(views) for n in who.versions}
    notes = list[str]()
    for _, path in views.folders:
        with suppress(ProblemSetError):  # a damaged copy, which `verify` names: the figures need none
            notes += outgraded_notes(path, stored)
    return tuple(notes)
