"""How many calls a second one process carries, and so many workers: as measured on this machine, and kept."""

import json
import math
import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

from asyncbench.errors import StoreError
from asyncbench.files import write_durably
from asyncbench.providers import known_endpoints, makes_own_calls
from asyncbench.records import SDK, Model

APIS: Final = {"openai": ("chat", "responses"), "anthropic": ("messages",), "http": ("chat", "responses")}
_LIBRARIES: Final = ("asyncbench", "openai", "anthropic", "aiohttp")  # a call is as dear as they make it


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKind:
    """What of a call decides how much CPU it takes."""

    via: str  # openai, anthropic or http
    api: str
    stream: bool = False
    sdk: bool = False  # the SDK builds every call

    @property
    def name(self) -> str:
        """The kind in words, by which its cost is kept."""
        return f"{self.via} {self.api}{' streamed' * self.stream}{' by its SDK' * self.sdk}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """The CPU seconds of a call of one kind, as measured."""

    alone_s: float  # of a run without workers: from problem to journal
    call_s: float  # in the SDK and its connection, which a worker takes over
    hand_s: float  # to hand the call to a worker and take its answer, at either end

    @property
    def per_s(self) -> float:
        """Calls a second that one process carries."""
        return 1 / self.alone_s

    @property
    def is_sound(self) -> bool:
        """Whether it can be true."""
        return all(0 < seconds < 1 for seconds in asdict(self).values())

    def carried_by(self, workers: int, cores: int) -> float:
        """Return the calls a second that a run with workers carries: they, the run itself, or its cores."""
        if not workers:
            return self.per_s
        of_worker, of_run = self.call_s + self.hand_s, max(0.0, self.alone_s - self.call_s) + self.hand_s
        return min(workers / of_worker, 1 / of_run, cores / (of_worker + of_run))

    @classmethod
    def mean(cls, costs: Iterable[tuple["CallCost", float]]) -> "CallCost":
        """Return what a call costs on average; each cost stands with its share of the calls."""
        several = list(costs)
        whole = math.fsum(share for _, share in several)
        return cls(
            alone_s=math.fsum(cost.alone_s * share for cost, share in several) / whole,
            call_s=math.fsum(cost.call_s * share for cost, share in several) / whole,
            hand_s=math.fsum(cost.hand_s * share for cost, share in several) / whole,
        )


def kind_of(model: Model) -> CallKind | None:
    """Return which kind of calls a model gets; None: a package makes them, and nobody can measure that."""
    if makes_own_calls(model):
        return None
    via = known_endpoints()[model.provider].via
    api = model.api if model.api in APIS[via] else APIS[via][0]
    return CallKind(via=via, api=api, stream=model.stream, sdk=model.door == SDK and via != "http")


def kinds_of(models: Iterable[Model]) -> list[CallKind]:
    """Return the kinds of calls that models get, each once."""
    return list(dict.fromkeys(kind for model in models if (kind := kind_of(model)) is not None))


# ── kept for this machine ────────────────────────────────────────────────────────────────────


def kept_costs() -> dict[str, CallCost]:
    """Return what was measured on this machine with these versions, by the name of the kind."""
    with suppress(OSError, RuntimeError, ValueError, TypeError, KeyError, AttributeError):
        kept = json.loads(_file().read_text("utf-8"))["calls"]
        found = {name: CallCost(**cost) for name, cost in kept.items()}
        return {name: cost for name, cost in found.items() if cost.is_sound}
    return {}


def keep_costs(costs: Mapping[str, CallCost]) -> None:
    """Keep what was measured, beside other kinds; nothing happens where it cannot be written."""
    together = {name: asdict(cost) for name, cost in (kept_costs() | dict(costs)).items()}
    data = json.dumps({"measured_on": _machine(), "calls": together}, indent=1).encode()
    with suppress(StoreError, OSError, RuntimeError):
        file = _file()
        write_durably(file, data, temporary=file.with_suffix(f".{os.getpid()}"))


def _file() -> Path:
    """Return where it is kept: machines that share a home each have a file; raises RuntimeError: no home."""
    told = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = told if told.is_absolute() else Path.home() / ".cache"
    digest = sha256(json.dumps(_machine()).encode()).hexdigest()[:12]
    return folder / "asyncbench" / f"capacity-{digest}.json"


def _machine() -> dict[str, str]:
    libraries = {name: version(name) for name in _LIBRARIES}
    host = {"host": platform.node(), "machine": platform.machine(), "python": platform.python_version()}
    return host | libraries
