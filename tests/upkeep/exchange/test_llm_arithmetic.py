"""llm_arithmetic's files: every recorded trial comes in as it was, and goes out the same to the byte."""

import json
from datetime import datetime

import pytest

from asyncbench.errors import ConfigError
from asyncbench.problems.opening import open_set
from asyncbench.store.catalog import read_attempts, read_grades, read_trials
from asyncbench.store.manifest import planned, read_manifest
from asyncbench.suites.llm_arithmetic import ARITHMETIC_TASKS
from asyncbench.upkeep.exporting import export_folder
from asyncbench.upkeep.importing import import_files
from tests.recorded import SINCE_LATER, rows, write_jsonl
from tests.upkeep.exchange.made import BEYOND_64_BITS, jsonl, tables, trial, without


def brought_in(tmp_path, *lines, **plan):
    """Import lines as one file; return what came of it and the folder."""
    file = jsonl(tmp_path / "run.jsonl", *lines)
    return import_files("llm-arithmetic", [file], tmp_path / "results", **plan), tmp_path / "results"


def one_trial(tmp_path, line):
    """Import one line; return its row of `trials`."""
    _, folder = brought_in(tmp_path, line)
    (row,) = read_trials(folder).to_pylist()
    return row


# the recorded runs


def by_place(table):
    """Return rows by run and time, which are a trial's own in the recorded files."""
    found = {(row["run"], row["finished_at"]): row for row in table.to_pylist()}
    assert len(found) == len(table)
    return found


def place_of(recorded):
    return recorded["source_file"].removesuffix(".jsonl"), datetime.fromisoformat(recorded["timestamp"])


@pytest.mark.long
def test_every_recorded_reply_is_read_as_it_was_read_then(golden, imported):
    grades = {
        row["trial_id"]: row for row in read_grades(imported, filters=[("headline", "==", True)]).to_pylist()
    }
    trials = by_place(read_trials(imported))
    for recorded in rows(golden):
        grade = grades[trials[place_of(recorded)]["trial_id"]]
        assert [grade["answer"], grade["classification"], grade["abs_error"]] == [
            recorded["parsed"],
            recorded["classification"],
            recorded["error"],
        ]


@pytest.mark.long
def test_what_was_counted_is_kept(golden, imported):
    trials = by_place(read_trials(imported))
    for recorded in rows(golden):
        row, failed = trials[place_of(recorded)], recorded["failed_to_get_reply"]
        assert [row["cost_usd"], row["attempts"], row["outcome"] == "failed"] == [
            recorded["cost"],
            recorded["attempts"] or 1,
            bool(failed),
        ]
        if not failed:
            assert [row["input_tokens"], row["output_tokens"], row["reply_text"]] == [
                recorded["prompt_tokens"],
                recorded["completion_tokens"],
                recorded["raw_response"],
            ]


@pytest.mark.long
def test_every_generation_says_again_what_it_said(golden, imported):
    trials = by_place(read_trials(imported))
    raw_usage = {row["trial_id"]: row["raw_usage"] for row in read_attempts(imported).to_pylist()}
    generations = set()
    for recorded in rows(golden):
        keys = {key for key in SINCE_LATER if recorded[key] is not None}
        kept = json.loads(raw_usage[trials[place_of(recorded)]["trial_id"]])
        assert {key: kept[key] for key in keys} == {key: recorded[key] for key in keys}
        assert set(kept) - {"tokens", "cost"} == keys
        generations.add(frozenset(keys))
    assert len(generations) == 4


