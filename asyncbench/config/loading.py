"""The load of a sweep: the entry `load` of its file, and the record it becomes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil, inf, isinf
from typing import Annotated, Final, Literal

from pydantic import Field, PositiveInt, model_validator

from asyncbench.config.entry import Duration, Entry, Length, Number, Place, Share, drop_unset, read_entry
from asyncbench.errors import ConfigError
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.records import REALTIME, Model, StopWhen

Pattern = Literal["constant", "poisson", "gamma", "closed", "trace"]
CLOSED, TRACE = "closed", "trace"
WARMUP_S, DURATION_S = 15.0, 120.0  # where a load does not say them, and replays no trace
MOST_CALLS: Final = 10_000_000  # of a step: the times of all are drawn before the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """The range in which to search for the highest rate that keeps the SLO, calls a second."""

    lowest: float
    highest: float
    tolerance: float  # of the rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """The times promised to a share of all calls, seconds from when a call was due."""

    ttft: float | None  # to the first token, thinking included
    ttfo: float | None  # to the first token of the answer
    tpot: float | None  # of an output token after the first
    latency: float | None  # to the end of the answer
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load on each model; times are seconds."""

    arrivals: str
    burstiness: float  # of gamma: its shape
    rates: tuple[float, ...]  # calls a second; closed: callers; trace: speeds. Empty: `find` says which
    find: Find | None
    slo: Slo | None
    warmup: float
    duration: float  # inf: all of a trace
    drain: float
    rest: float
    think: float  # closed: between an answer and the caller's next call
    order: str
    same_problems: bool
    max_in_flight: int
    max_lag: float | None  # None: the usual one
    gpus: int | None  # of the server; None: not told
    past_limits: bool
    seed: int

    @property
    def closed(self) -> bool:
        """Whether a fixed number of callers ask, each one call after the other."""
        return self.arrivals == CLOSED

    @property
    def replays(self) -> bool:
        """Whether the calls of a trace are sent at their times."""
        return self.arrivals == TRACE


class FindEntry(Entry):
    """Where to look for the highest rate that keeps the SLO."""

    lowest: Number = Field(description="The rate to begin with, in calls a second.")
    highest: Number = Field(description="The highest rate to try.")
    tolerance: Share = Field(default=0.05, description="How near to come to the rate, as a share of it.")


# Other tools' names of the same times.
_WORDS: Final = {
    "time_to_first_token": "ttft",  # aiperf
    "inter_token_latency": "tpot",
    "request_latency": "latency",
    "e2el": "latency",  # vllm
}
_MILLISECONDS: Final = {"ttft": 100.0, "ttfo": 100.0, "tpot": 1.0, "latency": 10_000.0}  # so many are meant


class SloEntry(Entry):
    """What is promised to a share of all calls. Times are seconds from when a call was due."""

    @model_validator(mode="before")
    @classmethod
    def _translate_keys(cls, raw: object) -> object:
        return {_WORDS.get(key, key): value for key, value in raw.items()} if isinstance(raw, dict) else raw

    ttft: Number | None = Field(
        default=None, description="The most seconds to the first token, be it of thinking or of the answer."
    )
    ttfo: Number | None = Field(
        default=None, description="The most seconds to the first token of the answer."
    )
    tpot: Number | None = Field(
        default=None,
        description="The most seconds for an output token after the first. Tokens of thinking that is not "
        "shown came before.",
    )
    latency: Number | None = Field(default=None, description="The most seconds to the end of the answer.")
    share: Share = Field(
        default=0.95,
        description="The share of calls that must keep all of these. A call without an answer keeps none.",
    )


