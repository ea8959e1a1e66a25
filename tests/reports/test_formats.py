"""`report --style formats`: the same problems in several formats of numbers, beside plain digits."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

import pytest
import yaml

import asyncbench as ab
from asyncbench.config.sweep import sweep_from
from asyncbench.problems.making import write_problems
from asyncbench.problems.schema import identified
from asyncbench.records import Condition, Model, Outcome, Problem, Reply, Trial, Usage
from asyncbench.reports.formats.counts import MISLEADING, OTHER_WHOLE, SAME_WHOLE, pair_of
from asyncbench.store.folder import Store
from asyncbench.suites.nupa.execution import written_execution
from asyncbench.suites.nupa.generation import draft_nupa
from asyncbench.suites.nupa.grading import grade as nupa_grade
from asyncbench.suites.nupa.tasks import TASKS
from tests.rows import each_row
from tests.store import made
from tests.suites.nupa.drafts import drafts_of

ROOT = Path(__file__).resolve().parents[2]
PER_DIGIT = {"plain": 0.25, "reversed": 0.5, "spaced": 1.0}  # input tokens of a digit of the operands
MAX_FLOAT = next(task for task in TASKS.values() if task.kind == ("max", "hard", "float"))
ADD = next(task for task in TASKS.values() if task.kind == ("add", "", "integer"))


def problems() -> list[Problem]:
    """Return two tasks of ten lengths each, whose prompts have 100 and 200 tokens beside their operands."""
    drafts = [
        draft
        for task in (ADD, MAX_FLOAT)
        for length in range(3, 13)
        for draft in islice(drafts_of(task, length, seed=5), 2)
    ]
    return list(identified(drafts))


def conditions(shots: int | None) -> dict[str, Condition]:
    """Return a condition for each format, which asks for it in words of its own."""
    return {
        name: Condition(
            name=f"{name} {shots}",
            digits=() if name == "plain" else (name,),
            shots=shots,
            described={"system": f"Write {name} numbers."}
            | ({} if name == "plain" else {"digits": [name]})
            | ({"shots": shots} if shots else {}),
        )
        for name in PER_DIGIT
    }


def folder_of(path: Path, is_right: Callable[[str, int | None, int], bool]) -> Path:
    """Write a folder in which a model answered all problems in each format, with and without examples.

    Args:
        path: the folder.
        is_right: of a format, a number of examples and the place of a problem.
    """
    asked = problems()
    ways = [(*way, shots) for shots in (None, 5) for way in conditions(shots).items()]
    with Store.open(path, sweep="s") as store:
        for number, ((name, condition, shots), (place, problem)) in enumerate(
            product(ways, enumerate(asked))
        ):
            trial = Trial(
                trial_id=made.trial_id(number),
                run="s",
                sweep="s",
                problem_set="s",
                problem=problem,
                model=Model(alias="m", provider="openai", model_id="m", api="chat"),
                condition=condition,
            )
            tokens = (100 if problem.task == "add" else 200) + PER_DIGIT[name] * digits_of(problem)
            right = is_right(name, shots, place)
            answer = problem.expected if right else "no"
            reply = Reply(text=answer, usage=Usage(input_tokens=round(1000 * tokens), output_tokens=7))
            grade = made.grade(answer, Outcome.CORRECT if right else Outcome.WRONG, grader="strict")
            made.keep(store, made.ended(trial, reply), replace(made.result(trial, reply), grades=(grade,)))
        store.write_manifest({"runs": {"s": {"planned": {}}}})
    (path / "problems").mkdir(exist_ok=True)
    write_problems(asked, path / "problems" / "s.parquet")
    return path


def digits_of(problem: Problem) -> int:
    return sum(map(str.isdigit, "".join(problem.operands)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder in which all is right but half of the spaced numbers without examples."""
    path = tmp_path_factory.mktemp("formats") / "out"
    return folder_of(path, lambda name, shots, place: name != "spaced" or bool(shots) or place % 2 == 0)


def data_of(folder):
    return json.loads(ab.report(folder, "formats").as_json())


