"""The pictures of the paper "Number Cookbook", and those that its tables and sentences ask for.

Each is one `PublishedPicture` over rows: of ranges of lengths, or of `picture_counts`. The name of a picture
is its id in `docs/published.md`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from asyncbench.published.nupa.counted_pictures import of_counts
from asyncbench.published.nupa.counts import RANGES, TaskLine, by_asked
from asyncbench.published.nupa.picture_counts import PictureCounts, Row
from asyncbench.published.nupa.picture_rows import POOLED, SCALES, Kind, Shown, range_rows
from asyncbench.published.nupa.table_pictures import of_frames, of_tables
from asyncbench.published.pictures import PublishedPicture, picture
from asyncbench.results import names_of, told_apart
from asyncbench.suites.nupa import REPRESENTATIONS

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
SLOPES: Final = (("add", "", "integer"), ("add", "", "float"), ("length", "", "integer"))
NO_ANSWER: Final = 0.9  # of the digits asked: from here on dlength says that answers are missing


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
    short = told_apart(full.values())
    names = {asked: short[name] for asked, name in full.items()}
    shown = Shown(lines=lines, counts=counts, names=names, ranges=range_rows(lines, names), printed=printed)
    for pictures in (_of_ranges, of_tables, of_frames, of_counts, _of_sentences):
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


# ── sentences ────────────────────────────────────────────────────────────────────────────────


def _of_sentences(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield what sentences of sections 2.4 and A.3 say, as figures; N-5 and N-9 have counts of their own."""
    rows = shown.ranges
    slopes = [row for row in rows if row["kind"] in SLOPES]
    places = {"x": "range", "series": "task", "panel": "model"}
    yield picture(
        "n-1", "Accuracy falls with length", "lines", slopes, "exact_match", notes=(POOLED,), **places
    )
    yield _by_representation(rows)
    yield _bars(
        "n-3",
        "A digit at a place, beside guessing",
        [row for row in rows if row["kind"][0] == "get_digit"],
        "exact_match",
    )
    places = {"x": "dlength", "x_scale": "digits", "series": "range", "panel": "model"}
    title = "Wrong digits or wrong length: a point a task and range"
    yield picture("n-4", title, "points", rows, "digit_match", "task", notes=(POOLED,), **places)
    pairs = [
        {**row, "of": f"{row['model']}: {row['representation']}"} for row in rows if row["kind"][0] == "max"
    ]
    places = {"x": "range", "series": "variant", "panel": "of"}
    yield picture(
        "n-6", "Plain and hard comparisons", "bars", pairs, "exact_match", notes=(POOLED,), **places
    )
    yield _model_against_model(rows)
    marked = [{**row, "percent": _no_answer(row)} for row in rows if row["no_answer"] is not None]
    note = f"In percent. !: dlength is {NO_ANSWER:.0%} of the digits asked or more: hardly any valid answer."
    places = {"x": "range", "y": "task", "panel": "model", "text": "percent"}
    yield picture(
        "n-8",
        "Replies without an answer",
        "map",
        marked,
        "no_answer",
        "dlength",
        "digits_asked",
        notes=(note,),
        **places,
    )


def _by_representation(rows: Iterable[Row]) -> PublishedPicture:
    groups = defaultdict[tuple[str, str, str], list[float]](list)
    for row in rows:
        if row["exact_match"] is not None:
            groups[row["range"], row["model"], row["representation"]].append(row["exact_match"])
    keys = sorted(groups, key=lambda key: (RANGES.index(key[0]), REPRESENTATIONS.index(key[2])))
    means = [
        {"range": of, "model": model, "representation": kind, "exact_match": fmean(groups[of, model, kind])}
        for of, model, kind in keys
    ]
    places = {"panel": "range", "x": "representation", "y": "model"}
    note = "Means over tasks, which the paper does not have. S to XL have other lengths for long tasks."
    return picture(
        "n-2", "Exact match by representation", "map", means, "exact_match", notes=(note,), **places
    )


def _model_against_model(rows: Iterable[Row]) -> PublishedPicture:
    by_model: dict[str, dict[tuple[str, str], float | None]] = {}
    for row in rows:
        by_model.setdefault(row["model"], {})[row["task"], row["range"]] = row["exact_match"]
    first, *others = by_model
    points = [
        {
            "model": other,
            "task": place[0],
            "range": place[1],
            "first_model": x,
            "second_model": by_model[other].get(place),
        }
        for other in others
        for place, x in by_model[first].items()
        if x is not None and by_model[other].get(place) is not None
    ]
    places = {"panel": "model", "x": "first_model", "x_scale": "share", "series": "range", "diagonal": True}
    return picture(
        "n-7",
        f"Exact match of each model against that of {first}, a point a task and range",
        "points",
        points,
        "second_model",
        "task",
        **places,
    )


def _no_answer(row: Row) -> str:
    missing = row["dlength"] is not None and row["dlength"] >= NO_ANSWER * row["digits_asked"]
    return f"{100 * row['no_answer']:.0f}{'!' if missing else ''}"


def _title(figure: str) -> str:
    return {"exact_match": "Exact match", "digit_match": "Digit match"}.get(figure, "log2(dlength + 1)")
