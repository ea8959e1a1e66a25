"""A price is an amount of money: no more than a million dollars for a million tokens."""

from copy import deepcopy
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from genai_prices.data_snapshot import get_snapshot, set_custom_snapshot

from asyncbench.config.sweep import load_sweep, priced_models
from asyncbench.errors import ConfigError
from asyncbench.pricing import rates_for

SWEEP = """
name: priced
problems: [{suite: integer_addition, seed: 1, tries: 1}]
models: [{model: simulated/oracle, price: {input: 1, output: %s}}]
"""


@pytest.mark.parametrize("price", ["1e308", "1000001", ".inf", ".nan", "-1", "-0.001", "'1e9'"])
def test_what_is_no_price_is_refused(price, tmp_path):
    path = tmp_path / "priced.yaml"
    path.write_text(SWEEP % price)
    with pytest.raises(ConfigError, match=r"'output' must be (at most|a finite number|at least|greater)"):
        load_sweep(path)


@pytest.mark.parametrize("price", ["1e308", ".nan", "-1"])
def test_a_sweep_of_the_past_with_such_a_price_is_read_as_without_one(price, tmp_path):
    path = tmp_path / "priced.yaml"
    path.write_text(SWEEP % price)
    assert [model.price for model in priced_models(path)] == [None]
    path.write_text(SWEEP % "1000000")
    assert [model.price.output for model in priced_models(path)] == [1_000_000.0]  # type: ignore[union-attr]  # it has one


@pytest.mark.long
@pytest.mark.parametrize(
    ("price", "is_known"),
    [("1e308", False), ("1000001", False), ("1000000", True), ("0", True)],  # the table has no NaN or -1
)
def test_a_published_price_that_is_no_money_is_unknown(price, is_known):
    table = deepcopy(get_snapshot())
    _, model = table.find_provider_model("gpt-5-mini", None, "openai", None)
    model.prices.output_mtok = Decimal(price)  # type: ignore[union-attr]  # this model has one price
    set_custom_snapshot(table)
    try:
        now = datetime(2026, 11, 20, tzinfo=UTC)
        rates = rates_for("gpt-5-mini", price=None, vendor="openai", moment=now)
    finally:
        set_custom_snapshot(None)
    assert (rates is not None) is is_known
