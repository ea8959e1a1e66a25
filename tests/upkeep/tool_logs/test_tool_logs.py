"""Logs of other tools: their counts and grades are those of the tools, and reports work on them."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pytest

from asyncbench import compare, import_files, read_attempts, read_grades, read_trials, regrade_folder, report
from asyncbench.errors import ConfigError

LOGS = Path(__file__).parent / "logs"
SUMS, LETTERS = sorted(LOGS.glob("samples_*.jsonl"), reverse=True)


def means(out, grader):
    """Return the mean score by model of the trials that have a reply."""
    grades = read_grades(out, ["model", "grader", "outcome", "exact_match", "score"])
    rows = grades.filter((pc.field("grader") == grader) & (pc.field("outcome") != "failed")).to_pylist()
    values = dict[str, list[float]]()
    for row in rows:
        value = float(row["exact_match"]) if row["score"] is None else row["score"]
        values.setdefault(row["model"], []).append(value)
    return {model: sum(of_model) / len(of_model) for model, of_model in values.items()}


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_scores_of_inspect_are_those_that_its_log_tells(tmp_path, name):
    log = json.loads((LOGS / f"arithmetic_{name}.json").read_text())
    done = import_files("inspect", [LOGS / f"arithmetic_{name}.json"], tmp_path / "out")
    assert (done.runs[0].trials, done.left_out) == (log["results"]["total_samples"], ())
    told = {score["name"]: score["metrics"] for score in log["results"]["scores"]}
    model = f"mockllm/{name}"
    for grader, scorer, metric in (
        ("inspect/match", "match", "accuracy"),
        ("inspect/includes", "includes", "accuracy"),
        ("inspect/closeness", "closeness", "mean"),
        ("inspect/style.short", "short", "mean"),
        ("inspect/style.polite", "polite", "accuracy"),
    ):
        assert means(tmp_path / "out", grader)[model] == pytest.approx(told[scorer][metric]["value"]), grader

    failed = read_trials(tmp_path / "out").filter(pc.field("outcome") == "failed").to_pylist()
    assert len(failed) == log["results"]["total_samples"] - log["results"]["completed_samples"] == 2
    errors = read_attempts(tmp_path / "out").filter(pc.field("status") != "ok")["error"].to_pylist()
    assert errors == ["RuntimeError('the tool fell over')"] * 2


def test_an_archive_of_inspect_is_read_as_its_json(tmp_path):
    import_files("inspect", [LOGS / "letters.eval"], tmp_path / "out")
    rows = read_trials(tmp_path / "out").to_pylist()
    assert Counter(row["outcome"] for row in rows) == {"correct": 1, "wrong": 1, "no_answer": 1}
    assert [row["reply_text"] for row in rows if row["outcome"] == "correct"] == ["ANSWER: B"]


def test_metrics_and_filters_of_lm_eval_are_graders(tmp_path):
    for file in LOGS.glob("*_2026-*"):
        shutil.copy(file, tmp_path)
    import_files("lm-eval", [tmp_path / SUMS.name, tmp_path / LETTERS.name], tmp_path / "out")
    for samples in (SUMS, LETTERS):
        time = samples.stem.rpartition("_")[2]
        told = json.loads((LOGS / f"results_{time}.json").read_text())
        for task, figures in told["results"].items():
            for name, value in figures.items():
                if "stderr" not in name and "," in name:
                    grader = f"lm-eval/{name.removesuffix(',none')}"
                    assert means(tmp_path / "out", grader)[told["model_name"]] == pytest.approx(value), (
                        task,
                        name,
                    )
    replies = read_trials(tmp_path / "out", ["reply_text", "expected"]).to_pylist()
    assert {"reply_text": "stone", "expected": "apple"} in replies  # the likelier option


def test_prompts_of_promptfoo_are_conditions_of_the_same_problems(tmp_path):
    log = json.loads((LOGS / "two_prompts.json").read_text())
    import_files("promptfoo", [LOGS / "two_prompts.json"], tmp_path / "out")
    rows = read_trials(tmp_path / "out").to_pylist()
    for prompt in log["results"]["prompts"]:
        mine = [
            row for row in rows if (row["model"], row["condition"]) == (prompt["provider"], prompt["label"])
        ]
        outcomes = Counter(row["outcome"] for row in mine)
        metrics = prompt["metrics"]
        assert outcomes["correct"] == metrics["testPassCount"]
        assert outcomes["failed"] == metrics["testErrorCount"]
        assert outcomes["wrong"] == metrics["testFailCount"]
        assert sum(row["cost_usd"] or 0 for row in mine) == pytest.approx(metrics["cost"] or 0)
    problems = Counter(row["problem_id"] for row in rows)
    assert set(problems.values()) == {8}  # two models, two prompts, twice each


LINE = {"q": "2 + 2?", "gold": "4", "out": "4", "ok": True, "who": "llama", "in": 9, "s": 0.5}
COLUMNS = {"question": "q", "expected": "gold", "reply": "out", "grade": "ok", "model": "who"}


def test_lines_of_any_tool_are_read_by_the_names_of_their_fields(tmp_path):
    lines = [LINE, LINE | {"out": "5", "ok": 0}, LINE | {"out": None, "ok": None}, LINE | {"ok": "yes"}]
    file = tmp_path / "old.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    columns = COLUMNS | {"input_tokens": "in", "latency_s": "s"}
    done = import_files("jsonl", [file], tmp_path / "out", columns=columns)
    assert done.left_out == (
        f"{file}, line 4: 'ok' is 'yes', neither true or false nor a number from 0 to 1",
    )
    rows = read_trials(tmp_path / "out").sort_by("repeat").to_pylist()
    assert [row["outcome"] for row in rows] == ["correct", "wrong", "failed"]
    assert len({row["problem_id"] for row in rows}) == 1
    assert [(row["input_tokens"], row["latency_s"]) for row in rows[:2]] == [(9, 0.5)] * 2
    assert import_files("jsonl", [file], tmp_path / "out", columns=columns).runs[0].there_before == 3


def test_runs_of_a_tool_are_compared_on_the_same_problems(tmp_path):
    import_files("inspect", sorted(LOGS.glob("arithmetic_*.json")), tmp_path / "out")
    assert "5 problems" in compare("mockllm/alpha", "mockllm/beta", tmp_path / "out").as_text()


def test_regrading_leaves_the_grades_of_a_tool_alone(tmp_path):
    out = tmp_path / "out"
    import_files("inspect", [LOGS / "arithmetic_alpha.json"], out)
    before = read_grades(out).sort_by([("trial_id", "ascending"), ("grader", "ascending")])
    trials = read_trials(out).sort_by("trial_id")
    regrade_folder(out, write=True)
    assert read_grades(out).sort_by([("trial_id", "ascending"), ("grader", "ascending")]) == before
    assert read_trials(out).sort_by("trial_id") == trials
    headlines = before.filter(pc.field("headline"))["grader"].unique().to_pylist()
    assert headlines == ["inspect/match"]
    assert "exact" in before["grader"].unique().to_pylist()


@pytest.mark.parametrize(
    ("form", "content", "fault"),
    [
        ("inspect", b'{"results": []}', "is no log of Inspect: 'eval' is missing"),
        ("promptfoo", b'{"results": {"version": 2, "results": []}}', "results of version 2 cannot be read"),
        ("promptfoo", b"[]", "holds no results of promptfoo"),
    ],
)
def test_a_file_of_another_tool_is_refused(tmp_path, form, content, fault):
    (tmp_path / "log.json").write_bytes(content)
    with pytest.raises(ConfigError, match=fault):
        import_files(form, [tmp_path / "log.json"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def scored(path, value, **fields):
    """Write a log of Inspect whose samples have this score, and these fields."""
    log = json.loads((LOGS / "arithmetic_alpha.json").read_text())
    samples = [sample for sample in log["samples"] if not sample.get("error")]
    for sample in samples:
        sample |= {"scores": {"judge": {"value": value, "answer": "x"}}, **fields}
        sample["output"]["choices"][0]["stop_reason"] = "stop"
    path.write_text(json.dumps(log | {"samples": samples}))
    return path


@pytest.mark.parametrize(
    ("value", "grader", "outcome"),
    [
        pytest.param("N", "inspect/judge", "no_answer", id="no answer"),
        pytest.param("True", "inspect/judge", "correct", id="a truth in words"),
        pytest.param([0, 1], "inspect/judge.0", "wrong", id="a list"),
    ],
)
def test_each_form_of_a_score_of_inspect_is_read(tmp_path, value, grader, outcome):
    import_files("inspect", [scored(tmp_path / "log.json", value)], tmp_path / "out")
    rows = read_trials(tmp_path / "out").to_pylist()
    assert {(row["grader"], row["outcome"]) for row in rows} == {(grader, outcome)}


def test_a_score_beyond_1_is_never_taken_for_a_right_answer(tmp_path):
    with pytest.raises(ConfigError, match="the score of inspect/judge is 7, not from 0 to 1"):
        import_files("inspect", [scored(tmp_path / "log.json", 7)], tmp_path / "out")


def test_the_tokens_of_a_sample_are_those_of_all_calls_of_its_model(tmp_path):
    usage = {"mockllm/alpha": {"input_tokens": 900, "output_tokens": 99}, "judge": {"input_tokens": 5}}
    import_files("inspect", [scored(tmp_path / "log.json", "C", model_usage=usage)], tmp_path / "out")
    rows = read_trials(tmp_path / "out").to_pylist()
    assert {(row["input_tokens"], row["output_tokens"]) for row in rows} == {(900, 99)}


def test_mock_models_of_tools_are_simulated(tmp_path):
    for file in LOGS.glob("*_2026-*"):
        shutil.copy(file, tmp_path)
    import_files("inspect", [LOGS / "letters.eval"], tmp_path / "out")
    import_files("promptfoo", [LOGS / "two_prompts.json"], tmp_path / "out")
    import_files("lm-eval", [tmp_path / SUMS.name, tmp_path / LETTERS.name], tmp_path / "out")
    trials = read_trials(tmp_path / "out", ["model", "provider"]).to_pylist()
    by_provider = {(row["provider"], row["model"]) for row in trials}
    dummy = json.loads(
        (LOGS / LETTERS.name.replace("samples_tiny_letters", "results")).with_suffix(".json").read_text()
    )
    assert {model for provider, model in by_provider if provider == "simulated"} == {
        *("mockllm/alpha", "parrot", dummy["model_name"]),
    }
    assert ("imported", "custom:alpha") in by_provider
    assert report(tmp_path / "out").as_text().startswith("SIMULATED: imported replies came from")


def test_a_mock_of_lm_eval_is_simulated_whatever_name_is_given_to_it(tmp_path):
    for file in LOGS.glob("*_2026-*"):
        shutil.copy(file, tmp_path)
    import_files("lm-eval", [tmp_path / LETTERS.name], tmp_path / "out", model="llama")
    trials = read_trials(tmp_path / "out", ["model", "provider"]).to_pylist()
    assert {(row["provider"], row["model"]) for row in trials} == {("simulated", "llama")}


def test_nan_in_a_log_keeps_no_sample_out(tmp_path):
    log = json.loads((LOGS / "arithmetic_alpha.json").read_text())
    log["results"]["scores"][0]["metrics"]["accuracy"]["value"] = float("nan")
    (tmp_path / "alpha.json").write_text(json.dumps(log))
    done = import_files("inspect", [tmp_path / "alpha.json"], tmp_path / "out")
    assert (done.runs[0].trials, done.left_out) == (log["results"]["total_samples"], ())
