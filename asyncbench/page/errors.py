"""The block `errors`: what is wrong in wrong answers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from asyncbench.results import Entrant, entrants_in
from asyncbench.results.anatomy import KINDS, ErrorFindings, errors_in, kinds_of
from asyncbench.shown import safe
from asyncbench.views import FolderViews

Values = dict[str, Any]  # Any: whatever JSON can hold

MOST_EXAMPLES: Final = 3  # of a kind of error and model


def errors_block(views: FolderViews) -> Values:
    """Return kinds and places of errors, and examples of each kind."""
    return _errors(errors_in(views).values(), entrants_in(views))


def _errors(findings: Iterable[ErrorFindings], places: Mapping[Entrant, int]) -> Values:
    """Return kinds and places of errors by group, and examples of each kind.

    Args:
        findings: of all groups.
        places: of those who were asked, in the page's list of them.
    """
    found = [group for group in findings if group.wrong or group.unread]
    examined, wrong = (
        sum(group.examined for group in found),
        sum(group.wrong + group.unread for group in found),
    )
    first = "" if examined == wrong else " (a fixed random sample per model and task)"
    return {
        "examined": f"{examined:,} of {wrong:,} wrong answers (or replies without one) were examined{first}.",
        "kind_words": dict(KINDS),
        "error_groups": [
            _about(group, places)
            | {
                "examined": group.examined,
                "kinds": dict(group.kinds),
                "from_first": [(at.successes, at.trials) for at in group.wrong_at(group.from_left)],
                "from_last": [(at.successes, at.trials) for at in group.wrong_at(group.from_right)],
            }
            for group in found
            if group.examined
        ],
        "examples": list(_examples(found, places)),
    }


def _about(found: ErrorFindings, places: Mapping[Entrant, int]) -> Values:
    run, model, condition, *what = found.group
    names = ("suite", "task", "variant", "representation")
    return {"asked": places[run, model, condition], **dict(zip(names, map(safe, what), strict=True))}


def _examples(found: Iterable[ErrorFindings], places: Mapping[Entrant, int]) -> Iterator[Values]:
    taken = Counter[tuple[int, str]]()
    for group in found:
        of = _about(group, places)
        for kind in kinds_of([group]):
            left = MOST_EXAMPLES - taken[of["asked"], kind.kind]
            chosen = kind.examples[: max(0, left)]
            taken[of["asked"], kind.kind] += len(chosen)
            yield from ({**of, "kind": kind.kind, **example._asdict()} for example in chosen)
