"""Sweeps as files of other projects: a file a model and condition, in the order of the problems."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from asyncbench.errors import ConfigError, ProblemSetError, StoreError
from asyncbench.problems.making import write_problems
from asyncbench.problems.opening import open_set
from asyncbench.problems.schema import identified
from asyncbench.published import files as trial_files
from asyncbench.published.llm_arithmetic.report import llm_arithmetic_report_on
from asyncbench.store.catalog import read_grades, read_trials
from asyncbench.suites.llm_arithmetic import draft_arithmetic
from asyncbench.upkeep.exporting import export_folder
from asyncbench.upkeep.importing import import_files
from tests.recorded import json_lines
from tests.store.disk import disk_for
from tests.sweep_files import entry, run, simulator, sweep, swept
from tests.upkeep.exchange.made import jsonl, trial

PRICE = {"input": 1.0, "output": 2.0}


def runs_in(folder):
    """The files of runs in a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.name != "aggregate.jsonl")


def test_a_sweep_is_a_file_for_each_model_in_the_order_of_its_problems(tmp_path):
    models = [("simulated/noisy", {"price": PRICE}), ("simulated/oracle", {"alias": "right"})]
    folder, problems = swept(tmp_path, *models)
    done = export_folder("llm-arithmetic", folder, tmp_path / "out")
    assert [path.name for path in runs_in(tmp_path / "out")] == [
        "right.jsonl",
        "simulated%2Fnoisy.jsonl",
    ]
    for path in runs_in(tmp_path / "out"):
        written = [(line["variant"], list(map(str, line["operands"]))) for line in json_lines(path)]
        assert written == [(problem.task, list(problem.operands)) for problem in open_set(problems).read()]
    assert [one.trials for one in done.files] == [16, 16]


def test_a_line_of_a_sweep_says_what_the_tables_say(tmp_path):
    folder, problems = swept(tmp_path, ("simulated/noisy", {"price": PRICE}))
    export_folder("llm-arithmetic", folder, tmp_path / "out")
    trials = {row["problem_id"]: row for row in read_trials(folder).to_pylist()}
    headline = read_grades(folder, filters=[("grader", "==", "layered")]).to_pylist()
    grades = {row["trial_id"]: row for row in headline}
    written = json_lines(tmp_path / "out" / "simulated%2Fnoisy.jsonl")
    assert len(written) == 16
    for problem, line in zip(open_set(problems).read(), written, strict=True):
        row = trials[problem.problem_id]
        grade = grades[row["trial_id"]]
        number = int if problem.representation == "integer" else str
        assert line == {
            "model": "simulated/noisy",
            "variant": problem.task,
            "depth": problem.length,
            "operands": [number(operand) for operand in problem.operands],
            "correct": number(problem.expected),
            "raw_response": row["reply_text"],
            "parsed": None if grade["answer"] is None else number(grade["answer"]),
            "classification": grade["classification"],
            "error": grade["abs_error"],
            "tokens": {"prompt_tokens": row["input_tokens"], "completion_tokens": row["output_tokens"]},
            "cost": row["cost_usd"],
            "timestamp": f"{row['finished_at']:%Y-%m-%dT%H:%M:%S.%f}Z",
            "attempts": 1,
            "failed_to_get_reply": False,
            "extra_context": 0,
            "simulated": True,
        }
        assert list(line) == [*trial(), "simulated"]


def test_each_condition_is_a_file_and_padding_is_told_in_thousands(tmp_path):
    conditions = [{"name": "plain"}, {"name": "small/talk", "context": "2k"}]
    folder, _ = swept(tmp_path, ("simulated/oracle", {"alias": "m"}), conditions=conditions, repeats=2)
    export_folder("llm-arithmetic", folder, tmp_path / "out")
    found = {path.name: json_lines(path) for path in runs_in(tmp_path / "out")}
    assert {name: {line["extra_context"] for line in some} for name, some in found.items()} == {
        "m+plain.jsonl": {0},
        "m+small%2Ftalk.jsonl": {2},
    }
    assert {len(some) for some in found.values()} == {2 * 16}


def test_what_is_unknown_is_0_in_this_format_and_said(tmp_path):
    folder, _ = swept(tmp_path, ("simulated/oracle", {"alias": "m"}))
    done = export_folder("llm-arithmetic", folder, tmp_path / "out")
    assert {line["cost"] for line in json_lines(tmp_path / "out" / "m.jsonl")} == {0.0}
    assert "m.jsonl: 16 trials; 16 trials whose cost is unknown have 0 there" in done.as_text()


