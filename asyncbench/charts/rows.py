"""The rows that charts are drawn from, out of cells; `catalogue` tells the columns of each chart.

The page's script makes the same rows of the cells that are chosen there, and a test holds the two equal.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from math import ceil
from typing import Any, Final

import pyarrow as pa

from asyncbench.charts.themes import OUTCOME_COLOURS
from asyncbench.reports import Ranking
from asyncbench.results import (
    METRICS,
    Entrant,
    Metric,
    finest,
    repeats_of,
    shortened,
    summed,
    tasks_shown,
    told_apart,
)
from asyncbench.results.anatomy import ErrorFindings
from asyncbench.results.curves import Curve, fit
from asyncbench.stats import Proportion, wilson

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


# ── one metric, compared ─────────────────────────────────────────────────────────────────────


def bars(cells: Cells, metric: str = "accuracy", *, by: str | None = "suite") -> list[Row]:
    """Return a bar a model in each panel; `by`: `suite`, `task` or None for all together."""
    measure = METRICS[metric]
    groups = summed(cells, ("model", by) if by else ("model",))
    rows = []
    for (model, *panel), sums in groups.items():
        found = measure.of(sums)
        rows.append(
            {
                "panel": panel[0] if panel else "",
                "model": model,
                "value": found.value,
                "low": found.low,
                "high": found.high,
                "trials": found.trials,
                "label": written(found.value, measure),
            }
        )
    return sorted(rows, key=lambda row: row["panel"])


def written(value: float | None, metric: Metric) -> str:
    """Return a metric's value as charts write it; `-` where it is unknown."""
    if value is None:
        return "-"
    if metric.share:
        return f"{value:.1%}"
    figure = f"{value:,.0f}" if value >= 100 else f"{Decimal(f'{value:.3g}'):f}"  # never with an exponent
    return f"${figure}" if metric.unit.startswith("USD") else figure


def length_map(cells: Cells, metric: str = "accuracy") -> list[Row]:
    """Return task × length, a panel a model; trials of unknown length are left out."""
    known = [cell for cell in cells if cell["length"] is not None]
    groups = summed(known, ("model", "task", "length"))
    rows = [
        {"panel": model, "task": task, "length": length, **_value(sums, metric)}
        for (model, task, length), sums in groups.items()
    ]
    places = {model: place for place, model in enumerate(models_of(cells))}
    return sorted(rows, key=lambda row: (places[row["panel"]], row["task"], row["length"]))


def depth_map(cells: Cells, metric: str = "accuracy") -> list[Row]:
    """Return the same of llm_arithmetic alone, whose variants are our tasks and whose depth is our length."""
    return length_map([cell for cell in cells if cell["suite"] == "llm_arithmetic"], metric)


def task_map(cells: Cells, metric: str = "accuracy") -> list[Row]:
    """Return model × task."""
    groups = summed(cells, ("model", "task"))
    return [{"model": model, "task": task, **_value(sums, metric)} for (model, task), sums in groups.items()]


def _value(sums: Mapping[str, Any], metric: str) -> Row:
    found = METRICS[metric].of(sums)
    return {"value": found.value, "trials": found.trials}


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


# ── accuracy against something ───────────────────────────────────────────────────────────────


def curves(cells: Cells) -> list[Row]:
    """Return accuracy against length, of the trials with a reply: points, lines, where they cross 50 %.

    A line is drawn only where the counts have a best one, and only within the lengths that were asked.
    """
    groups = defaultdict[tuple[str, str], list[Mapping[str, Any]]](list)
    for panel, series, cell in _parted(cells):
        groups[panel, series].append(cell)
    return [
        {"panel": panel, "series": series, **row}
        for (panel, series), those in groups.items()
        for row in _curve(those)
    ]


