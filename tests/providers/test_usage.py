"""Token counts of every provider in one form, each priced: what a provider does not say stays unknown.

`usages/` holds one account a file: where its form is known from ([D] documented, [V] seen on a real server,
[S] read in an installed package, [R] remembered), the normal form and the price by hand, and what
genai-prices makes of the same body: nothing said means the same, else which of the two is right.
"""

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import genai_prices
import pytest
from hypothesis import given, strategies as st

from asyncbench.pricing import cost_usd, rates_for, tier_of
from asyncbench.providers.usage import (
    anthropic_usage,
    contents_usage,
    merged,
    openai_usage,
    raw_usage,
    responses_usage,
    stated_cost_usd,
)
from asyncbench.records import Price, Usage
from tests.rows import each_row

FILES = sorted((Path(__file__).parent / "usages").glob("*.json"))
ACCOUNTS: dict[str, Any] = {path.stem: json.loads(path.read_text("utf-8")) for path in FILES}
READERS = {
    "openai": openai_usage,
    "responses": responses_usage,
    "anthropic": anthropic_usage,
    "merged": anthropic_usage,
    "contents": contents_usage,
}
COUNTS = st.integers(0, 10**6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(sorted({name for one in ACCOUNTS.values() for name in one["body"].get("usage", {})}))


def accounts(*, with_: str = "body"):
    """Check with each account that says something under this key."""
    chosen = [pytest.param(one, id=name) for name, one in ACCOUNTS.items() if with_ in one]
    return each_row("account", chosen)


def in_usd(by_hand):
    """`10 * 0.25 + 3 * 2`: tokens at USD for a million of them; exact."""
    products = (map(Decimal, term.split(" * ")) for term in by_hand.split(" + "))
    return sum(tokens * rate for tokens, rate in products) / 10**6


def normal_form(account):
    body = account["body"]
    return READERS[account["read_as"]](raw_usage(body) or body.get("usageMetadata") or {})


@accounts()
def test_an_account_has_one_normal_form(account):
    assert normal_form(account) == Usage(**account["normal"])


@accounts()
def test_the_parts_of_an_account_do_not_exceed_the_whole(account):
    usage = normal_form(account)

    assert usage.input_tokens is None or usage.input_tokens >= sum(
        part or 0 for part in (usage.cached_input_tokens, usage.cache_write_tokens)
    )
    assert (usage.cache_write_1h_tokens or 0) <= (usage.cache_write_tokens or 0)
    assert (usage.reasoning_tokens or 0) <= (usage.output_tokens or 0)


@accounts(with_="price")
def test_an_account_costs_what_it_costs_by_hand(account):
    price = account["price"]
    given_price = Price(**price["sweep"]) if "sweep" in price else None
    rates = rates_for(
        price.get("model", "any"),
        price=given_price,
        vendor=price.get("vendor"),
        moment=datetime.fromisoformat(price.get("at", "2026-11-20T12:00:00Z")),
        tier=tier_of(price.get("tier"), raw_usage(account["body"])),
    )
    expected = None if price["by_hand"] is None else float(in_usd(price["by_hand"]))

    assert cost_usd(normal_form(account), rates) == expected


@accounts(with_="genai_prices")
def test_genai_prices_makes_the_same_of_it_or_it_is_known_why_not(account):
    price, verdict = account["price"], account["genai_prices"]
    if "error" in verdict:
        with pytest.raises(ValueError, match=r"usage|Missing|Expected"):
            judged_by_genai_prices(account)
        return
    assert judged_by_genai_prices(account) == in_usd(verdict.get("by_hand", price["by_hand"]))
    assert ("by_hand" in verdict) == ("which_is_right" in verdict)


def judged_by_genai_prices(account):
    """What its own extraction and its own arithmetic make of the same body."""
    price = account["price"]
    body = {"model": price["model"], **account["body"]}
    flavor = account["genai_prices"]["flavor"]
    found = genai_prices.extract_usage(body, provider_id=price["vendor"], api_flavor=flavor)
    return found.calc_price(genai_request_timestamp=datetime.fromisoformat(price["at"])).total_price


@accounts()
def test_only_a_provider_that_bills_by_itself_tells_a_cost(account):
    told = account.get("told_usd")

    assert stated_cost_usd(raw_usage(account["body"]) or {}) == (None if told is None else float(told))


@accounts(with_="start")
def test_a_streamed_account_is_what_its_two_halves_make_together(account):
    assert merged(account["start"], account["delta"]) == account["body"]["usage"]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        pytest.param({"cost": 0}, 0.0, id="nought is known"),
        pytest.param({"cost": 0.1, "is_byok": False}, 0.1, id="without a key of one's own"),
        pytest.param({"cost": 0.1, "cost_details": {"upstream_inference_cost": 0.2}}, 0.1, id="not added"),
        pytest.param(
            {"cost": 0.1, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}},
            0.3,  # 0.1 + 0.2 in float64 is another number
            id="added exactly",
        ),
        pytest.param({"cost": 0.1, "is_byok": True}, None, id="half a bill"),
        pytest.param({"cost": True}, None, id="no number"),
        pytest.param({"cost": -1}, None, id="below nought"),
        pytest.param({"cost": float("nan")}, None, id="not a number"),
        pytest.param({"cost": float("inf")}, None, id="infinite"),
        pytest.param({"cost": {"total_cost": 1}}, None, id="another's form"),
        pytest.param({"cost_in_usd_ticks": 1}, 1e-10, id="a tick"),
        pytest.param({"cost_in_usd_ticks": 10**11}, 10.0, id="more ticks than a call has tokens"),
        pytest.param({"cost_in_usd_ticks": 2**60}, None, id="ticks beyond all sense"),
    ],
)
def test_what_a_provider_says_a_call_cost(raw, told):
    assert stated_cost_usd(raw) == told


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param({}, id="none"),
        pytest.param({"usage": None, "choices": []}, id="null"),
        pytest.param({"usage": "much", "x_groq": 1, "choices": [None]}, id="garbage"),
        pytest.param({"choices": [{"usage": {}}]}, id="empty"),
    ],
)
def test_a_body_without_an_account_has_none(payload):
    assert raw_usage(payload) is None


