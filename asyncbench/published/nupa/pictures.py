"""The pictures of the paper "Number Cookbook", and those that its tables ask for.

Each is one `PublishedPicture` over rows: of ranges of lengths, or of `picture_counts`. The name of a picture
is its id in `docs/published.md`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import sqrt
from operator import eq
from statistics import fmean, stdev
from typing import Any, Final

from asyncbench.analysis.entrants import distinct_names, names_of
from asyncbench.published.nupa.counts import TaskLine, by_asked, task_name
from asyncbench.published.nupa.picture_counts import (
    POOLED,
    SCALES,
    SINGLE,
    Kind,
    PictureCounts,
    Row,
    Shown,
    asked_of,
    range_rows,
)
from asyncbench.published.nupa.table_pictures import of_frames, of_tables
from asyncbench.published.pictures import PublishedPicture, picture
from asyncbench.published.printed import MARK, published_table
from asyncbench.suites.numbers import FORMS, parts
from asyncbench.suites.nupa.tasks import REPRESENTATIONS, task_of

PARTS: Final[Mapping[str, tuple[str, ...]]] = {  # the paper has five pictures of all tasks
    "sums": ("add", "sub"),
    "products": ("multiply", "truediv", "floordiv", "mod"),
    "comparison": ("max", "min"),
    "digits": ("digit_max", "digit_min", "digit_add", "get_digit", "length", "count"),
    "conversion": ("to_float", "to_scient", "sig"),
}
BY_FIGURE: Final[Mapping[str, str]] = {
    "figure-5": "exact_match",
    "figure-6": "digit_match",
    "figure-7": "dlength",
}
CHOSEN: Final[Collection[Kind]] = {  # those whose values the paper's text reads off
    *(("add", "", kind) for kind in REPRESENTATIONS),
    *(("max", "", "integer"), ("max", "", "float"), ("max", "hard", "integer"), ("length", "", "integer")),
    *(("get_digit", "", "integer"), ("digit_max", "", "integer"), ("truediv", "", "integer")),
    *(("mod", "", "integer"), ("sig", "", "integer")),
}


def pictures_of(
    lines: Sequence[TaskLine], counts: PictureCounts, *, printed: bool
) -> Iterator[PublishedPicture]:
    """Yield all pictures; those without data have no rows.

    Args:
        lines: of a report.
        counts: of the same folder.
        printed: whether the paper's own figures stand beside the folder's.
    """
    full = names_of(by_asked(lines))
    short = distinct_names(full.values())
    names = {entrant: short[name] for entrant, name in full.items()}
    shown = Shown(lines=lines, counts=counts, names=names, ranges=range_rows(lines, names), printed=printed)
    for pictures in (_of_ranges, of_tables, of_frames, _of_counts):
        yield from pictures(shown)


# ── by range of lengths ──────────────────────────────────────────────────────────────────────


def _of_ranges(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Figures 2, 5, 6, 7 and 8, and the same by model as maps."""
    rows = shown.ranges
    chosen = [row for row in rows if row["kind"] in CHOSEN]
    yield _bars("figure-2", "Parts of performance: exact match by range", chosen, "exact_match")
    for name, figure in BY_FIGURE.items():
        title = f"{_title(figure)} by task and range"
        for part, tasks in PARTS.items():
            yield _bars(f"{name}-{part}", title, [row for row in rows if row["kind"][0] in tasks], figure)
        places = {"x": "range", "y": "task", "panel": "model"}
        yield picture(
            f"{name}-map", title, "map", rows, figure, scale=SCALES[figure], notes=(POOLED,), **places
        )
    both = {(run, model) for (run, model, _), shots in shown.counts.shots.items() if shots}
    with_examples = [row for row in chosen if row["asked"][:2] in both]
    yield _bars("figure-8", "With and without examples: exact match by range", with_examples, "exact_match")


def _bars(name: str, title: str, rows: Iterable[Row], figure: str) -> PublishedPicture:
    """Return a panel a task, a group of bars a range, a colour a model."""
    guide = {"guide": "guess"} if figure == "exact_match" else {}
    places = {"x": "range", "series": "model", "panel": "task", **guide}
    return picture(
        name, title, "bars", rows, figure, "answers", scale=SCALES[figure], notes=(POOLED,), **places
    )


def _title(figure: str) -> str:
    return {"exact_match": "Exact match", "digit_match": "Digit match"}.get(figure, "log2(dlength + 1)")


# ── with a count of their own ────────────────────────────────────────────────────────────────


