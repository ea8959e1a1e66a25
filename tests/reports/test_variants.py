"""`report --by model`: which model is better over all its variants, and what each setting adds."""

import json

import pytest

import asyncbench as ab
from asyncbench.analysis.counting import counted
from asyncbench.page.blocks import variants_block
from asyncbench.page.first_screen import head_block
from tests.reports.answered import Asked, folder_of

# Ten problems. `alpha` gains two by `steps` and loses two by its temperature. `beta` gets five in any case.
RIGHT = {
    ("alpha", 0, "plain"): "++++++----",
    ("alpha", 0, "steps"): "++++++++--",
    ("alpha", 1, "plain"): "++++------",
    ("alpha", 1, "steps"): "++++++----",
    **{("beta", value, condition): "+++++-----" for value in (0, 1) for condition in ("plain", "steps")},
}


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    asked = [
        Asked(
            model=f"lab/{model} temperature={value}",
            model_id=model,
            temperature=value,
            condition=condition,
            outcomes=outcomes,
        )
        for (model, value, condition), outcomes in RIGHT.items()
    ]
    return folder_of(tmp_path_factory.mktemp("matrix"), asked)


def data_of(folder):
    return json.loads(ab.report(folder, by="model").as_json())


def test_a_model_counts_once_with_the_mean_over_its_variants_and_its_best(matrix):
    alpha, beta = data_of(matrix)["models"]
    assert (alpha["model"], alpha["variants"], alpha["problems"], alpha["accuracy"]) == (
        "lab/alpha",
        4,
        10,
        0.6,
    )
    assert (alpha["best"], alpha["alike"], alpha["best_accuracy"]) == ("t=0 · steps", 0, 0.8)
    assert (beta["accuracy"], beta["best"], beta["alike"]) == (0.5, "t=0 · plain", 3)
    assert alpha["difference"] is alpha["p"] is None


def test_models_are_paired_by_problem_on_the_variants_that_both_have(matrix):
    _, beta = data_of(matrix)["models"]
    assert beta["difference"] == pytest.approx(-0.1)
    low, high = beta["difference_interval"]
    assert low < beta["difference"] < high
    assert beta["p"] == beta["p_holm"]


def test_each_setting_is_compared_on_the_variants_that_differ_in_nothing_else(matrix):
    lines = {(line["name"], line["setting"], line["value"]): line for line in data_of(matrix)["settings"]}
    assert lines["lab/alpha", "condition", "steps"]["difference"] == pytest.approx(0.2)
    assert lines["lab/alpha", "temperature", "1"]["difference"] == pytest.approx(-0.2)
    assert lines["lab/beta", "temperature", "1"]["difference"] == 0
    assert lines["all together", "condition", "steps"]["difference"] == pytest.approx(0.1)
    assert lines["lab/alpha", "condition", "plain"]["difference"] is None


def test_report_and_page_of_a_matrix_open_with_its_models(matrix, tmp_path):
    report = ab.report(matrix)
    titles = [sheet.title for sheet in report.sheets()]
    assert titles[:2] == ["Models: the mean over their variants", "What each setting adds"]
    assert json.loads(report.as_json())["by_model"]["models"] == data_of(matrix)["models"]
    assert "lab/alpha is right in 60.0% over its 4 variants" in report.as_text()
    head, block = counted(matrix, lambda views: (head_block(views), variants_block(views)))
    assert (head["crossed"], head["models"], len(head["entrants"])) == (True, 2, 8)
    assert [sheet["title"] for sheet in block["tables"][0]["sheets"]] == titles[:2]

    plain = folder_of(tmp_path, [Asked(model=name, outcomes="+-") for name in "ab"])
    assert json.loads(ab.report(plain).as_json())["by_model"] is None
    assert not counted(plain, head_block)["crossed"]


def test_sentences_count_models_as_models(matrix):
    finding = " ".join(counted(matrix, head_block)["finding"])
    assert "All eight variants of two models are statistically tied" in finding
    assert "8 variants of 2 models" in ab.report(matrix, "morning").as_text()
    assert "8 variants of 2 models on the same 10 problems" in ab.report(matrix, "standings").as_text()


def test_two_servers_of_one_model_are_two_models(tmp_path):
    asked = [
        Asked(model=name, outcomes="+-", model_id="llama", condition=way) for name in "ab" for way in "xy"
    ]
    assert [line["model"] for line in data_of(folder_of(tmp_path, asked))["models"]] == ["a", "b"]


def test_parameters_are_columns_of_trials_in_sql(matrix):
    query = "SELECT DISTINCT model, temperature FROM trials ORDER BY ALL"
    rows = ab.sql(matrix, query).to_pylist()
    assert [row["temperature"] for row in rows] == [0, 1, 0, 1]
    whole = ab.sql([matrix], "SELECT model, temperature FROM trials WHERE temperature > 0.5")
    assert {row["model"] for row in whole.to_pylist()} == {
        f"lab/{name} temperature=1" for name in ("alpha", "beta")
    }
    assert "temperature" not in ab.read_trials(matrix).column_names
