"""Names and order of entrants and tasks: whole in tables, short and safe in charts."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews, once
from asyncbench.providers.endpoints import is_simulated
from asyncbench.providers.wire import SIMULATOR
from asyncbench.store.manifest import Manifest, planned
from asyncbench.suites.llm_arithmetic import ARITHMETIC_TASKS
from asyncbench.suites.nupa.tasks import TASKS
from asyncbench.tables.screen import safe

LONGEST_NAME: Final = 40  # characters, which axes have room for; a number that tells two apart may follow
LONGEST_SHORT: Final = 28  # characters of a name beside a line or a dot
ROOM_FOR_NUMBER: Final = 5
LEAST_END: Final = 3  # of the beginning and of the end of a name whose middle tells it apart
SEPARATORS: Final = "/-_.@ "
_TELLING: Final = re.compile(r"\W?[^\W\d_].")  # a letter, perhaps in a bracket, and one more
_IN_BRACKETS: Final = re.compile(r"\([^()]+\)")

Entrant = tuple[str, str, str]  # run, model, condition: who is in a ranking
Task = tuple[str, str]  # suite, task


def sort_entrants(entrants: Iterable[Entrant], manifest: Manifest) -> list[Entrant]:
    """Return them as they were planned; who was not planned comes last, by name."""
    ranks = {entrant: rank for rank, entrant in enumerate(planned(manifest))}
    models: dict[tuple[str, str], int] = {}
    for (run, model, _), rank in ranks.items():
        models.setdefault((run, model), rank)
    last = len(ranks)
    return sorted(entrants, key=lambda who: (models.get(who[:2], last), ranks.get(who, last), who))


def names_of(entrants: Collection[Entrant]) -> dict[Entrant, str]:
    """Return what to call each: condition and run are named only where a model has several.

    No two have one name: where aliases look like others' names (`a (b)` beside `a` under condition `b`), all
    of these are named whole, in quotes.
    """
    # The usual names: of whoever is planned once, the model alone.
    conditions, runs = defaultdict[tuple[str, str], set[str]](set), defaultdict[str, set[str]](set)
    for run, model, condition in entrants:
        runs[model].add(run)
        conditions[run, model].add(condition)
    usual = dict[Entrant, str]()
    for run, model, condition in entrants:
        name = f"{model} ({condition})" if len(conditions[run, model]) > 1 else model
        usual[run, model, condition] = f"{name}, run {run}" if len(runs[model]) > 1 else name

    # Those that look alike are named whole, until no two are.
    whole = set[Entrant]()
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


# ── names in charts ──────────────────────────────────────────────────────────────────────────────


def distinct_names(names: Iterable[str], *, longest: int = LONGEST_NAME) -> dict[str, str]:
    """Return names as charts show them, by the whole name; all of a chart have to be given together.

    Of a long name the beginning and the end are shown. Where some look alike then, what tells them apart is
    shown, too: `groq/…8…turbo`, `groq/…70…turbo`. Where that has no room, they are numbered.
    """
    shown_as = dict.fromkeys(names, "")  # in the order in which they are given
    taken: set[str] = set()
    usual = {name: shortened(name, longest=longest) for name in shown_as}
    alike = defaultdict[str, list[str]](list)
    for name, short in usual.items():
        alike[short].append(name)
    for name in sorted(shown_as, key=lambda name: (len(name) > longest, name)):
        short = usual[name]
        if len(alike[short]) > 1:
            short = _distinguished(name, alike[short], longest=longest) or short
        numbered = (short if n == 1 else f"{short} ({n})" for n in count(1))
        shown_as[name] = next(shown for shown in numbered if shown not in taken)
        taken.add(shown_as[name])
    return shown_as


def _distinguished(name: str, alike: Sequence[str], *, longest: int) -> str:
    """Return a name with what of it differs from those that look like it; empty: that has no room."""
    start, end = _shared(alike), _shared([name[::-1] for name in alike])
    end = min(end, min(map(len, alike)) - start)
    rest = longest - (len(name) - start - end) - 2  # for both ends
    telling = name[start : len(name) - end]
    if not telling or rest < 2 * LEAST_END or not name.isprintable():
        return ""
    head, tail = rest - rest // 2, rest // 2
    return f"{name[:head]}…{telling}…{name[len(name) - tail :]}"


def _shared(names: Sequence[str]) -> int:
    """Return how many characters all names begin with."""
    first, last = min(names), max(names)
    return next((n for n, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1), len(first))


def shortened(name: str, *, longest: int = LONGEST_NAME) -> str:
    """Return a name on one line that does nothing, `longest` characters at most: cut in the middle."""
    ends = name if len(name) <= 2 * longest else name[:longest] + name[-longest:]
    shown = safe(ends, most=len(ends))
    if len(shown) <= longest:
        return shown
    half = longest // 2
    return f"{shown[:half]}…{shown[half + 1 - longest :]}"


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return names without what all of them begin with, `LONGEST_SHORT` characters at most, told apart.

    `groq/llama-3`, `groq/qwen-3` → `llama-3`, `qwen-3`. The beginning ends at a separator, and each of the
    rests begins with a letter: nobody is called `3`.
    """
    whole_names = list(names)

    # All names begin alike, up to a separator behind which all can be told.
    cut = 0
    for length in range(_shared(whole_names) if len(whole_names) > 1 else 0, 0, -1):
        rests = [name[length:] for name in whole_names]
        if whole_names[0][length - 1] in SEPARATORS and all(_TELLING.match(rest) for rest in rests):
            cut = length
            break
    shown = {name: name[cut:] for name in whole_names}
    if all(_IN_BRACKETS.fullmatch(short) for short in shown.values()):
        shown = {name: short[1:-1] for name, short in shown.items()}
    apart = distinct_names(shown.values(), longest=LONGEST_SHORT - ROOM_FOR_NUMBER)
    whole = distinct_names(shown.values(), longest=LONGEST_SHORT)
    alike = Counter(shortened(short, longest=LONGEST_SHORT) for short in shown.values())
    return {
        name: (apart if alike[shortened(short, longest=LONGEST_SHORT)] > 1 else whole)[short]
        for name, short in shown.items()
    }


