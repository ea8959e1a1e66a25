"""NUPA's files: its test set becomes problems, recorded replies a results folder, and back again."""

import json
from pathlib import Path

import pytest

from asyncbench import (
    export_folder,
    generate,
    import_files,
    import_problems,
    read_grades,
    read_trials,
    report,
)
from asyncbench.errors import ConfigError
from asyncbench.problems.opening import open_set
from asyncbench.published.nupa.report import nupa_report_on
from asyncbench.reports.comparison.report import compare_on
from asyncbench.suites.nupa.generation import draft_nupa
from asyncbench.suites.nupa.tasks import TASKS, template
from tests.commands import asyncbench
from tests.recorded import nupa_problems, texts_of
from tests.upkeep.exchange.made import jsonl, tables

SUM, SIG = "add_Integer_Integer_Integer", "sig_Float_int_ScientificNotation"
MIN = "min_Fraction_Fraction_Fraction"


def entry(name: str, *operands: str) -> str:
    made = draft_nupa(TASKS[name], operands, profile="reference")
    return f"{made.question} {made.expected}"


def published(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


SET = {
    SUM: {"3": [entry(SUM, "744", "543"), entry(SUM, "1", "999")], "4": [entry(SUM, "7440", "543")]},
    SIG: {"3": [entry(SIG, "9.995", "3")]},
    MIN: {"1": [entry(MIN, "3/5", "3/8")]},
}


def test_a_test_set_becomes_problems_in_balanced_order(tmp_path):
    made = import_problems(published(tmp_path / "test.json", SET), tmp_path / "out.parquet")
    rows = list(open_set(tmp_path / "out.parquet").read())
    assert made.left_out == ()
    assert [(one.task, one.length, one.operands) for one in rows] == [
        ("add", 3, ("744", "543")),
        ("add", 4, ("7440", "543")),
        ("sig", 3, ("9.995", "3")),
        ("min", 1, ("3/5", "3/8")),
        ("add", 3, ("1", "999")),
    ]
    sig = next(one for one in rows if one.task == "sig")
    made_by_us = draft_nupa(TASKS[SIG], ("9.995", "3"), profile="reference")
    assert (sig.question, sig.expected) == (made_by_us.question, made_by_us.expected)
    assert json.loads(sig.extra)["profile"] == "reference"


def test_every_recorded_problem_comes_in_with_its_operands(golden, tmp_path):
    rows = nupa_problems(golden).values()
    content: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        cell = content.setdefault(row["task_name"], {}).setdefault(str(row["digit"]), [])
        cell.append(f"{row['question']} {row['groundtruth']}")
    made = import_problems(published(tmp_path / "test.json", content), tmp_path / "out.parquet")
    found = {(one.question, one.expected, one.operands) for one in open_set(tmp_path / "out.parquet").read()}
    assert (made.problems.rows, made.left_out) == (len(rows), ())
    assert found == {(row["question"], row["groundtruth"], texts_of(row)) for row in rows}


def test_a_question_in_other_words_keeps_its_text_and_its_answer(tmp_path):
    import_problems(
        published(tmp_path / "t.json", {SUM: {"3": ["What is 744 plus 543 = 1287 "]}}), tmp_path / "o"
    )
    (one,) = open_set(tmp_path / "o").read()
    assert (one.question, one.expected, one.operands) == ("What is 744 plus 543 =", "1287", ())


@pytest.fixture
def shots(tmp_path):
    """Two files of one name in folders of their own: without worked examples and with five."""
    out = tmp_path / "results"
    for folder, texts, plan in (("zero", ("1286", "1287"), {}), ("five", ("1287", "1287"), {"shots": 5})):
        (tmp_path / folder).mkdir()
        lines = [said(f"The answer is {text}", truth=str(1287 + n)) for n, text in enumerate(texts)]
        import_files("nupa", [jsonl(tmp_path / folder / "llama.jsonl", *lines)], out, **plan)
    return out


def test_files_of_one_name_are_two_runs_where_their_shots_differ(shots, tmp_path):
    runs = read_trials(shots, ["run", "model", "condition"]).to_pylist()
    assert {tuple(row.values()) for row in runs} == {
        ("llama", "llama", "chat"),
        ("llama 5-shot", "llama", "5-shot"),
    }
    again = import_files("nupa", [tmp_path / "five" / "llama.jsonl"], shots, shots=5)
    assert [(run.run, run.trials, run.there_before) for run in again.runs] == [("llama 5-shot", 0, 2)]
    with pytest.raises(ConfigError, match="has another run 'llama'"):
        import_files("nupa", [tmp_path / "five" / "llama.jsonl"], shots)


@pytest.mark.parametrize("by", ["condition", "shots"])
def test_conditions_of_imported_runs_are_compared(shots, by):
    lines = json.loads(report(shots, by=by).as_json())["lines"]
    values = {"condition": ["chat", "5-shot"], "shots": ["not set", "5"]}[by]
    assert [(line["name"], line["value"], line["problems"]) for line in lines] == [
        ("llama", value, 2) for value in values
    ]
    assert lines[1]["p"] is not None


def test_a_condition_of_an_imported_run_is_named_and_compared(shots):
    text = report(shots).as_text()
    assert "llama (5-shot)" in text
    assert "run " not in text
    assert compare_on("llama (chat)", "llama (5-shot)", shots).found.whole.found.problems == 2


def test_figure_8_has_a_model_beside_itself_however_many_there_are(tmp_path):
    out = tmp_path / "results"
    names = [f"model-{n:02}" for n in range(12)]
    for shots in (0, 5):
        files = [jsonl(tmp_path / f"{name}-{shots}.jsonl", said("The answer is 1287")) for name in names]
        for name, file in zip(names, files, strict=True):
            import_files("nupa", [file], out, model=name, shots=shots, condition=f"shots {shots}")
    pages = [one for one in nupa_report_on(out).pictures() if one.name.startswith("figure-8")]
    assert [page.name for page in pages] == ["figure-8-1", "figure-8-2", "figure-8-3"]
    for page in pages:
        shown = list(dict.fromkeys(row["model"] for row in page.rows))
        assert shown[::2] == [f"{name[:8]} (shots 0)" for name in shown[::2]]
        assert shown[1::2] == [f"{name[:8]} (shots 5)" for name in shown[::2]]
        assert [part.name for part in page.parted()] == [page.name]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        pytest.param({"add": {"3": ["1 + 1 = 2"]}}, "'add' is no task of NUPA", id="task"),
        pytest.param({SUM: {"x": ["1 + 1 = 2"]}}, "'x' is not a length", id="length"),
        pytest.param({SUM: {"3": ["1 + 1"]}}, "is not a question with an answer", id="no-answer"),
        pytest.param({SUM: {"3": ["1 + 1 = two"]}}, "'two' is not written as integer", id="answer"),
        pytest.param({SUM: {"3": [5]}}, "5 is not a question", id="no-text"),
    ],
)
def test_what_cannot_be_used_is_named_and_the_rest_kept(tmp_path, cell, said):
    content = {MIN: SET[MIN]} | cell
    made = import_problems(published(tmp_path / "t.json", content), tmp_path / "out.parquet")
    assert made.problems.rows == 1
    (complaint,) = made.left_out
    assert said in complaint
    assert str(tmp_path / "t.json") in complaint


