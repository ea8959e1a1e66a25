"""The pictures of the paper "Number Cookbook", and those that its tables ask for.

Each is one `PublishedPicture` over rows: of ranges of lengths, or of counts of their own. The name of a
picture is its id in `docs/published.md`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from operator import eq
from statistics import fmean, stdev
from typing import Any, Final

from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, names_of
from asyncbench.published.nupa.counts import (
    DIGITS,
    RANGES,
    SUITE,
    TaskLine,
    entrant_lines,
    is_misprint,
    task_name,
)
from asyncbench.published.reports import (
    LACKING,
    MARK,
    MISPRINTED,
    MOST_SERIES,
    NO_ROOM,
    UNANSWERED,
    UNPRINTED,
    PublishedPicture,
    counted_of,
    picture,
    published_table,
)
from asyncbench.store.schema import ENTRANT
from asyncbench.suites.numbers import FORMS, parts
from asyncbench.suites.nupa.tasks import REPRESENTATIONS, TASKS, NupaTask, range_of, task_of
from asyncbench.suites.suite import Kind
from asyncbench.tables.numbers import rounded

# ── The data of NUPA's pictures


Row = dict[str, Any]  # Any: text, number or None, by column

SCALES: Final[Mapping[str, str]] = {"exact_match": "share", "digit_match": "share", "dlength": "digits"}
GUESSED: Final[Mapping[str, float]] = {"get_digit": 0.1, "max": 0.5, "min": 0.5}  # exact match of guessing
POOLED: Final = "Means over the answers of a range, graded by `strict`."
SHADED: Final = "Cells hold the mean dlength, and are shaded by log2(dlength + 1)."
PRINTED_NOTE: Final = f"Models marked {MARK} are as the paper prints them."

TRACE_TOKENS: Final = 2000  # of prompt and reply together: the context of the paper's rule-following model
SINGLE: Final[Mapping[tuple[str, str], range]] = {  # Table 3: task, representation → lengths
    ("add", "float"): range(5, 8),
    ("multiply", "fraction"): range(2, 5),
    ("max", "scientific"): range(38, 41),
    ("mod", "integer"): range(6, 9),
}


_KIND: Final = "task, variant, representation"
_WHO: Final = ", ".join(ENTRANT)
_STRICT: Final = f"suite = '{SUITE}' AND grader = 'strict'"

_ANSWERS: Final = f"""
SELECT trial_id, {_WHO}, style, coalesce(try_cast(condition_params->>'shots' AS INT), 0) AS shots,
    {_KIND}, length, repeat, outcome, input_tokens + output_tokens AS tokens, output_tokens,
    graded.exact_match, digits_total
FROM (SELECT trial_id, exact_match, digits_total FROM grades WHERE {_STRICT}) AS graded
JOIN (SELECT * EXCLUDE (exact_match) FROM trials WHERE suite = '{SUITE}' AND outcome <> 'failed')
    USING (trial_id)
