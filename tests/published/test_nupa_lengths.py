"""NUPA's figures against each single length, computed again from single answers, with training lengths."""

import re
from collections import defaultdict
from fractions import Fraction
from statistics import fmean

import pytest

from asyncbench import report
from asyncbench.errors import ConfigError
from asyncbench.published.nupa.report import nupa_report_on
from asyncbench.published.nupa.training import training_lengths
from asyncbench.stats.proportions import wilson
from asyncbench.suites.nupa.tasks import TASKS
from tests.published.test_nupa_report import SUM, keep, problems, result, right
from tests.rows import each_row

LONG = "max_Integer_Integer_Integer"  # up to 100 digits


@pytest.fixture(scope="module")
def sums():
    return problems(SUM, {3: 3, 4: 3, 5: 3, 8: 3, 9: 12})


@pytest.fixture(scope="module")
def folder(sums, tmp_path_factory):
    """`a` has no answer at 4, `b` was not asked 5; each third answer lacks a digit."""
    results = []
    for number, problem in enumerate(sums):
        said = right(problem) if number % 3 else right(problem)[:-1]
        results.append(result(problem, None if problem.length == 4 else said, model="a"))
        if problem.length != 5:
            results.append(result(problem, said, model="b"))
    return keep(tmp_path_factory.mktemp("lengths") / "night", *results)


def pictures_of(folder, **options):
    return {picture.name: picture for picture in nupa_report_on(folder, **options).pictures()}


def digits_right(answer, truth):
    return sum(a == b for a, b in zip(answer[::-1], truth[::-1], strict=False))


def test_each_point_is_the_mean_of_the_answers_of_its_length(sums, folder):
    expected = defaultdict(list)
    for number, problem in enumerate(sums):
        answer = problem.expected if number % 3 else problem.expected[:-1]
        if problem.length != 4:
            share = Fraction(digits_right(answer, problem.expected), len(problem.expected))
            missing = len(problem.expected) - len(answer)
            expected[problem.length].append((answer == problem.expected, share, missing))
    pictures = pictures_of(folder)
    for n, (name, figure) in enumerate(
        {"exact": "exact_match", "digit": "digit_match", "dlength": "dlength"}.items()
    ):
        rows = [row for row in pictures[f"figure-13-{name}-sums"].rows if row["model"] == "a"]
        found = {row["length"]: row[figure] for row in rows}
        means = {
            length: pytest.approx(float(fmean(each[n] for each in answers)))
            for length, answers in expected.items()
        }
        assert found == {4: None, **means}
        if figure == "exact_match":
            ends = {row["length"]: (row["low"], row["high"]) for row in rows if "low" in row}
            assert ends == {
                length: pytest.approx(wilson(fmean(each[0] for each in answers), len(answers)))
                for length, answers in expected.items()
            }


def test_a_line_is_broken_where_there_is_no_answer_and_where_nobody_was_asked(folder):
    rows = pictures_of(folder)["figure-13-exact-sums"].rows
    stretches = defaultdict(list)
    for row in rows:
        if row["exact_match"] is not None:
            stretches[row["model"], row["stretch"]].append(row["length"])
    # nobody was asked 6 or 7 digits; `b` was not asked 5
    assert sorted(stretches.items()) == [
        (("a", 0), [3]),
        (("a", 1), [5]),
        (("a", 2), [8, 9]),
        (("b", 0), [3, 4]),
        (("b", 1), [8, 9]),
    ]
    assert [row["length"] for row in rows if "gap" in row] == [4]
    assert {row["length"] for row in rows if row["model"] == "b"} == {3, 4, 8, 9}
    assert {row["length"] for row in rows if row.get("few")} == {3, 4, 5, 8}


def test_of_many_lengths_neighbours_with_few_problems_are_one_point_but_not_across_the_mark(tmp_path):
    asked = problems(LONG, dict.fromkeys(range(5, 45), 4))
    wrong = {problem for number, problem in enumerate(asked) if number % 5 == 0}
    said = [right(problem) if problem not in wrong else "no" for problem in asked]
    rows = pictures_of(keep(tmp_path, *map(result, asked, said)), training_length="8,9")
    found = {row["lengths"]: row for row in rows["figure-13-exact-comparison"].rows}
    assert [*found][:3] == ["5-7", "8-9", "10-12"]
    of_point = [problem for problem in asked if problem.length in (10, 11, 12)]
    right_share = fmean(problem not in wrong for problem in of_point)
    row = found["10-12"]
    assert (row["length"], row["answers"], row["few"]) == (11, 12, False)
    assert (row["exact_match"], row["low"]) == pytest.approx((right_share, wilson(right_share, 12)[0]))
    assert found["8-9"]["few"]


