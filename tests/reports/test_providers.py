"""Models as providers of one: answers, prices, times, limits, refusals, and whether all were asked alike."""

import json
from dataclasses import replace

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.records import LaneMinute
from asyncbench.reports.endpoints import counts
from asyncbench.store.folder import Store
from tests.reports import answered
from tests.reports.load_folders import Loaded, load_folder
from tests.store import made

HOUR_S = 3600.0


def providers_on(folder):
    return ab.report(folder, "providers")


def told(folder):
    """The lines of a report by model, as JSON has them, and what it says of fairness."""
    found = json.loads(json.dumps(json.loads(providers_on(folder).as_json()), allow_nan=False))
    return {line["model"]: line for line in found["providers"]}, found["fairness"]


@pytest.mark.long
def test_answers_are_compared_on_the_problems_that_both_answered_at_the_same_rate(tmp_path, monkeypatch):
    asked = [
        Loaded(model="good", right=lambda _, n: n % 10 > 0),
        Loaded(model="bad", right=lambda _, n: n % 2 > 0, refused=lambda rate, n: rate == 4 and n == 1),
    ]
    lines, fairness = told(folder := load_folder(tmp_path / "load", asked))
    monkeypatch.setattr(counts, "CALLS_AT_ONCE", 1)
    assert told(folder) == (lines, fairness)
    assert [*lines] == ["good", "bad"]  # the most accurate first
    beside = lines["bad"]["beside_best"]
    assert lines["good"]["beside_best"] is None
    assert lines["good"]["accuracy"] == 0.9
    assert lines["bad"]["accuracy"] == pytest.approx(119 / 239)  # of what was answered
    assert (beside["best"], beside["trials"], beside["problems"]) == ("good", 239, 50)
    assert beside["difference"] == pytest.approx((119 - 215) / 239)
    low, high = beside["interval"]
    assert -0.6 < low < beside["difference"] < high < -0.2
    assert beside["p_holm"] < 0.001
    assert fairness["problems"] == fairness["common_problems"] == 50


@pytest.mark.long
def test_a_price_is_of_a_thousand_answers_and_of_each_right_one(tmp_path):
    asked = [Loaded(model="m", rates=(1.0,), refused=lambda _, n: n % 5 == 4, cost_usd=0.002)]
    lines, _ = told(load_folder(tmp_path / "load", asked))
    right = sum(n % 4 > 0 for n in range(80) if n % 5 != 4)
    assert lines["m"]["usd_per_1000_answers"] == pytest.approx(2.0)
    assert lines["m"]["usd_per_correct"] == pytest.approx(64 * 0.002 / right)
    assert (lines["m"]["calls"], lines["m"]["answered"], lines["m"]["availability"]) == (80, 64, 0.8)


@pytest.mark.long
def test_times_are_of_the_highest_rate_at_which_all_kept_their_slo(tmp_path):
    slow_above_2 = lambda rate, n: 0.5 + n / 100 if rate <= 2 else 5.0  # noqa: E731  one line of a table
    asked = [Loaded(model="a", rates=(1.0, 2.0, 4.0)), Loaded(model="b", latency_s=slow_above_2)]
    lines, fairness = told(load_folder(tmp_path / "load", asked))
    assert {line["timed_step"] for line in lines.values()} == {"poisson 2/s"}
    assert lines["a"]["latency"]["p50"]["s"] == pytest.approx(0.001 + 0.5 + 0.39)
    assert lines["a"]["latency"]["p99"] == {
        "s": None, "low_s": None, "high_s": None, "why": "80 calls, and p99 takes 368",
    }  # fmt: skip
    assert lines["a"]["ttft"]["p95"]["s"] == pytest.approx(0.251)
    assert lines["a"]["tokens_per_s"] == pytest.approx(10 / (0.5 + 0.4 - 0.25))
    assert lines["a"]["connect_p50_s"] == 0.02
    assert (lines["a"]["highest_rate"]["kept"], lines["b"]["highest_rate"]["kept"]) == (4.0, 2.0)
    assert lines["b"]["highest_rate"]["stopped_by"] == "slo"
    assert any("the highest one at which all kept their SLO" in note for note in fairness["notes"])


