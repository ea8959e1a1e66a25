"""A limit that nobody tells: how it is measured, kept and given up; on a clock that is told."""

import heapq
from dataclasses import dataclass, field

import pytest

from asyncbench.engine.guessed_limit import BELOW, BIN_S, FEWEST_CALLS, LOST_S, SHORTEST_S, GuessedLimit
from asyncbench.simulator.limits import LIMIT_MODELS, Limiter

REFUSED_S = 0.02  # until a refusal is there


@dataclass(slots=True)
class Paced:
    """Calls at the pace of a guess, to a provider that is as fast as it is asked; refusals come soon."""

    limiter: Limiter
    guess: GuessedLimit = field(default_factory=GuessedLimit)
    at_s: float = 0.0
    admitted: int = 0
    refused: int = 0
    coming: list[tuple[float, float]] = field(default_factory=list)  # refusals: when, of a call sent when

    def run(self, seconds: float, *, unpaced: float = 40.0, most: float = 1e9) -> None:
        """Go on for so long; `unpaced` a second without a guess, and never more than `most`."""
        self.admitted = self.refused = 0
        until_s = self.at_s + seconds
        while self.at_s < until_s:
            while self.coming and self.coming[0][0] <= self.at_s:
                end_s, sent_s = heapq.heappop(self.coming)
                self.guess.refused(sent_s, end_s)
            if self.guess.full(self.at_s):
                self.at_s += BIN_S
                continue
            pace = self.guess.pace(self.at_s)
            per_s = min(unpaced if pace is None else pace / 60, most)
            self._call()
            if pace is not None and per_s < most:
                self.guess.waits(self.at_s, 1 / per_s)
            self.at_s += 1 / per_s

    def _call(self) -> None:
        self.guess.sent(self.at_s)
        if self.limiter.wait_s(1.0, self.at_s) > 0:
            self.refused += 1
            heapq.heappush(self.coming, (self.at_s + REFUSED_S, self.at_s))
        else:
            self.admitted += 1
            self.limiter.take(1.0, self.at_s)


def bucket(rpm: float, burst_s: float = 1.0) -> Paced:
    return Paced(LIMIT_MODELS["token_bucket"](rpm, burst_s, 0.0))


def refuse_all(guess: GuessedLimit, calls: int, at_s: float) -> None:
    for _ in range(calls):
        guess.sent(at_s)
        guess.refused(at_s, at_s)


def held(calls: int, *, for_s: float, told: bool = False) -> GuessedLimit:
    """A guess after so many calls in ten seconds, and so long a pause."""
    guess = GuessedLimit()
    for n in range(calls):
        guess.sent(10 * n / calls)
    refuse_all(guess, FEWEST_CALLS, 10.0)

    guess.sent(10.0 + for_s, is_probe=True)
    guess.reopened(10.1 + for_s, held_s=0.1 + for_s, provider_named=told)
    return guess


def test_few_refusals_are_no_limit():
    guess = GuessedLimit()
    for n in range(1_000):
        guess.sent(n / 100)
    refuse_all(guess, FEWEST_CALLS - 1, 10.0)
    assert guess.pace(10.0) is None


@pytest.mark.parametrize("burst_s", [1.0, 5.0, 60.0])
@pytest.mark.parametrize("rpm", [90, 300, 1_200])
def test_the_rate_of_a_bucket_is_found_whatever_it_saves_up(rpm, burst_s):
    lane = bucket(rpm, burst_s)
    lane.run(240)
    lane.run(240)
    assert lane.admitted >= 0.95 * rpm * 4
    assert lane.refused <= 0.01 * lane.admitted + 4


def test_what_was_admitted_before_a_window_ended_is_its_limit():
    guess = held(500, for_s=45.0)
    assert guess.pace(55.2) == pytest.approx(500 * (1 - BELOW), rel=0.01)


def test_where_the_end_was_told_only_that_window_counts():
    guess = held(500, for_s=55.0, told=True)  # it began five seconds after the first call
    assert guess.pace(65.2) == pytest.approx(300 * (1 - BELOW), rel=0.05)  # to a second


def test_a_window_that_admits_again_frees_its_places_as_they_were_taken():
    guess = held(500, for_s=50.0)
    assert guess.full(60.1)
    assert not guess.full(66.0)


def test_a_sliding_window_that_filled_slowly_is_no_bucket():
    lane = Paced(LIMIT_MODELS["sliding_window"](6_000, 1.0, 0.0))
    lane.run(20, unpaced=1.0)  # which a minute later is all that it admits for so long
    lane.run(70, unpaced=140.0)
    pace = lane.guess.pace(lane.at_s)
    assert pace is not None
    assert pace >= 0.95 * 6_000


@pytest.mark.parametrize("seconds", [20, 300])
def test_a_limit_that_falls_far_is_found_again(seconds):
    lane = bucket(3_000)
    lane.run(seconds)
    lane.limiter = LIMIT_MODELS["token_bucket"](600, 1.0, lane.at_s)
    lane.run(120)
    lane.run(120)
    assert lane.admitted >= 0.95 * 1_200
    assert lane.refused <= 0.02 * lane.admitted


def test_a_pause_that_is_longer_than_a_window_says_nothing():
    assert held(500, for_s=LOST_S + 1).pace(100.0) is None


def test_a_short_pause_does_not_end_a_measurement():
    guess = held(500, for_s=1.0)
    assert guess.pace(12.0) == pytest.approx(50 / SHORTEST_S * 60, rel=0.1)


def test_a_limit_that_is_known_is_kept_over_a_storm():
    lane = bucket(600)
    lane.run(300)
    before = lane.guess.pace(lane.at_s)
    assert before is not None
    refuse_all(lane.guess, 50, lane.at_s)

    lane.guess.reopened(lane.at_s + 40.0, held_s=40.0, provider_named=False)
    after = lane.guess.pace(lane.at_s + 40.0)
    assert after is not None
    assert after >= 0.95 * before


def test_it_does_not_grow_while_other_things_keep_calls_from_starting():
    lane = bucket(600)
    lane.run(300)
    before = lane.guess.pace(lane.at_s)
    lane.run(600, most=5.0)
    assert lane.guess.pace(lane.at_s) == pytest.approx(before, rel=0.1)


def test_it_grows_when_more_is_admitted_than_before():
    lane = bucket(300)
    lane.run(300)
    lane.limiter = LIMIT_MODELS["token_bucket"](1_200, 1.0, lane.at_s)
    lane.run(900)
    lane.run(120)
    assert lane.admitted >= 0.9 * 2_400


def test_refusals_at_any_pace_are_no_limit():
    guess, at_s, calls, paces = GuessedLimit(), 0.0, 0, []
    while at_s < 600:
        pace = guess.pace(at_s)
        paces.append(pace)
        at_s += 1 / 20 if pace is None else max(1 / 20, 60 / pace)
        calls += 1
        guess.sent(at_s)
        if calls % 12 == 0:
            guess.refused(at_s, at_s)
        if pace is not None:
            guess.waits(at_s, max(0.0, 60 / pace))
    assert calls >= 0.8 * 600 * 20
    assert any(pace is not None for pace in paces), "it was never taken for a limit"
