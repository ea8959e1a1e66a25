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
from asyncbench.pricing import charge
from asyncbench.providers.batch_calls import BatchApi, NotRun
from asyncbench.providers.endpoints import is_simulated
from asyncbench.providers.prices import rates_of
from asyncbench.providers.provider import open_batches
from asyncbench.published.files import (
    Fields,
    Planned,
    Recorded,
    RecordedRun,
    check_file,
    inner,
    lines,
    mapping,
    parsed,
    text,
    told,
)
from asyncbench.records import BATCH, Condition, Draft, Model, Price, Reply
from asyncbench.store.folder import Store
from asyncbench.upkeep.batch_files.requests import MAP, NO_KEY
from asyncbench.upkeep.importing import Imported, Keeper, folder_for

FORM: Final = "batch"
_RESULTS: Final = frozenset({"response", "error", "result"})  # what a line has of one
BATCH_ID: Final = re.compile(r"(?:msg)?batch_[0-9A-Za-z]{6,}")  # in the name of a file, as vendors give it


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """One request, as its file and the map tell."""

    draft: Draft
    model: Model
    condition: Condition
    repeat: int = 0
    trial_id: str


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
    recording = _recording(files_of(files, ".jsonl", ".json"), Path(requests))
    with Store.open(folder, sweep=sweep, imported=True) as store:
        return Imported(out=Path(out), runs=(Keeper(store, FORM).keep(recording),))


def files_of(paths: Iterable[PathLike[str] | str], *endings: str) -> list[Path]:
    """Return the files that are meant, those of folders by their endings; raises ConfigError."""
    files = list[Path]()
    for path in map(Path, paths):
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


def _recording(files: list[Path], requests: Path) -> RecordedRun:
    """Return all results as one run.

    Raises:
        ConfigError: none of them can be used.
    """
    left_out = list[str]()
    by_id = dict(_requested(requests, left_out))
    results = _Results(requests=by_id, left_out=left_out)
    for path in files:
        results.read(path)
    results.tell_missing()
    if not results.trials:
        raise ConfigError(f"Nothing can be imported: {next(iter(left_out), 'the files have no results')}")
    names = {trial.model.alias for trial in results.trials}
    return RecordedRun(
        run=names.pop() if len(names) == 1 else requests.stem,
        path=requests,
        trials=tuple(results.trials),
        left_out=tuple(left_out),
        planned=_planned(by_id.values()),
    )


def _planned(requests: Iterable[Requested]) -> Planned:
    planned: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for request in requests:
        conditions = planned.setdefault(request.model.alias, {})
        tasks = conditions.setdefault(request.condition.name, {}).setdefault(request.draft.suite, {})
        tasks[request.draft.task] = tasks.get(request.draft.task, 0) + 1
    return planned


# ── requests ─────────────────────────────────────────────────────────────────────────────────