@pytest.mark.parametrize("content", [[], {SUM: 5}, {SUM: {"3": 5}}, {}, {"x": {"3": ["1 = 1"]}}])
def test_a_file_that_is_no_test_set_is_refused(tmp_path, content):
    with pytest.raises(ConfigError, match=r"t\.json"):
        import_problems(published(tmp_path / "t.json", content), tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_the_command_makes_a_problem_set(tmp_path):
    file = published(tmp_path / "test.json", SET | {"odd": {"1": ["1 = 1"]}})
    done = asyncbench("import", "nupa-problems", file, "--out", tmp_path / "out.parquet")
    assert done.returncode == 3
    assert done.stdout == f"{tmp_path / 'out.parquet'}: 5 problems\n"
    assert done.stderr.startswith(f"{file}, odd, 1[0]: ")


# ── replies ──────────────────────────────────────────────────────────────────────────────────


def said(
    *texts: str, name: str = SUM, digit: object = 3, truth: str = "1287", **more: object
) -> dict[str, object]:
    return {"task": name, "digit": digit, "generated_text": list(texts), "groundtruth": truth} | more


LINES = (
    said("The answer is 1287"),
    said("The answer is 1286", "1287"),
    said("0.5", name=MIN, digit=1, truth="3/8"),
    said("1.5", question=template(TASKS[SUM], "fixed") % ("1", "1"), truth="2"),
)


def test_files_of_one_model_with_and_without_examples_are_its_two_conditions_and_make_figure_8(tmp_path):
    out = tmp_path / "results"
    for shots, answer in ((0, "1286"), (5, "1287")):
        file = jsonl(tmp_path / f"llama-{shots}.jsonl", said(f"The answer is {answer}"))
        done = asyncbench("import", "nupa", file, "--out", out, "--model", "llama", "--shots", shots)
        assert done.returncode == 0, done.stderr
    (figure,) = (one for one in nupa_report_on(out).pictures() if one.name == "figure-8")
    rows = [(row["model"], row["exact_match"]) for row in figure.rows if row["range"] == "S"]
    assert rows == [("llama (chat)", 0.0), ("llama (5-shot)", 1.0)]
    assert set(read_trials(out, ["condition_params"])["condition_params"].to_pylist()) == {
        "{}",
        '{"shots":5}',
    }


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"shots": -1}, "shots: -1 is too small"), ({"depths": "2"}, "leave out depths")],
)
def test_how_replies_were_asked_has_to_make_sense(tmp_path, options, complaint):
    with pytest.raises(ConfigError, match=complaint):
        import_files("nupa", [jsonl(tmp_path / "llama.jsonl", *LINES)], tmp_path / "results", **options)


