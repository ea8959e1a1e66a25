"""Settings of a run in a sweep file: batches, notifications, trackers, deadline and number of workers."""

import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, PositiveInt, TypeAdapter, ValidationError

from asyncbench.config.entry import (
    Entry,
    Name,
    Number,
    Place,
    Variable,
    WebAddress,
    Words,
    quoted,
    seconds_in,
    shortened,
)
from asyncbench.errors import ConfigError
from asyncbench.records import REALTIME


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """The settings of a sweep's batches."""

    max_requests: int = 10_000  # of a part
    max_bytes: int = 50_000_000  # likewise
    enqueued_tokens: int | None = None  # of prompts in unfinished batches of a model; None: to be learnt
    rounds: int = 2  # parts that a trial is in before `fallback` is for it
    fallback: str = REALTIME  # or none: what was not answered then stays open
    on_doubt: str = "wait"  # or resubmit: which may pay twice


class BatchEntry(Entry):
    """How batches are made, for models whose `mode` is `batch`."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "price": "It stands in the model's entry: `price: {input: …, output: …, batch: 0.5}`."
    }

    max_requests: PositiveInt = Field(
        default=10_000,
        description="The most requests of one batch. If asyncbench cannot find out whether a batch was "
        "created, so many trials wait, or may be paid twice.",
    )
    max_bytes: PositiveInt = Field(default=50_000_000, description="The most bytes of one batch.")
    enqueued_tokens: PositiveInt | None = Field(
        default=None,
        description="The most prompt tokens in unfinished batches of one model, as your provider allows. "
        "Without it, asyncbench begins with 80,000 and learns.",
    )
    rounds: PositiveInt = Field(
        default=2, description="How many batches a trial may be in without an answer before `fallback`."
    )
    fallback: Literal["realtime", "none"] = Field(
        default="realtime",
        description="What becomes of trials that batches did not answer. `realtime`: they are asked call by "
        "call, at the full price. `none`: they stay open for the next run.",
    )
    on_doubt: Literal["wait", "resubmit"] = Field(
        default="wait",
        description="What to do if nobody can tell whether a batch was created. `wait`: do not ask its "
        "trials again. `resubmit`: ask them again, which may be paid twice.",
    )


# ── notifications


News = Literal["finished", "suspended", "crashed", "batches"]
NEWS: Final[tuple[News, ...]] = get_args(News)
ADDRESS_RULE: Final = "an address that begins with https:// or http:// and names a host"
LONGEST_TIMEOUT_S: Final = 60.0  # the end of a run waits that long for its last message
_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+\S*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """The receivers of notifications, and the events. Not shown: the address and the command, as secrets."""

    command: tuple[str, ...] = field(default=(), repr=False)  # a program and its words; empty: none
    webhook: str | None = field(default=None, repr=False)
    webhook_env: str | None = None  # the NAME of the variable that holds the address
    on: frozenset[News] = frozenset(NEWS)
    timeout_s: float = 10.0  # of one message

    def address(self, env: Mapping[str, str]) -> str | None:
        """Return the web address, or None if none is named or its variable is not set."""
        address = self.webhook if self.webhook_env is None else env.get(self.webhook_env)
        return (address or "").strip() or None


def is_address(text: str) -> bool:
    """Return whether a message can be posted there."""
    try:
        split = urlsplit(text)
        named = bool(split.hostname) and split.port != 0  # asking for a port that is none raises
    except ValueError:
        return False
    return named and _ADDRESS.fullmatch(text) is not None


_On = Annotated[
    list[News],
    BeforeValidator(
        lambda raw: [raw] if isinstance(raw, str) else raw, json_schema_input_type=News | list[News]
    ),
    Field(min_length=1),
]


class NotifyEntry(Entry):
    """Whom a run tells about its end and its failures."""

    command: Words | None = Field(
        default=None,
        description="A program and its arguments, as one text or as a list. No shell runs it. "
        "It gets the message as JSON on its standard input.",
    )
    webhook: Name | None = Field(
        default=None,
        description="The address to post to. It is a secret; `webhook_env` keeps it out of the file.",
    )
    webhook_env: Variable | None = Field(
        default=None, description="The NAME of the environment variable that holds the address to post to."
    )
    on: _On | None = Field(
        default=None,
        description="The events that are told. `finished`: the run ended. `suspended`: a model was stopped. "
        "`crashed`: the run died. `batches`: all were sent, one ended early or is in doubt, or results are "
        "deleted soon. Without it: all.",
    )
    timeout: Annotated[Number, Field(le=LONGEST_TIMEOUT_S)] = Field(
        default=10.0, description="The most seconds for one message."
    )


def notify_from(entry: NotifyEntry, *, place: Place) -> Notify:
    """Return the receivers of messages that a sweep file names.

    Raises:
        ConfigError: it names nobody, or cannot be understood. No address or command is repeated.
    """
    if (entry.command, entry.webhook, entry.webhook_env) == (None, None, None):
        raise ConfigError(f"{place}: `notify` tells nobody. Set `command`, `webhook` or `webhook_env`")
    if entry.webhook and entry.webhook_env:
        raise ConfigError(f"{place}: `webhook` and `webhook_env` are both set. Remove one of them")
    if entry.webhook and not is_address(entry.webhook.strip()):
        raise ConfigError(f"{place / 'webhook'}: 'webhook' is not {ADDRESS_RULE}")
    return Notify(
        command=tuple(entry.command or ()),
        webhook=entry.webhook,
        webhook_env=entry.webhook_env,
        on=frozenset(entry.on or NEWS),
        timeout_s=entry.timeout,
    )


def expand_notify(raw: object) -> object:
    """Return the mapping that an address or a command alone stands for."""
    if isinstance(raw, str):
        return {"webhook" if re.match("https?://", raw.strip()) else "command": raw}
    if not isinstance(raw, Mapping):
        return raw
    return {"on" if key is True else key: value for key, value in raw.items()}  # so YAML reads a bare `on`


# ── trackers: MLflow, Weights & Biases, OpenTelemetry


# By its key: the module that sends to it, and the extra of asyncbench that has it.
TRACKERS: Final[Mapping[str, str]] = {"mlflow": "mlflow", "wandb": "wandb", "otel": "opentelemetry.sdk"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The trackers that get the figures of a run. Not shown: addresses, which may hold a password."""

    mlflow: str | None = field(default=None, repr=False)  # the address of a server
    wandb: str | None = None  # a project
    otel: str | None = field(default=None, repr=False)  # the address of a collector
    timeout_s: float = 300.0

    @property
    def targets(self) -> dict[str, str]:
        """What to send to, by the key of its tracker."""
        named = {tracker: getattr(self, tracker) for tracker in TRACKERS}
        return {tracker: target for tracker, target in named.items() if target is not None}


