"""What the page says first: sentences that the statistics allow, where every outcome is given."""

import pytest

from asyncbench.analysis.counting import counted
from asyncbench.analysis.entrants import asked_in
from asyncbench.page.charts.breaks import kind_curves
from asyncbench.page.finding import finding_of
from asyncbench.reports.standings.report import standings_of
from tests.reports.answered import Asked, folder_of


def found_in(path, *asked):
    folder = folder_of(path / "f", [Asked(model=model, **about) for model, about in asked])
    return counted(folder, finding)


def finding(views):
    """The sentences with plain spaces: before a sign of percentage they have another one."""
    found = finding_of(standings_of(views), asked_in(views), kind_curves(views))
    assert not any(" %" in sentence for sentence in found)
    return [sentence.replace("\u00a0", " ") for sentence in found]


def right(count, of=60, **about):
    return {"outcomes": "+" * count + "-" * (of - count), **about}


@pytest.mark.long
def test_who_leads_is_told_with_its_lead_over_the_second_and_the_problems_of_all(tmp_path):
    others = [("b", right(40)), ("c", right(39)), ("d", right(38))]
    told = found_in(tmp_path, ("a", right(60)), *others)
    (ranking,) = counted(tmp_path / "f", standings_of).rankings
    low, high = (100 * end for end in ranking.pairs[0].interval)
    assert told[0] == (
        f"a leads by 33.3 points ({low:.1f} to {high:.1f}) on the 60 problems that all four models were "
        "asked."
    )
    assert told[1] == "The next three are statistically tied."


def test_nobody_leads_who_is_tied(tmp_path):
    told = found_in(tmp_path, ("a", right(50)), ("b", right(49)), ("c", right(10)))
    assert told[0] == (
        "a and b are statistically tied for first (83.3 % and 81.7 % right) on the 60 problems that all "
        "three models were asked."
    )
    assert told[1] == "c follows with 16.7 %."


def test_where_all_are_tied_it_says_just_that(tmp_path):
    told = found_in(tmp_path, ("a", right(50)), ("b", right(49)))
    assert told[0] == "Both models are statistically tied (83.3 % and 81.7 % right) on the same 60 problems."
    assert not any("leads" in sentence or "follows" in sentence for sentence in told)


@pytest.mark.long
def test_who_was_asked_problems_of_its_own_is_compared_as_such_and_who_was_not_is_counted(tmp_path):
    spread = "+-" * 30  # alike at every length, so that nothing but the model differs
    told = found_in(
        tmp_path,
        ("a", {"outcomes": "+" * 20, "task": "add"}),
        ("b", {"outcomes": spread[:20], "task": "add", "first": 0}),
        ("c", {"outcomes": "+" * 20, "task": "sub", "first": 40}),
    )
    assert told[0].startswith("a leads by 50.0 points (")
    assert told[1] == "One model shares too few problems with the others to be ranked."


@pytest.mark.long
def test_a_lead_on_problems_of_its_own_has_an_unpaired_interval(tmp_path):
    told = found_in(
        tmp_path, ("a", {"outcomes": "+" * 10}), ("b", {"outcomes": "-" * 10, "first": 0, "task": "sub"})
    )
    assert told[0] == "The two models share too few problems to be ranked."
    other = folder_of(
        tmp_path / "g",
        [Asked(model="a", outcomes="+" * 5), Asked(model="b", outcomes="-" * 5, first=5)],
    )
    told = counted(other, finding)
    # Wilson: 5 of 5 from 56.6 %, 0 of 5 up to 43.4 %; 1 - sqrt(0.434² + 0.434²) = 0.386
    assert told[0] == "a leads by 100.0 points (38.6 to 100.0), each of two models on 5 problems of its own."


@pytest.mark.long
def test_what_nobody_can_do_is_told_from_its_shortest_length_on(tmp_path):
    told = found_in(tmp_path, ("a", right(30)), ("b", right(20)))
    assert told[-1] == "Nobody does add from 4 digits on (0 of 2 models above 10 %)."
    better = found_in(tmp_path / "better", ("a", right(60)), ("b", right(20)))
    assert better[-1] == "add at 6 digits is hardest: one model is below 10 %, and a gets 100.0 %."


def test_what_one_of_several_was_asked_alone_is_nothing_that_nobody_can_do(tmp_path):
    alone = ("a", {"outcomes": "-" * 60, "task": "sub"})
    told = found_in(tmp_path, ("a", right(60)), ("b", right(20)), alone)
    assert not any("sub" in sentence for sentence in told)


