"""What entrants and tasks are called, in which order: in tables in full, in charts short and harmless."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from asyncbench.store.manifest import Manifest, planned
from asyncbench.tables.screen import safe

LONGEST_NAME: Final = 40  # characters, which axes have room for; a number that tells two apart may follow
LONGEST_SHORT: Final = 28  # characters of a name beside a line or a dot
ROOM_FOR_NUMBER: Final = 5
SEPARATORS: Final = "/-_.@ "
_TELLING: Final = re.compile(r"\W?[^\W\d_].")  # a letter, perhaps in a bracket, and one more
_IN_BRACKETS: Final = re.compile(r"\([^()]+\)")

Entrant = tuple[str, str, str]  # run, model, condition: who is in a ranking
Task = tuple[str, str]  # suite, task


def in_order(entrants: Iterable[Entrant], manifest: Manifest) -> list[Entrant]:
    """Return them as they were planned; who was not planned comes last, by name."""
    places = {entrant: place for place, entrant in enumerate(planned(manifest))}
    models: dict[tuple[str, str], int] = {}
    for (run, model, _), place in places.items():
        models.setdefault((run, model), place)
    last = len(places)
    return sorted(entrants, key=lambda who: (models.get(who[:2], last), places.get(who, last), who))


def names_of(entrants: Collection[Entrant]) -> dict[Entrant, str]:
    """Return what to call each: condition and run are named only where a model has several.

    No two have one name: where aliases look like others' names (`a (b)` beside `a` under condition `b`), all
    of these are named whole, in quotes.
    """
    usual, whole = _usual_names(entrants), set[Entrant]()
    while True:
        named = {
            # quotes in names are escaped: no two are alike
            entrant: "{1!r} ({2!r}), run {0!r}".format(*entrant) if entrant in whole else name
            for entrant, name in usual.items()
        }
        times = Counter(named.values())
        alike = {entrant for entrant, name in named.items() if times[name] > 1} - whole
        if not alike:
            return named
        whole |= alike


def _usual_names(entrants: Collection[Entrant]) -> dict[Entrant, str]:
    conditions, runs = defaultdict[tuple[str, str], set[str]](set), defaultdict[str, set[str]](set)
    for run, model, condition in entrants:
        runs[model].add(run)
        conditions[run, model].add(condition)
    named = {}
    for run, model, condition in entrants:
        name = f"{model} ({condition})" if len(conditions[run, model]) > 1 else model
        named[run, model, condition] = f"{name}, run {run}" if len(runs[model]) > 1 else name
    return named


# ── in charts ────────────────────────────────────────────────────────────────────────────────


def told_apart(names: Iterable[str], *, most: int = LONGEST_NAME) -> dict[str, str]:
    """Return names as charts show them, by the whole name; all of a chart have to be given together.

    Of a long name the beginning and the end are shown; those that look alike then are numbered.
    """
    found = dict.fromkeys(names, "")  # in the order in which they are given
    taken: set[str] = set()
    for name in sorted(found, key=lambda name: (len(name) > most, name)):
        short = shortened(name, most=most)
        numbered = (short if n == 1 else f"{short} ({n})" for n in count(1))
        found[name] = next(shown for shown in numbered if shown not in taken)
        taken.add(found[name])
    return found


def shortened(name: str, *, most: int = LONGEST_NAME) -> str:
    """Return a name on one line that does nothing, `most` characters at most: cut in the middle."""
    ends = name if len(name) <= 2 * most else name[:most] + name[-most:]
    shown = safe(ends, most=len(ends))
    if len(shown) <= most:
        return shown
    half = most // 2
    return f"{shown[:half]}…{shown[half + 1 - most :]}"


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return names without what all of them begin with, `LONGEST_SHORT` characters at most, told apart.

    `groq/llama-3`, `groq/qwen-3` → `llama-3`, `qwen-3`. The beginning ends at a separator, and each of the
    rests begins with a letter: nobody is called `3`.
    """
    found = list(names)
    cut = _shared_beginning(found)
    shown = {name: name[cut:] for name in found}
    if all(_IN_BRACKETS.fullmatch(short) for short in shown.values()):
        shown = {name: short[1:-1] for name, short in shown.items()}
    apart = told_apart(shown.values(), most=LONGEST_SHORT - ROOM_FOR_NUMBER)
    whole = told_apart(shown.values(), most=LONGEST_SHORT)
    alike = Counter(shortened(short, most=LONGEST_SHORT) for short in shown.values())
    return {
        name: (apart if alike[shortened(short, most=LONGEST_SHORT)] > 1 else whole)[short]
        for name, short in shown.items()
    }


def _shared_beginning(names: Sequence[str]) -> int:
    """Return how many characters all names begin with, up to a separator behind which all can be told."""
    shared = 0
    for letters in zip(*names, strict=False):  # as long as the shortest
        if len(names) == 1 or len({*letters}) > 1:
            break
        shared += 1
    for cut in range(shared, 0, -1):
        rests = [name[cut:] for name in names]
        if names[0][cut - 1] in SEPARATORS and all(_TELLING.match(rest) for rest in rests):
            return cut
    return 0


def tasks_shown(tasks: Iterable[Task]) -> dict[Task, str]:
    """Return what to call tasks: with the suite where several suites have one of that name."""
    found = set(tasks)
    suites = Counter(task for _, task in found)
    whole = {(suite, task): f"{suite}/{task}" if suites[task] > 1 else task for suite, task in found}
    shown = told_apart(whole.values())
    return {task: shown[name] for task, name in whole.items()}


def finest(cells: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], str]:
    """Return what to call task, variant and representation: all three where a task has several of these.

    So no curve is through unlike numbers. `Any`: the cells of a table.
    """
    found = {(cell["task"], cell["variant"] or "", cell["representation"] or "") for cell in cells}
    forms = Counter(task for task, _, _ in found)
    return {kind: " ".join(filter(None, kind)) if forms[kind[0]] > 1 else kind[0] for kind in found}
