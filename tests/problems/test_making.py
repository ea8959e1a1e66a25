"""A problem set is made whole or not at all, the same from the same seed, and copied as it is."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from asyncbench.errors import ConfigError, ProblemSetError, StoreError
from asyncbench.problems.making import copy_into, generate
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet, Survey
from asyncbench.problems.schema import PROBLEM_SCHEMA, batches_of
from asyncbench.records import Draft, Problem
from tests.store.disk import disk_for
from tests.tiers import first_rows


def test_a_problem_set_says_how_it_was_made(small):
    metadata = pq.read_metadata(small.path).metadata or {}
    said = {key.decode(): value.decode() for key, value in metadata.items() if key.startswith(b"asyncbench.")}

    assert said == {
        "asyncbench.schema_version": "1",
        "asyncbench.suite": "integer_addition",
        "asyncbench.generator_version": "3",
        "asyncbench.seed": "7",
        "asyncbench.parameters": json.dumps({"rows": 250}),
        "asyncbench.rows": "250",
        "asyncbench.digest": small.digest,
    }


def test_what_generate_returns_is_what_the_file_holds(small):
    assert open_set(small.path) == small
    assert (small.name, small.rows, small.suites) == ("small", 250, ("integer_addition",))
    assert small.longest_question == max(len(problem.question) for problem in small.read())


def test_the_same_seed_gives_the_same_content(suite, small, tmp_path):
    again = generate(suite, tmp_path / "again.parquet", seed=7)

    assert list(again.read()) == list(small.read())
    assert again.digest == small.digest


def test_another_seed_gives_another_content(suite, small, tmp_path):
    assert generate(suite, tmp_path / "other.parquet", seed=8).digest != small.digest


def test_parameters_shape_what_is_made_and_default_when_absent(suite, tmp_path):
    made = generate(suite, tmp_path / "made.parquet", rows="3")

    assert (made.rows, made.seed, made.parameters) == (3, 0, {"rows": 3})


def test_a_set_is_written_in_row_groups_of_some_thousand(large):
    metadata = pq.read_metadata(large.path)

    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [8192, 8192, 3616]
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_set_is_readable_with_nothing_of_ours(small):
    rows = duckdb.read_parquet(str(small.path)).limit(1).project("question, operands, length").fetchall()

    assert rows == [("7 + 7 = ? – ééééééé", ["7", "7"], None)]


@pytest.mark.parametrize(
    ("suite_", "parameters", "complaint"),
    [
        pytest.param("nupper", {}, "no suite 'nupper'. Known: llm_arithmetic, ", id="unknown suite"),
        pytest.param(
            "integer_addition", {"trys": 5}, "no parameter 'trys'. Known: tries", id="unknown parameter"
        ),
        pytest.param("integer_addition", {"tries": "many"}, "tries: 'many'", id="a value its rule refuses"),
        pytest.param("custom", {}, "your own file", id="a suite without a generator"),
    ],
)
def test_what_cannot_be_generated_is_refused(suite_, parameters, complaint, tmp_path):
    with pytest.raises(ConfigError, match=complaint):
        generate(suite_, tmp_path / "made.parquet", **parameters)
    assert list(tmp_path.iterdir()) == []


def test_parameters_that_leave_nothing_are_refused(suite, tmp_path):
    with pytest.raises(ConfigError, match=r"leave nothing to generate. Change them: \{'rows': 0\}"):
        generate(suite, tmp_path / "made.parquet", rows=0)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(suite, tmp_path):
    (tmp_path / "file").touch()
    for out in (tmp_path, tmp_path / "file" / "made.parquet"):
        with pytest.raises(ConfigError, match=f"^{out}: cannot be written: "):
            generate(suite, out)


def test_a_folder_that_is_missing_is_made(suite, tmp_path):
    assert generate(suite, tmp_path / "new" / "folder" / "made.parquet").path.is_file()


def test_a_generator_that_fails_leaves_the_earlier_file_as_it_was(suite, tmp_path):
    def breaks_off(seed: int, parameters: Mapping[str, object]) -> Iterator[Draft]:
        yield from suite.generate(seed, parameters)
        raise ZeroDivisionError

    made = generate(suite, tmp_path / "made.parquet")
    before = made.path.read_bytes()

    with pytest.raises(ZeroDivisionError):
        generate(replace(suite, generate=breaks_off), made.path, rows=20_000)
    assert made.path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [made.path]


def test_a_disk_that_is_full_is_a_matter_of_storage_and_leaves_nothing(tmp_path):
    out = tmp_path / "made.parquet"
    with disk_for(40_000), pytest.raises(StoreError, match=f"^{out}: cannot be written: File too large"):
        generate("integer_addition", out, tries=5_000)
    assert list(tmp_path.iterdir()) == []


# ── the content digest ───────────────────────────────────────────────────────────────────────

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
PROBLEMS = st.lists(
    st.builds(
        Problem,
        problem_id=TEXT,
        suite=TEXT,
        task=TEXT,
        variant=TEXT,
        representation=TEXT,
        length=st.none() | st.integers(0, 2**31 - 1),
        operands=st.lists(TEXT, max_size=3).map(tuple),
        question=TEXT,
        expected=TEXT,
        answer_type=TEXT,
        extra=TEXT,
    ),
    min_size=1,
    max_size=5,
)


def digest(problems: list[Problem], *, rows: int = 1000) -> str:
    survey = Survey()
    for batch in batches_of(iter(problems), rows=rows):
        survey.add(batch)
    return survey.digest


@pytest.mark.long
@settings(deadline=None)
@given(PROBLEMS, st.integers(1, 4))
def test_the_digest_does_not_depend_on_the_row_groups(problems, rows):
    assert digest(problems, rows=rows) == digest(problems)


@pytest.mark.long
@settings(deadline=None)
@given(PROBLEMS, PROBLEMS)
def test_other_problems_have_another_digest(some, others):
    assert (digest(some) == digest(others)) == (some == others)


OTHER: Mapping[str, Callable[[Any], object]] = {
    "length": lambda was: 5 if was is None else None,
    "operands": lambda was: (*was, ""),
}


@pytest.mark.long
@settings(deadline=None)
@given(PROBLEMS, st.sampled_from(PROBLEM_SCHEMA.names), st.data())
def test_a_change_in_any_cell_changes_the_digest(problems, column, data):
    at = data.draw(st.integers(0, len(problems) - 1))
    other = OTHER.get(column, "{}x".format)(getattr(problems[at], column))
    changed = [*problems[:at], replace(problems[at], **{column: other}), *problems[at + 1 :]]

    assert digest(changed) != digest(problems)


# ── the copy in a results folder ─────────────────────────────────────────────────────────────


def with_a_note(made: ProblemSet) -> ProblemSet:
    table = pq.read_table(made.path)
    pq.write_table(table.append_column("note", table["task"]), made.path.with_name("small.parquet"))
    return open_set(made.path.with_name("small.parquet"))


FORMS = (lambda made: made, lambda made: open_set(made.path), with_a_note)


@pytest.mark.parametrize("form", FORMS, ids=["made", "opened", "with a column of its own"])
def test_a_copy_holds_the_same_and_says_so(suite, tmp_path, form):
    small = form(generate(suite, tmp_path / "small.parquet", seed=7))
    copy = copy_into(small, tmp_path / "problems")

    assert pq.read_schema(copy.path).names == PROBLEM_SCHEMA.names
    assert copy.path == tmp_path / "problems" / f"small-{small.digest[:12]}.parquet"
    assert copy == replace(small, path=copy.path)
    assert open_set(copy.path, name="small") == copy
    assert list(copy.read()) == list(small.read())


def test_a_second_copy_of_the_same_takes_the_place_of_the_first(small, tmp_path):
    first = copy_into(small, tmp_path)

    assert copy_into(copy_into(small, tmp_path), tmp_path) == first
    assert list(tmp_path.iterdir()) == [first.path]


@pytest.mark.parametrize("check", [lambda made: made, lambda made: open_set(made.path)])
def test_a_set_that_changed_since_it_was_checked_is_not_copied(suite, tmp_path, check):
    checked = check(generate(suite, tmp_path / "made.parquet", seed=1))
    generate(suite, tmp_path / "made.parquet", seed=2)

    with pytest.raises(ProblemSetError, match=f"^{checked.path}: the file changed while it was read"):
        copy_into(checked, tmp_path / "problems")
    assert list((tmp_path / "problems").iterdir()) == []


def test_a_results_folder_that_cannot_be_written_is_a_matter_of_storage(small, tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(StoreError, match="could not be written"):
        copy_into(small, tmp_path / "file")


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def test_problems_come_in_file_order_as_they_were_made(suite, large):
    drafts = suite.generate(7, {"rows": 20_000})

    for problem, draft in zip(large.read(), drafts, strict=True):
        assert {name: getattr(problem, name) for name in Draft.__slots__} == {
            name: getattr(draft, name) for name in Draft.__slots__
        }


@pytest.fixture(scope="module")
def whole(large):
    """The ids of all problems, read from the first to the last."""
    return [problem.problem_id for problem in large.read()]


@pytest.mark.parametrize("start", [0, 1, 1023, 1024, 8191, 8192, 8193, 16_384, 19_999, 20_000, 30_000])
@pytest.mark.parametrize("batch_rows", first_rows(1, [8192, 1000]))
def test_reading_may_start_at_any_row(large, whole, start, batch_rows):
    assert [problem.problem_id for problem in large.read(batch_rows, start)] == whole[start:]


def test_a_file_that_is_gone_after_it_was_checked_is_a_problem_set_error(suite, tmp_path):
    made: ProblemSet = generate(suite, tmp_path / "made.parquet")
    made.path.unlink()

    with pytest.raises(ProblemSetError, match="no such file"):
        next(made.read())


def test_sets_to_train_and_to_validate_on_have_no_question_of_the_test(tmp_path):
    """Of sums of three digits some are drawn for several; each set leaves out those of the ones before."""
    given: dict[str, Any] = {"tasks": "add", "representations": "integer", "lengths": "3", "per_length": 900}
    splits, files = ("test", "train", "validation"), list[Path]()
    for split in splits:
        made = generate("nupa", tmp_path / f"{split}.parquet", split=split, exclude=files, **given)
        files.append(made.path)
    questions = [{one.question for one in open_set(file).read()} for file in files]
    alone = generate("nupa", tmp_path / "alone.parquet", split="train", **given)
    assert not any(a & b for a, b in combinations(questions, 2))
    overlap = {one.question for one in open_set(alone.path).read()} & questions[0]
    assert len(overlap) == alone.rows - len(questions[1]) > 0
    assert generate("nupa", tmp_path / "two.parquet", split="train", exclude=files[:1], **given).digest == (
        open_set(files[1]).digest
    )
    with pytest.raises(ConfigError, match="leave nothing to generate"):
        generate("nupa", tmp_path / "none.parquet", exclude=files, **given)
