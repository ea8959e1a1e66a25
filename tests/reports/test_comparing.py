"""Two models on the same questions: counts, tests, names, and where they differ."""

import json

import pytest

from asyncbench.errors import ConfigError
from asyncbench.reports.comparison.report import compare_on
from asyncbench.stats.paired import problems_needed, smallest_detectable
from tests.commands import asyncbench_here
from tests.reports.answered import Asked, folder_of, problem
from tests.reports.test_standings import ISSUE

A, B = ISSUE


@pytest.fixture
def folder(tmp_path):
    return folder_of(tmp_path, [Asked(model="a", outcomes=A), Asked(model="b", outcomes=B)])


@pytest.mark.long
def test_the_paired_test_sees_what_the_unpaired_does_not(folder):
    """100 problems, 29 right by both, 15 by a only, 3 by b only."""
    found = compare_on("a", "b", folder, unpaired=True).found
    (row,) = found.rows
    assert row.unpaired.p == pytest.approx(0.080, abs=5e-4)
    assert row.p == pytest.approx(0.008, abs=5e-4)
    text = compare_on("a", "b", folder).as_text(width=200)
    assert "A 44.0%, B 32.0% on 100 problems in common: a is better than b by 12.0 points" in text
    assert "exact McNemar, p = 0.008" in text


@pytest.mark.long
def test_which_is_named_first_changes_the_signs_alone(folder):
    one, other = (compare_on(*names, folder).found.whole for names in (("a", "b"), ("b", "a")))
    assert one.p == other.p
    assert one.found.difference == -other.found.difference
    assert "a is better than b by 12.0 points" in compare_on("b", "a", folder).as_text(width=200)


@pytest.mark.long
def test_questions_where_they_differ_are_shown_both_ways(folder):
    comparison = compare_on("a", "b", folder, examples=2)
    first = comparison.found.only_a[0]
    asked = problem(29)
    assert first.problem_id == asked.problem_id
    assert (first.question, first.expected) == (asked.question, "129")
    assert (first.answer_a, first.answer_b, first.outcome_b) == ("129", "1291", "wrong")
    (back,) = {one.outcome_a for one in comparison.found.only_b}
    assert back == "wrong"
    text = comparison.as_text(width=80)
    assert "Only a is right: 2 of 15" in text
    assert "Only b is right: 2 of 3" in text
    assert text.count("expected") == 4


@pytest.mark.long
def test_answers_stand_right_below_each_other(folder):
    lines = compare_on("a", "b", folder, examples=1).as_text(width=80).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("  expected"))
    assert [line.split() for line in lines[at : at + 3]] == [["expected", "129"], ["a", "129"], ["b", "1291"]]
    assert len({line.rindex("129") for line in lines[at : at + 3]}) == 1


def test_long_answers_are_laid_under_each_other_in_equal_pieces(tmp_path):
    many = [
        Asked(model="a", outcomes="+"),
        Asked(model="b-with-a-name", outcomes="-", answer="1234567890" * 6),
    ]
    lines = compare_on("a", "b-with-a-name", folder_of(tmp_path, many)).as_text(width=40).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("  expected"))
    assert lines[at:] == [
        "  expected       100",
        "  a              100",
        "  b-with-a-name  1234567890123456789012…",
        "",
        "                 3456789012345678901234…",
        "",
        "                 5678901234567890",
    ]


def test_what_is_no_answer_is_told_by_its_outcome(tmp_path):
    folder = folder_of(
        tmp_path, [Asked(model="a", outcomes="+++"), Asked(model="b", outcomes="tx?", task="add")]
    )
    text = compare_on("a", "b", folder).as_text(width=80)
    for name in ("(truncated)", "(failed)", "(no answer)"):
        assert name in text


