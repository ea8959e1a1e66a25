"""`reconcile`: a folder beside a bill. A faithful bill has no gap; a gap is told by model and day."""

import asyncio
import csv
import io
import json
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
import yaml

from asyncbench.errors import ConfigError
from asyncbench.records import BATCH, Sent
from asyncbench.reports.reconciliation.comparing import reconcile
from asyncbench.reports.reconciliation.reading import FORMATS, count_of, day_of, read_export, usd_of
from asyncbench.run.sweep_run import run_sweep
from asyncbench.store.catalog import read_attempts
from asyncbench.store.folder import Store
from tests.commands import asyncbench_here
from tests.reports.paid import MINI, NOON, SONNET, Asked, Call, folder_of, trials
from tests.sweep_files import entry, problem_set, simulator, sweep

HEAD = ("date", "model", "cost_usd", "input_tokens", "cached_input_tokens", "output_tokens", "requests")


def billed(folder, *, shift_h=0.0, names=None):
    """What a provider would say of a folder's calls, in lines of day × model, were all as it has it."""
    sums: dict[tuple[str, str], Any] = {}
    for row in read_attempts(folder).to_pylist():
        if row["status"] == "ok":
            day = (row["started_at"] + timedelta(hours=shift_h)).date().isoformat()
            name = (names or {}).get(row["model"], row["model"])
            line = sums.setdefault((day, name), Counter())
            line["cost_usd"] += row["cost_usd"] or 0.0
            for kind in ("input_tokens", "cached_input_tokens", "output_tokens"):
                line[kind] += row[kind] or 0
            line["requests"] += 1
    return [{"date": day, "model": name, **line} for (day, name), line in sums.items()]