def test_a_failed_trial_of_a_sweep_is_an_empty_reply_for_nothing(tmp_path):
    folder, _ = swept(tmp_path, ("simulated/oracle", {"alias": "m", "price": PRICE}), faults=("500=0.5",))
    done = export_folder("llm-arithmetic", folder, tmp_path / "out")
    failed = [line for line in json_lines(tmp_path / "out" / "m.jsonl") if line["failed_to_get_reply"]]
    assert failed
    for line in failed:
        assert (line["failed_to_get_reply"], line["raw_response"], line["parsed"]) == (True, "", None)
        assert (line["classification"], line["cost"], sum(line["tokens"].values())) == ("NaN", 0.0, 0)
    assert done.files[0].notes == ()


def test_an_exported_sweep_can_be_imported(tmp_path):
    folder, _ = swept(tmp_path, ("simulated/noisy", {"alias": "m", "price": PRICE}))
    export_folder("llm-arithmetic", folder, tmp_path / "out")
    import_files("llm-arithmetic", [tmp_path / "out"], tmp_path / "results")
    columns = [
        "model",
        "problem_id",
        "outcome",
        "answer",
        "reply_text",
        "cost_usd",
        "output_tokens",
        "provider",
    ]
    swept_table, imported = read_trials(folder, columns), read_trials(tmp_path / "results", columns)
    assert imported.sort_by("problem_id").equals(swept_table.sort_by("problem_id"))


def test_the_sums_of_a_sweep_are_a_file_that_counts_what_failed(tmp_path):
    model = ("simulated/oracle", {"alias": "some/model"})
    folder, _ = swept(
        tmp_path, model, suite="integer_addition", parameters={"tries": 30}, faults=("500=0.3",)
    )
    done = export_folder("integer-addition", folder, tmp_path / "out")
    failed = len(read_trials(folder, ["trial_id"], [("outcome", "==", "failed")]))
    assert 0 < failed < 30
    (path,) = (tmp_path / "out").iterdir()
    last = max(row["finished_at"] for row in read_trials(folder).to_pylist())
    assert path.name == f"result_somemodel_{last:%Y-%m-%d_%H-%M-%S}.json"
    content = json.loads(path.read_text())
    assert list(content) == ["string_reversal", "add_two_ints", "string_rehearsal", "simulated"]
    assert (content["add_two_ints"]["tries"], content["string_reversal"]["tries"]) == (30, 0)
    assert len(content["add_two_ints"]["results"]) == 30 - failed
    assert {one["status"] for one in content["add_two_ints"]["results"]} == {"success"}
    assert f"{failed} trials without a reply are left out" in done.as_text()


def test_each_condition_has_its_own_plan(tmp_path):
    conditions = [{"name": "plain"}, {"name": "polite", "system": "Please."}]
    model = ("simulated/oracle", {"alias": "m"})
    folder, _ = swept(
        tmp_path, model, suite="string_reversal", parameters={"tries": 4}, conditions=conditions, repeats=2
    )
    export_folder("integer-addition", folder, tmp_path / "out")
    contents = [json.loads(path.read_text()) for path in (tmp_path / "out").iterdir()]
    assert [one["string_reversal"]["tries"] for one in contents] == [8, 8]


def test_the_rows_of_one_file_at_a_time_are_read(tmp_path, monkeypatch):
    files = [jsonl(tmp_path / f"{name}.jsonl", *[trial()] * 3) for name in "abc"]
    import_files("llm-arithmetic", files, tmp_path / "results")
    reads = []

    def read(folder, columns, filters):
        found = read_trials(folder, columns, filters)
        if "reply_text" in columns:
            reads.append(found["run"].to_pylist())
        return found

    monkeypatch.setattr(trial_files, "read_trials", read)
    export_folder("llm-arithmetic", tmp_path / "results", tmp_path / "out")
    assert reads == [["a"] * 3, ["b"] * 3, ["c"] * 3]


