"""llm_arithmetic's own files, read and written: the trials of a run, and their sums in `aggregate.jsonl`."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from itertools import groupby
from math import fsum
from operator import attrgetter
from pathlib import Path
from reprlib import repr as shown
from typing import Any, cast

from asyncbench.errors import ConfigError
from asyncbench.problems.recorded import AnswerFacts, recorded_answers
from asyncbench.published.files import (
    MOST,
    Fields,
    FileFormat,
    Planned,
    Recorded,
    RecordedRun,
    Row,
    checked,
    field_errors,
    flag,
    inner,
    is_whole,
    lines,
    mapping,
    model_of,
    number,
    parsed,
    required,
    run_of,
    sifted,
    text,
    unsaid,
    whole,
)
from asyncbench.records import Condition, Draft, Reply, Usage
from asyncbench.suites.llm_arithmetic import ARITHMETIC_TASKS, SUITE, answer, draft_arithmetic
from asyncbench.suites.numbers import fixed

# ── `aggregate.jsonl`: the sums of a run as llm_arithmetic wrote them, made of the lines of its file


Line = Mapping[str, Any]  # Any: of a result file, by its keys
AGGREGATE = "aggregate.jsonl"
TOKENS = ("prompt_tokens", "completion_tokens")


def aggregate(lines: Sequence[Line]) -> dict[str, object]:
    """Return the sums of a run: of all its trials, of each variant, and of each variant and depth."""
    variants = [name for name in ARITHMETIC_TASKS if any(line["variant"] == name for line in lines)]
    lines_of = {name: [line for line in lines if line["variant"] == name] for name in variants}

    cells: dict[str, dict[str, object]] = {}
    for name in variants:
        cells[name] = {}
        for depth in sorted({line["depth"] for line in lines_of[name]}):
            cell = [line for line in lines_of[name] if line["depth"] == depth]
            means = {f"avg_{kind}": sum(line["tokens"][kind] for line in cell) / len(cell) for kind in TOKENS}
            cost = _cost(cell)
            costs = {"total_cost": cost, "avg_cost": cost / len(cell)}
            cells[name][f"depth_{depth}"] = {**_sums(cell), **means, **costs}

    began = min(line["timestamp"] for line in lines)[:16]  # of the first answer, to the minute
    return {
        "model": lines[0]["model"],
        "date": began.replace("T", "_").replace(":", "-"),
        "trials_per_cell": max(Counter((line["variant"], line["depth"]) for line in lines).values()),
        "overall": _group(lines),
        "per_category": {name: _group(group) for name, group in lines_of.items()},
        "cells": cells,
        **({"simulated": True} if any(line.get("simulated") for line in lines) else {}),
    }


def _group(lines: Sequence[Line]) -> dict[str, object]:
    sums = _sums(lines)
    tokens = {f"total_{name}": sum(line["tokens"][name] for line in lines) for name in TOKENS}
    first = {"total_trials": len(lines), **tokens, "total_cost": _cost(lines)}
    return first | {name: value for name, value in sums.items() if name not in first}


def _cost(lines: Sequence[Line]) -> float:
    return fsum(line.get("cost") or 0.0 for line in lines)


def _sums(lines: Sequence[Line]) -> dict[str, object]:
    classes = Counter(line["classification"] for line in lines)
    counts = [classes[name] for name in ("Correct", "NaN", "Deviate")]
    errors = sum((Fraction(line["error"]) for line in lines if line["error"] is not None), Fraction())
    shares = [count / len(lines) for count in counts]
    return {
        "total_trials": len(lines),
        **dict(zip(("correct_count", "nan_count", "deviate_count"), counts, strict=True)),
        **dict(zip(("accuracy", "nan_rate", "deviate_rate"), shares, strict=True)),
        "avg_error": fixed(round(100 * errors / max(counts[-1], 1)), 2),
    }


# ── llm_arithmetic's own result files: JSON Lines, a trial a line, in four generations
# A line has the keys of `KEYS`; `attempts`, `failed_to_get_reply` and `extra_context` came with time.
# Integers are bare JSON numbers of any length, decimals are text. The readings in a file (`parsed`,
# `classification`, `error`) are not believed: replies are graded anew. Keys that are not of the format
# are left behind.


ENDING = ".jsonl"
NAME = SUITE.name
KEYS = (
    *("model", "variant", "depth", "operands", "correct", "raw_response"),
    *("parsed", "classification", "error", "tokens", "cost", "timestamp"),
    *("attempts", "failed_to_get_reply", "extra_context", "simulated"),  # the last: ours alone
)
ACCOUNTING = ("tokens", "cost", "attempts", "failed_to_get_reply", "extra_context")
CENTURY = (datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))  # exact in microseconds

Plan = Mapping[str, object]  # the suite's parameters: depths, trials, variants


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def reader(options: Plan) -> Callable[[Path], RecordedRun]:
    """Return a reader of files of runs with this plan.

    Raises:
        ConfigError: there is no such plan.
    """
    source = "import llm-arithmetic"
    plan = SUITE.parsed(options, place=source)
    if _trials_a_task(plan) * len(ARITHMETIC_TASKS) > MOST:
        raise ConfigError(
            f"{source}: trials: so many of each task and depth are more than {MOST:,} in all; give fewer"
        )
    return partial(read, plan=plan)


def _trials_a_task(plan: Plan) -> int:
    return len(cast("tuple[int, ...]", plan["depths"])) * cast("int", plan["trials"])


def read(path: Path, *, plan: Plan) -> RecordedRun:
    """Read a file. Lines that cannot be used are left out, each with the reason.

    Raises:
        ConfigError: the file cannot be read.
    """
    trials, left_out = sifted(lines(path), partial(_recorded, plan=plan))
    planned = _planned(trials, plan)
    return RecordedRun(run=run_of(path, ENDING), path=path, trials=trials, left_out=left_out, planned=planned)


def _planned(trials: Iterable[Recorded], plan: Plan) -> Planned:
    """Return each model's plan: other conditions' own trials, and all that is left for the commonest."""
    tasks = cast("tuple[str, ...]", plan["variants"])
    of_a_task = _trials_a_task(plan)
    trials_of: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for trial in trials:
        trials_of[trial.model.alias][trial.condition.name][trial.draft.task] += 1
    planned: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for model, conditions in trials_of.items():
        commonest, *others = sorted(conditions, key=lambda name: -conditions[name].total())
        elsewhere = {task: sum(conditions[condition][task] for condition in others) for task in tasks}
        remaining = {task: max(0, of_a_task - elsewhere[task]) for task in tasks}
        others_plan = {
            condition: {NAME: {task: conditions[condition][task] for task in tasks}} for condition in others
        }
        planned[model] = {commonest: {NAME: remaining}} | others_plan
    return planned


def facts(path: Path, options: Plan) -> Iterator[RecordedRun]:
    """Yield the runs of a file of recorded answers, which holds no reply: invented texts stand for them.

    Raises:
        ProblemSetError: it is no such file.
    """
    plan = SUITE.parsed(options, place="import llm-arithmetic")
    for run, answers in groupby(recorded_answers(path), attrgetter("run")):
        trials = tuple(map(_recorded_fact, answers))
        yield RecordedRun(run=run, path=path, trials=trials, left_out=(), planned=_planned(trials, plan))


def _recorded_fact(answer_facts: AnswerFacts) -> Recorded:
    used = Usage(input_tokens=answer_facts.input_tokens, output_tokens=answer_facts.output_tokens)
    accounting = {
        "tokens": dict(zip(TOKENS, (answer_facts.input_tokens, answer_facts.output_tokens), strict=True)),
        "cost": answer_facts.cost_usd,
        "attempts": answer_facts.attempts,
        "failed_to_get_reply": answer_facts.failed,
        "extra_context": answer_facts.extra_context,
    }
    return Recorded(
        draft=answer_facts.draft,
        model=model_of({"model": answer_facts.model}, simulated=False),
        condition=_padded(answer_facts.extra_context),
        reply=None if answer_facts.failed else Reply(text=answer_facts.text, usage=used, http_status=None),
        attempts=answer_facts.attempts or 1,
        cost_usd=answer_facts.cost_usd,
        accounting={key: value for key, value in accounting.items() if value is not None},
        ended_at=answer_facts.at.timestamp(),
    )


def _padded(thousands: int | None) -> Condition:
    if thousands is None:
        return Condition()
    name = f"context-{thousands}k" if thousands else "plain"
    return Condition(name=name, described={"extra_context": thousands})


def _recorded(line: bytes, *, plan: Plan) -> Recorded:
    fields = mapping(parsed(line), "a trial")
    failed = flag(fields, "failed_to_get_reply")
    padding = None if fields.get("extra_context") is None else whole(fields, "extra_context")
    accounting = {key: fields[key] for key in ACCOUNTING if key in fields}  # its keys tell its generation
    draft = _draft(fields, plan)
    model = model_of(fields, simulated=flag(fields, "simulated"))

    # A failed call has tokens, too, but no reply.
    tokens = inner(fields, "tokens")
    with field_errors("tokens"):
        prompt, completion = (whole(tokens, key) for key in TOKENS)
    reply = None
    if not failed:
        reply_text = "" if required(fields, "raw_response") is None else text(fields, "raw_response")
        usage = Usage(input_tokens=prompt, output_tokens=completion)
        reply = Reply(text=reply_text, usage=usage, http_status=None)

    return Recorded(
        draft=draft,
        model=model,
        condition=_padded(padding),
        reply=reply,
        attempts=1 if fields.get("attempts") is None else whole(fields, "attempts", least=1),
        cost_usd=None if fields.get("cost") is None else number(fields, "cost"),
        accounting=accounting | {"tokens": {key: fields["tokens"][key] for key in TOKENS}},
        ended_at=_time(text(fields, "timestamp")),
    )


def _draft(fields: Fields, plan: Plan) -> Draft:
    task = text(fields, "variant")
    if task not in (variants := cast("tuple[str, ...]", plan["variants"])):
        raise ValueError(f"'variant' is {shown(task)}, none of {', '.join(variants)}")
    depth = whole(fields, "depth")
    if depth not in (depths := cast("tuple[int, ...]", plan["depths"])):
        planned = ",".join(map(str, depths))
        raise ValueError(f"'depth' is {depth}, outside the plan, --depths {planned}: give the plan it is of")
    operands = required(fields, "operands")
    two = isinstance(operands, list) and len(operands) == 2
    checked(operands, "operands", right=two, rule="a list of two numbers")
    lhs, rhs = (_operand_text(operand, "operands", task) for operand in operands)
    expected = answer(task, lhs, rhs)
    if (correct := _operand_text(required(fields, "correct"), "correct", task)) != expected:
        right = "has no exact answer" if expected is None else f"is {shown(expected)}"
        raise ValueError(
            f"'correct' is {shown(correct)}, but {shown(lhs)} {ARITHMETIC_TASKS[task].sign} {shown(rhs)} "
            f"{right}"
        )
    return draft_arithmetic(task, depth, lhs, rhs, expected=expected)


def _operand_text(value: object, key: str, task: str) -> str:
    if ARITHMETIC_TASKS[task].operand_places:
        if not isinstance(value, str):
            raise ValueError(f"{key!r} holds {shown(value)}, but decimals are written as texts")
        return value
    if not is_whole(value):
        raise ValueError(f"{key!r} holds {shown(value)}, but integers are written as bare numbers")
    return str(value)


def _time(written: str) -> float:
    """Return when it was, UTC, seconds since 1970; a time without a zone is UTC."""
    try:
        time = datetime.fromisoformat(written)
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        time = CENTURY[1]
    if not CENTURY[0] <= time < CENTURY[1]:
        raise ValueError(
            f"'timestamp' is {shown(written)}, not a time like 2026-06-01T05:26:35.723710Z, 1970 to 2099"
        )
    return time.timestamp()


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def texts(rows: list[Row], _planned: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines of a file."""
    return (json.dumps(_line(row)) + "\n" for row in rows)


