"""Models that share a limit get turns in proportion to what they have left; a slow one holds up nobody."""

from dataclasses import replace

from asyncbench.records import Allowance, Limits
from tests.world.night import MODEL, Desk, side_by_side


def last_calls(counts, limits, **latencies_s):
    """Play models in one lane; return when each made its last call, and how long it all took."""
    desks = {alias: Desk(latency_s) for alias, latency_s in latencies_s.items()}
    asks = {alias: desk.ask for alias, desk in desks.items()}
    night = side_by_side(asks, counts, replace(MODEL, limits=limits), one_lane=True)
    assert len(night.results) == sum(counts.values())
    return {alias: desk.calls[-1][0] - desk.calls[0][0] for alias, desk in desks.items()}, night.seconds


def test_models_under_one_limit_end_together_however_much_each_has_left():
    last_s, seconds = last_calls({"a": 900, "b": 300, "c": 100}, Limits(rpm=600), a=0.5, b=0.5, c=0.5)
    assert seconds < 1.05 * 130  # the limit is used: 1,300 calls at ten a second
    assert min(last_s.values()) > 0.95 * max(last_s.values())


def test_a_slow_model_holds_up_nobody_where_calls_in_flight_are_few():
    last_s, seconds = last_calls({"fast": 400, "slow": 40}, Limits(concurrency=10), fast=0.5, slow=60.0)
    assert last_s["fast"] < 400 * 0.5 / 4  # of ten calls in flight, four or five are its own
    assert seconds < 51 + 40 * 60 / 10  # and all ten the other's, once it is done


def test_nobody_waits_for_the_turn_of_a_model_that_has_nothing_to_ask():
    _, seconds = last_calls({"many": 599, "one": 1}, Limits(rpm=600), many=0.5, one=30.0)
    assert seconds < 65


class Telling(Desk):
    """A provider whose every answer tells a limit of requests a minute."""

    rpm: float = 600

    async def ask(self, request):
        allowance = Allowance(what="requests", period_s=60.0, limit=self.rpm, remaining=None, reset_s=None)
        return replace(await super().ask(request), allowances=(allowance,))


def told_apart(first_rpm, second_rpm):
    """Play two models under one limit that only headers tell, of each its own; return how long it took."""
    desks = {"a": Telling(0.5), "b": Telling(0.5)}
    desks["a"].rpm, desks["b"].rpm = first_rpm, second_rpm
    asks = {alias: desk.ask for alias, desk in desks.items()}
    return side_by_side(asks, 300, replace(MODEL, limits=Limits()), one_lane=True).seconds


def test_a_shared_limit_without_a_number_is_the_one_of_the_headers():
    assert 55 < told_apart(600, 600) < 65  # 600 calls of both at ten a second


def test_where_headers_tell_of_each_model_another_limit_the_lowest_holds_for_all():
    assert 110 < told_apart(600, 300) < 125