class TrackEntry(Entry):
    """The trackers that get the figures of a run at its end."""

    mlflow: Name | None = Field(
        default=None,
        description="The address of an MLflow server, such as `http://127.0.0.1:5000`. The sweep is its "
        "experiment, and each model under each condition a run.",
    )
    wandb: Name | None = Field(
        default=None,
        description="The project at Weights & Biases. `WANDB_API_KEY` holds the key, as the package expects.",
    )
    otel: WebAddress | None = Field(
        default=None,
        description="The address of an OpenTelemetry collector that takes OTLP over HTTP, such as "
        "`http://127.0.0.1:4318`. Each call of the run becomes a span, without prompt and reply.",
    )
    timeout: Number = Field(
        default=300.0, description="The most seconds that the end of a run waits for them."
    )


def track_from(entry: TrackEntry, *, place: Place) -> Track:
    """Return the trackers as written in a sweep file.

    Raises:
        ConfigError: none is named.
    """
    track = Track(mlflow=entry.mlflow, wandb=entry.wandb, otel=entry.otel, timeout_s=entry.timeout)
    if not track.targets:
        raise ConfigError(
            f"{place}: `track` names no tracker. Set {', '.join(f'`{name}`' for name in TRACKERS)}"
        )
    return track


def check_installed(tracker: str, *, place: object) -> None:
    """Refuse a tracker whose package is missing.

    Raises:
        ConfigError: it is.
    """
    try:
        is_there = find_spec(TRACKERS[tracker]) is not None
    except ModuleNotFoundError:  # not even the package that would hold it
        is_there = False
    if not is_there:
        raise ConfigError(f"{place}: this needs the extra `{tracker}`: pip install 'asyncbench[{tracker}]'")