def _requested(path: Path, left_out: list[str]) -> Iterator[tuple[str, Requested]]:
    """Yield each request with its custom id; note what cannot be used."""
    map_file = path / MAP if isdir(path) else path.with_name(MAP)
    if not map_file.is_file():
        raise ConfigError(
            f"{map_file}: no such file. Name the folder that `asyncbench export SWEEP --batch-files` wrote: "
            f"its {MAP} tells the problem of each request."
        )
    mapped = dict(_mapped(map_file))
    for file in files_of([path], ".jsonl"):
        for place, line in lines(file):
            try:
                fields = mapping(parsed(line), "a request")
                custom_id = text(fields, "custom_id")
                if (entry := mapped.pop(custom_id, None)) is None:
                    raise ValueError(f"custom_id {custom_id!r} stands twice, or {MAP} does not have it")
                yield custom_id, _known(fields, entry)
            except ValueError as error:
                left_out.append(f"{place}: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _MapEntry:
    """What our map tells of a request."""

    draft: Draft
    names: tuple[str, str, str, str]  # provider, model id, alias and wire format
    price: Price | None  # the sweep's own
    condition: Condition
    repeat: int
    trial_id: str


def _mapped(path: Path) -> Iterator[tuple[str, _MapEntry]]:
    for place, line in lines(path):
        try:
            fields = mapping(parsed(line), "an entry of the map")
            yield text(fields, "custom_id"), _entry(fields)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{place}: {error}. Take the map as it was exported.") from None


def _entry(fields: Fields) -> _MapEntry:
    problem = dict(inner(fields, "problem"))
    problem.pop("problem_id", None)
    return _MapEntry(
        draft=Draft(**problem | {"operands": tuple(problem.get("operands", ()))}),
        names=(
            text(fields, "provider"),
            text(fields, "model_id"),
            text(fields, "model"),
            text(fields, "api"),
        ),
        price=_price(fields.get("price")),
        condition=_condition(text(fields, "condition"), text(fields, "style")),
        repeat=int(told(fields, "repeat")),
        trial_id=text(fields, "trial_id"),
    )


def _price(entry: object) -> Price | None:
    """Return a price as the map has it; raises TypeError: it is none."""
    if not isinstance(entry, dict):
        return None
    return Price(**entry | {"batch": _price(entry.get("batch")) or entry.get("batch")})


@cache
def _condition(name: str, style: str) -> Condition:
    return Condition(name=name, style=style)


def _known(fields: Fields, entry: _MapEntry) -> Requested:
    """Return a request that our map tells of."""
    return Requested(
        draft=entry.draft,
        model=_model(fields, *entry.names, price=entry.price),
        condition=entry.condition,
        repeat=entry.repeat,
        trial_id=entry.trial_id,
    )


def _body(fields: Fields) -> Fields:
    return inner(fields, "params" if "params" in fields else "body")


def _model(
    fields: Fields, provider: str, model_id: str, alias: str, api: str, price: Price | None = None
) -> Model:
    body = _body(fields)
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    longest = next((body[name] for name in names if isinstance(body.get(name), int)), None)
    return _same_model(provider, model_id, alias, api, longest, body.get("temperature"), price)


@cache
def _same_model(
    provider: str,
    model_id: str,
    alias: str,
    api: str,
    max_tokens: int | None,
    temperature: float | None,
    price: Price | None,
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
    """Return what reads the results of a provider; it calls nobody."""
    whoever = Model(alias=provider, provider=provider, model_id=provider, api=api)
    return open_batches(whoever, key=NO_KEY, simulator_url=None)


# ── results ──────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class _Results:
    """The results of requests, as their files tell."""

    requests: Mapping[str, Requested]
    left_out: list[str]
    trials: list[Recorded] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def read(self, path: Path) -> None:
        """Take in a file of results; note what cannot be used."""
        batch_name, at = BATCH_ID.search(path.name), path.stat().st_mtime
        not_run = Counter[str]()
        for place, line in lines(path):
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
                self.trials.append(_recorded(request, ended, fields, batch_name and batch_name[0], at))
            except ValueError as error:
                self.left_out.append(f"{place}: {error}")
        self.left_out += (f"{path}: {count:,} requests did not run ({why})" for why, count in not_run.items())

    def tell_missing(self) -> None:
        """Note how many requests have no result."""
        if missing := len(self.requests) - len(self._seen):
            self.left_out.append(f"{missing:,} requests have no answer and no error in these files")


def result_in(line: bytes) -> Fields:
    """Return what a line of results says; raises ValueError, also where it is a request."""
    fields = mapping(parsed(line), "a result")
    text(fields, "custom_id")
    if not _RESULTS & fields.keys():
        raise ValueError("is a request, not a result: name the files that the provider made")
    return fields


def _recorded(
    request: Requested, ended: Reply | ProviderError, fields: Fields, batch_id: str | None, file_at: float
) -> Recorded:
    """Return what a line of results says of a trial, priced as a batch."""
    body = _inside(_inside(fields, "response"), "body")
    created = body.get("created", body.get("created_at"))
    timed = isinstance(created, int | float) and not isinstance(created, bool)
    at = float(created) if timed else file_at
    reply = replace(ended, service_tier=BATCH) if isinstance(ended, Reply) else None
    error = ended if isinstance(ended, ProviderError) else None
    model, cost, source = request.model, 0.0, "recorded"
    if reply is not None:
        charged = charge(reply, rates_of(model), at_s=at, provider=model.provider)
        cost, source = charged.usd, charged.source or source  # type: ignore[assignment]  # None: unknown
    return Recorded(
        draft=request.draft,
        model=model,
        condition=request.condition,
        reply=reply,
        error=error,
        cost_usd=None if error is not None and error.may_have_been_billed else cost,
        price_source=source,
        accounting=reply.raw_usage if reply else None,
        at=at,
        timed=timed,
        mode=BATCH,
        batch_id=batch_id,
        trial_id=request.trial_id,
        repeat=request.repeat,
    )


def _inside(fields: Fields, key: str) -> Fields:
    value: Any = fields.get(key)  # Any: JSON
    return value if isinstance(value, dict) else {}
