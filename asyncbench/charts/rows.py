"""The rows that charts are drawn from, out of cells; `catalogue` tells the columns of each chart.

The page's script makes the same rows of the cells that are chosen there, and a test holds the two equal.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from math import ceil, inf
from typing import Any, Final

import pyarrow as pa

from asyncbench.charts.placing import named_at
from asyncbench.charts.themes import OUTCOME_COLOURS
from asyncbench.reports import LimitUse, PairLine, Ranking
from asyncbench.results import (
    METRICS,
    Asked,
    Metric,
    Minute,
    finest,
    repeats_of,
    shortened,
    summed,
    tasks_shown,
    told_apart,
)
from asyncbench.results.anatomy import ErrorFindings
from asyncbench.results.curves import Curve, Fit, fit
from asyncbench.stats import Proportion, undominated, wilson

Row = dict[str, Any]  # Any: text, number, bool or None, by column
Cells = Sequence[Mapping[str, Any]]  # rows of cells; `model` and `task` are the names that are shown

MOST_SERIES: Final = 8  # colours that people tell apart
MINUTE_S: Final = 60.0
MOST_CROSSING: Final = 4  # lines with intervals that people follow where they cross often
MOST_POINTS: Final = 20  # of a curve
STEPS: Final = 60  # points of a fitted line
ENDS: Final = ("from the first digit", "from the last digit")
OTHERS: Final = "others"  # kinds of errors
MOST_KINDS: Final = 12
LULL: Final = 1.5  # times a minute or bin: who begins again later than that after the last one, paused
EACH: Final = "answered calls"  # of the one model that a panel shows
UNLIKE: Final = "No task was asked of all of them: they are compared on unlike problems"
MOST_TASKS: Final = 3  # that a note names
MOST_LEFT_OUT: Final = 4  # models that a note names
FREE: Final = 1 / 3  # of the least cost: where what costs nothing stands on a scale of logs


def named(cells: pa.Table, names: Mapping[Asked, str]) -> Cells:
    """Return cells with `model` and `task` as they are shown, the most accurate model first.

    Equals stand in the order of `names`, as in standings.

    Args:
        cells: as `cells_of` returns them.
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
        for row in _curve_of(those)
    ]


def _curve_of(cells: Cells) -> Iterator[Row]:
    """Yield the rows of one curve; repeats of a problem make its intervals no narrower."""
    found = fit((cell["length"], cell["correct"], cell["trials"] - cell["failed"]) for cell in cells)
    if found is not None:
        yield from _curve(found, repeats_of(cells))


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


def _curve(curve: Curve, repeats: float) -> Iterator[Row]:
    for length, seen in _points(curve):
        low, high = wilson(seen.share or 0.0, seen.trials / repeats)
        yield _at("point", length, (seen.share, low, high), trials=seen.trials)
    if curve.line is None:
        return
    curve = replace(curve, line=_widened(curve.line, repeats))
    step = (curve.longest - curve.shortest) / (STEPS - 1)
    for n in range(STEPS):
        length = curve.shortest + n * step
        yield _at("line", length, curve.at(length))
    half = curve.length_at(0.5).value
    if half is not None:
        yield _at("half", half, (0.5, None, None), label=f"{half:.1f}")


def _widened(line: Fit, repeats: float) -> Fit:
    """Return a fit that is as sure as one repeat of its problems: the same line, with more variance."""
    return line._replace(
        variance_of_intercept=line.variance_of_intercept * repeats,
        covariance=line.covariance * repeats,
        variance_of_slope=line.variance_of_slope * repeats,
    )


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
    return {
        "kind": kind,
        "length": length,
        "value": value,
        "low": low,
        "high": high,
        "trials": trials,
        "label": label,
    }


def frontier_cost(cells: Cells) -> list[Row]:
    """Return accuracy against USD per 1,000 trials, of the models whose cost is known.

    All are compared over the tasks that all of them were asked, where there are any; who was asked less than
    half of what others were asked is left out, where that leaves most: `frontier_note` tells.
    """
    rows = _frontier(cells, "cost")
    positive = [row["x"] for row in rows if row["x"] > 0]
    least = min(positive, default=1.0) * FREE
    return _with_names([{**row, "cost": row["x"], "x": row["x"] or least} for row in rows], "log")


def frontier_reasoning(cells: Cells) -> list[Row]:
    """Return accuracy against mean reasoning tokens a trial, of the models that tell them; likewise.

    None where nobody reasoned.
    """
    rows = _frontier(cells, "reasoning_tokens")
    return _with_names(rows, "sqrt") if any(row["x"] for row in rows) else []


def _with_names(rows: list[Row], scale: str) -> list[Row]:
    return [{**row, "name_at": side} for row, side in zip(rows, named_at(rows, scale=scale), strict=True)]


