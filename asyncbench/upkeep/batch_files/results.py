"""import_batches(): results of batches that were exported and submitted by hand become a results folder."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import Any, Final

from asyncbench.errors import ConfigError, ProviderError
from asyncbench.files import local
from asyncbench.pricing import charge
from asyncbench.providers.batch_calls import BatchApi, NotRun, id_in
from asyncbench.providers.endpoints import is_simulated
from asyncbench.providers.prices import rates_of
from asyncbench.providers.provider import open_batches
from asyncbench.published.files import (
    Fields,
    Recorded,
    RecordedRun,
    check_file,
    counted,
    inner,
    lines,
    mapping,
    parsed,
    required,
    text,
)
from asyncbench.records import BATCH, Condition, Draft, Model, Price, Reply
from asyncbench.store.folder import Store
from asyncbench.upkeep.exporting import MAP, NO_KEY
from asyncbench.upkeep.importing import Imported, Keeper, folder_for

FORM: Final = "batch"
_RESULTS: Final = frozenset({"response", "error", "result"})  # what a line has of one
BATCH_ID: Final = re.compile(r"(?:msg)?batch_[0-9A-Za-z]{6,}")  # in the name of a file, as vendors give it


def import_batches(
    files: Iterable[PathLike[str] | str],
    out: PathLike[str] | str,
    *,
    requests: PathLike[str] | str,
) -> Imported:
    """Import the results of batches that `export_batches` wrote and you submitted. All files are one run.

    Args:
        files: files of results, with answers and with errors, or folders that hold them.
        out: the results folder. It is made if it does not exist.
        requests: the folder that holds the requests and their map, or a file of requests beside the map.

    Returns:
        An `Imported`, with the rows and what could not be used.

    Raises:
        ConfigError: A file cannot be read, nothing can be used, or the folder holds a sweep or another run of
            that name.
        StoreError: The folder cannot be written.
    """
    folder, sweep, _ = folder_for(out)
    left_out, request_path = list[str](), local(requests)
    result_paths = files_of(files, ".jsonl", ".json")

    # Each result takes its request's place; what has no use, or no result, is noted in `left_out`.
    by_id = dict(_requested(request_path, left_out))
    results = _Results(requests=by_id, left_out=left_out)
    for path in result_paths:
        results.read(path)
    results.tell_missing()
    if not results.trials:
        raise ConfigError(f"Nothing can be imported: {next(iter(left_out), 'the files have no results')}")

    names = {trial.model.alias for trial in results.trials}
    recording = RecordedRun(
        run=names.pop() if len(names) == 1 else request_path.stem,
        path=request_path,
        trials=tuple(results.trials),
        left_out=tuple(left_out),
        planned=counted((request.model, request.condition, request.draft) for request in by_id.values()),
    )
    with Store.open(folder, sweep=sweep, imported=True) as store:
        return Imported(out=local(out), runs=(Keeper(store, FORM).keep(recording),))


def files_of(paths: Iterable[PathLike[str] | str], *endings: str) -> list[Path]:
    """Return the files that are meant, those of folders by their endings; raises ConfigError."""
    files = list[Path]()
    for path in map(local, paths):
        if isdir(path):
            inside = sorted(file for file in path.iterdir() if file.suffix in endings and file.name != MAP)
            if not inside:
                raise ConfigError(
                    f"{path} has no {' or '.join(endings)} files. Name the files, or another one."
                )
            files += inside
        else:
            files.append(path)
    for path in files:
        check_file(path)
    return files


# ── requests ─────────────────────────────────────────────────────────────────────────────────


def _requested(path: Path, left_out: list[str]) -> Iterator[tuple[str, Recorded]]:
    """Yield each request with its custom id, as a trial without a reply; note what cannot be used."""
    map_file = path / MAP if isdir(path) else path.with_name(MAP)
    if not map_file.is_file():
        raise ConfigError(
            f"{map_file}: no such file. Name the folder that `asyncbench export SWEEP --batch-files` wrote: "
            f"its {MAP} tells the problem of each request."
        )
    mapped: dict[str, Recorded] = {}
    for where, line in lines(map_file):
        try:
            fields = mapping(parsed(line), "an entry of the map")
            mapped[text(fields, "custom_id")] = _entry(fields)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{where}: {error}. Take the map as it was exported.") from None

    for file in files_of([path], ".jsonl"):
        for where, line in lines(file):
            try:
                fields = mapping(parsed(line), "a request")
                custom_id = text(fields, "custom_id")
                if (entry := mapped.pop(custom_id, None)) is None:
                    raise ValueError(f"custom_id {custom_id!r} stands twice, or {MAP} does not have it")

                # The request itself says how long and how warm a reply may be.
                body = inner(fields, "params" if "params" in fields else "body")
                limits = ("max_tokens", "max_completion_tokens", "max_output_tokens")
                longest = next((body[name] for name in limits if isinstance(body.get(name), int)), None)
                model = entry.model
                named = (model.provider, model.model_id, model.alias, model.api, model.price)
                model = _same_model(*named, longest, body.get("temperature"))
                yield custom_id, replace(entry, model=model)
            except ValueError as error:
                left_out.append(f"{where}: {error}")


def _entry(fields: Fields) -> Recorded:
    """Return a request's entry in our map: its trial, whose model the request itself may limit."""
    problem = dict(inner(fields, "problem"))
    problem.pop("problem_id", None)
    return Recorded(
        draft=Draft(**problem | {"operands": tuple(problem.get("operands", ()))}),
        model=_same_model(
            text(fields, "provider"),
            text(fields, "model_id"),
            text(fields, "model"),
            text(fields, "api"),
            _price(fields.get("price")),
        ),
        condition=_same_condition(name=text(fields, "condition"), style=text(fields, "style")),
        reply=None,
        ended_at=0.0,  # no reply is known yet
        repeat=int(required(fields, "repeat")),
        trial_id=text(fields, "trial_id"),
    )


