"""Trials as the page shows them: which ones a file to mail holds, and what it tells of each."""

import asyncio
import json
import shutil
from collections import Counter
from functools import cache

import pytest

from asyncbench import read_trials, run_sweep
from asyncbench.analysis.anatomy.counts import examined_in
from asyncbench.analysis.counting import counted
from asyncbench.analysis.entrants import asked_in
from asyncbench.page.answers import LONGEST, SHORT, answers_to, operands_text, summaries, whole_trials
from asyncbench.page.writing import sample_of
from tests.reports.answered import Asked as AskedModel, folder_of

COLUMNS = ["trial_id", "model", "condition", "problem_id", "outcome", "answer", "expected"]


@cache  # folders of these tests stay as they are
def sample_on(folder, **most):
    return counted(folder, lambda views: sample_of(views, **most))


def whole_on(folder, ids):
    return counted(folder, lambda views: whole_trials(views, ids))


def rows_of(folder):
    return read_trials(folder, columns=COLUMNS).to_pylist()


# ── the sample ───────────────────────────────────────────────────────────────────────────────


def test_all_trials_are_there_where_there_is_room(night):
    sample = sample_on(night)
    assert {trial["id"] for trial in sample["trials"]} == {row["trial_id"] for row in rows_of(night)}
    assert sample["rule"].startswith("The page has all 504 trials.")


@pytest.mark.long
@pytest.mark.parametrize("most", [100, 103, 300])
def test_else_all_answers_to_some_questions_equally_many_of_each_kind_and_model(night, most):
    rows, sample = rows_of(night), sample_on(night, whole_up_to=most, max_trials=most)

    shown = Counter(trial["question"] for trial in sample["trials"])
    asked = Counter(row["problem_id"] for row in rows)
    assert all(shown[question] == asked[question] for question in shown)
    assert most - max(asked.values()) < len(sample["trials"]) <= most
    assert f"The page has {len(sample['trials'])} of 504 trials" in sample["rule"]
    outcomes = {(row["model"], row["condition"], row["outcome"]) for row in rows}
    entrants = counted(night, asked_in).entrants
    assert {
        (entrants[trial["asked"]].model, entrants[trial["asked"]].condition, trial["outcome"])
        for trial in sample["trials"]
    } == outcomes
    kinds = Counter({trial["question"]: trial["kind"] for trial in sample["trials"]}.values())
    assert len(kinds) == 12
    assert max(kinds.values()) - min(kinds.values()) <= 1 + len(outcomes)  # a question may show an outcome


def test_where_models_were_asked_different_problems_there_are_equally_many_of_each(tmp_path):
    asked = [
        AskedModel(model=name, outcomes="+-" * 20, first=first)
        for name, first in (("a", 0), ("b", 40), ("c", 80))
    ]
    trials = sample_on(folder_of(tmp_path / "f", asked), whole_up_to=30, max_trials=30)["trials"]
    of = Counter((trial["asked"], trial["outcome"]) for trial in trials)
    assert sum(of.values()) == 30
    assert all(
        abs(sum(n for (place, _), n in of.items() if place == entrant) - 10) <= 2 for entrant in range(3)
    )
    assert all(of[entrant, outcome] for entrant in range(3) for outcome in ("correct", "wrong"))


@pytest.mark.long
def test_a_sample_stops_where_its_texts_are_too_long_but_never_before_the_first(hostile):
    assert len(sample_on(hostile, max_bytes=1)["trials"]) == 1
    few = sample_on(hostile, max_bytes=2_000)["trials"]
    assert 1 < len(few) < len(rows_of(hostile))


# ── single trials ────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_long_text_is_shown_by_its_ends_with_its_length(hostile):
    longest = next(trial for trial in sample_on(hostile)["trials"] if trial["cut"])
    assert longest["cut"]["reply"] == 1_000_000
    assert len(longest["reply"]) < LONGEST + 60
    assert "997,000 characters left out" in longest["reply"]
    assert longest["aligned"] is None  # words are not compared sign by sign


def test_a_trial_comes_with_its_question_and_every_graders_grade(night):
    trial = next(trial for trial in sample_on(night)["trials"] if trial["prompt"].startswith("Compute"))
    assert trial["grades"][0]["grader"] == "layered"
    assert Counter(grade["headline"] for grade in trial["grades"]) == {True: 1, False: 2}
    assert dict(trial["facts"])["tokens"].startswith("20 in, ")
    assert all(value for _, value in trial["facts"])


def test_a_line_of_a_list_has_what_the_whole_trial_has_but_cut(night):
    ids = [row["trial_id"] for row in rows_of(night)[:40]][::-1]
    lines = counted(night, lambda views: summaries(views, ids))
    trials = whole_on(night, ids)
    assert [line["id"] for line in lines] == [trial["id"] for trial in trials] == ids
    for line, trial in zip(lines, trials, strict=True):
        assert line.items() <= {**trial, "expected": line["expected"], "answer": line["answer"]}.items()
        assert len(line["operands"]) <= SHORT


