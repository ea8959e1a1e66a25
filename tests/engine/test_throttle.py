"""How much of its limits a lane uses, judged by what is refused; on a clock that is told."""

import random
from dataclasses import dataclass, field

import pytest

from asyncbench.engine.throttle import (
    CLOSES_AT,
    FIRST_PROBE_S,
    OF_IN_FLIGHT,
    RAREST_OF_LONG_S,
    RAREST_PROBE_S,
    SMALLEST_SHARE,
    Throttle,
)

PER_S = 100.0  # calls at the whole share


def refuse(
    throttle: Throttle, at_s: float, *, sent_s: float | None = None, wait_s: float | None = None
) -> bool:
    return throttle.refused(at_s if sent_s is None else sent_s, at_s, wait_s=wait_s, per_s=PER_S)


def closed(at_s: float = 0.0, *, wait_s: float | None = None) -> Throttle:
    """A throttle that was closed by refusals."""
    throttle = Throttle()
    assert [refuse(throttle, at_s, wait_s=wait_s) for _ in range(CLOSES_AT)] == [False] * (CLOSES_AT - 1) + [
        True
    ]
    return throttle


@dataclass(slots=True)
class Paced:
    """A lane that sends at its share of `PER_S` to a provider that admits fewer; latency is nothing."""

    admits_per_s: float
    throttle: Throttle = field(default_factory=Throttle)
    at_s: float = 0.0
    sent: int = 0
    refused: int = 0
    level: float = 1.0  # of the provider's bucket of a second

    def run(self, seconds: float) -> float:
        """Go on for so long; return the part of what is admitted that was used."""
        self.sent = self.refused = 0
        until_s = self.at_s + seconds
        while self.at_s < until_s:
            self._step()
        return (self.sent - self.refused) / (self.admits_per_s * seconds)

    def _step(self) -> None:
        wait_s = max(self.throttle.wait_s(self.at_s), 1 / (PER_S * self.throttle.share(self.at_s)))
        self.at_s += wait_s
        self.level = min(self.admits_per_s, self.level + wait_s * self.admits_per_s)
        is_probe = self.throttle.closed
        self.sent += 1
        admitted = self.level >= 1
        self.level -= admitted
        self.refused += not admitted
        if is_probe and admitted:
            self.throttle.probe_answered(self.at_s)
        elif is_probe:
            self.throttle.probe_failed(self.at_s, wait_s=None)
        elif admitted:
            self.throttle.answered(self.at_s, self.at_s)
        else:
            refuse(self.throttle, self.at_s)


# ── the share ────────────────────────────────────────────────────────────────────────────────


def test_all_of_the_limits_is_used_as_long_as_nothing_is_refused():
    throttle = Throttle()
    for n in range(1_000):
        throttle.answered(n / PER_S, n / PER_S)
    assert throttle.share(10.0) == 1.0


def test_one_refusal_among_few_answers_changes_nothing():
    throttle = Throttle()
    refuse(throttle, 0.0)
    assert throttle.share(0.0) == 1.0


def test_refusals_among_answers_make_the_share_smaller_and_the_more_the_smaller():
    shares = []
    for refused in (3, 10, 30):
        throttle, rng = Throttle(), random.Random(7)
        fates = [True] * refused + [False] * (100 - refused)
        rng.shuffle(fates)
        for n, bad in enumerate(fates):
            if bad:
                refuse(throttle, n / PER_S)
            else:
                throttle.answered(n / PER_S, n / PER_S)
        shares.append(throttle.share(1.0))
    assert 1.0 > shares[0] >= shares[1] >= shares[2] >= SMALLEST_SHARE


def test_calls_sent_before_a_cut_do_not_cut_again():
    throttle = Throttle()
    for n in range(30):
        throttle.answered(n / PER_S, n / PER_S)
    for _ in range(3):
        refuse(throttle, 1.0)
    once = throttle.share(1.0)
    assert once < 1.0
    throttle.probe_answered(1.0)  # so that none of what follows closes it
    for _ in range(3):
        refuse(throttle, 1.0, sent_s=0.9)
    assert throttle.share(1.0) == once


