"""`report --style cost`: where the money went, to the last cent, and what nobody knows."""

import json
import random
from dataclasses import replace
from math import fsum

import orjson
import pytest

from asyncbench.analysis.counting import counted
from asyncbench.errors import ConfigError
from asyncbench.records import BATCH, Reply, Result, Usage
from asyncbench.reports.cost.counts import MAYBE_BILLED, NO_PRICE, NO_TOKENS, TOKEN_KINDS
from asyncbench.reports.cost.report import cost_report_of
from asyncbench.store.catalog import read_attempts, read_trials
from asyncbench.store.folder import Store
from asyncbench.tables.report import SIMULATED
from tests.reports import answered
from tests.reports.paid import MINI, SONNET, TOKENS, Asked, Call, folder_of, trials
from tests.reports.test_report import call, result
from tests.store.made import skipped
from tests.world.night import MODEL, requests

WRITTEN = {  # as Anthropic tells it, of which our columns hold the sum alone
    "input_tokens": 100,
    "cache_creation_input_tokens": 50,
    "cache_creation": {"ephemeral_1h_input_tokens": 30, "ephemeral_5m_input_tokens": 20},
    "output_tokens": 10,
}
WROTE = Usage(input_tokens=150, cache_write_tokens=50, cache_write_1h_tokens=30, output_tokens=10)


def split(spent):
    """What a group cost, by the sum of its parts."""
    return fsum(spent.usd_by_kind[kind] for kind in (*TOKEN_KINDS, "not_split"))


# ── kinds of tokens ──────────────────────────────────────────────────────────────────────────


def some_call(rng):
    """A call with any tokens, of any length, served any way, perhaps billed by the vendor itself."""
    cached, written, plain = (rng.choice([0, rng.randint(0, 300_000)]) for _ in range(3))
    hour = rng.randint(0, written)
    usage = Usage(
        input_tokens=cached + written + plain,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        cache_write_1h_tokens=hour,
        output_tokens=rng.randint(0, 60_000),
    )
    raw = {"cache_creation_input_tokens": written, "cache_creation": {"ephemeral_1h_input_tokens": hour}}
    told = rng.choice(["as priced"] * 4 + [None, rng.random()])
    return Call(usage=usage, raw=raw, tier=rng.choice([None, "standard", "batch", "odd"]), cost_usd=told)


@pytest.mark.long
def test_the_parts_of_what_calls_cost_sum_to_it_whatever_they_used(tmp_path):
    rng = random.Random(9)
    folder = folder_of(tmp_path, Asked(model=SONNET, calls=[(some_call(rng),) for _ in range(400)]))
    truth = fsum(filter(None, read_attempts(folder, ["cost_usd"])["cost_usd"].to_pylist()))

    report = counted(folder, cost_report_of)

    spent = report.whole.spent
    assert spent.usd == pytest.approx(truth, abs=1e-9)
    assert split(spent) == pytest.approx(truth, abs=1e-9)
    assert all(spent.usd_by_kind[kind] > 0 for kind in (*TOKEN_KINDS, "not_split"))
    for groups in (report.models, report.tasks, report.outcomes, report.statuses):
        assert fsum(one.spent.usd for one in groups) == pytest.approx(truth, abs=1e-9)
    for one in report.cells.values():
        assert split(one) == pytest.approx(one.usd, abs=1e-9)


def test_a_table_of_kinds_has_kinds(tmp_path):
    text = counted(folder_of(tmp_path, trials(1, Call(usage=None, cost_usd=0.0))), cost_report_of).as_text()
    assert text.startswith("$0.0000 for 1 call.")
    assert "by kind" not in text  # a table of names alone would say nothing


def test_each_kind_of_token_costs_its_own_rate(tmp_path):
    folder = folder_of(tmp_path, trials(1, Call(usage=WROTE, raw=WRITTEN), model=SONNET))
    spent = counted(folder, cost_report_of).whole.spent
    by_hand = {  # claude-sonnet-4-5: 3, 0.30, 3.75, 6 and 15 USD for a million
        "uncached_input": 100 * 3e-6,
        "cache_write_5m": 20 * 3.75e-6,
        "cache_write_1h": 30 * 6e-6,
        "output": 10 * 15e-6,
    }
    assert {kind: usd for kind, usd in spent.usd_by_kind.items() if usd} == pytest.approx(by_hand)


