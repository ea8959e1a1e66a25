"""Export: results as files of another project, and open trials as files of requests for batches."""

import os
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from io import TextIOWrapper
from os import PathLike
from os.path import lexists
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final
from urllib.parse import quote

import orjson

from asyncbench.analysis.sql import asking
from asyncbench.analysis.views import VIEWS
from asyncbench.config.entry import suggestion
from asyncbench.config.sweep import AnySweep, Sweep, load_sweep
from asyncbench.errors import ConfigError
from asyncbench.files import creating, local, quoted, writing
from asyncbench.lanes.batches.spending import trials_out
from asyncbench.planning.preflight import chosen_models
from asyncbench.planning.remaining_trials import planned_sets
from asyncbench.planning.trials import TrialSource, trials_of
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.provider import open_batches
from asyncbench.published.files import (
    ExportedPart,
    FileFormat,
    FileToWrite,
    Row,
    asked_in,
    check_folder,
    parts_of,
    rows_of,
)
from asyncbench.published.formats import format_named
from asyncbench.records import Model, Trial
from asyncbench.store.bucket.fetching import local_folder
from asyncbench.store.catalog import known_trials
from asyncbench.store.manifest import IMPORTED, Manifest, is_results_folder, planned, read_manifest
from asyncbench.store.names import folded
from asyncbench.store.schema import ENTRANT
from asyncbench.suites.requests import request_for
from asyncbench.tables.report import Report
from asyncbench.upkeep.every_eval_ever import evaluations
from asyncbench.upkeep.inspect.logs import logs

# ── results as files of another project


WRITTEN_ONLY: Final[Mapping[str, Callable[[Path, Manifest], list[FileToWrite]]]] = {
    "inspect": logs,
    "every-eval-ever": evaluations,
}
OF_TABLES: Final = ("csv", "jsonl")  # formats of one table, as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """One file that was written."""

    path: str
    trials: int
    notes: tuple[str, ...]  # what the format cannot say as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported(Report):
    """What an export wrote."""

    files: tuple[ExportedFile, ...]
    summaries: tuple[str, ...] = ()  # paths of files with a line for each of the others

    def notes_above(self) -> Iterator[str]:
        for file in self.files:
            yield "; ".join([f"{file.path}: {file.trials:,} trials", *file.notes])
        for path in self.summaries:
            yield f"{path}: the sums of each file"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTable(Report):
    """A table that was written as one file."""

    path: str
    rows: int

    def notes_above(self) -> Iterator[str]:
        yield f"{self.path}: {self.rows:,} rows"


def export_folder(form: str, folder: PathLike[str] | str, out: PathLike[str] | str) -> Exported:
    """Write the finished trials of a results folder in the file format of a published benchmark.

    You get one file for each imported run, or for each model and condition of a sweep: all of them or none.
    `llm-arithmetic` also gets `aggregate.jsonl`, with the sums of each file. `inspect` makes a log for each
    model, condition and suite of a run. `every-eval-ever` makes a record for each model and condition.

    Args:
        form: `llm-arithmetic`, `integer-addition`, `nupa`, `inspect` or `every-eval-ever`.
        folder: the results folder.
        out: the folder for the files. It is made if it does not exist.

    Returns:
        An `Exported`, with the files and their rows.

    Raises:
        ConfigError: The format is unknown, the folder has no trials of its suites, the format has no place
            for a problem, or a file exists already.
        StoreError: The folder cannot be read, or the files cannot be written.
        ProblemSetError: A copy of a problem set is damaged.
    """
    folder, out = local_folder(folder), local(out)
    chosen = None if form in WRITTEN_ONLY else format_named(form, others=[*WRITTEN_ONLY, *OF_TABLES])
    manifest = read_manifest(folder)
    files = _texts(chosen, folder, manifest) if chosen else WRITTEN_ONLY[form](folder, manifest)
    summaries = [out / name for name in chosen.summaries] if chosen else []

    # Where each file goes; nothing is ever written over.
    check_folder(out)
    paths: list[Path] = []
    for exported in files:
        path = out / exported.name
        if folded(path.name) in {folded(taken.name) for taken in (*paths, *summaries)}:
            raise ConfigError(f"two runs or models would become the same file {path}. Rename one.")
        _refuse_existing(path)
        paths.append(path)
    for path in summaries:
        _refuse_existing(path)

    written = list[ExportedFile]()
    with _all_or_none([*paths, *summaries], out) as drafts:
        for path, file in zip(paths, files, strict=True):
            with writing(path), (drafts / path.name).open("xb") as draft:
                trials, notes = file.write(draft)
                _sync(draft)
            written.append(ExportedFile(path=str(path), trials=trials, notes=tuple(notes)))
    return Exported(files=tuple(written), summaries=tuple(map(str, summaries)))


