"""`report --prices now`: stored tokens under today's prices, as if the same calls were made today."""

import json
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import genai_prices
import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

from asyncbench.analysis.counting import counted
from asyncbench.analysis.repricing import (
    ATTEMPT_COLUMNS,
    TRIAL_COLUMNS,
    Unpriced,
    repriced as repriced_tables,
)
from asyncbench.cli import app
from asyncbench.errors import ConfigError
from asyncbench.records import Reply, Usage
from asyncbench.reports.overview import overview_of
from asyncbench.store.catalog import read_attempts, read_trials
from asyncbench.store.folder import Store
from tests.reports.test_report import NOON as NOW, call, result
from tests.world.night import MODEL, requests

LISTED = f"genai-prices {genai_prices.__version__}"
MILLION = Usage(input_tokens=1_000_000, output_tokens=0)
MINI = replace(MODEL, alias="mini", provider="openai", model_id="gpt-5-mini", price=None)
REPLY = Reply(text="4", usage=MILLION)


def night(folder, *replies, model=MINI, entry=None, **made):
    """A folder in which one model gave these replies to a question each; `entry`: its own in sweep.yaml."""
    with Store.open(folder, sweep="s") as store:
        for request, reply in zip(requests(len(replies), model), replies, strict=True):
            store.keep(call(request, reply, **made))
            store.keep(result(request, reply))
        if entry is not None:
            store.write_file("sweep.yaml", yaml.safe_dump(sweep_of(entry)).encode())
    return folder


def sweep_of(*entries):
    return {"name": "s", "problems": ["p.parquet"], "models": list(entries)}


ENTRY = {"model": "openai/gpt-5-mini", "alias": "mini"}


def repriced(folder):
    """What all calls cost today, how many are priced, and what is not."""
    report = counted(folder, partial(overview_of, prices_at=NOW))
    (spent,), (line,) = report.spending, report.suites
    assert line.cost_usd == spent["cost_usd"]
    return spent["cost_usd"], spent["priced_attempts"], report.unpriced


def test_calls_that_had_no_price_have_one_today(tmp_path):
    folder = night(tmp_path, REPLY, REPLY, entry=ENTRY)

    assert counted(folder, overview_of).spending[0]["cost_usd"] is None
    assert repriced(folder) == (0.5, 2, ())


def test_a_price_in_the_sweep_comes_first(tmp_path):
    folder = night(tmp_path, REPLY, entry=ENTRY | {"price": {"input": 3, "output": 1}}, cost_usd=0.25)

    assert repriced(folder) == (3.0, 1, ())
    assert "at the prices of sweep" in counted(folder, partial(overview_of, prices_at=NOW)).as_text()


@pytest.mark.parametrize(
    ("entry", "others"),
    [
        pytest.param({}, {"conditions": [{"name": "a", "context": "gone.txt"}]}, id="files that are gone"),
        pytest.param({"temperature": 0}, {}, id="a parameter that is refused today"),
        pytest.param({"forgotten": 1}, {"unknown": 1}, id="keys of another version"),
    ],
)
def test_of_the_sweep_only_the_prices_are_read(tmp_path, entry, others):
    folder = night(tmp_path, REPLY)
    with Store.open(folder, sweep="s") as store:
        store.write_file("sweep.yaml", yaml.safe_dump(sweep_of(ENTRY | entry) | others).encode())

    assert repriced(folder) == (0.25, 1, ())


@pytest.mark.parametrize("text", ["models: 5", "[]", "{"], ids=["no models", "no mapping", "no YAML"])
def test_a_sweep_file_that_is_none_is_an_error(tmp_path, text):
    folder = night(tmp_path, REPLY)
    with Store.open(folder, sweep="s") as store:
        store.write_file("sweep.yaml", text.encode())

    with pytest.raises(ConfigError, match=r"sweep\.yaml"):
        counted(folder, partial(overview_of, prices_at=NOW))