def notes(rows: list[Row]) -> list[str]:
    """Return notes on what this format cannot hold as it is."""
    ours = [row for row in rows if row["accounting"] is None and not row["failed"]]
    unpriced = sum(row["cost_usd"] is None for row in ours)
    untold = sum(row["input_tokens"] is None or row["output_tokens"] is None for row in ours)
    zeros = [
        f"{count:,} trials whose {what} is unknown have 0 there, as the format has no word for it"
        for count, what in ((unpriced, "cost"), (untold, "number of tokens"))
        if count
    ]
    # Of small talk that came first, a line tells how much.
    return zeros + unsaid(rows, lambda condition: {"extra_context", "context" if _padding(condition) else ""})


def _line(row: Row) -> Row:
    # What was counted, as it was recorded; of a trial that we asked: a failed one has 0.
    recorded, failed = row["accounting"], row["failed"]
    accounting: Row
    if recorded is not None:
        accounting = {**recorded, "tokens": {key: recorded["tokens"][key] for key in TOKENS}}
    else:
        tokens = [0 if failed else row[name] or 0 for name in ("input_tokens", "output_tokens")]
        accounting = {
            "tokens": dict(zip(TOKENS, tokens, strict=True)),
            "cost": 0.0 if failed else row["cost_usd"] or 0.0,
            "attempts": row["attempts"],
            "failed_to_get_reply": failed,
            "extra_context": _padding(row["asked"]),
        }

    number = str if ARITHMETIC_TASKS[row["task"]].operand_places else int
    fields = {
        "model": row["model"],
        "variant": row["task"],
        "depth": row["length"],
        "operands": [number(operand) for operand in row["operands"]],
        "correct": number(row["expected"]),
        "raw_response": row["reply_text"] or "",
        "parsed": None if row["answer"] is None else number(row["answer"]),
        "classification": row["classification"],
        "error": row["abs_error"],
        "timestamp": f"{row['finished_at']:%Y-%m-%dT%H:%M:%S.%f}Z",
        "simulated": True,
        **accounting,
    }
    return {key: fields[key] for key in KEYS if key in fields and (key != "simulated" or row["simulated"])}


def _padding(condition: Row) -> int:
    """Return how many thousand tokens of small talk came first; 0: none, or a file of one's own."""
    context = re.fullmatch(r"(\d+)k", str(condition.get("context")))
    return int(context[1]) if context else 0


FILES = FileFormat(
    ending=ENDING,
    suites=(NAME,),
    tasks=ARITHMETIC_TASKS,
    reader=reader,
    texts=texts,
    notes=notes,
    summaries={AGGREGATE: lambda rows: json.dumps(aggregate([_line(row) for row in rows])) + "\n"},
    facts=facts,
)
