"""Rankings: on the same problems, with ties, and never of those who were asked something else."""

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest

from asyncbench.analysis.counting import counted
from asyncbench.records import Condition, Model, Skipped, Stop
from asyncbench.reports.overview import overview_of
from asyncbench.reports.standings.report import APART, SHARED, standings_of
from asyncbench.reports.status.run_overview import run_overview_of
from asyncbench.stats.paired import mcnemar
from asyncbench.store.folder import Store
from tests.reports.answered import Asked, folder_of, problem
from tests.store import made

ISSUE = ("+" * 29 + "+" * 15 + "-" * 3 + "-" * 53, "+" * 29 + "-" * 15 + "+" * 3 + "-" * 53)


def rankings(tmp_path, *answers, **keywords):
    return counted(folder_of(tmp_path, answers, **keywords), standings_of).rankings


def names(ranking):
    return [line.name for line in ranking.lines]


def test_a_pair_is_tested_on_its_common_problems(tmp_path):
    a, b = ISSUE
    (ranking,) = rankings(tmp_path, Asked(model="b", outcomes=b), Asked(model="a", outcomes=a))
    assert names(ranking) == ["a", "b"]
    (found,) = ranking.pairs
    counts = found.counts
    assert (counts.both, counts.only_a, counts.only_b, counts.neither) == (29, 15, 3, 53)
    assert found.p == pytest.approx(mcnemar(15, 3)) == pytest.approx(0.0075, abs=1e-4)
    assert counts.difference == pytest.approx(0.12)
    low, high = found.interval
    assert low < 0.12 < high
    assert [line.place for line in ranking.lines] == [1, 2]


def test_those_who_cannot_be_told_apart_share_a_place(tmp_path):
    best, same, worst = "+" * 40 + "-" * 10, "-" + "+" * 38 + "-" * 11, "-" * 45 + "+" * 5
    (ranking,) = rankings(
        tmp_path,
        Asked(model="worst", outcomes=worst),
        Asked(model="same", outcomes=same),
        Asked(model="best", outcomes=best),
    )
    assert ranking.ties == (("best", "same"), ("worst",))
    assert {line.name: line.place for line in ranking.lines} == {"best": 1, "same": 1, "worst": 2}


@pytest.mark.long
def test_p_values_are_adjusted_for_all_pairs(tmp_path):
    draw = random.Random(1)
    answers = [
        Asked(model=f"m{n}", outcomes="".join(draw.choices("+-", weights=[3 + n, 4], k=40))) for n in range(5)
    ]
    (ranking,) = rankings(tmp_path, *answers)
    assert len(ranking.pairs) == 10
    least = min(ranking.pairs, key=lambda one: one.p)
    assert least.p_holm == pytest.approx(min(1.0, 10 * least.p))
    assert all(one.p_holm >= one.p for one in ranking.pairs)


def test_nobody_is_ranked_on_problems_that_only_some_were_asked(tmp_path):
    """b was asked the easy half alone, and all of it is right: on that half a is better."""
    (ranking,) = rankings(
        tmp_path,
        Asked(model="a", outcomes="+" * 20 + "-" * 20),
        Asked(model="b", outcomes="+" * 19 + "-"),
    )
    assert ranking.problems == 20
    assert [(line.name, line.share) for line in ranking.lines] == [("a", 1.0), ("b", 0.95)]
    assert ranking.lines[0].outcomes["wrong"] == 20


@pytest.mark.long
def test_accuracy_and_what_is_said_beside_it_are_on_the_same_problems(tmp_path):
    """a goes on where b ended, and fails there: nothing of that is in a's row but its cost."""
    folder = folder_of(
        tmp_path,
        [
            Asked(model="a", outcomes="+" * 16 + "--tx" + "-" * 16 + "xxxx"),
            Asked(model="b", outcomes="+" * 8 + "-" * 12),
        ],
    )
    standings = counted(folder, standings_of)
    ((a, b),) = [ranking.lines for ranking in standings.rankings]
    assert (a.share, a.accuracy.over_all.share, b.accuracy.over_all.share) == (0.8, 0.8, 0.4)
    assert a.accuracy.over_answered.share == pytest.approx(16 / 18)
    assert (a.accuracy.lost, a.accuracy.highest) == (2, 0.9)
    assert (a.trials, a.outcomes["failed"], a.cost_usd) == (40, 5, 10.0)
    assert SHARED in standings.as_text()
    (line,) = [
        line
        for line in counted(folder, run_overview_of).as_text(width=100).splitlines()
        if line.split()[:2] == ["1", "a"]
    ]
    assert "88.9%" in line.split()
    found = json.loads(standings.as_json())["rankings"][0]["lines"][0]
    assert (found["accuracy"], found["accuracy_if_lost_right"], found["answered"]) == (0.8, 0.9, 18)