@pytest.mark.parametrize(
    ("reply", "usd"),
    [
        pytest.param(replace(REPLY, service_tier="flex"), 0.125, id="the tier that served it"),
        pytest.param(replace(REPLY, service_tier="default"), 0.25, id="the standard tier"),
        pytest.param(
            replace(REPLY, usage=Usage(input_tokens=10**6, cached_input_tokens=10**6, output_tokens=0)),
            0.025,
            id="cached tokens",
        ),
        pytest.param(replace(REPLY, vendor_cost_usd=7.0), 0.25, id="the vendor's bill was of that day"),
    ],
)
def test_every_call_has_the_price_of_its_kind(tmp_path, reply, usd):
    assert repriced(night(tmp_path, reply, entry=ENTRY, cost_usd=1.0)) == (usd, 1, ())


def test_tokens_written_to_the_cache_for_an_hour_are_found_in_the_raw_account(tmp_path):
    raw = {
        "input_tokens": 0,
        "cache_creation_input_tokens": 10**6,
        "cache_creation": {"ephemeral_1h_input_tokens": 10**6},
        "output_tokens": 0,
        "service_tier": "standard",
    }
    usage = Usage(input_tokens=10**6, cache_write_tokens=10**6, cache_write_1h_tokens=10**6, output_tokens=0)
    model = replace(MINI, provider="anthropic", model_id="claude-sonnet-4-6")
    reply = Reply(text="4", usage=usage, raw_usage=raw)
    folder = night(
        tmp_path, reply, model=model, entry={"model": "anthropic/claude-sonnet-4-6", "alias": "mini"}
    )

    assert repriced(folder) == (6.0, 1, ())


def test_a_speed_told_in_the_raw_account_sets_the_price(tmp_path):
    model = replace(MINI, provider="anthropic", model_id="claude-opus-5-5")
    reply = replace(REPLY, service_tier="standard", raw_usage={"speed": "fast"})
    folder = night(
        tmp_path, reply, model=model, entry={"model": "anthropic/claude-opus-5-5", "alias": "mini"}
    )

    assert repriced(folder) == (8.0, 1, ())


@pytest.mark.parametrize(("hour", "usd"), [(12, 0.27), (20, 0.135)])
def test_the_day_is_today_and_the_hour_is_that_of_the_call(tmp_path, hour, usd):
    model = replace(MINI, provider="deepseek", model_id="deepseek-chat")
    entry = {"model": "deepseek/deepseek-chat", "alias": "mini"}
    made_at = datetime(2024, 6, 1, hour, tzinfo=UTC)

    assert repriced(night(tmp_path, REPLY, model=model, entry=entry, made_at=made_at)) == (usd, 1, ())


@pytest.mark.long
@pytest.mark.parametrize(
    ("reply", "entry", "why"),
    [
        pytest.param(
            replace(REPLY, service_tier="scale"), ENTRY, "no price is known for tier 'scale'", id="its tier"
        ),
        pytest.param(
            REPLY, ENTRY | {"base_url": "http://localhost:8000/v1"}, "no price is known", id="somebody else's"
        ),
        pytest.param(replace(REPLY, usage=None), ENTRY, "its tokens are unknown", id="no usage"),
        pytest.param(
            REPLY,
            ENTRY | {"alias": "other"},
            "no longer in the folder's sweep.yaml",
            id="gone from the sweep",
        ),
        pytest.param(
            REPLY,
            {"model": "openai/gpt-5", "alias": "mini"},
            "no longer in the folder's sweep.yaml",
            id="another model under its alias",
        ),
    ],
)
def test_what_has_no_price_today_is_shown_with_the_reason(tmp_path, reply, entry, why):
    folder = night(tmp_path, reply, entry=entry, cost_usd=1.0)

    assert repriced(folder) == (None, 0, (Unpriced(model="mini", why=why, calls=1),))
    for text in (
        counted(folder, partial(overview_of, prices_at=NOW)).as_text(),
        counted(folder, partial(overview_of, prices_at=NOW)).as_markdown(),
    ):
        assert "Attempts without a price today" in text
        assert why in text


