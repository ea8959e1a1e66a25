"""Results folders of any size, made without a run: every column as a night would leave it, in seconds."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from asyncbench import generate
from asyncbench.config.sweep import Sweep, sweep_from
from asyncbench.problems.opening import open_set
from asyncbench.records import Problem
from asyncbench.store.folder import Store
from asyncbench.store.manifest import write_manifest
from asyncbench.store.parts import Part
from asyncbench.store.schema import ATTEMPTS, GRADES, PARTITIONED_BY, TRIALS
from asyncbench.suites.requests import TrialIds
from asyncbench.suites.table import SUITES

CELLS = 72  # of a default llm_arithmetic set
GRADERS = ("layered", "legacy", "strict")
ORACLE = "simulated-http/oracle"
NOBODY = "http://127.0.0.1:9/v1"  # the port of a service that is long gone
AT = datetime(2026, 11, 20, 18, tzinfo=UTC)

Values = dict[str, object]  # column → one value for all rows, or a list with one each


def make_folder(folder: Path, *, trials: int, models: int = 20, seed: int = 0) -> int:
    """Make a results folder with all three tables; return how many trials it holds, about `trials`.

    Three of four replies are right. A part holds what one model was asked.
    """
    Store.open(folder, sweep=folder.name).close()
    per_cell = max(1, round(trials / models / CELLS))
    path = folder / "problems" / f"{folder.name}.parquet"
    generate("llm_arithmetic", path, seed=seed, trials=per_cell)
    problems = list(open_set(path).read())
    sweep = sweep_of(folder, models=models)
    for n, model in enumerate(sweep.models):
        ids = TrialIds(model, sweep.conditions[0])
        draw = random.Random(f"{seed}/{n}")  # noqa: S311  repeatable, no secret
        _add_model(folder, model.alias, problems, ids, draw)
    planned = {f"model-{n:02d}": {"plain": {"llm_arithmetic": {"all": len(problems)}}} for n in range(models)}
    write_manifest(folder, _manifest(folder, planned))
    return models * len(problems)


def sweep_of(folder: Path, *, models: int = 20, names: Sequence[str] = ()) -> Sweep:
    """Return the sweep that such a folder is complete for; nobody listens where its models are."""
    entries = [
        {
            "model": "simulated-http/oracle",
            "alias": names[n] if names else f"model-{n:02d}",
            "temperature": n / 100,
            "base_url": NOBODY,
        }
        for n in range(models)
    ]
    problems = str(folder / "problems" / f"{folder.name}.parquet")
    return sweep_from({"name": folder.name, "problems": [problems], "models": entries, "out": str(folder)})


def _manifest(folder: Path, planned: object) -> dict[str, object]:
    runs = {folder.name: {"planned": planned}}
    return {"schema_version": 1, "sweep": folder.name, "runs": runs}


def _add_model(
    folder: Path, model: str, problems: Sequence[Problem], own: TrialIds, draw: random.Random
) -> None:
    right = [draw.random() < 0.75 for _ in problems]
    replies = [one.expected if ok else one.expected + "1" for one, ok in zip(problems, right, strict=True)]
    version = SUITES["llm_arithmetic"].prompt_version
    ids = [own.make(one.problem_id, prompt_version=version, repeat=0) for one in problems]
    values = of_trials(folder.name, model, problems, ids, replies, right, draw)
    tables = {
        "trials": table(TRIALS, values, len(ids)),
        "grades": table(GRADES, _of_grades(values), len(ids) * len(GRADERS)),
        "attempts": table(ATTEMPTS, of_attempts(values), len(ids)),
    }
    for name, rows in tables.items():
        keep(folder, name, model, rows)


def keep(folder: Path, name: str, model: str, rows: pa.Table) -> None:
    """Write rows of a model as a part of a table of a results folder, where a run would."""
    keys = {"suite": "llm_arithmetic", "model": model, "lane": model}
    place = Path(name, *(f"{key}={keys[key]}" for key in PARTITIONED_BY[name]))
    part = Part(folder, place / "part-000001.parquet")
    part.add(rows)
    part.finish()
    part.publish()


def of_trials(
    sweep: str,
    model: str,
    problems: Sequence[Problem],
    ids: list[str],
    replies: list[str],
    right: list[bool],
    draw: random.Random,
) -> Values:
    """Return the columns of `trials` for one model; what a column lacks here is NULL."""
    latencies = [draw.lognormvariate(0, 0.5) for _ in ids]
    return {
        "trial_id": ids,
        "run": sweep,
        "sweep": sweep,
        "problem_set": sweep,
        "problem_id": [one.problem_id for one in problems],
        "suite": "llm_arithmetic",
        "task": [one.task for one in problems],
        "variant": "",
        "representation": [one.representation for one in problems],
        "length": [one.length for one in problems],
        "repeat": 0,
        "condition": "plain",
        "style": "chat",
        "condition_params": "{}",
        "model": model,
        "provider": "simulated-http",
        "model_id": "oracle",
        "params": '{"temperature":0}',
        "expected": [one.expected for one in problems],
        "reply_text": replies,
        "finish_reason": "stop",
        "grader": GRADERS[0],
        "answer": replies,
        "outcome": ["correct" if ok else "wrong" for ok in right],
        "exact_match": right,
        "input_tokens": [30 + len(one.question) // 3 for one in problems],
        "output_tokens": [1 + len(reply) // 3 for reply in replies],
        "price_source": "genai-prices 0.2.3",
        "cost_usd": [draw.random() / 1000 for _ in ids],
        "attempts": 1,
        "latency_s": latencies,
        "ttft_s": [one / 4 for one in latencies],
        "finished_at": AT,
        "http_status": 200,
        "request_id": [f"req-{one[:12]}" for one in ids],
    }


def _of_grades(own: Values) -> Values:
    shared = {
        name: [value for value in values for _ in GRADERS] if isinstance(values, list) else values
        for name, values in own.items()
        if name in GRADES.names
    }
    count = len(_listed(own["trial_id"]))
    same = {
        "grader": list(GRADERS) * count,
        "grader_version": 1,
        "headline": [name == GRADERS[0] for name in GRADERS] * count,
        "classification": ["Correct" if ok else "Deviate" for ok in _listed(shared["exact_match"])],
        "format_ok": True,
        "flags": [[]] * count * len(GRADERS),
    }
    return shared | same


def of_attempts(own: Values) -> Values:
    """Return the columns of `attempts` for trials that each took one call."""
    shared = {name: values for name, values in own.items() if name in ATTEMPTS.names}
    return shared | {"attempt": 1, "started_at": AT, "status": "ok", "in_flight": 100, "loop_lag_s": 0.001}


def _listed(values: object) -> list[object]:
    assert isinstance(values, list)
    return values


def table(schema: pa.Schema, values: Values, rows: int) -> pa.Table:
    """Return columns as a table of that many rows."""
    return pa.table([_column(field, values.get(field.name), rows) for field in schema], schema=schema)


def _column(field: "pa.Field[pa.DataType]", values: object, rows: int) -> "pa.Array[pa.Scalar[pa.DataType]]":
    if isinstance(values, list):
        return pa.array(values, field.type)
    return pa.array([values], field.type).take(pa.repeat(0, rows))


def json_lines(folder: Path, out: Path) -> Iterator[int]:
    """Write `trials` as JSON Lines, as other tools keep results; yield the rows of each batch."""
    from asyncbench import iter_trials
    from asyncbench.store.rows import encode_json

    with out.open("wb") as file:
        for batch in iter_trials(folder):
            file.writelines(encode_json(row) + b"\n" for row in batch.to_pylist())
            yield batch.num_rows
