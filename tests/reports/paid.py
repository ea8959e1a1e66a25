"""Folders of calls that cost something, made by hand: what the tests of costs and bills share."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from asyncbench.pricing import charge, rates_at
from asyncbench.records import BATCH, REALTIME, Attempt, Ended, Event, Model, Reply, Sent, Trial, Usage
from asyncbench.store.folder import Store
from tests.reports.test_report import NOON as NOON, result
from tests.store import made
from tests.world.night import MODEL, requests

RATES = {  # of models that the price table knows
    "openai": rates_at("gpt-5-mini", price=None, vendor="openai"),
    "anthropic": rates_at("claude-sonnet-4-5", price=None, vendor="anthropic"),
}
MINI = replace(MODEL, alias="mini", provider="openai", model_id="gpt-5-mini", price=None)
SONNET = replace(MODEL, alias="sonnet", provider="anthropic", model_id="claude-sonnet-4-5", price=None)
TOKENS = Usage(input_tokens=1_000, cached_input_tokens=200, output_tokens=300, reasoning_tokens=100)
PRICED = "as priced"


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a trial; without any answer, its status says why."""

    usage: Usage | None = field(default_factory=lambda: TOKENS)
    cost_usd: float | str | None = PRICED
    status: str = "ok"
    at: datetime = NOON
    text: str = "4"
    served: str | None = None
    tier: str | None = None
    raw: dict[str, object] | None = None
    reserved_usd: float | None = None
    mode: str = REALTIME

    def cost(self, model: Model) -> float | None:
        if self.cost_usd != PRICED:
            assert not isinstance(self.cost_usd, str)
            return self.cost_usd
        return charge(self.reply(), RATES[model.provider], at_s=self.at.timestamp(), provider="p").usd

    def reply(self) -> Reply:
        return Reply(
            text=self.text,
            usage=self.usage,
            raw_usage=self.raw,
            model_served=self.served,
            service_tier=BATCH if self.mode == BATCH else self.tier,
        )


@dataclass(kw_only=True)
class Asked:
    """The calls of some trials of a model, in order; a trial whose last call failed stays open."""

    model: Model = MINI
    calls: Sequence[tuple[Call, ...]] = ()
    closed: bool = True

    def events(self) -> Iterator[Event]:
        for n, (request, calls) in enumerate(
            zip(requests(len(self.calls), self.model), self.calls, strict=True)
        ):
            trial = replace(request.trial, trial_id=f"{self.model.alias}-{n}", run="s")
            for number, call in enumerate(calls, 1):
                yield _ended(trial, call, number)
            if self.closed and calls[-1].status == "ok":
                costs = [call.cost(self.model) for call in calls]
                whole = None if None in costs else sum(cost or 0.0 for cost in costs)
                closed = result(replace(request, trial=trial), calls[-1].reply(), cost_usd=whole)
                yield replace(closed, attempts=len(calls), price_source="genai-prices")


def _ended(trial: Trial, call: Call, number: int) -> Ended:
    ok = call.status == "ok"
    made = Attempt(
        trial_id=trial.trial_id,
        attempt=number,
        model=trial.model.alias,
        provider=trial.model.provider,
        started_at=call.at.timestamp(),
        status=call.status,
        usage=call.usage if ok else None,
        raw_usage=call.raw,
        cost_usd=call.cost(trial.model) if ok else None if call.cost_usd == PRICED else call.cost_usd,  # type: ignore[arg-type]  # a number or None
        reserved_usd=call.reserved_usd,
        mode=call.mode,
    )
    return Ended(attempt=made, reply=call.reply() if ok else None)


def folder_of(path: Path, *asked: Asked, sent: Iterable[Sent] = (), imported: bool = False) -> Path:
    """A results folder in which these calls were made, and those sent had no end."""
    with Store.open(path, sweep="s", imported=imported) as store:
        for one in asked:
            made.keep(store, *one.events())
    for one_sent in sent:
        with Store.open(path, sweep="s", imported=imported) as store:
            store.keep(one_sent)
    return path


def trials(count: int, *calls: Call, model: Model = MINI, closed: bool = True) -> Asked:
    """The same calls for so many trials."""
    return Asked(model=model, calls=[calls or (Call(),)] * count, closed=closed)