def written(path, lines, head=HEAD):
    """Lines as a CSV file."""
    out = io.StringIO()
    writer = csv.DictWriter(out, head, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(lines)
    path.write_text(out.getvalue())
    return path


def compared(folder, lines, *, head=HEAD, **options):
    return reconcile(written(folder.with_suffix(".csv"), lines, head), folder, **options)


def scaled(lines, **factors):
    return [{**line, **{name: line[name] * by for name, by in factors.items()}} for line in lines]


def two_days(path, *more, model=MINI, others=(), count=12):
    """A folder of calls of one model, spread over 36 hours from 12:00 on, and whatever others and more."""
    calls = [(Call(at=NOON + timedelta(hours=36 * n / count)),) for n in range(count)] + [
        (call,) for call in others
    ]
    return folder_of(path / "night", Asked(model=model, calls=calls), *more)


# ── no gap ───────────────────────────────────────────────────────────────────────────────────


def test_a_faithful_bill_has_no_gap(tmp_path):
    folder = two_days(tmp_path, trials(5, model=SONNET))
    found = compared(folder, billed(folder))
    assert all(pair.gap(name) == 0 for pair in found.days for name in ("usd", "input_tokens", "output"))
    assert found.close
    assert {pair.day for pair in found.days} == {date(2026, 11, 20), date(2026, 11, 21)}


@pytest.mark.long
def test_a_faithful_bill_of_a_run_against_the_simulator_has_no_gap(tmp_path):
    problems, out = problem_set(tmp_path, trials=1), tmp_path / "out"
    with simulator(problems, faults=("429=0.1", "500=0.1")) as server:
        price = {"input": 1.0, "output": 5.0}
        model = entry(server, "simulated-http/noisy", price=price, retry={"attempts": 20})
        asyncio.run(run_sweep(sweep(out, problems, model)))

    done = asyncbench_here("reconcile", written(tmp_path / "bill.csv", billed(out)), out, "--json")

    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert told["simulated"]
    assert told["gap_shares"] == {"usd": 0.0, "input_tokens": 0.0, "output": 0.0}
    assert told["whole"]["theirs"]["requests"] == 72
    assert told["whole"]["ours"]["calls"] > 72  # refused ones cost nothing


# ── gaps ─────────────────────────────────────────────────────────────────────────────────────


LOST = Call(status="lost", cost_usd=None, reserved_usd=0.01)
MINI_2 = replace(MINI, alias="mini-again")


def with_more(lines, **more):
    return [{**lines[0], **{name: lines[0][name] + by for name, by in more.items()}}, *lines[1:]]


def test_a_gap_is_told_by_model_and_by_day(tmp_path):
    folder = two_days(tmp_path, trials(5, model=SONNET))
    lines = billed(folder)
    found = compared(folder, with_more(lines, cost_usd=0.05))
    assert not found.close
    gaps = {(pair.model, str(pair.day)): pair.gap("usd") for pair in found.days}
    first = (lines[0]["model"], lines[0]["date"])
    assert gaps.pop(first) == pytest.approx(0.05)
    assert set(gaps.values()) == {0.0}
    assert [pair.model for pair in found.models if pair.gap("usd")] == [first[0]]


@pytest.mark.long
def test_calls_of_unknown_cost_are_counted_beside_the_sums(tmp_path):
    sent = Sent(trial_id="x", attempt=1, model="mini", provider="openai", started_at=NOON.timestamp())
    cut = Call(status="timeout", cost_usd=None, reserved_usd=0.01)
    folder = two_days(tmp_path, others=[LOST, cut])
    folder_of(folder, sent=[sent])
    (model,) = json.loads(compared(folder, billed(folder)).as_json())["models"]
    assert model["ours"]["unknown_calls"] == {"lost": 2, "cut": 1, "priceless": 0}
    priceless = folder_of(tmp_path / "priceless", trials(5, Call(cost_usd=None)))
    (model,) = json.loads(compared(priceless, billed(priceless)).as_json())["models"]
    assert model["ours"]["unknown_calls"]["priceless"] == 5


def test_requests_of_batches_are_counted(tmp_path):
    folder = folder_of(tmp_path / "night", trials(20, Call(mode=BATCH)), trials(5, model=SONNET))
    found = compared(folder, billed(folder))
    assert found.close
    assert "20 requests were in batches: each counts when its batch was created" in found.as_text()


def test_days_of_another_time_zone_close_when_they_are_shifted(tmp_path):
    folder = two_days(tmp_path, count=36)
    lines = billed(folder, shift_h=-8)
    found = compared(folder, lines)
    assert found.close  # of the whole nothing is missing
    assert any(pair.gap("usd") for pair in found.days)
    assert not any(pair.gap("usd") for pair in compared(folder, lines, utc_offset_h=-8).days)


OWN_WORDS = {"date": "day", "cost_usd": "cost", "input_tokens": "input", "output_tokens": "output"}


@pytest.mark.long
@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
def test_columns_named_as_columns_names_them_are_read_and_others_told(tmp_path, form):
    folder = two_days(tmp_path)
    lines = [
        {OWN_WORDS.get(name, name): value for name, value in one.items() if name != "cached_input_tokens"}
        | {"team": "night"}
        for one in billed(folder)
    ]
    bill = tmp_path / f"bill.{form}"
    if form == "csv":
        written(bill, lines, tuple(lines[0]))
    else:
        bill.write_text(json.dumps(lines) if form == "json" else "\n".join(map(json.dumps, lines)))
    found = reconcile(bill, folder)
    assert {name: found.gap_share(name) for name in ("usd", "input_tokens", "output")} == {
        "usd": 0.0,
        "input_tokens": 0.0,
        "output": 0.0,
    }
    assert found.whole.theirs.requests == 12
    told = found.as_markdown()
    assert "input from input" in told
    assert "Columns not read: team. Name those that count with --columns" in told.replace("\\", "")


# ── which is which ───────────────────────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    ["mini", "gpt-5-mini", "openai/gpt-5-mini", "gpt-5-mini-2025-08-07", "GPT-5 mini"],
)
def test_a_model_is_found_by_any_of_its_names(tmp_path, name):
    folder = folder_of(tmp_path / "night", trials(3, Call(served="gpt-5-mini-2025-08-07")))
    found = compared(folder, billed(folder, names={"mini": name}))
    assert [pair.model for pair in found.models] == [name]


