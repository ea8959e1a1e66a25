"""`report --style load`: what it says of steps, what it refuses to say, and how wide it is."""

import json
from dataclasses import replace

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.records import LOST_WITH_IT, RESENT, Ended
from asyncbench.stats.percentiles import histogram_text
from asyncbench.tables.report import Sheet
from tests.reports.load_folders import Loaded, load_folder
from tests.reports.loaded import folder_of, step
from tests.store.made import AT

GOOD = [0.2 + n / 1000 for n in range(400)]
FEW = GOOD[:100]
SLOW = [*GOOD[:300], *(3.0 for _ in range(100))]
REFUSED = [*GOOD[:250], *(None for _ in range(150))]


def sheets(report):
    """The tables of a report: title → rows as mappings."""
    return {
        part.title.rpartition(": ")[2]: [dict(zip(part.head, row, strict=True)) for row in part.rows]
        for part in report.content()
        if isinstance(part, Sheet)
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("load") / "night"
    return folder_of(
        path,
        step(40, GOOD),
        step(50, SLOW, first=1000, right=0.9, verdict="missed"),
        step(60, REFUSED, first=2000, verdict="missed", saturated=True),
    )


@pytest.mark.long
def test_each_rate_has_its_figures(folder):
    found = sheets(ab.report(folder, "load"))
    calm, slow, refused = found["steps (times in seconds)"]
    assert (calm["step"], calm["seconds"], calm["calls"]) == ("40/s", "10.0", "400")
    assert [row["verdict"] for row in (calm, slow, refused)] == ["met", "missed", "missed"]
    assert (calm["due per s"], calm["answered per s"], calm["goodput per s"]) == ("40.0", "37.7", "37.7")
    assert (slow["goodput per s"], slow["kept the SLO"].split()[0]) == ("30.0", "75.0%")
    assert [row["refused"] for row in (calm, slow, refused)] == ["-", "-", "37.5%"]
    assert (calm["tokens per s"], calm["cost per 1,000 answers"]) == ("415", "$1.0000")
    assert "failed" not in calm  # no call of any step did
    times = [calm, slow, refused]
    assert times[0]["latency p50"] == "0.400 (0.380-0.421)"
    assert [row["TTFT p50"] for row in times] == ["0.201", "0.201", "0.201"]
    assert times[1]["latency p95"] == "3.00 (3.00-3.00)"
    assert (times[2]["latency p95"], times[2]["late p99"]) == ("-", "0.0010")
    answers = found["answers"]
    assert answers[1]["beside the lightest (95 % CI)"].startswith("-10.0 (")
    assert [row["graded answers"] for row in answers] == ["400", "400", "250"]


@pytest.mark.long
def test_itl_is_of_all_gaps_of_a_step_and_the_mean_of_answered_calls(tmp_path):
    calls = list(step(40, GOOD))
    for n, event in enumerate(event for event in calls if isinstance(event, Ended)):
        # Most calls pause once for long; a percentile of each call's own would say so of half of the gaps.
        event.attempt.gap_counts = histogram_text([0.01] * 99 + [1.0]) if n else None
    report = ab.report(folder_of(tmp_path / "gaps", calls, step(50, REFUSED, first=1000)), "load")
    calm, refused = sheets(report)["steps (times in seconds)"]
    assert [calm[f"ITL {name}"] for name in ("p50", "p95", "p99")] == ["0.0100", "0.0100", "0.0100"]
    assert (calm["latency mean"], refused["latency mean"], refused["ITL p50"]) == ("0.401", "-", "-")
    (figures, _) = json.loads(report.as_json())["steps"]
    assert figures["itl"]["gaps"] == 39_900
    assert figures["itl"]["p50"] == pytest.approx(0.01, rel=0.011)


@pytest.mark.long
def test_ttfo_stands_where_a_model_thought_before_it_answered(folder, tmp_path):
    calls = list(step(40, GOOD))
    for event in calls:
        if isinstance(event, Ended):
            event.attempt.ttfo_s = (event.attempt.latency_s or 0.0) * 0.75
    (row,) = sheets(ab.report(folder_of(tmp_path / "thinking", calls), "load"))["steps (times in seconds)"]
    assert (row["TTFT p50"], row["TTFO p50"]) == ("0.201", "0.300")
    assert "TTFO p50" not in sheets(ab.report(folder, "load"))["steps (times in seconds)"][0]


def test_calls_on_connections_that_the_server_had_closed_have_columns_of_their_own(tmp_path):
    calls = list(step(40, [*FEW[:-2], None, None], refused=0, failed=2))
    resent, lost = [event for event in calls if isinstance(event, Ended)][-3:-1]
    resent.attempt.kept_connection, lost.attempt.kept_connection = RESENT, LOST_WITH_IT
    report = ab.report(folder_of(tmp_path / "closed", calls), "load")
    (row,) = sheets(report)["steps (times in seconds)"]
    assert [row[name] for name in ("sent again", "connection lost", "failed")] == ["1.0%", "1.0%", "1.0%"]
    assert "Sent again: the server had closed the kept connection" in report.as_text()
    (figures,) = json.loads(report.as_json())["steps"]
    assert [figures[name] for name in ("resent", "lost", "failed")] == [1, 1, 2]


@pytest.mark.long
def test_a_report_opens_with_the_highest_rate_and_what_stopped_the_next(folder):
    text = ab.report(folder, "load").as_text(width=200)
    assert text.startswith("small: kept the SLO up to 40/s.")
    assert "small: kept the SLO up to 40/s. 50/s missed it: 75.0% (" in text
    assert "of the calls kept it, not 90%." in text
    assert "Not there: 60/s p95, p99: 37.5 % of calls have no answer." in text
    assert "small at 60/s: 37.5% of the calls were refused (429); 25 answers a second came through." in text
    assert "answers are less often right at poisson 50/s #1" in text
    assert "TPOT: (latency − TTFT) / (output tokens − 1), without" in text


@pytest.mark.long
@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
def test_no_line_is_too_wide_and_each_table_names_its_steps(folder, width):
    text = ab.report(folder, "load").as_text(width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "Too wide" not in text
    assert text.count("\n40/s ") == {60: 6, 80: 4, 100: 3, 120: 3, 160: 3}[width]


def test_a_step_of_this_computer_has_no_verdict_and_late_calls_are_told(tmp_path):
    late = folder_of(
        tmp_path / "late",
        step(40, [0.02] * 100),
        step(80, FEW, first=1000, verdict="client_bound", client_bound=True, late_p99_s=0.265),
    )
    text = ab.report(late, "load").as_text(width=200)
    assert "This computer was late by more than 1 % of the latency at small 40/s: by 4.8%." in text
    assert "bottleneck at small 80/s (late p99 0.265 s is more than 0.005 s): the figures are its own" in text
    assert "80/s has no verdict: this computer was the bottleneck." in text


def test_the_bottleneck_is_judged_by_the_max_lag_of_its_load(tmp_path):
    steps = [
        *step(40, SLOW, verdict="missed", late_p99_s=0.02),  # which the usual limit would not allow
        *step(80, FEW, first=1000, verdict="client_bound", client_bound=True, late_p99_s=0.265),
    ]
    loose = folder_of(tmp_path / "loose", steps, loads={"small": [{"since": 0.0, "max_lag": 0.1}]})
    text = ab.report(loose, "load").as_text(width=200)
    assert "bottleneck at small 80/s (late p99 0.265 s is more than 0.025 s)" in text
    assert "was late, too" not in text

    # A later load may have loosened the limit: the step stays what it was called, with its figures.
    looser = folder_of(tmp_path / "looser", steps, loads={"small": [{"since": 0.0, "max_lag": 2.0}]})
    text = ab.report(looser, "load").as_text(width=200)
    assert "small 80/s (late p99 0.265 s, the event loop's lag" in text


def test_tokens_per_gpu_stand_where_the_load_tells_its_gpus(folder, tmp_path):
    told = folder_of(tmp_path / "gpus", step(40, GOOD), loads={"small": [{"since": 0.0, "gpus": 8}]})
    report = ab.report(told, "load")
    (calm,) = sheets(report)["steps (times in seconds)"]
    assert (calm["tokens per s"], calm["tokens per s per GPU"]) == ("415", "51.8")
    (figures,) = json.loads(report.as_json())["steps"]
    assert (figures["gpus"], figures["tokens_per_s_per_gpu"]) == (8, pytest.approx(414.7 / 8))
    assert "tokens per s per GPU" not in ab.report(folder, "load").as_text(width=200)


def test_a_step_keeps_the_gpus_of_the_load_that_measured_it(tmp_path):
    later = step(40, GOOD, round_=2, first=1000, began_at=AT + 600)
    loads = {"small": [{"since": 0.0, "gpus": 2}, {"since": AT + 60, "gpus": 8}]}
    grown = folder_of(tmp_path / "grown", step(40, GOOD), later, loads=loads)
    found = json.loads(ab.report(grown, "load").as_json())["steps"]
    assert [figures["gpus"] for figures in found] == [2, 8]


def test_repeats_are_one_row_and_their_spread_another(tmp_path):
    repeated = folder_of(
        tmp_path / "repeated", step(40, FEW), step(40, [2 * one for one in FEW], round_=2, first=1000)
    )
    found = sheets(ab.report(repeated, "load"))
    (row,), (spread,) = found["steps (times in seconds)"], found["spread of repeats"]
    assert row["answered per s"] == "9.65"
    assert (spread["steps"], spread["latency p50"]) == ("2", "0.250 to 0.499")
    assert [row["step"] for row in found["answers"]] == ["40/s #1", "40/s #2"]


@pytest.mark.long
def test_answers_are_by_rate_and_those_of_a_stopped_step_are_left_out(tmp_path):
    again = folder_of(
        tmp_path / "again",
        step(80, FEW, verdict="incomplete"),
        step(80, FEW, round_=2, first=1000),
        step(40, FEW, round_=2, first=2000),
        step(40, FEW, first=3000),
    )
    found = sheets(ab.report(again, "load"))["answers"]
    assert [row["step"] for row in found] == ["40/s #1", "40/s #2", "80/s #2"]
    alone = folder_of(tmp_path / "alone", step(80, FEW, verdict="incomplete"))
    assert [row["step"] for row in sheets(ab.report(alone, "load"))["answers"]] == ["80/s"]


@pytest.mark.long
def test_a_step_that_a_spent_budget_ended_says_so(tmp_path):
    cap = {"kind": "sweep", "of": "night", "limit_usd": 0.25}
    call = [replace_bound(event) for event in step(40, FEW)]
    cut = [replace_bound(event) for event in step(80, FEW, first=1000, verdict="incomplete")]
    spent = folder_of(tmp_path / "spent", call, cut, budget=[cap])
    assert "80/s has no verdict: the budget ended it." in ab.report(spent, "load").as_text(width=200)
    rich = folder_of(tmp_path / "rich", call, cut, budget=[cap | {"limit_usd": 9.0}])
    assert "80/s has no verdict: it was stopped before its end." in ab.report(rich, "load").as_text(width=200)


def replace_bound(event):
    """The same with what a call could have cost at most."""
    from dataclasses import replace

    from asyncbench.records import Ended

    return replace(event, attempt=replace(event.attempt, most_usd=0.1)) if isinstance(event, Ended) else event


@pytest.mark.long
def test_parts_of_steps_are_refused_and_models_can_be_chosen(folder, tmp_path):
    with pytest.raises(ConfigError, match="whole steps"):
        ab.report(folder, "load", where="length > 2")
    two = folder_of(tmp_path / "two", step(40, FEW, model="a"), step(40, FEW, model="b", first=1000))
    rows = sheets(ab.report(two, "load"))["Steps (times in seconds)"]
    assert [row["model"] for row in rows] == ["a", "b"]
    assert "a: kept" not in ab.report(two, "load", models=["b"]).as_text()


def test_a_folder_without_a_load_says_what_measures_one(tmp_path):
    from tests.store import made

    plain = made.folder_of(tmp_path / "plain", *made.answered(1))
    assert "has no steps of a load" in ab.report(plain, "load").as_text()


def test_a_step_without_any_answer_has_no_times_and_says_why(tmp_path):
    nothing = folder_of(tmp_path / "nothing", step(5, [None] * 50, verdict="missed"))
    report = ab.report(nothing, "load")
    assert "Not there: 5/s latency, TTFT, TPOT: no call was answered." in report.as_text(width=200)
    assert json.loads(report.as_json())["steps"][0]["ttft"]["p50"]["why"] == "no call was answered"
    assert (
        "no rate is sure to keep the SLO. 5/s missed it: 100.0% of the calls were refused."
        in report.as_text()
    )


@pytest.mark.long
def test_few_problems_are_told_with_a_way_out(tmp_path):
    few = load_folder(tmp_path / "few", [Loaded(model="m", rates=(1.0,))])
    assert "50 problems, each asked about 2 times: a problem counts once" in ab.report(few, "load").as_text(
        width=200
    )
    once = load_folder(tmp_path / "once", [Loaded(model="m", rates=(1.0,), calls=50)])
    assert "problems, each asked" not in ab.report(once, "load").as_text(width=200)


@pytest.mark.long
def test_each_slo_is_told_with_its_models_and_formulas_are_of_columns_that_are_shown(tmp_path):
    strict = {"latency": 1.0, "share": 0.9}
    two = folder_of(
        tmp_path / "two",
        step(40, [None] * 9, model="a"),
        step(40, [None] * 9, model="b", first=99, slo=strict),
    )
    text = ab.report(two, "load").as_text(width=200)
    assert "SLO of a: latency up to 2 s for 90 % of the calls. SLO of b: latency up to 1 s" in text
    assert "Per second:" in text
    assert "TPOT: (" not in text
    assert "p95:" not in text


@pytest.mark.long
def test_several_folders_stand_side_by_side(folder, tmp_path):
    other = folder_of(tmp_path / "other", step(40, FEW))
    rows = sheets(ab.report([folder, other], "load"))["Steps (times in seconds)"]
    assert [row["model"] for row in rows] == ["small in night"] * 3 + ["small in other"]


@pytest.mark.long
def test_answers_that_came_too_late_and_one_caller_are_said_so(tmp_path):
    slow = step(40, [30.0] * 400, verdict="missed", saturated=True)
    assert "Only 0 answers a second came before the step ended." in ab.report(
        folder_of(tmp_path / "slow", slow), "load"
    ).as_text(width=200)
    alone = folder_of(
        tmp_path / "alone",
        step(1, [0.5] * 9, arrivals="closed"),
        step(2, [None] * 9, arrivals="closed", first=99),
    )
    text = ab.report(alone, "load").as_text(width=200)
    assert "1 caller." in text
    assert "2 callers: 100.0% of the calls were refused (429); 0 answers" in text


@pytest.mark.long
def test_what_a_refusal_ended_before_any_call_counted_is_no_crash(tmp_path):
    """Of a load that a 401 ended, calls of the warm-up are all that there is."""
    *calls, _ = step(80, [None] * 4, first=1000)
    refused = [in_warm_up(event) for event in calls if isinstance(event, Ended)]
    alone = folder_of(tmp_path / "alone", refused)
    ended = "Ended before any call counted: 1 step (auth)"
    assert f"no steps of a load. {ended}." in " ".join(ab.report(alone, "load").as_text().split())
    beside = ab.report(folder_of(tmp_path / "beside", step(40, FEW), refused), "load").as_text()
    assert f"{ended}, and left out." in " ".join(beside.split())
    assert "crash" not in beside
    *calls, _ = step(80, FEW, first=1000)
    killed = ab.report(folder_of(tmp_path / "killed", step(40, FEW), calls), "load").as_text()
    assert "Cut off by a crash, and left out: 1 step." in " ".join(killed.split())


def in_warm_up(event):
    refused = {"status": "auth", "http_status": 401, "phase": "warmup"}
    return replace(event, attempt=replace(event.attempt, **refused))