@pytest.mark.long
def test_suites_and_tasks_have_their_own_lines_adjusted_together(tmp_path):
    parts = [("nupa", "add"), ("nupa", "sub"), ("custom", "custom")]
    folder = folder_of(
        tmp_path,
        [
            Asked(model=model, outcomes=outcomes, suite=suite, task=task)
            for model, outcomes in (("a", "+" * 12), ("b", "-" * 10 + "++"))
            for suite, task in parts
        ],
    )
    rows = compare_on("a", "b", folder).found.rows
    assert [(row.suite, row.task) for row in rows] == [
        (None, None),
        ("custom", None),
        ("nupa", None),
        ("nupa", "add"),
        ("nupa", "sub"),
    ]
    assert [row.found.only_a for row in rows] == [30, 10, 20, 10, 10]
    p, p_holm = min((row.p or 0.0, row.p_holm or 0.0) for row in rows[1:])
    assert p_holm == pytest.approx(4 * p)
    assert rows[0].p_holm == rows[0].p
    (only,) = compare_on("a", "b", folder, suite="nupa", task="sub").found.rows
    assert only.found.only_a == 10


def test_repeats_are_paired_by_problem(tmp_path):
    folder = folder_of(
        tmp_path,
        [
            Asked(model=model, outcomes=outcomes, repeat=repeat)
            for model, outcomes in (("a", "++-"), ("b", "--+"))
            for repeat in range(2)
        ],
    )
    whole = compare_on("a", "b", folder).found.whole
    assert whole.found.differences == {-2: 1, 2: 2}
    assert (whole.found.problems, whole.found.trials) == (3, 6)
    assert whole.p == 1.0  # three problems, however often asked


ADDED = {"a": "+" * 80 + "-" * 20, "b": "+" * 40 + "-" * 60}
REVERSED = {"a": "+" * 8 + "-" * 2, "b": "+" * 4 + "-" * 6}
UNEQUALLY_OFTEN = {
    "a condition for one suite": [
        *(Asked(model=model, outcomes=outcomes, condition="zero") for model, outcomes in ADDED.items()),
        *(
            Asked(
                model=model,
                outcomes=outcomes,
                condition=name,
                suite="string_reversal",
                task="reverse",
                first=200,
            )
            for model, outcomes in REVERSED.items()
            for name in ("zero", "five")
        ),
    ],
    "a repeat that was interrupted": [
        *(Asked(model=model, outcomes=outcomes) for model, outcomes in ADDED.items()),
        *(
            Asked(model=model, outcomes=outcomes[35:45], repeat=1, first=35)
            for model, outcomes in ADDED.items()
        ),
    ],
}


@pytest.mark.long
@pytest.mark.parametrize("asked", UNEQUALLY_OFTEN.values(), ids=UNEQUALLY_OFTEN)
def test_an_interval_holds_its_difference_where_problems_were_asked_unequally_often(tmp_path, asked):
    comparison = compare_on("a", "b", folder_of(tmp_path, asked))
    for row in comparison.found.rows:
        assert row.interval is not None
        assert row.interval[0] < row.found.difference < row.interval[1]
    points = 100 * comparison.found.whole.found.difference
    low, high = (100 * end for end in comparison.found.whole.interval or ())
    assert (
        f"a is better than b by {points:.1f} points (95 % CI {low:.1f} to {high:.1f})"
        in comparison.as_text(width=300)
    )


@pytest.mark.long
def test_what_more_problems_would_show_weighs_problems_as_the_difference_does(tmp_path):
    found = compare_on("a", "b", folder_of(tmp_path, UNEQUALLY_OFTEN["a condition for one suite"])).found
    # 40 of 100 problems differ by 1 of 1 trial, 4 of 10 by 2 of 2: 48 of 120 trials of 110 problems.
    share = (40 * 1 + 4 * 2**2) * 110 / 120**2
    assert found.needed == problems_needed(48 / 120, share)
    assert found.whole.detectable == pytest.approx(smallest_detectable(110, share))


