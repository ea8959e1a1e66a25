"""The budget of a sweep: the models that it covers, the most a call may cost, and earlier spending."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache, partial
from pathlib import Path
from time import time

from asyncbench.config.sweep import Sweep
from asyncbench.engine.budget import Cap, CostBound, Ledger
from asyncbench.engine.model_client import MostUsd
from asyncbench.errors import ConfigError
from asyncbench.pricing import PERIOD_S, Rates, dollars_of, most_usd, picodollars, rates_given
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.params import billed_besides, bills_besides, longest_reply_of
from asyncbench.providers.prices import (
    dearest,
    is_router,
    no_dearer,
    rates_of,
    tier_asked,
    tiers_set_elsewhere,
)
from asyncbench.records import BATCH, REALTIME, Condition, Model, Request, Trial
from asyncbench.store.budget_state import FolderSpending, spending_of
from asyncbench.store.manifest import Manifest, is_results_folder, read_manifest
from asyncbench.store.spending import Spending
from asyncbench.suites.requests import most_input_tokens

LENGTHS = 4096  # of prompts, tokens, whose price is remembered
NEVER = picodollars(Decimal(10**15))  # what no budget has room for


def check_budget(sweep: Sweep, models: Sequence[Model]) -> None:
    """Refuse models that no budget can hold, before anything is spent.

    Raises:
        ConfigError: a price, or the longest reply, is unknown; names the models and what to set.
    """
    budgeted = [model for model in models if sweep.budgeted(model)]
    for model in budgeted:
        name = "budget_usd" if sweep.budget_usd is None else sweep.budget_name
        if fault := next(_faults(sweep, model), None):
            raise ConfigError(f"{model.alias}: {name} needs a maximum cost for every call, but {fault}")
        if sweep.allow_unpriced or priced(sweep, model):
            continue

        # All models without a price are named at once.
        unpriced_models = [model for model in budgeted if not priced(sweep, model)]
        aliases = ", ".join(model.alias for model in unpriced_models)
        if all(model.mode == BATCH and _is_priced_in(REALTIME, sweep, model) for model in unpriced_models):
            batch_share = known_endpoints()[unpriced_models[0].provider].batch.part or 0.5
            raise ConfigError(
                f"{name} needs a price for every batch, and no batch price is known for {aliases}. Add "
                f"`price: {{batch: {batch_share}}}` (the part of the usual price that a batch costs) to the "
                "model's entry. Or set `mode: realtime`."
            )
        raise ConfigError(
            f"{name} needs a price for every model, and no price is known for {aliases}. Add "
            "`price: {input: …, output: …}` (USD per million tokens) to the model's entry. Or set "
            "`allow_unpriced: true`: models without a price then run outside the budget."
        )


def _faults(sweep: Sweep, model: Model) -> Iterator[str]:
    """Yield why the cost of a call has no maximum, and the way out."""
    is_priced = priced(sweep, model)
    if (is_priced or not sweep.allow_unpriced) and (extra_charge := bills_besides(model)):
        yield f"{extra_charge}. Choose another model, or run this one in a sweep without a budget."
    conditions = sweep.conditions_of(model.alias)
    for condition in conditions if is_priced else ():
        if extra_charge := billed_besides(model, condition):
            yield (
                f"{extra_charge}. Remove it, or run this model in a sweep without a budget. Tools of type "
                "`function` may stay."
            )
        if is_router(model) and dearest(model, condition) is None:
            yield (
                "its `params: provider` send the router no usable `max_price`. Write it as "
                "{prompt: …, completion: …} in USD per million tokens, without a price per request. Or "
                "remove it: asyncbench then sends the known price."
            )
        brackets = (bracket for rates in _rates(model, condition, time()) for bracket in rates.brackets)
        if longest_reply_of(model, condition) is None and any(bracket.output for bracket in brackets):
            where = "" if len(conditions) == 1 else f" under condition {condition.name!r}"
            yield f"the length of its replies has no limit{where}. Set `max_tokens`."


def budgeted_models(sweep: Sweep, models: Sequence[Model]) -> tuple[Model, ...]:
    """Return models as a budget lets them be asked: a router is told that nobody dearer may serve a call.

    A dearer price that a condition lets it take is said by that condition's `params`, and by no other's.
    `check_budget` has let them pass.
    """
    return tuple(
        _held(model, sweep) if is_router(model) and sweep.budgeted(model) and priced(sweep, model) else model
        for model in models
    )


def _held(model: Model, sweep: Sweep) -> Model:
    """Return a router's model as a budget holds it: no provider dearer than the known prices may serve it."""
    rates = [
        rates for condition in sweep.conditions_of(model.alias) for rates in _listed(model, condition, time())
    ]
    return no_dearer(model, rates)


