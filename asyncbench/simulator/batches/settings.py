"""Settings and faults of batches.

A server has settings for all its batches. The first request of a batch may change them for that batch.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import cache
from typing import ClassVar, Self

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError

from asyncbench.errors import ConfigError

_FAULT = re.compile(r"(?P<kind>\w+)=(?:#(?P<places>\d+(?:,\d+)*)|(?P<rate>[\d.e-]+))(?::(?P<value>.+))?")


class FaultName(StrEnum):
    """A way to fail: its name, what it is dealt to, and its usual value.

    Values in seconds are of the batch's own clock. A subclass lists the faults that a server can play.
    """

    unit: str
    usual: str

    def __new__(cls, name: str, unit: str, usual: str = "") -> Self:
        kind = str.__new__(cls, name)
        kind._value_, kind.unit, kind.usual = name, unit, usual
        return kind


class BatchFaultKind(FaultName):
    """The faults of batches that a simulator plays."""

    # validation
    FAILED = "failed", "batch", "model_not_found"  # the error's code; CODE@LINE names a line, too
    # course
    SLOW_START = "slow_start", "batch", "14400"
    STUCK_VALIDATING = "stuck_validating", "batch", "3600"
    STUCK_FINALIZING = "stuck_finalizing", "batch", "3600"
    EXPIRES = "expires", "batch", "0.5"  # with this share done
    NEVER_EXPIRES = "never_expires", "batch"
    CANCEL_SLOW = "cancel_slow", "batch", "1500"
    CANCEL_COMPLETES = "cancel_completes", "batch"
    # result files, as Azure has them
    EMPTY_IDS = "empty_ids", "batch"  # of files that do not exist: "" for null
    EMPTY_ERROR_FILE = "empty_error_file", "batch"  # it is there though nothing failed
    # lines of results
    LINE_TOO_LONG = "line_too_long", "line"  # context_length_exceeded
    LINE_400 = "line_400", "line"
    LINE_429 = "line_429", "line"
    LINE_NO_QUOTA = "line_no_quota", "line"
    LINE_500 = "line_500", "line"
    LINE_504 = "line_504", "line"
    LINE_EXPIRED = "line_expired", "line"
    LINE_CANCELED = "line_canceled", "line"
    LINE_STATUS_0 = "line_status_0", "line"
    LINE_ERROR_200 = "line_error_200", "line"


# The faults that can be named, by their names. A server with more of them adds its own.
KINDS: dict[str, FaultName] = {kind.value: kind for kind in BatchFaultKind}
Met = Mapping[str, str]  # the faults that a call, a batch or a line meets, with their values


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFault:
    """One way to fail, and which calls, batches or lines do: a share of them, or some by their numbers."""

    kind: FaultName
    rate: float = 0.0
    places: frozenset[int] = frozenset()  # 1: the first
    value: str


def parse_batch_fault(text: str) -> BatchFault:
    """Read `KIND=RATE`, or `KIND=#PLACE,PLACE`, each with `:VALUE` or without.

    Raises:
        ConfigError: no such kind, no such share, or a value that is no number where one is needed.
    """
    if (match := _FAULT.fullmatch(text)) is None:
        raise ConfigError(f"batch fault {text!r}: write `expires=0.1`, `expires=#1,3` or `expires=1:0.5`")
    name = match["kind"]
    if (kind := KINDS.get(name)) is None:
        raise ConfigError(f"batch fault {text!r}: no kind {name!r}; kinds: {', '.join(KINDS)}")
    value = match["value"] or kind.usual
    needs_number = kind.usual.replace(".", "", 1).isdigit()
    try:
        rate = float(match["rate"] or 0)
        fits = 0 <= rate <= 1 and (not needs_number or float(value) >= 0)
    except ValueError:
        fits = False
    if not fits:
        raise ConfigError(f"batch fault {text!r}: its share must be from 0 to 1, and its value a number")
    places = frozenset(map(int, (match["places"] or "").split(","))) if match["places"] else frozenset[int]()
    return BatchFault(kind=kind, rate=rate, places=places, value=value)


class Dealer:
    """Deals faults: the nth of a unit meets the same ones in every run, whatever the others meet."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._counts = Counter[tuple[str, str]]()

    def deal(
        self, faults: Sequence[BatchFault], unit: str, model: str = "", *, number: int | None = None
    ) -> Met:
        """Return the faults that the next unit of a model meets, such as its next create.

        Args:
            faults: the faults that may be met.
            unit: what is counted, such as `create` or `line`.
            model: the model whose units are counted; empty: those of all models together.
            number: which one it is, where the caller counts.
        """
        if number is None:
            self._counts[unit, model] += 1
            number = self._counts[unit, model]
        met: dict[str, str] = {}
        for fault in faults:
            if fault.kind.unit == unit:
                draw = random.Random(f"batch faults/{self._seed}/{fault.kind}/{model}/{number}")
                if number in fault.places or draw.random() < fault.rate:
                    met[fault.kind] = fault.value
        return met