def test_aliases_of_one_model_are_billed_as_one(tmp_path):
    folder = folder_of(tmp_path / "night", trials(3), trials(2, model=MINI_2))
    lines = billed(folder, names={"mini": "gpt-5-mini", "mini-again": "gpt-5-mini"})
    assert compared(folder, lines).close


def test_a_model_of_which_no_answer_came_is_known_from_the_sweep(tmp_path):
    folder = folder_of(tmp_path / "night", trials(3), trials(1, LOST, model=MINI_2))
    with Store.open(folder, sweep="s") as store:
        models = [{"model": "openai/gpt-5-mini", "alias": alias} for alias in ("mini", "mini-again")]
        store.write_file("sweep.yaml", yaml.safe_dump({"models": models}).encode())
    found = compared(folder, billed(folder, names={"mini": "gpt-5-mini"}))
    assert found.whole.ours.lost_calls == 1
    assert [pair.model for pair in found.models] == ["gpt-5-mini"]


@pytest.mark.long
def test_a_name_that_nobody_would_guess_can_be_given(tmp_path):
    folder = folder_of(tmp_path / "night", trials(3))
    lines = billed(folder, names={"mini": "deployment-7"})
    with pytest.raises(ConfigError, match="--model NAME=ALIAS"):
        compared(folder, lines)
    assert compared(folder, lines, models=["deployment-7=mini"]).close


@pytest.mark.long
@pytest.mark.parametrize("given", ["x=mini", "gpt-5-mini=nobody", "gpt-5-mini", "=mini"])
def test_a_name_that_is_in_neither_is_refused(tmp_path, given):
    folder = folder_of(tmp_path / "night", trials(3))
    with pytest.raises(ConfigError, match="--model"):
        compared(folder, billed(folder, names={"mini": "gpt-5-mini"}), models=[given])


def test_models_never_asked_and_far_days_are_left_out_and_named(tmp_path):
    folder = two_days(tmp_path)
    others = [
        {"date": "2026-11-20", "model": "o9", "cost_usd": 7, "requests": 1},
        {"date": "2026-01-01", "model": "mini", "cost_usd": 8, "requests": 1},
    ]
    found = compared(folder, [*billed(folder), *others])
    assert found.close
    assert {(one.model, one.told.usd) for one in found.left_out} == {("o9", 7.0), ("mini", 8.0)}


def test_what_is_left_out_is_named_in_dollars_beside_the_verdict(tmp_path):
    folder = two_days(tmp_path)
    other = {"date": "2026-11-20", "model": "o9", "cost_usd": 7, "requests": 1}
    assert "$7.0000 of the file is not compared" in compared(folder, [*billed(folder), other]).as_text(
        width=300
    )


@pytest.mark.parametrize(
    "line",
    [
        {"date": "2025-01-01", "model": "mini", "cost_usd": 8},
        {"date": "2026-11-20", "model": "mini", "requests": 1},
    ],
    ids=["another month", "no amounts"],
)
def test_a_bill_of_which_nothing_is_compared_is_refused(tmp_path, line):
    with pytest.raises(ConfigError, match=r"nothing in it can be compared. It covers .*2026-11-2"):
        compared(two_days(tmp_path), [line])


def test_models_of_a_provider_that_does_not_bill_here_are_left_out(tmp_path):
    folder = folder_of(tmp_path / "night", trials(3), trials(3, model=SONNET))
    found = compared(folder, [line for line in billed(folder) if line["model"] == "mini"])
    assert found.close
    assert [one.model for one in found.left_out] == ["sonnet"]


def test_a_bill_without_models_is_compared_by_day_for_one_provider(tmp_path):
    folder = folder_of(tmp_path / "night", trials(3), trials(3, model=SONNET))
    lines = [line for line in billed(folder) if line["model"] == "mini"]
    assert compared(folder, lines, head=("date", "cost_usd"), provider="openai").close
    with pytest.raises(ConfigError, match="has no calls to it"):
        compared(folder, lines, provider="mistral")


