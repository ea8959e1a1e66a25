"""What a call may cost at most, held to figures worked out by hand; and what has no such bound."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from unittest.mock import Mock

import genai_prices
import orjson
import pytest
from genai_prices.data import providers

from asyncbench.config.sweep import sweep_from
from asyncbench.engine.budget import Cap, Ledger
from asyncbench.engine.lane_model import LaneModel
from asyncbench.errors import ConfigError, UnwrittenError
from asyncbench.planning.budget_bounds import (
    NEVER,
    budgeted_models,
    check_budget,
    most_for,
    most_of,
    most_usd_of,
    unpriced,
)
from asyncbench.pricing import _looked_up, dollars_of
from asyncbench.providers.endpoints import Quirks, known_endpoints
from asyncbench.providers.params import bills_besides
from asyncbench.providers.provider import WIRES
from asyncbench.records import Condition, Ended, Limits, Message, Reply, Sent, Usage
from asyncbench.run.summary import Exit
from asyncbench.run.sweep_run import run_sweep
from asyncbench.store.catalog import read_attempts, read_trials
from asyncbench.suites.requests import way_of_asking
from tests.rows import each_row
from tests.sweep_files import outcomes, problem_set, simulator, sweep
from tests.world.clock import virtually
from tests.world.night import EPOCH_S, MODEL, RIGHT, Desk, Night, night_of, requests, waiting

PRICE = {"input": 1.0, "output": 5.0}
SERVER = {"model": "http/m", "base_url": "http://h/v1", "price": PRICE, "max_tokens": 100}


def planned(*models, **keys):
    return sweep_from(
        {"name": "s", "problems": ["p.parquet"], "models": list(models), "budget_usd": 1} | keys
    )


# ── the bound, by hand ───────────────────────────────────────────────────────────────────────


def tools_of(size):
    """Parameters that are so many bytes of JSON: tools with a long description."""
    frame = b'{"tools":[{"type":"function","function":{"name":"f","description":""}}]}'
    words = "d" * (size - len(frame))
    return {"tools": [{"type": "function", "function": {"name": "f", "description": words}}]}


def said(*texts):
    return tuple(Message(role="user", content=text) for text in texts)


@pytest.mark.parametrize(
    ("system", "messages", "own", "added", "tokens"),
    [
        # the bytes of all texts; 512 of a chat template, and 16 each for the system prompt and every message
        pytest.param(None, said("q" * 10), {}, {}, 10 + 512 + 32, id="a question"),
        pytest.param("s" * 5_000, said("q" * 10), {}, {}, 5_010 + 512 + 32, id="a system prompt"),
        pytest.param(None, said("q" * 10), tools_of(5_000), {}, 5_010 + 512 + 32, id="tools"),
        pytest.param(
            None, said("q" * 10), {}, tools_of(5_000), 5_010 + 512 + 32, id="tools of the condition"
        ),
        pytest.param(None, said("😀" * 1_000), {}, {}, 4_000 + 512 + 32, id="emoji: four bytes each"),
        pytest.param(None, said("ä" * 1_000), {}, {}, 2_000 + 512 + 32, id="umlauts: two bytes each"),
        pytest.param(None, said("a", "b", "c", "d", "e"), {}, {}, 5 + 512 + 96, id="turns"),
        pytest.param(
            "😀" * 50,
            said("q" * 7, "r" * 3),
            tools_of(300),
            {},
            200 + 10 + 300 + 512 + 48,
            id="all of it together",
        ),
    ],
)
def test_a_call_may_cost_what_all_its_bytes_and_its_longest_reply_cost(system, messages, own, added, tokens):
    (model,) = planned(SERVER | {"params": own}).models
    (request,) = requests(1, model)
    trial = replace(request.trial, condition=Condition(params=added))
    request = replace(request, trial=trial, system=system, messages=messages)
    # a dollar for a million tokens is a million picodollars for one; 100 tokens of a reply at five dollars
    assert most_of(model)(request, 1.8e9) == tokens * 10**6 + 100 * 5 * 10**6


def at(hour, minute):
    return datetime(2026, 11, 20, hour, minute, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("sent", "pico_in", "pico_out"),
    [
        pytest.param(at(0, 14), 135_000, 550_000, id="night for the next quarter of an hour"),
        pytest.param(at(0, 15), 270_000, 1_100_000, id="the day may have begun when it is billed"),
        pytest.param(at(0, 29), 270_000, 1_100_000, id="it begins in a minute"),
        pytest.param(at(12, 0), 270_000, 1_100_000, id="day"),
        pytest.param(at(16, 29), 270_000, 1_100_000, id="the night may not have begun"),
        pytest.param(at(16, 31), 135_000, 550_000, id="night"),
    ],
)
def test_a_price_that_may_hold_when_a_call_is_billed_counts(sent, pico_in, pico_out):
    (model,) = planned({"model": "deepseek/deepseek-chat", "max_tokens": 100}).models
    (request,) = requests(1, model)
    request = replace(request, messages=said("q" * 10))
    assert most_of(model)(request, sent) == 554 * pico_in + 100 * pico_out


def test_no_budget_has_room_for_a_call_whose_price_is_no_longer_known():
    flex = {"model": "openai/gpt-5-mini", "max_tokens": 9, "params": {"service_tier": "flex"}}
    (model,) = planned(flex).models
    before, since = (datetime(2026, 10, day, 12, tzinfo=UTC).timestamp() for day in (1, 20))
    (request,) = requests(1, model)
    assert most_of(model)(request, since) < 10**9
    account = Ledger([]).open("m", [Cap(kind="model", of="m", limit=10**12 * 1_000_000)], most_of(model))
    assert account.hold(request, before).amount == NEVER
    assert not account.ever_fits(account.hold(request, before))


def test_what_a_call_without_a_budget_could_cost_is_the_same_bound():
    plan = planned(SERVER | {"params": tools_of(5_000)}, budget_usd=None)
    (request,) = requests(1, plan.models[0])
    request = replace(request, system="s" * 700, messages=said("😀" * 10))
    usd = most_usd_of(plan, plan.models[0])(request, 1.8e9)
    assert usd == ((700 + 40 + 5_000 + 512 + 32) * 1 + 100 * 5) / 10**6


def test_nobody_knows_what_a_call_can_have_cost_that_a_router_was_free_to_hand_on():
    plan = planned(ROUTED, budget_usd=None)
    assert most_usd_of(plan, plan.models[0])(requests(1, plan.models[0])[0], 1.8e9) is None


# ── in a lane ────────────────────────────────────────────────────────────────────────────────


def held_by(most):
    cap = Cap(kind="model", of="m", limit=10**15)
    return cap, Ledger([cap]).open("m", [cap], most)


def test_what_a_call_may_cost_is_worked_out_anew_when_it_was_long_ago():
    async def answer(_):
        return RIGHT

    slow = replace(MODEL, limits=Limits(rpm=0.5))  # the second waits two minutes for its turn
    _, account = held_by(lambda _, at: 10**9 if at < EPOCH_S + 90 else 3 * 10**9)
    night = night_of(answer, 2, slow, account=account)
    assert [sent.reserved_usd for sent in night.of(Sent)] == [0.001, 0.003]


def test_a_call_that_could_not_be_written_down_was_not_made_and_holds_no_money():
    def full(_):
        raise UnwrittenError("disk full")

    async def run():
        night = Night()
        asker = night.client(Desk().ask, [], MODEL)
        cap, asker.account = held_by(lambda *_: 100)
        asker.records.keep = full
        model = LaneModel(asker)
        turn = waiting(requests(1)[0])
        assert model.money.affords(turn)
        assert model.money.reserve(turn)
        assert cap.reserved == 100
        with pytest.raises(UnwrittenError):
            model.attempts.begin(turn)
        return cap

    cap = virtually(run())
    assert (cap.reserved, cap.spent) == (0, 0)


def test_a_bill_above_the_price_in_the_sweep_is_charged_and_told_once():
    bill = Reply(text="4", usage=Usage(input_tokens=10, output_tokens=5), vendor_cost_usd=0.05)

    async def answer(_):
        return bill

    cap, account = held_by(lambda *_: 10**11)
    night = night_of(answer, 3, account=account)
    assert cap.spent == 3 * 5 * 10**10
    assert {ended.attempt.cost_usd for ended in night.of(Ended)} == {0.05}
    assert {result.price_source for result in night.results.values()} == {"simulated usage.cost"}
    (told,) = night.said
    assert (
        "simulated usage.cost billed $0.050000 for a call; the `price` in your sweep gives $0.000020" in told
    )


# ── models that no bound holds ───────────────────────────────────────────────────────────────


@each_row(
    ("model", "why"),
    [
        ("openai/gpt-4o-search-preview", "searches the web"),
        ("openai/gpt-5-search-api", "searches the web"),
        ("openai/o3-deep-research", "searches the web"),
        ("openrouter/perplexity/sonar", "searches the web"),
        ("openrouter/perplexity/sonar-reasoning-pro", "searches the web"),
        ("openrouter/relace/relace-search", "searches the web"),
        ("groq/groq/compound-mini", "searches the web"),
        ("gemini/gemini-2.5-flash-image", "uses sound or images"),
        ("openrouter/google/gemini-2.5-flash-image", "uses sound or images"),
        ("openai/gpt-5-image-mini", "uses sound or images"),
        ("openai/gpt-audio", "uses sound or images"),
        ("openai/gpt-4o-audio-preview-2025-06-03", "uses sound or images"),
        ("gemini/gemini-live-2.5-flash", "uses sound or images"),
        ("xai/grok-4.20-multi-agent", "also asks other models"),
        ("openrouter/openai/gpt-4o-mini:online", "searches the web"),
        ("openrouter/@preset/mine", "options that cost extra"),
        ("openrouter/openai/gpt-4o-mini@preset/mine", "options that cost extra"),
        ("openrouter/openrouter/auto", "another model"),
    ],
)
@each_row("price", [{"price": PRICE}, {}])
def test_a_model_that_costs_beside_its_tokens_unasked_is_refused(model, why, price):
    asked = {"model": model, "max_tokens": 9} | price
    plan = planned(asked)
    with pytest.raises(ConfigError, match=f"budget_usd needs a maximum cost .*{why}.*without a budget"):
        check_budget(plan, plan.models)
    without = planned(asked, budget_usd=None)
    check_budget(without, without.models)


ORDINARY = (
    "openai/gpt-4o",
    "openai/gpt-4o-mini",
    "openai/gpt-4.1",
    "openai/gpt-5",
    "openai/gpt-5-mini",
    "openai/gpt-5.1",
    "openai/gpt-6-sol",
    "openai/o3",
    "openai/o4-mini",
    "openai/ft:gpt-4o-mini-2024-07-18:live-image:voice:abc",
    "gemini/gemini-2.5-flash",
    "gemini/gemini-2.5-pro",
    "gemini/gemini-2.5-flash-lite",
    "gemini/gemini-3-flash-preview",
    "anthropic/claude-haiku-4-5",
    "anthropic/claude-opus-5",
    "xai/grok-4",
    "xai/grok-4-fast",
    "deepseek/deepseek-chat",
    "deepseek/deepseek-reasoner",
    "mistral/mistral-large-latest",
    "groq/llama-3.3-70b-versatile",
    "openrouter/openai/gpt-4o-mini",
    "openrouter/meta-llama/llama-3.1-8b-instruct",
    "openrouter/anthropic/claude-sonnet-4.5",
    "openrouter/nousresearch/hermes-4-70b",
    "openrouter/deepseek/deepseek-r1",
)


@each_row("model", ORDINARY)
def test_an_ordinary_model_of_text_is_held_by_a_budget(model):
    named = {"price": PRICE} if "ft:" in model or "mistral-large" in model else {}
    plan = planned({"model": model, "max_tokens": 9} | named)
    check_budget(plan, plan.models)
    assert unpriced(plan) == ()


# What is in the id of every model of the price table that answers with more than text, or searches.
OTHERWISE = (
    *("-search", "deep-research", "sonar"),
    *("image", "nano-banana", "omni", "audio", "tts", "live", "realtime", "transcribe", "voice", "lyria"),
    "multi-agent",
)


@pytest.mark.long
def test_of_all_models_of_the_price_table_those_of_text_alone_can_be_held():
    vendors = {one.prices: (name, one) for name, one in known_endpoints().items() if one.prices}
    held, refused = 0, []
    for vendor in providers:
        for listed in vendor.models if vendor.id in vendors else ():
            name, endpoint = vendors[vendor.id]
            if not endpoint.serves(listed.id):
                continue
            at = {"base_url": "https://mine.openai.azure.com/openai/v1"} if "azure" in name else {}
            (model,) = planned({"model": f"{name}/{listed.id}", "max_tokens": 9} | at).models
            prices = listed.get_prices(datetime(2026, 11, 20, tzinfo=UTC))
            more = [name for name in vars(prices) if name.startswith("output_") and name != "output_mtok"]
            if bills_besides(model) is None:
                assert not set(more) & {"output_image_mtok", "output_audio_mtok", "output_video_mtok"}, listed
                held += 1
            else:
                assert any(part in listed.id for part in OTHERWISE), listed.id
                refused.append(listed.id)
    assert held > 10 * len(refused) > 0


SEARCHES = "gpt-4o-search-preview"


@pytest.mark.parametrize(
    ("model", "base_url", "refused"),
    [
        ("vllm/qwen-image-text", None, False),
        ("http/voice", "http://10.0.0.7:8000/v1", False),
        (f"openai/{SEARCHES}", "http://localhost:8000/v1", False),
        (f"openai/{SEARCHES}", None, True),
        (f"openai/{SEARCHES}", "https://eu.api.openai.com/v1", True),
        (f"http/{SEARCHES}", "https://api.openai.com/v1", True),
        (f"azure/{SEARCHES}", "https://mine.openai.azure.com/openai/v1", True),
        ("http/sonar", "https://api.groq.com/openai/v1", True),
        ("openrouter/perplexity/sonar", "http://localhost:8000/v1", True),
    ],
)
def test_a_name_tells_of_a_bill_where_a_vendor_writes_it_and_nothing_on_a_server_of_one_s_own(
    model, base_url, refused
):
    at = {} if base_url is None else {"base_url": base_url}
    plan = planned({"model": model, "max_tokens": 9, "price": {"input": 0, "output": 0}} | at)
    assert (bills_besides(plan.models[0]) is not None) is refused


def test_the_price_table_is_looked_into_once_for_each_model_however_many_conditions(monkeypatch):
    looked = Mock(wraps=genai_prices.calc_price)
    monkeypatch.setattr(genai_prices, "calc_price", looked)

    def looks(conditions):
        asked = planned(
            *({"model": "openai/gpt-5-mini", "alias": f"m{n}", "seed": n, "max_tokens": 9} for n in range(5)),
            conditions=[{"name": f"c{n}", "system": f"s{n}"} for n in range(conditions)],
        )
        _looked_up.cache_clear()
        looked.reset_mock()
        check_budget(asked, asked.models)
        return looked.call_count

    assert 0 < looks(10) <= looks(1) <= 8  # standard and priority, now and in a quarter of an hour; and again


# ── routers ──────────────────────────────────────────────────────────────────────────────────

ROUTED = {"model": "openrouter/openai/gpt-4o-mini", "max_tokens": 100}  # $0.15 and $0.60 in the table
TOLD = {"provider": {"max_price": {"prompt": 0.15015, "completion": 0.6006, "request": 0.0}}}


def held(**model):
    plan = planned(ROUTED | model)
    check_budget(plan, plan.models)
    return budgeted_models(plan, plan.models)[0]


def bound(model, **condition):
    (request,) = requests(1, model)
    trial = replace(request.trial, condition=Condition(**condition))
    return most_of(model)(replace(request, trial=trial, messages=said("q" * 10)), 1.795e9)


def test_under_a_budget_a_router_is_told_that_nobody_dearer_may_serve_and_that_is_the_bound():
    model = held()
    assert model.budget_params == TOLD
    assert bound(model) == 554 * 150_150 + 100 * 600_600
    assert held(price={"input": 2, "output": 3}).budget_params["provider"]["max_price"]["prompt"] == 2.002
    ordinary = planned("openai/gpt-4o-mini", ROUTED | {"max_tokens": None}, budget_usd=None)
    assert budgeted_models(ordinary, ordinary.models) == ordinary.models


def test_a_dearer_price_of_one_condition_is_told_and_set_aside_under_no_other():
    dear = {"provider": {"max_price": {"prompt": 100, "completion": 200}}}
    plan = planned(ROUTED, conditions=[{"name": "plain"}, {"name": "dear", "params": dear}])
    check_budget(plan, plan.models)
    (model,) = budgeted_models(plan, plan.models)
    assert model.budget_params == TOLD
    plain, other = (most_for(plan, plan.models[0], condition, 1.795e9)(554) for condition in plan.conditions)
    assert plain == dollars_of(bound(model)) < 0.0002
    assert other == dollars_of(554 * 100 * 10**6 + 100 * 200 * 10**6)


def test_a_dearer_price_that_the_sweep_lets_a_router_take_is_the_bound():
    params = {"provider": {"only": ["x"], "max_price": {"prompt": 10, "completion": 20}}}
    size = len(orjson.dumps(params))
    assert bound(held(params=params)) == (554 + size) * 10 * 10**6 + 100 * 20 * 10**6
    assert bound(held(), params=params) == (554 + size) * 10 * 10**6 + 100 * 20 * 10**6


@pytest.mark.parametrize(
    "provider",
    [
        None,
        "x",
        {"max_price": None},
        {"max_price": {"prompt": "1"}},
        {"max_price": {"completion": None}},
        {"max_price": {"prompt": -1}},
        {"max_price": {"request": 1}},
    ],
    ids=str,
)
def test_what_takes_the_price_away_that_a_router_is_told_is_refused(provider):
    for plan in (
        planned(ROUTED | {"params": {"provider": provider}}),
        planned(ROUTED, conditions=[{"name": "c", "params": {"provider": provider}}]),
    ):
        with pytest.raises(
            ConfigError, match=r"maximum cost .*send the router no usable `max_price`.*remove it"
        ):
            check_budget(plan, plan.models)


@pytest.mark.parametrize("api", WIRES)
def test_what_a_budget_adds_goes_into_every_body_and_into_what_the_sweep_says_there(api):
    model = replace(
        MODEL, api=api, max_tokens=9, budget_params=TOLD, params={"provider": {"sort": "latency"}}
    )
    body = WIRES[api](Quirks()).body(requests(1, model)[0])
    assert body["provider"] == TOLD["provider"] | {"sort": "latency"}


def test_what_a_budget_adds_makes_no_trial_another():
    assert way_of_asking(replace(MODEL, budget_params=TOLD), Condition()) == way_of_asking(MODEL, Condition())


@pytest.mark.long
def test_a_sweep_over_a_router_says_in_its_results_what_was_sent_and_asks_nothing_twice(tmp_path):
    problems, out = problem_set(tmp_path, trials=1), tmp_path / "out"
    with simulator(problems, like="openrouter") as server:
        model = ROUTED | {
            "model": "openrouter/oracle",
            "base_url": f"{server.url}/v1",
            "price": PRICE,
            "params": {"provider": {"sort": "price"}},
        }
        env = {"OPENROUTER_API_KEY": "none"}
        first = asyncio.run(run_sweep(sweep(out, problems, model, budget_usd=1), limit=20, env=env))
        last = asyncio.run(run_sweep(sweep(out, problems, model), env=env))
        other = sweep(tmp_path / "other", problems, model, budget_usd=1)
        asyncio.run(run_sweep(other, reuse=out, env=env))
        assert server.stats()["requests"] == 72
    assert (first.exit, last.exit, len(outcomes(out))) == (Exit.COMPLETE, Exit.COMPLETE, 72)
    sent = [orjson.loads(str(params))["provider"] for params in read_trials(out)["params"].to_pylist()]
    told = {"prompt": 1.001, "completion": 5.005, "request": 0.0}
    assert sent.count({"sort": "price", "max_price": told}) == 20
    assert sent.count({"sort": "price"}) == 52
    taken_over = read_trials(other.out)["params"].to_pylist()
    assert not any("max_price" in str(params) for params in taken_over), "nothing was sent for them"
    assert read_attempts(out)["reserved_usd"].null_count == 52