@pytest.mark.long
def test_problems_asked_once_in_either_of_two_conditions_are_tested_as_asked_once(tmp_path):
    folder = folder_of(
        tmp_path,
        [
            Asked(model=model, outcomes=outcomes, condition=condition, first=first)
            for model, outcomes in ADDED.items()
            for condition, first in (("zero", 0), ("five", 200))
        ],
    )
    comparison = compare_on("a", "b", folder)
    assert comparison.found.whole.found.trials == comparison.found.whole.found.problems == 200
    assert "exact McNemar" in comparison.as_text(width=300)


@pytest.mark.long
def test_conditions_are_compared_like_with_like(tmp_path):
    folder = folder_of(
        tmp_path,
        [
            Asked(model=model, outcomes=outcomes, condition=condition)
            for model, condition, outcomes in (
                *(("a", "x", "++"), ("a", "y", "--")),
                *(("b", "x", "--"), ("b", "y", "++"), ("b", "z", "++")),
            )
        ],
    )
    whole = compare_on("a", "b", folder).found.whole
    assert (whole.found.trials, whole.found.only_a, whole.found.only_b) == (4, 2, 2)
    assert compare_on("a (x)", "a (y)", folder).found.whole.found.only_a == 2
    assert compare_on("a", "b (y)", folder).found.whole.found.only_b == 2


@pytest.fixture
def asked_often(tmp_path):
    """Two conditions, twice each: a is right wherever b is not, but the first time in x."""
    return folder_of(
        tmp_path,
        [
            Asked(model=model, outcomes=outcomes, condition=condition, repeat=repeat)
            for model, most, first in (("a", "+" * 8, "-" * 8), ("b", "-" * 8, "-" * 8))
            for condition, repeat, outcomes in (
                *(("x", 0, first), ("x", 1, most)),
                *(("y", 0, most), ("y", 1, most)),
            )
        ],
    )


@pytest.mark.long
def test_of_each_problem_one_example_is_shown_with_its_condition_and_repeat(asked_often):
    comparison = compare_on("a", "b", asked_often, examples=3)
    text = comparison.as_text(width=200)
    assert "Only a is right: 24 trials, 8 problems, 3 of these, shortest questions first" in text
    blocks = [line for line in text.splitlines() if "What is 100 +" in line]
    assert len({line.rpartition("+")[2] for line in blocks}) == len(blocks) == 3
    assert all(line.startswith("nupa/add, 1, x, repeat 1: ") for line in blocks)
    assert comparison.as_markdown().count("| nupa/add, 1, x, repeat 1 |") == 3
    assert len(json.loads(compare_on("a", "b", asked_often, every=True).as_json())["only_a"]) == 24


@pytest.mark.long
def test_a_condition_or_a_repeat_is_named_only_where_there_are_several(asked_often):
    text = compare_on("a (y)", "b (y)", asked_often).as_text(width=200)
    assert "\nnupa/add, 1, repeat 0: " in text
    all_shown = compare_on("a (y)", "b (y)", asked_often, examples=8).as_text(width=200)
    assert "Only a (y) is right: 16 trials, 8 problems, the first trial of each, shortest" in all_shown


@pytest.mark.long
def test_the_same_model_in_another_folder_is_another(tmp_path):
    first = folder_of(tmp_path / "1", [Asked(model="a", outcomes="++-")])
    second = folder_of(tmp_path / "2", [Asked(model="a", outcomes="-+-")])
    comparison = compare_on("a", "a", first, second)
    assert comparison.found.whole.found.only_a == 1
    assert f"a in {second}" in comparison.as_text(width=200)


@pytest.mark.long
def test_problems_that_one_was_asked_are_left_out_and_counted(tmp_path):
    folder = folder_of(tmp_path, [Asked(model="a", outcomes="+++"), Asked(model="b", outcomes="-", first=2)])
    text = compare_on("a", "b", folder).as_text(width=200)
    assert "Left out are the problems that only one of them was asked: A 2, B 0." in text


@pytest.mark.long
def test_lost_trials_are_said_loudly(tmp_path):
    folder = folder_of(tmp_path, [Asked(model="a", outcomes="+++"), Asked(model="b", outcomes="+tx")])
    assert "b 33.3%-100.0% (1 truncated, 1 failed, 66.7%)" in compare_on("a", "b", folder).as_text(width=300)


