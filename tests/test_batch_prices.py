"""What a batch costs is known, given in the sweep, or unknown: never the price of a call in real time."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
import yaml

from asyncbench.config.sweep import as_mapping, sweep_from
from asyncbench.errors import ConfigError
from asyncbench.planning.budget_bounds import check_budget, most_of, priced
from asyncbench.pricing import rates_for
from asyncbench.providers.prices import tier_asked
from asyncbench.records import BATCH, REALTIME, Condition, Price
from asyncbench.suites.requests import most_input_tokens
from tests.world.night import requests

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
KNOWN, UNKNOWN = "openai/gpt-5-mini", "openai/gpt-9-huge"  # to the price table
HALF = {"input": 1.0, "output": 5.0, "batch": 0.5}
OWN = {"input": 1.0, "output": 5.0, "batch": {"input": 0.2, "output": 2.0}}


def sweep(model=KNOWN, *, budget=1.0, batch=None, **keys):
    entry = {"model": model, "mode": "batch", "max_tokens": 100, **keys}
    raw = {"name": "s", "problems": ["p.parquet"], "models": [entry], "batch": batch or {}, "out": "o"}
    return sweep_from(raw | ({"budget_usd": budget} if budget else {}))


def first_rates(price, tier):
    rates = rates_for("any", price=price, vendor="openai", moment=AT, tier=tier)
    assert rates is not None
    bracket = rates.brackets[0]
    return bracket.input, bracket.cached_input, bracket.output


@pytest.mark.parametrize(
    ("batch", "in_batch"),
    [
        pytest.param(0.5, ("0.05", "0.005", "0.25"), id="a part of all prices, exactly"),
        pytest.param(Price(input=0.03, output=0.2), ("0.03", "0.03", "0.2"), id="prices of its own"),
        pytest.param(None, ("0.1", "0.01", "0.5"), id="a price for every tier"),
    ],
)
def test_the_price_in_a_sweep_tells_what_a_batch_costs(batch, in_batch):
    price = Price(input=0.1, cached_input=0.01, output=0.5, batch=batch)
    assert first_rates(price, BATCH) == tuple(map(Decimal, in_batch))
    assert first_rates(price, "batch us") == first_rates(price, BATCH)
    for tier in (None, "flex", "priority"):
        assert first_rates(price, tier) == tuple(map(Decimal, ("0.1", "0.01", "0.5")))


@pytest.mark.parametrize("price", [HALF, OWN], ids=["part", "own"])
def test_a_sweep_keeps_its_batch_price(price):
    read = sweep(price=price)
    assert read.models[0].price.batch == (0.5 if price is HALF else Price(input=0.2, output=2.0))
    again = sweep_from(yaml.safe_load(yaml.safe_dump(as_mapping(read))))
    assert again.models == read.models


def test_a_price_without_batches_is_written_down_as_before():
    said: Any = as_mapping(sweep(price={"input": 1.0, "output": 5.0}))
    assert said["models"][0]["price"] == {
        "input": 1.0,
        "output": 5.0,
        "cached_input": None,
        "cache_write": None,
    }


@pytest.mark.parametrize("part", [0, -0.5, 1.5, "half", {"input": 1.0}])
def test_a_batch_price_that_is_none_is_refused_with_its_place(part):
    with pytest.raises(ConfigError, match=r"models\[1\]\.price.*batch"):
        sweep(price={"input": 1.0, "output": 5.0, "batch": part})


def test_a_batch_has_no_other_tier_whatever_its_parameters_say():
    model = sweep(params={"service_tier": "flex"}).models[0]
    assert tier_asked(model, Condition()) == BATCH
    assert tier_asked(replace(model, mode=REALTIME), Condition()) == "flex"


# ── under a budget ───────────────────────────────────────────────────────────────────────────


def test_a_budget_refuses_a_batch_of_unknown_price_and_says_what_to_do():
    known = "groq/llama-3.3-70b-versatile"
    found = sweep(known, mode="realtime")
    batched = replace(found.models[0], mode=BATCH)
    with pytest.raises(ConfigError, match="no batch price is known for") as refused:
        check_budget(replace(found, models=(batched,)), [batched])
    assert "`price: {batch: 0.5}`" in str(refused.value)
    found = sweep(known, price={"batch": 0.5}, batch={"fallback": "none"})  # the way out
    check_budget(found, found.models)
    assert "mode: realtime" in str(refused.value)


def test_a_budget_takes_a_batch_whose_price_is_known_or_given():
    for found in (sweep(), sweep(UNKNOWN, price=HALF), sweep(UNKNOWN, price=OWN)):
        check_budget(found, found.models)


def test_where_the_rest_is_asked_in_real_time_that_price_must_be_known_as_well():
    assert priced(sweep(batch={"fallback": "none"}), sweep().models[0])
    unknown = sweep(UNKNOWN, budget=None)
    with pytest.raises(ConfigError, match="no price is known for"):
        check_budget(replace(unknown, budget_usd=1.0), unknown.models)


@pytest.mark.parametrize("price", [HALF, OWN], ids=["part", "own"])
def test_a_request_of_a_batch_is_held_at_the_batch_price_and_its_second_try_in_real_time_at_the_full_one(
    price,
):
    model = sweep(price=price).models[0]
    (request,) = requests(1, model)
    tokens, most, at_s = most_input_tokens(request), most_of(model), AT.timestamp()
    dear, cheap = ((1.0, 5.0), (0.5, 2.5) if price is HALF else (0.2, 2.0))
    in_batch = most(request, at_s)
    assert in_batch == pytest.approx((tokens * cheap[0] + 100 * cheap[1]) * 1e6)
    in_real_time = replace(request, trial=replace(request.trial, model=replace(model, mode=REALTIME)))
    assert most(in_real_time, at_s) == pytest.approx((tokens * dear[0] + 100 * dear[1]) * 1e6)


def test_a_batch_price_alone_is_a_part_of_the_published_price():
    whole, half = (
        rates_for("gpt-5-mini", price=price, vendor="openai", moment=AT, tier=tier)
        for price, tier in ((None, None), (Price(batch=0.3), BATCH))
    )
    assert whole is not None
    assert half is not None
    assert half.source == f"0.3 of {whole.source}"
    for ours, theirs in zip(half.brackets, whole.brackets, strict=True):
        assert (ours.input, ours.output) == (Decimal("0.3") * theirs.input, Decimal("0.3") * theirs.output)
    alone = Price(batch=0.3)
    assert rates_for("gpt-5-mini", price=alone, vendor="openai", moment=AT) == whole
    assert rates_for("gpt-9-huge", price=alone, vendor="openai", moment=AT, tier=BATCH) is None


@pytest.mark.parametrize("batch", [0.5, {"input": 0.2, "output": 2}], ids=["part", "own"])
def test_a_batch_price_alone_is_kept_and_holds_under_a_budget(batch):
    found = sweep(price={"batch": batch})
    assert found.models[0].price.input is None
    assert priced(found, found.models[0])
    said: Any = as_mapping(found)
    read = sweep(price=said["models"][0]["price"])
    assert read.models[0].price == found.models[0].price


@pytest.mark.parametrize(
    "price", [{"input": 1}, {"input": 1, "batch": 0.5}, {"input": None, "output": 1}, {}]
)
def test_half_a_price_is_refused(price):
    with pytest.raises(
        ConfigError, match=r"models\[1\].*(price.*missing|'price' cannot be read: set `input` and)"
    ):
        sweep(price=price)