def frontier_note(cells: Cells, against: str) -> str | None:
    """Return over what the models of a frontier are compared; None: over all that any was asked.

    Args:
        cells: as for the frontier.
        against: its metric, `cost` or `reasoning_tokens`.
    """
    every = _placed(cells, against)
    placed = _asked_much(every)
    if not _asked_by_all(placed):
        return UNLIKE if placed else None
    compared, tasks = (dict.fromkeys(map(_task, those)) for those in (_in_common(placed), every))
    left_out = sorted(set(models_of(every)) - set(models_of(placed)))
    if len(compared) == len(tasks) and not left_out:
        return None
    without = f"; without {_listed(left_out)}, asked less than half of them" if left_out else ""
    if len(compared) == len(tasks):
        return f"Over all {len(tasks):,} tasks{without}"
    asked = f"Over the {len(compared):,} of {len(tasks):,} tasks that all of them were asked"
    return f"{asked} ({_tasks_listed(compared)}){without}"


def _tasks_listed(tasks: Collection[tuple[str, str]]) -> str:
    """Return the suites of tasks, and the tasks themselves where they are few."""
    suites = ", ".join(sorted({suite for suite, _ in tasks}))
    return suites if len(tasks) > MOST_TASKS else f"{suites}: {', '.join(sorted(task for _, task in tasks))}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LEFT_OUT:,} more" if len(names) > MOST_LEFT_OUT else ""
    return ", ".join(names[:MOST_LEFT_OUT]) + more


def _frontier(cells: Cells, against: str) -> list[Row]:
    rows = []
    for (model,), sums in summed(_in_common(_asked_much(_placed(cells, against))), ("model",)).items():
        x, seen = METRICS[against].of(sums).value, METRICS["accuracy"].of(sums)
        if x is not None:
            shown = {"value": seen.value, "low": seen.low, "high": seen.high, "trials": seen.trials}
            rows.append({"model": model, "x": x, **shown})
    ahead = undominated([(row["x"], row["value"]) for row in rows])
    return [{**row, "front": one} for row, one in zip(rows, ahead, strict=True)]


def _placed(cells: Cells, against: str) -> Cells:
    """Return the cells of the models that have a place on a frontier: they replied, at a known price."""
    groups = summed(cells, ("model",))
    models = {
        model
        for (model,), sums in groups.items()
        if sums["trials"] > sums["failed"] and METRICS[against].of(sums).value is not None
    }
    return [cell for cell in cells if cell["model"] in models]


def _asked_much(cells: Cells) -> Cells:
    """Return the cells of the models that were asked half of all the tasks or more, where most were."""
    tasks, models = _tasks_by_model(cells), models_of(cells)
    all_tasks = set[tuple[str, str]]().union(*tasks.values())
    kept = {model for model in models if 2 * len(tasks[model]) >= len(all_tasks)}
    return [cell for cell in cells if cell["model"] in kept] if 2 * len(kept) > len(models) else cells


def _in_common(cells: Cells) -> Cells:
    """Return the cells of the tasks that all were asked; all cells where there is no such task."""
    common = _asked_by_all(cells)
    return [cell for cell in cells if _task(cell) in common] if common else cells


def _asked_by_all(cells: Cells) -> set[tuple[str, str]]:
    tasks = _tasks_by_model(cells)
    return set.intersection(*tasks.values()) if tasks else set()


def _tasks_by_model(cells: Cells) -> Mapping[str, set[tuple[str, str]]]:
    tasks = defaultdict[str, set[tuple[str, str]]](set)
    for cell in cells:
        tasks[cell["model"]].add(_task(cell))
    return tasks


def _task(cell: Mapping[str, Any]) -> tuple[str, str]:
    return cell["suite"], cell["task"]


def digit_errors(found: Iterable[ErrorFindings], names: Mapping[Asked, str]) -> list[Row]:
    """Return where wrong answers have wrong digits, by place from either end.

    A picture for each end, a colour a model; where these are too many, the other way round.
    """
    rows = []
    for model, those in _by_model(found, names).items():
        for end, wrong in zip(ENDS, _wrong_from_ends(those), strict=True):
            rows += [_wrong_at(model, end, place, seen) for place, seen in enumerate(wrong, 1)]
    if len({row["series"] for row in rows}) > MOST_CROSSING:
        return [{**row, "panel": row["series"], "series": row["panel"]} for row in rows]
    return sorted(rows, key=lambda row: ENDS.index(row["panel"]))


def _wrong_from_ends(found: Sequence[ErrorFindings]) -> Iterator[list[Proportion]]:
    """Yield what `Findings.wrong_at` says of several groups together, from the left and from the right."""
    reach = sum((one.reach for one in found), Counter[int]())
    together = ErrorFindings(group=(), reach=reach)
    yield together.wrong_at(sum((one.from_left for one in found), Counter[int]()))
    yield together.wrong_at(sum((one.from_right for one in found), Counter[int]()))