@pytest.mark.long
def test_calls_without_an_answer_are_endless_and_said_to_be(tmp_path):
    asked = [Loaded(model="m", rates=(1.0,), refused=lambda _, n: n % 10 == 0, verdict="missed")]
    folder = load_folder(tmp_path / "load", asked)
    lines, _ = told(folder)
    assert lines["m"]["latency"]["p95"]["why"] == "10.0 % of calls have no answer"
    assert lines["m"]["latency"]["p50"]["s"] is not None
    assert "∞" in providers_on(folder).as_text(width=160)


@pytest.mark.long
def test_a_retry_after_that_was_obeyed_worked_or_did_not(tmp_path):
    """Calls 10, 11 and 12, a second apart, are refused for 1.5 s: the first after them are 12, 13 and 14."""
    asked = [
        Loaded(model="m", rates=(1.0,), refused=lambda _, n: n in (10, 11, 12), retry_after_s=1.5),
        Loaded(model="n", rates=(1.0,)),
    ]
    lines, _ = told(load_folder(tmp_path / "load", asked))
    assert lines["m"]["retry_after"] == {"told": 3, "median_s": 1.5, "obeyed": 3, "admitted": 2}
    assert lines["n"]["retry_after"] == {"told": 0, "median_s": None, "obeyed": 0, "admitted": 0}
    assert (lines["m"]["refused"], lines["n"]["refused"]) == (3, 0)


@pytest.mark.long
def test_limits_are_as_promised_as_told_and_as_found(tmp_path):
    folder = load_folder(
        tmp_path / "load",
        [Loaded(model="m", rates=(1.0, 4.0), refused=lambda rate, n: rate == 4 and n % 2 > 0)],
    )
    minute: LaneMinute = replace(made.minute("m"), limits={"requests": 300.0, "tokens": 9000.0})
    with Store.open(folder, sweep="load") as store:
        store.keep(minute)
        store.write_sweep_file(b"models: [{model: openai/m, alias: m, rpm: 600}]\n", {})
    lines, _ = told(folder)
    assert lines["m"]["limits"]["promised"] == {"requests": 600.0}
    assert lines["m"]["limits"]["told"] == {"requests": 300.0, "tokens": 9000.0}
    assert lines["m"]["limits"]["found"] == pytest.approx(114.0)  # half of four a second; one ended later
    assert lines["m"]["limits"]["most"] == pytest.approx(114.0)
    text = providers_on(folder).as_text(width=160)
    assert "600 RPM" in text
    assert "300 RPM, 9,000 TPM" in text


@pytest.mark.long
def test_who_answered_is_told_with_how_often_it_changed(tmp_path):
    first = Loaded(model="m", rates=(1.0,), fingerprint="one")
    then = replace(first, fingerprint="two", begins_s=200.0, rates=(2.0,))
    lines, _ = told(load_folder(tmp_path / "load", [first, then]))
    found = {value["value"]: value for value in lines["m"]["served"]["fingerprint"]}
    assert {name: (value["replies"], value["changes"]) for name, value in found.items()} == {
        "one": (80, 0),
        "two": (80, 1),
    }
    assert found["one"]["last_at"] < found["two"]["first_at"]


@pytest.mark.long
def test_the_slowest_hour_has_its_interval(tmp_path):
    quick = Loaded(model="m", rates=(1.0,), latency_s=lambda *_: 0.5)
    slow = replace(quick, begins_s=HOUR_S, latency_s=lambda *_: 1.5)
    folder = tmp_path / "load"
    load_folder(folder, [quick, replace(slow, rates=(1.0,), round=2)])
    (line,) = told(folder)[0].values()
    medians = [hour["latency"]["p50"]["s"] for hour in line["hours"]]
    assert medians == [pytest.approx(0.501), pytest.approx(1.501)]
    assert [hour["availability"] for hour in line["hours"]] == [1.0, 1.0]
    text = providers_on(folder).as_text(width=160)
    assert "0.50 (0.50-0.50), 21 Sep 14h" in text
    assert "1.50 (1.50-1.50), 21 Sep 15h" in text


