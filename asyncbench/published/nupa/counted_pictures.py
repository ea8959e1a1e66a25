"""Pictures with a count of their own: Figure 1, Tables 2 and 3, copied operands, what examples change."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from operator import eq
from statistics import fmean, stdev
from typing import Any

from asyncbench.published.nupa.counts import RANGES, task_name
from asyncbench.published.nupa.picture_counts import SINGLE, Row
from asyncbench.published.nupa.picture_rows import Shown, asked_of
from asyncbench.published.pictures import PublishedPicture, picture
from asyncbench.published.printed import MARK, published_table
from asyncbench.suites import FORMS, parts
from asyncbench.suites.nupa import TASKS, range_of, task_of


def of_counts(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Figure 1, Tables 2 and 3, and the sentences about copied operands and about examples."""
    yield from _examples(shown)
    yield from _speeds(shown)
    yield _single(shown)
    copied = _by_range(shown.counts.copied, ("wrong", "copied"), shown)
    for row in copied:
        row["share_of_wrong"] = row["copied"] / row["wrong"]
    places = {"x": "range", "series": "model", "panel": "task"}
    title = "Wrong answers to max and min that are the other operand"
    yield picture("n-5", title, "bars", copied, "share_of_wrong", "wrong", "copied", **places)
    gains = _by_range(shown.counts.gains, ("answers", "gained", "by_form"), shown)
    for row in gains:
        row["gain"], row["gain_by_form"] = row["gained"] / row["answers"], row["by_form"] / row["answers"]
        row["points"] = f"{100 * row['gain']:+.0f} ({100 * row['gain_by_form']:.0f})"
    note = "Points of exact match on the same problems. In brackets: answers that had no number before."
    places = {"x": "range", "y": "task", "panel": "model", "text": "points"}
    yield picture(
        "n-9",
        "What examples change",
        "map",
        gains,
        "gain",
        "answers",
        "gain_by_form",
        scale="change",
        notes=(note,),
        **places,
    )


def _by_range(rows: Iterable[Row], counts: Sequence[str], shown: Shown) -> list[Row]:
    """Return counts by length, added up by range."""
    places = [*shown.names.values()], [*map(task_name, TASKS.values())], RANGES
    found = defaultdict[tuple[str, str, str], dict[str, int]](lambda: dict.fromkeys(counts, 0))
    for row in rows:
        task = task_of(row["task"], row["variant"], row["representation"])
        if row["length"] is not None and (of := range_of(row["length"], task.length_class)):
            sums = found[shown.named(row), task_name(task), of]
            for count in counts:
                sums[count] += row[count]
    keys = sorted(found, key=lambda key: [order.index(part) for order, part in zip(places, key, strict=True)])
    return [{"model": model, "task": task, "range": of, **found[model, task, of]} for model, task, of in keys]


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