def _parted(cells: Cells) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield each cell of known length with its panel and series, at most `MOST_SERIES` series a panel.

    Nothing unlike goes together: of many models with many tasks the most accurate ones are shown.
    """
    known = [cell for cell in cells if cell["length"] is not None]
    names, models = finest(known), models_of(known)
    tasks = [names[cell["task"], cell["variant"] or "", cell["representation"] or ""] for cell in known]
    if len(models) > MOST_SERIES >= len(set(tasks)):
        return ((cell["model"], task, cell) for task, cell in zip(tasks, known, strict=True))
    shown = set(models[:MOST_SERIES])
    by_task = sorted(zip(tasks, known, strict=True), key=lambda one: one[0])
    return ((task, cell["model"], cell) for task, cell in by_task if cell["model"] in shown)


def curves_note(cells: Cells) -> str | None:
    """Return which models `curves` leaves out; None where it shows all."""
    known = [cell for cell in cells if cell["length"] is not None]
    models = models_of(known)
    if len(models) <= MOST_SERIES or len(set(finest(known).values())) <= MOST_SERIES:
        return None
    return f"The {MOST_SERIES} most accurate of {len(models)} models"


def _curve(cells: Cells) -> Iterator[Row]:
    """Yield the rows of one curve; repeats of a problem make its intervals no narrower."""
    curve = fit((cell["length"], cell["correct"], cell["trials"] - cell["failed"]) for cell in cells)
    if curve is None:
        return
    repeats = repeats_of(cells)
    for length, seen in _points(curve):
        low, high = wilson(seen.share or 0.0, seen.trials / repeats)
        yield _at("point", length, (seen.share, low, high), trials=seen.trials)
    if curve.line is None:
        return
    line = curve.line._replace(  # as sure as one repeat of its problems: the same line, with more variance
        variance_of_intercept=curve.line.variance_of_intercept * repeats,
        covariance=curve.line.covariance * repeats,
        variance_of_slope=curve.line.variance_of_slope * repeats,
    )
    curve = replace(curve, line=line)
    step = (curve.longest - curve.shortest) / (STEPS - 1)
    for n in range(STEPS):
        length = curve.shortest + n * step
        yield _at("line", length, curve.at(length))
    half = curve.length_at(0.5).value
    if half is not None:
        yield _at("half", half, (0.5, None, None), label=f"{half:.1f}")


def _points(curve: Curve) -> Iterator[tuple[float, Proportion]]:
    """Yield what was counted by length; neighbours go together where there are more than `MOST_POINTS`."""
    size = ceil(len(curve.points) / MOST_POINTS)
    for start in range(0, len(curve.points), size):
        those = curve.points[start : start + size]
        trials = sum(n for _, _, n in those)
        length = sum(length * n for length, _, n in those) / trials
        yield length, Proportion(successes=sum(right for _, right, _ in those), trials=trials)


def _at(
    kind: str,
    length: float,
    share: tuple[float | None, float | None, float | None],
    *,
    trials: int = 0,
    label: str = "",
) -> Row:
    value, low, high = share
    shown = {"value": value, "low": low, "high": high}
    return {"kind": kind, "length": length, **shown, "trials": trials, "label": label}


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


def pair_rows(ranking: Ranking, shown: Mapping[str, str] | None = None) -> list[Row]:
    """Return how far ahead the leader of a ranking is of each other, on the problems in common.

    Args:
        ranking: of standings.
        shown: names as charts show them, by the whole name; None: those of this ranking told apart.
    """
    shown = told_apart(line.name for line in ranking.lines) if shown is None else shown
    leader = ranking.lines[0].name
    rows = []
    for pair in ranking.pairs:
        if pair.a == leader:
            model, other = (shown.get(name, shortened(name)) for name in (pair.a, pair.b))
            rows.append(
                {
                    "pair": f"{model} − {other}",
                    "model": model,
                    "other": other,
                    "difference": pair.found.difference,
                    "low": pair.interval[0],
                    "high": pair.interval[1],
                    "p": pair.p_holm,
                    "tied": pair.b in ranking.ties[0],
                    "problems": pair.found.problems,
                }
            )
    return rows
