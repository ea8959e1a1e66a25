"""The contents of the page to mail, as plain values, block by block."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from asyncbench.analysis.choosing import Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.entrants import asked_in
from asyncbench.page.answers import LONGEST, ShownTrial, answers_to
from asyncbench.page.charts.breaks import break_rows, half_rows, heat_rows, kind_curves, length_rows
from asyncbench.page.charts.catalogue import CHARTS, spec_of
from asyncbench.page.charts.styling import columnar
from asyncbench.page.charts.themes import THEMES
from asyncbench.page.head import head_block
from asyncbench.page.measures import cost_block, errors_block, loads_block, time_block
from asyncbench.page.ranked import standings_block
from asyncbench.store.schema import ENTRANT

# ── The blocks of a page by name: plain values, each made from the views of a folder and nothing else
# The file to mail holds all of them; the server of `asyncbench view` makes each when it is asked for.


Values = dict[str, Any]  # Any: whatever JSON can hold


def breaks_block(views: FolderViews) -> Values:
    """Return where each breaks: points and lines of accuracy against length, and where half is right."""
    curves = kind_curves(views)
    return {"rows": columnar(break_rows(curves)), "halves": half_rows(curves)}


def heat_block(views: FolderViews) -> Values:
    """Return what each can do: every metric by entrant and kind, and accuracy by length."""
    return {"rows": heat_rows(views), "lengths": columnar(length_rows(views))}


BLOCKS: Final[Mapping[str, Callable[[FolderViews], Values]]] = {
    "head": head_block,
    "standings": standings_block,
    "breaks": breaks_block,
    "heat": heat_block,
    "time": time_block,
    "cost": cost_block,
    "errors": errors_block,
    "loads": loads_block,
}

# ── The contents of a page


# ── sample of trials ─────────────────────────────────────────────────────────────────────────────


MOST_TRIALS: Final = 20_000  # of a folder that has no more
MOST_OF_MORE: Final = 8_000  # of a larger one
MOST_TEXT: Final = 9_000_000  # bytes of all their texts together
_TEXTS: Final = ("prompt", "expected", "answer", "reply", "reasoning", "message")

_ENTRANT: Final = ", ".join(ENTRANT)
_KIND: Final = "suite, task, variant, representation"
# A problem_id is a hash: the first ones of a group are as good as a draw, and the same on every machine. Of
# the last problem of a group there may be more trials than it tells.
_CHOICE: Final = f"""
SELECT problem_id, min(place) AS place, count(*) FILTER (of_kind) AS trials FROM (
    SELECT of_kind, unnest(first) AS problem_id, generate_subscripts(first, 1) AS place FROM (
        SELECT grouping(outcome) = 1 AS of_kind,
            CASE WHEN of_kind THEN min(problem_id, $each) ELSE [min(problem_id)] END AS first
        FROM trials GROUP BY GROUPING SETS (({_ENTRANT}, {_KIND}), ({_ENTRANT}, outcome))
    )
) GROUP BY problem_id ORDER BY place, problem_id
"""  # noqa: S608  made of our own words alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The trials of a page."""

    trials: list[ShownTrial]  # those of a question together
    of: int  # trials in the folder
    rule: str  # how they were chosen, for people


def sample_of(
    views: FolderViews,
    *,
    most: int = MOST_TRIALS,
    most_of_more: int = MOST_OF_MORE,
    most_text: int = MOST_TEXT,
) -> Sample:
    """Return the trials that a page shows: all, or those of as many questions as there is room for.

    Questions come in a fixed random order, one of each kind and model, then the next of each…, and among the
    first is one that shows each outcome of each model.

    Args:
        views: of the results folders.
        most: trials at most, where a folder has no more.
        most_of_more: trials at most of a larger folder.
        most_text: bytes at most, of all their texts together; one trial is there whatever its size.

    Raises:
        ConfigError, StoreError: the folder cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    counts = [entrant.trials for entrant in asked_in(views).entrants]
    of = sum(counts)
    most = of if of <= most else most_of_more
    trials = list(_within(answers_to(views, _questions(views, counts, most)), most, most_text))
    return Sample(trials=trials, of=of, rule=_rule(len(trials), of))


def _rule(kept: int, of: int) -> str:
    texts = f"Texts longer than {LONGEST:,} characters are shown without their middle."
    if kept == of:
        return f"The page has all {of:,} trials. {texts}"
    return (
        f"The page has {kept:,} of {of:,} trials: all answers to questions drawn at random, equally many of "
        "each model and task as far as there are enough, and of each model one with each outcome at least. "
        f"{texts}"
    )


def _questions(views: FolderViews, counts: Sequence[int], most: int) -> list[str]:
    """Return the problems whose trials are `most`, or little more."""

    def chosen(each: int) -> int:
        return sum(min(each, trials) for trials in counts)

    # So many of each kind and entrant are enough, even where an entrant was asked one kind alone.
    each = max(1, bisect_left(range(max(counts, default=0)), most, key=chosen))
    problem_ids, trials = list[str](), 0
    for row in views.rows(_CHOICE, {"each": each}):
        if trials >= most:
            break
        problem_ids.append(row["problem_id"])
        trials += row["trials"]
    return problem_ids


def _within(trials: Iterable[ShownTrial], most: int, most_text: int) -> Iterator[ShownTrial]:
    """Yield the trials of questions while all of them and their texts are no more than that."""
    count, text = 0, 0
    for _, answers in groupby(trials, key=itemgetter("question")):
        together = list(answers)
        first, count, text = not count, count + len(together), text + sum(map(_size, together))
        if count > most or text > most_text:
            yield from together[: most if text <= most_text else 1] if first else ()
            return
        yield from together


def _size(trial: ShownTrial) -> int:
    texts = [*(trial[name] for name in _TEXTS), *(grade["answer"] for grade in trial["grades"])]
    return sum(len((text or "").encode("utf-8", "replace")) for text in texts)


# ── blocks ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The blocks of a page, with the figures that the command prints of them."""

    title: str
    blocks: Mapping[str, object]  # by the id of their element
    sample: Sample
    load_calls: int  # that were due to a load


def contents_of(folder: Folders) -> Contents:
    """Return what a page of a results folder holds.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: it cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    return counted(chosen(folder), _contents)


def _contents(views: FolderViews) -> Contents:
    blocks = {name: make(views) for name, make in BLOCKS.items()}
    head, sample = blocks["head"], sample_of(views)
    return Contents(
        title=head["title"],
        blocks={
            **blocks,
            "specs": specs_block(),
            "sample": {"rule": sample.rule, "of": sample.of, "trials": sample.trials},
        },
        sample=sample,
        load_calls=head["load_calls"],
    )


def specs_block() -> Values:
    """Return the specifications of all charts, and their themes."""
    specs = {name: spec_of(name) for name, chart in CHARTS.items() if chart.on_page}
    return {"specs": specs, "themes": THEMES}
