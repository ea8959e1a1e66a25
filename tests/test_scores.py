"""Scores from 0 to 1 that a grader of one's own gives: checked, stored, averaged, and never an accuracy."""

import asyncio
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import asyncbench as ab
from asyncbench.records import Outcome
from asyncbench.run.summary import Exit
from asyncbench.stats.proportions import mean_interval, wilson
from asyncbench.suites.own_graders import judged_by_function
from asyncbench.suites.plugins import OwnFunction
from asyncbench.tables.headings import SCORED_ONLY
from tests.commands import asyncbench_here
from tests.suites.made import problem


def judged(verdict: object):
    own = OwnFunction(name="mine:own", call=lambda _reply, _problem: verdict, digest="0" * 64)
    return judged_by_function(own, " it is 4 ", problem("custom", "4"))


VERDICTS = {  # what is returned: whether it is correct, and the score
    "a half": (0.5, False, 0.5),
    "one": (1.0, True, 1.0),
    "nought": (0.0, False, 0.0),
    "a whole one": (1, True, 1.0),
    "a fraction": (Fraction(1, 4), False, 0.25),
    "a decimal": (Decimal("0.25"), False, 0.25),
    "a float of numpy": (np.float32(0.5), False, 0.5),
    "a truth of numpy": (np.bool_(True), True, None),
    "a truth": (True, True, None),
    "both": ({"correct": True, "score": 0.3}, True, 0.3),
    "both, at odds": ({"correct": False, "score": 1.0}, False, 1.0),
    "a score in a dict": ({"score": np.float64(1)}, True, 1.0),
    "no score": ({"correct": True}, True, None),
}
REFUSED: list[object] = [
    *(1.5, -0.1, 2, math.nan, math.inf, "0.5", None, [], {}, {"answer": "4"}, 1j, Decimal("NaN")),
    *({"score": None}, {"score": True}, {"correct": 1}, {"correct": True, "score": 7}, {"correct": 0.5}),
    *({"correct": True, "points": 1}, {"correct": True, "answer": 4}, np.array([0.5, 0.5])),
]


@pytest.mark.parametrize(("verdict", "correct", "score"), VERDICTS.values(), ids=VERDICTS)
def test_a_number_is_a_score_and_one_alone_is_correct_at_1(verdict, correct, score):
    judgement = judged(verdict)
    assert (judgement.correct, judgement.score, judgement.answer) == (correct, score, "it is 4")


@pytest.mark.parametrize("verdict", REFUSED, ids=repr)
def test_anything_else_is_refused_with_the_rule(verdict):
    with pytest.raises(TypeError, match=r"mine:own returned .* a score between 0 and 1"):
        judged(verdict)


def test_the_interval_is_wilsons_for_values_of_0_and_1_and_the_usual_one_for_many():
    assert mean_interval(0.3, 3, 10) == pytest.approx(wilson(0.3, 10))
    assert mean_interval(1.0, 10, 10) == wilson(1.0, 10)
    assert mean_interval(0.5, 2.5, 10)[0] < 0.5 < mean_interval(0.5, 2.5, 10)[1]
    values = np.random.default_rng(7).beta(5, 2, 2_000)
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    mine = mean_interval(values.mean(), (values**2).sum(), len(values))
    assert mine == pytest.approx((low, high), abs=3e-4)


GRADER = """
def points(reply, problem):
    return {"correct": reply.strip() == problem.expected, "score": 0.5 + float(problem.expected) / 8}

def half(reply, problem):
    return 0.5

def broken(reply, problem):
    return 2.0
"""


def run(folder, grader: str, source: str = GRADER):
    (folder / "own.csv").write_text("question,expected\n1 + 1?,2\n2 + 2?,4\n")
    (folder / "mine.py").write_text(source)
    (folder / "own.yaml").write_text(
        f"name: own\nproblems: [{{path: own.csv, suite: custom, grader: 'mine:{grader}'}}]\n"
        f"models: [simulated/oracle]\nout: {folder / 'out'}\n"
    )
    return asyncio.run(ab.run_sweep(folder / "own.yaml"))


@pytest.mark.long
def test_scores_go_from_the_run_to_the_grades_and_the_report(tmp_path):
    summary = run(tmp_path, "points")
    rows = ab.read_grades(tmp_path / "out").to_pylist()

    assert sorted(row["score"] for row in rows) == [0.75, 1.0]
    assert {row["outcome"] for row in rows} == {Outcome.CORRECT}
    assert "Accuracy 100 %. Mean score 0.875." in summary.as_text()
    shown = ab.report(tmp_path / "out", style="standings")
    assert "0.875 (0." in shown.as_text(width=200)
    (line,) = json.loads(shown.as_json())["rankings"][0]["lines"]
    assert (line["score"]["value"], line["score"]["trials"], line["share"]) == (0.875, 2, 1.0)
    assert ab.report(tmp_path / "out").as_text(width=200).count("0.875 (0.") == 1
    assert ab.regrade_folder(tmp_path / "out").graders[0].changed == 0
    assert ab.sql(tmp_path / "out", "SELECT sum(score) FROM grades").to_pylist() == [{"sum(score)": 1.75}]


def words(text: str) -> str:
    return " ".join(text.split())


def test_half_a_score_is_no_accuracy_and_says_so(tmp_path):
    told = run(tmp_path, "half").as_text()
    assert "Accuracy 0 %. Mean score 0.500." in told
    assert SCORED_ONLY in words(told)
    for style in (None, "standings"):
        assert SCORED_ONLY in words(ab.report(tmp_path / "out", style=style).as_text())


def test_a_folder_is_not_complete_until_its_replies_are_graded(tmp_path):
    for summary in (run(tmp_path, "broken"), run(tmp_path, "broken")):  # also when nothing is left to ask
        assert (summary.exit, summary.models["simulated/oracle"].grader_errors) == (Exit.UNFINISHED, 2)
        assert "2 replies not graded" in summary.as_text()
    for style in (None, "standings"):
        told = words(ab.report(tmp_path / "out", style=style).as_text())
        assert "2 trials without a grade (counted as not right): mine:broken failed" in told

    again = asyncbench_here("regrade", tmp_path / "out", "--write")
    assert again.returncode == Exit.UNFINISHED
    assert "the grader failed on the reply (TypeError: mine:broken returned 'score': 2.0" in words(
        again.stdout
    )
    corrected = GRADER.replace("return 2.0", "return True")
    (tmp_path / "mine.py").write_text(corrected)
    assert asyncbench_here("regrade", tmp_path / "out", "--write").returncode == 0
    summary = run(tmp_path, "broken", corrected)
    assert (summary.exit, summary.models["simulated/oracle"].grader_errors) == (Exit.COMPLETE, 0)
    assert "without a grade" not in ab.report(tmp_path / "out").as_text()


def test_without_scores_no_table_has_their_column(tmp_path):
    (tmp_path / "sweep.yaml").write_text(
        "name: s\nproblems: [{suite: string_reversal, min_length: 4, max_length: 5}]\n"
        f"models: [simulated/oracle]\nout: {tmp_path / 'out'}\n"
    )
    asyncio.run(ab.run_sweep(tmp_path / "sweep.yaml", limit=3))
    assert "mean score" not in ab.report(tmp_path / "out").as_text(width=300)