def test_a_share_grows_back_to_all_when_nothing_more_is_refused():
    throttle = Throttle()
    for n in range(90):
        throttle.answered(n / PER_S, n / PER_S)
    for _ in range(3):
        refuse(throttle, 1.0)
    shares = [throttle.share(1.0 + at_s) for at_s in range(0, 600, 10)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("admitted", [0.3, 0.6, 0.9])
def test_it_finds_what_is_admitted_and_uses_most_of_it_with_few_refusals(admitted):
    lane = Paced(admits_per_s=admitted * PER_S)
    lane.run(60)
    assert lane.run(600) >= 0.85
    assert lane.refused <= 0.02 * lane.sent


# ── the pause ────────────────────────────────────────────────────────────────────────────────


def test_calls_in_a_row_without_an_answer_close_it_and_only_the_last_of_them_says_so():
    assert closed().closed


@pytest.mark.parametrize("answers_after", [1, CLOSES_AT - 1])
def test_an_answer_in_between_keeps_it_open(answers_after):
    throttle = Throttle()
    for n in range(10 * CLOSES_AT):
        if n % CLOSES_AT == answers_after:
            throttle.answered(0.0, 0.0)
        else:
            throttle.broke(0.0, 0.0)
    assert not throttle.closed


def test_of_many_in_flight_the_first_to_fail_close_nothing():
    throttle, many = Throttle(), 60
    closes = [throttle.broke(0.0, 0.02, in_flight=many) for _ in range(many // OF_IN_FLIGHT)]
    assert closes == [False] * (many // OF_IN_FLIGHT - 1) + [True]


@pytest.mark.parametrize("broken", range(CLOSES_AT))
def test_it_knows_whether_it_is_closed_for_refusals_alone(broken):
    throttle = Throttle()
    for n in range(CLOSES_AT):
        throttle.broke(0.0, 0.0) if n < broken else refuse(throttle, 0.0)
    assert throttle.closed
    assert throttle.for_refusals == (broken == 0)


def test_nothing_is_admitted_until_the_probe_leaves_and_nothing_beside_it():
    throttle = closed(10.0)
    assert not throttle.admits(10.0)
    assert throttle.wait_s(10.0) == pytest.approx(FIRST_PROBE_S)
    leaves_s = 10.0 + FIRST_PROBE_S
    assert throttle.admits(leaves_s)
    throttle.probing = True
    assert not throttle.admits(leaves_s + 1e6)
    assert throttle.wait_s(leaves_s) == float("inf")


def test_a_probe_that_is_answered_opens_it():
    throttle = closed()
    throttle.probing = True
    throttle.probe_answered(5.0)
    assert throttle.admits(5.0)
    assert throttle.wait_s(5.0) == 0.0


def test_probes_leave_ever_later_and_at_least_once_a_minute():
    throttle, at_s, gaps_s = closed(), 0.0, []
    for _ in range(12):
        gaps_s.append(throttle.wait_s(at_s))
        at_s += gaps_s[-1] + 0.1
        throttle.probe_failed(at_s, wait_s=None)
    assert gaps_s == sorted(gaps_s)
    assert gaps_s[0] == pytest.approx(FIRST_PROBE_S)
    assert gaps_s[-1] == pytest.approx(RAREST_PROBE_S)


@pytest.mark.parametrize(
    ("told_s", "waited_s"),
    [
        pytest.param(0.1, 0.1, id="a moment"),
        pytest.param(30.0, 30.0, id="half a minute"),
        pytest.param(89.0, RAREST_PROBE_S, id="a minute and a half: it may mean another limit"),
        pytest.param(7_200.0, RAREST_OF_LONG_S, id="hours"),
    ],
)
def test_a_probe_leaves_when_the_provider_says_or_at_least_now_and_then(told_s, waited_s):
    assert closed(wait_s=told_s).wait_s(0.0) == pytest.approx(waited_s)


def test_calls_from_before_it_opened_do_not_close_it_again():
    throttle = closed()
    throttle.probe_answered(50.0)
    for _ in range(10 * CLOSES_AT):
        throttle.broke(10.0, 60.0)
    assert not throttle.closed


def test_an_answer_to_an_earlier_call_sends_the_probe_sooner():
    throttle = closed(wait_s=50.0)
    throttle.answered(-5.0, 20.0)
    assert throttle.wait_s(20.0) < 30.0


def test_a_pause_after_another_begins_with_a_short_wait_again():
    throttle = closed()
    for n in range(8):
        throttle.probe_failed(float(n), wait_s=None)
    throttle.probe_answered(100.0)
    for _ in range(CLOSES_AT):
        throttle.broke(101.0, 101.0)
    assert throttle.wait_s(101.0) == pytest.approx(FIRST_PROBE_S)


@pytest.mark.parametrize("uneven", [False, True])
def test_few_refusals_where_lengths_are_uneven_are_no_matter_of_the_share(uneven):
    throttle = Throttle()
    for at_s in range(20):
        throttle.answered(at_s, at_s)
    throttle.refused(20.0, 20.0, wait_s=None, per_s=10.0, uneven=uneven)
    assert (throttle.share(20.0) < 0.99) is not uneven
    assert throttle.rare(20.0) is uneven
    for sent_s in (20.4, 20.6, 20.8):
        throttle.refused(sent_s, sent_s, wait_s=None, per_s=10.0, uneven=uneven)
    assert throttle.share(20.8) < 0.99
    assert not throttle.rare(21.0)