def priced(sweep: Sweep, model: Model) -> bool:
    """Return whether a price is known for every way in which a model is asked.

    What batches do not answer may be asked in real time, at another price.
    """
    modes = {model.mode, REALTIME} if sweep.batch.fallback == REALTIME else {model.mode}
    return all(_is_priced_in(mode, sweep, model) for mode in modes)


def _is_priced_in(mode: str, sweep: Sweep, model: Model) -> bool:
    """Return whether a price is known for a model that is asked in a mode, under each of its conditions."""
    variant = replace(model, mode=mode)
    return all(_rates(variant, condition, time()) for condition in sweep.conditions_of(model.alias))


def unpriced(sweep: Sweep) -> tuple[str, ...]:
    """Return the models that are asked outside of the budgets that would hold them, by alias."""
    return tuple(model.alias for model in sweep.models if sweep.budgeted(model) and not priced(sweep, model))


def _rates(model: Model, condition: Condition, at_s: float) -> list[Rates]:
    """Return all by which a call may be charged; none where one of them is unknown.

    A provider that a router chooses may cost up to the `max_price` that the router gets.
    """
    listed = _listed(model, condition, at_s)
    max_price = dearest(model, condition) if listed and is_router(model) else None
    return listed if max_price is None else list(dict.fromkeys([*listed, rates_given(max_price)]))


def _listed(model: Model, condition: Condition, at_s: float) -> list[Rates]:
    """Return the known prices by which a call may be charged; none where one of them is unknown.

    Prices may change while a call is under way. Of tiers that only an account's settings may choose those
    count that the table prices.
    """
    rates_for, times = rates_of(model), (at_s, at_s + PERIOD_S)
    own_tier = tier_asked(model, condition)
    tiers = {own_tier} if model.mode == BATCH else {None, own_tier}
    asked_rates = [rates_for(tier, when) for tier in tiers for when in times]
    if None in asked_rates:
        return []
    possible = [rates_for(tier, when) for tier in tiers_set_elsewhere(model, condition) for when in times]
    return [rates for rates in dict.fromkeys([*asked_rates, *possible]) if rates is not None]


# ── the most that one call may cost


