"""`.eval` files: a zip of JSON with a member for each sample, written while the trials are read.

    samples/<problem>_epoch_<n>.json   a sample each
    summaries.json · reductions.json   what lists show of samples; the mean of each problem's answers
    _journal/start.json · header.json  what was run; the same with the results

The members are deflated, which every reader of zips knows. The same trials give the same bytes.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pyarrow.compute as pc

from asyncbench.errors import ConfigError, StoreError
from asyncbench.problems.copies import read_problems
from asyncbench.problems.schema import ProblemRows
from asyncbench.providers.endpoints import is_simulated
from asyncbench.published.files import FileToWrite, names_told_apart
from asyncbench.records import OF_CONDITIONS, Outcome, Problem
from asyncbench.store.catalog import patiently, read_skipped, read_trials
from asyncbench.store.manifest import IMPORTED, RECORDED, Manifest, planned
from asyncbench.store.reading import take_snapshot
from asyncbench.store.rows import encode_json
from asyncbench.store.schema import AT_REST, ENTRANT
from asyncbench.store.snapshot import Filters, Snapshot
from asyncbench.suites.requests import merged_params
from asyncbench.suites.table import SUITES
from asyncbench.upkeep.inspect.samples import (
    METRICS,
    Json,
    LogCounts,
    Row,
    condition_of,
    model_named,
    sample_of,
    summary_of,
)

ENDING: Final = ".eval"
OF_A_LOG: Final = (*ENTRANT, "suite")


# ── the header of a log: the run, the model, the suite and the results

VERSION: Final = 2  # of their format
# Our parameters by their names in `GenerateConfig`; all others are arguments of the model.
_CONFIG: Final = {
    **{name: name for name in ("temperature", "top_p", "seed", "max_tokens")},
    "thinking_tokens": "reasoning_tokens",
    "effort": "reasoning_effort",
}
_EFFORTS: Final = {"none", "minimal", "low", "medium", "high", "xhigh", "max"}


@dataclass(frozen=True, kw_only=True)
class LogHeader:
    """What a log says of itself."""

    row: Row  # of one of its trials: what is the same in all of them
    counts: LogCounts
    manifest: Manifest
    planned: int

    @property
    def unasked(self) -> int:
        """The number of planned trials that are not finished."""
        return max(0, self.planned - self.counts.trials)

    def start(self) -> Json:
        """Return the beginning of a log."""
        step = {"solver": "generate", "params": {}, "params_passed": {}}
        plan = {"name": "plan", "steps": [step], "config": self._spec["model_generate_config"]}
        return {"version": VERSION, "eval": self._spec, "plan": plan}

    def whole(self) -> Json:
        """Return an `EvalLog` without its samples."""
        counts = self.counts
        cost = {} if counts.cost_usd is None else {"total_cost": counts.cost_usd}
        usage = {model_named(self.row): dict(counts.tokens) | cost} if counts.tokens else {}
        scores = [
            {
                "name": grader,
                "scorer": grader,
                "scored_samples": len(scored.graded),
                "unscored_samples": 0,
                "params": {},
                "metrics": scored.metrics(),
            }
            for grader, scored in counts.graders.items()
        ]
        headline = self.row["grader"]
        return {
            **self.start(),
            "status": "cancelled" if self.unasked else "success",
            "results": {
                "total_samples": max(self.planned, counts.trials),
                "completed_samples": counts.trials - counts.outcomes[Outcome.FAILED],
                **({"logged_samples": counts.trials} if self.unasked else {}),
                "scores": scores,
                "headline": {"scorer": headline, "score": headline, "metric": METRICS[0]},
                "metadata": {"outcomes": dict(counts.outcomes), "cost_usd": counts.cost_usd},
            },
            "stats": {
                "started_at": counts.started_at,
                "completed_at": counts.ended_at,
                "model_usage": usage,
            },
        }

    def reductions(self) -> Iterator[bytes]:
        """Yield the JSON of all `EvalSampleReductions`, problem by problem."""
        yield b"["
        for n, (grader, counts) in enumerate(self.counts.graders.items()):
            yield b"," * (n > 0) + b'{"scorer":' + encode_json(grader) + b',"samples":['
            for i, (problem_id, value) in enumerate(counts.means()):
                yield b"," * (i > 0) + encode_json({"sample_id": problem_id, "value": value})
            yield b"]}"
        yield b"]"

    @cached_property
    def _spec(self) -> Json:
        """Return the `EvalSpec`."""
        row, counts = self.row, self.counts
        suite = SUITES.get(row["suite"])
        config, arguments = self._parameters()

        # The condition in short; its digest only tells one text from another.
        condition: Json = json.loads(row["condition_params"])
        condition.pop("turns_digest", None)
        task_arguments = {"condition": row["condition"], "style": row["style"]} | condition

        is_ours = is_simulated(row["provider"])
        origins = ["simulated"] if is_ours else []
        origins += ["imported"] if self.manifest.get(IMPORTED) else []
        recorded = [entry for entry in self.manifest.get(RECORDED, []) if entry["alias"] == row["model"]]
        return {
            "eval_id": self._id("run", "model", "condition", "suite"),
            "run_id": self._id("run"),
            "created": self.manifest["created_at"],
            "task": row["suite"],
            "task_id": self._id("suite", "condition"),
            "task_version": suite.prompt_version if suite else 0,
            "task_args": task_arguments,
            "task_args_passed": task_arguments,
            "tags": ["asyncbench", *origins],
            "dataset": {
                "name": ", ".join(counts.problem_sets),
                "samples": len(counts.problem_ids),
                "sample_ids": counts.problem_ids,
                "shuffled": False,
            },
            "model": model_named(row),
            "model_generate_config": config,
            "model_args": arguments,
            # A failed trial has an error and, since we count it as not right, scores.
            "config": {"epochs": counts.epochs, "fail_on_error": False, "score_on_error": True},
            "metadata": {
                **{name: row[name] for name in ("sweep", "run", "model", "provider", "condition", "suite")},
                "simulated": is_ours,
                **({"recorded_answers": recorded} if recorded else {}),
                "cost_usd": counts.cost_usd,
            },
            "scorers": [
                {"name": grader, "metrics": [{"name": f"inspect_ai/{name}"} for name in METRICS]}
                for grader in counts.graders
            ],
        }

    def _parameters(self) -> tuple[Json, Json]:
        """Return the parameters beside the messages: those that their config has a name for, and the rest."""
        row = self.row
        condition, _ = condition_of(row["condition"], row["style"], row["condition_params"])
        sent = dict(merged_params(json.loads(row["params"]), condition.params))
        sent |= {name: value for name in OF_CONDITIONS if (value := getattr(condition, name)) is not None}
        sent.pop("system", None)
        config = {
            _CONFIG[name]: sent.pop(name)
            for name in list(sent)
            if name in _CONFIG and (name != "effort" or sent[name] in _EFFORTS)
        }
        return config, sent

    def _id(self, *names: str) -> str:
        parts = [self.row["sweep"], *(self.row[name] for name in names)]
        return blake2b(encode_json(parts), digest_size=11).hexdigest()


# ── logs


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalLog:
    """One log: the trials of a model under a condition, on the problems of a suite."""

    folder: Path
    key: tuple[str, str, str, str]  # the values of `OF_A_LOG`
    manifest: Manifest

    def write(self, file: BinaryIO) -> tuple[int, list[str]]:
        """Write the log; return how many trials it holds, and what it cannot say.

        Raises:
            StoreError: the folder cannot be read, or lacks the problem of a trial.
        """
        return patiently(partial(self._write, file))

    def _write(self, file: BinaryIO) -> tuple[int, list[str]]:
        file.seek(0)
        file.truncate()
        counts, asked_as, last = LogCounts(), cache(condition_of), None
        with ZipFile(file, "w", ZIP_DEFLATED) as log, TemporaryFile(dir=Path(file.name).parent) as summaries:
            for row, grades, problem in self._trials():
                condition, _ = asked_as(row["condition"], row["style"], row["condition_params"])
                sample = sample_of(row, grades, problem, condition, counts.epoch_of(row))
                counts.add(row, sample)
                _add(log, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", encode_json(sample))
                summaries.write((b"," if last else b"[") + encode_json(summary_of(sample)))
                last = row
            assert last is not None  # noqa: S101  a log is only planned where there are trials
            summaries.write(b"]")
            summaries.seek(0)

            # The log was to hold the planned trials, without those that a rule skipped.
            *entrant, suite = self.key
            tasks = planned(self.manifest).get(tuple(entrant), {}).get(suite, {})  # type: ignore[arg-type]  # three
            wanted = _wanted(dict(zip(OF_A_LOG, self.key, strict=True)))
            planned_trials = sum(tasks.values()) - len(read_skipped(self.folder, ["trial_id"], wanted))
            header = LogHeader(row=last, counts=counts, manifest=self.manifest, planned=planned_trials)
            _copy(log, "summaries.json", iter(partial(summaries.read, 1 << 20), b""))
            _copy(log, "reductions.json", header.reductions())
            _add(log, "_journal/start.json", encode_json(header.start()))
            _add(log, "header.json", encode_json(header.whole()))

        # What the log cannot say as it is.
        notes = []
        if header.unasked:
            notes.append(
                f"its status is `cancelled`: {header.unasked:,} of {header.planned:,} planned trials are not "
                "finished"
            )
        if counts.tokens_untold:
            notes.append(f"{counts.tokens_untold:,} trials whose number of tokens is unknown have no usage")
        if not asked_as(last["condition"], last["style"], last["condition_params"])[1]:
            notes.append("messages before the question are left out, since their text is not in the folder")
        return counts.trials, notes

    def _trials(self) -> Iterator[tuple[Row, Sequence[Row], Problem]]:
        """Yield each trial with its grades and its problem."""
        run, model, condition, suite = self.key
        snapshot = take_snapshot(self.folder)
        problems = read_problems(self.folder, filters=pc.field("suite") == suite).drop("problem_set")
        problem_ids = problems["problem_id"].combine_chunks()
        graded = _Grades(snapshot, run=run, model=model, suite=suite)
        # Trials of other conditions are read, too: so their grades are not waited for.
        wanted = _wanted({"run": run, "model": model, "suite": suite})
        for batch in snapshot.batches("trials", filters=wanted):
            places = pc.index_in(batch["problem_id"], value_set=problem_ids)
            if places.null_count:
                lacking = batch["problem_id"].filter(places.is_null())[0].as_py()
                raise StoreError(
                    f"{self.folder}: problems/ lacks problem {lacking}. Put back the file that holds it."
                )
            questions = ProblemRows(problems.take(places).combine_chunks().to_batches()[0])
            for index, row in enumerate(batch.to_pylist()):
                grades = graded.take(row["trial_id"])
                if row["condition"] == condition and row["load"] is None:
                    yield row, grades, questions.problem(index)


class _Grades:
    """The grades of trials, read as far as is asked for: they stand in the order of their trials."""

    def __init__(self, snapshot: Snapshot, **values: str) -> None:
        batches = snapshot.batches("grades", filters=_wanted(values))
        rows = (row for batch in batches for row in batch.to_pylist())
        self._ahead = groupby(rows, key=itemgetter("trial_id"))
        self._waiting: dict[str, list[Row]] = {}

    def take(self, trial_id: str) -> Sequence[Row]:
        """Return the grades of the next trial, headline first."""
        while trial_id not in self._waiting and (next_trial := next(self._ahead, None)):
            self._waiting.setdefault(next_trial[0], []).extend(next_trial[1])
        grades = self._waiting.pop(trial_id, [])
        return sorted(grades, key=lambda grade: not grade["headline"])


def logs(folder: Path, manifest: Manifest) -> list[FileToWrite]:
    """Return the logs that the finished trials of a folder make: runs in their order, then by name.

    Raises:
        ConfigError: there are none.
        StoreError: the folder cannot be read.
    """
    entrants = read_trials(folder, OF_A_LOG, AT_REST).group_by(list(OF_A_LOG)).aggregate([]).to_pylist()
    if not entrants:
        raise ConfigError(
            f"{folder} has no finished trial, so there is nothing to export. Answers to loads are left out."
        )
    order = {run: n for n, run in enumerate(manifest.get("runs", {}))}
    entrants.sort(key=lambda row: (order.get(row["run"], len(order)), *row.values()))
    file_names = names_told_apart(entrants, OF_A_LOG, ENDING)
    made = [EvalLog(folder=folder, key=tuple(row.values()), manifest=manifest) for row in entrants]
    return [FileToWrite(name=name, write=log.write) for name, log in zip(file_names, made, strict=True)]


def _wanted(values: dict[str, str]) -> Filters:
    return [(name, "==", value) for name, value in values.items()]


def _add(log: ZipFile, name: str, data: bytes) -> None:
    log.writestr(_member(name), data)


def _copy(log: ZipFile, name: str, pieces: Iterable[bytes]) -> None:
    with log.open(_member(name), "w", force_zip64=True) as member:
        member.writelines(pieces)


def _member(name: str) -> ZipInfo:
    member = ZipInfo(name)  # of no date: the same trials, the same bytes
    member.compress_type = ZIP_DEFLATED
    return member