def test_reasoning_is_a_part_of_the_output_and_cached_tokens_of_the_input(tmp_path):
    report = counted(folder_of(tmp_path, trials(2)), cost_report_of)
    kinds, tokens = report.whole.spent.usd_by_kind, report.whole.spent.tokens_by_kind
    assert kinds["reasoning"] == pytest.approx(kinds["output"] / 3)
    assert (tokens["uncached_input"], tokens["cached_input"], tokens["output"]) == (1600, 400, 600)
    assert report.whole.spent.cached_share == 0.2
    assert "Input read from caches: 20.0%." in report.as_text()


@pytest.mark.long
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(Call(cost_usd=0.5), id="the vendor's own bill"),
        pytest.param(Call(tier="odd", cost_usd=0.5), id="a tier without a price"),
        pytest.param(Call(usage=None, cost_usd=0.5), id="no tokens told"),
    ],
)
def test_a_cost_that_the_price_table_does_not_come_to_is_not_split(tmp_path, call):
    spent = counted(folder_of(tmp_path, trials(1, call)), cost_report_of).whole.spent
    assert spent.usd_by_kind["not_split"] == 0.5
    assert not any(spent.usd_by_kind[kind] for kind in TOKEN_KINDS)


def test_a_call_served_in_another_tier_is_split_by_its_rates(tmp_path):
    spent = counted(folder_of(tmp_path, trials(1, Call(tier="flex"))), cost_report_of).whole.spent
    assert spent.usd_by_kind["not_split"] == 0
    assert spent.usd_by_kind["output"] == pytest.approx(300 * 1e-6)  # half of 2 USD for a million


@pytest.mark.long
def test_batches_stand_beside_calls_in_real_time_at_half_the_price(tmp_path):
    found = counted(
        folder_of(tmp_path / "f", trials(2, Call(mode=BATCH)), trials(2, model=SONNET)), cost_report_of
    )
    by_mode = {mode.name: mode.spent for mode in found.modes}
    (mini, _) = found.models
    assert by_mode["batch",].calls == 2
    assert by_mode["batch",].usd == mini.spent.usd == pytest.approx(Call().cost(MINI))
    assert by_mode["batch",].usd_by_kind["not_split"] == 0
    assert "Batches and real time" in found.as_text()
    assert [mode["name"] for mode in json.loads(found.as_json())["modes"]] == [["batch"], ["realtime"]]
    alone = counted(folder_of(tmp_path / "alone", trials(2)), cost_report_of)
    assert "Batches and real time" not in alone.as_text()


def test_a_trial_asked_in_a_batch_and_then_in_real_time_is_priced_by_call(tmp_path):
    """The tier of a trial is that of its answer, which the other call did not have."""
    cut = Call(mode=BATCH, usage=replace(TOKENS, output_tokens=600))
    spent = counted(folder_of(tmp_path, trials(1, cut, Call())), cost_report_of).whole.spent
    assert spent.usd_by_kind["not_split"] == 0
    assert spent.usd_by_kind["output"] == pytest.approx((600 * 1 + 300 * 2) * 1e-6)


# ── what was for nothing, and what is not known ──────────────────────────────────────────────


@pytest.mark.long
def test_failed_and_lost_calls_are_told_with_what_was_set_aside_for_the_unknown(tmp_path):
    busy = Call(status="overloaded", cost_usd=0.0)
    cut = Call(status="timeout", cost_usd=None, reserved_usd=0.75)
    gone = Call(status="lost", cost_usd=None)  # written by an earlier version
    report = counted(folder_of(tmp_path, trials(2, busy, cut, gone, Call())), cost_report_of)

    calls = {one.name[0]: one.spent.calls for one in report.statuses}
    assert calls == {"lost": 2, "ok": 2, "overloaded": 2, "timeout": 2}
    assert unknown_of(report) == {
        f"ended unseen: {MAYBE_BILLED}": (2, 0, 2),
        f"timeout: {MAYBE_BILLED}": (2, 1.5, 0),
    }
    shown = report.as_text(width=200)
    assert "Failed or lost calls: 75.0% of the calls" in shown
    assert "at most $1.5000; no upper limit for 2 of them" in shown