def test_what_others_wrote_meanwhile_stays_and_is_all_that_is_there(tmp_path, monkeypatch):
    files = [jsonl(tmp_path / f"{name}.jsonl", trial()) for name in "ab"]
    import_files("llm-arithmetic", files, tmp_path / "results")

    def read(*arguments):
        if (tmp_path / "out").exists():
            (tmp_path / "out" / "b.jsonl").write_text("mine")
        return read_trials(*arguments)

    monkeypatch.setattr(trial_files, "read_trials", read)
    with pytest.raises(ConfigError, match=r"out/b\.jsonl exists already"):
        export_folder("llm-arithmetic", tmp_path / "results", tmp_path / "out")
    assert [(path.name, path.read_text()) for path in (tmp_path / "out").iterdir()] == [("b.jsonl", "mine")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("condition", "note"),
    [
        pytest.param({"name": "padded", "context": "1k"}, [], id="said"),
        pytest.param({"name": "polite", "system": "Please."}, ["system"], id="system"),
        pytest.param(
            {"name": "both", "system": "Please.", "context": "1k", "params": {"top_k": 1}},
            ["params", "system"],
            id="several",
        ),
        pytest.param({"name": "own", "context": "talk.json"}, ["context"], id="a-text-of-ones-own"),
    ],
)
def test_how_it_was_asked_is_noted_where_the_format_has_no_word(tmp_path, monkeypatch, condition, note):
    monkeypatch.chdir(tmp_path)
    turns = [{"role": role, "content": "hi"} for role in ("user", "assistant")]
    (tmp_path / "talk.json").write_text(json.dumps({"messages": turns}))
    model = ("simulated/oracle", {"alias": "m", "price": PRICE})
    folder, _ = swept(tmp_path, model, conditions=[{"name": "plain"}, condition])
    done = export_folder("llm-arithmetic", folder, tmp_path / "out")
    notes = {Path(one.path).name: one.notes for one in done.files}
    said = tuple(
        f"the format cannot tell that it was asked with {', '.join(keys)}" for keys in [note] if keys
    )
    assert notes == {"m+plain.jsonl": (), f"m+{condition['name']}.jsonl": said}


def test_no_way_of_asking_has_a_word_in_the_format_of_the_sums(tmp_path):
    model = ("simulated/oracle", {"alias": "m"})
    padded = [{"name": "padded", "context": "1k"}]
    folder, _ = swept(tmp_path, model, suite="string_reversal", parameters={"tries": 4}, conditions=padded)
    (file,) = export_folder("integer-addition", folder, tmp_path / "out").files
    assert file.notes == ("the format cannot tell that it was asked with context",)


# the sums of each run


def recorded_sums(published, written_again):
    """The sums that an export writes of all recorded runs, by run."""
    records = json_lines(written_again / "aggregate.jsonl")
    assert len(runs_in(written_again)) == len(published) == 26
    return dict(zip([path.stem for path in published], records, strict=True))


@pytest.mark.long
def test_the_sums_of_each_run_are_those_that_the_benchmark_recorded(published, written_again):
    record = recorded_sums(published, written_again)["gpt-4.1-nano-2025-04-14_2025-05-11_16-04"]
    assert list(record) == ["model", "date", "trials_per_cell", "overall", "per_category", "cells"]
    assert (record["model"], record["date"], record["trials_per_cell"]) == (
        *("gpt-4.1-nano-2025-04-14", "2025-05-11_16-04"),
        10,
    )
    # as the project's own file had it, where its grader of that time read the same
    assert record["cells"]["int_add"]["depth_10"] == {
        "total_trials": 10,
        "correct_count": 4,
        "nan_count": 0,
        "deviate_count": 6,
        "accuracy": 0.4,
        "nan_rate": 0.0,
        "deviate_rate": 0.6,
        "avg_error": "11668383.33",
        "avg_prompt_tokens": 33.0,
        "avg_completion_tokens": 5.0,
        "total_cost": pytest.approx(5.3e-05),
        "avg_cost": pytest.approx(5.3e-06),
    }
    assert record["per_category"]["int_sub"] == {
        "total_trials": 90,
        "total_prompt_tokens": 2670,
        "total_completion_tokens": 337,
        "total_cost": pytest.approx(0.0004018),
        "correct_count": 76,
        "nan_count": 0,
        "deviate_count": 14,
        "accuracy": 76 / 90,
        "nan_rate": 0.0,
        "deviate_rate": 14 / 90,
        "avg_error": "3245540414.29",
    }
    overall = record["overall"]
    assert (overall["total_trials"], overall["total_prompt_tokens"]) == (720, 23387)
    assert overall["total_completion_tokens"] == 3808
    assert overall["total_cost"] == pytest.approx(0.0038619)


