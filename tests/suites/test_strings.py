"""string_reversal and string_rehearsal: the text, the whole text and nothing but the text."""

from collections import Counter

import pytest

from asyncbench.records import Grade, Outcome, Reply
from asyncbench.suites.integer_addition import ALPHABET, grade_string
from tests.suites.made import drafts_of as drafts, problem


def graded(text: str | None, expected: str = "aB3") -> Grade:
    (one,) = grade_string(problem("string_rehearsal", expected), None if text is None else Reply(text=text))
    return one


def test_a_reversal_is_asked_in_these_words():
    draft = drafts("string_reversal")[0]

    (text,) = draft.operands
    assert draft.question == (
        "Provide the following text in reverse order. Don't output anything else. Only output the reversed "
        f'string without anything additional, not even quotes: "{text}"'
    )
    assert draft.expected == "".join(reversed(text))


def test_a_rehearsal_is_asked_in_these_words():
    draft = drafts("string_rehearsal")[0]

    (text,) = draft.operands
    assert draft.question == (
        "Repeat the following string exactly without modifying it. Don't output anything else. Only output "
        f'the string without anything additional, not even quotes: "{text}"'
    )
    assert draft.expected == text


@pytest.mark.long
@pytest.mark.parametrize(
    ("suite", "shortest", "longest"), [("string_reversal", 3, 30), ("string_rehearsal", 10, 600)]
)
@pytest.mark.parametrize("preset", [None, "upstream-code"])
def test_lengths_run_from_end_to_end(suite, shortest, longest, preset):
    made = drafts(suite, tries=6000, preset=preset)

    assert {draft.length for draft in made} == set(range(shortest, longest + 1))
    assert all(draft.length == len(draft.operands[0]) for draft in made)


def test_each_of_the_62_characters_is_as_likely():
    drawn = Counter("".join(draft.operands[0] for draft in drafts("string_rehearsal", tries=1000)))

    assert set(drawn) == set(ALPHABET)
    assert len(ALPHABET) == 62
    assert max(drawn.values()) / min(drawn.values()) < 1.1


@pytest.mark.parametrize(
    ("text", "reason", "outcome"),
    [
        pytest.param("aB3", None, Outcome.CORRECT, id="the-text"),
        pytest.param("\n aB3\t", None, Outcome.CORRECT, id="trimmed"),
        pytest.param("ab3", "wrong", Outcome.WRONG, id="another-case"),
        pytest.param('"aB3"', "wrong", Outcome.WRONG, id="quotes"),
        pytest.param("```\naB3\n```", "wrong", Outcome.WRONG, id="a-code-fence"),
        pytest.param("aB3 is the text", "wrong", Outcome.WRONG, id="an-explanation"),
        pytest.param("ａB3", "wrong", Outcome.WRONG, id="no-unicode-normalisation"),
        pytest.param("<think></think>aB3", None, Outcome.CORRECT, id="thinking-aloud"),
        pytest.param(" ", "empty", Outcome.NO_ANSWER, id="empty"),
        pytest.param(None, "error", Outcome.FAILED, id="no-reply"),
    ],
)
def test_only_the_trimmed_text_itself_succeeds(text, reason, outcome):
    one = graded(text)

    assert (one.grader, one.reason, one.outcome) == ("exact", reason, outcome)
    assert one.classification == ("fail" if reason else "success")


@pytest.mark.parametrize(
    ("text", "format_ok"), [("Zz9", True), (" Zz9\n", True), ('"Zz9"', False), ("Zz 9", False), ("é", False)]
)
def test_the_form_asked_for_is_letters_and_digits_alone(text, format_ok):
    assert graded(text).format_ok is format_ok