def test_gaps_of_two_models_do_not_cancel_out(tmp_path):
    folder = folder_of(tmp_path / "night", trials(3), trials(3, model=SONNET))
    first, second = billed(folder)
    swapped = [{**first, "cost_usd": second["cost_usd"]}, {**second, "cost_usd": first["cost_usd"]}]
    found = compared(folder, swapped)
    assert found.whole.gap("usd") == 0
    assert not found.close


# ── files ────────────────────────────────────────────────────────────────────────────────────

DAY_S = 1_795_132_800  # 2026-11-20
EXPORTS: dict[str, Any] = {
    "OpenAI completions usage": {
        "data": [
            {
                "start_time": DAY_S,
                "end_time": DAY_S + 86_400,
                "results": [
                    {
                        "model": "gpt-5-mini",
                        "input_tokens": 3_000,
                        "input_cached_tokens": 600,
                        "output_tokens": 900,
                        "num_model_requests": 3,
                    }
                ],
            },
            {"start_time": DAY_S + 86_400, "end_time": DAY_S + 172_800, "results": []},
        ],
        "has_more": False,
    },
    "OpenAI costs": {
        "data": [
            {
                "start_time": DAY_S,
                "results": [
                    {"amount": {"value": usd, "currency": "usd"}, "line_item": f"gpt-5-mini, {kind}"}
                    for kind, usd in (("input", 0.0006), ("cached input", 1.5e-05), ("output", 0.0018))
                ],
            }
        ]
    },
    "OpenAI costs as CSV": (
        "start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,line_item,project_id,"
        "organization_id,organization_name\n"
        f"{DAY_S - 86_400},{DAY_S},2026-11-19T00:00:00+00:00,2026-11-20T00:00:00+00:00,,,,,,\n"
        f"{DAY_S},{DAY_S + 86_400},2026-11-20T00:00:00+00:00,2026-11-21T00:00:00+00:00,0.000615000000,usd,"
        '"gpt-5-mini-2025-08-07, input",,org-x,Personal\n'
        f"{DAY_S},{DAY_S + 86_400},2026-11-20T00:00:00+00:00,2026-11-21T00:00:00+00:00,1.8e-03,USD,"
        '"gpt-5-mini-2025-08-07, output",proj_1,org-x,Personal\n'
    ),
    "Anthropic Console tokens": (
        "usage_date_utc,model_version,api_key,workspace,usage_type,context_window,usage_input_tokens_no_cache,"
        "usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,"
        "usage_output_tokens,web_search_count,inference_geo,speed\n"
        "2026-11-20,claude-sonnet-4-5-20250929,k,Default,standard,≤ 200k,2400,0,0,600,900,0,global,\n"
        "2026-08-01,claude-sonnet-4-5-20250929,k,Default,standard,≤ 200k,9000000,0,0,0,9000000,0,global,\n"
    ),
    "Anthropic Console cost": (
        "usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd,list_price_usd,"
        "cost_type,inference_geo,speed,api_key_id,api_key_status\n"
        "2026-11-20,Claude Sonnet 4.5,Default,k,message,≤ 200k,input_no_cache,0.00738,1,token,,,a,active\n"
        "2026-11-20,Claude Sonnet 4.5,Default,k,message,≤ 200k,output,0.0135,0.0135,token,,,a,active\n"
        "2026-08-01,Claude Sonnet 4.5,Default,k,message,≤ 200k,output,5,5,token,,,a,active\n"
    ),
    "OpenRouter generations": (
        "generation_id,created_at,cost_total,cost_cache,byok_usage_inference,tokens_prompt,tokens_completion,"
        "tokens_reasoning,tokens_cached,model_permaslug,provider_name\n"
        "gen-1,2026-11-20 12:00:01.2,0.0001,0,0.002315,3000,900,300,600,openai/gpt-5-mini-2025-08-07,OpenAI\n"
    ),
    "Anthropic messages usage": {
        "data": [
            {
                "starting_at": "2026-11-20T00:00:00Z",
                "ending_at": "2026-11-21T00:00:00Z",
                "results": [
                    {
                        "model": "claude-sonnet-4-5-20250929",
                        "uncached_input_tokens": 2_400,
                        "cache_read_input_tokens": 600,
                        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                        "output_tokens": 900,
                        "service_tier": "standard",
                    }
                ],
            }
        ],
        "has_more": False,
        "next_page": None,
    },
    "Anthropic cost report": {
        "data": [
            {
                "starting_at": "2026-11-20T00:00:00Z",
                "results": [{"amount": "2.088", "currency": "USD", "model": "claude-sonnet-4-5"}],
            }
        ]
    },
    "OpenRouter activity": {
        "data": [
            {
                "date": "2026-11-20",
                "model": "openai/gpt-5-mini",
                "model_permaslug": "openai/gpt-5-mini-2025-08-07",
                "usage": 0.0001,
                "byok_usage_inference": 0.002315,
                "requests": 3,
                "prompt_tokens": 3_000,
                "completion_tokens": 900,
                "reasoning_tokens": 300,
            }
        ]
    },
}


