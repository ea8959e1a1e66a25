"""Latency and throughput over time: minute by minute, longer where a night would have too many minutes."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest

from asyncbench.analysis.counting import counted
from asyncbench.analysis.views import MOST_BINS
from asyncbench.records import Reply
from asyncbench.store.folder import Store
from asyncbench.store.schema import ATTEMPTS
from tests.reports.answered import Asked, folder_of
from tests.store import made

AT = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
AT_MS = round(AT.timestamp() * 1000)


@pytest.fixture
def minutes(tmp_path):
    """The minutes of calls that are told by what differs."""

    def found(*rows):
        told = [
            {"trial_id": "t", "model": "m", "status": "ok", "latency_s": 1.0, **row}
            | {"started_at": AT + timedelta(seconds=row["after_s"])}
            for row in rows
        ]
        Store.open(tmp_path / "f", sweep="s").close()
        names = (
            *("trial_id", "model", "status", "started_at", "ttft_s", "latency_s", "queued_s"),
            *("output_tokens", "mode"),
        )
        table = pa.Table.from_pylist(told, pa.schema([ATTEMPTS.field(name) for name in names]))

        def count(views):
            views.put("attempts", table)
            return minutes_of(views)

        return counted(tmp_path / "f", count)

    return found


def minutes_of(views):
    query = "SELECT * EXCLUDE (began), epoch_ms(began) AS at, 60 * minutes AS seconds FROM ({})"
    return [
        SimpleNamespace(who=(row["run"], row["model"], row["condition"]), **row)
        for row in views.rows(query.format(views.sums_query("minutes")))
    ]


def test_calls_are_counted_in_the_minute_in_which_they_began(minutes):
    first, second, last = minutes({"after_s": 0}, {"after_s": 59}, {"after_s": 60}, {"after_s": 3600})
    assert (first.at, first.calls, first.seconds) == (AT_MS, 2, 60.0)
    assert (second.at, second.calls) == (AT_MS + 60_000, 1)
    assert last.at == AT_MS + 3_600_000


@pytest.mark.long
@pytest.mark.parametrize(
    ("span_s", "bin_s"), [(0, 1), (40, 1), (90, 2), (599, 10), (3599, 60), (7199, 60), (7200, 120)]
)
def test_a_short_run_has_bins_of_seconds(span_s, bin_s, minutes):
    found = minutes({"after_s": 0}, {"after_s": span_s})
    assert {one.seconds for one in found} == {bin_s}
    assert found[-1].at == AT_MS + 1000 * (span_s - span_s % bin_s)


def test_quantiles_are_exact_and_unknown_latencies_left_out(minutes):
    rows = [{"after_s": 0, "latency_s": float(n)} for n in range(1, 6)] + [{"after_s": 1, "latency_s": None}]
    (minute,) = minutes(*(row | {"after_s": 0} for row in rows))
    assert (minute.calls, minute.latency_p50_s) == (6, 3.0)
    assert minute.latency_p95_s == pytest.approx(4.8)


def test_what_nobody_told_is_unknown(minutes):
    (minute,) = minutes({"after_s": 0, "latency_s": None})
    assert (minute.latency_p50_s, minute.latency_p95_s, minute.output_tokens) == (None, None, None)


def test_models_stand_apart_and_each_in_the_order_of_time(minutes):
    rows = [{"model": "b", "after_s": 60}, {"model": "b", "after_s": 0}, {"model": "a", "after_s": 90}]
    rows.append({"model": "c", "after_s": 3600})
    assert [(one.model, one.at - AT_MS) for one in minutes(*rows)] == [
        ("a", 60_000),
        ("b", 0),
        ("b", 60_000),
        ("c", 3_600_000),
    ]


@pytest.mark.long
@pytest.mark.parametrize("hours", [3, 12, 50, 24 * 400])
def test_a_long_night_has_longer_bins_and_never_too_many(hours, minutes):
    rows = [{"after_s": 3600 * hours * n / 999} for n in range(1000)]
    minutes = minutes(*rows)
    assert len(minutes) <= MOST_BINS + 1  # the first and last may be parts
    assert sum(one.calls for one in minutes) == 1000
    assert minutes[0].seconds * len(minutes) >= 3600 * hours


def test_no_calls_are_no_minutes(minutes):
    assert minutes() == []


def test_conditions_and_runs_of_a_model_stand_apart(tmp_path):
    asked = [
        Asked(model="a", outcomes="++-"),
        Asked(model="b", outcomes="++-"),
        Asked(model="b", outcomes="+x", condition="shots"),
        Asked(model="c", outcomes="+"),
        Asked(model="c", outcomes="++", run="again"),
    ]
    found = counted(folder_of(tmp_path / "f", asked), minutes_of)
    assert {one.who: one.calls for one in found} == {
        ("night", "a", "plain"): 3,
        ("night", "b", "plain"): 3,
        ("night", "b", "shots"): 1,
        ("again", "c", "plain"): 2,
        ("night", "c", "plain"): 1,
    }


def test_calls_of_trials_that_are_open_have_no_run(tmp_path):
    asked = [Asked(model="b", outcomes="+", condition=name) for name in ("plain", "shots")]
    folder = folder_of(tmp_path / "f", asked)
    with Store.open(folder, sweep="s") as store:
        open_one = made.trial(99, alias="b")
        store.keep(made.ended(open_one, Reply(text="1")))
    assert {one.who for one in counted(folder, minutes_of)} == {
        (None, "b", None),
        ("night", "b", "plain"),
        ("night", "b", "shots"),
    }