def _price(entry: object) -> Price | None:
    """Return a price as the map has it; raises TypeError: it is none."""
    if not isinstance(entry, dict):
        return None
    return Price(**entry | {"batch": _price(entry.get("batch")) or entry.get("batch")})


_same_condition = cache(Condition)


@cache
def _same_model(
    provider: str,
    model_id: str,
    alias: str,
    api: str,
    price: Price | None,
    max_tokens: int | None = None,
    temperature: float | None = None,
) -> Model:
    """Return one record for all requests that are alike: there may be many thousands."""
    return Model(
        alias=alias,
        provider=provider,
        model_id=model_id,
        api=api,
        simulated=is_simulated(provider),
        max_tokens=max_tokens,
        temperature=temperature,
        price=price,
    )


@cache
def _reader(provider: str, api: str) -> BatchApi:
    """Return the reader of a provider's results; it makes no call, so any model will do."""
    model = Model(alias=provider, provider=provider, model_id=provider, api=api)
    return open_batches(model, key=NO_KEY, simulator_url=None)


# ── results ──────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class _Results:
    """The results of requests, as their files tell."""

    requests: Mapping[str, Recorded]
    left_out: list[str]
    trials: list[Recorded] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def read(self, path: Path) -> None:
        """Take in a file of results; note what cannot be used."""
        batch_name, written_at = BATCH_ID.search(path.name), path.stat().st_mtime
        not_run = Counter[str]()
        for where, line in lines(path):
            try:
                fields = result_in(line)
                custom_id = fields["custom_id"]
                if (request := self.requests.get(custom_id)) is None:
                    raise ValueError(f"custom_id {custom_id!r} is of no request")
                if custom_id in self._seen:
                    raise ValueError(f"custom_id {custom_id!r} has a result already")
                ended = _reader(request.model.provider, request.model.api).read(line).ended
                if isinstance(ended, NotRun):
                    not_run[ended.value] += 1
                    continue
                self._seen.add(custom_id)
                batch_id = batch_name and batch_name[0]
                self.trials.append(_recorded(request, ended, fields, batch_id, written_at))
            except ValueError as error:
                self.left_out.append(f"{where}: {error}")
        self.left_out += (f"{path}: {count:,} requests did not run ({why})" for why, count in not_run.items())

    def tell_missing(self) -> None:
        """Note how many requests have no result."""
        if missing := len(self.requests) - len(self._seen):
            self.left_out.append(f"{missing:,} requests have no answer and no error in these files")


def result_in(line: bytes) -> Fields:
    """Return the fields of a line of results; raises ValueError, also where it is a request."""
    fields = mapping(parsed(line), "a result")
    if id_in(fields) is None:
        text(fields, "custom_id")  # raises
    if not _RESULTS & fields.keys():
        raise ValueError("is a request, not a result: name the files that the provider made")
    return fields


def _recorded(
    request: Recorded, ended: Reply | ProviderError, fields: Fields, batch_id: str | None, file_at: float
) -> Recorded:
    """Return a trial's answer in a line of results, priced as a batch."""
    body = _inside(_inside(fields, "response"), "body")
    created = body.get("created", body.get("created_at"))
    timed = isinstance(created, int | float) and not isinstance(created, bool)
    began_at = float(created) if timed else file_at
    trial = replace(request, ended_at=began_at, timed=timed, mode=BATCH, batch_id=batch_id)
    if isinstance(ended, ProviderError):
        return replace(trial, error=ended, cost_usd=None if ended.may_have_been_billed else 0.0)
    reply = replace(ended, service_tier=BATCH)
    charged = charge(reply, rates_of(trial.model), at_s=began_at, provider=trial.model.provider)
    return replace(
        trial,
        reply=reply,
        cost_usd=charged.usd,
        price_source=charged.source or trial.price_source,
        accounting=reply.raw_usage,
    )


def _inside(fields: Fields, key: str) -> Fields:
    value: Any = fields.get(key)  # Any: JSON
    return value if isinstance(value, dict) else {}