@pytest.mark.long
@pytest.mark.parametrize("name", EXPORTS)
def test_a_known_export_is_read_without_being_told_its_columns(tmp_path, name):
    folder = folder_of(tmp_path / "night", trials(3), trials(3, model=SONNET))
    path = tmp_path / "bill"
    export = EXPORTS[name]
    path.write_text(export if isinstance(export, str) else json.dumps(export))
    found = reconcile(path, folder)
    assert found.export.format == name
    assert found.close, found.as_text()


def test_keys_within_keys_without_end_are_no_figures(tmp_path):
    path = tmp_path / "bill.json"
    path.write_text(
        '{"data": [{"date": "2026-11-20", "cost": 1, "x": ' + '{"x":' * 500 + "1" + "}" * 501 + "]}"
    )
    assert read_export(path).lines[0].usd == 1


def test_every_known_export_is_tried():
    assert set(EXPORTS) == {one.name for one in FORMATS}


@pytest.mark.parametrize(
    ("head", "whose"),
    [
        (
            "Date,Service description,Service ID,SKU description,SKU ID,Usage amount,Subtotal ($)",
            "Google Cloud",
        ),
        ("InvoiceSectionName,Date,MeterCategory,MeterName,Quantity,CostInBillingCurrency", "Azure"),
        ("lineItem/UsageStartDate,lineItem/ProductCode,lineItem/UnblendedCost", "AWS"),
        ("BilledCost,BillingCurrency,ChargePeriodStart,ServiceName", "a FOCUS cost export"),
    ],
)
def test_an_export_that_names_no_model_is_named_with_the_way_out(head, whose, tmp_path):
    (tmp_path / "bill.csv").write_text(f"{head}\n{','.join('1' for _ in head.split(','))}\n")
    with pytest.raises(ConfigError, match=rf"this is .*{whose}.* bills by meter, not by model\. Sum it"):
        read_export(tmp_path / "bill.csv")


def test_columns_can_be_named_and_added_up(tmp_path):
    folder = folder_of(tmp_path / "night", trials(3))
    path = tmp_path / "bill.csv"
    path.write_text("Tag;Modell;Preis;Steuer\n2026-11-20;gpt-5-mini;$0.002;0.000415 USD\n")
    assert reconcile(path, folder, columns="day=Tag,model=Modell,cost=Preis+Steuer").close


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        pytest.param(
            "start_time,amount_value,amount_currency,line_item\n"
            f'{DAY_S},0.002415,usd,"gpt-5-mini, all"\n{DAY_S},,,\n',
            "day=start_time,cost=amount_value,currency=amount_currency,line_item=line_item",
            id="OpenAI",
        ),
        pytest.param(
            "usage_date_utc,model,token_type,cost_usd\n2026-11-20,Claude Sonnet 4.5,input_no_cache,0.0072\n"
            "2026-11-20,Claude Sonnet 4.5,other,0.01368\n",
            "day=usage_date_utc,model=model,cost=cost_usd",
            id="Anthropic",
        ),
    ],
)
def test_csv_of_a_console_is_read_by_the_columns_that_are_named(tmp_path, text, columns):
    folder = folder_of(tmp_path / "night", trials(3), trials(3, model=SONNET))
    path = tmp_path / "bill.csv"
    path.write_text(text)
    assert reconcile(path, folder, columns=columns).close


