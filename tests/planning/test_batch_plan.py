"""A plan shows batches beside real time: dollars, hours as a range, parts, bytes, the provider's queue."""

import json
from pathlib import Path

import pytest

from asyncbench import run_sweep
from asyncbench.config.run_entries import Batching
from asyncbench.planning.modes import batch_plan_of, chain_of
from asyncbench.planning.records import Needs
from asyncbench.planning.sweep_plan import plan
from tests.sweep_files import problem_set, sweep

PRICE = {"input": 1.0, "output": 10.0, "batch": 0.5}
LATER = {"model": "openai/gpt-5-mini", "mode": "batch", "max_tokens": 100}
TITLE = "Batches, and the same calls in real time"


@pytest.fixture
def planned(tmp_path):
    def found(*models, **keys):
        return plan(sweep(tmp_path / "out", problem_set(tmp_path), *models, **keys))

    return found


def test_a_batch_costs_half_and_stands_beside_the_same_calls_in_real_time(planned):
    (now,), (later,) = planned({**LATER, "mode": "realtime"}).models, planned(LATER).models
    assert now.batches is None
    assert later.cost_usd == later.batch_usd == pytest.approx(now.cost_usd / 2)
    assert later.cost_usd_most < now.cost_usd_most / 2  # an account may serve calls in a dearer tier
    assert later.batches.realtime_usd == pytest.approx(now.cost_usd)
    assert later.batches.realtime_s == now.seconds
    assert now.batch_usd == later.batch_usd


def test_hours_are_a_range_and_the_end_of_it_counts_for_the_whole(planned):
    found = planned(LATER)
    (later,) = found.models
    assert (later.batches.soonest_s, later.batches.latest_s) == (120.0, 86_400.0)
    assert (later.seconds, later.bound_by, found.seconds) == (86_400.0, "batches", 86_400.0)
    text = found.as_text(width=300)
    assert TITLE in text
    assert "up to 24:00:00" in text
    assert "a batch that was sent is paid" in text


@pytest.mark.parametrize(
    ("batch", "parts"),
    [({}, 1), ({"max_requests": 100}, 2), ({"max_requests": 72}, 2), ({"max_bytes": 10_000}, None)],
)
def test_parts_are_as_many_as_requests_and_bytes_need(planned, batch, parts):
    (later,) = planned(LATER, batch=batch).models
    size = later.batches.bytes
    assert 144 * 250 < size < 144 * 1_000
    assert later.batches.parts == (-(-size // 10_000) if parts is None else parts)


def test_a_file_holds_no_more_than_its_provider_takes():
    claude = {"model": "anthropic/claude-haiku-4-5", "mode": "batch", "max_tokens": 9}
    [openai, anthropic] = sweep(Path("out"), Path("p"), LATER, claude).models
    most = Batching(max_requests=10**6, max_bytes=10**9)
    needs = Needs(trials=100_001, input_tokens=10_240_000, realtime_usd=1.0, characters=180_000_000)
    of_openai, of_anthropic = (
        batch_plan_of(model, most, needs, longest_s=1.0) for model in (openai, anthropic)
    )
    assert of_openai is not None
    assert of_anthropic is not None
    assert (of_openai.parts, of_anthropic.parts) == (3, 2)
    # The queue is learnt from 80,000 tokens on, twice as much a minute; Anthropic's holds requests.
    assert (of_openai.soonest_s, of_anthropic.soonest_s) == (120 + 7 * 60, 120)


def test_the_share_of_the_queue_is_told_where_its_limit_is(planned):
    (unknown,) = planned(LATER).models
    assert (unknown.batches.enqueued_tokens, unknown.batches.enqueued_share) == (None, None)
    limit = unknown.input_tokens // 2 - 1
    (tight,) = planned(LATER, batch={"enqueued_tokens": limit}).models
    assert tight.batches.enqueued_share == pytest.approx(unknown.input_tokens / limit)
    assert tight.batches.latest_s == 3 * 86_400  # the queue is filled three times


def test_a_sweep_in_real_time_has_no_table_of_batches(planned):
    found = planned({**LATER, "mode": "realtime"})
    assert TITLE not in found.as_text()
    assert json.loads(found.as_json())["models"][0]["batches"] is None


def test_a_batch_price_is_that_of_the_sweep_or_unknown_and_told_with_what_to_set(planned):
    simulated = {**LATER, "model": "simulated/oracle", "price": PRICE}
    others = [{**LATER, "model": f"openai/{name}"} for name in ("gpt-9", "chatgpt-4o-latest")]
    found = planned(simulated, *others)
    told, unknown, half = found.models
    assert told.cost_usd == pytest.approx(told.batches.realtime_usd / 2)
    assert (unknown.cost_usd, unknown.batches.realtime_usd) == (None, None)
    assert half.cost_usd is None
    assert half.batches.realtime_usd > 0
    assert any("no price is known for openai/gpt-9:" in line for line in found.warnings)
    assert any("no batch price is known for openai/chatgpt-4o-latest:" in line for line in found.warnings)


@pytest.mark.long
async def test_a_forecast_of_batches_keeps_their_hours_and_their_price(tmp_path):
    problems, model = problem_set(tmp_path), {"model": "simulated/oracle", "price": PRICE}
    await run_sweep(sweep(tmp_path / "out", problems, model), limit=120)
    (now,) = plan(sweep(tmp_path / "out", problems, model)).models
    (later,) = plan(sweep(tmp_path / "out", problems, {**model, "mode": "batch"})).models
    assert later.forecast is not None
    assert now.cost_usd is not None
    assert later.left == now.left == 24
    assert later.cost_usd == pytest.approx(now.cost_usd / 2)
    assert later.seconds == 86_400.0


def test_what_is_asked_in_batches_alone_has_no_column_of_batch_prices(planned):
    text = planned(LATER).as_text(width=300)
    assert "as batches" in text  # beside real time
    assert "as a batch" not in text


@pytest.mark.parametrize(("name", "most"), [("max_bytes", 5), ("enqueued_tokens", 2)])
def test_a_limit_that_is_smaller_than_one_request_is_told(planned, name, most):
    told = [line for line in planned(LATER, batch={name: most}).warnings if f"`{name}: {most}`" in line]
    assert len(told) == 1
    assert "Each is a batch by itself" in told[0]
    assert not any(f"`{name}: " in line for line in planned(LATER, batch={name: 100_000}).warnings)


def test_a_budget_that_makes_a_chain_of_batches_says_so_with_the_way_out(planned):
    whole = planned({**LATER, "price": PRICE}).models[0]
    found = planned({**LATER, "price": PRICE}, budget_usd=whole.cost_usd_most / 4)
    (chained,) = found.models
    assert whole.batches.chain == 1
    assert chained.batches.parts == chained.batches.chain > 1
    assert chained.seconds == chained.batches.latest_s == chained.batches.chain * 86_400.0
    [said] = [line for line in found.warnings if "makes a chain of" in line]
    assert f"{chained.batches.chain} batches" in said
    enough = planned({**LATER, "price": PRICE}, budget_usd=1.01 * whole.cost_usd_most)
    assert enough.models[0].batches == whole.batches


@pytest.mark.parametrize(
    ("budget_usd", "usd", "links"),
    [(100, 0.25, 1), (50, 0.0, 2), (50, 0.25, 3), (10, 0.0, 10), (0.5, 0.25, 1)],
)
def test_a_chain_has_as_many_links_as_times_that_money_comes_back(budget_usd, usd, links):
    assert chain_of(100, usd=usd, usd_most=1.0, budget_usd=budget_usd) == links