@pytest.mark.long
def test_what_was_set_aside_for_calls_of_unknown_cost_stands_with_what_is_missing(tmp_path):
    unpriced_tier = Call(cost_usd=None, reserved_usd=0.5)  # served in a tier that has no price
    silent = Call(usage=None, reserved_usd=0.25)
    calls = (unpriced_tier, silent), (unpriced_tier, silent), (Call(usage=None),), (Call(cost_usd=None),)
    report = counted(folder_of(tmp_path, Asked(calls=calls)), cost_report_of)
    assert unknown_of(report) == {NO_PRICE: (3, 1.0, 1), NO_TOKENS: (3, 0.5, 1)}


def unknown_of(report):
    return {one["cause"]: (one["calls"], one["reserved_usd"], one["unbounded"]) for one in report.unknown}


@pytest.mark.long
def test_the_price_covers_a_share_of_the_tokens_not_of_the_calls(tmp_path):
    large = replace(TOKENS, input_tokens=12_000)
    report = counted(
        folder_of(tmp_path, trials(1, Call(usage=large)), trials(9, Call(cost_usd=None), model=SONNET)),
        cost_report_of,
    )
    assert report.priced_share == pytest.approx(12_300 / (12_300 + 9 * 1_300))
    assert "51.2% of the known tokens have a price" in report.as_text()


def test_calls_after_the_first_of_a_trial_are_counted_with_their_dollars(tmp_path):
    report = counted(
        folder_of(
            tmp_path,
            trials(1, Call(cost_usd=0.5), Call(cost_usd=1.5)),
        ),
        cost_report_of,
    )
    spent = report.whole.spent
    assert (spent.calls_again, spent.usd_again, spent.usd) == (1, 1.5, 2.0)


def test_calls_of_open_trials_count_as_well(tmp_path):
    report = counted(
        folder_of(tmp_path, trials(2, Call(status="server_error", cost_usd=0.25))), cost_report_of
    )
    assert [(one.name, one.spent.usd) for one in report.outcomes] == [(("open",), 0.5)]


# ── for what ─────────────────────────────────────────────────────────────────────────────────


def test_a_right_answer_costs_all_that_was_spent_on_right_and_wrong_ones(tmp_path):
    calls = [(Call(cost_usd=1.0),), (Call(cost_usd=1.0),), (Call(cost_usd=4.0, text="5"),)]
    (one,) = counted(folder_of(tmp_path, Asked(calls=calls)), cost_report_of).models
    assert (one.correct, one.usd_a_correct) == (2, 3.0)


@pytest.mark.long
@pytest.mark.parametrize(("cost", "shown"), [(1.0, "-"), (None, "unknown")])
def test_the_price_of_a_right_answer_is_unknown_only_where_no_cost_is_known(tmp_path, cost, shown):
    report = counted(folder_of(tmp_path, trials(2, Call(cost_usd=cost, text="5"))), cost_report_of)
    lines = [line.split() for line in report.as_text(width=200).splitlines()]
    assert [line[-1] for line in lines if line[:2] == ["mini", "2"]] == [shown]


def test_where_costs_are_unknown_the_price_of_a_right_answer_is_a_lower_bound(tmp_path):
    lost = Call(status="lost", cost_usd=None)
    report = counted(folder_of(tmp_path, trials(1, lost, Call(cost_usd=1.0))), cost_report_of)
    assert "≥ $1.0000" in report.as_text(width=200)


@pytest.mark.long
def test_answers_taken_over_cost_nothing_here_and_make_none_cheaper(tmp_path):
    folder = folder_of(tmp_path, trials(1, Call(cost_usd=1.0)))
    with Store.open(folder, sweep="s") as store:
        (closed,) = (one for one in trials(1, model=SONNET).events() if isinstance(one, Result))
        store.keep(replace(closed, reused_from="earlier", cost_usd=0.0, attempts=0, price_source="reused"))

    report = counted(folder, cost_report_of)

    assert (report.reused, report.whole.correct, report.whole.usd_a_correct) == (1, 1, 1.0)
    assert "were reused from another sweep" in report.as_text()
    assert report.price_sources == ("genai-prices",), "nobody's price holds for what was taken over"
    assert read_trials(folder).num_rows == 2


# ── forecast and budget ──────────────────────────────────────────────────────────────────────