def tasks_shown(tasks: Iterable[Task]) -> dict[Task, str]:
    """Return what to call tasks: with the suite where several suites have one of that name."""
    different = set(tasks)
    suites = Counter(task for _, task in different)
    whole = {(suite, task): f"{suite}/{task}" if suites[task] > 1 else task for suite, task in different}
    shown = distinct_names(whole.values())
    return {task: shown[name] for task, name in whole.items()}


def finest(kinds: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Return what to call task, variant and representation: all three where a task has several of these.

    So no curve is through unlike numbers.
    """
    different = set(kinds)
    forms = Counter(task for task, *_ in different)
    return {kind: " ".join(filter(None, kind)) if forms[kind[0]] > 1 else kind[0] for kind in different}


# ── entrants and kinds, in the order of tables and charts ────────────────────────────────────────
# Every row of the page and of its charts names them by their places in these lists.


KindKey = tuple[str, str, str, str]  # suite, task, variant, representation

_ENTRANTS: Final = f"""
SELECT run, model, condition, any_value(provider) AS provider, any_value(effort) AS effort,
    any_value(style) AS style, bool_or(upstream IS NOT DISTINCT FROM '{SIMULATOR}') AS served,
    count(*) AS trials
FROM {{}} GROUP BY run, model, condition
"""  # noqa: S608  a word of ours
_IN_ORDER: Final = {
    kind: rank
    for rank, kind in enumerate(
        [*((task, "", "") for task in ARITHMETIC_TASKS)]
        + [(task.task, task.variant, task.representation) for task in TASKS.values()]
    )
}
_KINDS: Final = "SELECT DISTINCT suite, task, variant, representation FROM {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEntrant:
    """A run, model and condition: who was asked, and how to call it."""

    run: str
    model: str
    condition: str
    name: str  # whole: with condition and run where the model has several
    short: str  # without what all names begin with; safe to show
    folder: str  # which of several; empty: there is one
    effort: str | None
    style: str | None
    simulated: bool
    trials: int

    @property
    def key(self) -> Entrant:
        """The values that rows of `trials` have of it."""
        return self.run, self.model, self.condition


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedKind:
    """A kind of question: nothing within it is unlike."""

    suite: str
    task: str
    variant: str
    representation: str
    called: str  # safe to show

    @property
    def key(self) -> KindKey:
        """The values that rows of `trials` have of it, with '' for NULL."""
        return self.suite, self.task, self.variant, self.representation


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Both lists, and the places of their entries."""

    entrants: tuple[NamedEntrant, ...]
    kinds: tuple[NamedKind, ...]

    @cached_property
    def entrant_places(self) -> dict[Entrant, int]:
        """The place of each entrant."""
        return {entrant.key: index for index, entrant in enumerate(self.entrants)}

    @cached_property
    def kind_places(self) -> dict[KindKey, int]:
        """The place of each kind."""
        return {kind.key: index for index, kind in enumerate(self.kinds)}


@once
def asked_in(views: FolderViews, *, answers: str = "trials") -> Asked:
    """Return who was asked what in a folder; entrants as they were planned.

    Args:
        views: of the folders.
        answers: a table that has all trials.
    """
    rows = {
        (row["run"], row["model"], row["condition"]): row for row in views.rows(_ENTRANTS.format(answers))
    }
    names = names_of(sort_entrants(rows, views.manifest))
    shorts = short_names(names.values())
    folders = {model: label for (label, _), model in views.names.items()}
    entrants = tuple(
        NamedEntrant(
            run=run,
            model=model,
            condition=condition,
            name=name,
            short=shorts[name],
            folder=folders.get(model, ""),
            effort=row["effort"],
            style=row["style"],
            simulated=row["served"] or is_simulated(row["provider"]),
            trials=row["trials"],
        )
        for (run, model, condition), name in names.items()
        for row in (rows[run, model, condition],)
    )
    return Asked(entrants=entrants, kinds=_kinds(views, answers))


def _kinds(views: FolderViews, answers: str) -> tuple[NamedKind, ...]:
    """Return the kinds in the order of their suites; those of a set of your own by name."""
    keys = set(map(kind_of, views.rows(_KINDS.format(answers))))
    shown = tasks_shown((suite, task) for suite, task, _, _ in keys)
    words = {key: (shown[key[:2]], safe(key[2]), safe(key[3])) for key in keys}
    called = finest(words.values())

    def rank(key: KindKey) -> tuple[object, ...]:
        suite, task, variant, form = key
        listed = _IN_ORDER.get((task, variant, form), _IN_ORDER.get((task, "", ""), len(_IN_ORDER)))
        return suite, listed, task, variant, form

    return tuple(
        NamedKind(suite=suite, task=task, variant=variant, representation=form, called=called[words[key]])
        for key in sorted(keys, key=rank)
        for suite, task, variant, form in (key,)
    )


def kind_of(row: Mapping[str, Any]) -> KindKey:  # Any: of a row of `trials` or of cells
    """Return the kind of a row."""
    return row["suite"], row["task"], row["variant"] or "", row["representation"] or ""