def _of_counts(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Figure 1, and Tables 2 and 3."""
    yield from _examples(shown)
    yield from _speeds(shown)
    yield _single(shown)


def _examples(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Figure 1: a wrong answer of each under the right one, place by place."""
    rows = []
    for wrong in shown.counts.wrong:
        task = task_of(wrong["task"], wrong["variant"], wrong["representation"])
        truth, answer = laid(wrong["expected"], wrong["answer"], task.answer_type)
        panel = f"{task_name(task)}: {shown.named(wrong)}"
        for place, pair in enumerate(zip(truth, answer, strict=True), 1):
            for name, character in zip(("right answer", "answer"), pair, strict=True):
                rows.append(
                    {
                        "example": panel,
                        "of": name,
                        "place": place,
                        "digit": character,
                        "right": int(eq(*pair)),
                    }
                )
    notes = (
        "The parts of a number are laid side by side as digit match counts them. Light: wrong or missing.",
    )
    places = {"panel": "example", "x": "place", "y": "of", "text": "digit"}
    yield picture("figure-1", "A wrong answer, digit by digit", "map", rows, "right", notes=notes, **places)


def laid(truth: str, answer: str, answer_type: str) -> tuple[str, str]:
    """Return two numbers of a form with spaces where one has no digit that the other has."""
    form = FORMS[answer_type]
    true, read = (parts(number, answer_type) for number in (truth, answer))
    widths = [max(map(len, pair)) for pair in zip(true, read, strict=True)]
    forms = [
        f"{{:{'>' if end == 'right' else '<'}{width}}}"
        for end, width in zip(form.aligned, widths, strict=True)
    ]
    written = form.written.replace("%s", "{}").format(*forms)
    return written.format(*true), written.format(*read)


def _speeds(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Table 2: seconds a sample, and digits a second."""
    rows = [
        {
            "model": shown.named(row),
            "calls_in_flight": row["in_flight"],
            "answers": row["answers"],
            "seconds_per_sample": row["wall_s"] / row["answers"],
            "mean_latency_s": row["latency_s"],
            "digits_per_second": row["digits"] / row["wall_s"],
            "tokens_per_second": None if row["tokens"] is None else row["tokens"] / row["wall_s"],
        }
        for row in sorted(shown.counts.speeds, key=lambda row: list(shown.names).index(asked_of(row)))
    ]
    note = (
        "Time in which a call was in flight. Conditions of one model share it by how long their calls took."
    )
    titles = {
        "seconds_per_sample": "Seconds per sample",
        "digits_per_second": "Digits of the right answers per second",
    }
    printed = [
        {
            "model": f"{row['method']}, batch {row['batch_size']} {MARK}",
            "calls_in_flight": row["batch_size"],
            "seconds_per_sample": float(row["seconds_per_sample"]),
        }
        for row in published_table("nupa_table_2").to_pylist()
    ]
    for value, title in titles.items():
        beside = printed if shown.printed and rows and value == "seconds_per_sample" else []
        also = ("calls_in_flight", "answers", "mean_latency_s", "tokens_per_second")
        yield picture(
            f"table-2-{value.split('_')[0]}",
            title,
            "stack",
            [*rows, *beside],
            value,
            *also,
            y="model",
            scale="number",
            notes=shown.notes(note),
        )


def _single(shown: Shown) -> PublishedPicture:
    """Return Table 3: exact match at single lengths, with the standard error over repeats."""
    repeats = defaultdict[tuple[Any, ...], list[Row]](list)  # Any: a text, a length
    for row in shown.counts.single:
        repeats[shown.named(row), row["task"], row["representation"], row["length"]].append(row)
    rows = []
    for (model, *kind, length), its in repeats.items():
        means = [row["exact_match"] for row in its]
        error = stdev(means) / sqrt(len(means)) if len(means) > 1 else None
        counts = {"repeats": len(its), "truncated": sum(row["truncated"] for row in its)}
        rows.append(_at_length(model, kind, length, fmean(means), error) | counts)
    for row in published_table("nupa_table_3").to_pylist() if shown.printed and rows else ():
        if row["exact_match"] is not None:
            error = None if row["standard_error"] is None else float(row["standard_error"])
            of = (f"{row['model']} {MARK}", (row["task"], row["representation"]), row["digits"])
            rows.append(_at_length(*of, float(row["exact_match"]), error))
    order = list(SINGLE)
    rows.sort(key=lambda row: (order.index(row["kind"]), row["length"]))
    places = {"x": "length", "series": "model", "panel": "task"}
    note = "Means over the repeats, with their standard error where there are several."
    also = ("standard_error", "low", "high", "repeats", "truncated")
    title = "Exact match at single lengths"
    return picture("table-3", title, "bars", rows, "exact_match", *also, notes=shown.notes(note), **places)


def _at_length(model: str, kind: Sequence[str], length: int, mean: float, error: float | None) -> Row:
    ends = {"low": None, "high": None} if error is None else {"low": mean - error, "high": mean + error}
    figures = {"exact_match": mean, "standard_error": error, **ends}
    return {"task": ", ".join(kind), "kind": tuple(kind), "length": length, "model": model, **figures}
