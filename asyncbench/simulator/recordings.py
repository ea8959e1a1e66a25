"""Recorded answers of earlier runs, read from results folders or files; their names."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.recorded import recorded_answers, recorded_runs
from asyncbench.records import CUT_SHORT, Outcome
from asyncbench.simulator.questions import digest, rows

ROWS = 4096  # held as Python objects at a time
ORDER = ("finished_at", "repeat", "trial_id")  # the last: imported trials may have finished all at once
COLUMNS = (
    *("run", "model", "problem_set", "problem_id", *ORDER),
    *("outcome", "reply_text", "reasoning_text", "finish_reason"),
    *("input_tokens", "output_tokens", "reasoning_tokens"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """How one trial ended."""

    failed: bool  # without a reply
    text: str
    reasoning: str = ""
    cut: bool  # the provider said so
    input_tokens: int | None  # None: the provider did not say
    output_tokens: int | None
    reasoning_tokens: int | None = None
    seconds: float | None = None  # that the call took; None: not known, or not to be repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one model answered in one run."""

    folder: Path
    run: str
    model: str  # the alias
    records: Mapping[bytes, Sequence[Record]]  # digest of a question → its records, the earliest first

    @property
    def place(self) -> str:
        """The place where it was recorded, for a person."""
        return f"run {self.run!r} of {self.folder}"


def read(folders: Sequence[Path]) -> tuple[Recording, ...]:
    """Read all recordings of results folders and files; a trial whose problem is not found is left out.

    Raises:
        ConfigError: a folder is not a results folder, is named twice or holds no finished trial.
        ProblemSetError: the problems of a whole problem set are not in its folder, or a file holds no
            recorded answers.
        StoreError: a folder cannot be read.
    """
    for folder, times in Counter(folder.resolve() for folder in folders).items():
        if times > 1:  # every name in it would be ambiguous
            raise ConfigError(f"simulator: replay names {folder} {times} times; name it once")
    return tuple(
        recording
        for folder in folders
        for recording in (_of_file if folder.suffix == ".parquet" else _recordings)(folder)
    )


def by_name(recordings: Sequence[Recording]) -> dict[str, list[Recording]]:
    """Return the recordings that each name may mean: a run of one model, else an alias.

    Only a name with one recording is clear. A run's name comes before an alias.
    """
    aliases, runs = defaultdict[str, list[Recording]](list), defaultdict[str, list[Recording]](list)
    models = Counter((recording.folder, recording.run) for recording in recordings)
    for recording in recordings:
        aliases[recording.model].append(recording)
        if models[recording.folder, recording.run] == 1:
            runs[recording.run].append(recording)
    return aliases | runs


def _of_file(path: Path) -> Iterator[Recording]:
    """Yield the runs of a file of recorded answers."""
    records = defaultdict[str, defaultdict[bytes, list[Record]]](lambda: defaultdict(list))  # of each run
    for answered in recorded_answers(path):
        records[answered.run][digest(answered.draft.question)].append(
            Record(
                failed=answered.failed,
                text=answered.text,
                cut=False,
                input_tokens=answered.input_tokens,
                output_tokens=answered.output_tokens,
                seconds=answered.seconds,
            )
        )
    for run in recorded_runs(path):
        yield Recording(folder=path, run=run.run, model=run.model, records=records[run.run])


def _recordings(folder: Path) -> Iterator[Recording]:
    questions = {  # of the folder's copies of problem sets
        row["problem_id"]: digest(row["question"])
        for path in sorted((folder / "problems").glob("*.parquet"))
        for row in rows(path, ["problem_id", "question"])
    }
    by_run: defaultdict[tuple[str, str], defaultdict[bytes, list[tuple[Any, Record]]]]
    by_run = defaultdict(lambda: defaultdict(list))  # of each question: its records and their places
    for row in _replayable(folder, questions):
        place = tuple(row[name] for name in ORDER)
        by_run[row["run"], row["model"]][questions[row["problem_id"]]].append((place, _record(row)))
    for (run, model), placed in sorted(by_run.items()):
        in_order = {question: sorted(some, key=itemgetter(0)) for question, some in placed.items()}
        records = {question: [record for _, record in some] for question, some in in_order.items()}
        yield Recording(folder=folder, run=run, model=model, records=records)


def _replayable(folder: Path, questions: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    """Yield the trials whose question is known, as rows of `COLUMNS`."""
    # Half the time and memory that a simulator needs to start, and most replay nothing.
    from asyncbench.store.catalog import read_trials

    trials = read_trials(folder, COLUMNS)
    if not len(trials):
        raise ConfigError(
            f"simulator: replay: {folder} holds no finished trial; name the folder of a run that got answers"
        )
    known = trials.filter(pc.is_in(trials["problem_id"], value_set=pa.array(list(questions), pa.string())))
    _check_sets(trials, known, folder)
    for batch in known.to_batches(ROWS):
        yield from batch.to_pylist()


def _check_sets(trials: pa.Table, known: pa.Table, folder: Path) -> None:
    lost = set(trials["problem_set"].unique().to_pylist()) - set(known["problem_set"].unique().to_pylist())
    if lost:
        raise ProblemSetError(
            f"{folder}: its trials cannot be replayed without their questions, and no file in "
            f"{folder / 'problems'} holds those of problem set {', '.join(sorted(map(repr, lost)))}; put the "
            "copy back that the run made there, or name a folder that has its problems"
        )


def _record(row: Mapping[str, Any]) -> Record:
    return Record(
        failed=row["outcome"] == Outcome.FAILED,
        text=row["reply_text"] or "",
        reasoning=row["reasoning_text"] or "",
        cut=row["finish_reason"] in CUT_SHORT,
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        reasoning_tokens=row["reasoning_tokens"],
    )
