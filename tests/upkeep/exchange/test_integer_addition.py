"""The integer addition benchmark's files: three tasks a run, graded anew, and back to the same JSON."""

import json
import os
from datetime import UTC, datetime

import pytest

from asyncbench.errors import ConfigError
from asyncbench.problems.opening import open_set
from asyncbench.store.catalog import read_grades, read_trials
from asyncbench.store.manifest import planned, read_manifest
from asyncbench.upkeep.exporting import export_folder
from asyncbench.upkeep.importing import import_files
from tests.upkeep.exchange.made import BEYOND_64_BITS, result, result_file, said, tables

NAME = "result_qwenqwen3-8b_2026-03-01_22-15-40.json"
AT = datetime(2026, 3, 1, 22, 15, 40, tzinfo=UTC)


def brought_in(tmp_path, content, name=NAME):
    """Import one file; return what came of it and the folder."""
    (tmp_path / name).write_text(json.dumps(content))
    return import_files("integer-addition", [tmp_path / name], tmp_path / "results"), tmp_path / "results"


def sums(*results, tries=1):
    return {"add_two_ints": {"test_type": "Add two intigers", "tries": tries, "results": list(results)}}


def test_the_three_tasks_come_in_and_go_out_as_they_were(tmp_path):
    done, folder = brought_in(tmp_path, result_file())
    export_folder("integer-addition", folder, tmp_path / "exported")
    assert (done.runs[0].trials, done.left_out) == (5, ())
    assert json.loads((tmp_path / "exported" / NAME).read_text()) == result_file()


def test_importing_an_export_gives_the_same_tables(tmp_path):
    _, folder = brought_in(tmp_path, result_file() | {"simulated": True})
    export_folder("integer-addition", folder, tmp_path / "exported")
    import_files("integer-addition", [tmp_path / "exported"], tmp_path / "again" / "results")
    assert tables(tmp_path / "again" / "results") == tables(folder)
    assert read_trials(folder)["provider"].unique().to_pylist() == ["simulated"]


def test_what_a_result_says_is_kept(tmp_path):
    _, folder = brought_in(tmp_path, sums(result(reasoning="carry the one")))
    (row,), (grade,), (attempt,) = tables(folder)
    assert {key: row[key] for key in ("suite", "reply_text", "reasoning_text", "model_served")} == {
        "suite": "integer_addition",
        "reply_text": f" {BEYOND_64_BITS + 4}\n",
        "reasoning_text": "carry the one",
        "model_served": "qwen/qwen3-8b",
    }
    assert (row["length"], row["latency_s"], attempt["latency_s"], row["finished_at"]) == (20, 0.75, 0.75, AT)
    assert (grade["classification"], grade["exact_match"]) == ("success", True)


def test_what_nobody_counted_is_null(tmp_path):
    _, folder = brought_in(tmp_path, sums(result()))
    (row,), _, (attempt,) = tables(folder)
    unknown = ("cost_usd", "price_source", "input_tokens", "output_tokens", "http_status", "reasoning_text")
    assert {row[key] for key in unknown} == {attempt["cost_usd"], attempt["raw_usage"]} == {None}


def test_operands_of_any_length_stay_exact(tmp_path):
    done, folder = brought_in(tmp_path, sums(result()))
    (problem,) = open_set(folder / "problems" / f"{done.runs[0].run}.parquet").read()
    assert (problem.operands, problem.expected) == (("4", str(BEYOND_64_BITS)), str(BEYOND_64_BITS + 4))


def test_a_status_is_ours_whatever_the_file_says(tmp_path):
    _, folder = brought_in(tmp_path, sums(result(status="fail"), result(response="5", status="success")))
    found = read_grades(folder, ["answer", "classification"]).to_pylist()
    assert {grade["answer"]: grade["classification"] for grade in found} == {
        str(BEYOND_64_BITS + 4): "success",
        "5": "fail",
    }


@pytest.mark.parametrize("name", ["results.json", "result_2026-13-01_00-00-00.json"])
def test_without_a_date_in_its_name_the_file_s_own_time_counts(tmp_path, name):
    (tmp_path / name).write_text(json.dumps(sums(result())))
    os.utime(tmp_path / name, (AT.timestamp(), AT.timestamp()))
    import_files("integer-addition", [tmp_path / name], tmp_path / "results")
    assert read_trials(tmp_path / "results")["finished_at"].to_pylist() == [AT]


