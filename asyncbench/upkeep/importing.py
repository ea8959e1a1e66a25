"""Import: `import_files` makes files of benchmarks and other tools a results folder like any other."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import chain, compress
from os import PathLike
from os.path import isdir
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import ConfigError
from asyncbench.files import local, quoted, storing
from asyncbench.problems.making import write_problems
from asyncbench.problems.schema import Ids, identified, problem_from
from asyncbench.published.files import (
    Planned,
    Recorded,
    RecordedRun,
    check_file,
    check_folder,
    problems_file,
    run_of,
)
from asyncbench.published.formats import format_named
from asyncbench.records import Attempt, Ended, Problem, Result, Trial
from asyncbench.run.summary import Exit
from asyncbench.store.folder import Store
from asyncbench.store.manifest import check_owner, is_results_folder, planned_aliases, read_manifest
from asyncbench.store.names import check_apart
from asyncbench.store.reading import take_snapshot
from asyncbench.store.rows import encode_json
from asyncbench.suites.requests import TrialIds
from asyncbench.suites.table import SUITES, grade
from asyncbench.tables.report import Report
from asyncbench.upkeep.tool_logs.formats import LOGS

# ── A recording goes into a results folder: what is new of it, and nothing that the folder has otherwise


# Columns in which a file must agree with the folder; a reply that is NULL is a call that failed.
COMPARED = ("reply_text", "input_tokens", "output_tokens", "cost_usd", "finished_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """How many trials of one file an import brought into the folder."""

    run: str
    trials: int = 0  # that are new in the folder
    there_before: int = 0
    left_out: tuple[str, ...] = ()


class Keeper:
    """Keeps recordings in a results folder, and compares each with what the folder held at first."""

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
        store, recording = self._store, self._name_by_condition(recording)
        problems = tuple(_problems_of(recording))
        trials = [
            _trial(recorded, problem, run=recording.run, sweep=store.manifest["sweep"])
            for recorded, problem in zip(recording.trials, problems, strict=True)
        ]
        if recording.run in self._runs:
            self._refuse_another(recording, trials)
        manifest = store.manifest
        for names, taken in (
            ({recording.run}, manifest.get("runs", {})),  # of files in problems/
            (recording.planned, planned_aliases(manifest)),
        ):
            check_apart(names, taken, place=str(recording.path), way_out="Import it into another folder")
        if problems:
            once = {problem.problem_id: problem for problem in problems}
            write_problems(once.values(), store.folder / problems_file(recording.run))

        # The manifest has the run before its trials: if they are cut short, the plan is known.
        run = {
            "file": recording.path.name,
            "format": self._form,
            "left_out": len(recording.left_out),
            "planned": recording.planned,
        }
        simulated = any(recorded.model.simulated for recorded in recording.trials)
        store.write_manifest(
            {
                "asyncbench": version("asyncbench"),
                "simulated": simulated or bool(manifest.get("simulated")),
                "runs": manifest.get("runs", {}) | {recording.run: run},
            }
        )

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

    def _name_by_condition(self, recording: RecordedRun) -> RecordedRun:
        """Return a recording; where its name is that of a run under other conditions, with theirs behind it.

        `llama.jsonl` of another folder, with `--shots 5` → the run `llama 5-shot`.
        """
        conditions = _conditions_of(recording.planned)
        before = self._store.manifest.get("runs", {}).get(recording.run, {}).get("planned", {})
        if not before or not conditions or conditions & _conditions_of(before):
            return recording
        return replace(recording, run=" ".join([recording.run, *sorted(conditions)]))

    def _refuse_another(self, recording: RecordedRun, trials: Sequence[Trial]) -> None:
        """Refuse a file that is not the one imported under its name before, nor has grown from it."""
        by_id = {trial.trial_id: recorded for trial, recorded in zip(trials, recording.trials, strict=True)}
        stored = self._before.read("trials", ["trial_id", *COMPARED], pc.field("run") == recording.run)
        times = stored["finished_at"].cast(pa.int64())  # microseconds since 1970
        stored = stored.set_column(stored.schema.get_field_index("finished_at"), "finished_at", times)

        # A record is compared as the folder would hold it; a time that is only its file's may change.
        lost = changed = 0
        for row in stored.to_pylist():
            if (recorded := by_id.get(row.pop("trial_id"))) is None:
                lost += 1
                continue
            usage = recorded.reply.usage if recorded.reply else None
            columns = {
                "reply_text": recorded.reply.text if recorded.reply else None,
                "input_tokens": usage.input_tokens if usage else None,
                "output_tokens": usage.output_tokens if usage else None,
                "cost_usd": recorded.cost_usd,
                "finished_at": round(recorded.ended_at * 1_000_000) if recorded.timed else row["finished_at"],
            }
            changed += orjson.loads(encode_json(columns)) != row

        faults = ((lost, "this file lacks"), (changed, "differ in this file"))
        if wrong := [f"{count:,} trials that {fault}" for count, fault in faults if count]:
            raise ConfigError(
                f"{recording.path}: {self._store.folder} has another run {recording.run!r}, with "
                f"{' and '.join(wrong)}. Rename the file, import it into another folder, or give the same "
                "plan as before."
            )


def _problems_of(recording: RecordedRun) -> Iterator[Problem]:
    """Yield the problem of each trial."""
    if not recording.same_problems:
        yield from identified(recorded.draft for recorded in recording.trials)
        return
    ids = defaultdict[tuple[str, str, int], Ids](Ids)  # by who was asked, and which time
    for recorded in recording.trials:
        draft = recorded.draft
        key = (recorded.model.alias, recorded.condition.name, recorded.repeat)
        yield problem_from(draft, ids[key].of(draft.suite, draft.task, draft.question))


def _conditions_of(planned: Planned) -> set[str]:
    return {condition for conditions in planned.values() for condition in conditions}


def _trial(recorded: Recorded, problem: Problem, *, run: str, sweep: str) -> Trial:
    version = SUITES[problem.suite].prompt_version
    trial_ids = TrialIds(recorded.model, recorded.condition, run=run)
    return Trial(
        trial_id=recorded.trial_id
        or trial_ids.make(problem.problem_id, prompt_version=version, repeat=recorded.repeat),
        run=run,
        sweep=sweep,
        problem_set=run,
        problem=problem,
        model=recorded.model,
        condition=recorded.condition,
        repeat=recorded.repeat,
    )


def _events(recorded: Recorded, trial: Trial, *, called_before: bool) -> Iterator[Ended | Result]:
    """Yield the events that a run would have written; an import that was killed may have begun it."""
    reply, error = recorded.reply, recorded.error
    if not called_before:
        last_call = Attempt(
            trial_id=trial.trial_id,
            attempt=recorded.attempts,
            model=recorded.model.alias,
            provider=recorded.model.provider,
            started_at=recorded.ended_at,
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
        grades=(*recorded.grades, *grade(trial.problem, reply, trial.condition.style)),
        attempts=recorded.attempts,
        cost_usd=recorded.cost_usd,
        price_source=None if recorded.cost_usd is None else recorded.price_source,
        queued_s=None,
        ttft_s=None,
        latency_s=recorded.latency_s,
        finished_at=recorded.ended_at,
    )


# ── importing


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported(Report):
    """What an import brought into a results folder."""

    out: Path
    runs: tuple[ImportedRun, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """The complaint about each line that could not be used."""
        return tuple(complaint for run in self.runs for complaint in run.left_out)

    @property
    def exit(self) -> Exit:
        """The exit code of a command that did only this."""
        return Exit.UNFINISHED if self.left_out else Exit.COMPLETE

    def notes_above(self) -> Iterator[str]:
        for run in self.runs:
            before = f", {run.there_before:,} were there already" if run.there_before else ""
            left_out = f", {len(run.left_out):,} could not be used" if run.left_out else ""
            yield f"{run.run}: {run.trials:,} trials imported{before}{left_out}"
        yield f"Results: {self.out}. Look at them with `asyncbench report {quoted(self.out)}`."


def import_files(
    form: str,
    files: Iterable[PathLike[str] | str],
    out: PathLike[str] | str,
    **plan: object,
) -> Imported:
    """Import logs of another tool, or files of a published benchmark, into a results folder, each as a run.

    A run has the name of its file. If a run of that name was asked under other conditions, the condition
    follows the name. You can import again: trials that are in the folder already stay as they are, and new
    ones are added.

    Args:
        form: `inspect`, `lm-eval`, `promptfoo`, `jsonl`, `llm-arithmetic`, `integer-addition` or `nupa`.
        files: files, or folders that hold them.
        out: the results folder. It is made if it does not exist.
        plan: what the runs were meant to hold. `llm-arithmetic`: `depths` (2-10) and `trials` of each cell
            (10). `inspect`, `lm-eval`: the name of the `model`. `jsonl`: the `columns`, a dict of names to
            fields, and the `model`. `nupa`: the `style` of lines that do not name one (chat), `shots`, and
            the names of the `condition` and the `model`.

    Returns:
        An `Imported`, with the rows of each file.

    Raises:
        ConfigError: The format or a file is unknown, no line can be used, two files would be the same run,
            or the folder holds a sweep: nothing was written. Or the folder has another run of that
            name: the files before it were imported, and the message says so.
        StoreError: The folder cannot be written.
    """
    chosen = LOGS.get(form) or format_named(form, others=LOGS)
    chosen.reader(plan)  # which refuses a plan before any file is looked at
    folder, sweep, exists = folder_for(out)
    paths = _paths([local(file) for file in files], chosen.endings, chosen.summaries)
    recordings = _once_usable(chosen.runs_in(paths, plan), exists=exists)
    runs: list[ImportedRun] = []
    with Store.open(folder, sweep=sweep, imported=True) as store:
        keeper = Keeper(store, form)
        try:
            for run in map(keeper.keep, recordings):  # by `map`: none is held while the next one is read
                runs.append(run)
        except ConfigError as error:
            before = " The files before it were imported." if runs else ""
            raise ConfigError(f"{error}{before}") from None
    return Imported(out=local(out), runs=tuple(runs))


def folder_for(out: PathLike[str] | str) -> tuple[Path, str, bool]:
    """Return the folder of an import, its sweep, and whether it is there already.

    Raises:
        ConfigError: it holds a sweep, or cannot be a folder.
        StoreError: it cannot be read.
    """
    folder = local(out).resolve()
    exists = is_results_folder(folder)
    sweep = str(read_manifest(folder)["sweep"]) if exists else folder.name
    check_folder(folder)
    with storing(folder):
        check_owner(folder, sweep=sweep, imported=True)
    return folder, sweep, exists


def _paths(paths: Sequence[Path], endings: tuple[str, ...], summaries: Container[str]) -> list[Path]:
    """Return the files that are meant: of a folder those with the format's endings, by name; no summaries.

    Raises:
        ConfigError: one cannot be read, or two would be the same run.
    """
    runs: dict[str, Path] = {}
    for path in paths:
        files = [path]
        if isdir(path):
            named = (file for file in path.iterdir() if file.name.endswith(endings))
            files = sorted(file for file in named if not file.name.startswith("."))
        if not files:
            raise ConfigError(f"{path} has no {' or '.join(endings)} files.")
        for file in files:
            if file.name in summaries:  # sums of the trials in the others
                continue
            run = run_of(file, *endings)
            check_file(file)
            if run in runs:
                raise ConfigError(
                    f"{runs[run]} and {file} would both be run {run!r}. Rename one, or import it into "
                    "another folder."
                )
            runs[run] = file
    if paths and not runs:
        raise ConfigError(f"{paths[0]} holds sums, not trials. Name the files of the runs.")
    return list(runs.values())


def _once_usable(recordings: Iterator[RecordedRun], *, exists: bool) -> Iterator[RecordedRun]:
    """Return all recordings, once one of them holds something to write.

    Those before it, which hold no trials, have waited for it. In a folder that `exists`, bad lines are
    something to write as well: that they were left out.
    """
    waiting: list[RecordedRun] = []
    for recording in recordings:
        waiting.append(recording)
        if recording.trials or (exists and recording.left_out):
            return chain(iter(waiting), recordings)  # the iterator lets go of them, the list would not
    left_out = (complaint for recording in waiting for complaint in recording.left_out)
    raise ConfigError(f"Nothing can be imported: {next(left_out, 'the files have no trials')}")
