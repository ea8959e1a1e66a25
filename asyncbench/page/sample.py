"""Which trials a page to mail holds: those of some questions, so that models stand side by side at each."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from asyncbench.page.answers import LONGEST, ShownTrial, whole_trials
from asyncbench.results import asked_in
from asyncbench.store import ENTRANT
from asyncbench.views import FolderViews

MOST_TRIALS: Final = 20_000
MOST_TEXT: Final = 9_000_000  # bytes of all their texts together
OF_AN_OUTCOME: Final = 3  # questions at least for each outcome of each model
_TEXTS: Final = ("prompt", "expected", "answer", "reply", "reasoning", "message")

_ENTRANT: Final = ", ".join(ENTRANT)
_KINDS: Final = f"{_ENTRANT}, suite, task, variant, representation"
_COUNTS: Final = f"SELECT count(*) AS trials FROM trials GROUP BY {_KINDS}"  # noqa: S608  made of our own words alone
# A problem_id is a hash: the first ones of a group are as good as a draw, and the same on every machine.
_CHOICE: Final = f"""
SELECT problem_id, min(place) AS place FROM (
    SELECT unnest(first) AS problem_id, generate_subscripts(first, 1) AS place FROM (
        SELECT CASE WHEN grouping(outcome) = 0 THEN min(problem_id, $each)[:{OF_AN_OUTCOME}]
            ELSE min(problem_id, $each) END AS first
        FROM trials GROUP BY GROUPING SETS (({_KINDS}), ({_ENTRANT}, outcome))
    )
) GROUP BY problem_id
"""  # noqa: S608  made of our own words alone
_ASKED: Final = "SELECT trial_id, problem_id FROM trials SEMI JOIN questions USING (problem_id)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The trials of a page."""

    trials: list[ShownTrial]  # those of a question together
    of: int  # trials in the folder
    rule: str  # how they were chosen, for people


def sample_of(views: FolderViews, *, most: int = MOST_TRIALS, most_text: int = MOST_TEXT) -> Sample:
    """Return the trials that a page shows: all, or those of as many questions as there is room for.

    Questions come in a fixed random order, one of each kind and model, then the next of each…, and among the
    first are some that show each outcome of each model.

    Args:
        views: of the results folders.
        most: trials at most.
        most_text: bytes at most, of all their texts together; one trial is there whatever its size.

    Raises:
        ConfigError, StoreError: the folder cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    of = sum(entrant.trials for entrant in asked_in(views).entrants)
    chosen = _chosen(views, most)
    trials = whole_trials(views, list(chosen), set(chosen.values()))
    kept = list(_within(trials, most_text))
    return Sample(trials=kept, of=of, rule=_rule(len(kept), of))


def _rule(kept: int, of: int) -> str:
    texts = f"Texts longer than {LONGEST:,} characters are shown without their middle."
    if kept == of:
        return f"The page has all {of:,} trials. {texts}"
    return (
        f"The page has {kept:,} of {of:,} trials: all answers to questions drawn at random, equally many of "
        f"each model and task, and some with each outcome, as far as there are enough. {texts}"
    )


def _chosen(views: FolderViews, most: int) -> dict[str, str]:
    """Return which trials are shown, question by question, and their problems."""
    groups = [row["trials"] for row in views.rows(_COUNTS)]

    def chosen(each: int) -> int:
        return sum(min(each, trials) for trials in groups)

    # So many of each group are `most` trials, or more: others were asked the same questions.
    each = max(1, bisect_left(range(max(groups, default=0)), most, key=chosen))
    views.put("questions", views.table(_CHOICE, {"each": each}))
    order = {row["problem_id"]: (row["place"], row["problem_id"]) for row in views.rows("FROM questions")}
    asked = views.rows(_ASKED)
    asked.sort(key=lambda row: (order[row["problem_id"]], row["trial_id"]))
    found: dict[str, str] = {}
    for problem_id, rows in groupby(asked, key=itemgetter("problem_id")):
        ids = [row["trial_id"] for row in rows]
        if found and len(found) + len(ids) > most:
            break
        found |= dict.fromkeys(ids[:most], problem_id)
    return found


def _within(trials: Iterable[ShownTrial], most_text: int) -> Iterator[ShownTrial]:
    """Yield the trials of questions until their texts would be more than that."""
    taken, first = 0, True
    for _, answers in groupby(trials, key=itemgetter("question")):
        together = list(answers)
        taken += sum(map(_size, together))
        if taken > most_text:
            yield from together[: int(first)]
            return
        yield from together
        first = False


def _size(trial: ShownTrial) -> int:
    texts = [*(trial[name] for name in _TEXTS), *(grade["answer"] for grade in trial["grades"])]
    return sum(len((text or "").encode("utf-8", "replace")) for text in texts)