@pytest.mark.long
def test_models_with_nothing_in_common_are_compared_unpaired_only(tmp_path):
    folder = folder_of(
        tmp_path, [Asked(model="a", outcomes="++--"), Asked(model="b", outcomes="-" * 4, first=50)]
    )
    with pytest.raises(ConfigError, match=r"have no problem in common\. --unpaired"):
        compare_on("a", "b", folder)
    comparison = compare_on("a", "b", folder, unpaired=True)
    assert comparison.found.whole.p is None
    assert comparison.found.whole.unpaired.difference == 0.5
    assert "All problems that each was asked" in comparison.as_text()
    assert "Problems that both were asked" not in comparison.as_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("names", "options", "complaint"),
    [
        pytest.param(("nobody", "b"), {}, "has no model 'nobody'. Choose one of: a, b", id="name"),
        pytest.param(("a", "a"), {}, "a and a are the same", id="same"),
        pytest.param(
            ("a", "b"), {"task": "mul"}, "neither model was asked mul. Choose one of: nupa/add", id="task"
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_reason(folder, names, options, complaint):
    with pytest.raises(ConfigError, match=complaint):
        compare_on(names[0], names[1], folder, **options)


@pytest.mark.long
def test_an_alias_of_several_runs_is_refused_with_their_names(tmp_path):
    folder = folder_of(
        tmp_path, [Asked(model="a", outcomes="+", run=run, first=n) for n, run in enumerate(("x", "y"))]
    )
    with pytest.raises(ConfigError, match=r"'a' means several models\. Choose one of: a, run x, a, run y"):
        compare_on("a", "x", folder)
    assert compare_on("x", "y", folder, unpaired=True).found.a.run == "x"


@pytest.mark.long
def test_conditions_that_never_meet_are_refused_with_the_way_out(tmp_path):
    answers = [Asked(model="a", outcomes="+", condition=one) for one in ("x", "y")]
    folder = folder_of(tmp_path, [*answers, Asked(model="b", outcomes="+", condition="z")])
    with pytest.raises(ConfigError, match=r"Name one condition of each, such as 'a \(x\)'"):
        compare_on("a", "b", folder)
    assert compare_on("a (x)", "b", folder).found.whole.found.both == 1


@pytest.mark.long
def test_markdown_has_the_tables_and_the_questions(folder):
    done = asyncbench_here("compare", "a", "b", folder, "--markdown", "--examples", "1")
    assert "### Problems that both were asked" in done.stdout
    assert "| nupa/add, 3 | What is 100 + 29? | 129 | 129 | 1291 |" in done.stdout


@pytest.mark.long
def test_too_few_problems_are_said_to_be_too_few(tmp_path):
    folder = folder_of(tmp_path, [Asked(model="a", outcomes="+"), Asked(model="b", outcomes="-")])
    said = "Too few problems (1) to detect any difference with 80 % power."
    assert said in compare_on("a", "b", folder).as_text(width=300)


@pytest.mark.long
def test_how_many_problems_it_would_take_is_said_only_where_it_is_not_known_yet(tmp_path, folder):
    assert "would take" not in compare_on("a", "b", folder).as_text(width=300)
    close = folder_of(
        tmp_path / "close", [Asked(model="a", outcomes="++-+-"), Asked(model="b", outcomes="++-++")]
    )
    assert "To detect the gap seen here, you need" in compare_on("a", "b", close).as_text(width=300)


def test_an_alias_with_its_condition_in_brackets_is_understood_however_reports_call_it(tmp_path):
    folder = folder_of(
        tmp_path,
        [
            Asked(model=f"a temperature={value}", outcomes=outcomes, condition=condition)
            for value, outcomes in ((0, "++--"), (1, "+-+-"))
            for condition in ("plain", "steps")
        ],
    )
    found = compare_on("a temperature=0 (steps)", "a · t=1 · steps", folder)
    assert found.found.whole.found.problems == 4