def test_a_list_of_pages_is_read_as_one_and_a_page_that_is_not_the_last_refused(tmp_path):
    page = EXPORTS["OpenAI completions usage"]
    path = tmp_path / "bill.json"
    path.write_text(json.dumps([page, page]))
    assert [line.told.input_tokens for line in read_export(path).lines] == [3_000, 3_000]
    path.write_text(json.dumps({**page, "has_more": True}))
    with pytest.raises(ConfigError, match="has_more is true"):
        read_export(path)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_json_lines_are_read_as_a_list_of_them(tmp_path, count, end):
    path, line = tmp_path / "bill.jsonl", json.dumps({"date": "2026-11-20", "model": "m", "cost_usd": 0.5})
    path.write_bytes((line + end).encode() * count)
    assert [line.usd for line in read_export(path).lines] == [Decimal("0.5")] * count
    page = EXPORTS["OpenAI completions usage"]
    path.write_text("\n".join([json.dumps(page)] * count))
    assert [line.told.input_tokens for line in read_export(path).lines] == [3_000] * count


def test_a_line_of_json_that_is_none_is_named(tmp_path):
    path = tmp_path / "bill.jsonl"
    path.write_text('{"date": "2026-11-20", "cost_usd": 1}\n\n{"date": \n')
    with pytest.raises(ConfigError, match=r"line 3: .*. Give JSON, JSON lines or CSV"):
        read_export(path)
    path.write_text('{\n"data": [\n{"date": 1},\n}')
    with pytest.raises(ConfigError, match="line 4"):
        read_export(path)


@pytest.mark.parametrize(
    ("value", "usd"),
    [
        ("$1,234.56", "1234.56"),
        ("1,234,567", "1234567"),
        ("0.5 USD", "0.5"),
        ("-2.5", "-2.5"),
        (1e-07, "1e-7"),
    ],
)
def test_dollars_are_read_as_they_are_written(value, usd):
    assert usd_of(value) == Decimal(usd)


@pytest.mark.parametrize(
    "value",
    ["1,234", "1.234,56", "12,34.5", "€5", "5 EUR", "NaN", "inf", "1e9999", "", "0x10", True, "٣", "$"],
)
def test_an_amount_that_could_mean_two_things_or_none_is_refused(value):
    with pytest.raises(ValueError, match="write US dollars"):
        usd_of(value)


@pytest.mark.parametrize(
    ("value", "count"), [("12,345", 12_345), ("12345", 12_345), (7, 7), ("3.0", 3), (2.0, 2)]
)
def test_counts_are_whole_numbers(value, count):
    assert count_of(value) == count


@pytest.mark.parametrize("value", ["1.5", "-3", "1.234", "12,34", "many", True, "1" * 80, "1e99"])
def test_no_count_is_refused(value):
    with pytest.raises(ValueError, match="write a whole number"):
        count_of(value)


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-20",
        "2026-11-20T23:59:59",
        "2026-11-19T18:00:00-08:00",
        "2026-11-20 00:00:00+00:00",
        DAY_S,
        f"{DAY_S}.5",
    ],
)
def test_days_are_those_of_utc(value):
    assert day_of(value) == date(2026, 11, 20)


@pytest.mark.parametrize(
    ("value", "shift_h"),
    [("2026-11-20T00:00:00+09:00", 9), ("1795100400", 9), ("2026-11-20", 9), ("2026-11-20T23:00", -8)],
)
def test_a_moment_belongs_to_the_day_on_which_it_falls_where_the_days_are(value, shift_h):
    assert day_of(value, shift_h) == date(2026, 11, 20)