def test_a_format_is_beside_plain_digits_as_compare_has_the_two_whatever_words_ask_for_it(folder):
    lines = {(line["name"], line["value"]): line for line in data_of(folder)["formats"]}
    beside = ab.compare("m (spaced None)", "m (plain None)", folder).found.whole

    assert [*lines] == [(name, form) for name in ("all together", "m (shots=5)", "m") for form in PER_DIGIT]
    assert lines["m", "plain"]["difference"] is None
    assert lines["m", "spaced"]["difference"] == beside.found.difference == -0.5
    assert lines["m", "spaced"]["difference_interval"] == [*(beside.interval or ())]
    assert lines["m (shots=5)", "spaced"]["difference"] == 0
    assert lines["all together", "spaced"]["difference"] == -0.25


def test_examples_are_beside_none_in_each_format(folder):
    lines = {(line["name"], line["value"]): line for line in data_of(folder)["examples"]}

    assert lines["m (plain)", "5"]["difference"] == 0
    assert lines["m (spaced)", "5"]["difference"] == 0.5
    assert lines["m (spaced)", "none"]["difference"] is None


def test_tokens_of_operands_are_what_grows_with_their_digits_in_prompts_of_a_task(folder):
    data = data_of(folder)
    digits = [*map(digits_of, problems())]

    for line in data["formats"][3:]:
        each = 1000 * PER_DIGIT[line["value"]]
        assert line["tokens_per_digit"] == pytest.approx(each, rel=1e-4)
        assert line["tokens_per_operand"] == pytest.approx(each * sum(digits) / (2 * len(digits)), rel=1e-4)
        assert line["input_tokens"] == pytest.approx(150_000 + each * sum(digits) / len(digits), rel=1e-4)
    for line in data["remainders"]:
        if line["name"] != "all together":
            assert line["tokens_per_digit"] == pytest.approx(1000 * PER_DIGIT[line["value"]], rel=1e-3)


def test_problems_are_parted_by_length_modulo_3_with_their_mean_length(folder):
    parts = {line["remainder"]: line for line in data_of(folder)["remainders"] if line["value"] == "plain"}

    assert {rest: (line["problems"], line["mean_length"]) for rest, line in parts.items()} == {
        0: (16, 7.5),
        1: (12, 7.0),
        2: (12, 8.0),
    }


@each_row(
    ("left", "right", "pair"),
    [
        ("9.11", "9.9", MISLEADING),
        ("9.9", "9.11", MISLEADING),
        ("9.1", "9.23", SAME_WHOLE),
        ("9.05", "9.5", SAME_WHOLE),  # 5 is no more than 5
        ("9.05", "9.4", MISLEADING),
        ("12.5", "12.5", SAME_WHOLE),
        ("8.99", "9.1", OTHER_WHOLE),
        ("9", "9.1", None),  # as sets of others may have it
        ("nine", "9.1", None),
        ("12345678901234567890.123456789012345678901", "12345678901234567890.2", MISLEADING),
    ],
)
def test_decimals_mislead_where_those_of_the_smaller_number_look_larger(left, right, pair):
    assert pair_of((left, right)) == pair


def test_pairs_of_decimals_are_split_and_no_other_problem_is_among_them(folder):
    lines = [line for line in data_of(folder)["pairs"] if (line["name"], line["value"]) == ("m", "plain")]
    kinds = [pair_of(problem.operands) for problem in problems() if problem.representation == "float"]

    assert {line["pair"]: line["problems"] for line in lines} == {
        kind: kinds.count(kind) for kind in set(kinds)
    }
    assert sum(line["problems"] for line in lines) == 20


def test_tasks_stand_by_themselves_with_the_models_together(folder):
    lines = data_of(folder)["tasks"]

    assert {line["name"] for line in lines} == {"all together"}
    assert [line["task"] for line in lines if line["value"] == "plain"] == ["nupa/add", "nupa/max"]
    assert "Tasks are shown of all together" in ab.report(folder, "formats").as_text()


