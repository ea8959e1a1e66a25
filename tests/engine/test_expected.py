"""What a call will probably use, learnt from those like it."""

from asyncbench.engine.expected import ENOUGH, Expected
from asyncbench.records import Usage

SHORT, LONG = ("add", "", 3, "plain"), ("add", "", 20, "plain")


def learnt(*replies, cell=SHORT, expected=None):
    expected = expected or Expected()
    for tokens in replies:
        expected.learn(cell, 100, Usage(input_tokens=50, output_tokens=tokens))
    return expected


def test_before_any_reply_the_longest_allowed_is_expected():
    assert Expected().output_tokens(SHORT, 4_000) == 4_000
    assert Expected().output_tokens(SHORT, None) == 256


def test_few_replies_are_longer_than_expected():
    expected = learnt(*range(1, 65))
    assert sum(tokens > expected.output_tokens(SHORT, None) for tokens in range(1, 65)) == 3  # of 64


def test_each_cell_is_learnt_by_itself():
    expected = learnt(*[10] * ENOUGH)
    learnt(*[5_000] * ENOUGH, cell=LONG, expected=expected)
    assert expected.output_tokens(SHORT, None) == 10
    assert expected.output_tokens(LONG, None) == 5_000


def test_a_cell_that_is_hardly_known_is_expected_to_be_like_all():
    expected = learnt(*[10] * 20)
    assert expected.output_tokens(LONG, None) == 10


def test_what_was_long_ago_is_forgotten():
    assert learnt(*[9_000] * 10, *[10] * 64).output_tokens(SHORT, None) == 10


def test_the_tokens_of_a_prompt_are_learnt_from_its_characters():
    assert Expected().input_tokens(400) == 100
    assert learnt(*[1] * 3).input_tokens(400) == 200


def test_an_unknown_usage_teaches_nothing():
    expected = learnt(None, None)
    expected.learn(SHORT, 100, None)
    assert expected.output_tokens(SHORT, None) == 256
