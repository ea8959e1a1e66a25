"""Pictures of the paper's tables: models × tasks, and its frame of representations × tasks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from asyncbench.published.nupa.counts import RANGES, task_name
from asyncbench.published.nupa.picture_counts import (
    POOLED,
    TRACE_TOKENS,
    Kind,
    Row,
    Shown,
    float_or_none,
    kind_of,
)
from asyncbench.published.nupa.printed import DIGITS, printed_digits
from asyncbench.published.pictures import PublishedPicture, picture
from asyncbench.published.printed import MARK, published_table
from asyncbench.suites.nupa.tasks import REPRESENTATIONS, TASKS, NupaTask, task_of

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
LETTERS: Final = {"integer": "I", "int": "i", "float": "Fl", "fraction": "Fr", "scientific": "S", None: "N"}


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def of_tables(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Tables 7 to 10 and 18: models × tasks."""
    for table, (figure, title) in DIGITS.items():
        yield picture(
            table.removeprefix("nupa_").replace("_", "-"),
            f"Well-learned / preserved digits by {title}",
            "map",
            _digit_rows(shown, table, figure),
            "share_of_longest",
            *("well_learned", "preserving"),
            x="model",
            y="task",
            text="digits",
            notes=shown.notes(
                "Shaded: the well-learned digits as a share of the longest problems of the task."
            ),
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
    columns = {f"exact_match_{of.lower()}": of for of in RANGES}
    columns |= {"well_learned_digits": "well learned", "performance_preserving_digits": "preserving"}
    printed = [
        (row["configuration"], (row["task"], row["variant"], row["representation"]), of, row[column])
        for row in published_table("nupa_table_18").to_pylist()
        for column, of in columns.items()
    ]
    yield _cells(
        shown, "table-18", "Configurations of a model: exact match by range, and digits", OF_TABLE_18, printed
    )


def _digit_rows(shown: Shown, table: str, figure: str) -> Iterator[Row]:
    kinds = {kind_of(line.task): line.task for line in shown.lines}
    for line in shown.lines:
        learned = line.by_grader["strict"].figures[figure].digits
        if learned is not None and learned.well_learned is not None and learned.preserving is not None:
            yield _digit_row(shown.names[line.asked], line.task, learned.well_learned, learned.preserving)
    for model, its in printed_digits(published_table(table)).items() if shown.printed else ():
        for kind, (well_learned, preserving) in its.items():
            if kind in kinds:
                yield _digit_row(f"{model} {MARK}", kinds[kind], well_learned, preserving)


def _digit_row(model: str, task: NupaTask, well_learned: int, preserving: int) -> Row:
    return {
        "task": task_name(task),
        "model": model,
        "digits": f"{well_learned} / {preserving}",
        "well_learned": well_learned,
        "preserving": preserving,
        "share_of_longest": well_learned / task.length_class,
    }


def _cells(
    shown: Shown, name: str, title: str, kinds: Sequence[Kind], printed: Iterable[tuple[str, Kind, str, Any]]
) -> PublishedPicture:  # Any: a printed number
    """Return models × (task, range), and the digits of each task where the printed table has them."""
    with_digits = any(of not in RANGES for _, _, of, _ in printed)
    rows = [
        _cell(row["model"], row["kind"], row["range"], row["exact_match"])
        for row in shown.ranges
        if row["kind"] in kinds and row["exact_match"] is not None
    ]
    for line in shown.lines if with_digits else ():
        learned = line.by_grader["strict"].figures["exact_match"].digits
        if learned is not None and kind_of(line.task) in kinds:
            for of, digits in (("well learned", learned.well_learned), ("preserving", learned.preserving)):
                if digits is not None:
                    rows.append(_cell(shown.names[line.asked], kind_of(line.task), of, digits))
    if shown.printed and rows:
        rows += [_cell(f"{model} {MARK}", kind, of, value) for model, kind, of, value in printed]
    models = list(dict.fromkeys(row["model"] for row in rows))
    order = [*RANGES, "well learned", "preserving"]
    rows.sort(
        key=lambda row: (models.index(row["model"]), kinds.index(row["kind"]), order.index(row["range"]))
    )
    columns = [_column(kind, of) for kind in kinds for of in order]
    places = {"x": "column", "y": "model", "text": "figure"}
    return picture(name, title, "map", rows, "share", x_order=columns, notes=shown.notes(POOLED), **places)


def _column(kind: Kind, of: str) -> str:
    return f"{task_name(task_of(*kind))} {of}"


def _cell(model: str, kind: Kind, of: str, value: Any) -> Row:  # Any: a number
    task = task_of(*kind)
    digits = of not in RANGES
    share = float(value) / task.length_class if digits else float(value)
    text = f"{value}" if digits else f"{float(value):.2f}"
    return {
        "model": model,
        "kind": kind,
        "range": of,
        "column": _column(kind, of),
        "share": share,
        "figure": text,
    }


# ── the paper's frame: representations × tasks ───────────────────────────────────────────────


def of_frames(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Tables 1, 4, 5 and 6, and Table 19."""
    places = {"x": "task", "y": "representation"}
    rows = [
        _framed(
            line.task,
            model=shown.names[line.asked],
            exact_match=float_or_none(line.by_grader["strict"].exact_match),
        )
        for line in shown.lines
        if "paper41" in line.task.sets
    ]
    title = "What numbers models understand: exact match by representation and task"
    yield picture(
        "table-1", title, "map", _in_frame(rows), "exact_match", panel="model", notes=(POOLED,), **places
    )
    told: Mapping[str, tuple[str, Callable[[NupaTask], str]]] = {
        "table-4": ("Representation of the second operand", lambda task: LETTERS[task.second]),
        "table-5": ("Representation of the answer", lambda task: LETTERS[task.answer]),
        "table-6": ("Up to 20 digits (H) or 100 (E)", lambda task: "H" if task.length_class == 20 else "E"),
    }
    paper = [task for task in TASKS.values() if "paper41" in task.sets]
    for name, (title, said) in told.items():
        rows = [_framed(task, longest=task.length_class, letter=said(task)) for task in paper]
        yield picture(name, title, "map", _in_frame(rows), "longest", scale="number", text="letter", **places)
    traces = [
        {**row, "model": shown.named(row), "digits": str(row["longest"])} for row in shown.counts.traces
    ]
    if shown.printed and traces:
        for row in published_table("nupa_table_19").to_pylist():
            told_digits = row["max_digits"]
            traces.append(
                {**row, "model": f"RF CoT {MARK}", "longest": told_digits, "digits": str(told_digits or "")}
            )
    title = f"Longest problem whose rule and reply fit in {TRACE_TOKENS:,} tokens"
    note = "The digits of the longest problem, answered under a condition with `style: rules`."
    yield picture(
        "table-19",
        title,
        "map",
        _in_frame(traces),
        "longest",
        scale="number",
        panel="model",
        text="digits",
        notes=shown.notes(note),
        **places,
    )


def _framed(task: NupaTask, **figures: object) -> Row:
    return {"task": task.task, "representation": task.representation, **figures}


def _in_frame(rows: Iterable[Row]) -> list[Row]:
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