def test_replies_come_in_graded_anew_and_go_out_as_they_were(tmp_path):
    file = jsonl(tmp_path / "llama.jsonl", *LINES)
    done = import_files("nupa", [file], tmp_path / "results")
    assert (done.runs[0].trials, done.left_out) == (5, ())
    strict = read_grades(tmp_path / "results", ["grader", "exact_match"]).to_pylist()
    assert sum(row["exact_match"] for row in strict if row["grader"] == "strict") == 2
    assert set(read_trials(tmp_path / "results")["model"].to_pylist()) == {"llama"}
    export_folder("nupa", tmp_path / "results", tmp_path / "exported")
    assert (tmp_path / "exported" / "llama.jsonl").read_text() == file.read_text()


def test_the_style_tells_where_the_answer_is_looked_for(tmp_path):
    file = jsonl(tmp_path / "base.jsonl", said(" 1287\nAdd"), said("1287"))
    for style, right in (("completion", [True, False]), ("chat", [True, True])):
        folder = tmp_path / style
        import_files("nupa", [file], folder, style=style)
        rows = read_trials(folder, ["exact_match", "style", "reply_text"]).to_pylist()
        assert [row["exact_match"] for row in sorted(rows, key=lambda row: row["reply_text"])] == right
        assert {row["style"] for row in rows} == {style}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        pytest.param([], "not a reply", id="list"),
        pytest.param(said("1", name="add"), "'add' is no task", id="task"),
        pytest.param(said("1", digit=0), "0 is not a length", id="length"),
        pytest.param(said(), "'generated_text' is []", id="no-reply"),
        pytest.param(said("1", truth="1.5"), "'1.5' is not written as integer", id="truth"),
        pytest.param(said("1", style="song"), "'style' is 'song'", id="style"),
        pytest.param({"task": SUM}, "'groundtruth' is missing", id="missing"),
    ],
)
def test_a_line_that_cannot_be_used_is_left_out(tmp_path, line, complaint):
    file = jsonl(tmp_path / "m.jsonl", said("1287"), line)
    done = import_files("nupa", [file], tmp_path / "results")
    assert done.runs[0].trials == 1
    assert f"{file}, line 2: " in done.left_out[0]
    assert complaint in done.left_out[0]


def test_a_style_or_plan_that_is_none_is_refused(tmp_path):
    file = jsonl(tmp_path / "m.jsonl", said("1287"))
    for plan, complaint in (({"style": "song"}, "Choose one of: chat"), ({"trials": 3}, "leave out trials")):
        with pytest.raises(ConfigError, match=complaint):
            import_files("nupa", [file], tmp_path / "results", **plan)


def test_importing_an_export_gives_the_same_tables(tmp_path):
    file = jsonl(tmp_path / "m.jsonl", *LINES, said("1", simulated=True, style="rules"))
    import_files("nupa", [file], tmp_path / "results")
    export_folder("nupa", tmp_path / "results", tmp_path / "exported")
    import_files("nupa", [tmp_path / "exported"], tmp_path / "again" / "results")
    first, again = tables(tmp_path / "results"), tables(tmp_path / "again" / "results")
    for rows in (*first, *again):
        for row in rows:
            row.pop("finished_at", None), row.pop("started_at", None)  # those of the file
    assert first == again


def test_a_set_of_ones_own_is_read_back_as_it_was_made(tmp_path):
    made = generate(
        "nupa", tmp_path / "own.parquet", seed=1, per_length=1, lengths="3,30", profile="reference"
    )
    content: dict[str, dict[str, list[str]]] = {}
    for one in made.read():
        name = json.loads(one.extra)["task_name"]
        content.setdefault(name, {}).setdefault(str(one.length), []).append(f"{one.question} {one.expected}")
    import_problems(published(tmp_path / "t.json", content), tmp_path / "again.parquet")
    ids = [
        {one.problem_id: one.operands for one in open_set(path).read()} for path in tmp_path.glob("*.parquet")
    ]
    assert ids[0] == ids[1]
