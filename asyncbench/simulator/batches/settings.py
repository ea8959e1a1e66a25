"""How batches are played: by a server, or by what the first request of a batch says."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import ClassVar

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError

from asyncbench.errors import ConfigError
from asyncbench.simulator.batches.faults import BatchFault, parse_batch_fault

_ABOVE_0 = ("speedup", "latency_s", "creates_per_hour")
_ABOVE_0_OR_NONE = ("max_requests", "max_bytes", "enqueued_tokens", "waiting_requests")


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
        for name in (*_ABOVE_0, *_ABOVE_0_OR_NONE):
            value = getattr(self, name)
            if (value is not None or name in _ABOVE_0) and not 0 < value < math.inf:
                raise ConfigError(f"simulator: batch.{name} is {value:g}; it must be above 0")
        if not 0 <= self.latency_sigma < math.inf:
            raise ConfigError(
                f"simulator: batch.latency_sigma is {self.latency_sigma:g}; it must be 0 or above"
            )
        dealt(self.faults)

    def but(self, asked: object) -> "BatchSettings":
        """Return the settings with what a request says; None: it says nothing.

        Raises:
            ConfigError: an unknown key, or a value that its key refuses.
        """
        if asked is None:
            return self
        try:
            return _PYTHON.validate_python({**asdict(self), **dict(asked)})  # type: ignore[call-overload]  # else a TypeError
        except ValidationError as error:
            fault = error.errors()[0]
            key = ".".join(map(str, fault["loc"]))
            known = ", ".join(field.name for field in fields(self))
            raise ConfigError(f"simulator: batch.{key}: {fault['msg']}; keys: {known}") from None
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
