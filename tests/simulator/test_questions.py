"""Reading problem sets: by content, and with a word about what is wrong with one."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asyncbench.errors import ProblemSetError
from asyncbench.simulator.questions import DOCTORS_QUESTION, KnownAnswer, Questions


def problem_set(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_a_question_is_found_by_its_exact_text(tmp_path):
    path = problem_set(tmp_path / "a.parquet", question=["1 + 1?"], expected=["2"], length=[7])

    assert Questions([path]).find("1 + 1?") == KnownAnswer("2", 7)
    assert Questions([path]).find("1 + 1? ") is None


@pytest.mark.parametrize("length", [{}, {"length": pa.array([None], pa.int32())}], ids=["no column", "NULL"])
def test_without_a_length_the_answer_s_own_counts(tmp_path, length):
    path = problem_set(tmp_path / "a.parquet", question=["q"], expected=["12345"], **length)

    assert Questions([path]).find("q") == KnownAnswer("12345", 5)


def test_a_question_is_found_in_a_longer_text_the_longest_first(tmp_path):
    path = problem_set(tmp_path / "a.parquet", question=["12 + 3", "2 + 3", "q"], expected=["15", "5", "r"])
    questions = Questions([path])

    assert questions.find_inside("Well: 12 + 3\nThink.") == "12 + 3"
    assert questions.find_inside("2 + 3, q") == "2 + 3"
    assert questions.find_inside("equal?") == "q"
    assert questions.find_inside("nothing") is None


def test_a_question_in_another_form_is_found_with_its_answer_in_plain_digits(tmp_path):
    path = problem_set(
        tmp_path / "a.parquet",
        question=["Like 123: 45 + 5?", "22?"],
        expected=["50", "24"],
        operands=[["45", "5"], ["22"]],
    )
    questions = Questions([path])

    assert questions.find("Like 123: 54 + 5?", ("reversed",)) == KnownAnswer("50", 2)
    assert questions.find("Like 123: 54 + 5?") is None
    assert [questions.find("22?", form) for form in ((), ("reversed",))] == [
        KnownAnswer("24", 2),
        KnownAnswer("24", 2),
    ]
    assert questions.find_inside("So: Like 123: 54 + 5? Now.", ("reversed",)) == "Like 123: 54 + 5?"


def test_columns_may_be_dictionary_encoded(tmp_path):
    words = pa.array(["q"]).dictionary_encode()
    path = problem_set(tmp_path / "a.parquet", question=words, expected=words)

    assert Questions([path]).find("q") == KnownAnswer("q", 1)


def test_any_encoding_of_parquet_is_read(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"question": ["1 + 1?"], "expected": ["2"]})
    pq.write_table(table, path, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")

    assert Questions([path]).find("1 + 1?") == KnownAnswer("2", 1)


def test_of_a_question_in_two_sets_the_first_counts(tmp_path):
    first = problem_set(tmp_path / "1.parquet", question=["q", "r"], expected=["1", "2"])
    second = problem_set(tmp_path / "2.parquet", question=["q", "s"], expected=["9", "3"])
    questions = Questions([first, second])

    assert len(questions) == 3
    assert questions.find("q") == KnownAnswer("1", 1)


def test_the_doctor_s_question_is_always_known_and_not_counted(tmp_path):
    path = problem_set(tmp_path / "a.parquet", question=["q"], expected=["1"])

    assert Questions([path]).find(DOCTORS_QUESTION) == KnownAnswer("4", 1)
    assert len(Questions([path])) == 1


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ProblemSetError, match=r"nowhere\.parquet: no such file"):
        Questions([tmp_path / "nowhere.parquet"])


def test_a_file_that_is_not_parquet_is_named(tmp_path):
    (tmp_path / "text.parquet").write_text("question,expected\n1 + 1?,2\n")

    with pytest.raises(ProblemSetError, match=r"text\.parquet: this is text, not Parquet"):
        Questions([tmp_path / "text.parquet"])


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"question": ["q"]}, "needs a text column 'expected'; its columns: question"),
        ({"question": ["q"], "expected": [2]}, "needs a text column 'expected'"),
        ({"question": ["q"], "expected": [None]}, "needs a text column 'expected'"),
        ({"question": ["q", None], "expected": ["1", "2"]}, "a problem has no question: "),
    ],
    ids=["missing", "not text", "all NULL", "one NULL"],
)
def test_a_set_that_cannot_be_asked_is_refused(tmp_path, columns, complaint):
    with pytest.raises(ProblemSetError, match=complaint):
        Questions([problem_set(tmp_path / "a.parquet", **columns)])