# Names, and what each must be unless it is left out.
NumberRules = tuple[tuple[tuple[str, ...], Callable[[float], bool], str], ...]


def check_numbers(settings: object, rules: NumberRules, *, prefix: str = "") -> None:
    """Raise ConfigError for a number that makes no sense; `prefix` stands before its name."""
    for names, fits, rule in rules:
        for name in names:
            if (value := getattr(settings, name)) is not None and not fits(value):
                raise ConfigError(f"simulator: {prefix}{name} is {value:g}; it must be {rule}")


_NUMBERS: NumberRules = (
    (
        ("speedup", "latency_s", "creates_per_hour", "max_requests", "max_bytes"),
        lambda value: 0 < value < math.inf,
        "above 0",
    ),
    (("enqueued_tokens", "waiting_requests"), lambda value: 0 < value < math.inf, "above 0"),
    (("latency_sigma",), lambda value: 0 <= value < math.inf, "0 or above"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How fast batches go, what a vendor allows, and what goes wrong.

    A request may carry it, too, as `"simulate": {"batch": {"speedup": 3600}}`: what the first request of a
    batch says holds for the whole batch, and what it leaves out is as the server was started.

    Raises:
        ConfigError: a value that makes no sense.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    speedup: float = 1.0  # all times of a batch, 24 h among them, are divided by it
    latency_s: float = 1800.0  # from the start of a batch to its last answer, by its own clock: the median
    latency_sigma: float = 0.0  # of a lognormal; 0: always the median
    max_requests: int | None = None  # of a batch; None: the vendor's 50,000 or 100,000
    max_bytes: int | None = None  # of a batch; None: the vendor's 200 MB or 256 MB
    enqueued_tokens: int | None = None  # OpenAI, of each model's unfinished batches; None: any
    waiting_requests: int | None = None  # Anthropic, of all unfinished batches; None: any
    creates_per_hour: int = 2000
    faults: tuple[str, ...] = ()  # as `faults.parse_batch_fault` reads them

    def __post_init__(self) -> None:
        check_numbers(self, _NUMBERS, prefix="batch.")
        dealt(self.faults)

    def but(self, request: object) -> "BatchSettings":
        """Return the settings that a request asks for, or None if it says nothing.

        Raises:
            ConfigError: an unknown key, or a value that its key refuses.
        """
        if request is None:
            return self
        try:
            return _PYTHON.validate_python({**asdict(self), **dict(request)})  # type: ignore[call-overload]  # else a TypeError
        except ValidationError as error:
            fault = error.errors()[0]
            key = ".".join(map(str, fault["loc"]))
            keys = ", ".join(field.name for field in fields(self))
            raise ConfigError(f"simulator: batch.{key}: {fault['msg']}; keys: {keys}") from None
        except (TypeError, ValueError):
            raise ConfigError("simulator: batch must be a mapping, such as {speedup: 3600}") from None


def parse_batch(text: str) -> BatchSettings:
    """Read settings from JSON; raises ConfigError as `BatchSettings.but` does."""
    try:
        return USUAL.but(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"simulator: batch is {text!r}, which is no JSON: {error}") from None


@cache
def dealt(faults: Sequence[str]) -> tuple[BatchFault, ...]:
    """Return faults read; raises ConfigError as `parse_batch_fault` does."""
    return tuple(map(parse_batch_fault, faults))


USUAL = BatchSettings()
_PYTHON = TypeAdapter(BatchSettings)
