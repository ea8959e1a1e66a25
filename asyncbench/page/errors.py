"""The anatomy of wrong answers as a page has it: counts by who was asked what, for its script to add up."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from asyncbench.results import Asked
from asyncbench.results.anatomy import KINDS, ErrorFindings, kinds_of
from asyncbench.shown import safe

MOST_EXAMPLES: Final = 3  # of a kind and model

Values = dict[str, Any]  # Any: whatever JSON can hold


def errors_block(findings: Iterable[ErrorFindings], places: Mapping[Asked, int]) -> Values:
    """Return kinds and places of errors by group, and examples of each kind.

    Args:
        findings: of all groups.
        places: of those who were asked, in the page's list of them.
    """
    found = [one for one in findings if one.wrong or one.unread]
    examined, wrong = sum(one.examined for one in found), sum(one.wrong + one.unread for one in found)
    first = "" if examined == wrong else " (of each model and task the first by trial_id, which is a hash)"
    return {
        "examined": f"{examined:,} of {wrong:,} wrong or unread answers were examined{first}.",
        "kind_words": dict(KINDS),
        "error_groups": [_group(one, places) for one in found if one.examined],
        "examples": list(_examples(found, places)),
    }


def _group(one: ErrorFindings, places: Mapping[Asked, int]) -> Values:
    return {
        **_of(one, places),
        "examined": one.examined,
        "kinds": dict(one.kinds),
        "from_first": [(at.successes, at.trials) for at in one.wrong_at(one.from_left)],
        "from_last": [(at.successes, at.trials) for at in one.wrong_at(one.from_right)],
    }


def _of(one: ErrorFindings, places: Mapping[Asked, int]) -> Values:
    run, model, condition, *what = one.group
    names = ("suite", "task", "variant", "representation")
    return {"asked": places[run, model, condition], **dict(zip(names, map(safe, what), strict=True))}


def _examples(found: Iterable[ErrorFindings], places: Mapping[Asked, int]) -> Iterator[Values]:
    taken: defaultdict[tuple[int, str], int] = defaultdict(int)
    for one in found:
        of = _of(one, places)
        for kind in kinds_of([one]):
            left = MOST_EXAMPLES - taken[of["asked"], kind.kind]
            chosen = kind.examples[: max(0, left)]
            taken[of["asked"], kind.kind] += len(chosen)
            yield from ({**of, "kind": kind.kind, **example._asdict()} for example in chosen)
