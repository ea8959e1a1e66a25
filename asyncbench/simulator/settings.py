"""What a simulator is started with."""

import ipaddress
import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from asyncbench.errors import ConfigError
from asyncbench.simulator.faults import Fault, check_rates
from asyncbench.simulator.likes import check_like
from asyncbench.simulator.limits import LIMIT_MODELS, WITH_BURST

TOKENS_COUNTED = ("used", "demanded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A simulator, described.

    `replay` names results folders whose recorded replies are served; all of them are held in memory.

    Raises:
        ConfigError: a value that makes no sense, or an address that other machines could reach.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    host: str = "127.0.0.1"
    port: int = 0  # 0: any free one
    seed: int = 0
    problems: tuple[Path, ...] = ()  # problem sets (Parquet) whose questions it can answer
    replay: tuple[Path, ...] = ()  # results folders, of a run or of an import
    keys: tuple[str, ...] = ()  # the API keys accepted; empty: any
    rpm: float | None = None  # limits hold for each model name separately
    tpm: float | None = None  # input and output tokens together
    input_tpm: float | None = None
    output_tpm: float | None = None
    limit_model: str = "token_bucket"  # a key of limits.LIMIT_MODELS: how a minute's limit is counted
    burst_s: float | None = None  # of a bucket: seconds' worth that may be used at once; None: one second's
    # What a call counts against `tpm`. used: its input and output, known beforehand here; demanded: the
    # greater of its max_tokens and a quarter of its characters, whatever it then uses (OpenAI).
    tokens_counted: str = "used"
    latency_s: float = 0.0  # the median
    latency_sigma: float = 0.0  # of a lognormal; 0: always the median
    ttft_s: float | None = None  # of a stream, the median; None: half the latency
    chunks: int | None = None  # pieces that a streamed text is cut into at most; None: four characters each
    like: str | None = None  # a key of likes.LIKES: the provider that is played; None: OpenAI and Anthropic
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        _check_host(self.host)
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"simulator: port is {self.port}; it must be 0 (any free one) to 65535")
        for name in ("rpm", "tpm", "input_tpm", "output_tpm", "burst_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"simulator: {name} is {value:g}; it must be above 0, or left out")
        self._check_counting()
        for name in ("latency_s", "latency_sigma"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ConfigError(f"simulator: {name} is {value:g}; it must be 0 or above")
        if self.ttft_s is not None and not 0 <= self.ttft_s < math.inf:
            raise ConfigError(f"simulator: ttft_s is {self.ttft_s:g}; it must be 0 or above, or left out")
        if self.chunks is not None and self.chunks < 1:
            raise ConfigError(f"simulator: chunks is {self.chunks}; it must be 1 or above, or left out")
        if self.like is not None:
            check_like(self.like)
        check_rates(self.faults)

    def _check_counting(self) -> None:
        for name, known in (("limit_model", LIMIT_MODELS), ("tokens_counted", TOKENS_COUNTED)):
            if (value := getattr(self, name)) not in known:
                raise ConfigError(f"simulator: {name} is {value!r}; choose of {', '.join(known)}")
        if self.burst_s is not None and self.limit_model not in WITH_BURST:
            raise ConfigError(
                f"simulator: burst_s is {self.burst_s:g}, but limit_model {self.limit_model!r} knows none; "
                f"leave it out, or choose of {', '.join(WITH_BURST)}"
            )


def _check_host(host: str) -> None:
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback:
        raise ConfigError(f"simulator: host {host!r} is not this machine's loopback; use 127.0.0.1")


_JSON = TypeAdapter(Settings)


def to_json(settings: Settings) -> str:
    """Return the settings as one line of JSON."""
    return _JSON.dump_json(settings).decode()


def from_json(text: str) -> Settings:
    """Read what `to_json` wrote, or what was written by hand in its form.

    Raises:
        ConfigError: not JSON, an unknown key, or a value that its key refuses.
    """
    try:
        return _JSON.validate_json(text)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"])) or "settings"
        raise ConfigError(f"simulator: {key}: {fault['msg']}") from None