@pytest.mark.parametrize("absurd", [10**9 + 1, 2**53 + 1, 2**64, 1e30, -1, 12.5, True, "7"])
def test_a_count_that_cannot_be_one_is_absent(absurd):
    names = (
        *("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "reasoning_tokens"),
        *("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    )
    raw = dict.fromkeys(names, absurd)
    for read in (openai_usage, responses_usage, anthropic_usage):
        assert read(raw) == Usage()


def test_a_count_may_be_written_as_a_float():
    assert openai_usage({"prompt_tokens": 12.0}).input_tokens == 12


@given(COUNTS, COUNTS, COUNTS)
def test_output_is_never_less_than_the_completion_nor_than_the_total_leaves(prompt, completion, total):
    usage = openai_usage({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total})

    beyond = total - prompt if prompt else 0  # an input of 0 is no count to take from a total
    assert usage.output_tokens == max(completion, beyond)


@given(prompt=COUNTS.filter(bool), answer=COUNTS, reasoning=COUNTS)  # an input of 0 is no count
def test_reasoning_counts_once_whether_it_stands_within_the_completion_or_beside_it(
    prompt, answer, reasoning
):
    details = {"reasoning_tokens": reasoning}
    total = prompt + answer + reasoning
    within, beside = (
        openai_usage(
            {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": total,
                "completion_tokens_details": details,
            }
        )
        for completion in (answer + reasoning, answer)
    )

    assert within == beside
    assert within.output_tokens == answer + reasoning


@pytest.mark.long
@given(st.dictionaries(NAMES, JSON))
def test_nothing_that_a_server_writes_stops_the_reading(raw):
    for read in (openai_usage, responses_usage, anthropic_usage):
        usage = read(raw)
        assert all(count is None or count >= 0 for count in (usage.input_tokens, usage.output_tokens))
    assert (stated_cost_usd(raw) or 0) >= 0
    assert merged(raw, raw).keys() == raw.keys()
