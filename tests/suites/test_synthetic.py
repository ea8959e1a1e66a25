"""Synthetic questions: their lengths, by whoever counts, and their first words."""

from itertools import repeat

from asyncbench.problems.schema import identified
from asyncbench.records import Reply
from asyncbench.suites.synthetic import (
    OPENING,
    CountedPieces,
    draft_synthetic,
    synthetic_questions,
    text_pieces,
    worded,
)
from asyncbench.suites.table import grade


def tokens_in(text: str) -> int:
    """Count as tokenizers do: tokens end with words, and long words have several; a chat has nine more."""
    return 9 + sum(1 + len(word) // 6 for word in text.split(" "))


def counted_by(count) -> CountedPieces:
    pieces, shortest = text_pieces(3), count(worded(OPENING, []))
    return CountedPieces(pieces, [count(worded(OPENING, [piece])) - shortest for piece in pieces], shortest)


def test_questions_have_the_length_that_was_asked_within_a_token():
    counted = counted_by(tokens_in)
    for tokens in (64, 512, 4096):
        lengths = [tokens_in(question) for question in synthetic_questions(0, repeat(tokens, 50), counted)]
        assert set(lengths) <= {tokens - 1, tokens, tokens + 1}, tokens


def test_each_question_has_its_own_length_and_a_short_one_comes_as_near_as_can_be():
    counted = counted_by(tokens_in)
    wished = [300, 64, 5_000, 41, counted.shortest + 9, counted.shortest, 3]
    lengths = [tokens_in(question) for question in synthetic_questions(0, wished, counted)]
    assert [abs(found - asked) <= 1 for found, asked in zip(lengths[:4], wished[:4], strict=True)] == [
        True
    ] * 4
    assert abs(lengths[4] - wished[4]) <= 2
    assert lengths[5:] == [counted.shortest] * 2


def test_a_server_that_only_estimates_tokens_is_met_after_it_counted_whole_questions():
    def estimated(text: str) -> int:
        return -(-len(text) // 4)

    counted = counted_by(estimated)
    whole = [estimated(question) for question in synthetic_questions(9, repeat(1024, 3), counted)]
    scaled = counted.scaled(1024, whole)
    lengths = [estimated(question) for question in synthetic_questions(0, repeat(1024, 50), scaled)]
    assert max(abs(length - 1024) for length in lengths) <= 20  # 2 %


def test_no_two_questions_begin_alike_and_a_seed_gives_them_again():
    counted = counted_by(tokens_in)
    questions = list(synthetic_questions(5, repeat(128, 1000), counted))
    beginnings = {question[:40] for question in questions}
    assert len(beginnings) == 1000
    assert questions == list(synthetic_questions(5, repeat(128, 1000), counted))
    assert questions != list(synthetic_questions(6, repeat(128, 1000), counted))


def test_any_reply_to_them_is_right_but_none_at_all_is_not():
    (problem,) = identified([draft_synthetic("Alice - go on")])
    assert [grade(problem, reply)[0].outcome for reply in (Reply(text="a cat"), Reply(text=""), None)] == [
        "correct",
        "no_answer",
        "failed",
    ]