@pytest.mark.parametrize(
    "value", ["11/20/2026", "20.11.2026", "2026-13-01", "yesterday", "20261120", "", "0001-01-01T00:00+05:00"]
)
def test_a_day_that_could_be_another_is_refused(value):
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        day_of(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("date,model,cost_usd\n2026-11-20,m,0.5\n2026-11-20,m,1,5\n", "line 3: 4 cells, but the head has 3"),
        ('date,model,cost_usd\n2026-11-20,m,"1,5"\n', r"line 2, column 'cost_usd': '1,5': write US dollars"),
        ("date,model,cost_usd\n20.11.26,m,1\n", "line 2, column 'date': '20.11.26': write YYYY-MM-DD"),
        ("date,model,cost_usd\n,m,1\n", "line 2, column 'date': the cell is empty"),
        ("date,date,cost_usd\n1,2,3\n", "column 'date' is there twice"),
        ("a,b\n1,2\n", "--columns day="),
        ("date,cost_usd\n", "has no lines of usage"),
        ("", "the file is empty"),
        ("[1]", r"data\[0\] is 1, not an object"),
        ('{"data": 5}', "is not a list"),
        ("{", "line 1"),
        ('[{"date": "2026-11-20", "cost": 1, "currency": "eur"}]', None),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_place_and_value(tmp_path, text, said):
    path = tmp_path / "bill"
    path.write_text(text)
    if said is None:
        with pytest.raises(ConfigError, match="'eur' is not USD"):
            read_export(path, columns="day=date,cost=cost,currency=currency")
        return
    with pytest.raises(ConfigError, match=said):
        read_export(path)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("day=when", "there is no column 'when'"),
        ("when=date", "WHAT is one of: day, model"),
        ("day=date", "nothing to compare"),
        ("day=date,day=model", "is there twice"),
    ],
)
def test_columns_that_cannot_be_are_refused(tmp_path, columns, said):
    with pytest.raises(ConfigError, match=said):
        read_export(written(tmp_path / "bill.csv", [{"date": "2026-11-20"}]), columns=columns)


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="Name a file that can be read"):
        read_export(tmp_path / "none.csv")
    (tmp_path / "bytes").write_bytes(b"date,usd\n\xff,1\n")
    with pytest.raises(ConfigError, match="line 2: it is not UTF-8"):
        read_export(tmp_path / "bytes")


# ── the command ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_the_exit_code_tells_whether_the_gap_is_above_the_tolerance(tmp_path):
    folder = two_days(tmp_path)
    bill = written(tmp_path / "bill.csv", scaled(billed(folder), cost_usd=1.02))
    assert asyncbench_here("reconcile", bill, folder, "--tolerance", "3").returncode == 0
    done = asyncbench_here("reconcile", bill, folder)
    assert done.returncode == 3
    assert "ABOVE the tolerance" in done.stdout
    assert "### By model" in asyncbench_here("reconcile", bill, folder, "--markdown").stdout
    told = json.loads(asyncbench_here("reconcile", bill, folder, "--json").stdout)
    assert told["gap_shares"]["usd"] == pytest.approx(0.02 / 1.02)
    assert asyncbench_here("reconcile", tmp_path / "none", folder).returncode == 2


def test_names_from_the_file_stand_only_in_cells(tmp_path):
    folder = two_days(tmp_path)
    odd = {"date": "2026-11-20", "model": "x|y[red]", "cost_usd": 1}
    shown = compared(folder, [*billed(folder), odd]).as_markdown()
    assert "x\\|y\\[red\\]" in shown


def test_a_folder_without_calls_cannot_be_compared(tmp_path):
    folder = folder_of(tmp_path / "night")
    with pytest.raises(ConfigError, match="has no calls to compare"):
        compared(folder, [{"date": "2026-11-20", "model": "m", "cost_usd": 1}])


def test_the_command_explains_itself_with_an_example():
    told = asyncbench_here("reconcile", "--help").stdout
    assert "asyncbench reconcile usage.json results/overnight" in told
