"""refresh_batches(): asks the providers how the open batches of a results folder stand."""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from asyncbench.errors import ProviderError
from asyncbench.lanes.batches.ledger import BatchLedger, BatchPart, Step
from asyncbench.lanes.batches.polling import how_it_ended
from asyncbench.planning.preflight import keys_for
from asyncbench.providers.provider import open_batches
from asyncbench.records import Model
from asyncbench.run.cancelling import sweep_in
from asyncbench.store.bucket.claiming import run_folder
from asyncbench.store.folder import Store


async def refresh_batches(folder: Path | str, *, env: Mapping[str, str] | None = None) -> list[str]:
    """Ask the providers how the open batches of a results folder stand, and write that down.

    Nothing is sent, collected or paid.

    Args:
        folder: the results folder. No run may be going on in it: a run asks by itself.
        env: where API keys are looked up, by variable name. [this process's environment]

    Returns:
        What could not be asked, a sentence each.

    Raises:
        ConfigError: a key is not set.
        StoreError: a run is going on in the folder, or it cannot be written.
    """
    path = run_folder(Path(folder))
    sweep, open_parts = sweep_in(path), _open_of(BatchLedger(path))
    models = [model for model in sweep.models if model.alias in open_parts]
    keys = keys_for(models, os.environ if env is None else env)
    with Store.reopen(path) as store:
        ledger = BatchLedger(store.folder)
        open_parts = _open_of(ledger)
        try:
            notes = [
                note
                for model in models
                for note in await _asked(model, open_parts.get(model.alias, []), ledger, keys[model.alias])
            ]
            await asyncio.to_thread(ledger.sync)
        finally:
            ledger.close()
    return notes + list(_unknown(open_parts, models))


def _open_of(ledger: BatchLedger) -> dict[str, list[BatchPart]]:
    """Return the parts whose batches have not ended, as far as is known, by alias."""
    found: dict[str, list[BatchPart]] = {}
    for part in ledger.parts.values():
        if part.submitted:
            found.setdefault(part.alias, []).append(part)
    return found


async def _asked(model: Model, parts: Sequence[BatchPart], ledger: BatchLedger, key: str) -> list[str]:
    """Look at a model's batches; return which could not be looked at."""
    if model.simulated and model.base_url is None:
        return [f"{model.alias}: its batches are simulated, and go on only while a run does."]
    notes, api = list[str](), open_batches(model, key=key, simulator_url=None)
    try:
        for part in parts:
            try:
                batch = await api.retrieve(part.batch_id or "")
            except ProviderError as error:
                notes.append(f"{model.alias}: batch {part.batch_id} cannot be looked at: {error}.")
                continue
            seen = {"status": batch.status, "counted": batch.requests is not None, "done": batch.done}
            ledger.write(part, Step.SEEN, at=time.time(), **seen)
            if batch.ended and not batch.faults:  # what a run makes of faults is its own affair
                ledger.write(part, Step.ENDED, at=time.time(), **how_it_ended(batch))
    finally:
        await api.aclose()
    return notes


def _unknown(parts: Mapping[str, object], models: Sequence[Model]) -> Iterator[str]:
    for alias in sorted(parts.keys() - {model.alias for model in models}):
        yield f"{alias}: the sweep has no such model any more, so its batches cannot be looked at."
