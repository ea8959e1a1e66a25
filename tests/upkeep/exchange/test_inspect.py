"""Results as logs of Inspect. `test_inspect_reader.py` lets its own package read them."""

import json
import re
import statistics
from collections import defaultdict
from pathlib import Path
from zipfile import ZipFile

import pyarrow.compute as pc
import pytest
from jsonschema import Draft202012Validator

from asyncbench import export_folder, read_grades, read_trials
from asyncbench.errors import ConfigError, StoreError
from asyncbench.upkeep.importing import import_files
from asyncbench.upkeep.inspect.samples import LogCounts, usage_of
from tests.commands import asyncbench_here
from tests.store.disk import disk_for
from tests.upkeep.exchange.inspect_sweep import CONDITIONS, MODELS, swept
from tests.upkeep.exchange.made import jsonl, result_file, trial

SCHEMA = json.loads(Path(__file__).with_name("inspect_schema.json").read_text())
OF = {  # member of a log → what each of its records is
    "header.json": "EvalLog",
    "summaries.json": "EvalSampleSummary",
    "reductions.json": "EvalSampleReductions",
}


def members(path):
    """Return what a log holds, by the names of its members."""
    with ZipFile(path) as log:
        assert len(set(log.namelist())) == len(log.namelist())
        return {name: json.loads(log.read(name)) for name in log.namelist()}


def samples(log):
    return [value for name, value in log.items() if name.startswith("samples/")]


def rows_of(folder, model, condition):
    wanted = (pc.field("model") == model) & (pc.field("condition") == condition)
    return read_trials(folder, filters=wanted).to_pylist()


def exported(folder, out):
    """Export a folder; return what each log holds, by its name."""
    done = export_folder("inspect", folder, out)
    logs = {Path(file.path).name: members(file.path) for file in done.files}
    assert [file.trials for file in done.files] == [len(samples(log)) for log in logs.values()]
    assert all(map(samples, logs.values()))
    return logs


def complaints(log):
    """Return what of a log is not as the schema of Inspect's own records says."""
    found = []
    for name, value in log.items():
        check = Draft202012Validator(SCHEMA | {"$ref": f"#/$defs/{OF.get(name, 'EvalSample')}"})
        for record in value if isinstance(value, list) else [value]:
            found += [f"{name}: {error.json_path}: {error.message}" for error in check.iter_errors(record)]
    return found


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """The folder of a sweep of 4 models, 4 conditions and 16 problems, twice each; not to be changed."""
    return swept(tmp_path_factory.mktemp("inspect"), *MODELS, repeats=2, conditions=list(CONDITIONS))


@pytest.fixture(scope="module")
def logs(night, tmp_path_factory):
    return exported(night, tmp_path_factory.mktemp("logs"))


# ── the form ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_there_is_a_log_for_each_model_and_condition(logs):
    pairs = [
        *((alias, name) for alias in MODELS for name in ("plain", "polite")),
        ("short", "cold"),
        ("m", "worded"),
    ]
    assert list(logs) == [f"{alias}+{name}.eval" for alias, name in sorted(pairs)]


@pytest.mark.long
@pytest.mark.parametrize("alias", MODELS)
def test_a_log_has_the_form_that_inspect_publishes(logs, alias):
    log = dict(logs[f"{alias}+plain.eval"])
    start = log.pop("_journal/start.json")
    assert start == {key: log["header.json"][key] for key in ("version", "eval", "plan")}
    assert complaints(log) == []
    names = [f"samples/{said['id']}_epoch_{said['epoch']}.json" for said in log["summaries.json"]]
    assert {*names, *OF} == set(log)
    assert {said["epoch"] for said in log["summaries.json"]} == {1, 2}


def test_earlier_messages_have_the_form_that_inspect_publishes(logs):
    sample = samples(logs["m+polite.eval"])[0]
    assert complaints({"samples/0": sample}) == []


def test_the_schema_notices_a_wrong_name_and_a_wrong_type(logs):
    log = logs["m+plain.eval"]
    header = log["header.json"] | {"stats": {"cost": 1}}
    summary = log["summaries.json"][0] | {"epoch": "first"}
    found = complaints({"header.json": header, "summaries.json": [summary]})
    assert [line.partition(": ")[0] for line in found] == ["header.json", "summaries.json"]


def test_the_same_trials_are_the_same_bytes(tmp_path):
    import_files("llm-arithmetic", [jsonl(tmp_path / "a.jsonl", trial())], tmp_path / "results")
    for out in "ab":
        export_folder("inspect", tmp_path / "results", tmp_path / out)
    first, second = (tmp_path / out / "gpt-x.eval" for out in "ab")
    assert first.read_bytes() == second.read_bytes()