def forecast(trials, observed, *, low, high, usd=None):
    expected, dear = ({"p5": a, "p50": (a + b) / 2, "p95": b} for a, b in ((low, high), usd or (0, 0)))
    total = {"input_tokens": expected, "output_tokens": expected, "cost_usd": dear if usd else None}
    return {"made_at": "2026-11-20T12:00:00+00:00", "by": "pilot", "sweep": "s", "limit": None} | {
        "models": {"mini": {"trials": trials, "observed": observed, "total": total}}
    }


def with_forecasts(folder, *forecasts):
    (folder / "forecast.json").write_bytes(orjson.dumps({"version": 1, "forecasts": forecasts}))
    return folder


@pytest.mark.parametrize(
    ("planned", "low", "high", "within"),
    [(2, 500, 2_500, True), (2, 5_000, 9_000, False), (3, 500, 2_500, None)],
    ids=["as expected", "not as expected", "still open"],
)
def test_what_came_stands_beside_what_was_forecast(tmp_path, planned, low, high, within):
    kept = forecast(planned, 1, low=low, high=high)
    later = forecast(planned, 2, low=0, high=1)  # made when most was known already
    report = counted(with_forecasts(folder_of(tmp_path, trials(2)), later, kept), cost_report_of)

    found = {one.measure: one for one in report.forecasts}
    assert set(found) == {"input_tokens", "output_tokens"}
    assert (found["input_tokens"].actual, found["input_tokens"].within) == (2_000, within)
    assert found["input_tokens"].p5 == low


def dollars_came(folder, trials, low, high):
    """What a report says of a forecast of dollars."""
    report = counted(
        with_forecasts(folder, forecast(trials, 1, low=0, high=9e9, usd=(low, high))), cost_report_of
    )
    (found,) = (one for one in report.forecasts if one.measure == "cost_usd")
    assert found.others is not None
    assert json.loads(report.as_json())["forecasts"][-1]["others"] == found.others
    return found, report.as_text(width=200)


def test_a_forecast_is_held_against_the_calls_that_gave_the_answers_and_the_others_stand_beside(tmp_path):
    busy, cut = Call(status="overloaded", cost_usd=0.0), Call(status="timeout", cost_usd=None)
    folder = folder_of(tmp_path, trials(2, busy, cut, Call(cost_usd=1.0)))
    found, shown = dollars_came(folder, 2, 1.5, 2.5)
    assert (found.actual, found.partial, found.within) == (2.0, False, True)
    assert found.others == {"calls": 4, "unknown": 2, "usd": 0}
    assert "4: ≥ $0.0000, 2 of unknown cost" in shown
    assert "Forecast and actual (only the attempts that gave the answers)" in shown


@pytest.mark.long
def test_of_a_trial_asked_again_the_call_that_gave_its_answer_counts(tmp_path):
    folder = folder_of(
        tmp_path / "a", trials(2, Call(cost_usd=0.5), Call(cost_usd=2.0)), trials(1, model=SONNET)
    )
    found, shown = dollars_came(folder, 2, 3.5, 4.5)
    assert (found.actual, found.within, found.others["usd"]) == (4.0, True, 1.0)
    assert "2: $1.0000" in shown

    again = Call(cost_usd=2.0, usage=replace(TOKENS, output_tokens=9))
    events = list(trials(1, Call(cost_usd=0.5), again).events())
    with Store.open(tmp_path / "b", sweep="s") as store:  # merged: the earlier answer was the better one
        for event in events:
            store.keep(replace(event, reply=Call().reply()) if isinstance(event, Result) else event)
    assert dollars_came(tmp_path / "b", 1, 0.4, 0.6)[0].actual == 0.5


