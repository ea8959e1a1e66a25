"""The 95 % intervals of NUPA's figures, computed again from single answers."""

from collections import defaultdict
from statistics import fmean

import pytest

from asyncbench.published.nupa.report import nupa_report_on
from asyncbench.stats.proportions import mean_interval, wilson
from tests.published.test_nupa_pictures import asked_again
from tests.published.test_nupa_report import SUM, keep, problems, result, right


@pytest.fixture(scope="module")
def answers():
    """Problems of 3 and 5 digits, with the texts of two repeats: right, too short, or without a number."""
    texts = {}
    for number, problem in enumerate(problems(SUM, {3: 6, 5: 9})):
        short = f"The answer is {problem.expected[:-1]}"
        texts[problem] = [right(problem), (right(problem), short, "I cannot")[number % 3]]
    return texts


@pytest.fixture(scope="module")
def folder(answers, tmp_path_factory):
    results = [one for problem, texts in answers.items() for one in asked_again(problem, texts)]
    return keep(tmp_path_factory.mktemp("intervals"), *results)


def near(ends):
    return pytest.approx(ends, abs=1e-12)


def test_a_problem_counts_once_in_the_interval_of_exact_match(answers, folder):
    (line,) = nupa_report_on(folder).lines
    by_length = defaultdict[int, list[bool]](list)
    for problem, texts in answers.items():
        by_length[problem.length] += [text == right(problem) for text in texts]
    exact = line.by_grader["strict"]["exact_match"]
    for length, name in ((3, "S"), (5, "M")):
        shares = by_length[length]
        assert exact.intervals[name] == near(wilson(fmean(shares), len(shares) / 2))
    assert exact.intervals["L"] is None
    everything = [*by_length[3], *by_length[5]]
    assert exact.intervals["mean"] == near(wilson(fmean(everything), len(everything) / 2))


def test_wrong_lengths_are_shares_of_the_digits_that_a_reply_without_a_number_lacks(answers, folder):
    (line,) = nupa_report_on(folder).lines
    lengths, digits = [], []
    for problem, texts in answers.items():
        if problem.length == 5:
            digits.append(len(problem.expected))
            for text in texts:
                read = text.removeprefix("The answer is ") if text.startswith("The") else ""
                lengths.append(len(problem.expected) - len(read))
    most = max(digits)
    low, high = mean_interval(
        fmean(lengths) / most,
        sum((length / most) ** 2 for length in lengths),
        len(lengths),
        repeats=2,
    )
    assert line.by_grader["strict"]["dlength"].intervals["M"] == near((most * low, most * high))


def test_an_interval_stands_beside_exact_match_and_on_request_beside_every_figure(folder):
    (line,) = nupa_report_on(folder).lines
    exact, dlength = (line.by_grader["strict"][name] for name in ("exact_match", "dlength"))
    mean, of_range = (
        "({:.1f}-{:.1f})".format(*(100 * end for end in exact.intervals[name] or ()))
        for name in ("mean", "S")
    )
    lengths = "({:.2f}-{:.2f})".format(*(dlength.intervals["mean"] or ()))
    plain, full = (nupa_report_on(folder, intervals=asked) for asked in (False, True))
    assert mean in plain.as_markdown()
    assert of_range not in plain.as_markdown()
    for text in (full.as_markdown(), full.as_latex()):
        assert mean in text
        assert of_range in text
        assert lengths in text


def test_bars_have_the_interval_of_their_range_and_so_have_the_rows_of_maps(folder):
    report = nupa_report_on(folder)
    exact = report.lines[0].by_grader["strict"]["exact_match"]
    pictures = {picture.name: picture for picture in report.pictures()}
    for name in ("figure-2", "figure-5-sums", "figure-5-map"):
        drawn = {row["range"]: (row["low"], row["high"]) for row in pictures[name].rows}
        assert drawn == {of: exact.intervals[of] or (None, None) for of in ("S", "M", "L", "XL")}
    tens = {row["task and range"]: (row["low"], row["high"]) for row in pictures["table-10"].rows}
    assert tens == {f"add, integer {of}": exact.intervals[of] for of in ("S", "M")}


def test_bars_at_single_lengths_have_an_interval_where_nobody_was_asked_twice(tmp_path):
    floats = problems("add_Float_Float_Float", {5: 4})
    said = [right(one) if number else "none" for number, one in enumerate(floats)]
    report = nupa_report_on(keep(tmp_path, *map(result, floats, said)))
    (table,) = (picture for picture in report.pictures() if picture.name == "table-3")
    assert [(row["low"], row["high"]) for row in table.rows] == [near(wilson(3 / 4, 4))]
    assert "95 % CI" in table.notes[0]
