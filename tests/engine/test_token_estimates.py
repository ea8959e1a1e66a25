"""What a call will probably use, learnt from those like it."""

from dataclasses import replace

from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.engine.token_estimates import LIKE_REPLIES, TokenEstimates
from asyncbench.records import History, Reply, Usage
from tests.world.night import requests

SHORT, LONG = 3, 20  # digits


def turn(length, *, longest=None, characters=100):
    (request,) = requests(1)
    trial = replace(request.trial, problem=replace(request.trial.problem, length=length))
    request = replace(request, trial=trial)
    return PendingTrial(
        request=request, history=History(), characters=characters, longest=longest, taken_s=0.0
    )


def learnt(*replies, length=SHORT, expected=None):
    expected = expected or TokenEstimates()
    for tokens in replies:
        expected.used(turn(length), Reply(text="", usage=Usage(input_tokens=50, output_tokens=tokens)))
    return expected


def output_tokens(expected, length, longest=None):
    return expected.amounts(turn(length, longest=longest)).output_tokens


def input_tokens(expected, characters):
    return expected.amounts(turn(SHORT, characters=characters)).input_tokens


def test_before_any_reply_the_longest_allowed_is_expected():
    assert output_tokens(TokenEstimates(), SHORT, 4_000) == 4_000
    assert output_tokens(TokenEstimates(), SHORT) == 256


def test_a_fifth_of_replies_is_longer_than_expected():
    expected = learnt(*range(1, 65))
    assert sum(tokens > output_tokens(expected, SHORT) for tokens in range(1, 65)) == 12  # of 64


def test_each_cell_is_learnt_by_itself():
    expected = learnt(*[10] * LIKE_REPLIES)
    learnt(*[5_000] * LIKE_REPLIES, length=LONG, expected=expected)
    assert output_tokens(expected, SHORT) == 10
    assert output_tokens(expected, LONG) == 5_000


def test_a_cell_that_is_hardly_known_is_expected_to_be_like_all():
    expected = learnt(*[10] * 20)
    assert output_tokens(expected, LONG) == 10


def test_what_was_long_ago_is_forgotten():
    assert output_tokens(learnt(*[9_000] * 10, *[10] * 64), SHORT) == 10


def test_the_tokens_of_a_prompt_are_learnt_from_its_characters():
    assert input_tokens(TokenEstimates(), 400) == 100
    assert input_tokens(learnt(*[1] * 3), 400) == 200


def test_an_unknown_usage_teaches_nothing():
    expected = learnt(None, None)
    expected.used(turn(SHORT), Reply(text=""))
    assert output_tokens(expected, SHORT) == 256


def test_for_a_call_that_failed_the_longest_is_set_aside():
    expected, again = learnt(*range(1, 65)), turn(SHORT)
    again.tries = 1
    assert expected.amounts(again).output_tokens == 64