def most_of(model: Model) -> CostBound:
    """Return the most that a call may cost in picodollars, as a function of its request and time."""
    prices: dict[tuple[str, int | None, str, int], Callable[[int], int]] = {}

    def price(trial: Trial, at_s: float) -> Callable[[int], int]:
        """Return the most that a prompt of so many tokens and its reply cost, for a quarter of an hour."""
        key = trial.condition.name, trial.model.max_tokens, trial.model.mode, int(at_s // PERIOD_S)
        if key not in prices:
            sent = replace(model, budget_params=trial.model.budget_params, mode=trial.model.mode)
            output = longest_reply_of(trial.model, trial.condition) or 0  # 0: replies are free
            rates = _rates(sent, trial.condition, at_s)
            prices[key] = lru_cache(LENGTHS)(partial(_highest_cost, output_tokens=output, rates=rates))
        return prices[key]

    def highest_cost(request: Request, at_s: float) -> int:
        return price(request.trial, at_s)(most_input_tokens(request))

    return highest_cost


def most_usd_of(sweep: Sweep, model: Model) -> MostUsd:
    """Return the most USD that a call without a budget may cost, or None where nothing bounds it.

    It is a function of the request and of when it is sent: what a budget would have set aside.
    """
    highest_cost = most_of(model)
    bounded = {
        condition.name
        for condition in sweep.conditions_of(model.alias)
        if not is_router(model) and _can_be_held(sweep, model, condition)
    }

    def highest_cost_usd(request: Request, at_s: float) -> float | None:
        if request.trial.condition.name not in bounded:
            return None
        picodollars = highest_cost(request, at_s)
        return None if picodollars >= NEVER else dollars_of(picodollars)

    return highest_cost_usd


def most_for(sweep: Sweep, model: Model, condition: Condition, at_s: float) -> Callable[[int], float | None]:
    """Return the most USD of a call under a budget, as a function of the most tokens of its prompt.

    None where nobody can say. It is what the ledger sets aside, for those who have no request to show it.
    """
    if not _can_be_held(sweep, model, condition):
        return lambda _: None
    budgeted = _held(model, sweep) if is_router(model) else model
    rates = _rates(budgeted, condition, at_s)
    output = longest_reply_of(model, condition) or 0  # 0: replies are free
    return lambda input_tokens: dollars_of(_highest_cost(input_tokens, output, rates))


def _can_be_held(sweep: Sweep, model: Model, condition: Condition) -> bool:
    """Return whether a budget can hold what is asked under a condition."""
    budgeted = replace(sweep, conditions=(condition,), budget_usd=1.0, allow_unpriced=False)
    return next(_faults(budgeted, model), None) is None


def _highest_cost(input_tokens: int, output_tokens: int, rates: Sequence[Rates]) -> int:
    """Return the most that a call of so many tokens may cost by any of some prices, picodollars."""
    if not rates:
        return NEVER  # its price is no longer known: there was one when the run began
    return picodollars(max(most_usd(input_tokens, output_tokens, bound_rates) for bound_rates in rates))


# ── the ledger, with the spending of earlier runs


def open_ledger(sweep: Sweep, folder: Path) -> Ledger | None:
    """Return the ledger of a sweep and what its folder's calls cost so far; None where it has no budget.

    A call of unknown cost counts with what was set aside for it or, where no budget held it, with the most
    that it could cost when it was made. Calls of models that left the sweep count, too, and so does what
    cannot be read any more; those of models without a price count as far as their cost is known. No run is
    going in the folder, which need not be there yet.

    Raises:
        ConfigError: there are calls of which nobody can say what they cost at most.
        StoreError: the folder cannot be read.
    """
    budgeted = [model for model in sweep.models if sweep.budgeted(model) and priced(sweep, model)]
    if not budgeted:
        return None
    begun = is_results_folder(folder)
    spending = spending_of(folder) if begun else FolderSpending(by_alias={})
    earlier_names: Named = read_manifest(folder).get(ASKED, {}) if begun else {}
    caps = tuple(_caps(sweep, budgeted, spending, earlier_names))
    _charge_unknown(caps, sweep, folder, spending)
    for cap in caps:
        counted = spending.charges(cap.kind, cap.of, cap.also)
        cap.spent = counted.charged + counted.reserved + cap.unknown
        cap.doubted = counted.doubted + counted.reserved + cap.unknown
        cap.doubted_calls = counted.doubted_calls + counted.unended_calls + cap.unknown_calls
    ledger = Ledger(caps)
    for model in budgeted:
        before = spending.by_alias.get(model.alias, Spending())
        counted = before.charges()
        learnt = [
            use
            for alias, use in spending.by_alias.items()
            if _may_name(alias, model, earlier_names, spending)
        ]
        ledger.open(
            model.alias,
            [cap for cap in caps if _counts_for(cap, model.alias, model.provider)],
            most_of(model),
            spent=counted.charged + counted.reserved,
            ratio=max((use.overrun for use in learnt), default=before.overrun),
            least=max((use.least for use in learnt), default=before.least),
        )
    return ledger


def _caps(
    sweep: Sweep, budgeted: Sequence[Model], spending: FolderSpending, earlier_names: "Named"
) -> Iterator[Cap]:
    """Yield the budgets of a sweep, of its providers and of its models."""
    floor = partial(picodollars, rounding=ROUND_FLOOR)
    if sweep.budget_usd is not None:
        yield Cap(kind="sweep", of=sweep.name, limit=floor(sweep.budget_usd))
    for provider in dict.fromkeys(model.provider for model in budgeted):
        if provider in sweep.provider_budgets:
            yield Cap(kind="provider", of=provider, limit=floor(sweep.provider_budgets[provider]))
    former = spending.by_alias.keys() - {model.alias for model in sweep.models}
    for model in budgeted:
        if model.budget_usd is not None:
            also = sorted(alias for alias in former if _may_name(alias, model, earlier_names, spending))
            yield Cap(kind="model", of=model.alias, limit=floor(model.budget_usd), also=also)


def _counts_for(cap: Cap, alias: str, provider: str) -> bool:
    """Return whether a budget holds the calls of an alias at a provider."""
    return alias in cap.also or cap.of == {"provider": provider, "model": alias}.get(cap.kind, cap.of)


def _charge_unknown(caps: Sequence[Cap], sweep: Sweep, folder: Path, spending: FolderSpending) -> None:
    """Charge calls for which no price was known with the most that they can have cost.

    Raises:
        ConfigError: nobody can say that.
    """
    models = {model.alias: model for model in sweep.models}
    outside = unpriced(sweep) if sweep.allow_unpriced else ()
    unbounded = Counter[str]()
    for alias, before in spending.by_alias.items():
        if alias in outside or not before.unknown:
            continue
        # the prices of today: nothing else was ever said of the price of these calls
        model, rates = models.get(alias), list[Rates]()
        if model is not None and priced(sweep, model):
            for condition in sweep.conditions_of(alias):
                rates += _rates(model, condition, time())
        for call, count in before.unknown.items():
            charged = [cap for cap in caps if _counts_for(cap, alias, call.provider)]
            if not charged:
                continue
            bound = 0
            if call.input_tokens is None or call.output_tokens is None or not rates:
                unbounded[alias] += count  # nobody can say what it can have cost
            else:
                bound = _highest_cost(call.input_tokens, call.output_tokens, rates)
            for cap in charged:
                cap.unknown += count * bound
                cap.unknown_calls += count
    if unbounded.total():
        calls_by_alias = ", ".join(
            f"{count:,} of {alias}{', no longer in the sweep' * (alias not in models)}"
            for alias, count in unbounded.items()
            if count
        )
        raise _unknown_cost_error(
            folder,
            f"the cost of {unbounded.total():,} calls is unknown ({calls_by_alias}), because no budget held "
            "when they were made",
        )
    if spending.damaged and spending.dearest is None:
        raise _unknown_cost_error(
            folder,
            f"{spending.damaged:,} damaged lines of the journal may have been calls, and no other call shows "
            "what one may cost",
        )
    if spending.unknown_loss:
        raise _unknown_cost_error(folder, "calls were lost, and no record of their cost is left")


def _unknown_cost_error(folder: Path, why: str) -> ConfigError:
    """Return the refusal of a folder of whose spending nobody can tell the most."""
    return ConfigError(
        f"{folder}: asyncbench cannot tell how much of the budget is left: {why}. Set another folder with "
        f"`out:`, and take over the answers of this one with --reuse {folder}."
    )


# ── the models that an alias named

ASKED = "asked"  # the key of the manifest: what each alias has named, in all runs of the folder
ANY = "*"  # among the names of an alias: it may have named another model as well, nobody wrote down which
Named = Mapping[str, Sequence[str]]  # by alias


def named_before(folder: Path, manifest: Manifest) -> Named:
    """Return the names behind the aliases of a folder in its runs so far.

    Earlier versions did not write it down. Of their folders every alias with a call may have named anything,
    and whoever writes that into the manifest keeps it known when the same alias names something else.

    Raises:
        StoreError: the folder cannot be read.
    """
    if ASKED in manifest:
        names: Named = manifest[ASKED]
        return names
    return {alias: [ANY] for alias in spending_of(folder).by_alias}


def named(before: Named, models: Sequence[Model]) -> dict[str, list[str]]:
    """Return the earlier and present names behind aliases, as the manifest of a folder holds them."""
    merged = {alias: list(names) for alias, names in before.items()}
    for model in models:
        names = merged.setdefault(model.alias, [])
        if _name_of(model) not in names:
            names.append(_name_of(model))
    return merged


def _name_of(model: Model) -> str:
    """Return provider, model id and, where it was given, address: a simulator's is a free port."""
    address = "" if model.simulated or model.base_url is None else f" at {model.base_url}"
    return f"{model.provider}/{model.model_id}{address}"


def _may_name(alias: str, model: Model, earlier_names: Named, spending: FolderSpending) -> bool:
    """Return whether an alias named this model in some run, or may have in a run of an earlier version."""
    names = earlier_names.get(alias, [ANY])
    if alias == model.alias or _name_of(model) in names:
        return True
    before = spending.by_alias[alias]
    return ANY in names and model.provider in {*before.charged_at, *before.reserved_at}