# ── the deadline: a duration, a time of day, or a date and time


_FORMS: Final = (
    'Write a duration ("8h", "90m", "1h30m"), a time of day ("07:30") or a date and time ("2026-11-22 07:30")'
)


def deadline_from(raw: object, *, place: object) -> str:
    """Return a deadline as it is kept: text of one of the three forms.

    Raises:
        ConfigError: it is of none of them.
    """
    written = str(raw) if isinstance(raw, date) else raw  # YAML reads moments and days by itself
    if not isinstance(written, str):
        raise ConfigError(
            f"{place}: 'deadline' must be text, not {shortened(repr(raw))}. "
            f"YAML reads a bare time of day as a number: put it in quotes. {_FORMS}"
        )
    if not (seconds_in(written) or _time_of_day(written) or _moment(written)):
        raise ConfigError(f"{place}: 'deadline' {quoted(written)} is not a time. {_FORMS}")
    return written


def seconds_left(deadline: str, now: datetime) -> float:
    """Return the seconds from `now`, the start of a run, to its deadline, by the clock of this machine.

    A night in which the clocks change is an hour shorter or longer.

    Raises:
        ConfigError: that moment has passed.
    """
    if seconds := seconds_in(deadline):
        return seconds
    if due := _time_of_day(deadline):
        # today or tomorrow; of a time that the clock shows twice, the earlier one that is to come
        today = now.astimezone().date()
        moments = (
            datetime.combine(today + timedelta(days=day), time(*due, fold=fold))
            for day, fold in product((0, 1), (0, 1))
        )
        seconds_to = (due_at.timestamp() - now.timestamp() for due_at in moments)
        return min(left_s for left_s in seconds_to if left_s > 0)
    moment = _moment(deadline) or now
    left_s = moment.timestamp() - now.timestamp()  # without a zone, `timestamp` takes it for local time
    if left_s <= 0:
        raise ConfigError(f"deadline {deadline!r} has passed. Set a later one, or remove it")
    return left_s


def _time_of_day(written: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", written)
    return (int(match[1]), int(match[2])) if match else None


def _moment(written: str) -> datetime | None:
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        return None


# ── the number of worker processes


AUTO_WORKERS: Final = "auto"
MOST_WORKERS: Final = 64
CGROUP: Final = Path("/sys/fs/cgroup")  # as a container sees its own
_QUOTAS: Final = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))  # of version 2, and of 1
WorkersWanted: TypeAlias = int | Literal["auto"]  # 0: none, the run makes its calls itself
WorkersEntry = Annotated[int, Field(ge=0, le=MOST_WORKERS)] | Literal["auto"]  # as a sweep file has it

_WANTED: Final[TypeAdapter[WorkersWanted]] = TypeAdapter(WorkersEntry)


def workers_from(workers: object, *, given_as: str) -> WorkersWanted:
    """Return how many workers somebody asks for, outside of a sweep file.

    Raises:
        ConfigError: that is no number of workers. `given_as` is its name, such as `--workers`.
    """
    try:
        return _WANTED.validate_python(workers, strict=True)
    except ValidationError:
        raise ConfigError(
            f"{given_as} {quoted(str(workers))}: not a number of processes. Give a whole number from 0 "
            f"(none) to {MOST_WORKERS}, or {AUTO_WORKERS}, which leaves one core to the run itself"
        ) from None


def usable_cores() -> int:
    """Return how many cores this process can use at once: as many as it may run on and its container may use.

    Part of a core, as in `docker run --cpus=1.5`, counts as a whole one.
    """
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # macOS

    # what the container of this process may take
    cores: float = here
    for files in _QUOTAS:
        with suppress(OSError, ValueError):  # it is not there, or sets none: "max"
            numbers = [number for file in files for number in (CGROUP / file).read_text("ascii").split()]
            quota, period = map(int, numbers)
            if quota > 0 and period > 0:
                cores = min(here, quota / period)
                break
    return max(1, math.ceil(cores))


def workers_here(wanted: WorkersWanted) -> int:
    """Return how many workers to start on this machine; `auto` leaves one core to the run itself."""
    return min(MOST_WORKERS, usable_cores() - 1) if wanted == AUTO_WORKERS else int(wanted)