def test_where_all_were_asked_the_same_no_second_population_is_told(tmp_path):
    folder = folder_of(tmp_path, [Asked(model=name, outcomes="+-tx") for name in "ab"])
    assert SHARED not in counted(folder, standings_of).as_text()


@pytest.mark.long
def test_why_some_are_ranked_in_another_table_is_said(tmp_path):
    many = [Asked(model=name, outcomes="+-" * 10) for name in "ab"]
    few = [Asked(model=name, outcomes="+-" * 2) for name in "cd"]
    assert APART in counted(folder_of(tmp_path / "apart", many + few), standings_of).as_text()
    assert APART not in counted(folder_of(tmp_path / "together", many), standings_of).as_text()


def test_those_who_share_few_problems_are_not_ranked_with_each_other(tmp_path):
    standings = counted(
        folder_of(
            tmp_path,
            [
                Asked(model="a", outcomes="+" * 20),
                Asked(model="b", outcomes="-" * 20),
                Asked(model="c", outcomes="+" * 9),
                Asked(model="d", outcomes="+" * 20, first=100),
            ],
        ),
        standings_of,
    )
    assert [names(one) for one in standings.rankings] == [["a", "b"], ["d"], ["c"]]
    assert [one.alone for one in standings.rankings] == [False, True, True]
    assert "not ranked (too few problems in common)" in standings.as_text()


def repeated(model, outcomes, *, first=0, times=1):
    return [Asked(model=model, outcomes=outcomes, first=first, repeat=n) for n in range(times)]


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 5])
@pytest.mark.parametrize(("tasks", "places"), [(1, [1, 1]), (20, [1, 2])])
def test_answers_to_the_same_problem_count_once_between_models_without_a_common_problem(
    tmp_path, tasks, places, times
):
    both = [*repeated("a", "+" * 5, times=times), *repeated("b", "++---", first=5, times=times)]
    (ranking,) = rankings(tmp_path, *(replace(one, task=f"t{n}") for n in range(tasks) for one in both))
    assert not ranking.paired
    assert [line.place for line in ranking.lines] == places


@pytest.mark.long
def test_models_that_share_a_few_problems_do_not_count_as_having_been_asked_their_own(tmp_path):
    first, second = Asked(model="a", outcomes="+" * 5), Asked(model="b", outcomes="+" * 5, first=4)
    assert [one.alone for one in rankings(tmp_path / "shared", first, second)] == [True, True]
    (ranking,) = rankings(tmp_path / "apart", first, replace(second, first=5))
    assert (ranking.paired, ranking.problems) == (False, 5)


def test_as_many_trials_of_fewer_problems_are_not_as_many_problems(tmp_path):
    found = rankings(tmp_path, *repeated("a", "++", times=2), *repeated("b", "++++", first=2))
    assert [one.alone for one in found] == [True, True]


def stopped_early(tmp_path, *, rule="{saturated: 0.2}", skips=range(8, 40)):
    """a was asked forty problems; b, right in all that it was asked, eight, and has rows of `skipped`."""
    answers = [Asked(model="a", outcomes="+" * 20 + "-" * 20), Asked(model="b", outcomes="+" * 8)]
    folder = folder_of(tmp_path, answers)
    stop = Stop(rule="saturated 0.2", asked=19, correct=19, low=0.8, high=1.0)
    model, condition = Model(alias="b", provider="openai", model_id="m", api="chat"), Condition(name="plain")
    with Store.open(folder, sweep="s") as store:
        for n in skips:
            skipped = replace(
                made.trial(1_000 + n), run="night", problem=problem(n), model=model, condition=condition
            )
            store.keep(Skipped(trial=skipped, stop=stop, skipped_at=made.AT))
    (folder / "sweep.yaml").write_text(f"stop_when: {rule}\n")
    return counted(folder, standings_of)