@pytest.mark.long
def test_questions_without_operands_have_their_tokens_per_trial_alone(tmp_path):
    (tmp_path / "my.csv").write_text("question,answer\nWhat is 12 + 30?,42\nWhat is 5 + 6?,11\n")
    problems = {"path": str(tmp_path / "my.csv"), "suite": "custom", "grader": "number"}
    sweep = {
        "name": "own",
        "problems": [problems | {"columns": {"question": "question", "expected": "answer"}}],
        "models": ["simulated/oracle"],
        "conditions": [{"name": "plain"}, {"name": "spaced", "digits": "spaced"}],
        "out": str(tmp_path / "out"),
    }
    asyncio.run(ab.run_sweep(sweep_from(sweep)))

    plain, spaced = data_of(tmp_path / "out")["formats"]
    assert plain["input_tokens"] <= spaced["input_tokens"]
    assert plain["tokens_per_operand"] is None
    assert "Tokens of an operand" not in ab.report(tmp_path / "out", "formats").as_text()


def test_without_another_format_the_report_says_how_to_ask_in_some(tmp_path):
    text = ab.report(
        folder_of(tmp_path / "out", lambda *_: True), "formats", where="condition LIKE 'plain%'"
    ).as_text(width=200)

    assert "`configs/nupa-formats.yaml` asks in six" in text
    assert "Worked examples" in text


def test_replies_with_a_rule_are_compared_with_the_executed_rule(tmp_path):
    (problem,) = identified([draft_nupa(ADD, ("12345", "678"))])
    executed = "\n".join(written_execution("add", "integer", problem.operands, most=100))
    replies = [
        f"{executed}\nSo the answer is 13023.",
        f"{executed.replace('block = 13', 'block = 14')}\nSo the answer is 13023.",
        f"{executed.replace('block = 13', 'block = 14')}\nSo the answer is 14023.",
        "So the answer is 13023.",
    ]
    conditions = {
        "plain": (Condition(name="plain"), ["The answer is 1"] * 4),
        "rules": (Condition(name="rules", style="rules"), replies),
    }
    results = [
        made.result(
            Trial(
                trial_id=made.trial_id(10 * len(name) + repeat),
                run="s",
                sweep="s",
                problem_set="s",
                problem=problem,
                model=Model(alias="m", provider="openai", model_id="m", api="chat"),
                condition=condition,
                repeat=repeat,
            ),
            Reply(text=text),
        )
        for name, (condition, texts) in conditions.items()
        for repeat, text in enumerate(texts)
    ]
    graded = [
        replace(each, grades=nupa_grade(problem, each.reply, each.trial.condition.style)) for each in results
    ]
    folder = made.results_folder(tmp_path / "out", *graded)
    (folder / "problems").mkdir(exist_ok=True)
    write_problems([problem], folder / "problems" / "s.parquet")

    data = data_of(folder)
    assert [(line["value"], line["difference"]) for line in data["styles"]] == [
        ("chat", None),
        ("rules", 0.75),
    ]
    (model,) = data["rules"]["models"]
    assert (model["replies"], model["followed"], model["followed_right"], model["strayed_right"]) == (
        4,
        1,
        1,
        2,
    )
    assert model["kinds"] == {"another value": 2, "no line": 1}
    assert (model["numbers"], model["median_line"]) == ({"8": 2}, 8)
    (line,) = data["rules"]["lines"]
    assert (line["routine"], line["expected"], line["found"]) == ("add", "block = 13", "block = 14")


@pytest.mark.long
def test_who_knows_everything_is_right_in_every_format_of_the_released_sweep(tmp_path):
    released = yaml.safe_load((ROOT / "configs" / "nupa-formats.yaml").read_text("utf-8"))
    for entry in released["problems"]:
        entry |= {"lengths": "7", "per_length": 1}
    models = [{"model": "simulated/oracle", "max_tokens": 4000}]
    sweep = sweep_from(released | {"models": models, "out": str(tmp_path / "out")}, place="released")
    asyncio.run(ab.run_sweep(sweep))

    lines = data_of(tmp_path / "out")["formats"]
    assert {line["accuracy"] for line in lines} == {1}
    assert {line["value"] for line in lines} == {
        "plain",
        "reversed",
        "spaced",
        "grouped",
        "zero-padded",
        "indexed",
    }