def test_a_refused_call_still_costs_nothing_and_a_lost_one_nobody_knows(tmp_path):
    (refused, lost) = requests(2, MINI)
    folder = night(tmp_path, entry=ENTRY)
    with Store.open(folder, sweep="s") as store:
        store.keep(call(refused, None, status="rate_limited", cost_usd=0.0))
        store.keep(call(refused, REPLY, number=2))
        store.keep(result(refused, REPLY))
        store.keep(call(lost, None, status="lost"))
        store.keep(call(lost, REPLY, number=2))
        store.keep(result(lost, REPLY))
    report = counted(folder, partial(overview_of, prices_at=NOW))

    assert [(one.cost_usd, one.priced_trials) for one in report.suites] == [(0.25, 1)]
    assert [(one["cost_usd"], one["priced_attempts"]) for one in report.spending] == [(0.5, 3)]
    assert report.unpriced == (Unpriced(model="mini", why="unknown whether it was billed", calls=1),)


def test_a_call_of_a_trial_that_is_still_open_is_priced_too(tmp_path):
    folder = night(tmp_path, REPLY, entry=ENTRY)
    with Store.open(folder, sweep="s") as store:
        store.keep(call(requests(2, MINI)[1], REPLY))
    report = counted(folder, partial(overview_of, prices_at=NOW))

    assert [(one.cost_usd, one.trials) for one in report.suites] == [(0.25, 1)]
    assert [(one["cost_usd"], one["attempts"]) for one in report.spending] == [(0.5, 2)]


def test_imported_trials_whose_calls_nobody_wrote_down_are_priced_by_their_tokens(tmp_path):
    with Store.open(tmp_path, sweep="s", imported=True) as store:
        for request in requests(2, MINI):
            store.keep(result(request, replace(REPLY, service_tier="flex")))
    report = counted(tmp_path, partial(overview_of, prices_at=NOW))

    assert [(one.cost_usd, one.priced_trials) for one in report.suites] == [(0.25, 2)]
    assert report.spending == ()


def test_imported_trials_of_an_unknown_provider_have_no_price(tmp_path):
    with Store.open(tmp_path, sweep="s", imported=True) as store:
        store.keep(result(requests(1, replace(MINI, provider="somebody"))[0], REPLY))

    assert counted(tmp_path, partial(overview_of, prices_at=NOW)).unpriced == (
        Unpriced(model="mini", why="no price is known", calls=1),
    )


@pytest.mark.long
def test_rows_are_not_held_all_at_once(tmp_path):
    folder, count = night(tmp_path, REPLY, entry=ENTRY), 20_000
    one = read_attempts(folder, columns=list(ATTEMPT_COLUMNS))
    attempts = one.take(pa.array([0] * count))
    trials = read_trials(folder, columns=list(TRIAL_COLUMNS))
    tracemalloc.start()
    counted(folder, lambda views: repriced_tables(views, trials, attempts, now=NOW))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 400 * count  # bytes; a row as a dict takes more than 1,000


def test_everything_but_the_cost_is_as_it_was(tmp_path):
    folder = night(tmp_path, REPLY, Reply(text="5"), entry=ENTRY)
    before, after = (counted(folder, partial(overview_of, prices_at=at)) for at in (None, NOW))

    assert [replace(line, cost_usd=None, priced_trials=0) for line in after.suites + after.tasks] == [
        replace(line, cost_usd=None, priced_trials=0) for line in before.suites + before.tasks
    ]
    assert before.prices is None
    assert "Costs are not those of the run" not in before.as_text()


def test_the_folder_is_not_touched(tmp_path):
    folder = night(tmp_path, REPLY, entry=ENTRY)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in _files(folder)}
    counted(folder, partial(overview_of, prices_at=NOW))

    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in _files(folder)} == before


def _files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_report_says_whose_prices_they_are_and_of_which_day(tmp_path):
    folder = night(tmp_path, REPLY, entry=ENTRY)
    report = counted(folder, partial(overview_of, prices_at=NOW))
    said = f"they are what the same tokens would cost on 2026-11-20, at the prices of {LISTED}"

    assert said in report.as_text()
    assert said in report.as_markdown()
    assert json.loads(report.as_json())["prices"] == said


def test_an_empty_folder_has_an_empty_report(tmp_path):
    report = counted(night(tmp_path), partial(overview_of, prices_at=NOW))

    assert (report.suites, report.spending, report.unpriced) == ((), (), ())


def test_no_other_day_can_be_asked_for(tmp_path):
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--prices", "yesterday"])

    assert isinstance(done.exception, ConfigError)
    assert "the only choice is `now`" in str(done.exception)