def test_a_model_that_was_stopped_early_is_ranked_on_what_it_was_asked(tmp_path):
    standings = stopped_early(tmp_path)
    (ranking,) = standings.rankings
    assert [(line.name, line.share, line.trials) for line in ranking.lines] == [("a", 1.0, 40), ("b", 1.0, 8)]
    assert ranking.problems == 8
    assert (standings.skipped, standings.lapsed) == (32, 0)
    assert "weighs less than planned" in standings.as_text()


@pytest.mark.long
@pytest.mark.parametrize(
    "given",
    [{"rule": "{saturated: 0.01}"}, {"rule": "null"}, {"skips": range(8, 19)}],
    ids=["a stricter rule", "no rule", "under half dealt with"],
)
def test_a_model_with_too_much_open_is_not_ranked_though_some_was_skipped(tmp_path, given):
    assert [names(one) for one in stopped_early(tmp_path, **given).rankings] == [["a"], ["b"]]


def test_who_shares_no_problem_asked_is_not_ranked_whatever_was_skipped(tmp_path):
    folder = folder_of(
        tmp_path, [Asked(model="a", outcomes="+" * 20), Asked(model="b", outcomes="+", first=20)]
    )
    stop = Stop(rule="saturated 0.2", asked=19, correct=19, low=0.8, high=1.0)
    model, condition = Model(alias="b", provider="openai", model_id="m", api="chat"), Condition(name="plain")
    with Store.open(folder, sweep="s") as store:
        for n in range(20):
            trial = replace(made.trial(1_000 + n), problem=problem(n), model=model, condition=condition)
            store.keep(Skipped(trial=trial, stop=stop, skipped_at=made.AT))
    assert [one.alone for one in counted(folder, standings_of).rankings] == [True, True]


def test_suites_are_ranked_each_and_together_by_whom_all_were_asked(tmp_path):
    both = [("a", "+" * 10, "-" * 10), ("b", "-" * 10, "+" * 10)]
    answers = [
        Asked(model=model, outcomes=outcomes, suite=suite, task=task)
        for model, *of in both
        for (suite, task), outcomes in zip((("nupa", "add"), ("custom", "x")), of, strict=True)
    ]
    found = rankings(tmp_path, *answers, Asked(model="c", outcomes="+" * 10))
    assert [(one.suite, sorted(names(one))) for one in found] == [
        (None, ["a", "b"]),
        (None, ["c"]),  # asked one suite: not to be held against those who were asked both
        ("custom", ["a", "b"]),
        ("nupa", ["a", "b", "c"]),
    ]
    assert found[0].suites == ("custom", "nupa")
    assert [line.trials for line in found[0].lines] == [20, 20]
    assert found[0].lines[0].at_50 is None  # lengths of two suites are not one


@pytest.mark.long
def test_conditions_and_repeats_count_as_what_they_are(tmp_path):
    answers = [
        Asked(model=model, outcomes=outcomes, condition=condition, repeat=repeat)
        for model, condition, outcomes in (("a", "x", "++--"), ("a", "y", "+---"), ("b", "x", "----"))
        for repeat in range(3)
    ]
    (ranking,) = rankings(tmp_path, *answers)
    assert names(ranking) == ["a (x)", "a (y)", "b"]
    assert (ranking.problems, ranking.lines[0].trials) == (4, 12)
    first = ranking.pairs[0]
    assert first.counts.differences == {0: 3, 3: 1}
    assert ranking.lines[0].interval[0] < 0.5 - 0.2  # four problems, not twelve


def test_a_pairs_interval_holds_its_difference_where_few_problems_were_asked_again(tmp_path):
    answers = [Asked(model="a", outcomes="+" * 80 + "-" * 20), Asked(model="b", outcomes="+" * 40 + "-" * 60)]
    again = [Asked(model="a", outcomes="+++", repeat=1), Asked(model="b", outcomes="++-", repeat=1)]
    (ranking,) = rankings(tmp_path, *answers, *again)
    (only,) = ranking.pairs
    low, high = only.interval
    assert low < only.counts.difference == 41 / 103 < high
    assert high - low < 0.25  # about as of the 100 problems asked once


