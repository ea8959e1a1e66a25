"""Which fault a request meets: by rate, by model, by seed and by its place, never by chance."""

import pytest
from hypothesis import given, strategies as st

from asyncbench.errors import ConfigError
from asyncbench.simulator.settings import Fault, FaultKind, FaultStream, check_rates, parse_fault

FAULTS = (parse_fault("429=0.2"), parse_fault("cut=0.1@noisy"))


def draws(*faults, seed=1, model="noisy", count=5000):
    stream = FaultStream(faults, seed=seed, model=model)
    return [stream.draw() for _ in range(count)]


@pytest.mark.parametrize("kind", list(FaultKind))
def test_each_kind_is_written_as_kind_and_rate(kind):
    assert parse_fault(f"{kind}=0.25") == Fault(kind=kind, rate=0.25)


def test_a_fault_may_be_bound_to_a_model():
    assert parse_fault("500=0.5@noisy-2") == Fault(kind=FaultKind.SERVER_ERROR, rate=0.5, model="noisy-2")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("404=0.1", "no kind '404'; kinds: 429, 500"),
        ("429", "'' is not a share"),
        ("429=often", "'often' is not a share"),
    ],
)
def test_a_slip_is_refused_with_the_rule(text, complaint):
    with pytest.raises(ConfigError, match=complaint):
        parse_fault(text)


@pytest.mark.parametrize(
    "faults",
    [("429=-0.1",), ("429=1.5",), ("429=nan",), ("429=0.6", "500=0.6"), ("429=0.6", "500=0.6@noisy")],
    ids=["negative", "above 1", "not a number", "above 1 together", "above 1 for one model"],
)
def test_shares_that_cannot_be_dealt_out_are_refused(faults):
    with pytest.raises(ConfigError):
        check_rates([parse_fault(text) for text in faults])


def test_shares_of_different_models_do_not_add_up():
    check_rates([parse_fault("429=0.6@oracle"), parse_fault("500=0.6@noisy")])


def test_faults_come_at_their_rates():
    met = draws(*FAULTS)

    assert met.count(FaultKind.RATE_LIMITED) == pytest.approx(1000, rel=0.15)
    assert met.count(FaultKind.CUT) == pytest.approx(500, rel=0.15)


def test_a_fault_of_one_model_spares_the_others():
    assert FaultKind.CUT not in draws(*FAULTS, model="oracle")


@given(st.integers())
def test_a_seed_gives_the_same_faults_in_every_run(seed):
    assert draws(*FAULTS, seed=seed, count=50) == draws(*FAULTS, seed=seed, count=50)


def test_another_seed_and_another_model_meet_other_faults():
    every = parse_fault("429=0.5")

    assert draws(every) != draws(every, seed=2)
    assert draws(every) != draws(every, model="noisy-2")


@pytest.mark.parametrize(("rate", "met"), [(0, {None}), (1, {FaultKind.STALL})])
def test_rate_0_never_and_rate_1_always_happens(rate, met):
    assert set(draws(Fault(kind=FaultKind.STALL, rate=rate))) == met


def test_streaming_some_calls_changes_no_fault_of_the_others():
    faults = [parse_fault("500=0.3"), parse_fault("cut_stream=0.3")]
    some = FaultStream(faults, seed=1, model="noisy")
    met = [some.draw(streamed=bool(call % 2)) for call in range(5000)]

    assert met[::2] == draws(*faults)[::2]
    assert met[1::2].count(FaultKind.CUT_STREAM) == pytest.approx(750, rel=0.15)