@pytest.mark.long
def test_trials_that_failed_or_were_taken_over_cost_a_forecast_nothing(tmp_path):
    asked, failed = trials(2, Call(cost_usd=1.0)), Call(status="timeout", cost_usd=None)
    folder = folder_of(tmp_path, asked, replace(trials(1, failed), closed=False))
    (request,) = requests(1, MINI)
    with Store.open(folder, sweep="s") as store:
        store.keep(result(replace(request, trial=replace(request.trial, trial_id="failed", run="s")), None))
        (taken,) = (one for one in trials(1, model=MINI).events() if isinstance(one, Result))
        store.keep(
            replace(
                taken,
                trial=replace(taken.trial, trial_id="taken"),
                reused_from="earlier",
                cost_usd=0.0,
                attempts=0,
            )
        )
    found, _ = dollars_came(folder, 4, 1.5, 2.5)
    assert (found.actual, found.partial, found.within) == (2.0, False, True)
    assert (found.others["calls"], found.others["unknown"]) == (1, 1)
    tokens = {one.measure: (one.actual, one.partial) for one in counted(folder, cost_report_of).forecasts}
    assert tokens["output_tokens"] == (900, False)


def test_a_part_of_which_no_cost_is_known_has_no_share_of_the_dollars(tmp_path):
    cut = Call(status="timeout", cost_usd=None)
    shown = counted(folder_of(tmp_path, trials(2, cut, Call())), cost_report_of).as_text(width=300)
    assert "Failed or lost calls: 50.0% of the calls, an unknown share of the cost." in shown


@pytest.mark.long
def test_a_sweep_that_was_stopped_early_is_told_so_and_not_judged(tmp_path):
    folder = folder_of(tmp_path, trials(2))
    with Store.open(folder, sweep="s") as store:
        store.keep(skipped(8, alias=MINI.alias))
    report = counted(with_forecasts(folder, forecast(3, 1, low=0, high=9_000)), cost_report_of)
    assert {one.within for one in report.forecasts} == {None}
    assert "stopped early" in report.as_text(width=300)
    assert "2 of 3, 1 skipped" in report.as_text(width=300)


@pytest.mark.long
def test_an_actual_of_which_a_part_is_unknown_is_not_judged(tmp_path):
    folder = folder_of(tmp_path, trials(1), trials(1, Call(usage=Usage(), cost_usd=None)))
    report = counted(with_forecasts(folder, forecast(2, 1, low=5_000, high=9_000)), cost_report_of)
    assert {(one.partial, one.within) for one in report.forecasts} == {(True, None)}
    assert "≥ " in report.as_text(width=200)


@pytest.mark.long
def test_a_forecast_of_a_sweep_that_has_changed_since_is_left_out(tmp_path):
    of_less = forecast(9, 1, low=1, high=2)
    now = forecast(2, 2, low=500, high=2_500)
    report = counted(with_forecasts(folder_of(tmp_path, trials(2)), of_less, now), cost_report_of)
    assert {(one.p5, one.within) for one in report.forecasts} == {(500, True)}


@pytest.mark.long
def test_each_cap_is_shown_with_what_counts_against_it(tmp_path):
    lost = Call(status="lost", cost_usd=None, reserved_usd=0.25)
    folder = folder_of(tmp_path, trials(1, lost, Call(cost_usd=1.0)))
    with Store.open(folder, sweep="s") as store:
        caps = [{"kind": "sweep", "of": "s", "limit_usd": 5.0, "models": ["mini"]}]
        store.write_manifest({"budget": caps})

    (cap,) = counted(folder, cost_report_of).budgets

    assert (cap.kind, cap.limit_usd, cap.spent_usd) == ("sweep", 5.0, 1.25)
    shown = " ".join(counted(folder, cost_report_of).as_text(width=200).split())
    assert "sweep s $1.0000 up to $0.2500 of 1 calls $5.0000 25.0%" in shown


@pytest.mark.long
def test_a_cap_that_counts_calls_priced_later_says_of_none_that_it_has_no_bound(tmp_path):
    folder = folder_of(tmp_path, trials(1, Call(cost_usd=None), Call(cost_usd=1.0)))
    with Store.open(folder, sweep="s") as store:
        cap = {"kind": "sweep", "of": "s", "limit_usd": 5.0, "models": ["mini"], "unknown_usd": 0.5}
        store.write_manifest({"budget": [cap]})

    report = counted(folder, cost_report_of)

    assert [one.spent_usd for one in report.budgets] == [1.5]
    assert "without a bound" not in report.as_text(width=200)
    assert "unbounded" not in json.loads(report.as_json())["budgets"][0]


