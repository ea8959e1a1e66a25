"""What charts call models, lanes and tasks: harmless, not too long, and never two of them alike."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from asyncbench.shown import safe

LONGEST_NAME: Final = 40  # characters, which axes have room for; a number that tells two apart may follow

Task = tuple[str, str]  # suite, task


def told_apart(names: Iterable[str]) -> dict[str, str]:
    """Return names as charts show them, by the whole name; all of a chart have to be given together.

    Of a long name the beginning and the end are shown; those that look alike then are numbered.
    """
    found = dict.fromkeys(names, "")  # in the order in which they are given
    taken: set[str] = set()
    for name in sorted(found, key=lambda one: (len(one) > LONGEST_NAME, one)):
        found[name] = _another(shortened(name), taken)
        taken.add(found[name])
    return found


def _another(shown: str, taken: set[str]) -> str:
    """Return a text, with a number where it is taken."""
    number, numbered = 1, shown
    while numbered in taken:
        number += 1
        numbered = f"{shown} ({number})"
    return numbered


def shortened(name: str) -> str:
    """Return a name on one line that does nothing, `LONGEST_NAME` characters at most: cut in the middle."""
    ends = name if len(name) <= 2 * LONGEST_NAME else name[:LONGEST_NAME] + name[-LONGEST_NAME:]
    shown = safe(ends, most=len(ends))
    if len(shown) <= LONGEST_NAME:
        return shown
    half = LONGEST_NAME // 2
    return f"{shown[:half]}…{shown[half + 1 - LONGEST_NAME :]}"


def tasks_shown(tasks: Iterable[Task]) -> dict[Task, str]:
    """Return what to call tasks: with the suite where several suites have one of that name."""
    found = set(tasks)
    suites = defaultdict[str, set[str]](set)
    for suite, task in found:
        suites[task].add(suite)
    whole = {(suite, task): f"{suite}/{task}" if len(suites[task]) > 1 else task for suite, task in found}
    shown = told_apart(whole.values())
    return {one: shown[name] for one, name in whole.items()}


def finest(cells: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], str]:
    """Return what to call task, variant and representation: all three where a task has several of these.

    So no curve is through unlike numbers. `Any`: the cells of a table.
    """
    found = {(cell["task"], cell["variant"] or "", cell["representation"] or "") for cell in cells}
    forms = defaultdict[str, set[tuple[str, str]]](set)
    for task, *form in found:
        forms[task].add((form[0], form[1]))
    return {one: " ".join(filter(None, one)) if len(forms[one[0]]) > 1 else one[0] for one in found}