def test_figures_are_those_of_all_its_trials(tmp_path):
    (ranking,) = rankings(tmp_path, Asked(model="a", outcomes="++-tx?", cost_usd=0.5))
    (line,) = ranking.lines
    assert (line.cost_usd, line.priced, line.cost_per_correct) == (3.0, 6, 1.5)
    assert (line.format_ok, line.format_known) == (2, 6)
    assert line.latency_p50_s == 1.5
    assert (line.output_tokens, line.known_tokens) == (50, 5)
    accuracy = line.accuracy
    assert (accuracy.lowest, accuracy.highest) == (pytest.approx(2 / 6), pytest.approx(4 / 6))
    assert accuracy.over_answered.share == pytest.approx(2 / 3)


def test_what_is_not_priced_costs_nothing_known(tmp_path):
    (ranking,) = rankings(tmp_path, Asked(model="a", outcomes="+-", cost_usd=None))
    (line,) = ranking.lines
    assert (line.cost_usd, line.priced, line.cost_per_correct) == (None, 0, None)


def test_format_is_that_of_the_condition(tmp_path):
    (ranking,) = rankings(
        tmp_path,
        Asked(model="a", outcomes="++", condition="x"),
        Asked(model="a", outcomes="--", condition="y"),
    )
    assert [(line.name, line.format_ok) for line in ranking.lines] == [("a (x)", 2), ("a (y)", 0)]