def export_table(
    form: str, folder: PathLike[str] | str, out: PathLike[str] | str, *, table: str = "trials"
) -> ExportedTable:
    """Write a table or a view of a results folder as one file, CSV with a head or JSON lines.

    Args:
        form: `csv` or `jsonl`.
        folder: the results folder.
        out: the file; nothing may be there.
        table: `trials`, `attempts`, or another view that SQL queries can name.

    Raises:
        ConfigError: There is no such table, the folder is no results folder, or the file exists already.
        StoreError: The folder cannot be read, or the file cannot be written.
    """
    if table not in VIEWS:
        raise ConfigError(f"--table {table}: no such table. {suggestion(table, VIEWS, what=' tables')}")
    path = local(out)
    _refuse_existing(path)
    with asking(folder, f"FROM {table}") as answer, writing(path), creating(path) as file:
        text = TextIOWrapper(file, "utf-8", newline="")
        write = answer.write_csv if form == "csv" else answer.write_jsonl
        rows = write(text)
        text.detach()
    return ExportedTable(path=str(path), rows=rows)


def _texts(chosen: FileFormat, folder: Path, manifest: Manifest) -> list[FileToWrite]:
    """Return the files of a format that has lines."""
    parts = parts_of(folder, manifest, chosen)
    asked_by = lru_cache(maxsize=1)(partial(asked_in, folder=folder))  # parts of a run follow each other

    def write(exported: ExportedPart, file: BinaryIO) -> tuple[int, Sequence[str]]:
        problems = asked_by(exported.run, imported=exported.imported)
        rows = rows_of(exported, folder, chosen.suites, problems)
        try:
            file.writelines(text.encode() for text in chosen.texts(rows, _planned_trials(rows, manifest)))
            for name, sums in chosen.summaries.items():
                with Path(file.name).with_name(name).open("ab") as summary:
                    summary.write(sums(rows).encode())
                    _sync(summary)
        except (ValueError, IndexError) as error:  # a set of one's own may call anything a task of the suite
            raise ConfigError(f"{folder} has problems that this format cannot hold: {error}") from error
        return len(rows), chosen.notes(rows)

    return [
        FileToWrite(name=chosen.file_name(exported), write=partial(write, exported)) for exported in parts
    ]


def _refuse_existing(path: Path) -> None:
    if lexists(path):
        raise ConfigError(f"{path} exists already. Remove it, or name another folder.")


@contextmanager
def _all_or_none(paths: Sequence[Path], out: Path) -> Iterator[Path]:
    """Yield a folder for files of these names; at the end they get their places, all of them or none."""
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".export-", dir=out) as drafts:
            yield Path(drafts)
            moved: list[Path] = []
            try:
                for path in paths:
                    _refuse_existing(path)
                    moved.append(path)
                    (Path(drafts) / path.name).rename(path)
            except BaseException:  # an interruption too: what is left would be in the way of another try
                for path in moved:
                    path.unlink(missing_ok=True)
                raise


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _planned_trials(rows: Sequence[Row], manifest: Manifest) -> Mapping[str, int]:
    """Return how many trials were planned for a file, by suite; never fewer than it holds."""
    file = tuple(rows[0][name] for name in ENTRANT)
    trials = Counter[str]()
    for entrant, suites in planned(manifest).items():
        if entrant == file or (manifest.get(IMPORTED) and entrant[0] == file[0]):
            trials.update({suite: sum(tasks.values()) for suite, tasks in suites.items()})
    return trials | Counter(row["suite"] for row in rows)


# ── open trials as files of requests, with a map of what each request is


