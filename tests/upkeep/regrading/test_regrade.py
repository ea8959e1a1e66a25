"""The newest graders over stored replies: what would change is told, and changed only when asked for."""

import hashlib
import os
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from asyncbench import read_grades, read_trials, regrade_folder
from asyncbench.errors import ConfigError, StoreError
from asyncbench.problems.making import write_problems
from asyncbench.records import Condition, Reply, Usage
from asyncbench.store.folder import Store
from asyncbench.upkeep.regrading import EXAMPLES
from asyncbench.upkeep.stored_grades import HEADLINE
from tests.store.made import keep
from tests.upkeep.regrading.made import as_now, blind, fill, graded, right, sums, trial, wrong


@pytest.fixture
def folder(tmp_path):
    """Two models and four sums, one of which `large` failed: graded by graders that saw nothing."""
    fill(tmp_path, sums(1, 2, 3, 4), right, aliases=["small"])
    fill(
        tmp_path, sums(1, 2, 3, 4), lambda one: None if "4" in one.expected else right(one), aliases=["large"]
    )
    return tmp_path


def headline(found):
    """(model, before, now) → trials."""
    return {(one.model, one.before, one.now): one.trials for one in found.moves if one.headline}


def digests(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def rows(read, folder, *keys):
    return read(folder).sort_by([(key, "ascending") for key in keys]).to_pylist()


def test_what_changes_is_told_by_model_and_outcome(folder):
    assert headline(regrade_folder(folder)) == {
        ("small", "no_answer", "correct"): 4,
        ("large", "no_answer", "correct"): 3,
        ("large", "no_answer", "failed"): 1,
    }


def test_grades_that_are_the_newest_do_not_change(tmp_path):
    fill(tmp_path, sums(1, 2), right, graders=as_now)
    found = regrade_folder(tmp_path)
    assert headline(found) == {("small", "correct", "correct"): 2}
    assert {one.changed for one in found.graders} == {0}
    assert found.examples == ()


def test_nothing_is_written_unless_asked(folder):
    before = digests(folder)
    regrade_folder(folder)
    assert digests(folder) == before


def test_every_grader_is_counted_with_the_versions_it_had_and_has(folder):
    assert {
        (one.grader, one.version_before, one.version, one.grades, one.changed)
        for one in regrade_folder(folder).graders
    } == {
        ("layered", 0, 3, 8, 8),
        ("legacy", 0, 1, 8, 8),
        ("strict", 0, 3, 8, 1),  # it reads no sentence either; the trial that failed has another reason
    }


def test_examples_show_what_was_read_before_and_now_of_each_model(tmp_path):
    fill(tmp_path, sums(*range(1, 9)), right, aliases=["a", "b"])
    found = [one for one in regrade_folder(tmp_path).examples if one.grader == "layered"]
    assert Counter(one.model for one in found) == {"a": 2, "b": 1}
    assert len(found) == EXAMPLES
    assert all((one.answer_before, one.answer) == (None, one.expected) for one in found)
    assert all(one.reply_end == f"The sum is {one.expected}." for one in found)


def test_a_written_folder_holds_the_newest_grades_and_all_else_as_it_was(folder):
    before = rows(read_trials, folder, "trial_id")
    found = regrade_folder(folder, write=True)
    assert found.written
    after = rows(read_trials, folder, "trial_id")
    assert [
        {**one, **{name: two[name] for name in HEADLINE}} for one, two in zip(before, after, strict=True)
    ] == after
    assert Counter(one["outcome"] for one in after) == {"correct": 7, "failed": 1}
    assert {one.changed for one in regrade_folder(folder).graders} == {0}


def test_written_grades_are_those_of_a_run_of_today(folder, tmp_path_factory):
    regrade_folder(folder, write=True)
    today = tmp_path_factory.mktemp("today")
    fill(today, sums(1, 2, 3, 4), right, aliases=["small"], graders=as_now)
    wanted = read_grades(today).sort_by([("trial_id", "ascending"), ("grader", "ascending")])
    written = read_grades(folder, filters=[("model", "=", "small")])
    assert written.sort_by([("trial_id", "ascending"), ("grader", "ascending")]).equals(wanted)


def test_a_corrected_answer_counts_and_is_told(tmp_path):
    one, two = sums(1, 2)
    fill(tmp_path, [one, two], right, graders=as_now)
    write_problems([replace(one, expected="99"), two], tmp_path / "problems" / "sums.parquet")
    found = regrade_folder(tmp_path, write=True)
    assert found.corrected == 1
    assert headline(found) == {("small", "correct", "correct"): 1, ("small", "correct", "wrong"): 1}
    assert Counter(row["expected"] for row in read_trials(tmp_path).to_pylist()) == {"99": 1, "12": 1}
    assert regrade_folder(tmp_path).corrected == 0


def test_of_two_copies_of_a_set_the_last_counts(tmp_path):
    one, two = sums(1, 2)
    fill(tmp_path, [one, two], right, graders=as_now)
    later = tmp_path / "problems" / f"sums-{'0' * 12}.parquet"  # as a run names the copy of an edited set
    write_problems([replace(one, expected="99")], later)
    os.utime(later, (4e9, 4e9))
    assert regrade_folder(tmp_path).corrected == 1


def test_trials_without_their_problem_keep_their_grades(tmp_path):
    one, two = sums(1, 2)
    fill(tmp_path, [one, two], right)
    write_problems([two], tmp_path / "problems" / "sums.parquet")
    before = rows(read_grades, tmp_path, "trial_id", "grader")
    found = regrade_folder(tmp_path, write=True)
    assert [(kept.suite, kept.problem_set, kept.trials) for kept in found.kept] == [
        ("llm_arithmetic", "sums", 1)
    ]
    kept = trial(one, "small").trial_id
    after = rows(read_grades, tmp_path, "trial_id", "grader")
    assert [row for row in after if row["trial_id"] == kept] == [
        row for row in before if row["trial_id"] == kept
    ]
    assert Counter(row["outcome"] for row in read_trials(tmp_path).to_pylist()) == {
        "correct": 1,
        "no_answer": 1,
    }


def test_a_grader_that_had_not_graded_and_one_that_is_gone_are_told(tmp_path):
    def yesterday(grades):
        layered, _, strict = grades
        return layered, replace(strict, grader="lenient")

    fill(tmp_path, sums(1), right, graders=yesterday)
    found = regrade_folder(tmp_path)
    versions = {one.grader: (one.version_before, one.version) for one in found.graders}
    assert versions == {"layered": (3, 3), "legacy": (None, 1), "strict": (None, 3), "lenient": (3, None)}
    assert {(one.before, one.now) for one in found.moves if one.grader == "legacy"} == {(None, "correct")}


def test_of_the_headline_what_the_trial_said_is_compared_whoever_said_it(tmp_path):
    def yesterday(grades):
        return (replace(blind(grades)[0], grader="first"),)

    fill(tmp_path, sums(1), right, graders=yesterday)
    assert headline(regrade_folder(tmp_path)) == {("small", "no_answer", "correct"): 1}


def reversed_grades(folder):
    with Store.reopen(folder) as store, store.replaced("grades") as new:
        for path in new.earlier:
            found = read_grades(folder, filters=[("model", "=", path.parent.name.removeprefix("model="))])
            new.part([path]).add(found.take(pa.array(range(len(found) - 1, -1, -1))))


def merged(table, read):
    def merge(folder):
        with Store.reopen(folder) as store, store.replaced(table) as new:
            for place in sorted({path.parent for path in new.earlier}):
                alias = place.name.removeprefix("model=")
                part = new.part([path for path in new.earlier if path.parent == place])
                part.add(read(folder, filters=[("model", "=", alias)]))

    return merge


@pytest.mark.long
@pytest.mark.parametrize(
    "rearrange",
    [reversed_grades, merged("trials", read_trials), merged("grades", read_grades)],
    ids=["grades in another order", "fewer parts of trials", "fewer parts of grades"],
)
def test_however_the_parts_are_arranged_the_grades_are_found_and_written(tmp_path, rearrange):
    for n in (1, 4, 7):
        fill(tmp_path, sums(n, n + 1), right, aliases=["small", "large"])
    write_problems(sums(1, 2, 4, 5, 7, 8), tmp_path / "problems" / "sums.parquet")
    rearrange(tmp_path)
    found = regrade_folder(tmp_path, write=True)
    assert headline(found) == {(name, "no_answer", "correct"): 6 for name in ("large", "small")}
    assert {(one.version_before, one.version) for one in found.graders} == {(0, 1), (0, 3)}
    again = regrade_folder(tmp_path)
    assert {(one.grades, one.changed) for one in again.graders} == {(12, 0)}
    assert len(read_grades(tmp_path)) == 36


def inodes(folder, suite="*"):
    """The files of the graded tables, by what the file system knows them as."""
    return {path: path.stat().st_ino for path in folder.glob(f"[tg]r*/suite={suite}/*/*.parquet")}


def test_where_no_grade_changes_every_part_stays_where_it_is(tmp_path):
    for n in (1, 4):
        fill(tmp_path, sums(n, n + 1), right, aliases=["small", "large"], graders=as_now)
    write_problems(sums(1, 2, 4, 5), tmp_path / "problems" / "sums.parquet")
    before = inodes(tmp_path)
    assert len(before) == 8
    assert regrade_folder(tmp_path, write=True).written
    assert inodes(tmp_path) == before


@pytest.mark.long
def test_sealing_whose_grades_change_are_written_and_the_others_kept_as_they_are(tmp_path):
    for n in (1, 4):
        fill(tmp_path, sums(n, n + 1), right, aliases=["large"], graders=as_now)
        fill(tmp_path, sums(n, n + 1), right, aliases=["small"])
    write_problems(sums(1, 2, 4, 5), tmp_path / "problems" / "sums.parquet")
    before, grades = inodes(tmp_path), read_grades(tmp_path, filters=[("model", "=", "large")])
    regrade_folder(tmp_path, write=True)
    for alias, kept in (("large", True), ("small", False)):
        earlier = {inode for path, inode in before.items() if path.parent.name == f"model={alias}"}
        now = {inode for path, inode in inodes(tmp_path).items() if path.parent.name == f"model={alias}"}
        assert (len(earlier), earlier == now) == (4, kept)
    assert read_grades(tmp_path, filters=[("model", "=", "large")]) == grades
    assert set(read_trials(tmp_path)["outcome"].to_pylist()) == {"correct"}
    assert not (tmp_path / ".tmp" / "next").exists() or not list((tmp_path / ".tmp/next").rglob("*.parquet"))


def test_what_only_the_journal_holds_is_graded_too_and_replaces_what_it_answers_again(tmp_path):
    one, two = sums(1, 2)
    fill(tmp_path, [one, two], right, graders=as_now)
    with Store.open(tmp_path, sweep="night") as store:
        keep(store, *graded(trial(one, "small"), "The sum is 12.", blind))
        found = regrade_folder(tmp_path)
    assert headline(found) == {("small", "correct", "correct"): 1, ("small", "no_answer", "wrong"): 1}


def test_a_folder_that_a_run_writes_to_is_not_rewritten(folder):
    with Store.open(folder, sweep="night"), pytest.raises(StoreError, match=r"^process \d+ is writing to"):
        regrade_folder(folder, write=True)


def test_a_rewriting_that_fails_leaves_the_old_grades(folder):
    before = rows(read_grades, folder, "trial_id", "grader")
    part = sorted((folder / "trials").rglob("*.parquet"))[-1]
    sound = part.read_bytes()
    part.write_bytes(sound[:100] + bytes([sound[100] ^ 1]) + sound[101:])
    with pytest.raises(StoreError, match=part.name):
        regrade_folder(folder, write=True)
    part.write_bytes(sound)
    assert rows(read_grades, folder, "trial_id", "grader") == before
    assert Counter(row["outcome"] for row in read_trials(folder).to_pylist()) == {"no_answer": 8}


def test_what_is_no_results_folder_is_refused(tmp_path):
    for write in (False, True):
        with pytest.raises(ConfigError, match="is not a results folder"):
            regrade_folder(tmp_path, write=write)


@pytest.mark.parametrize(
    ("finish_reason", "tokens", "asked", "now"),
    [
        pytest.param("incomplete", 9, {"max_tokens": 300}, "truncated", id="incomplete"),
        pytest.param("completed", 300, {"max_tokens": 300}, "truncated", id="completed with all tokens"),
        pytest.param("completed", 299, {"max_tokens": 300}, "wrong", id="with one less"),
        pytest.param("completed", None, {"max_tokens": 300}, "wrong", id="without a count"),
        pytest.param("completed", 300, {}, "wrong", id="without a limit"),
        pytest.param(
            "completed", 300, {"params": {"max_output_tokens": 300}}, "truncated", id="limit in params"
        ),
        pytest.param(
            "completed",
            300,
            {"max_tokens": 300, "params": {"max_output_tokens": 400}},
            "wrong",
            id="params count last",
        ),
        pytest.param(None, 300, {"max_tokens": 300}, "truncated", id="no reason with all tokens"),
        pytest.param("stop", 300, {"max_tokens": 300}, "wrong", id="a format that has a word for it"),
    ],
)
def test_a_cut_reply_that_was_taken_for_wrong_is_found(tmp_path, finish_reason, tokens, asked, now):
    (problem,) = sums(1)
    reply = Reply(text="It is 7.", finish_reason=finish_reason, usage=Usage(output_tokens=tokens))
    plain = trial(problem, "small")
    called = replace(plain, model=replace(plain.model, **asked))
    with Store.open(tmp_path, sweep="night") as store:
        write_problems([problem], tmp_path / "problems" / "sums.parquet")
        keep(store, *graded(called, reply, wrong))
    assert headline(regrade_folder(tmp_path, write=True)) == {("small", "wrong", now): 1}
    assert [row["outcome"] for row in read_trials(tmp_path).to_pylist()] == [now]


def test_a_limit_of_the_condition_tells_of_cut_replies_too(tmp_path):
    (problem,) = sums(1)
    params = {"max_output_tokens": 300}
    condition = Condition(params=params, described={"params": params})
    reply = Reply(text="It is 7.", finish_reason="completed", usage=Usage(output_tokens=300))
    with Store.open(tmp_path, sweep="night") as store:
        write_problems([problem], tmp_path / "problems" / "sums.parquet")
        keep(store, *graded(replace(trial(problem, "small"), condition=condition), reply, wrong))
    assert headline(regrade_folder(tmp_path)) == {("small", "wrong", "truncated"): 1}


def test_thinking_in_stored_replies_is_told_from_their_answers(tmp_path):
    """An older folder, whose grader took the thought for a part of the answer."""
    fill(tmp_path, sums(1), lambda problem: f"[THINK]12?[/THINK]{problem.expected}", graders=wrong)
    found = regrade_folder(tmp_path, write=True)
    (row,) = rows(read_trials, tmp_path, "trial_id")

    assert headline(found) == {("small", "wrong", "correct"): 1}
    assert (row["reply_text"], row["reasoning_text"]) == ("[THINK]12?[/THINK]11", "12?")
    assert {one.changed for one in regrade_folder(tmp_path).graders} == {0}