# ── how it is shown ──────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_what_was_simulated_and_what_was_imported_is_said(tmp_path):
    made_up = folder_of(tmp_path / "a", trials(1, Call(cost_usd=1.0), model=MODEL))
    assert SIMULATED in counted(made_up, cost_report_of).as_text()
    recorded = folder_of(tmp_path / "b", trials(1, Call(cost_usd=1.0)), imported=True)
    assert "Imported" in counted(recorded, cost_report_of).as_text()
    assert SIMULATED not in counted(recorded, cost_report_of).as_text()


@pytest.mark.long
def test_where_a_model_has_several_conditions_the_report_says_that_they_stand_together(tmp_path):
    said = "A model's conditions and runs are counted together."
    for ways in (("plain",), ("plain", "brief")):
        asked = [answered.Asked(model="m", outcomes="+", condition=way) for way in ways]
        planned: dict[str, object] = {"m": {way: {"nupa": {"add": 1}} for way in ways}}
        folder = answered.folder_of(tmp_path / str(len(ways)), asked, planned=planned)
        assert (said in counted(folder, cost_report_of).as_text(width=300)) is (len(ways) > 1)


# ── replies without a count ──────────────────────────────────────────────────────────────────


def untold_of(report):
    columns = ("model", "replies", "estimated_output_tokens", "measured")
    return [tuple(one[column] for column in columns) for one in report.untold]


@pytest.mark.long
def test_tokens_that_nobody_told_are_estimated_by_the_model_s_other_replies_and_are_in_no_sum(tmp_path):
    hidden = Usage(input_tokens=100, output_tokens=40 + 7, reasoning_tokens=7)
    told = trials(1, Call(usage=hidden, text="x" * 80))
    bare = replace(told, calls=[*told.calls, *[(Call(usage=None, text="y" * 30),)] * 3])
    report = counted(folder_of(tmp_path, bare), cost_report_of)
    assert untold_of(report) == [("mini", 3, 45, True)]
    assert report.whole.spent.tokens_by_kind["output"] == 47
    assert report.whole.spent.unknown == 3
    assert "about 45" in report.as_text()
    assert "estimates; no sum includes them" in report.as_text()
    assert json.loads(report.as_json())["untold"][0]["estimated_output_tokens"] == 45


def test_without_other_replies_the_estimate_says_what_it_assumes(tmp_path):
    report = counted(folder_of(tmp_path, trials(2, Call(usage=None, text="y" * 40))), cost_report_of)
    assert untold_of(report) == [("mini", 2, 20, False)]
    assert "4.0 (assumed)" in report.as_text()


@pytest.mark.long
def test_nothing_is_estimated_where_all_is_told_nor_in_what_others_recorded(tmp_path):
    assert counted(folder_of(tmp_path / "own", trials(2)), cost_report_of).untold == ()
    bare = trials(2, Call(usage=None))
    assert counted(folder_of(tmp_path / "others", bare, imported=True), cost_report_of).untold == ()


# ── prices of the folder's sweep file ────────────────────────────────────────────────────────


def priced_by(folder, *, models):
    """The report of a folder with one call of a million input tokens, under this sweep file."""
    mini = replace(MODEL, alias="mini", provider="openai", model_id="gpt-5-mini", price=None)
    (request,) = requests(1, mini)
    reply = Reply(text="4", usage=Usage(input_tokens=1_000_000, output_tokens=0))
    with Store.open(folder, sweep="s") as store:
        store.keep(call(request, reply, cost_usd=0.25))
        store.keep(result(request, reply))
        store.write_file("sweep.yaml", models.encode())
    return counted(folder, cost_report_of)


@pytest.mark.long
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("forgotten: 1", id="a key of another version"),
        pytest.param("temperature: 0", id="a parameter that is refused today"),
    ],
)
def test_of_a_kept_sweep_file_only_the_prices_are_read(tmp_path, entry):
    models = f"models: [{{model: openai/gpt-5-mini, alias: mini, {entry}}}]"
    spent = priced_by(tmp_path, models=models).whole.spent
    assert (spent.usd, spent.usd_by_kind["not_split"]) == (0.25, 0.0)


@pytest.mark.parametrize("text", ["models: 5", "[]", "{"], ids=["no models", "no mapping", "no YAML"])
def test_a_kept_sweep_file_that_is_none_is_an_error(tmp_path, text):
    with pytest.raises(ConfigError, match=r"sweep\.yaml"):
        priced_by(tmp_path, models=text)