@pytest.mark.long
def test_what_was_not_asked_alike_is_said(tmp_path):
    early = Loaded(model="early", rates=(1.0,))
    late = Loaded(model="late", rates=(2.0,), begins_s=HOUR_S, first=10)
    notes = told(load_folder(tmp_path / "load", [early, late]))[1]["notes"]
    assert notes == [
        "NOT the same problems: 40 of 60 were asked of all. Differences in accuracy count the problems in "
        "common; prices and times count all.",
        "NOT in the same minutes: calls within 2 minutes of calls to all others: early 0%, late 0%.",
        "NOT the same rate: no rate was measured of all. Times are of early poisson 1/s, late poisson 2/s.",
    ]


@pytest.mark.long
def test_other_parameters_are_named(tmp_path):
    asked = [
        answered.Asked(model=model, outcomes="+-+-", effort=effort)
        for model, effort in (("a", "low"), ("b", None))
    ]
    fairness = told(answered.folder_of(tmp_path / "night", asked))[1]
    assert "effort" in fairness["parameters"]


@pytest.mark.long
def test_sweeps_are_told_alike_and_requests_of_batches_left_out(tmp_path):
    asked = [
        answered.Asked(model="a", outcomes="+" * 80),
        answered.Asked(model="b", outcomes="+-" * 40),
        answered.Asked(model="c", outcomes="++", batch="b1"),
    ]
    lines, fairness = told(answered.folder_of(tmp_path / "night", asked))
    assert [*lines] == ["a", "b"]
    assert lines["b"]["beside_best"]["difference"] == -0.5
    assert lines["a"]["latency"]["p95"]["s"] == 1.5
    assert fairness["notes"] == [
        "All were asked the same 80 problems.",
        "All were asked in the same minutes.",
    ]


@pytest.mark.long
def test_two_folders_are_providers_of_one(tmp_path):
    sweep = answered.folder_of(tmp_path / "sweep", [answered.Asked(model="m", outcomes="+" * 50)])
    load = load_folder(tmp_path / "load", [Loaded(model="m", rates=(1.0,))])
    report = ab.report([sweep, load], "providers")
    names = [line["model"] for line in json.loads(report.as_json())["providers"]]
    assert sorted(names) == ["m in load", "m in sweep"]
    assert "NOT the same load" in report.as_text()


@pytest.mark.long
def test_what_this_computer_spoilt_is_unknown_and_who_has_no_calls_is_named(tmp_path):
    spoilt = Loaded(model="m", rates=(1.0,), verdict="client_bound")
    stopped = Loaded(model="gone", rates=(1.0,), calls=0, verdict="incomplete")
    folder = load_folder(tmp_path / "load", [spoilt, stopped])
    text = providers_on(folder).as_text(width=200)
    assert "m has no times: in each of its steps this computer was the bottleneck" in text
    assert "Without a line, for no call of theirs counts: gone." in text
    (line,) = providers_on(folder).providers
    assert (line.highest_text, line.stopped_by_text) == ("unknown", "this computer was the bottleneck")
    kept = load_folder(tmp_path / "kept", [Loaded(model="m", rates=(1.0,), verdict="met")])
    (line,) = providers_on(kept).providers
    assert line.highest_text == "60 RPM"  # the unit of all limits


@pytest.mark.long
def test_parts_of_steps_are_no_steps(tmp_path):
    folder = load_folder(tmp_path / "load", [Loaded(model="m", rates=(1.0,))])
    with pytest.raises(ConfigError, match="--models alone"):
        ab.report(folder, "providers", where="length = 1")
    assert ab.report(folder, "providers", models=["m"]).as_text()


def test_a_folder_without_calls_says_so(tmp_path):
    folder = answered.folder_of(tmp_path / "night", [answered.Asked(model="c", outcomes="++", batch="b1")])
    assert "no calls in real time" in providers_on(folder).as_text()