# ── what it tells ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("alias", MODELS)
def test_accuracy_and_standard_error_are_those_of_the_tables(night, logs, alias):
    log = logs[f"{alias}+plain.eval"]
    of_problem = {row["trial_id"]: row["problem_id"] for row in rows_of(night, alias, "plain")}
    right: defaultdict[str, defaultdict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for grade in read_grades(night).to_pylist():
        if problem := of_problem.get(grade["trial_id"]):
            right[grade["grader"]][problem].append(grade["exact_match"])
    results = log["header.json"]["results"]
    assert [score["name"] for score in results["scores"]] == ["layered", "legacy", "strict"]
    assert results["headline"]["score"] == "layered"
    for score in results["scores"]:
        means = [statistics.mean(answers) for answers in right[score["name"]].values()]
        metrics = {name: metric["value"] for name, metric in score["metrics"].items()}
        assert metrics["accuracy"] == pytest.approx(statistics.mean(means), abs=1e-12)
        assert metrics["stderr"] == pytest.approx(statistics.stdev(means) / len(means) ** 0.5, abs=1e-12)
        assert score["scored_samples"] == len(means) == 16
    for reduction in log["reductions.json"]:
        assert {reduced["sample_id"]: reduced["value"] for reduced in reduction["samples"]} == pytest.approx(
            {problem: statistics.mean(answers) for problem, answers in right[reduction["scorer"]].items()}
        )


def test_a_sample_says_what_the_tables_say(night, logs):
    rows = {row["trial_id"]: row for row in rows_of(night, "thinker", "plain")}
    grades = {(grade["trial_id"], grade["grader"]): grade for grade in read_grades(night).to_pylist()}
    written = samples(logs["thinker+plain.eval"])
    assert {sample["uuid"] for sample in written} == set(rows)
    for sample in written:
        row = rows[sample["uuid"]]
        said = {
            "id": row["problem_id"],
            "epoch": row["repeat"] + 1,
            "target": row["expected"],
            "completed_at": row["finished_at"].isoformat(),
            "working_time": row["latency_s"],
        }
        assert {name: sample[name] for name in said} == said
        reasoning, text = sample["messages"][-1]["content"]
        assert sample["output"]["completion"] == text["text"] == row["reply_text"]
        assert reasoning["reasoning"] == row["reasoning_text"] != ""
        assert sample["output"]["usage"]["output_tokens"] == row["output_tokens"]
        assert sample["output"]["usage"]["input_tokens"] == row["input_tokens"]
        assert sample["model_usage"]["simulated-anthropic/noisy"]["total_cost"] == row["cost_usd"] > 0
        for name in ("task", "length", "outcome", "cost_usd", "attempts", "finish_reason", "ttft_s"):
            assert sample["metadata"].get(name) == row[name]
        for grader, score in sample["scores"].items():
            grade = grades[row["trial_id"], grader]
            value = "C" if grade["exact_match"] else "I" if grade["answer"] is not None else "N"
            assert (score["value"], score.get("answer")) == (value, grade["answer"])
            assert score["metadata"]["classification"] == grade["classification"]


def test_a_reply_that_was_cut_says_so(logs):
    reasons = {
        alias: {sample["output"]["choices"][0]["stop_reason"] for sample in samples(log)}
        for alias, log in ((alias, logs[f"{alias}+plain.eval"]) for alias in ("m", "thinker", "short"))
    }
    assert reasons["m"] == reasons["thinker"] == {"stop"}
    assert "max_tokens" in reasons["short"]


def test_cached_tokens_are_not_among_those_billed_in_full():
    tokens = {"input_tokens": 100, "cached_input_tokens": 60, "cache_write_tokens": 10, "output_tokens": 5}
    assert usage_of(tokens | {"reasoning_tokens": None}) == {
        "input_tokens": 30,
        "input_tokens_cache_read": 60,
        "input_tokens_cache_write": 10,
        "output_tokens": 5,
        "total_tokens": 105,
    }


def test_a_header_says_who_was_asked_what_and_how(night, logs):
    header = logs["short+cold.eval"]["header.json"]
    spec, results = header["eval"], header["results"]
    assert (header["status"], header["version"]) == ("success", 2)
    assert (spec["task"], spec["model"]) == ("llm_arithmetic", "simulated/noisy-3")
    how = {"temperature": 0.0, "params": {"top_k": 1}}
    assert spec["task_args"] == {"condition": "cold", "style": "chat", **how}
    assert spec["model_generate_config"] == {"max_tokens": 1, "temperature": 0.0}
    assert spec["model_args"] == {"top_k": 1}
    assert spec["config"]["epochs"] == 2
    assert spec["tags"] == ["asyncbench", "simulated"]
    assert spec["metadata"]["simulated"] is True
    trials = rows_of(night, "short", "cold")
    asked = list(dict.fromkeys(row["problem_id"] for row in trials))
    assert spec["dataset"] == {"name": "problems", "samples": 16, "sample_ids": asked, "shuffled": False}
    usage = header["stats"]["model_usage"]["simulated/noisy-3"]
    assert usage["output_tokens"] == sum(row["output_tokens"] for row in trials)
    assert usage["total_cost"] == pytest.approx(sum(row["cost_usd"] for row in trials))
    assert results["total_samples"] == results["completed_samples"] == len(trials) == 32
    assert "logged_samples" not in results


def test_a_failed_trial_is_an_error_and_counts_as_not_right(night, logs):
    log = logs["broken+plain.eval"]
    trials = rows_of(night, "broken", "plain")
    failed = {row["trial_id"]: row for row in trials if row["outcome"] == "failed"}
    errors = {sample["uuid"]: sample for sample in samples(log) if "error" in sample}
    assert errors.keys() == failed.keys() != set()
    for trial_id, sample in errors.items():
        message = f"server_error: {failed[trial_id]['error_message']}"
        assert sample["error"] == {"message": message, "traceback": "", "traceback_ansi": ""}
        assert (sample["output"]["choices"], sample["output"]["error"]) == ([], message)
        assert sample["messages"][-1]["role"] == "user"
        assert {score["value"] for score in sample["scores"].values()} == {"N"}
    results = log["header.json"]["results"]
    assert (results["total_samples"], results["completed_samples"]) == (32, 32 - len(failed))
    assert log["header.json"]["eval"]["config"]["score_on_error"] is True
    assert sum("error" in said for said in log["summaries.json"]) == len(failed)


def test_messages_are_those_that_were_sent(logs):
    for sample in samples(logs["m+plain.eval"]):
        assert sample["input"] == sample["messages"][0]["content"]
        assert [message["role"] for message in sample["messages"]] == ["user", "assistant"]
    for sample in samples(logs["m+polite.eval"]):
        roles = [message["role"] for message in sample["messages"]]
        assert roles == ["system", *["user", "assistant"] * 8, "user", "assistant"]
        assert sample["messages"][:-1] == sample["input"]
        assert sample["input"][0]["content"] == "Please."
    plain = {sample["id"]: sample["input"].partition("\n ") for sample in samples(logs["m+plain.eval"])}
    for sample in samples(logs["m+worded.eval"]):
        said, _, sum_ = plain[sample["id"]]
        spaced = re.sub(r"(?<=\d)(?=[\d])", " ", sum_)
        assert sample["input"].startswith(said)
        assert sample["input"].endswith("\nSay it twice.")
        assert re.sub(r"[^\d]", "", sample["input"]) == re.sub(r"[^\d]", "", spaced)
        assert spaced != sum_


def test_small_talk_of_a_file_is_told_while_that_file_is_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    turns = [{"role": role, "content": "hi"} for role in ("user", "assistant")]
    (tmp_path / "talk.json").write_text(json.dumps({"messages": turns}))
    folder = swept(tmp_path, "m", conditions=[{"name": "own", "context": "talk.json", "system": "Please."}])
    (file,) = export_folder("inspect", folder, tmp_path / "a").files
    assert file.notes == ()
    for sample in samples(members(file.path)):
        assert [message["content"] for message in sample["input"]][:3] == ["Please.", "hi", "hi"]
    (tmp_path / "talk.json").unlink()
    (file,) = export_folder("inspect", folder, tmp_path / "b").files
    assert file.notes == ("messages before the question are left out, since their text is not in the folder",)
    for sample in samples(members(file.path)):
        assert [message["role"] for message in sample["input"]] == ["system", "user"]


def test_an_unfinished_sweep_is_a_cancelled_log(tmp_path):
    files = [jsonl(tmp_path / f"{name}.jsonl", trial(extra_context=0), trial(depth=3)) for name in "ab"]
    import_files("llm-arithmetic", files, tmp_path / "results")
    done = export_folder("inspect", tmp_path / "results", tmp_path / "logs")
    assert [Path(file.path).name for file in done.files] == ["a+gpt-x.eval", "b+gpt-x.eval"]
    for file in done.files:
        header = members(file.path)["header.json"]
        assert complaints({"header.json": header}) == []
        assert header["status"] == "cancelled"
        assert header["eval"]["tags"] == ["asyncbench", "imported"]
        assert header["eval"]["model"] == "gpt-x"
        assert [header["results"][name] for name in ("total_samples", "logged_samples")] == [720, 2]
        assert file.notes == ("its status is `cancelled`: 718 of 720 planned trials are not finished",)


def test_each_suite_is_a_log_and_unknown_tokens_are_no_zero(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(result_file()))
    import_files("integer-addition", [tmp_path / "m.json"], tmp_path / "results")
    logs = exported(tmp_path / "results", tmp_path / "logs")
    suites = ["integer_addition", "string_rehearsal", "string_reversal"]
    assert [log["header.json"]["eval"]["task"] for log in logs.values()] == suites
    assert [name.rpartition("+")[2] for name in logs] == [f"{suite}.eval" for suite in suites]
    for log in logs.values():
        assert log["header.json"]["stats"]["model_usage"] == {}
        assert not any("usage" in sample["output"] for sample in samples(log))


def test_replies_without_a_question_are_exported_too(tmp_path):
    line = {"task": "add_Integer_Integer_Integer", "digit": 3, "groundtruth": "1287"}
    file = jsonl(tmp_path / "llama.jsonl", line | {"generated_text": ["1286", "1287"]})
    import_files("nupa", [file], tmp_path / "results", style="completion")
    (log,) = exported(tmp_path / "results", tmp_path / "logs").values()
    assert complaints({name: value for name, value in log.items() if name != "_journal/start.json"}) == []
    assert sorted(sample["output"]["completion"] for sample in samples(log)) == ["1286", "1287"]


def test_names_of_logs_are_plain_since_their_viewer_asks_by_address(tmp_path):
    files = [jsonl(tmp_path / f"{name}.jsonl", trial()) for name in ("a 50%", "a-50#?", "ä+b@c=1")]
    import_files("llm-arithmetic", files, tmp_path / "results")
    logs = exported(tmp_path / "results", tmp_path / "logs")
    assert sorted(logs) == ["a-50-+gpt-x-2.eval", "a-50-+gpt-x.eval", "ä+b@c=1+gpt-x.eval"]
    assert {log["header.json"]["eval"]["metadata"]["run"] for log in logs.values()} == {
        *("a 50%", "a-50#?", "ä+b@c=1")
    }


def test_a_trial_that_a_folder_holds_twice_is_another_epoch():
    counts, pairs = LogCounts(), [("a", 0), ("a", 0), ("a", 1), ("b", 0), ("a", 0)]
    rows = [{"problem_id": name, "repeat": repeat} for name, repeat in pairs]
    assert [counts.epoch_of(row) for row in rows] == [1, 2, 3, 1, 4]
    assert counts.epochs == 4


# ── what is refused ──────────────────────────────────────────────────────────────────────────


def test_a_log_that_is_there_is_never_written_over(night, tmp_path):
    (tmp_path / "short+cold.eval").write_text("mine")
    with pytest.raises(ConfigError, match=r"short\+cold\.eval exists already"):
        export_folder("inspect", night, tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_a_full_disk_leaves_nothing(night, tmp_path):
    with disk_for(5_000), pytest.raises(StoreError, match=r"broken\+plain\.eval: cannot be written"):
        export_folder("inspect", night, tmp_path / "logs")
    assert list((tmp_path / "logs").iterdir()) == []


def test_a_lacking_problem_is_named(tmp_path):
    import_files("llm-arithmetic", [jsonl(tmp_path / "a.jsonl", trial())], tmp_path / "results")
    (tmp_path / "results" / "problems" / "a.parquet").unlink()
    with pytest.raises(StoreError, match=r"results: problems/ lacks problem [0-9a-f]{32}\. Put back"):
        export_folder("inspect", tmp_path / "results", tmp_path / "logs")


def test_the_command_writes_logs_and_an_import_reads_them(tmp_path):
    import_files("llm-arithmetic", [jsonl(tmp_path / "a.jsonl", trial())], tmp_path / "results")
    done = asyncbench_here("export", "inspect", tmp_path / "results", "--out", tmp_path / "logs")
    assert (done.returncode, done.stdout.partition(";")[0]) == (
        0,
        f"{tmp_path / 'logs' / 'gpt-x.eval'}: 1 trials",
    )
    read = asyncbench_here("import", "inspect", tmp_path / "logs" / "gpt-x.eval", "--out", tmp_path / "r")
    assert (read.returncode, read.stdout.partition("\n")[0]) == (0, "gpt-x: 1 trials imported")
    refused = asyncbench_here("export", "xls", tmp_path / "results", "--out", tmp_path / "x")
    assert "integer-addition, nupa, inspect, every-eval-ever, csv" in refused.stderr
