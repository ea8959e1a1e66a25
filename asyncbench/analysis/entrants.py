"""Names and order of entrants and tasks: whole in tables, short and safe in charts."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, groupby
from operator import itemgetter
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews, once
from asyncbench.providers.endpoints import is_simulated
from asyncbench.providers.wire import SIMULATOR
from asyncbench.store.manifest import Manifest, planned
from asyncbench.suites.llm_arithmetic import ARITHMETIC_TASKS
from asyncbench.suites.nupa.tasks import TASKS
from asyncbench.tables.numbers import number_of
from asyncbench.tables.screen import allotted, safe

LONGEST_NAME: Final = 40  # characters, which axes have room for
LONGEST_SHORT: Final = 28  # characters of a name beside a line or a dot
ROOM_FOR_NUMBER: Final = 5  # that tells two apart
LEAST_END: Final = 3  # of the beginning and of the end of a name whose middle tells it apart
SEPARATORS: Final = "/-_.@ "
VARIANT: Final = " · "  # between a model and the settings of one of its variants
BRIEF: Final = {"temperature": "t"}  # settings that names have by a shorter word
_TELLING: Final = re.compile(r"\W?[^\W\d_].")  # a letter, perhaps in a bracket, and one more
_IN_BRACKETS: Final = re.compile(r"\([^()]+\)")
BETWEEN_WORDS: Final = "-/_@:,() ·"
_BETWEEN: Final = re.compile(f"[{BETWEEN_WORDS}]+")
_WORDS: Final = re.compile(f"[{BETWEEN_WORDS}]+|[^{BETWEEN_WORDS}]+")
# `NAME key=value key=value`, as a list of a sweep names its entries; of several folders, `in FOLDER`
_OF_LIST: Final = re.compile(r"(?P<name>.+?)(?P<settings>(?: [a-zA-Z_][\w.]*=\S*)+)(?P<folder> in .+)?")

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
    """Return a name for each in tables, pages, charts and figures alike: its model, and its differences.

    A condition is named where a model has several, and a run where these do not tell: `m (steps)`, or
    `m, run r`. Where lists of a sweep made several entries of a model, all that differs stands behind it:
    `m · t=0 · steps`.

    No two have one name: where aliases look like others' names (`a (b)` beside `a` under condition `b`), all
    of these are named whole, in quotes.
    """
    conditions, runs = defaultdict[str, set[str]](set), defaultdict[tuple[str, str], set[str]](set)
    for run, model, condition in entrants:
        conditions[model].add(condition)
        runs[model, condition].add(run)

    # The usual names: of whoever is planned once, the model alone.
    usual = dict[Entrant, str]()
    entries = {model: entry_of(model) for model in conditions}
    varied = any(settings for _, settings in entries.values())
    for run, model, condition in entrants:
        base, settings = entries[model]
        asked = condition if len(conditions[model]) > 1 else ""
        source = f"run {run}" if len(runs[model, condition]) > 1 and run != model else ""
        bracketed = f"{model} ({asked})" if asked else model
        usual[run, model, condition] = (
            VARIANT.join(filter(None, (base, *settings, asked, source)))
            if varied
            else ", ".join(filter(None, (bracketed, source)))
        )

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


def entry_of(alias: str) -> tuple[str, tuple[str, ...]]:
    """Return the name that the entries of a list share, and the settings in which this one differs.

    >>> entry_of("groq/llama-3 temperature=0 effort=low in monday")
    ('groq/llama-3 in monday', ('t=0', 'effort=low'))
    """
    match = _OF_LIST.fullmatch(alias)
    if match is None:
        return alias, ()
    settings = (setting.partition("=") for setting in match["settings"].split())
    words = tuple(f"{BRIEF.get(key, key)}={value}" for key, _, value in settings)
    return f"{match['name']}{match['folder'] or ''}", words


def count_models(entrants: Collection[Entrant]) -> int:
    """Return how many models entrants are: variants and conditions are of one, further runs are not."""
    runs = defaultdict[tuple[str, str], set[str]](set)
    for run, model, condition in entrants:
        runs[model, condition].add(run)
    return len(
        {
            (entry_of(model)[0], run if len(runs[model, condition]) > 1 else "")
            for run, model, condition in entrants
        }
    )


def models_text(entrants: Collection[Entrant]) -> str:
    """Return how many models entrants are in words: `18 variants of 3 models`, or `3 models`."""
    models = number_of(count_models(entrants), "model")
    return models if len(entrants) == count_models(entrants) else f"{len(entrants):,} variants of {models}"


# ── names in charts ──────────────────────────────────────────────────────────────────────────────


def distinct_names(names: Iterable[str], *, longest: int = LONGEST_NAME) -> dict[str, str]:
    """Return names as charts show them, by the whole name; all of a chart have to be given together.

    Of a long name those words lose their middle that most names have: `groq/…-8b-…turbo`. Where some look
    alike then, what tells them apart is shown whole. Where that has no room, they are numbered.
    """
    shown_as = dict.fromkeys(names, "")  # in the order in which they are given
    words = {name: _WORDS.findall(safe(name, most=None)) for name in shown_as}
    times = Counter(word for its_words in words.values() for word in set(its_words))
    usual = {name: _cut_where_equal(words[name], times, longest=longest) for name in shown_as}
    alike = defaultdict[str, list[str]](list)
    for name, short in usual.items():
        alike[short].append(name)
    taken: set[str] = set()
    for name in sorted(shown_as, key=lambda name: (len(name) > longest, name)):
        short = usual[name]
        if len(alike[short]) > 1:
            short = _distinguished(name, alike[short], longest=longest) or short
        numbered = (f"{shortened(short, longest=longest - ROOM_FOR_NUMBER)} ({n})" for n in count(2))
        shown_as[name] = next(shown for shown in chain([short], numbered) if shown not in taken)
        taken.add(shown_as[name])
    return shown_as


def _cut_where_equal(words: Sequence[str], times: Mapping[str, int], *, longest: int) -> str:
    """Return a name that loses the middle of words that others have, too: first of those that most have.

    Args:
        words: of the name, with the separators between them.
        times: how many names have each word.
        longest: characters of the name, which is cut in its own middle where what differs has no room.
    """
    name = "".join(words)
    if len(name) <= longest:
        return name
    for least in sorted({times[word] for word in words if times[word] > 1}, reverse=True):
        # Words that so many names have, and those in which this one differs, in turn.
        marked = [(times[word] >= least, word) for word in words]
        runs = ["".join(word for _, word in run) for _, run in groupby(marked, itemgetter(0))]
        equal = range(0 if marked[0][0] else 1, len(runs), 2)

        # The fewest gaps: one in the longest run, else one in each of the two longest …
        by_length = [n for _, n in sorted(((len(runs[n]), n) for n in equal), reverse=True)]
        for gaps in range(1, len(by_length) + 1):
            cut = by_length[:gaps]
            room = longest - gaps - sum(len(run) for n, run in enumerate(runs) if n not in cut)
            if room >= gaps * LEAST_END:
                for n, kept in zip(cut, allotted([len(runs[n]) for n in cut], room), strict=True):
                    runs[n] = _cut_middle(runs[n], kept, first=not n, last=n == len(runs) - 1)
                return "".join(runs)
    return shortened(name, longest=longest)


def _cut_middle(text: str, kept: int, *, first: bool, last: bool) -> str:
    """Return a text of which so many characters are kept, at the ends that stand beside others."""
    if kept >= len(text):
        return text
    head = kept if first and not last else 0 if last and not first else kept - kept // 2
    return f"{text[:head]}…{text[len(text) - kept + head :]}"


def _distinguished(name: str, alike: Sequence[str], *, longest: int) -> str:
    """Return a name with what of it differs from those that look like it; empty: that has no room."""
    if not name.isprintable():
        return ""
    start, end = _shared(alike), _shared([name[::-1] for name in alike])
    end = len(name) - min(end, min(map(len, alike)) - start)
    whole_words = [0, *(match.end() for match in _BETWEEN.finditer(name)), len(name)]
    words_start = max(place for place in whole_words if place <= start)
    words_end = min(place for place in whole_words if place >= end)
    for begin, stop in ((words_start, words_end), (start, end)):
        telling, rest = name[begin:stop], longest - (stop - begin) - 2  # for both ends
        if telling and rest >= 2 * LEAST_END:
            tail = min(len(name) - stop, max(rest // 2, rest - begin))
            head = min(begin, rest - tail)
            before, behind = "…" if head < begin else "", "…" if tail < len(name) - stop else ""
            return f"{name[:head]}{before}{telling}{behind}{name[len(name) - tail :]}"
    return ""


def _shared(names: Sequence[str]) -> int:
    """Return how many characters all names begin with."""
    first, last = min(names), max(names)
    return next((n for n, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1), len(first))


def shortened(name: str, *, longest: int = LONGEST_NAME) -> str:
    """Return a name on one line that does nothing, `longest` characters at most: cut in the middle."""
    ends = name if len(name) <= 2 * longest else name[:longest] + name[-longest:]
    shown = safe(ends, most=None)
    if len(shown) <= longest:
        return shown
    half = longest // 2
    return f"{shown[:half]}…{shown[half + 1 - longest :]}"


def shared_beginning(names: Sequence[str]) -> str:
    """Return the common beginning of names, up to a separator behind which each begins with a letter.

    `groq/llama-3`, `groq/qwen-3` → `groq/`. Nobody is called `3`.
    """
    for length in range(_shared(names) if len(names) > 1 else 0, 0, -1):
        if names[0][length - 1] in SEPARATORS and all(_TELLING.match(name[length:]) for name in names):
            return names[0][:length]
    return ""


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return names without what all of them begin with, `LONGEST_SHORT` characters at most, told apart."""
    whole_names = list(names)
    cut = len(shared_beginning(whole_names))
    shown = {name: name[cut:] for name in whole_names}
    if all(_IN_BRACKETS.fullmatch(short) for short in shown.values()):
        shown = {name: short[1:-1] for name, short in shown.items()}
    distinct = distinct_names(shown.values(), longest=LONGEST_SHORT)
    return {name: distinct[short] for name, short in shown.items()}


