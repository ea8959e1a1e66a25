"""The budget of a sweep: whom it can hold, what a call may cost at most, and what was spent before."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from time import time

import orjson

from asyncbench.config import Sweep
from asyncbench.engine.budget import Cap, Ledger, Most
from asyncbench.errors import ConfigError
from asyncbench.preflight import longest_request
from asyncbench.pricing import PERIOD_S, Rates, most_usd, picodollars
from asyncbench.problems import open_set
from asyncbench.prompting import TOKENS_BESIDE_A_CALL, TOKENS_BESIDE_A_MESSAGE, most_input_tokens
from asyncbench.providers.besides import billed_besides
from asyncbench.providers.longest_reply import answers_asked, most_output
from asyncbench.providers.prices import rates_of, tier_asked, tiers_set_elsewhere
from asyncbench.records import Condition, Model, Request, Trial
from asyncbench.store.manifest import is_results_folder
from asyncbench.store.spending import Spending, Unknown, spending, spent_under
from asyncbench.sweep import Asked

BYTES_OF_A_CHARACTER = 4  # at most, in UTF-8
PROBLEMS = "problems"  # the folder of a results folder with the sets it asked
NEVER = picodollars(Decimal(10**15))  # what no budget has room for


def check_budget(sweep: Sweep, models: Sequence[Model]) -> None:
    """Refuse models that no budget can hold, before anything is spent.

    Raises:
        ConfigError: a price, or the longest reply, is unknown; names the model and what to set.
    """
    for model in models:
        if sweep.budgeted(model):
            _check_price(sweep, model)
            for condition in sweep.conditions:
                _check_besides(sweep, model, condition)
                _check_length(sweep, model, condition)


def _check_besides(sweep: Sweep, model: Model, condition: Condition) -> None:
    if priced(sweep, model) and (found := billed_besides(model, condition)):
        raise ConfigError(
            f"{model.alias}: {found}; so nobody can say what a call may cost, and `budget_usd` cannot hold "
            "it. Leave it out (tools of type `function` may stay), or ask this model in a sweep without "
            "a budget."
        )


def _check_price(sweep: Sweep, model: Model) -> None:
    if not (priced(sweep, model) or sweep.allow_unpriced):
        raise ConfigError(
            f"{model.alias}: no price is known for it, so `budget_usd` cannot hold what it costs. Give "
            "`price: {input: …, output: …}` (USD for a million tokens), or set `allow_unpriced: true`: "
            "models without a price are then asked outside of the budget."
        )


def _check_length(sweep: Sweep, model: Model, condition: Condition) -> None:
    if (
        not priced(sweep, model)
        or most_output(model, condition) is not None
        or _replies_free(model, condition)
    ):
        return
    where = "" if len(sweep.conditions) == 1 else f" under condition {condition.name!r}"
    cannot = "so nobody can say what a call may cost, and `budget_usd` cannot hold it."
    if answers_asked(model, condition) is None:
        raise ConfigError(
            f"{model.alias}: how many answers a call asks for{where} (`params: n`, `best_of`) is no whole "
            f"number above 0, {cannot} Write it as one, without quotes."
        )
    raise ConfigError(f"{model.alias}: nothing limits its replies{where}, {cannot} Set `max_tokens`.")


def priced(sweep: Sweep, model: Model) -> bool:
    """Whether a price is known for every way in which a model is asked."""
    return all(_rates(model, condition, time()) for condition in sweep.conditions)


def unpriced(sweep: Sweep) -> tuple[str, ...]:
    """Return the models that are asked outside of the budgets that would hold them, by alias."""
    return tuple(one.alias for one in sweep.models if sweep.budgeted(one) and not priced(sweep, one))


def _replies_free(model: Model, condition: Condition) -> bool:
    return not any(bracket.output for one in _rates(model, condition, time()) for bracket in one.brackets)


def _rates(model: Model, condition: Condition, at: float) -> list[Rates]:
    """Return all by which a call may be charged; none where one of them is unknown.

    Prices may change while a call is under way. Of tiers that only an account's settings may choose those
    count that the table prices.
    """
    looked_up, times = rates_of(model), (at, at + PERIOD_S)
    asked = [looked_up(tier, when) for tier in {None, tier_asked(model, condition)} for when in times]
    known = [one for one in asked if one is not None]
    if len(known) < len(asked):
        return []
    others = [looked_up(tier, when) for tier in tiers_set_elsewhere(model, condition) for when in times]
    return list(dict.fromkeys([*known, *(one for one in others if one is not None)]))


# ── what one call may cost ───────────────────────────────────────────────────────────────────


def most_of(model: Model) -> Most:
    """Return what a call of a model may cost at most, picodollars, as a function of its request and time."""
    known: dict[tuple[str, int | None, int], tuple[int, Sequence[Rates]]] = {}

    def terms(trial: Trial, at: float) -> tuple[int, Sequence[Rates]]:
        """Return the longest reply and the prices: the same for a quarter of an hour."""
        key = trial.condition.name, trial.model.max_tokens, int(at // PERIOD_S)
        if key not in known:
            output = most_output(trial.model, trial.condition) or 0  # 0: replies are free
            known[key] = output, _rates(model, trial.condition, at)
        return known[key]

    def most(request: Request, at: float) -> int:
        return _most(most_input_tokens(request), *terms(request.trial, at))

    return most


def _most(input_tokens: int, output_tokens: int, rates: Sequence[Rates]) -> int:
    if not rates:
        return NEVER  # its price is no longer known: there was one when the run began
    return picodollars(max(most_usd(input_tokens, output_tokens, one) for one in rates))


# ── the ledger, as earlier runs left it ──────────────────────────────────────────────────────


def open_ledger(sweep: Sweep, folder: Path) -> Ledger | None:
    """Return the ledger of a sweep with all that its calls cost so far; None where it has no budget.

    A call of unknown cost counts with what was set aside for it or, where no budget held it, with the most
    that it can have cost. Calls of models that left the sweep count, too; those of models without a price
    count as far as their cost is known.

    Args:
        sweep: the sweep.
        folder: its results folder, with the problem sets it asked; no run is going. It need not be there yet.

    Raises:
        ConfigError: there are calls of which nobody can say what they cost at most.
        StoreError: the folder cannot be read.
    """
    held = [model for model in sweep.models if sweep.budgeted(model) and priced(sweep, model)]
    if not held:
        return None
    found = spending(folder) if is_results_folder(folder) else {}
    ledger = Ledger(_counted(sweep, folder, found))
    for model in held:
        before = found.get(model.alias, Spending())
        ledger.open(
            model.alias,
            _caps_of(model, ledger),
            most_of(model),
            spent=before.charged + before.reserved,
            ratio=before.overrun,
            least=before.least,
        )
    return ledger


def _counted(sweep: Sweep, folder: Path, found: Mapping[str, Spending]) -> tuple[Cap, ...]:
    caps = tuple(_caps(sweep))
    models = {model.alias: model for model in sweep.models}
    outside = unpriced(sweep) if sweep.allow_unpriced else ()
    nobody_knows = Counter[str]()
    for alias, before in found.items():
        for call, count in before.unknown.items() if alias not in outside else ():
            if over := [cap for cap in caps if _counts_for(cap, alias, call.provider)]:
                bound = _bound(call, models.get(alias), sweep, folder)
                nobody_knows[alias] += count * (bound is None)
                for cap in over:
                    cap.unknown += count * (bound or 0)
    if nobody_knows.total():
        raise ConfigError(_refusal(folder, nobody_knows, left=nobody_knows.keys() - models.keys()))
    for cap in caps:
        cap.spent = sum(spent_under(cap.kind, cap.of, found)) + cap.unknown
    return caps


def _counts_for(cap: Cap, alias: str, provider: str) -> bool:
    return cap.of == {"provider": provider, "model": alias}.get(cap.kind, cap.of)


def _caps(sweep: Sweep) -> Iterator[Cap]:
    held = [model for model in sweep.models if sweep.budgeted(model) and priced(sweep, model)]
    if sweep.budget_usd is not None:
        yield _cap("sweep", sweep.name, sweep.budget_usd)
    for provider in dict.fromkeys(model.provider for model in held):
        if provider in sweep.provider_budgets:
            yield _cap("provider", provider, sweep.provider_budgets[provider])
    for model in held:
        if model.budget_usd is not None:
            yield _cap("model", model.alias, model.budget_usd)


def _cap(kind: str, of: str, usd: float) -> Cap:
    return Cap(kind=kind, of=of, limit=picodollars(usd, ROUND_FLOOR))


def _caps_of(model: Model, ledger: Ledger) -> tuple[Cap, ...]:
    return tuple(cap for cap in ledger.caps if _counts_for(cap, model.alias, model.provider))


def _bound(call: Unknown, model: Model | None, sweep: Sweep, folder: Path) -> int | None:
    """Return the most that a call without a known cost can have cost; None: nobody can say."""
    if model is None or not priced(sweep, model):
        return None
    input_tokens, output_tokens = call.input_tokens, call.output_tokens
    if input_tokens is None:
        input_tokens = _most_input(model, sweep, folder)
    if output_tokens is None:
        output_tokens = _longest_of(call, model, sweep)
    if input_tokens is None or output_tokens is None:
        return None
    rates = [one for condition in sweep.conditions for one in _rates(model, condition, time())]
    return _most(input_tokens, output_tokens, rates)


def _longest_of(call: Unknown, model: Model, sweep: Sweep) -> int | None:
    """Return the most tokens that a call can have been answered with; None where nothing limited it.

    `attempts` of earlier versions tell `max_tokens` without what `params` said: the longer one counts.
    """
    if call.max_tokens is None:
        return None
    asked = [most_output(replace(model, max_tokens=call.max_tokens), one) for one in sweep.conditions]
    return None if None in asked else max(filter(None, asked))


def _most_input(model: Model, sweep: Sweep, folder: Path) -> int | None:
    """Return the most tokens of a prompt of a model: of any set in the folder; None where there is none."""
    sets = [open_set(path) for path in sorted((folder / PROBLEMS).glob("*.parquet"))]
    if not sets:
        return None
    asked = [Asked(problems=one, tasks=one.tasks, skip=frozenset()) for one in sets]
    characters = max(longest_request(model, sweep.conditions, one) for one in asked)
    params = max(len(orjson.dumps({**model.params, **one.params}, default=str)) for one in sweep.conditions)
    messages = max(len(one.turns) + 2 * (one.shots or 0) for one in sweep.conditions) + 3
    beside = TOKENS_BESIDE_A_CALL + TOKENS_BESIDE_A_MESSAGE * messages
    return characters * BYTES_OF_A_CHARACTER + params + beside


def _refusal(folder: Path, unknown: Mapping[str, int], *, left: Collection[str]) -> str:
    named = ", ".join(
        f"{count:,} of {alias}{', which left the sweep' * (alias in left)}"
        for alias, count in unknown.items()
        if count
    )
    return (
        f"{folder} holds {sum(unknown.values()):,} calls of unknown cost ({named}), made when no budget held "
        "them, and nothing tells what limited their replies or what they are priced by: nobody can say how "
        "much of `budget_usd` is left. Ask in a folder of its own (`out:`), and take over what is answered "
        f"here with --reuse {folder}."
    )