def _wrong_at(model: str, end: str, place: int, seen: Proportion) -> Row:
    low, high = seen.interval or (None, None)
    return {
        "panel": end,
        "series": model,
        "position": place,
        "errors": seen.successes,
        "answers": seen.trials,
        "value": seen.share,
        "low": low,
        "high": high,
    }


def kinds(found: Iterable[ErrorFindings], names: Mapping[Asked, str]) -> list[Row]:
    """Return the kinds of errors of each model as parts of its examined answers, the commonest first.

    At most `MOST_KINDS` kinds are told apart; what is left is `OTHERS`.
    """
    by_model = _by_model(found, names).items()
    counts = {model: sum((one.kinds for one in those), Counter[str]()) for model, those in by_model}
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


def _by_model(found: Iterable[ErrorFindings], names: Mapping[Asked, str]) -> dict[str, list[ErrorFindings]]:
    """Return what was found by the name of who was asked, in the order of the names."""
    shown = told_apart(names.values())
    those: dict[str, list[ErrorFindings]] = {shown[name]: [] for name in names.values()}
    for one in found:
        those[shown[names[one.group[0], one.group[1], one.group[2]]]].append(one)
    return those


def pair_rows(ranking: Ranking, shown: Mapping[str, str] | None = None) -> list[Row]:
    """Return how far ahead the leader of a ranking is of each other, on the problems in common.

    Args:
        ranking: of standings.
        shown: names as charts show them, by the whole name; None: those of this ranking told apart.
    """
    shown = told_apart(line.name for line in ranking.lines) if shown is None else shown
    leader = ranking.lines[0].name
    return [_pair(one, shown, tied=one.b in ranking.ties[0]) for one in ranking.pairs if one.a == leader]


def _pair(one: PairLine, shown: Mapping[str, str], *, tied: bool) -> Row:
    model, other = (shown.get(name, shortened(name)) for name in (one.a, one.b))
    return {
        "pair": f"{model} − {other}",
        "model": model,
        "other": other,
        "difference": one.found.difference,
        "low": one.interval[0],
        "high": one.interval[1],
        "p": one.p_holm,
        "tied": tied,
        "problems": one.found.problems,
    }


# ── over time ────────────────────────────────────────────────────────────────────────────────


def latency_rows(minutes: Iterable[Minute], shown: Mapping[str, str] | None = None) -> list[Row]:
    """Return the latency of answered calls over time; `shown` as for `pair_rows`."""
    return [
        {**place, "p50_s": one.p50_s, "p95_s": one.p95_s, "calls": one.calls}
        for place, one in _timed(minutes, shown)
    ]


def throughput_rows(minutes: Iterable[Minute], shown: Mapping[str, str] | None = None) -> list[Row]:
    """Return answered calls and output tokens a minute over time; `shown` as for `pair_rows`."""
    return [
        {
            **place,
            "calls_per_minute": 60 * one.calls / one.seconds,
            "tokens_per_minute": None if one.output_tokens is None else 60 * one.output_tokens / one.seconds,
        }
        for place, one in _timed(minutes, shown)
    ]


def _timed(minutes: Iterable[Minute], shown: Mapping[str, str] | None) -> Iterator[tuple[Row, Minute]]:
    found = list(minutes)
    models = dict.fromkeys(one.name for one in found)
    shown = told_apart(models) if shown is None else shown
    parts = _parts((one.at, one.seconds) for one in found)
    places = {name: place for place, name in enumerate(shown)}
    for one in sorted(found, key=lambda one: places.get(one.name, len(places))):
        model = shown.get(one.name, shortened(one.name))
        crowded = len(models) > MOST_SERIES
        named = {"panel": model, "series": EACH} if crowded else {"panel": "", "series": model}
        yield {**named, "at": one.at, "part": parts[one.at]}, one


def _parts(times: Iterable[tuple[int, float]]) -> dict[int, int]:
    """Return which part of the work each time is in: where nobody did anything for a while, the next begins.

    Args:
        times: when each stretch begins, in milliseconds, and its length in seconds.
    """
    parts, part, end = dict[int, int](), 0, inf
    for at, seconds in sorted(set(times)):
        part += at > end
        parts[at], end = part, at + 1000 * LULL * seconds
    return parts


def quota_rows(uses: Iterable[LimitUse]) -> list[Row]:
    """Return how much of each lane's limits was used over time."""
    found = list(uses)
    shown = told_apart(use.lane for use in found)
    parts = _parts((milliseconds(use.started_at), max(use.seconds, MINUTE_S)) for use in found)
    return [
        {
            "panel": shown[use.lane],
            "series": limit,
            "at": milliseconds(use.started_at),
            "part": parts[milliseconds(use.started_at)],
            "used": share,
            "refused": use.refused,
        }
        for use in found
        for limit, share in use.shares.items()
    ]


def milliseconds(at: datetime) -> int:
    """Return a time as charts have it: milliseconds since 1970, UTC."""
    return round(at.astimezone(UTC).timestamp() * 1000)