WHERE digits_total IS NOT NULL
"""  # noqa: S608  made of our own words alone

_SHOTS = f"SELECT DISTINCT {_WHO}, shots FROM answers"  # noqa: S608  our own words

# A lane is busy while any call is in flight, in microseconds: gaps and overlaps are left out, and conditions
# that it answered in turn share its time by how long their calls took.
_SPEEDS = f"""
WITH calls AS (
    SELECT trial_id, model, in_flight, latency_s, (1e6 * latency_s)::BIGINT AS took,
        epoch_us(started_at) AS began, began + took AS ended
    FROM attempts WHERE status = 'ok' AND latency_s IS NOT NULL
), following AS (
    SELECT model, took, ended, greatest(began, max(ended) OVER before) AS counted_from
    FROM calls WINDOW before AS (
        PARTITION BY model ORDER BY began ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
), lanes AS (
    SELECT model, sum(greatest(0, ended - counted_from)) AS busy, sum(took) AS took
    FROM following GROUP BY model
)
SELECT {_WHO}, count(DISTINCT trial_id) AS answers, avg(calls.latency_s) AS latency_s,
    max(in_flight) AS in_flight, sum(output_tokens)::BIGINT AS tokens, sum(digits_total)::BIGINT AS digits,
    any_value(busy) * (sum(calls.took) / any_value(lanes.took)) / 1e6 AS wall_s
FROM calls JOIN answers USING (trial_id, model) JOIN lanes USING (model)
GROUP BY ALL HAVING wall_s > 0 ORDER BY ALL
"""  # noqa: S608  made of our own words alone

_SINGLE = f"""
SELECT {
    _WHO
}, task, representation, length, repeat, count(*) AS answers, avg(exact_match::INT) AS exact_match,
    count(*) FILTER (outcome = 'truncated') AS truncated
FROM answers WHERE variant <> 'easy' AND (task <> 'max' OR variant = '') AND ({
    " OR ".join(
        f"(task = '{task}' AND representation = '{kind}' AND length BETWEEN {lengths[0]} AND {lengths[-1]})"
        for (task, kind), lengths in SINGLE.items()
    )
}) GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone

_TRACES = f"""
SELECT {_WHO}, task, representation,
    coalesce(max(length) FILTER (tokens <= {TRACE_TOKENS} AND outcome <> 'truncated'), 0) AS longest
FROM answers WHERE style = 'rules' GROUP BY ALL HAVING count(tokens) > 0 ORDER BY ALL
"""  # noqa: S608  made of our own words alone

_WRONG = f"""
SELECT {_WHO}, {_KIND}, length, expected, answer
FROM (SELECT trial_id, answer FROM grades WHERE {_STRICT} AND NOT exact_match AND answer IS NOT NULL)
    JOIN (SELECT trial_id, {_WHO}, {_KIND}, length, expected FROM trials) USING (trial_id)
QUALIFY row_number() OVER (PARTITION BY {_WHO} ORDER BY abs(length - 8), task, representation, trial_id) = 1
ORDER BY ALL
"""  # noqa: S608  made of our own words alone


_COUNTED: Final[Mapping[str, str]] = {  # field of `Shown` → its query
    "shots": _SHOTS,
    "speeds": _SPEEDS,
    "single": _SINGLE,
    "traces": _TRACES,
    "wrong": _WRONG,
}


def _counted(views: FolderViews) -> dict[str, list[Row]]:
    views.keep("answers", _ANSWERS)
    return {name: views.rows(query) for name, query in _COUNTED.items()}


# ── rows and names ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What all pictures are drawn from."""

    lines: Sequence[TaskLine]
    names: Mapping[Entrant, str]
    ranges: Sequence[Row]  # a row for each of S, M, L, XL of each line
    printed: bool  # whether the paper's own figures stand beside
    # counts of the folder that only pictures show; rows have run, model and condition
    shots: Sequence[Row] = ()  # worked examples of each condition
    speeds: Sequence[Row] = ()  # of those whose calls have times
    single: Sequence[Row] = ()  # a row a repeat: exact match at the lengths of Table 3
    traces: Sequence[Row] = ()  # the longest problem whose rule and reply fit the context
    wrong: Sequence[Row] = ()  # a wrong answer of each, to look at

    def named(self, row: Row) -> str:
        """Return the name of the entrant of a row."""
        return self.names[row["run"], row["model"], row["condition"]]

    def notes(self, *notes: str) -> tuple[str, ...]:
        """Return the notes of a picture in which the paper's figures may stand beside."""
        return (*notes, PRINTED_NOTE) if self.printed else notes


def range_rows(lines: Iterable[TaskLine], names: Mapping[Entrant, str]) -> list[Row]:
    """Return a row for each range of each line: its means, its answers, and what guessing reaches."""
    rows = []
    for line in lines:
        figures, task = line.by_grader["strict"], line.task
        for of_range in RANGES:
            answers = sum(
                added.answers
                for length, added in figures["exact_match"].by_length.items()
                if range_of(length, task.length_class) == of_range
            )
            means = {figure: float_or_none(figures[figure].ranges[of_range]) for figure in SCALES}
            was_asked = any(range_of(length, task.length_class) == of_range for length in line.lengths)
            rows.append(
                {
                    "task": task_name(task),
                    "representation": task.representation,
                    "range": of_range,
                    "model": names[line.asked],
                    "asked": line.asked,
                    "kind": task.kind,
                    "answers": answers,
                    **means,
                    **({"gap": UNANSWERED} if was_asked and not answers else {}),
                    "guess": GUESSED.get(task.task),
                }
            )
    return rows


def float_or_none(value: Any) -> float | None:  # Any: a number, or None
    return None if value is None else float(value)


# ── Pictures of the paper's tables: models × tasks, and its frame of representations × tasks


FRAME: Final = (
    *("add", "sub", "multiply", "truediv", "floordiv", "mod"),
    *("max", "min", "digit_max", "digit_min", "digit_add"),
    *("get_digit", "length", "count", "to_float", "to_scient", "sig"),
)
OF_TABLE_10: Final = (("add", "", "integer"), ("max", "", "float"), ("floordiv", "", "integer"))
OF_TABLE_18: Final = (
    *(("add", "", "integer"), ("add", "", "float")),
    *(("multiply", "easy", "fraction"), ("add", "", "scientific")),
)
IN_TEST: Final = "✓"  # of the paper's Table 1
LETTERS: Final = {"integer": "I", "int": "i", "float": "Fl", "fraction": "Fr", "scientific": "S", None: "N"}


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def table_pictures(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Tables 7 to 10 and 18: models × tasks."""
    for table, (figure, title) in DIGITS.items():
        yield picture(
            table.removeprefix("nupa_").replace("_", "-"),
            f"Well-learned / preserved digits by {title}",
            "map",
            _digit_rows(shown, table, figure),
            "share_of_longest",
            *("well_learned", "preserving", "gap"),
            x="model",
            y="task",
            y_order=_paper_order(task_name(line.task) for line in shown.lines),
            text="digits",
            notes=shown.notes(),
            shading="Shaded: the well-learned digits as a share of the longest problems of the task.",
        )
    printed = [
        (
            f"{row['model']}, {row['shots']} examples",
            (row["task"], "", row["representation"]),
            row["range"],
            row["exact_match"],
        )
        for row in published_table("nupa_table_10").to_pylist()
    ]
    yield _cells(shown, "table-10", "Exact match by range, with and without examples", OF_TABLE_10, printed)
    columns = {f"exact_match_{column_range.lower()}": column_range for column_range in RANGES}
    columns |= {"well_learned_digits": "well learned", "performance_preserving_digits": "preserving"}
    printed = [
        (
            row["configuration"],
            (row["task"], row["variant"], row["representation"]),
            column_range,
            row[column],
        )
        for row in published_table("nupa_table_18").to_pylist()
        for column, column_range in columns.items()
    ]
    yield _cells(
        shown, "table-18", "Configurations of a model: exact match by range, and digits", OF_TABLE_18, printed
    )


def _digit_rows(shown: Shown, table: str, figure: str) -> Iterator[Row]:
    kinds = {line.task.kind: line.task for line in shown.lines}
    for line in shown.lines:
        learned = line.by_grader["strict"][figure].digits
        if learned is not None and learned.well_learned is not None and learned.preserving is not None:
            yield _digit_row(shown.names[line.asked], line.task, learned.well_learned, learned.preserving)
        else:
            yield _digit_gap(shown.names[line.asked], line.task, UNANSWERED)
    for row in published_table(table).to_pylist() if shown.printed else ():
        if task := kinds.get((row["task"], row["variant"], row["representation"])):
            model = f"{row['model']} {MARK}"
            if is_misprint(row):
                yield _digit_gap(model, task, MISPRINTED)
            else:
                digits = row["well_learned_digits"], row["performance_preserving_digits"]
                yield _digit_row(model, task, *digits)


def _digit_row(model: str, task: NupaTask, well_learned: int, preserving: int) -> Row:
    return {
        "task": task_name(task),
        "model": model,
        "digits": f"{well_learned} / {preserving}",
        "well_learned": well_learned,
        "preserving": preserving,
        "share_of_longest": well_learned / task.length_class,
    }


def _digit_gap(model: str, task: NupaTask, reason: str) -> Row:
    return {"task": task_name(task), "model": model, "share_of_longest": None, "gap": reason}


def _cells(
    shown: Shown, name: str, title: str, kinds: Sequence[Kind], printed: Iterable[tuple[str, Kind, str, Any]]
) -> PublishedPicture:  # Any: a printed number
    """Return models × (task, range), and the digits of each task where the printed table has them."""
    with_digits = any(column_range not in RANGES for _, _, column_range, _ in printed)
    rows = [
        _cell(row["model"], row["kind"], row["range"], row["exact_match"], row.get("gap"))
        for row in shown.ranges
        if row["kind"] in kinds and (row["exact_match"] is not None or "gap" in row)
    ]
    for line in shown.lines if with_digits else ():
        learned = line.by_grader["strict"]["exact_match"].digits
        if learned is not None and line.task.kind in kinds:
            for column_range, digits in (
                ("well learned", learned.well_learned),
                ("preserving", learned.preserving),
            ):
                if digits is not None:
                    rows.append(_cell(shown.names[line.asked], line.task.kind, column_range, digits))
    if shown.printed and rows:
        rows += [
            _cell(f"{model} {MARK}", kind, column_range, value)
            for model, kind, column_range, value in printed
        ]
    models = list(dict.fromkeys(row["model"] for row in rows))
    order = [*RANGES, *(("well learned", "preserving") if with_digits else ())]
    rows.sort(
        key=lambda row: (models.index(row["model"]), kinds.index(row["kind"]), order.index(row["range"]))
    )
    columns = [_column(kind, column_range) for kind in kinds for column_range in order]
    places = {"x": "task and range", "y": "model", "text": "figure"}
    notes = shown.notes(POOLED)
    return picture(name, title, "map", rows, "share", "gap", x_order=columns, notes=notes, **places)


def _column(kind: Kind, column_range: str) -> str:
    return f"{task_name(task_of(*kind))} {column_range}"


def _cell(model: str, kind: Kind, column_range: str, value: Any, gap: str | None = None) -> Row:
    """Return a cell with the number `value`. Where it is None, `gap` says why."""
    task = task_of(*kind)
    row = {
        "model": model,
        "kind": kind,
        "range": column_range,
        "task and range": _column(kind, column_range),
    }
    if value is None:
        return {**row, "share": None, "gap": gap}
    if column_range in RANGES:
        return {**row, "share": float(value), "figure": f"{float(value):.2f}"}
    return {**row, "share": float(value) / task.length_class, "figure": f"{value}"}


# ── the paper's frame: representations × tasks ───────────────────────────────────────────────


def frame_pictures(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Tables 1, 4, 5 and 6, and Table 19."""
    places: Mapping[str, Any] = {  # Any: of a picture
        "x": "task",
        "y": "representation",
        "x_order": FRAME,
        "y_order": REPRESENTATIONS,
        "dash": "is not in the paper's test",
    }
    paper = [task for task in TASKS.values() if "paper41" in task.sets]
    means = {
        (shown.names[line.asked], line.task): float_or_none(line.by_grader["strict"]["exact_match"].mean)
        for line in shown.lines
    }
    rows = [
        _framed(
            task,
            model=model,
            exact_match=(mean := means.get((model, task))),
            mark=IN_TEST if mean is None else rounded(100 * mean, 0),
        )
        for model in dict.fromkeys(model for model, _ in means)
        for task in paper
    ]
    title = "What numbers models understand: exact match by representation and task"
    notes = (POOLED, f"{IN_TEST} is in the paper's test, and was not asked here.")
    yield picture(
        "table-1",
        title,
        "map",
        _frame_rows(rows),
        "exact_match",
        panel="model",
        text="mark",
        notes=notes,
        **places,
    )
    pictures: Mapping[str, tuple[str, Callable[[NupaTask], str]]] = {
        "table-4": ("Representation of the second operand", lambda task: LETTERS[task.second]),
        "table-5": ("Representation of the answer", lambda task: LETTERS[task.answer]),
        "table-6": ("Up to 20 digits (H) or 100 (E)", lambda task: "H" if task.length_class == 20 else "E"),
    }
    for name, (title, letter) in pictures.items():
        rows = [_framed(task, longest=task.length_class, letter=letter(task)) for task in paper]
        shape = {"scale": "number", "text": "letter", "of_folder": False}
        yield picture(name, title, "map", _frame_rows(rows), "longest", **shape, **places)
    traces = [{**row, "model": shown.named(row), "digits": str(row["longest"])} for row in shown.traces]
    if shown.printed and traces:
        for row in published_table("nupa_table_19").to_pylist():
            longest = row["max_digits"]
            figures = {"longest": longest, "digits": str(longest or LACKING)}
            gap = {} if longest else {"gap": UNPRINTED}
            traces.append({**row, "model": f"RF CoT {MARK}", **figures, **gap})
    title = f"Longest problem whose rule and reply fit in {TRACE_TOKENS:,} tokens"
    note = "The digits of the longest problem, answered under a condition with `style: rules`."
    yield picture(
        "table-19",
        title,
        "map",
        _frame_rows(traces),
        "longest",
        "gap",
        scale="number",
        panel="model",
        text="digits",
        notes=shown.notes(note),
        **{**places, "dash": "was not asked"},
    )


def _paper_order(names: Iterable[str]) -> list[str]:
    """Return names of tasks, each once, as the paper's tables have them."""
    present = set(names)
    return [name for name in map(task_name, TASKS.values()) if name in present]


def _framed(task: NupaTask, **figures: object) -> Row:
    return {"task": task.task, "representation": task.representation, **figures}


def _frame_rows(rows: Iterable[Row]) -> list[Row]:
    """Return rows in the order of the paper's frame, panel by panel."""
    rows = list(rows)
    models = list(dict.fromkeys(row.get("model") for row in rows))
    return sorted(
        rows,
        key=lambda row: (
            models.index(row.get("model")),
            REPRESENTATIONS.index(row["representation"]),
            FRAME.index(row["task"]),
        ),
    )


# ── All pictures


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


def pictures_of(lines: Sequence[TaskLine], folder: Folders, *, printed: bool) -> Iterator[PublishedPicture]:
    """Yield all pictures; those without data have no rows.

    Args:
        lines: of a report.
        folder: of which they are. Raises as `counts_of` does.
        printed: whether the paper's own figures stand beside the folder's.
    """
    names = names_of(entrant_lines(lines))
    counts = counted_of(folder, [SUITE], _counted)
    shown = Shown(lines=lines, names=names, ranges=range_rows(lines, names), printed=printed, **counts)
    yield from _range_pictures(shown)
    yield from table_pictures(shown)
    yield from frame_pictures(shown)
    yield from _examples(shown)
    yield from _speeds(shown)
    yield _single(shown)


def paper_tables(lines: Sequence[TaskLine], *, printed: bool) -> Iterator[PublishedPicture]:
    """Yield Tables 1, 7 to 10 and 18, and exact match by task and range; all are maps of models.

    Args:
        lines: of a report.
        printed: whether the paper's own figures stand beside the folder's.
    """
    names = names_of(entrant_lines(lines))
    ranges = range_rows(lines, names)
    shown = Shown(lines=lines, names=names, ranges=ranges, printed=printed)
    yield next(frame_pictures(shown))
    yield from table_pictures(shown)
    order = _paper_order(row["task"] for row in ranges)
    for of_range in RANGES:
        rows = [row for row in ranges if row["range"] == of_range]
        title = f"Exact match in range {of_range} by task"
        places = {"x": "model", "y": "task", "y_order": order, "notes": (POOLED,)}
        yield picture(f"range-{of_range}", title, "map", rows, "exact_match", "gap", **places)


# ── by range of lengths ──────────────────────────────────────────────────────────────────────


def _range_pictures(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Figures 2, 5, 6, 7 and 8, and the same by model as maps."""
    rows = shown.ranges
    chosen = [row for row in rows if row["kind"] in CHOSEN]
    order = _paper_order(row["task"] for row in rows)
    yield _bars("figure-2", "Parts of performance: exact match by range", chosen, "exact_match")
    for name, figure in BY_FIGURE.items():
        names = {"exact_match": "Exact match", "digit_match": "Digit match"}
        title = f"{names.get(figure, 'log2(dlength + 1)')} by task and range"
        for group, tasks in PARTS.items():
            yield _bars(f"{name}-{group}", title, [row for row in rows if row["kind"][0] in tasks], figure)
        title = f"{names.get(figure, figure)} by task and range"  # cells hold the figure itself
        shading = SHADED if SCALES[figure] == "digits" else ""
        places = {"x": "range", "y": "task", "panel": "model", "y_order": order, "notes": (POOLED,)}
        yield picture(
            f"{name}-map", title, "map", rows, figure, "gap", scale=SCALES[figure], shading=shading, **places
        )
    yield from _shot_pictures(shown, chosen)


def _shot_pictures(shown: Shown, rows: Sequence[Row]) -> Iterator[PublishedPicture]:
    """Yield Figure 8: models that were asked with worked examples beside themselves without.

    Where they are many, a model stands on one page, however it was asked.
    """
    shots = {(row["run"], row["model"], row["condition"]): row["shots"] for row in shown.shots}
    by_model = rows_by(sorted(shots, key=lambda who: shots[who]), lambda who: who[1])
    pages = list[list[Entrant]]([[]])
    for model in dict.fromkeys(line.model for line in shown.lines):
        entrants = by_model.get(model, [])
        if any(shots[who] for who in entrants):  # imported files are a run each
            if pages[-1] and len(pages[-1]) + len(entrants) > MOST_SERIES:
                pages.append([])
            pages[-1] += entrants
    for number, page in enumerate(pages, 1):
        name = f"figure-8-{number}" if len(pages) > 1 else "figure-8"
        drawn = [row for who in page for row in rows if row["asked"] == who]
        yield _bars(name, "With and without examples: exact match by range", drawn, "exact_match")


def _bars(name: str, title: str, rows: Iterable[Row], figure: str) -> PublishedPicture:
    """Return a panel a task, a group of bars a range, a colour a model."""
    guide = {"guide": "guess"} if figure == "exact_match" else {}
    places = {"x": "range", "series": "model", "panel": "task", **guide}
    rows = list(rows)
    order = {name: rank for rank, name in enumerate(_paper_order(row["task"] for row in rows))}
    rows.sort(key=lambda row: order[row["task"]])
    return picture(
        name, title, "bars", rows, figure, "answers", "gap", scale=SCALES[figure], notes=(POOLED,), **places
    )


# ── with a count of their own ────────────────────────────────────────────────────────────────


def _examples(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Figure 1: a wrong answer of each under the right one, place by place."""
    rows = []
    for wrong in shown.wrong:
        task = task_of(wrong["task"], wrong["variant"], wrong["representation"])
        truth, answer = laid(wrong["expected"], wrong["answer"], task.answer_type)
        panel = f"{task_name(task)}: {shown.named(wrong)}"
        for index, pair in enumerate(zip(truth, answer, strict=True), 1):
            for name, character in zip(("right answer", "answer"), pair, strict=True):
                rows.append(
                    {
                        "example": panel,
                        "of": name,
                        "place": index,
                        "digit": character,
                        "right": int(eq(*pair)),
                    }
                )
    notes = (
        "The parts of a number are laid side by side as digit match counts them. Light: wrong or missing.",
    )
    places = {"panel": "example", "x": "place", "y": "of", "text": "digit", "whole": False, "scale": "right"}
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
        for row in sorted(shown.speeds, key=lambda row: list(shown.names.values()).index(shown.named(row)))
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
    repeats = rows_by(
        shown.single,
        lambda row: (shown.named(row), row["task"], row["representation"], row["length"]),
    )
    rows = []
    for (model, *kind, length), repeat_rows in repeats.items():
        means = [row["exact_match"] for row in repeat_rows]
        error = stdev(means) / sqrt(len(means)) if len(means) > 1 else None
        counts = {"repeats": len(means), "truncated": sum(row["truncated"] for row in repeat_rows)}
        rows.append(_length_row(model, kind, length, fmean(means), error) | counts)
    rows += _unanswered_lengths(shown, {(row["model"], row["kind"], row["length"]) for row in rows})
    for row in published_table("nupa_table_3").to_pylist() if shown.printed and rows else ():
        error = float_or_none(row["standard_error"])
        bar = (f"{row['model']} {MARK}", (row["task"], row["representation"]), row["digits"])
        gap = {"gap": NO_ROOM} if row["exact_match"] is None else {}
        rows.append(_length_row(*bar, float_or_none(row["exact_match"]), error) | gap)
    order = list(SINGLE)
    rows.sort(key=lambda row: (order.index(row["kind"]), row["length"]))
    places = {"x": "length", "series": "model", "panel": "task"}
    note = "Means over the repeats, with their standard error where there are several."
    also = ("standard_error", "low", "high", "repeats", "truncated", "gap")
    title = "Exact match at single lengths"
    return picture("table-3", title, "bars", rows, "exact_match", *also, notes=shown.notes(note), **places)


def _unanswered_lengths(shown: Shown, answered: Collection[tuple[Any, ...]]) -> Iterator[Row]:
    """Yield a row without a figure for each length of Table 3 that was asked and has no graded answer."""
    for line in shown.lines:
        task, model = line.task, shown.names[line.asked]
        kind = task.task, task.representation
        if task.variant == "easy" or (task.task == "max" and task.variant):
            continue
        for length in sorted(line.lengths.intersection(SINGLE.get(kind, ()))):
            if (model, kind, length) not in answered:
                yield _length_row(model, kind, length, None, None) | {"gap": UNANSWERED}


def _length_row(model: str, kind: Sequence[str], length: int, mean: float | None, error: float | None) -> Row:
    ends = dict[str, float | None](low=None, high=None)
    if mean is not None and error is not None:
        ends = {"low": mean - error, "high": mean + error}
    figures = {"exact_match": mean, "standard_error": error, **ends}
    return {"task": ", ".join(kind), "kind": tuple(kind), "length": length, "model": model, **figures}