def test_a_later_time_of_the_file_alone_is_no_other_result(tmp_path):
    brought_in(tmp_path, sums(result()), "results.json")
    (tmp_path / "results.json").write_text(json.dumps(sums(result(), result())))
    os.utime(tmp_path / "results.json", (0, 0))
    (run,) = import_files("integer-addition", [tmp_path / "results.json"], tmp_path / "results").runs
    assert (run.trials, run.there_before) == (1, 1)


@pytest.mark.parametrize(
    ("tries", "models", "plan"),
    [
        pytest.param(9, ["a", "a"], {"a": 9}, id="calls-failed"),
        pytest.param(9, ["a", "b", "a"], {"a": 8, "b": 1}, id="the-rest-is-the-commonest-model-s"),
        pytest.param(1, ["a", "a"], {"a": 2}, id="more-than-were-to-be"),
    ],
)
def test_the_plan_is_the_tries_of_the_file(tmp_path, tries, models, plan):
    done, folder = brought_in(tmp_path, sums(*(result(model=name) for name in models), tries=tries))
    assert planned(read_manifest(folder)) == {
        (done.runs[0].run, name, "plain"): {"integer_addition": {"integer_addition": count}}
        for name, count in plan.items()
    }


@pytest.mark.parametrize(
    ("content", "place", "why"),
    [
        pytest.param(
            sums(result(), 5), "add_two_ints[1]", "5 is not a result, a JSON object", id="no-object"
        ),
        pytest.param(sums(result(), result(int1=-1)), "add_two_ints[1]", "'int1' is -1", id="below-0"),
        pytest.param(sums(result(), result(int1="1")), "add_two_ints[1]", "'int1' is '1'", id="text"),
        pytest.param(sums(result(), result(int2=True)), "add_two_ints[1]", "'int2' is True", id="bool"),
        pytest.param(
            sums(result(), result(response=None)), "add_two_ints[1]", "'response' is None", id="reply"
        ),
        pytest.param(sums(result(), result(model="1")), "add_two_ints[1]", "alias '1'", id="model"),
        pytest.param(
            sums(result(), result(duration_seconds="1")),
            "add_two_ints[1]",
            "'duration_seconds'",
            id="duration",
        ),
        pytest.param(
            sums(result()) | {"string_reversal": {"tries": 1, "results": [said("a b", "b a")]}},
            "string_reversal[0]",
            "'string' is 'a b', not letters",
            id="string",
        ),
        pytest.param(
            sums(result()) | {"string_reversal": {"tries": 1, "results": [result()]}},
            "string_reversal[0]",
            "'string' is missing",
            id="no-string",
        ),
    ],
)
def test_a_bad_entry_is_left_out_and_named_and_every_good_one_is_imported(tmp_path, content, place, why):
    done, folder = brought_in(tmp_path, content)
    (complaint,) = done.left_out
    assert complaint.startswith(f"{tmp_path / NAME}, {place}: ")
    assert why in complaint
    assert len(read_trials(folder)) == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param([], "not a result file, a JSON object", id="list"),
        pytest.param({}, "holds none of string_reversal, add_two_ints, string_rehearsal", id="empty"),
        pytest.param({"add_two_ints": []}, r"'add_two_ints' is \[\], not a JSON object", id="section"),
        pytest.param(
            {"add_two_ints": {"tries": 1}}, "in 'add_two_ints', 'results' is missing", id="no-results"
        ),
        pytest.param(
            {"add_two_ints": {"tries": "1", "results": []}}, "in 'add_two_ints', 'tries' is '1'", id="tries"
        ),
        pytest.param(
            {"add_two_ints": {"tries": 1, "results": {}}}, "in 'add_two_ints', 'results' is {}", id="results"
        ),
        pytest.param(sums(result()) | {"simulated": "yes"}, "'simulated' is 'yes'", id="simulated"),
    ],
)
def test_a_file_of_another_kind_is_named(tmp_path, content, why):
    with pytest.raises(ConfigError, match=why):
        brought_in(tmp_path, content)
    assert not (tmp_path / "results").exists()


def test_a_plan_is_refused_as_the_files_hold_theirs(tmp_path):
    with pytest.raises(ConfigError, match=r"leave out depths\. The files hold their own plan"):
        import_files("integer-addition", [tmp_path / NAME], tmp_path / "results", depths="2-10")