@pytest.mark.long
def test_an_export_gives_the_files_back_to_the_byte(published, written_again):
    names = {path.name for path in published}
    assert {path.name for path in written_again.iterdir()} == names | {"aggregate.jsonl"}
    for path in published:
        assert (written_again / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.long
def test_recorded_replies_go_out_to_the_byte_and_have_the_grades_of_their_facts(texts, imported, tmp_path):
    files = write_jsonl(texts, tmp_path / "files")
    import_files("llm-arithmetic", files, tmp_path / "results")
    export_folder("llm-arithmetic", tmp_path / "results", tmp_path / "again")
    for file in files:
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name
    (trials, *others), (trials_of_facts, *others_of_facts) = tables(tmp_path / "results"), tables(imported)

    # The invented replies hold no thinking, which our own grader `strict` does not read.
    thinking = {row["trial_id"] for row in trials if row["reasoning_text"]}
    assert 0 < len(thinking) <= 50
    for table, of_facts in zip(others, others_of_facts, strict=True):  # grades and attempts
        for row, fact in zip(table, of_facts, strict=True):
            same = row == fact or (row["trial_id"] in thinking and row["answer"] == fact["answer"])
            assert same or (row["grader"] == "strict" and row["trial_id"] in thinking)
    for row, fact in zip(trials, trials_of_facts, strict=True):
        assert row == fact | {name: row[name] for name in ("reply_text", "reasoning_text")}


@pytest.mark.long
@pytest.mark.parametrize(
    "each", [pytest.param(4, id="every fourth"), pytest.param(1, id="all", marks=pytest.mark.soak)]
)
def test_importing_an_export_gives_the_same_tables(imported, written_again, tmp_path, each):
    files = sorted(written_again.iterdir())[::each]
    import_files("llm-arithmetic", files, tmp_path / "results")
    again, before = tables(tmp_path / "results"), tables(imported)
    trials = {row["trial_id"] for row in again[0]}
    assert len(trials) > 17_000 / each / 2
    for table, whole in zip(again, before, strict=True):
        assert table == [row for row in whole if row["trial_id"] in trials]


def test_runs_keep_the_order_of_their_files_and_are_apart_where_models_are_not(published, imported):
    manifest = read_manifest(imported)
    assert list(manifest["runs"]) == [path.name.removesuffix(".jsonl") for path in published]
    gemini = [run for run, model, _ in planned(manifest) if model == "gemini-2.5-pro"]
    assert gemini == ["azure_gemini-2.5-pro_2025-06-20_07-54", "azure_gemini-2.5-pro_2026-06-01_08-40"]


# what a line becomes


def test_who_answered_is_not_known_beyond_the_name(tmp_path):
    row = one_trial(tmp_path, trial())
    assert {key: row[key] for key in ("run", "problem_set", "model", "model_id", "provider", "params")} == {
        "run": "run",
        "problem_set": "run",
        "model": "gpt-x",
        "model_id": "gpt-x",
        "provider": "imported",
        "params": "{}",
    }


def test_what_nobody_wrote_down_is_null(tmp_path):
    row = one_trial(tmp_path, trial())
    unknown = (
        "model_served",
        "finish_reason",
        "queued_s",
        "ttft_s",
        "latency_s",
        "http_status",
        "request_id",
    )
    assert {row[key] for key in unknown} == {None}


def test_a_failed_call_has_no_reply(tmp_path):
    _, folder = brought_in(tmp_path, trial(failed_to_get_reply=True, raw_response="", cost=0))
    (row,), grades, (attempt,) = tables(folder)
    assert (row["outcome"], row["reply_text"], row["error_kind"]) == ("failed", None, None)
    assert (attempt["status"], attempt["cost_usd"]) == ("failed", 0)
    assert {grade["classification"] for grade in grades} == {"NaN"}


@pytest.mark.parametrize(
    ("line", "text"),
    [
        pytest.param(trial(raw_response=None), "", id="null"),
        pytest.param(trial(raw_response=""), "", id="empty"),
        pytest.param(trial(raw_response=" 46\u2028× "), " 46\u2028× ", id="as-it-stands"),
    ],
)
def test_a_reply_without_text_is_a_reply(tmp_path, line, text):
    assert one_trial(tmp_path, line)["reply_text"] == text


@pytest.mark.parametrize(
    ("line", "name", "params"),
    [
        pytest.param(without("extra_context"), "plain", {}, id="not-said"),
        pytest.param(trial(extra_context=None), "plain", {}, id="null"),
        pytest.param(trial(extra_context=0), "plain", {"extra_context": 0}, id="none"),
        pytest.param(trial(extra_context=4), "context-4k", {"extra_context": 4}, id="4k"),
    ],
)
def test_padding_is_a_condition(tmp_path, line, name, params):
    row = one_trial(tmp_path, line)
    assert (row["condition"], row["style"], json.loads(row["condition_params"])) == (name, "chat", params)


@pytest.mark.parametrize(
    ("line", "cost", "source"),
    [
        pytest.param(trial(cost=0.5), 0.5, "recorded", id="recorded"),
        pytest.param(trial(cost=0), 0.0, "recorded", id="zero"),
        pytest.param(trial(cost=None), None, None, id="null"),
        pytest.param(without("cost"), None, None, id="missing"),
    ],
)
def test_a_cost_is_taken_as_it_was_recorded(tmp_path, line, cost, source):
    row = one_trial(tmp_path, line)
    assert (row["cost_usd"], row["price_source"]) == (cost, source)


@pytest.mark.parametrize(
    "timestamp",
    [
        pytest.param("2026-06-01T05:26:35.723710Z", id="utc"),
        pytest.param("2026-06-01T07:26:35.723710+02:00", id="elsewhere"),
        pytest.param("2026-06-01T05:26:35.723710", id="without-a-zone"),
    ],
)
def test_times_are_utc_to_the_microsecond(tmp_path, timestamp):
    at = one_trial(tmp_path, trial(timestamp=timestamp))["finished_at"]
    assert at == datetime.fromisoformat("2026-06-01T05:26:35.723710Z")


def test_numbers_of_any_length_stay_exact(tmp_path):
    product = trial(variant="int_mul", operands=[BEYOND_64_BITS, 10], correct=BEYOND_64_BITS * 10)
    _, folder = brought_in(tmp_path, product)
    (problem,) = open_set(folder / "problems" / "run.parquet").read()
    assert (problem.operands, problem.expected) == ((str(BEYOND_64_BITS), "10"), f"{BEYOND_64_BITS}0")


def test_the_second_of_two_equal_questions_is_a_trial_of_its_own(tmp_path):
    done, folder = brought_in(tmp_path, trial(), trial(raw_response="47"))
    assert done.runs[0].trials == 2
    assert set(read_trials(folder)["reply_text"].to_pylist()) == {"46", "47"}


def test_the_plan_is_what_the_run_was_to_hold(tmp_path):
    _, folder = brought_in(tmp_path, trial(depth=3), depths="3-5", trials=7)
    plan = {"llm_arithmetic": dict.fromkeys(ARITHMETIC_TASKS, 3 * 7)}
    assert planned(read_manifest(folder)) == {("run", "gpt-x", "plain"): plan}


def test_several_conditions_of_a_file_have_their_own_and_the_commonest_what_is_left(tmp_path):
    told = [trial(operands=[n, 1], correct=n + 1, extra_context=n // 3) for n in range(10, 14)]
    _, folder = brought_in(tmp_path, *told, depths="2", trials=7)
    plans = planned(read_manifest(folder))
    assert {key[2]: plan["llm_arithmetic"]["int_add"] for key, plan in plans.items()} == {
        "context-3k": 5,
        "context-4k": 2,
    }
    assert {key[2]: plan["llm_arithmetic"]["int_sub"] for key, plan in plans.items()} == {
        "context-3k": 7,
        "context-4k": 0,
    }


# lines that cannot be used


TORN = json.dumps(trial())[:-20].encode()

BROKEN = [
    pytest.param(TORN, "is not JSON", id="torn"),
    pytest.param(b"\xff" + TORN, "is not UTF-8 text: it holds the byte 0xff at 1", id="not-utf-8"),
    pytest.param(b"[" * 100_000, "is nested too deeply", id="nested"),
    pytest.param([1, 2], "[1, 2] is not a trial, a JSON object", id="a-list"),
    pytest.param(trial(cost=float("nan")), "NaN is no number of JSON", id="nan"),
    pytest.param(trial(cost=float("inf")), "Infinity is no number of JSON", id="infinity"),
    pytest.param(
        json.dumps(trial()).replace("0.00125", "1e999").encode(),
        "'cost' is inf, not a number",
        id="cost-overflow",
    ),
    pytest.param(trial(cost=-1), "'cost' is -1, not a number from 0", id="cost-below-0"),
    pytest.param(trial(cost="1"), "'cost' is '1', not a number", id="cost-text"),
    pytest.param(
        json.dumps(trial()).replace("46,", "4" * 4301 + ",").encode(), "more than 4,300 digits", id="digits"
    ),
    *(
        pytest.param(without(key), f"'{key}' is missing; found: ", id=f"no-{key}")
        for key in ("model", "variant", "depth", "operands", "correct", "raw_response", "tokens", "timestamp")
    ),
    pytest.param(trial(model=7), "'model' is 7, not a text", id="model"),
    pytest.param(
        trial(model="2026"), "alias '2026' names a folder. Use at least one letter", id="model-digits"
    ),
    pytest.param(trial(model="a\x00"), "Use at least one letter, no control characters", id="model-control"),
    pytest.param(
        trial(model="\ud800x"), "Use at least one letter, no control characters", id="model-half-a-pair"
    ),
    pytest.param(trial(model="x" * 100_000), "xxxx…' names a folder. Use", id="model-long"),
    pytest.param(trial(variant="int_pow"), "'variant' is 'int_pow', none of int_add, ", id="variant"),
    pytest.param(trial(depth="2"), "'depth' is '2', not a whole number", id="depth-text"),
    pytest.param(trial(depth=True), "'depth' is True, not a whole number", id="depth-bool"),
    pytest.param(
        trial(depth=11),
        "'depth' is 11, outside the plan, --depths 2,3,4,5,6,7,8,9,10",
        id="depth-outside",
    ),
    pytest.param(trial(operands="12+34"), "not a list of two numbers", id="operands-text"),
    pytest.param(trial(operands=[1, 2, 3]), "not a list of two numbers", id="operands-three"),
    pytest.param(trial(operands=[12, "34"]), "'operands' holds '34', but integers are", id="operand-text"),
    pytest.param(trial(operands=[True, 34]), "'operands' holds True, but integers are", id="operand-bool"),
    pytest.param(
        trial(variant="float_add", operands=[1.5, 2.5], correct="4.00"),
        "'operands' holds 1.5, but decimals are written as texts",
        id="operand-float",
    ),
    pytest.param(
        trial(variant="float_add", operands=["1.5", "2.50"], correct="4.00"),
        "'1.5' is not a number with 2 decimals",
        id="operand-form",
    ),
    pytest.param(trial(correct=47), "'correct' is '47', but '12' + '34' is '46'", id="correct"),
    pytest.param(trial(correct="46"), "'correct' holds '46', but integers are", id="correct-text"),
    pytest.param(
        trial(variant="int_div", operands=[7, 2], correct=3), "'7' ÷ '2' has no exact answer", id="no-answer"
    ),
    pytest.param(
        trial(variant="int_mul", operands=[10**3000, 10**3000], correct=1),
        "'100000000000...0000000000000' × '100000000000...0000000000000' has more than 4,300 digits",
        id="product-too-long",
    ),
    pytest.param(
        trial(variant="float_add", operands=["1" * 4299 + ".00", "1.00"], correct="1.00"),
        "'111111111111...1111111111.00' has more than 4,300 digits",
        id="operand-too-long",
    ),
    pytest.param(
        trial(variant="float_add", operands=["x" * 100_000, "1.00"], correct="1.00"),
        "'xxxxxxxxxxxx...xxxxxxxxxxxxx' is not a number with 2 decimals",
        id="operand-long-and-odd",
    ),
    pytest.param(trial(raw_response=46), "'raw_response' is 46, not a text", id="reply-number"),
    pytest.param(trial(tokens=None), "'tokens' is None, not a JSON object", id="tokens-null"),
    pytest.param(trial(tokens=[30, 2]), "'tokens' is [30, 2], not a JSON object", id="tokens-list"),
    pytest.param(
        trial(tokens={"prompt_tokens": 1}), "in 'tokens', 'completion_tokens' is missing", id="tokens-half"
    ),
    pytest.param(
        trial(tokens={"prompt_tokens": 1, "completion_tokens": -1}),
        "not a whole number from 0",
        id="tokens-below-0",
    ),
    pytest.param(trial(timestamp="yesterday"), "'timestamp' is 'yesterday', not a time", id="time"),
    pytest.param(trial(timestamp="0001-01-01T00:00:00+23:59"), "not a time like", id="time-too-early"),
    pytest.param(trial(timestamp="9999-12-31T23:59:59-23:59"), "not a time like", id="time-too-late"),
    pytest.param(trial(attempts=0), "'attempts' is 0, not a whole number from 1", id="attempts"),
    pytest.param(trial(failed_to_get_reply="no"), "'no', not true or false", id="failed"),
    pytest.param(trial(extra_context=1.5), "'extra_context' is 1.5, not a whole number", id="context"),
    pytest.param(trial(failed_to_get_reply=0), "0, not true or false", id="failed-0"),
    pytest.param(trial(simulated=1), "'simulated' is 1, not true or false", id="simulated"),
]


def test_a_bad_line_is_left_out_and_named_and_every_good_one_is_imported(tmp_path):
    broken = [tuple(case.values) for case in BROKEN]
    done, folder = brought_in(
        tmp_path, trial(), *(line for line, _ in broken), b"", trial(raw_response="no idea")
    )
    for number, ((_, why), complaint) in enumerate(zip(broken, done.left_out, strict=True), 2):
        assert complaint.startswith(f"{tmp_path / 'run.jsonl'}, line {number}: ")
        assert why in complaint
    assert done.runs[0].trials == len(read_trials(folder)) == 2
    assert read_manifest(folder)["runs"]["run"]["left_out"] == len(broken) > 50


def test_a_torn_last_line_and_other_line_ends_are_no_trouble(tmp_path):
    whole = json.dumps(trial()).encode()
    file = tmp_path / "run.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + whole + b"\r\n\r\n" + whole)
    done = import_files("llm-arithmetic", [file], tmp_path / "results")
    assert (done.runs[0].trials, done.left_out) == (2, ())


def test_a_failed_trial_needs_no_reply(tmp_path):
    line = {key: value for key, value in trial(failed_to_get_reply=True).items() if key != "raw_response"}
    assert one_trial(tmp_path, line)["outcome"] == "failed"


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        pytest.param({"depths": "many"}, "depths: 'many' is not a whole number", id="depths"),
        pytest.param({"trials": 0}, "trials: 0 is too small", id="trials"),
        pytest.param(
            {"trials": 10**20}, "trials: so many of each task and depth", id="trials-beyond-64-bits"
        ),
        pytest.param({"trials": 2**31 // 72 + 1}, "are more than 2,147,483,647 in all", id="trials-too-many"),
        pytest.param({"seed": 1}, "no parameter 'seed'", id="unknown"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused(tmp_path, plan, said):
    with pytest.raises(ConfigError, match=said):
        brought_in(tmp_path, trial(), **plan)
    assert not (tmp_path / "results").exists()


# and out again


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(trial(), id="whole"),
        pytest.param(without("cost", "attempts", "failed_to_get_reply", "extra_context"), id="oldest"),
        pytest.param(trial(cost=None, attempts=None, extra_context=None), id="nulls"),
        pytest.param(trial(cost=0, extra_context=2, attempts=3), id="integers"),
        pytest.param(trial(simulated=True), id="simulated"),
        pytest.param(
            trial(
                variant="float_sub",
                operands=["10.00", "82.51"],
                correct="-72.51",
                raw_response="-72.5",
                parsed="-72.5000",
                classification="Deviate",
                error="0.0100",
            ),
            id="decimals",
        ),
        pytest.param(
            trial(
                failed_to_get_reply=True,
                raw_response="",
                parsed=None,
                classification="NaN",
                tokens={"prompt_tokens": 0, "completion_tokens": 0},
            ),
            id="failed",
        ),
    ],
)
def test_a_line_is_exported_as_it_was_imported(tmp_path, line):
    _, folder = brought_in(tmp_path, line)
    export_folder("llm-arithmetic", folder, tmp_path / "exported")
    assert (tmp_path / "exported" / "run.jsonl").read_bytes() == (tmp_path / "run.jsonl").read_bytes()


def test_readings_are_ours_whatever_a_file_says(tmp_path):
    _, folder = brought_in(tmp_path, trial(parsed=1, classification="NaN", error="9"))
    export_folder("llm-arithmetic", folder, tmp_path / "exported")
    exported = json.loads((tmp_path / "exported" / "run.jsonl").read_text())
    assert exported == trial()


def test_what_a_simulator_said_is_marked_all_the_way_round(tmp_path):
    _, folder = brought_in(tmp_path, trial(simulated=True))
    export_folder("llm-arithmetic", folder, tmp_path / "exported")
    import_files("llm-arithmetic", [tmp_path / "exported"], tmp_path / "again" / "results")
    for place in (folder, tmp_path / "again" / "results"):
        assert read_manifest(place)["simulated"] is True
        assert read_trials(place)["provider"].to_pylist() == ["simulated"]
    assert tables(tmp_path / "again" / "results") == tables(folder)
