"""hand_in_results(): files that somebody fetched for batches of a run, put where the next run takes them in.

For batches whose results asyncbench could not download, and for those of which it does not know whether they
exist: each line names its part, and its trial.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final

from asyncbench.config.sweep import load_sweep
from asyncbench.errors import ConfigError
from asyncbench.files import local, publish, storing
from asyncbench.lanes.batches.ledger import BatchLedger, BatchPart, Step
from asyncbench.lanes.batches.packing import manifest_rows, trial_of
from asyncbench.providers.batch_calls import BatchApi, id_in
from asyncbench.providers.provider import open_batches
from asyncbench.records import Model
from asyncbench.run.summary import Exit
from asyncbench.store.lock import locked
from asyncbench.store.manifest import IMPORTED, SWEEP_FILE, is_results_folder, read_manifest
from asyncbench.tables.report import Report
from asyncbench.upkeep.batch_files.results import BATCH_ID, files_of, result_in
from asyncbench.upkeep.exporting import NO_KEY

TRIAL_DIGITS: Final = 32  # of a custom id; the key of its part follows
HANDED: Final = "handed"  # the suffix of results that are not all there are
BY_HAND: Final = ("fetched by hand",)  # as the files of a batch whose own ones are not known


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedPart:
    """One part, and how much of it is there now."""

    part: str
    batch_id: str
    requests: int
    results: int
    taken: bool  # whether the next run takes in what is there


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedIn(Report):
    """What became of results that were fetched by hand."""

    out: Path
    parts: tuple[HandedPart, ...]
    left_out: tuple[str, ...]  # lines that cannot be used: where, and why

    @property
    def exit(self) -> Exit:
        """The exit code of a command that did only this."""
        short = any(handed.results < handed.requests for handed in self.parts)
        return Exit.UNFINISHED if self.left_out or short else Exit.COMPLETE

    def notes_above(self) -> Iterator[str]:
        for handed in self.parts:
            yield f"{handed.batch_id}: {handed.results:,} of {handed.requests:,} results are in place"
            if lacking := handed.requests - handed.results:
                note = f"{lacking:,} requests have no result"
                yield (
                    f"{note}. They count as not answered: the next run asks them again."
                    if handed.taken
                    else f"{note}, so none is taken in yet. Import the file of errors, too; or, if there is "
                    "no other file, repeat the command with --partial: the next run then asks them again."
                )
        if any(handed.taken for handed in self.parts):
            yield "Run the sweep again: it grades these results, and asks for none of them."


def hand_in_results(
    files: Iterable[PathLike[str] | str],
    out: PathLike[str] | str,
    *,
    partial: bool = False,
) -> HandedIn:
    """Give results that you fetched from your provider to the open batches of a results folder.

        ab.hand_in_results(["output.jsonl", "errors.jsonl"], "results/night")

    A batch is taken in once each of its requests has a result: files may come one after the other.

    Args:
        files: files of results, with answers and with errors, or folders that hold them.
        out: the results folder of the sweep that sent the batches.
        partial: take requests without a result for not answered; the next run asks them again. [False]

    Returns:
        A `HandedIn`, with the parts and what could not be used. The next run of the sweep takes them in.

    Raises:
        ConfigError: A file cannot be read, or holds nothing of an open batch of this folder. Nothing was
            written.
        StoreError: A run is going in the folder, or the folder cannot be written.
    """
    folder = local(out)
    if not is_results_folder(folder) or read_manifest(folder).get(IMPORTED):
        raise ConfigError(
            f"{folder} has no batches of a run. Name the requests with --requests; or, if a run sent the "
            "batches, name its results folder with --out."
        )
    paths = files_of(files, ".jsonl", ".json")
    models = {model.alias: model for model in load_sweep(folder / SWEEP_FILE).models}
    with locked(folder), ExitStack() as drafts:
        ledger = BatchLedger(folder)
        fetched = _Fetched(ledger=ledger, models=models, drafts=drafts)
        for path in paths:
            fetched.read(path)
        fetched.tell_closed()
        if not fetched.parts:
            raise ConfigError(f"Nothing can be imported: {next(iter(fetched.left_out), 'no file has lines')}")
        drafts.close()
        for fetched_part in fetched.parts.values():
            _put_in_place(fetched_part, ledger, partial=partial)
        ledger.close()
    handed = [
        HandedPart(
            part=key,
            batch_id=fetched_part.batch_part.batch_id or key,
            requests=fetched_part.batch_part.requests,
            results=fetched_part.batch_part.requests - len(fetched_part.waiting),
            taken=partial or not fetched_part.waiting,
        )
        for key, fetched_part in fetched.parts.items()
    ]
    return HandedIn(out=folder, parts=tuple(handed), left_out=tuple(fetched.left_out))


@dataclass(slots=True, kw_only=True)
class _FetchedPart:
    """The results of one part, collected in a draft beside their place."""

    batch_part: BatchPart
    api: BatchApi
    draft: Path
    lines: BinaryIO
    waiting: set[str]  # trials without a line so far
    batch_id: str | None = None  # as the name of a file says


@dataclass(slots=True, kw_only=True)
class _Fetched:
    """All lines, by the part that each names."""

    ledger: BatchLedger
    models: Mapping[str, Model]
    drafts: ExitStack
    left_out: list[str] = field(default_factory=list)
    parts: dict[str, _FetchedPart] = field(default_factory=dict)
    _closed: Counter[str] = field(default_factory=Counter)

    def read(self, path: Path) -> None:
        """Take in a file, line by line; note what cannot be used."""
        named = BATCH_ID.search(path.name)
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    # The custom id names the part. Results of a part that is not open any more are counted.
                    custom_id = str(id_in(result_in(line)))
                    key = custom_id[TRIAL_DIGITS:]
                    if (batch_part := self.ledger.parts.get(key)) is None:
                        raise ValueError(f"custom_id {custom_id!r} is of no batch of this folder")
                    if not batch_part.open and batch_part.step is not Step.ABANDONED:
                        self._closed[key] += 1
                        continue

                    # A line that the provider's reader can read is the result of a trial that waits for one.
                    fetched = self.parts.get(key) or self._begin(batch_part)
                    fetched.api.read(line)  # raises ValueError
                    if (trial_id := trial_of(custom_id, key)) not in fetched.waiting:
                        raise ValueError(f"custom_id {custom_id!r} has a result already")
                    fetched.waiting.remove(trial_id or "")
                    fetched.lines.write(line.rstrip(b"\r\n") + b"\n")
                    fetched.batch_id = fetched.batch_id or (named and named[0])
                except ValueError as error:
                    self.left_out.append(f"{path}, line {number}: {error}")

    def tell_closed(self) -> None:
        """Note of how many lines the batch was collected before."""
        for key, count in self._closed.items():
            batch_id = self.ledger.parts[key].batch_id or key
            self.left_out.append(
                f"{count:,} results of batch {batch_id} are not needed: it is not open any more"
            )

    def _begin(self, batch_part: BatchPart) -> _FetchedPart:
        """Begin the results of a part with those that are in place already."""
        if (model := self.models.get(batch_part.alias)) is None:
            raise ConfigError(
                f"a batch of model {batch_part.alias!r} cannot be taken in: the sweep has no such model any "
                "more. Put it back, and run the sweep once."
            )
        api = open_batches(model, key=NO_KEY, simulator_url=None)
        draft = self.ledger.path(batch_part, "results.new")
        trials = {row["trial_id"] for row in manifest_rows(self.ledger.path(batch_part, "manifest"))}
        with storing(draft):
            lines = self.drafts.enter_context(draft.open("wb"))
        fetched = _FetchedPart(batch_part=batch_part, api=api, draft=draft, lines=lines, waiting=trials)
        self.parts[batch_part.key] = fetched
        for suffix in ("results", HANDED):
            if (earlier := self.ledger.path(batch_part, suffix)).exists():
                self.read(earlier)
        return fetched


def _put_in_place(fetched: _FetchedPart, ledger: BatchLedger, *, partial: bool) -> None:
    """Note that a batch exists and has ended, once its results are on the disk; keep what is not all."""
    batch_part, whole = fetched.batch_part, partial or not fetched.waiting
    with storing(fetched.draft):
        publish(fetched.draft, ledger.path(batch_part, "results" if whole else HANDED))
    if not whole:
        return
    ledger.path(batch_part, HANDED).unlink(missing_ok=True)
    if batch_part.batch_id is None:
        created_at = batch_part.intended_at or batch_part.at
        ids = {"batch_id": fetched.batch_id or batch_part.key, "created_at": created_at}
        ledger.write(batch_part, Step.SUBMITTED, at=batch_part.at, **ids)
    if not batch_part.files or batch_part.step not in (Step.ENDED, Step.DOWNLOADING):
        details = {"ended_at": batch_part.ended_at, "used": batch_part.used, "faults": ()}
        ledger.write(batch_part, Step.ENDED, at=batch_part.at, status="completed", files=BY_HAND, **details)
    ledger.sync()