@each_row(
    ("typed", "model", "task", "expected"),
    [
        ("8", "a", SUM, 8),
        (8, "b", LONG, 8),
        ("8, 20", "a", LONG, 20),
        ("8,20", "a", SUM, 8),  # the first is of tasks of up to 20 digits
        (["a=12", "7"], "a", SUM, 12),
        (["a=12", "7"], "b", SUM, 7),
        (["a=12,30"], "b", SUM, None),
    ],
)
def test_a_training_length_is_of_all_models_or_of_one_and_by_class_of_task(typed, model, task, expected):
    assert training_lengths(typed, ["a", "b"]).length_of(model, TASKS[task]) == expected


@each_row(
    ("typed", "message"),
    [
        ("eight", "no length in digits"),
        ("a=", "no length in digits"),
        ("0", "no length in digits"),
        ("1,2,3", "no length in digits"),
        ("c=8", "'c' was not asked. Known: a, b"),
        (["a=8", "a=9"], "a had a length before"),
    ],
)
def test_a_wrong_training_length_is_refused(typed, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        training_lengths(typed, ["a", "b"])


def test_figures_at_the_training_length_and_a_digit_beyond_are_a_table(folder):
    text = report(folder, "nupa", training_length="a=8").as_markdown()
    (row,) = re.findall(r"^\| a \| add, integer \| 8 \|.*$", text, re.MULTILINE)
    at, beyond = (f"{100 * 2 / 3:.1f}%", f"{100 * 2 / 3:.1f}% ({100 * wilson(2 / 3, 12)[0]:.1f}")
    assert at in row
    assert beyond in row
    assert "training length T" not in report(folder, "nupa").as_markdown()

    cells = {
        (row["model"], row["task and length"]): row["exact_match"]
        for row in pictures_of(folder, training_length="a=8")["table-12-exact"].rows
    }
    assert cells == {
        (model, f"add, integer at {at}"): pytest.approx(2 / 3) for model in "ab" for at in ("T", "T + 1")
    }


def test_a_paper_has_a_column_a_model_and_a_row_a_length_in_order(folder):
    latex = pictures_of(folder)["figure-13-exact-sums"].as_latex()
    rows = re.findall(r"^(?:add, integer)? *& (\d+) & (.*) & (.*) \\\\$", latex, re.MULTILINE)
    low, high = wilson(2 / 3, 3)
    cell = f"0.67 ({low:.2f}-{high:.2f})"
    assert [(length, a, b) for length, a, b in rows][:4] == [
        ("3", cell, cell),
        ("4", "*", cell),
        ("5", cell, r"\textendash{}"),
        ("8", cell, cell),
    ]
    assert "* was asked, and has no graded answer." in latex
    assert "stretch" not in pictures_of(folder)["figure-13-exact-sums"].as_markdown()


@pytest.mark.long
def test_the_mark_is_drawn_once_a_panel_or_once_a_model_where_they_differ(folder):
    import vl_convert
    from altair.vegalite.v6.schema.core import Root

    from asyncbench.page.charts.catalogue import published_drawn

    def marks(**options):
        shown = pictures_of(folder, **options)["figure-13-exact-sums"]
        Root.validate(published_drawn(shown))
        svg = vl_convert.vegalite_to_svg(published_drawn(shown))
        kinds = re.findall(r'aria-roledescription="([^"]*)"', svg)
        return kinds.count("rect mark"), kinds.count("rule mark"), kinds.count("line mark")

    lone, lines = 2, 5  # points without a neighbour have their interval as a rule; lines between gaps
    assert marks() == (0, lone, lines)
    assert marks(training_length=8) == (1, lone + 1, lines)
    assert marks(training_length=["a=8", "b=9"]) == (1, lone + 2, lines)
