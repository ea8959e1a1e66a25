"""Maps of the paper's tables: models × tasks, and its frame of representations × tasks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from asyncbench.published.nupa.counts import (
    DIGITS,
    RANGES,
    is_misprint,
    task_name,
)
from asyncbench.published.nupa.picture_rows import (
    POOLED,
    TRACE_TOKENS,
    Row,
    Shown,
    ends_of,
    float_or_none,
    paper_order,
)
from asyncbench.published.reports import (
    LACKING,
    MARK,
    MISPRINTED,
    UNANSWERED,
    UNPRINTED,
    PublishedPicture,
    picture,
    published_table,
)
from asyncbench.suites.nupa.tasks import REPRESENTATIONS, TASKS, NupaTask, task_of
from asyncbench.suites.suite import Kind
from asyncbench.tables.numbers import rounded

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
            y_order=paper_order(task_name(line.task) for line in shown.lines),
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
        | ends_of(row["intervals"]["exact_match"])
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
    also = ("low", "high", "gap")
    return picture(name, title, "map", rows, "share", *also, x_order=columns, notes=notes, **places)


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
    exact = {
        (shown.names[line.asked], line.task): line.by_grader["strict"]["exact_match"] for line in shown.lines
    }
    rows = []
    for model in dict.fromkeys(model for model, _ in exact):
        for task in paper:
            found = exact.get((model, task))
            mean = None if found is None else float_or_none(found.mean)
            mark = IN_TEST if mean is None else rounded(100 * mean, 0)
            interval = ends_of(None if found is None else found.intervals["mean"])
            rows.append(_framed(task, model=model, exact_match=mean, mark=mark, **interval))
    title = "What numbers models understand: exact match by representation and task"
    right = "Percent of the answers of a task that are right, graded by `strict`."
    notes = (right, f"{IN_TEST} is in the paper's test, and was not asked here.")
    yield picture(
        "table-1",
        title,
        "map",
        _frame_rows(rows),
        "exact_match",
        *("low", "high"),
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
        letters = [_framed(task, longest=task.length_class, letter=letter(task)) for task in paper]
        shape = {"scale": "number", "text": "letter", "of_folder": False}
        yield picture(name, title, "map", _frame_rows(letters), "longest", **shape, **places)
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
