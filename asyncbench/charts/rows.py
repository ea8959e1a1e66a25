"""The rows that charts are drawn from, out of cells; `catalogue` tells the columns of each chart."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from asyncbench.charts.themes import OUTCOME_COLOURS
from asyncbench.results import (
    METRICS,
    Entrant,
    summed,
    tasks_shown,
    told_apart,
)
from asyncbench.results.anatomy import ErrorFindings

Row = dict[str, Any]  # Any: text, number, bool or None, by column
Cells = Sequence[Mapping[str, Any]]  # rows of cells; `model` and `task` are the names that are shown

MOST_SERIES: Final = 8  # colours that people tell apart
MOST_CROSSING: Final = 4  # lines with intervals that people follow where they cross often
MOST_POINTS: Final = 20  # of a curve
STEPS: Final = 60  # points of a fitted line
ENDS: Final = ("from the first digit", "from the last digit")
OTHERS: Final = "others"  # kinds of errors
MOST_KINDS: Final = 12


def named(cells: pa.Table, names: Mapping[Entrant, str]) -> Cells:
    """Return cells with `model` and `task` as they are shown, the most accurate model first.

    Equals stand in the order of `names`, as in standings.

    Args:
        cells: rows of the view `cells`.
        names: what to call each run, model and condition, as planned.
    """
    rows: list[Row] = cells.to_pylist()
    shown = told_apart(names.values())
    tasks = tasks_shown((row["suite"], row["task"]) for row in rows)
    for row in rows:
        row["model"] = shown[names[row["run"], row["model"], row["condition"]]]
        row["task"] = tasks[row["suite"], row["task"]]
    groups = summed(rows, ("model",))
    best = {key: METRICS["accuracy"].of(sums).value or 0.0 for key, sums in groups.items()}
    places = {shown[name]: place for place, name in enumerate(names.values())}
    return sorted(rows, key=lambda row: (-best[row["model"],], places[row["model"]]))


def models_of(cells: Cells) -> list[str]:
    """Return the models' names, in their order."""
    return list(dict.fromkeys(cell["model"] for cell in cells))


def outcomes(cells: Cells) -> list[Row]:
    """Return what became of each model's trials; outcomes that never came are left out."""
    return [
        {
            "model": model,
            "outcome": outcome,
            "place": place,
            "trials": sums[outcome],
            "share": sums[outcome] / sums["trials"],
        }
        for (model,), sums in summed(cells, ("model",)).items()
        for place, outcome in enumerate(OUTCOME_COLOURS)
        if sums[outcome]
    ]


def digit_errors(found: Iterable[ErrorFindings], names: Mapping[Entrant, str]) -> list[Row]:
    """Return where wrong answers have wrong digits, by place from either end.

    A picture for each end, a colour a model; where these are too many, the other way round.
    """
    rows = []
    for model, those in _by_model(found, names).items():
        together = ErrorFindings(group=(), reach=sum((group.reach for group in those), Counter[int]()))
        from_ends = ([group.from_left for group in those], [group.from_right for group in those])
        for end, wrong in zip(ENDS, from_ends, strict=True):
            for place, seen in enumerate(together.wrong_at(sum(wrong, Counter[int]())), 1):
                low, high = seen.interval or (None, None)
                rows.append(
                    {
                        "panel": end,
                        "series": model,
                        "position": place,
                        "errors": seen.successes,
                        "answers": seen.trials,
                        "value": seen.share,
                        "low": low,
                        "high": high,
                    }
                )
    if len({row["series"] for row in rows}) > MOST_CROSSING:
        return [{**row, "panel": row["series"], "series": row["panel"]} for row in rows]
    return sorted(rows, key=lambda row: ENDS.index(row["panel"]))


def kinds(found: Iterable[ErrorFindings], names: Mapping[Entrant, str]) -> list[Row]:
    """Return the kinds of errors of each model as parts of its examined answers, the commonest first.

    At most `MOST_KINDS` kinds are told apart; what is left is `OTHERS`.
    """
    counts = {
        model: sum((group.kinds for group in those), Counter[str]())
        for model, those in _by_model(found, names).items()
    }
    together = sum(counts.values(), Counter[str]())
    shown = sorted(together, key=lambda kind: (-together[kind], kind))[:MOST_KINDS]
    rows = []
    for model, its in counts.items():
        listed = {kind: its[kind] for kind in shown}
        if len(together) > MOST_KINDS:
            listed[OTHERS] = its.total() - sum(listed.values())
        rows += [
            {"model": model, "kind": kind, "wrong": wrong, "value": wrong / its.total()}
            for kind, wrong in listed.items()
            if its
        ]
    return rows


def _by_model(found: Iterable[ErrorFindings], names: Mapping[Entrant, str]) -> dict[str, list[ErrorFindings]]:
    """Return what was found by the name of who was asked, in the order of the names."""
    shown = told_apart(names.values())
    those: dict[str, list[ErrorFindings]] = {shown[name]: [] for name in names.values()}
    for group in found:
        run, model, condition = group.group[:3]
        those[shown[names[run, model, condition]]].append(group)
    return those
