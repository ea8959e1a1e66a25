"""The report on integer addition and its string tasks, over results folders made by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from asyncbench.errors import ConfigError
from asyncbench.problems.making import write_problems
from asyncbench.problems.schema import identified
from asyncbench.published.integer_addition.counts import BIN, RunLine
from asyncbench.published.integer_addition.report import integer_addition_report_on
from asyncbench.records import Condition, Draft, Problem, Reply, Result
from asyncbench.store.folder import Store
from asyncbench.suites import integer_addition
from asyncbench.tables.report import SIMULATED
from tests.published.made import closed
from tests.store import made


def result(
    problem: Problem,
    text: str | None,
    *,
    run: str = "night",
    model: str = "m",
    condition: str = "plain",
    provider: str = "openai",
    latency_s: float = 1.0,
    reasoning: str | None = None,
    finish_reason: str = "stop",
) -> Result:
    """One closed trial; text None: no reply came."""
    reply = None if text is None else Reply(text=text, reasoning=reasoning, finish_reason=finish_reason)
    return closed(
        problem,
        reply,
        trial_id=f"{run} {model} {condition} {problem.problem_id}",
        run=run,
        model=model,
        provider=provider,
        condition=Condition(name=condition),
        latency_s=latency_s,
    )


def add(left: int, right: int) -> Draft:
    return integer_addition.draft_addition(left, right, length=len(str(max(left, right))))


def sums(count: int) -> list[Draft]:
    """`count` different problems, with the sums 2, 3, 4, …"""
    return [add(1, n) for n in range(1, count + 1)]


def asked(folder: Path, *drafts: Draft) -> tuple[Problem, ...]:
    """Write a problem set into a results folder; return its problems."""
    problems = tuple(identified(drafts))
    write_problems(problems, folder / "problems" / "set.parquet")
    return problems


def answered(folder: Path, *texts: str | None) -> list[Result]:
    """A trial for each text, of problems with the sums 2, 3, 4, …; text None: no reply came."""
    problems = asked(folder, *sums(len(texts)))
    return [result(problem, text) for problem, text in zip(problems, texts, strict=True)]


keep = made.results_folder


def plan(*conditions: str, **suites: int) -> dict[str, object]:
    """What the manifest says of a run of model m under some conditions: suite → trials of each."""
    tasks = {suite: {suite: trials} for suite, trials in suites.items()}
    return {"planned": {"m": dict.fromkeys(conditions or ["plain"], tasks)}}


def only_line(folder: Path) -> RunLine:
    (line,) = integer_addition_report_on(folder).lines
    return line


def row_of(text: str, start: str) -> list[str]:
    """The cells of the first row of a text that starts so."""
    return next(line for line in text.splitlines() if line.startswith(start)).split()


@pytest.fixture
def folder(tmp_path):
    """A results folder without results."""
    Store.open(tmp_path, sweep="night").close()
    return tmp_path


def test_the_published_rate_leaves_failed_calls_out_and_the_other_counts_them(folder):
    keep(folder, *answered(folder, "2", "3", "4", "6", None), runs={"night": plan(integer_addition=10)})

    line = only_line(folder)
    assert (line.tries, line.trials, line.results, line.successes) == (10, 5, 4, 3)
    assert line.success_rate == 3 / 4
    assert line.success_rate_of_tries == 3 / 10


@pytest.mark.long
@pytest.mark.parametrize(
    ("runs", "planned"),
    [
        pytest.param({}, None, id="no-plan"),
        pytest.param({"night": plan(integer_addition=1)}, 1, id="a-plan-that-was-overtaken"),
    ],
)
def test_tries_are_never_fewer_than_trials(folder, runs, planned):
    keep(folder, *answered(folder, "2", None), runs=runs)

    line = only_line(folder)
    assert (line.planned, line.tries, line.success_rate_of_tries) == (planned, 2, 1 / 2)


def test_rates_are_printed_with_two_decimals_as_published(folder):
    keep(folder, *answered(folder, "2", "3", "no"), runs={"night": plan(integer_addition=8)})

    text = integer_addition_report_on(folder).as_text()
    assert row_of(text, "m ")[:6] == ["m", "8", "3", "2", "66.67%", "25.00%"]


def test_durations_are_those_of_calls_that_brought_a_reply(folder):
    first, second, third, fourth = answered(folder, "2", "3", "4", None)
    slow, slowest = replace(second, latency_s=2.0), replace(third, latency_s=6.0)
    keep(folder, first, slow, slowest, fourth)

    line = only_line(folder)
    assert (line.latency_p50_s, line.latency_mean_s, line.latency_p95_s) == (2.0, 3.0, pytest.approx(5.6))


def test_the_length_of_reasoning_is_that_of_the_replies_that_show_any(folder):
    problems = asked(folder, *sums(4))
    shown = [None, "", "abc", "abcdé"]
    keep(folder, *(result(one, "2", reasoning=text) for one, text in zip(problems, shown, strict=True)))

    assert only_line(folder).reasoning_p50_characters == 4


@pytest.mark.long
def test_every_fail_has_its_reason(folder):
    keep(folder, *answered(folder, "2", "+3", "5", "The sum is 5", " ", None, None))

    assert only_line(folder).reasons == {"wrong": 1, "not_a_number": 1, "empty": 1, "error": 2}
    text = integer_addition_report_on(folder).as_text()
    assert row_of(text, "m      integer_addition")[2:] == ["1", "1", "1", "2", "0", "40.00%"]


def test_a_reason_of_ours_has_a_column_where_it_occurs(folder):
    (one,) = answered(folder, "2")
    stumbled = replace(one.grades[0], grader_version=0, reason="grader_error", classification=None)
    keep(folder, replace(one, grades=(stumbled,)))

    assert only_line(folder).reasons["grader_error"] == 1
    assert "grader_error" in integer_addition_report_on(folder).as_text()


def test_the_form_is_that_of_recorded_results(folder):
    keep(folder, *answered(folder, "2", "9", "+4", None))

    line = only_line(folder)
    assert (line.format_ok, line.format_ok_share) == (2, 2 / 3)


def test_notes_say_what_failed_was_empty_or_was_truncated(folder):
    results = answered(folder, "2", "", None)
    (cut,) = (result(one, "12", finish_reason="length") for one in asked(folder, *sums(4))[3:])
    keep(folder, *results, cut)

    text = integer_addition_report_on(folder).as_text()
    assert "4 trials: 1 failed (no reply), 1 empty replies, 1 truncated." in text


def test_notes_say_of_how_many_planned_trials_nothing_is_recorded(folder):
    keep(folder, *answered(folder, "2", "3"), runs={"night": plan(integer_addition=5, string_reversal=1)})

    assert "4 more were planned, but not recorded." in integer_addition_report_on(folder).as_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("others", "left_out", "said"),
    [
        pytest.param({}, {"night": 2}, "the import could not use, by run: night 2.", id="some"),
        pytest.param(
            {"spoilt": {"planned": {}, "left_out": 3}},
            {"night": 2, "spoilt": 3},
            "the import could not use, by run: night 2, spoilt 3.",
            id="all of a file",
        ),
        pytest.param(
            {"of other suites": plan(nupa=4) | {"left_out": 9}},
            {"night": 2},
            "the import could not use, by run: night 2.",
            id="of other suites",
        ),
    ],
)
def test_notes_say_what_was_left_out_at_import(tmp_path, others, left_out, said):
    with Store.open(tmp_path, sweep="published", imported=True) as store:
        made.keep(store, *made.with_calls(*answered(tmp_path, "2")))
        store.write_manifest({"runs": {"night": plan(integer_addition=4) | {"left_out": 2}, **others}})

    report = integer_addition_report_on(tmp_path)
    assert said in report.as_text()
    assert report.left_out == left_out


def test_simulated_results_say_so_in_every_form(folder):
    (problem,) = asked(folder, add(1, 2))
    keep(folder, result(problem, "3", provider="simulated"))

    report = integer_addition_report_on(folder)
    assert report.as_text().startswith(SIMULATED)
    assert SIMULATED in report.as_markdown()
    assert json.loads(report.as_json())["simulated"] is True


def test_suites_stand_in_the_order_in_which_they_are_asked(folder):
    drafts = [
        integer_addition.draft_string("string_rehearsal", "a" * 10),
        add(1, 2),
        integer_addition.draft_string("string_reversal", "abc"),
    ]
    keep(folder, *(result(problem, "3") for problem in asked(folder, *drafts)))

    lines = integer_addition_report_on(folder).lines
    assert [line.suite for line in lines] == ["string_reversal", "integer_addition", "string_rehearsal"]


def test_models_stand_in_the_order_of_the_manifest(folder):
    (problem,) = asked(folder, add(1, 2))
    models = {model: {"plain": {"integer_addition": {"integer_addition": 1}}} for model in ("z", "a")}
    results = [result(problem, "3", model=model) for model in ("unplanned", "a", "z")]
    keep(folder, *results, runs={"night": {"planned": models}})

    lines = integer_addition_report_on(folder).lines
    assert [line.model for line in lines] == ["z", "a", "unplanned"]


def test_trials_of_other_suites_do_not_count(folder):
    (problem,) = asked(folder, add(1, 2))
    other = replace(problem, suite="llm_arithmetic", task="int_add", problem_id="other")
    keep(folder, result(problem, "3"), result(other, "3"))

    assert only_line(folder).trials == 1


@pytest.mark.long
def test_a_task_of_which_nothing_was_recorded_is_shown(folder):
    runs = {"night": plan(integer_addition=1, string_reversal=5, nupa=9)}
    keep(folder, *answered(folder, "2"), runs=runs)

    nothing, _ = integer_addition_report_on(folder).lines
    assert (nothing.suite, nothing.tries, nothing.results) == ("string_reversal", 5, 0)
    assert (nothing.success_rate, nothing.success_rate_of_tries, nothing.latency_p50_s) == (None, 0.0, None)
    assert row_of(integer_addition_report_on(folder).as_text(), "m ")[1:6] == ["5", "0", "0", "-", "0.00%"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked_as", "names"),
    [
        pytest.param([{}], ["m"], id="one"),
        pytest.param([{"model": "a"}, {"model": "b"}], ["a", "b"], id="models"),
        pytest.param(
            [{"condition": "5-shot"}, {"condition": "plain"}], ["m (5-shot)", "m (plain)"], id="conditions"
        ),
        pytest.param([{"run": "r1"}, {"run": "r2"}], ["m, run r1", "m, run r2"], id="runs"),
        pytest.param(
            [{"run": "r1", "model": "a"}, {"run": "r2", "model": "b"}], ["a", "b"], id="a-run-for-each-model"
        ),
        pytest.param([{"model": "m[high]"}], ["m[high]"], id="brackets"),
    ],
)
def test_a_row_is_named_as_briefly_as_tells_it_from_others(folder, asked_as, names):
    (problem,) = asked(folder, add(1, 2))
    keep(folder, *(result(problem, "3", **how) for how in asked_as))

    text = integer_addition_report_on(folder).as_text()
    rows = text.split("\n\n")[1].splitlines()[2:]  # of the first table, without its title and head
    assert [row.split("  ")[0] for row in rows] == names


def test_each_condition_has_its_own_plan(folder):
    problems = asked(folder, *sums(2))
    results = [result(one, "2", condition=name) for one in problems for name in ("plain", "5-shot")]
    keep(folder, *results[:3], runs={"night": plan("plain", "5-shot", "brief", integer_addition=2)})

    lines = integer_addition_report_on(folder).lines
    assert [(line.condition, line.tries, line.trials) for line in lines] == [
        ("plain", 2, 2),
        ("5-shot", 2, 1),
        ("brief", 2, 0),
    ]


def test_success_is_counted_by_the_number_of_carries(folder):
    problems = asked(folder, add(5, 4), add(18, 27), add(29, 72), add(999, 1), add(6, 3))
    texts = ["9", "45", "0", "1000", None]
    keep(folder, *(result(one, text) for one, text in zip(problems, texts, strict=True)))

    bins = [tuple(one[name] for name in BIN) for one in only_line(folder).by_carries]
    assert bins == [(0, 0, 1, 1, 1.0), (1, 2, 2, 1, 0.5), (3, 5, 1, 1, 1.0)]


def test_success_is_counted_by_length(folder):
    lengths = [1, 5, 6, 31, 400]
    problems = asked(folder, *(replace(draft, length=n) for draft, n in zip(sums(5), lengths, strict=True)))
    keep(folder, *(result(problem, "2") for problem in problems))

    bins = [tuple(one[name] for name in BIN[:4]) for one in only_line(folder).by_length]
    assert bins == [(1, 5, 2, 1), (6, 10, 1, 0), (31, None, 2, 0)]


def test_texts_to_be_repeated_are_long(folder):
    texts = [
        integer_addition.draft_string("string_rehearsal", "a" * length) for length in (10, 100, 101, 600, 601)
    ]
    keep(folder, *(result(problem, problem.expected) for problem in asked(folder, *texts)))

    line = only_line(folder)
    assert [tuple(one[name] for name in BIN[:3]) for one in line.by_length] == [
        (1, 100, 2),
        (101, 200, 1),
        (501, 600, 1),
        (601, None, 1),
    ]
    assert line.by_carries == ()


def test_the_size_of_a_bin_stands_above_it_and_its_share_says_of_how_many(folder):
    problems = asked(folder, add(5, 4), add(29, 72), add(38, 72), replace(add(1, 1), length=None))
    keep(folder, *(result(problem, "9") for problem in problems))

    text = integer_addition_report_on(folder).as_text()
    lengths, carries, _ = (table.splitlines() for table in text.split("\n\n")[-3:])
    assert lengths[0] == "integer_addition: success rate by length in digits of the longer number"
    assert lengths[1].split() == ["model", "1-5", "unknown"]
    assert carries[1].split() == ["model", "0", "1-2"]
    assert carries[2].split() == ["m", "50.00%", "of", "2", "0.00%", "of", "2"]


@pytest.mark.long
@pytest.mark.parametrize(
    "operands",
    [
        pytest.param(("1", "2", "3"), id="three"),
        pytest.param(("one", "two"), id="words"),
        pytest.param(("-1", "2"), id="negative"),
    ],
)
def test_carries_are_unknown_where_operands_make_no_sum_of_two_whole_numbers(folder, operands):
    (problem,) = asked(folder, replace(add(1, 2), operands=operands))
    keep(folder, result(problem, "3"))

    (one,) = only_line(folder).by_carries
    assert (one["first"], one["results"]) == (None, 1)


@pytest.mark.long
def test_carries_are_unknown_where_the_problem_file_is_missing_and_the_notes_say_so(folder):
    kept = answered(folder, "2", "3")
    keep(folder, *kept, replace(kept[0], trial=replace(kept[0].trial, trial_id="again", repeat=1)))
    (folder / "problems" / "set.parquet").unlink()

    report = integer_addition_report_on(folder)
    (one,) = only_line(folder).by_carries
    assert (one["first"], one["results"]) == (None, 3)
    assert report.without_operands == 2
    assert "problems/ lacks the operands of 2 additions, so their carries are unknown." in (report.as_text())


def test_a_problem_in_two_files_counts_once(folder):
    keep(folder, *answered(folder, "2"))
    write_problems(identified(sums(1)), folder / "problems" / "another.parquet")

    assert only_line(folder).by_carries[0]["results"] == 1


def test_a_folder_without_these_suites_is_refused(folder):
    (problem,) = asked(folder, add(1, 2))
    keep(folder, result(replace(problem, suite="llm_arithmetic", task="int_add"), "3"))

    with pytest.raises(ConfigError, match="no trials of string_reversal or integer_addition"):
        integer_addition_report_on(folder)