class LoadEntry(Entry):
    """How `asyncbench load` sends calls: at times drawn beforehand, step by step."""

    arrivals: Pattern = Field(
        default="poisson",
        description="When calls are sent. `constant`: evenly. `poisson`: as users do who know nothing of "
        "each other. `gamma`: in bursts, or more evenly, by `burstiness`. `closed`: by callers of whom each "
        "waits for its answer. A slow server then slows its callers, so its latencies look better. A caller "
        "whose call failed waits as `Retry-After` says, or 1 s doubling to 30 s. `trace`: at the times of "
        "the problems, which `asyncbench load --trace FILE` makes of a trace.",
    )
    burstiness: Number = Field(
        default=1.0,
        description="The shape of `gamma`: 1 is `poisson`, less comes in bursts, more is more even.",
    )
    rates: Annotated[list[Number], Field(min_length=1)] | None = Field(
        default=None,
        description="The steps: calls a second to each model. With `closed` the number of callers, with "
        "`trace` the speed: 2 replays it in half of the time. "
        "`repeats` of the sweep repeats all of them.",
    )
    find: FindEntry | None = Field(
        default=None,
        description="Instead of `rates`: find the highest rate that keeps the `slo`. Steps at low rates then "
        "last longer than `duration`, until enough calls are due for a verdict.",
    )
    slo: SloEntry | None = Field(
        default=None, description="What calls must keep. Without it, steps get no verdict."
    )
    warmup: Duration | None = Field(
        default=None,
        description="How long each step goes on before its calls count, such as `15s`. Default: 15 s; of a "
        "trace, 0 s.",
    )
    duration: Length | None = Field(
        default=None,
        description="How long the calls of a step count that are due then, such as `2m`. Default: 2 m; of a "
        "trace, all of it.",
    )
    drain: Duration = Field(
        default=60.0,
        description="How long to wait for answers after the last call of a step. Calls without one are then "
        "`unfinished`.",
    )
    rest: Duration = Field(default=10.0, description="The pause between two steps.")
    think: Duration = Field(
        default=0.0, description="With `closed`: the pause of a caller between an answer and its next call."
    )
    order: Literal["shuffled", "rising"] = Field(
        default="shuffled", description="The order of the steps. It is the same for all models."
    )
    same_problems: bool = Field(
        default=True,
        description="Whether each step asks the same problems, so that accuracies can be compared in pairs. "
        "If not, each step goes on where the one before it ended, so that no cache helps.",
    )
    max_in_flight: PositiveInt = Field(
        default=5_000,
        description="The most calls in flight to a model. A call that is due beyond them is dropped and "
        "counted, never delayed.",
    )
    max_lag: Length | None = Field(
        default=None,
        description="How late this computer's event loop may be, at the 99th percentile, before a step is "
        "`client_bound`. Default: 0.02 s. Calls may be sent a quarter of it late, or 5 % of the gap between "
        "them. Raise it on a busy machine, for instance to `0.1`: times are then only as exact as that.",
    )
    gpus: PositiveInt | None = Field(
        default=None,
        description="On how many GPUs each model's server runs. Reports then show tokens a second and GPU.",
    )
    past_limits: bool = Field(
        default=False,
        description="Whether rates above a limit of a model are asked all the same, to see what happens: its "
        "`rpm` or `tpm`, or what earlier runs in the folder were told.",
    )
    seed: int = Field(default=0, description="The seed of the times and of the order.")


def load_from(entry: LoadEntry, *, place: Place) -> Load:
    """Return how a sweep loads its models.

    Raises:
        ConfigError: its keys do not go together.
    """
    warmup_s, duration_s = (0.0, inf) if entry.arrivals == TRACE else (WARMUP_S, DURATION_S)
    warmup_s = warmup_s if entry.warmup is None else entry.warmup
    duration_s = duration_s if entry.duration is None else entry.duration
    if faults := list(_faults(entry, warmup_s, duration_s, place)):
        raise ConfigError("\n".join(faults))
    values = entry.model_dump() | {"warmup": warmup_s, "duration": duration_s}
    return Load(
        **values
        | {
            "rates": tuple(entry.rates or ()),
            "find": None if entry.find is None else Find(**values["find"]),
            "slo": None if entry.slo is None else Slo(**values["slo"]),
        }
    )


def replace_keys(load: Load | None, keys: Mapping[str, object], *, place: Place) -> Load:
    """Return a load with other values of some keys, as a sweep file has them; of `rates` and `find` one.

    Raises:
        ConfigError: they are wrong, or do not go together.
    """
    merged = keys_over({} if load is None else load_mapping(load), keys)
    return load_from(read_entry(LoadEntry, merged, place=place), place=place)


def keys_over(base: Mapping[str, object], keys: Mapping[str, object]) -> dict[str, object]:
    """Return the keys of a load with others in their place; of `rates` and `find` one."""
    others = {"rates": "find", "find": "rates"}
    gone = {others[name] for name in keys if name in others}
    return {name: value for name, value in base.items() if name not in gone} | dict(keys)


def check_keys(keys: Mapping[str, object], *, place: Place) -> None:
    """Refuse values that no load may have; raises ConfigError."""
    read_entry(LoadEntry, keys, place=place)


def load_mapping(load: Load) -> dict[str, object]:
    """Return a load as a sweep file has it."""
    slo = None if load.slo is None else drop_unset(asdict(load.slo))
    duration_s = None if isinf(load.duration) else load.duration
    return drop_unset(asdict(load) | {"rates": list(load.rates), "slo": slo, "duration": duration_s})