def falling(*, ends: int, seed: int) -> str:
    """Outcomes of a hundred problems, ten of each length, ever fewer right up to a length of `ends`."""
    draw = random.Random(seed)
    return "".join("+" if draw.random() < 1 - (1 + n // 10) / ends else "-" for n in range(100))


def test_length_at_half_is_that_of_the_hardest_task(tmp_path):
    (ranking,) = rankings(
        tmp_path,
        Asked(model="a", outcomes=falling(ends=6, seed=3), task="mul"),
        Asked(model="a", outcomes=falling(ends=11, seed=3), first=100),
    )
    at_50 = ranking.lines[0].at_50
    assert (at_50.task, at_50.tasks) == ("mul", 2)
    assert at_50.length.value == pytest.approx(3, abs=1)  # over both tasks together it would be beyond 4
    assert str(at_50).endswith(") mul")


def test_of_problems_asked_again_it_is_told_how_many_are_right_once_always_and_mostly(tmp_path):
    standings = counted(
        folder_of(
            tmp_path,
            [Asked(model="a", outcomes=o, repeat=n) for n, o in enumerate(("++--", "+---", "++--"))],
        ),
        standings_of,
    )
    (line,) = standings.rankings[0].lines
    assert (line.repeats, line.any_right, line.all_right) == (3, 0.5, 0.25)
    shares = [[figure.share for figure in at.figures] for at in line.at_k]
    assert shares == [pytest.approx(row) for row in ([5 / 12] * 3, [0.5, 5 / 12, 1 / 3], [0.5, 0.5, 0.25])]
    assert line.at_k[0].pass_at_k.interval == pytest.approx(line.interval)
    for shown in (standings.as_text(width=200), standings.as_markdown(), standings.as_latex()):
        assert "pass@k" in shown
        assert "majority@k" in shown
        assert "has no vote" in shown
    found = json.loads(standings.as_json())["rankings"][0]["lines"][0]
    assert [at["k"] for at in found["at_k"]] == [1, 2, 3]
    assert found["at_k"][2]["majority_at_k"]["share"] == 0.5


def test_majorities_are_those_of_the_answers_in_the_folder_on_the_problems_in_common(tmp_path):
    draw = random.Random(5)
    answers = [
        Asked(
            model=model,
            outcomes=draw.choice("+-?"),
            answer=draw.choice("789"),
            written=draw.choice(["", ".0"]),
            first=n,
            repeat=repeat,
        )
        for model, problems in (("a", 12), ("b", 9))
        for n in range(problems)
        for repeat in range(4)
    ]
    (ranking,) = rankings(tmp_path, *answers)
    assert ranking.problems == 9
    for line in ranking.lines:
        for at in line.at_k:
            by_hand = [mean_of_majorities(line.model, n, at.k, answers) for n in range(9)]
            assert at.majority_at_k.share == pytest.approx(sum(by_hand) / 9)
            assert at.majority_at_k.clusters == 9


def mean_of_majorities(model, n, k, answers) -> float:
    """How often the most frequent of k answers is right, of all choices; a tie counts as its chance."""
    given = [
        {"+": "right", "-": asked.answer, "?": None}[asked.outcomes]
        for asked in answers
        if (asked.model, asked.first) == (model, n)
    ]
    won = []
    for chosen in combinations(given, k):
        counts = Counter(answer for answer in chosen if answer is not None)
        most = [answer for answer, times in counts.items() if times == max(counts.values())]
        won.append(1 / len(most) if "right" in most else 0)
    return sum(won) / len(won)


def test_of_a_night_that_ended_early_each_k_is_over_the_problems_asked_so_often(tmp_path):
    answers = [Asked(model="a", outcomes="+-+-"), Asked(model="a", outcomes="+-", repeat=1)]
    (ranking,) = rankings(tmp_path, *answers)
    (line,) = ranking.lines
    assert [at.pass_at_k.clusters for at in line.at_k] == [4, 2]


def test_who_was_asked_once_takes_no_repeats_from_the_others(tmp_path):
    turns = [Asked(model="a", outcomes=right, repeat=n) for n, right in enumerate(["+-+-", "++--", "+---"])]
    (ranking,) = rankings(tmp_path, *turns, Asked(model="b", outcomes="+---"))
    found = {line.name: line for line in ranking.lines}
    assert [at.pass_at_k.share for at in found["a"].at_k] == pytest.approx([5 / 12, 7 / 12, 3 / 4])
    assert (found["a"].share, found["b"].at_k) == (0.5, ())


@pytest.mark.long
@pytest.mark.parametrize("first", [0, 1], ids=["all of them once", "each in another repeat"])
def test_problems_asked_once_have_no_pass_at_k(tmp_path, first):
    answers = [Asked(model="a", outcomes="+-"), Asked(model="a", outcomes="+", first=2, repeat=first)]
    standings = counted(folder_of(tmp_path, answers), standings_of)
    (line,) = standings.rankings[0].lines
    assert (line.any_right, line.at_k) == (None, ())
    assert "pass" not in standings.as_text()


@pytest.mark.long
@pytest.mark.parametrize("report", [overview_of, standings_of])
def test_more_than_one_percent_lost_is_said_loudly(tmp_path, report):
    folder = folder_of(
        tmp_path,
        [Asked(model="quiet", outcomes="+" * 99 + "t"), Asked(model="cut", outcomes="+" * 97 + "ttx")],
    )
    (loud,) = [line for line in counted(folder, report).as_text().splitlines() if "LOST TRIALS" in line]
    assert "for 1 of 2" in loud
    assert "cut 97.0%-100.0% (2 truncated, 1 failed, 3.0%)" in loud
    assert "quiet" not in loud


def test_simulated_results_say_so(tmp_path):
    folder = folder_of(tmp_path, [Asked(model="a", outcomes="+", provider="simulated")])
    assert counted(folder, standings_of).as_text().startswith("SIMULATED")


@pytest.mark.long
def test_models_are_ranked_over_all_suites_in_common_though_one_was_asked_more(tmp_path):
    """Two suites of different size are common to all; the ranking is over both, not over the smaller."""
    common = [
        Asked(model=name, suite=suite, outcomes="+" * right + "-" * (asked - right))
        for name, share in (("a", 2), ("b", 3))
        for suite, asked in (("custom", 6), ("nupa", 30))
        for right in (asked // share,)
    ]
    more = Asked(model="a", suite="llm_arithmetic", outcomes="+" * 40)
    folder = folder_of(tmp_path, [*common, more])
    first = counted(folder, standings_of).rankings[0]
    assert (first.suites, first.problems, names(first)) == (("custom", "nupa"), 36, ["a", "b"])
    assert "All suites (custom, nupa): 2 models on the same 36" in counted(folder, run_overview_of).as_text(
        width=100
    )
