"""How much time a lane loses before the first answer of a model that thinks for long."""

import pytest

from asyncbench.errors import ErrorKind
from asyncbench.records import Limits
from tests.world.slow import Case, played

TOLD = [
    pytest.param(Limits(rpm=6_000), id="told a rate"),
    pytest.param(Limits(concurrency=200), id="told a number"),
    pytest.param(Limits(), id="told nothing"),
]


@pytest.mark.long
@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("calls", [200, pytest.param(5_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("latency_s", [20.0, 60.0, 120.0])
def test_95_percent_of_the_ideal_is_reached_where_the_server_takes_all(latency_s, calls, told):
    assert played(Case(latency_s=latency_s, calls=calls, told=told)).of_ideal >= 0.95


def test_a_quick_model_is_asked_few_at_a_time_until_it_has_answered():
    outcome = played(Case(latency_s=0.1, calls=200))
    assert outcome.most < 200


REFUSED = {  # before a number was tried for want of a word; so much is allowed now
    (ErrorKind.RATE_LIMITED, 5.0): 81,
    (ErrorKind.RATE_LIMITED, 20.0): 83,
    (ErrorKind.RATE_LIMITED, 120.0): 110,
    (ErrorKind.UNREACHABLE, 20.0): 78,
}


@pytest.mark.parametrize(("kind", "latency_s"), REFUSED)
def test_a_server_that_takes_fifty_at_once_refuses_no_more_than_where_four_were_tried(kind, latency_s):
    outcome = played(Case(latency_s=latency_s, calls=200, at_once=50, refusal=kind))
    assert outcome.refused <= REFUSED[kind, latency_s]


def test_so_many_at_once_are_not_taken_for_so_many_a_minute():
    assert played(Case(latency_s=5.0, calls=200, at_once=50)).of_ideal > 0.85


@pytest.mark.long
def test_more_that_were_refused_before_are_given_up_with_the_first_answer():
    outcome = played(Case(latency_s=120.0, calls=5_000, at_once=50))
    assert outcome.refused <= 350  # 444, where as many answers were waited for as there are slots
    assert outcome.of_ideal > 0.99


@pytest.mark.parametrize(("latency_s", "most"), [(1.0, 50), (5.0, 61), (20.0, 43), (120.0, 56)])
def test_a_rate_that_nobody_tells_refuses_no_more_than_where_four_were_tried(latency_s, most):
    assert played(Case(latency_s=latency_s, calls=200, rpm=600.0)).refused <= most


def test_all_that_is_asked_before_a_late_refusal_is_refused_once():
    case = Case(latency_s=20.0, calls=200, at_once=8, refused_after_s=20.0)
    assert 0 < played(case).refused < 2 * case.calls


@pytest.mark.long
def test_where_most_calls_wait_inside_the_server_fewer_are_sent():
    late = played(Case(latency_s=5.0, calls=5_000, at_once=50, queues=True))
    assert late.of_ideal >= 0.95
    assert late.refused == 0


def test_a_number_of_the_sweep_is_never_exceeded():
    assert played(Case(latency_s=20.0, calls=30, told=Limits(concurrency=7))).most == 7
