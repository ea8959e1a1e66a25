"""A limit that nobody tells: how it is guessed, raised, and dropped; on a clock that is told."""

import pytest

from asyncbench.engine.guessed_limit import KNOWN, QUICKLY, QUICKLY_S, SLOWLY, SLOWLY_S, GuessedLimit


def grown(guess: GuessedLimit, rpm: float, at_s: float, until_s: float, *, share: float = 1.0) -> float:
    """Return a guess after it was looked at ten times a second."""
    for tenth in range(int(at_s * 10), int(until_s * 10)):
        rpm *= guess.growth(rpm, tenth / 10, share=share) or 1.0
    return rpm


def refused_at(rpm: float, at_s: float = 0.0) -> GuessedLimit:
    guess = GuessedLimit()
    guess.first(rpm, at_s)
    return guess


def test_the_first_guess_is_the_rate_that_was_refused_and_grows_slowly():
    guess = GuessedLimit()
    assert guess.first(600.0, 10.0) == 600.0
    assert guess.growth(600.0, 10.0 + SLOWLY_S, share=1.0) is None
    assert guess.growth(600.0, 10.1 + SLOWLY_S, share=1.0) == SLOWLY


def test_after_a_pause_it_is_what_was_answered_in_the_minute_before():
    guess = refused_at(3_600.0, 100.0)
    for tenth in range(2_000):  # ten a second, for 200 s
        guess.answered(tenth / 10)
    assert guess.after_pause(3_600.0, 230.0, paused_s=30.0) == pytest.approx(600, abs=10)


def test_where_nothing_was_answered_it_is_one_a_minute():
    assert refused_at(600.0).after_pause(600.0, 5.0, paused_s=1.0) == 1.0


def test_far_below_what_was_refused_it_doubles_every_few_seconds():
    guess = refused_at(3_600.0)
    assert guess.after_pause(3_600.0, 1.0, paused_s=1.0) == 1.0
    assert grown(guess, 60.0, 1.0, 1.0 + 4.5 * QUICKLY_S) == 60.0 * QUICKLY**4


def test_it_doubles_no_sooner_than_a_call_can_be_made():
    guess = refused_at(3_600.0)
    guess.after_pause(3_600.0, 0.0, paused_s=1.0)
    assert grown(guess, 1.0, 0.0, 59.0) == 1.0
    assert grown(guess, 1.0, 59.0, 61.0) == QUICKLY


def test_near_what_was_refused_it_grows_slowly():
    guess = refused_at(600.0)
    guess.after_pause(600.0, 0.0, paused_s=1.0)
    assert grown(guess, 200.0, 0.0, SLOWLY_S) == 200.0


@pytest.mark.parametrize("share", [0.5, 0.97])
def test_it_does_not_grow_while_calls_are_refused(share):
    guess = refused_at(3_600.0)
    guess.after_pause(3_600.0, 0.0, paused_s=1.0)
    assert grown(guess, 60.0, 0.0, 10 * SLOWLY_S, share=share) == 60.0


def answered(guess: GuessedLimit, times: int) -> None:
    for n in range(times):
        guess.answered(n / 10)


def test_refusals_far_below_the_rate_that_led_to_it_drop_it_once():
    guess = refused_at(3_600.0)
    guess.after_pause(3_600.0, 0.0, paused_s=1.0)
    answered(guess, KNOWN - 1)
    assert not guess.drop(60.0, share=0.5)
    answered(guess, 1)
    assert not guess.drop(60.0, share=1.0), "nothing is refused"
    assert not guess.drop(2_000.0, share=0.5), "half of what was refused is not far below"
    assert guess.drop(60.0, share=0.5)


def test_a_limit_that_was_found_again_is_not_doubted_again():
    guess = refused_at(3_600.0)
    answered(guess, KNOWN)
    assert guess.drop(60.0, share=0.5)
    guess.after_pause(guess.first(3_600.0, 50.0), 60.0, paused_s=1.0)
    answered(guess, 10 * KNOWN)
    assert not guess.drop(60.0, share=0.5)