def tasks_shown(tasks: Iterable[Task]) -> dict[Task, str]:
    """Return a name for each task, with its suite where several suites have a task of that name."""
    different = set(tasks)
    suites = Counter(task for _, task in different)
    whole = {(suite, task): f"{suite}/{task}" if suites[task] > 1 else task for suite, task in different}
    shown = distinct_names(whole.values())
    return {task: shown[name] for task, name in whole.items()}


def finest(kinds: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Return a name for each task, variant and representation, with all three where a task has several.

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

    @property
    def names_note(self) -> str:
        """A note on what all names begin with, which charts leave out; empty: nothing."""
        shared = shared_beginning([entrant.name for entrant in self.entrants])
        return (
            f"Names of models are shown without `{shared.rstrip(VARIANT)}`, as all begin with it."
            if shared
            else ""
        )

    @cached_property
    def kind_places(self) -> dict[KindKey, int]:
        """The place of each kind."""
        return {kind.key: index for index, kind in enumerate(self.kinds)}


@once
def asked_in(views: FolderViews, *, answers: str = "trials") -> Asked:
    """Return the questions of each entrant in a folder, with entrants in the order of the plan.

    Args:
        views: of the folders.
        answers: a table that has all trials.
    """
    rows = {entrant_of(row): row for row in views.rows(_ENTRANTS.format(answers))}
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


def entrant_of(row: Mapping[str, Any]) -> Entrant:  # Any: of a row of `trials` or of cells
    """Return who was asked in a row."""
    return row["run"], row["model"], row["condition"]


def kind_of(row: Mapping[str, Any]) -> KindKey:  # Any: of a row of `trials` or of cells
    """Return the kind of a row."""
    return row["suite"], row["task"], row["variant"] or "", row["representation"] or ""