MAP: Final = "map.jsonl"
NO_KEY: Final = "none"  # nothing is called
NUPA_LINES: Final = 40_000  # of a file, as its programs write them
# Form → the adapters and wire formats whose requests it holds.
FORMS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "openai": ("openai", ("chat", "responses")),
    "anthropic": ("anthropic", ("messages",)),
    "nupa": ("openai", ("chat",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFiles:
    """The files of one model."""

    model: str  # the alias
    folder: str
    files: int
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedBatches(Report):
    """What an export of requests wrote."""

    models: tuple[RequestFiles, ...]

    def notes_above(self) -> Iterator[str]:
        for model in self.models:
            files = f"{model.files:,} file{'s' * (model.files != 1)}"
            yield f"{model.folder}: {model.requests:,} requests in {files}, and {MAP}"
        yield "Submit the files, and save what comes back. To read it, then to take the answers over:"
        for model in self.models:
            yield f"  asyncbench import batch RESULTS --requests {quoted(model.folder)} --out IMPORTED"
        yield "  asyncbench run SWEEP --reuse IMPORTED"


def export_batches(
    form: str,
    sweep: AnySweep,
    out: PathLike[str] | str,
    *,
    models: Sequence[str] | None = None,
    limit: int | None = None,
) -> ExportedBatches:
    """Write the open trials of a sweep as files of requests, for batches that you submit yourself.

        ab.export_batches("openai", "night.yaml", "requests")

    Each model gets a folder of its own, with `batch_0.jsonl` and so on, and `map.jsonl`: which trial and
    problem each custom id stands for.

    Args:
        form: `openai`, `anthropic`, or `nupa` (custom ids `request-0` and so on, 40,000 in a file).
        sweep: the path of a sweep file, a dict with its keys, or a `Sweep`.
        out: the folder for these folders. It is made if it does not exist.
        models: the aliases of the models. [all]
        limit: at most this many problems per model. [all]

    Returns:
        An `ExportedBatches`, with the folders and their requests.

    Raises:
        ConfigError: The form is unknown or cannot hold a model's requests, nothing is open, or a folder
            exists already.
        ProblemSetError: A problem set cannot be read.
        StoreError: The results folder cannot be read, or the files cannot be written.
    """
    if form not in FORMS:
        raise ConfigError(f"no form {form!r} of batch files. Choose one of: {', '.join(FORMS)}")
    loaded, out = load_sweep(sweep), local(out)
    chosen = chosen_models(loaded, models)
    check_folder(out)
    via, apis = FORMS[form]
    for model in chosen:
        if known_endpoints()[model.provider].via != via or model.api not in apis:
            raise ConfigError(
                f"{model.alias}: form {form!r} has no place for requests with api {model.api!r} of "
                f"{model.provider}. Leave the model out with --models, or choose another form."
            )
        _refuse_existing(_folder_of(model, out))

    # Trials that are finished, or may be in a batch of any alias, are left out: nothing is paid twice.
    closed: Container[str] = frozenset()
    if is_results_folder(loaded.out):
        closed = known_trials(loaded.out).finished | trials_out(loaded.out, abandoned=True)
    with planned_sets(loaded, chosen) as sets:

        def open_trials(model: Model, sets: Sequence[TrialSource]) -> Iterator[Trial]:
            return trials_of(loaded, model, sets, limit=limit, skip=closed.__contains__)

        trials = {model.alias: open_trials(model, sets[model.alias]) for model in chosen}
        written = [_request_files(form, loaded, model, trials[model.alias], out) for model in chosen]
    if not any(files.requests for files in written):
        raise ConfigError(f"{loaded.out} has an answer for every trial, so there is nothing to export.")
    return ExportedBatches(models=tuple(files for files in written if files.requests))


def _folder_of(model: Model, out: Path) -> Path:
    return out / quote(model.alias, safe="")


def _request_files(form: str, sweep: Sweep, model: Model, trials: Iterator[Trial], out: Path) -> RequestFiles:
    """Write the files of a model; they get their place when all of them are whole."""
    api, folder = open_batches(model, key=NO_KEY, simulator_url=None), _folder_of(model, out)
    batch = sweep.batch
    lines = NUPA_LINES if form == "nupa" else min(batch.max_requests, api.most_requests)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".export-", dir=out) as drafts, ExitStack() as open_files:
            draft = Path(drafts) / folder.name
            draft.mkdir()
            map_file = open_files.enter_context((draft / MAP).open("xb"))
            parts = _RequestWriter(
                lambda name: open_files.enter_context((draft / name).open("xb")),
                max_lines=lines,
                max_bytes=min(batch.max_bytes, api.most_bytes),
            )

            # A line of the map tells all that an import needs to know of a request beside its result.
            for number, trial in enumerate(trials):
                custom_id = f"request-{number}" if form == "nupa" else trial.trial_id
                parts.add(api.line(custom_id, request_for(trial)) + b"\n")
                entry = {
                    "custom_id": custom_id,
                    "trial_id": trial.trial_id,
                    "model": model.alias,
                    "provider": model.provider,
                    "model_id": model.model_id,
                    "api": model.api,
                    "condition": trial.condition.name,
                    "style": trial.condition.style,
                    "repeat": trial.repeat,
                    "price": None if model.price is None else asdict(model.price),
                    "problem": asdict(trial.problem),
                }
                map_file.write(orjson.dumps(entry) + b"\n")
            open_files.close()
            if parts.requests:
                draft.rename(folder)
    return RequestFiles(model=model.alias, folder=str(folder), files=parts.files, requests=parts.requests)


class _RequestWriter:
    """Files of requests, a new one as soon as the last is full."""

    def __init__(self, begin: Callable[[str], BinaryIO], *, max_lines: int, max_bytes: int) -> None:
        """Open files by `begin`, each of at most so many lines and bytes."""
        self.files = self.requests = 0
        self._begin, self._max_lines, self._max_bytes = begin, max_lines, max_bytes
        self._file: BinaryIO | None = None
        self._lines = self._size = 0

    def add(self, line: bytes) -> None:
        """Write a line of a request."""
        full = self._lines == self._max_lines or self._size + len(line) > self._max_bytes
        if self._file is None or (full and self._lines):
            if self._file is not None:
                self._file.close()
            self._file = self._begin(f"batch_{self.files}.jsonl")
            self.files, self._lines, self._size = self.files + 1, 0, 0
        self._file.write(line)
        self.requests, self._lines, self._size = self.requests + 1, self._lines + 1, self._size + len(line)