def _faults(entry: LoadEntry, warmup_s: float, duration_s: float, place: Place) -> Iterator[str]:
    """Yield contradictions within a load."""
    if (entry.rates is None) == (entry.find is None):
        message = "Both `rates` and `find` are set" if entry.rates else "Neither `rates` nor `find` is set"
        yield f"{place}: {message}. Set one: `rates: [1, 2, 4]` lists the steps"
    if entry.burstiness != 1 and entry.arrivals != "gamma":
        yield f"{place / 'burstiness'}: it is for `arrivals: gamma` alone. Set that, or remove it"
    if entry.think and entry.arrivals != CLOSED:
        yield f"{place / 'think'}: it is for `arrivals: closed` alone. Set that, or remove it"
    rates = entry.rates or []
    if twice := [rate for rate, times in Counter(rates).items() if times > 1]:
        yield f"{place / 'rates'}: lists {twice[0]:g} twice. To measure a step again, set `repeats`"
    if entry.arrivals == CLOSED and (odd := [rate for rate in rates if rate != int(rate)]):
        yield f"{place / 'rates'}: {odd[0]:g} callers. With `closed`, `rates` are whole numbers of callers"
    if entry.arrivals == CLOSED and (many := [rate for rate in rates if rate > entry.max_in_flight]):
        yield (
            f"{place / 'rates'}: {many[0]:,.0f} callers are more than `max_in_flight` "
            f"({entry.max_in_flight:,}) lets call at once. Raise that"
        )
    if entry.arrivals not in (CLOSED, TRACE) and (slow := [rate for rate in rates if rate * duration_s < 1]):
        yield (
            f"{place / 'rates'}: at {slow[0]:g} calls a second no call is due in {duration_s:g} s. Set a "
            f"higher rate, or `duration: {ceil(1 / slow[0])}s` or more"
        )
    highest: dict[str, float] = {}  # rates by the key that sets them; callers and traces have none
    if rates and entry.arrivals not in (CLOSED, TRACE):
        highest["rates"] = max(rates)
    if entry.find is not None and entry.arrivals not in (CLOSED, TRACE):
        highest["find"] = entry.find.highest
    for key, rate in highest.items():
        if (calls := rate * (warmup_s + duration_s)) > MOST_CALLS:
            yield (
                f"{place / key}: {rate:g} calls a second make a step of {calls:,.0f} calls, and the most is "
                f"{MOST_CALLS:,}. Set a lower rate, or a shorter `duration` or `warmup`"
            )
    for name, least in _MILLISECONDS.items():
        if (limit := getattr(entry.slo, name, None)) is not None and limit >= least:
            message = f"`{name}: {limit:g}` is in seconds. For milliseconds, set {limit / 1000:g}"
            yield f"{place / 'slo'}: {message}"
    if entry.slo is not None and not any((entry.slo.ttft, entry.slo.ttfo, entry.slo.tpot, entry.slo.latency)):
        yield f"{place / 'slo'}: it promises nothing. Set `ttft`, `ttfo`, `tpot` or `latency`, in seconds"
    if entry.find is not None:
        find_place = place / "find"
        if entry.slo is None:
            yield f"{find_place}: it looks for the highest rate that keeps an `slo`. Set one"
        if entry.arrivals == CLOSED:
            yield (
                f"{find_place}: callers have no rate. Set other `arrivals`, or list numbers of callers in "
                "`rates`"
            )
        if entry.arrivals == TRACE:
            yield f"{find_place}: a trace has times of its own. List speeds in `rates`, such as [1, 2, 4]"
        if entry.find.highest <= entry.find.lowest:
            yield f"{find_place / 'highest'}: must be above `lowest` ({entry.find.lowest:g})"


def load_complaints(
    load: Load, models: Sequence[Model], stop_when: StopWhen | None, *, place: Place
) -> Iterator[str]:
    """Yield contradictions between a sweep and its load."""
    if stop_when is not None:
        yield f"{place}: the sweep has `stop_when`, but each step has its length. Remove `stop_when`"
    for model in models:
        who = f"{place}: {model.alias!r}"
        if model.mode != REALTIME:
            yield f"{who} is asked in batches, which have no load. Set `mode: realtime`"
        if model.limits.concurrency not in (None, known_endpoints()[model.provider].concurrency):
            callers = "For a fixed number of callers, set `arrivals: closed`"
            way_out = "`rates` says how many callers there are" if load.closed else callers
            yield f"{who} has a `concurrency`, which would delay calls. Remove it. {way_out}"
        if model.limits.group is not None:
            yield (
                f"{who} shares its limit; a load is on each model by itself. Remove `group`, or `shared` of "
                "`limits`"
            )
        promised = () if load.slo is None else ("ttft", "ttfo", "tpot")
        untimed = [name for name in promised if getattr(load.slo, name) is not None]
        if not model.stream and untimed:
            yield (
                f"{who} has `stream: false`, so no token is timed, and no call keeps `{untimed[0]}`. Remove "
                f"`stream`, or `{untimed[0]}` of the `slo`"
            )
        rpm = model.limits.rpm
        rates = (
            () if load.closed or load.replays else (*load.rates, *([load.find.lowest] if load.find else []))
        )
        if rpm is not None and not load.past_limits and (over := [rate for rate in rates if 60 * rate > rpm]):
            yield (
                f"{who} has `rpm: {rpm:g}`, which {over[0]:g} calls a second pass. Remove the higher rates, "
                "or set `past_limits: true` (--past-limits) to see what happens"
            )
