"""A recording goes into a results folder: what is new of it, and nothing that the folder has otherwise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import compress

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import ConfigError
from asyncbench.problems.identity import identified
from asyncbench.problems.making import write_problems
from asyncbench.published.places import problems_file
from asyncbench.published.recorded import Recorded, RecordedRun
from asyncbench.records import Attempt, Ended, Problem, Result, Trial
from asyncbench.store.folder import Store
from asyncbench.store.looking import take_snapshot
from asyncbench.store.rows import encode_json
from asyncbench.suites.requests import TrialIds
from asyncbench.suites.table import SUITES, grade

# What a file may not tell otherwise than the folder has it; a reply that is NULL is a call that failed.
TOLD = ("reply_text", "input_tokens", "output_tokens", "cost_usd", "finished_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """What came of one file."""

    run: str
    trials: int = 0  # that are new in the folder
    there_before: int = 0
    left_out: tuple[str, ...] = ()


class Keeper:
    """Keeps recordings in a results folder; what it held at first, each is compared with."""

    def __init__(self, store: Store, form: str) -> None:
        self._store, self._form = store, form
        self._before = take_snapshot(store.folder)
        self._runs = frozenset(self._before.read("trials", ["run"])["run"].unique().to_pylist())

    def keep(self, recording: RecordedRun) -> ImportedRun:
        """Bring into the folder what it does not hold yet of a run.

        Raises:
            ConfigError: the run is there and is not what the file holds; then nothing of it was written.
            StoreError: the folder cannot be written.
        """
        store = self._store
        problems = tuple(identified(recorded.draft for recorded in recording.trials))
        trials = [
            _trial(recorded, problem, run=recording.run, sweep=store.manifest["sweep"])
            for recorded, problem in zip(recording.trials, problems, strict=True)
        ]
        if recording.run in self._runs:
            self._refuse_another(recording, trials)
        if problems:
            write_problems(problems, store.folder / problems_file(recording.run))
        self._describe(recording)
        fresh = [trial.trial_id not in store.finished for trial in trials]
        for recorded, trial in compress(zip(recording.trials, trials, strict=True), fresh):
            for event in _events(recorded, trial, called_before=trial.trial_id in store.histories):
                store.keep(event)
        return ImportedRun(
            run=recording.run,
            trials=sum(fresh),
            there_before=len(trials) - sum(fresh),
            left_out=recording.left_out,
        )

    def _refuse_another(self, recording: RecordedRun, trials: Sequence[Trial]) -> None:
        """Refuse a file that is not the one imported under its name before, nor has grown from it."""
        found = {trial.trial_id: recorded for trial, recorded in zip(trials, recording.trials, strict=True)}
        held = self._before.read("trials", ["trial_id", *TOLD], pc.field("run") == recording.run)
        times = held["finished_at"].cast(pa.int64())  # microseconds since 1970
        held = held.set_column(held.schema.get_field_index("finished_at"), "finished_at", times)
        lost = changed = 0
        for row in held.to_pylist():
            if (recorded := found.get(row.pop("trial_id"))) is None:
                lost += 1
            elif _told(recorded, like=row) != row:
                changed += 1
        found_wrong = ((lost, "this file lacks"), (changed, "differ in this file"))
        if wrong := [f"{count:,} trials that {what}" for count, what in found_wrong if count]:
            raise ConfigError(
                f"{recording.path}: {self._store.folder} has another run {recording.run!r}, with "
                f"{' and '.join(wrong)}. Rename the file, import it into another folder, or give the same "
                "plan as before."
            )

    def _describe(self, recording: RecordedRun) -> None:
        """Note the run in the manifest, before its trials: if they are cut short, the plan is known."""
        run = {
            "file": recording.path.name,
            "format": self._form,
            "left_out": len(recording.left_out),
            "planned": recording.planned,
        }
        manifest = self._store.manifest
        simulated = any(recorded.model.simulated for recorded in recording.trials)
        self._store.write_manifest(
            {
                "asyncbench": version("asyncbench"),
                "simulated": simulated or bool(manifest.get("simulated")),
                "runs": manifest.get("runs", {}) | {recording.run: run},
            }
        )


def _told(recorded: Recorded, *, like: dict[str, object]) -> dict[str, object]:
    """Return what a record tells, as the folder would hold it; a time that is only its file's may change."""
    usage = recorded.reply.usage if recorded.reply else None
    told: dict[str, object] = {
        "reply_text": recorded.reply.text if recorded.reply else None,
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "cost_usd": recorded.cost_usd,
        "finished_at": round(recorded.at * 1_000_000) if recorded.timed else like["finished_at"],
    }
    stored: dict[str, object] = orjson.loads(encode_json(told))
    return stored


def _trial(recorded: Recorded, problem: Problem, *, run: str, sweep: str) -> Trial:
    version = SUITES[problem.suite].prompt_version
    trial_ids = TrialIds(recorded.model, recorded.condition, run=run)
    return Trial(
        trial_id=recorded.trial_id or trial_ids.of(problem.problem_id, prompt_version=version, repeat=0),
        run=run,
        sweep=sweep,
        problem_set=run,
        problem=problem,
        model=recorded.model,
        condition=recorded.condition,
        repeat=recorded.repeat,
    )


def _events(recorded: Recorded, trial: Trial, *, called_before: bool) -> Iterator[Ended | Result]:
    """Yield what a run would have written down; an import that was killed may have begun it."""
    reply, error = recorded.reply, recorded.error
    if not called_before:
        last_call = Attempt(
            trial_id=trial.trial_id,
            attempt=recorded.attempts,
            model=recorded.model.alias,
            provider=recorded.model.provider,
            started_at=recorded.at,
            latency_s=recorded.latency_s,
            status=error.kind.value if error else "failed" if reply is None else "ok",
            http_status=error.http_status if error else None,
            request_id=reply.request_id if reply else None,
            error=error.message if error else None,
            mode=recorded.mode,
            batch_id=recorded.batch_id,
            usage=reply.usage if reply else None,
            cost_usd=recorded.cost_usd,
            raw_usage=recorded.accounting,
        )
        yield Ended(attempt=last_call, reply=reply)
    yield Result(
        trial=trial,
        reply=reply,
        error=error,
        grades=grade(trial.problem, reply, trial.condition.style),
        attempts=recorded.attempts,
        cost_usd=recorded.cost_usd,
        price_source=None if recorded.cost_usd is None else recorded.price_source,
        queued_s=None,
        ttft_s=None,
        latency_s=recorded.latency_s,
        finished_at=recorded.at,
    )