@pytest.mark.long
def test_the_sums_agree_with_the_report_over_all_depths(published, imported, written_again):
    records = recorded_sums(published, written_again)
    report = json.loads(llm_arithmetic_report_on(imported, min_depth=2).as_json())
    assert len(report["rows"]) == len(records)
    for row in report["rows"]:
        ours, sums = row["all_depths"], records[row["run"]]["overall"]
        for name, key in (("trials", "total_trials"), ("avg_abs_error", "avg_error")):
            assert ours[name] == sums[key]
        assert [ours[name] for name in ("correct", "nan", "deviate")] == [
            sums[f"{name}_count"] for name in ("correct", "nan", "deviate")
        ]


def test_a_file_of_sums_is_not_imported_as_a_run(tmp_path):
    (tmp_path / "some").mkdir()
    jsonl(tmp_path / "some" / "a.jsonl", trial())
    sums = jsonl(tmp_path / "some" / "aggregate.jsonl", {"model": "m"})
    done = import_files("llm-arithmetic", [tmp_path / "some"], tmp_path / "results")
    assert [run.run for run in done.runs] == ["a"]
    with pytest.raises(ConfigError, match=r"aggregate\.jsonl holds sums, not trials"):
        import_files("llm-arithmetic", [sums], tmp_path / "other")


def test_sums_that_are_there_are_never_written_over(folder, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "aggregate.jsonl").write_text("mine")
    with pytest.raises(ConfigError, match=r"out/aggregate\.jsonl exists already"):
        export_folder("llm-arithmetic", folder, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["aggregate.jsonl"]


# what is refused


def custom_sweep(tmp_path, *drafts):
    """Run a sweep over problems of one's own, in the contract's form."""
    problems = tmp_path / "own.parquet"
    write_problems(identified(drafts), problems)
    with simulator(problems) as server:
        run(sweep(tmp_path / "night", problems, entry(server, "simulated/oracle")))
    return tmp_path / "night"


def test_tasks_that_the_format_does_not_have_are_named(tmp_path):
    known = draft_arithmetic("int_add", 1, "1", "2", expected="3")
    folder = custom_sweep(tmp_path, known, replace(known, task="int_pow"), replace(known, task="int_abs"))
    with pytest.raises(ConfigError, match=r"night has tasks that this format cannot hold: int_abs, int_pow"):
        export_folder("llm-arithmetic", folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_problems_that_the_format_has_no_form_for_are_refused(tmp_path):
    folder = custom_sweep(tmp_path, draft_arithmetic("int_add", 1, "1.5", "2", expected="3"))
    with pytest.raises(ConfigError, match=r"night has problems that this format cannot hold: .*'1\.5'"):
        export_folder("llm-arithmetic", folder, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.fixture
def folder(tmp_path):
    import_files("llm-arithmetic", [jsonl(tmp_path / "a.jsonl", trial())], tmp_path / "results")
    return tmp_path / "results"


def test_a_place_that_cannot_be_written_is_named(folder, tmp_path):
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(ConfigError, match=r"/out is not a folder\. Name a folder"):
        export_folder("llm-arithmetic", folder, tmp_path / "out")


def test_an_export_that_fails_on_the_way_leaves_nothing_and_can_be_tried_again(tmp_path):
    files = [
        jsonl(tmp_path / f"{name}.jsonl", trial(raw_response="46" + " " * spaces))
        for name, spaces in (("a", 0), ("b", 5_000))
    ]
    import_files("llm-arithmetic", files, tmp_path / "results")
    with (
        disk_for(2_000),
        pytest.raises(StoreError, match=r"out/b\.jsonl: cannot be written: File too large"),
    ):
        export_folder("llm-arithmetic", tmp_path / "results", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    export_folder("llm-arithmetic", tmp_path / "results", tmp_path / "out")
    for file in files:
        assert (tmp_path / "out" / file.name).read_bytes() == file.read_bytes()
    assert len(runs_in(tmp_path / "out")) == 2


def test_a_folder_without_trials_of_the_format_is_refused(folder, tmp_path):
    with pytest.raises(ConfigError, match="no finished trial of string_reversal, integer_addition"):
        export_folder("integer-addition", folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_its_problems_a_folder_cannot_be_exported(folder, tmp_path):
    (folder / "problems" / "a.parquet").unlink()
    with pytest.raises(ProblemSetError, match=r"a\.parquet: no such file"):
        export_folder("llm-arithmetic", folder, tmp_path / "out")
