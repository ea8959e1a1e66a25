"""The load of a sweep: the entry `load` of its file, and the record it becomes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Annotated, Final, Literal

from pydantic import Field, PositiveInt, model_validator

from asyncbench.config.entry import Duration, Entry, Length, Number, Share, read_entry
from asyncbench.config.place import Place
from asyncbench.errors import ConfigError
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.records import REALTIME, Model, StopWhen

Pattern = Literal["constant", "poisson", "gamma", "closed"]
CLOSED: Final = "closed"
MOST_CALLS: Final = 10_000_000  # of a step: the times of all are drawn before the first


class Find(Entry, title="FindEntry"):
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


class Slo(Entry, title="SloEntry"):
    """What is promised to a share of all calls. Times are seconds from when a call was due."""

    @model_validator(mode="before")
    @classmethod
    def _in_our_words(cls, raw: object) -> object:
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


class Load(Entry, title="LoadEntry"):
    """How `asyncbench load` sends calls: at times drawn beforehand, step by step."""

    arrivals: Pattern = Field(
        default="poisson",
        description="When calls are sent. `constant`: evenly. `poisson`: as users do who know nothing of "
        "each other. `gamma`: in bursts, or more evenly, by `burstiness`. `closed`: by callers of whom each "
        "waits for its answer. A slow server then slows its callers, so its latencies look better. A caller "
        "whose call failed waits as `Retry-After` says, or 1 s doubling to 30 s.",
    )
    burstiness: Number = Field(
        default=1.0,
        description="The shape of `gamma`: 1 is `poisson`, less comes in bursts, more is more even.",
    )
    rates: Annotated[tuple[Number, ...], Field(min_length=1, strict=False)] | None = Field(
        default=None,
        description="The steps: calls a second to each model, or with `closed` the number of callers. "
        "`repeats` of the sweep repeats all of them.",
    )
    find: Find | None = Field(
        default=None,
        description="Instead of `rates`: find the highest rate that keeps the `slo`. Steps at low rates then "
        "last longer than `duration`, until enough calls are due for a verdict.",
    )
    slo: Slo | None = Field(
        default=None, description="What calls must keep. Without it, steps get no verdict."
    )
    warmup: Duration = Field(
        default=15.0, description="How long each step goes on before its calls count, such as `15s`."
    )
    duration: Length = Field(
        default=120.0, description="How long the calls of a step count that are due then, such as `2m`."
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
    past_limits: bool = Field(
        default=False,
        description="Whether rates above a limit of a model are asked all the same, to see what happens: its "
        "`rpm` or `tpm`, or what earlier runs in the folder were told.",
    )
    seed: int = Field(default=0, description="The seed of the times and of the order.")

    @property
    def closed(self) -> bool:
        """Whether a fixed number of callers ask, each one call after the other."""
        return self.arrivals == CLOSED

    @property
    def sure_rates(self) -> tuple[float, ...]:
        """The rates that are asked in any case: those listed, or the first of a search."""
        return (self.rates or ()) if self.find is None else (self.find.lowest,)


def checked_load(load: Load, *, place: Place) -> Load:
    """Return a load whose keys go together.

    Raises:
        ConfigError: they do not.
    """
    if faults := list(_faults(load, place)):
        raise ConfigError("\n".join(faults))
    return load


def with_keys(load: Load | None, keys: Mapping[str, object], *, place: Place) -> Load:
    """Return a load with other values of some keys, as a sweep file has them; of `rates` and `find` one.

    Raises:
        ConfigError: they are wrong, or do not go together.
    """
    merged = keys_over({} if load is None else load.as_mapping(), keys)
    return checked_load(read_entry(Load, merged, place=place), place=place)


def keys_over(base: Mapping[str, object], keys: Mapping[str, object]) -> dict[str, object]:
    """Return the keys of a load with others in their place; of `rates` and `find` one."""
    others = {"rates": "find", "find": "rates"}
    gone = {others[name] for name in keys if name in others}
    return {name: value for name, value in base.items() if name not in gone} | dict(keys)


def check_keys(keys: Mapping[str, object], *, place: Place) -> None:
    """Refuse values that no load may have; raises ConfigError."""
    read_entry(Load, keys, place=place)


def _faults(load: Load, place: Place) -> Iterator[str]:
    if (load.rates is None) == (load.find is None):
        message = "Both `rates` and `find` are set" if load.rates else "Neither `rates` nor `find` is set"
        yield f"{place}: {message}. Set one: `rates: [1, 2, 4]` lists the steps"
    if load.burstiness != 1 and load.arrivals != "gamma":
        yield f"{place / 'burstiness'}: it is for `arrivals: gamma` alone. Set that, or remove it"
    if load.think and not load.closed:
        yield f"{place / 'think'}: it is for `arrivals: closed` alone. Set that, or remove it"
    rates = load.rates or ()
    if twice := [rate for rate, times in Counter(rates).items() if times > 1]:
        yield f"{place / 'rates'}: lists {twice[0]:g} twice. To measure a step again, set `repeats`"
    if load.closed and (odd := [rate for rate in rates if rate != int(rate)]):
        yield f"{place / 'rates'}: {odd[0]:g} callers. With `closed`, `rates` are whole numbers of callers"
    if load.closed and (many := [rate for rate in rates if rate > load.max_in_flight]):
        yield (
            f"{place / 'rates'}: {many[0]:,.0f} callers are more than `max_in_flight` "
            f"({load.max_in_flight:,}) lets call at once. Raise that"
        )
    if not load.closed and (slow := [rate for rate in rates if rate * load.duration < 1]):
        yield (
            f"{place / 'rates'}: at {slow[0]:g} calls a second no call is due in {load.duration:g} s. Set a "
            f"higher rate, or `duration: {ceil(1 / slow[0])}s` or more"
        )
    for key, rate in _highest(load).items():
        if (calls := rate * (load.warmup + load.duration)) > MOST_CALLS:
            yield (
                f"{place / key}: {rate:g} calls a second make a step of {calls:,.0f} calls, and the most is "
                f"{MOST_CALLS:,}. Set a lower rate, or a shorter `duration` or `warmup`"
            )
    for name, most in _MILLISECONDS.items():
        if (limit := getattr(load.slo, name, None)) is not None and limit >= most:
            message = f"`{name}: {limit:g}` is in seconds. For milliseconds, set {limit / 1000:g}"
            yield f"{place / 'slo'}: {message}"
    if load.slo is not None and not any((load.slo.ttft, load.slo.ttfo, load.slo.tpot, load.slo.latency)):
        yield f"{place / 'slo'}: it promises nothing. Set `ttft`, `ttfo`, `tpot` or `latency`, in seconds"
    if load.find is not None:
        yield from _faults_of_find(load, load.find, place / "find")


def _highest(load: Load) -> dict[str, float]:
    """Return the highest rate, by the key that sets it."""
    if load.closed:
        return {}
    listed = {} if not load.rates else {"rates": max(load.rates)}
    return listed if load.find is None else {**listed, "find": load.find.highest}


def _faults_of_find(load: Load, find: Find, place: Place) -> Iterator[str]:
    if load.slo is None:
        yield f"{place}: it looks for the highest rate that keeps an `slo`. Set one"
    if load.closed:
        yield f"{place}: callers have no rate. Set other `arrivals`, or list numbers of callers in `rates`"
    if find.highest <= find.lowest:
        yield f"{place / 'highest'}: must be above `lowest` ({find.lowest:g})"


def load_complaints(
    load: Load, models: Sequence[Model], stop_when: StopWhen | None, *, place: Place
) -> Iterator[str]:
    """Yield what of a sweep does not go together with its load."""
    if stop_when is not None:
        yield f"{place}: the sweep has `stop_when`, but each step has its length. Remove `stop_when`"
    for model in models:
        yield from (f"{place}: {model.alias!r} {complaint}" for complaint in _complaints(load, model))


def _complaints(load: Load, model: Model) -> Iterator[str]:
    if model.mode != REALTIME:
        yield "is asked in batches, which have no load. Set `mode: realtime`"
    if model.limits.concurrency not in (None, known_endpoints()[model.provider].concurrency):
        callers = "For a fixed number of callers, set `arrivals: closed`"
        way = "`rates` says how many callers there are" if load.closed else callers
        yield f"has a `concurrency`, which would delay calls. Remove it. {way}"
    if model.limits.group is not None:
        yield "is in a `group`; a load is on each model by itself. Remove the group"
    promised = () if load.slo is None else ("ttft", "ttfo", "tpot")
    if not model.stream and (untimed := [name for name in promised if getattr(load.slo, name) is not None]):
        yield (
            f"has `stream: false`, so no token is timed, and no call keeps `{untimed[0]}`. Remove `stream`, "
            f"or `{untimed[0]}` of the `slo`"
        )
    rpm, rates = model.limits.rpm, () if load.closed else load.sure_rates
    if rpm is not None and not load.past_limits and (over := [rate for rate in rates if 60 * rate > rpm]):
        yield (
            f"has `rpm: {rpm:g}`, which {over[0]:g} calls a second pass. Remove the higher rates, or set "
            "`past_limits: true` (--past-limits) to see what happens"
        )