def test_few_trials_tell_nothing_of_what_nobody_can_do(tmp_path):
    told = found_in(tmp_path, ("a", right(30, of=37)), ("b", right(20, of=37)))
    assert not any("Nobody" in sentence for sentence in told)


def test_where_nobody_fails_it_says_so(tmp_path):
    told = found_in(tmp_path, ("a", right(60)), ("b", right(60)))
    assert told[-1] == "Nobody falls below 90 % even in add at 6 digits: harder problems would tell more."


@pytest.mark.long
def test_lost_trials_are_told_where_they_could_change_a_rank(tmp_path):
    lost = {"outcomes": "+" * 20 + "x" * 40}
    told = found_in(tmp_path, ("a", right(60)), ("b", right(40)), ("c", lost))
    assert "c lost 67 % of its trials: counted right, they would lift it from 33.3 % to 100.0 %." in told
    both = found_in(tmp_path / "both", ("a", right(60)), ("b", right(40)), ("c", lost), ("d", lost))
    assert both[-1].endswith("The rank of one more model depends on lost trials, too.")
    few = {"outcomes": "+" * 20 + "-" * 39 + "x"}  # over 1 %, and yet no rank hangs on it
    assert not any(
        "lost" in sentence for sentence in found_in(tmp_path / "few", ("a", right(60)), ("b", few))
    )


@pytest.mark.long
def test_one_model_alone_is_told_by_what_it_can_do_and_where_it_breaks(tmp_path):
    told = found_in(
        tmp_path,
        ("m", right(60)),
        ("m", {"outcomes": "+" * 24 + "-" * 3 + "+" * 3 + "-" * 10, "task": "sub"}),
    )
    assert told[0] == "m gets 90 % or more right at every length asked in add."
    assert told[1] == "It breaks first in sub: half is right up to 3 digits (3.0 to 4.0)."
    assert told[2] == "From 4 digits on, sub is right in less than 10 %."
    alone = found_in(tmp_path / "alone", ("m", {"outcomes": "+" * 24 + "-" * 16}))
    assert alone[0].startswith("m breaks first in add: half is right up to 2 digits")


@pytest.mark.long
@pytest.mark.parametrize("lost", [False, True])
def test_there_are_four_sentences_at_most_and_none_of_an_empty_folder(tmp_path, lost):
    asked = [(name, right(58 - 9 * n)) for n, name in enumerate("abcdef")]
    asked += [("g", {"outcomes": "+" * 20 + "x" * 40})] * lost
    assert 2 <= len(found_in(tmp_path, *asked)) <= 4
    assert found_in(tmp_path / "empty") == []


@pytest.mark.long
def test_the_finding_of_the_recorded_corpus_is_what_its_standings_say(recorded_runs):
    """Expected words are worked out from `report --style standings` and, for the third, counted below."""
    first, second, third, fourth = counted(recorded_runs / "results", finding)
    assert first == (
        "gemini-3.1-pro-preview and claude-opus-4-6_thinking-high are statistically tied for first "
        "(100.0 % and 99.9 % right), each of 23 models on 720 problems of its own."
    )
    assert second == (  # 26 models, of which the table ranks 23
        "qwen3.6-35b-a3b@q4_k_m follows with 92.9 %; three models share too few problems with the others "
        "to be ranked."
    )
    shares = counted(recorded_runs / "results", lambda views: views.rows(AT_THE_LONGEST))
    tasks = {row["task"] for row in shares}
    failing = {
        task: [row["share"] < 0.1 for row in shares if row["task"] == task and row["share"] is not None]
        for task in tasks
    }
    hardest = max(failing, key=lambda task: sum(failing[task]) / len(failing[task]))
    assert (hardest, sum(failing[hardest]), len(failing[hardest])) == ("float_mul", 18, 22)
    assert (
        third
        == "float_mul at 10 digits is hardest: 18 of 22 models are below 10 %, and two models get 100.0 %."
    )
    assert fourth == (  # 427 of 720 failed; the model ranked above it has 46.0 %
        "gemini/gemma-4-26b-a4b-it lost 59 % of its trials: counted right, they would lift it from 40.6 % "
        "to 99.9 %."
    )


AT_THE_LONGEST = """
SELECT run, model, task,
    count(*) FILTER (outcome = 'correct') / nullif(count(*) FILTER (outcome != 'failed'), 0) AS share
FROM trials WHERE length = 10 GROUP BY ALL
"""