def test_an_alignment_is_of_the_whole_answer_and_none_where_nothing_was_read(night):
    rows = {row["trial_id"]: row for row in rows_of(night)}
    for trial in sample_on(night)["trials"]:
        row = rows[trial["id"]]
        if row["answer"] is None:
            assert trial["aligned"] is None
            continue
        assert "".join(true for _, true, _ in trial["aligned"]) == row["expected"]
        assert "".join(read for _, _, read in trial["aligned"]) == row["answer"]
        assert {op for op, _, _ in trial["aligned"]} == {"same"} or row["outcome"] != "correct"


@pytest.mark.long
def test_a_question_shows_the_answers_of_everybody_in_their_order(night):
    rows = rows_of(night)
    asked = Counter(row["problem_id"] for row in rows)
    key = asked.most_common(1)[0][0]
    trials = counted(night, lambda views: answers_to(views, [key]))
    entrants = counted(night, asked_in).entrants
    assert len(trials) == asked[key]
    assert [trial["asked"] for trial in trials] == sorted(trial["asked"] for trial in trials)
    shown = {(entrants[trial["asked"]].model, trial["answer"]) for trial in trials}
    assert shown == {(row["model"], row["answer"]) for row in rows if row["problem_id"] == key}
    assert counted(night, lambda views: answers_to(views, ["nobody"])) == []


@pytest.mark.parametrize(
    ("task", "operands", "question", "text"),
    [
        ("int_add", ["123", "456"], "Compute 123 + 456", "123 + 456"),
        ("int_sub", ["5", "-3"], "", "5 - (-3)"),
        ("float_div", ["1.5", "2"], "", "1.5 ÷ 2"),
        ("add", ["1", "2", "3"], "", "1 + 2 + 3"),
        ("max", ["12", "7"], "", "12, 7"),
        ("string_reversal", ["abc"], "", "abc"),
        (
            "own",
            [],
            "What is six\n times seven?\nAnswer with one letter. \n",
            "What is six times seven? Answer with one letter.",
        ),
        ("own", [], None, None),
    ],
)
def test_of_a_question_the_operands_are_shown_or_else_the_question_itself(task, operands, question, text):
    assert operands_text(task, operands, question) == text


def test_where_the_problem_set_is_gone_the_answer_is_still_told(night, tmp_path):
    shutil.copytree(night, tmp_path / "f", ignore=shutil.ignore_patterns("problems"))
    with_problems = {trial["id"]: trial for trial in sample_on(night)["trials"]}
    for trial in sample_on(tmp_path / "f")["trials"]:
        known = with_problems[trial["id"]]
        assert (trial["prompt"], trial["operands"]) == (None, None)
        assert (trial["answer"], trial["grades"]) == (known["answer"], known["grades"])
        assert (trial["error"] is None) == (known["error"] is None)


# ── several accepted answers


ACCEPTED = [  # reply, the answer that it is compared with
    ("Paname", "Paname"),
    ("Panamee", "Paname"),
    ("Pariss", "Paris"),
    ("zzz", "Paris"),
]


def test_an_answer_is_compared_with_the_nearest_accepted_one(tmp_path):
    (tmp_path / "own.jsonl").write_text(
        "".join(
            json.dumps({"question": reply, "expected": ["Paris", "Paname"]}) + "\n" for reply, _ in ACCEPTED
        )
    )
    (tmp_path / "mine.py").write_text(
        "def right(reply, problem):\n"
        "    return {'correct': problem.question in problem.accepted, 'answer': problem.question}\n"
    )
    (tmp_path / "own.yaml").write_text(
        "name: own\nproblems: [{path: own.jsonl, suite: custom, grader: 'mine:right'}]\n"
        f"models: [simulated/oracle]\nout: {tmp_path / 'out'}\n"
    )
    asyncio.run(run_sweep(tmp_path / "own.yaml"))

    trials = whole_on(tmp_path / "out", [row["trial_id"] for row in rows_of(tmp_path / "out")])
    assert {trial["prompt"]: trial["expected"] for trial in trials} == dict(ACCEPTED)
    found = counted(tmp_path / "out", lambda views: [*examined_in(views).values()])
    wrong = {
        (example.answer, example.expected)
        for group in found
        for kept in group.examples.values()
        for example in kept
    }
    assert wrong == {(reply, nearest) for reply, nearest in ACCEPTED if reply != nearest}
    assert {(*trial["accepted"], trial["accepted_in_all"]) for trial in trials} == {("Paris", "Paname", 2)}
    assert {trial["prompt"] for trial in trials if trial["outcome"] == "correct"} == {"Paname"}
