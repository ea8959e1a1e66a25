"""The ledger holds every cap to the picodollar, whatever happens in a night; what is left is spent evenly."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from asyncbench.engine.budget import AHEAD_TRIALS, Account, Cap, Ledger, ModelProgress, ahead, level
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.limits import Gate
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.planning.budget_bounds import most_of
from asyncbench.pricing import picodollars
from asyncbench.records import Ended, History, LaneMinute, Limits, Price, Reply, Result, Sent, Usage, waits
from asyncbench.store.journal import lost
from tests.world import budget_nights
from tests.world.budget_nights import Played, Scenario, play
from tests.world.clock import virtually
from tests.world.night import MODEL, Desk, Night, night_of, requests, waiting
from tests.world.seeds import SEED, hold

NIGHTS = 40
DOLLAR = 10**12
CHEAP = replace(MODEL, max_tokens=10, limits=Limits(concurrency=5))
REQUEST = requests(1)[0]


def ledger(*limits: int) -> Ledger:
    return Ledger(Cap(kind="model", of=str(n), limit=limit) for n, limit in enumerate(limits))


def account(book: Ledger, most: int) -> Account:
    return book.open("m", book.caps, lambda _, __: most)


# ── the ledger ───────────────────────────────────────────────────────────────────────────────


def test_money_is_set_aside_under_every_cap_or_under_none():
    book = ledger(100, 50)
    one = account(book, 40)
    assert one.reserve(one.hold(REQUEST, 0.0))
    assert not one.reserve(one.hold(REQUEST, 0.0))
    assert [cap.reserved for cap in book.caps] == [40, 40]


def test_a_call_of_unknown_cost_counts_with_all_that_was_set_aside_and_a_refused_one_with_nothing():
    book = ledger(100)
    one = account(book, 40)
    for cost in (None, 0.0, 1e-12):
        hold = one.hold(REQUEST, 0.0)
        one.reserve(hold)
        one.settle(hold, cost)
    assert (book.caps[0].spent, book.caps[0].reserved, one.spent) == (41, 0, 41)


@given(st.lists(st.decimals(min_value=0, max_value=9, places=6), max_size=50))
def test_sums_are_exact_where_floats_are_not(costs):
    book = ledger(DOLLAR)
    one = account(book, 9 * DOLLAR)
    for cost in costs:
        one.settle(one.hold(REQUEST, 0.0), float(cost))
    assert book.caps[0].spent == sum(int(cost * DOLLAR) for cost in costs)


def test_a_dearer_call_than_could_be_is_charged_told_once_and_raises_what_is_set_aside():
    book = ledger(1_000)
    one = account(book, 100)
    hold = one.hold(REQUEST, 0.0)
    one.reserve(hold)
    one.settle(hold, 150e-12)
    assert book.caps[0].spent == 150
    assert one.hold(REQUEST, 0.0).amount == 150
    assert one.ratio == Fraction(3, 2)
    assert "1.50 times" in str(one.message())
    assert one.message() is None


def test_after_a_call_that_should_have_been_free_as_much_is_set_aside_as_the_dearest():
    book = ledger(DOLLAR)
    one = account(book, 0)
    for cost in (0.05, 0.3, 0.2):
        hold = one.hold(REQUEST, 0.0)
        assert one.reserve(hold)
        one.settle(hold, cost)
    assert one.hold(REQUEST, 0.0).amount == 3 * DOLLAR // 10
    made = 0
    while one.reserve(hold := one.hold(REQUEST, 0.0)):
        made += 1
        one.settle(hold, 0.3)
    assert (made, book.caps[0].spent <= DOLLAR) == (1, True)
    assert "its price says that it is free" in str(one.message())


def test_what_costs_nothing_may_go_on_where_a_cap_was_passed():
    book = ledger(10)
    book.caps[0].spent = 11
    free = account(book, 0)
    assert free.fits(free.hold(REQUEST, 0.0))
    assert free.ever_fits(free.hold(REQUEST, 0.0))


def test_who_waits_is_woken_once_by_a_settlement():
    book, woken = ledger(100), []
    one = account(book, 40)
    book.wake_on_change(lambda: woken.append(1))
    for _ in range(2):
        one.settle(one.hold(REQUEST, 0.0), 0.0)
    assert woken == [1]


# ── in a lane ────────────────────────────────────────────────────────────────────────────────


def asked(night: Night, ask, book: Ledger, *, trials=20, model=CHEAP, histories=()):
    """Add a model with an account to a night."""
    known = dict(histories)
    client = night.client(
        ask, [(one, known.get(one.trial.trial_id, History())) for one in requests(trials, model)], model
    )
    client.account = book.open(model.alias, book.caps, most_of(model))
    night.group([client])
    return client


def played(book: Ledger, *models, **options):
    """Play a night of models under the caps of a ledger, each with how it is answered."""

    async def run():
        night = Night()
        clients = [asked(night, ask, book, model=model, **options) for model, ask in models]
        return await night.go(), clients

    return virtually(run())


def done(clients) -> list[int]:
    return [client.counters.outcomes.total() for client in clients]


def most(model=CHEAP) -> int:
    """What one call may cost."""
    return most_of(model)(requests(1, model)[0], 0.0)


async def dear(_):
    """Cost all that was set aside."""
    await asyncio.sleep(1.0)
    raise ProviderError(ErrorKind.TIMEOUT, "gone")


FREE = replace(CHEAP, price=Price(input=0, output=0), limits=Limits(concurrency=1))


@pytest.mark.parametrize(("model", "cost"), [(FREE, 0.3), (CHEAP, 0.3)], ids=["free by its price", "priced"])
def test_what_a_dearer_bill_teaches_reaches_calls_that_were_priced_before(model, cost):
    async def run():
        night, book = Night(), ledger(DOLLAR)
        client = asked(night, dear, book, model=model)
        money = LaneModel(client).money
        first, second = map(waiting, requests(2, model))
        assert money.affords(first)
        assert money.affords(second)
        assert money.reserve(first)
        client.account.settle(first.hold, cost)
        assert money.reserve(second)
        return second.hold.amount

    assert virtually(run()) == picodollars(cost)


def test_calls_in_flight_are_as_few_as_the_rest_allows():
    book = ledger(3 * most() + 1)
    night, [client] = played(book, (CHEAP, dear))
    assert max(minute.most_in_flight for minute in night.of(LaneMinute)) == 3
    assert len(night.sent) == 3
    assert client.counters.budget_stopped
    assert book.caps[0].spent == 3 * most()
    assert night.results == {}, "what was not answered stays open"


def test_a_lane_waits_for_what_calls_in_flight_give_back():
    night, _ = played(ledger(2 * most()), (CHEAP, Desk().ask), trials=6)
    assert len(night.results) == 6
    waited = sum(minute.waited_s.get(waits.BUDGET, 0.0) for minute in night.of(LaneMinute))
    assert waited == pytest.approx(4.0, abs=0.1)  # two at once, then one by one


def test_a_lane_is_woken_by_what_another_gives_back():
    book = ledger(3 * most() // 2)  # one call at a time, whoever makes it
    night, _ = played(book, *((replace(CHEAP, alias=one), _one_token(1.0)) for one in "ab"), trials=3)
    assert len(night.sent) == 6
    assert night.seconds == pytest.approx(6.0, abs=0.1)


def test_a_call_and_its_row_tell_what_was_set_aside():
    night, _ = played(ledger(DOLLAR), (CHEAP, Desk().ask), trials=1)
    reserved = {event.reserved_usd for event in night.of(Sent)}
    assert reserved == {event.attempt.reserved_usd for event in night.of(Ended)} == {most() / DOLLAR}


def test_a_call_without_an_end_tells_how_long_its_reply_could_be():
    (sent,) = night_of(_one_token(1.0), 1, CHEAP).of(Sent)
    assert lost(sent).max_tokens == CHEAP.max_tokens


def test_a_call_for_which_no_money_is_left_takes_nothing_of_the_limits_a_minute(monkeypatch):
    taken, take = [], Gate.take

    def counted(gate: Gate, *what: Any) -> None:
        taken.append(what)
        take(gate, *what)

    monkeypatch.setattr(Gate, "take", counted)

    models = [replace(CHEAP, alias=f"m{n}", limits=Limits(rpm=60)) for n in range(4)]
    night, _ = played(ledger(5 * most() // 2), *((one, _one_token(20.0)) for one in models), trials=5)
    assert len(taken) == len(night.sent) == 20


def test_an_answer_that_was_paid_for_is_graded_though_no_money_is_left():
    (ended,) = night_of(Desk().ask, 1).of(Ended)
    paid = {"t3": History(attempts=1, ended=ended)}
    night, [client] = played(ledger(1), (CHEAP, Desk().ask), trials=5, histories=paid.items())
    assert list(night.results) == ["t3"]
    assert night.sent == []
    assert client.counters.budget_stopped


def test_a_model_without_money_does_not_hold_up_its_group_nor_other_lanes():
    async def run():
        night = Night()
        group = Limits(concurrency=4, group="g")
        poor, rich = (replace(CHEAP, alias=alias, limits=group) for alias in ("poor", "rich"))
        book = Ledger([Cap(kind="model", of="poor", limit=1), Cap(kind="model", of="rich", limit=DOLLAR)])
        clients = []
        for model, cap in zip((poor, rich), book.caps, strict=True):
            trials = [
                replace(one, trial=replace(one.trial, trial_id=model.alias + one.trial.trial_id))
                for one in requests(9, model)
            ]
            client = night.client(Desk(0.1).ask, [(one, History()) for one in trials], model)
            client.account = book.open(model.alias, [cap], most_of(model))
            clients.append(client)
        night.group(clients)
        await night.go()
        return [client.counters.outcomes.total() for client in clients]

    assert virtually(run()) == [0, 9]


# ── even ─────────────────────────────────────────────────────────────────────────────────────

HALF = ModelProgress(begun=100, planned=200, cost=1.0, room=math.inf)


def fair_part(one: ModelProgress, at: float) -> float:
    """Return the picodollars with which a model gets up to a level, or as far as it has room."""
    trials = min((at - one.share) * one.planned, one.room, one.planned - one.begun)
    return max(0.0, trials) * one.cost if trials > 0 else 0.0


@pytest.mark.parametrize(
    ("others", "money", "waits"),
    [
        pytest.param([HALF._replace(begun=50)], 50, True, id="all of it is another's"),
        pytest.param([HALF._replace(begun=50)], 100, False, id="both get to five eighths"),
        pytest.param([HALF._replace(begun=50)], 250, False, id="there is enough for all"),
        pytest.param([HALF._replace(begun=97)], 0, False, id="hardly behind"),
        pytest.param([HALF._replace(begun=120)], 0, False, id="ahead"),
        pytest.param([HALF._replace(begun=50, room=0.0)], 1, False, id="it could not use the money"),
        pytest.param(
            [HALF._replace(begun=50, room=10.0)], 11, False, id="it will not use all before the end"
        ),
        pytest.param([HALF._replace(begun=50), HALF._replace(begun=180)], 50, True, id="one of two"),
        pytest.param([HALF._replace(begun=50, cost=math.inf)], DOLLAR, True, id="nobody knows the rest"),
        pytest.param([HALF._replace(begun=50, cost=0.0)], 1, False, id="it needs no money"),
        pytest.param([], 0, False, id="alone"),
    ],
)
def test_a_model_waits_only_with_what_is_beyond_its_fair_part(others, money, waits):
    assert ahead(HALF, others, level([HALF, *others], money)) is waits


standings = st.integers(1, 300).flatmap(
    lambda planned: st.builds(
        ModelProgress,
        begun=st.integers(0, planned),
        planned=st.just(planned),
        cost=st.sampled_from([0.0, 1.0, 2.5, 1e9]),
        room=st.sampled_from([0.0, 1.0, 40.0, math.inf]),
    )
)


@pytest.mark.long
@given(st.lists(standings, min_size=1, max_size=6), st.floats(0, 1.5))
@example([ModelProgress(begun=14, planned=28, cost=1e9, room=1.0)], 1e-10)  # a tenth of a picodollar
def test_fair_parts_add_up_to_what_is_left_or_to_all_that_anybody_needs(some, share):
    need = sum(fair_part(one, 1.0) for one in some)
    last_bits = 1e-15 * sum(one.planned * one.cost for one in some)  # of a level near 1, in picodollars
    at = level(some, share * need)
    parts = [fair_part(one, at) for one in some]
    if at == math.inf:
        assert share * need >= need * (1 - 1e-9)
        assert sum(parts) == pytest.approx(need)
    else:
        assert sum(parts) == pytest.approx(share * need, rel=1e-6, abs=1e-6 + last_bits)


@pytest.mark.long
@given(st.lists(standings, min_size=1, max_size=6), st.floats(0, 1e12))
def test_somebody_may_always_go_on(some, money):
    able = [one for one in some if one.room and one.cost]
    at = level(some, money)
    waits = [ahead(one, [*able[:i], *able[i + 1 :]], at) for i, one in enumerate(able)]
    assert not able or not all(waits)
    assert at < math.inf or not any(waits), "somebody waits though there is money for all"


QUICK = replace(CHEAP, alias="quick", limits=Limits(concurrency=50))
SLOW = replace(CHEAP, alias="slow", limits=Limits(concurrency=1))


def test_a_slow_model_holds_up_nobody_who_stays_within_a_fair_part():
    models = (QUICK, _takes(0.1)), (SLOW, _takes(60.0))
    night, clients = played(ledger(180 * most()), *models, trials=200)
    quick, slow = done(clients)
    started = sorted(one.attempt.started_at for one in night.of(Ended) if one.attempt.model == "quick")
    assert abs(quick - slow) <= 2 * AHEAD_TRIALS
    assert quick + slow >= 180
    assert started[50] - started[0] < 120.0  # at the pace of the slow one: 50 minutes


def test_money_that_a_slow_model_cannot_use_before_the_deadline_is_for_others():
    async def run(ends_s):
        night, book = Night(), Ledger([Cap(kind="sweep", of="s", limit=180 * most())])
        book.ends_s = asyncio.get_running_loop().time() + ends_s
        client = asked(night, _takes(0.1), book, trials=200, model=QUICK)
        asked(night, _takes(60.0), book, trials=200, model=SLOW)
        loop = asyncio.get_running_loop()
        loop.call_later(ends_s, lambda: night.scheduler.pass_deadline(drain_s=0.0))
        await night.go()
        return client.counters.outcomes.total()

    assert virtually(run(600.0)) > 140  # the slow one makes ten calls
    assert virtually(run(100_000.0)) <= 100


@pytest.mark.parametrize("away", [False, True], ids=["there", "away for hours"])
def test_the_slow_and_dear_get_as_far_as_the_quick_and_cheap(away):
    dearer = replace(SLOW, price=Price(input=2.0, output=4.0), limits=Limits(concurrency=2))
    models = (
        (replace(QUICK, limits=Limits(concurrency=20)), _takes(0.1)),
        (dearer, _never if away else _takes(5.0)),
    )
    _, clients = played(ledger(200 * most()), *models, trials=300)
    quick, slow = done(clients)
    if away:
        assert quick > 10 * AHEAD_TRIALS
    else:
        assert 0 < abs(quick - slow) + 1 <= 3 * AHEAD_TRIALS
        assert 60 <= quick < 100


def of_speeds(*latencies_s: float):
    """Models, each with how it is answered."""
    for n, latency_s in enumerate(latencies_s):
        yield replace(CHEAP, alias=f"m{n}", limits=Limits(concurrency=8)), _takes(latency_s)


def test_many_models_of_all_speeds_get_equally_far():
    models = of_speeds(0.05, 0.2, 1.0, 4.0, 30.0)
    trials = done(played(ledger(400 * most()), *models, trials=400)[1])
    assert min(trials) > 60
    assert max(trials) - min(trials) <= 0.02 * 400 + 8  # the slowest is as far as its calls in flight, too


def test_where_money_suffices_for_all_nobody_waits_for_another():
    night, _ = played(ledger(2_000 * most()), *of_speeds(0.05, 5.0), trials=100)
    first = [ended.attempt.started_at for ended in night.of(Ended) if ended.attempt.model == "m0"]
    assert (
        max(first) - min(first) < 6.0
    )  # until the slow one tells what it costs; evenly it would be a minute


def test_a_person_hears_once_of_calls_that_cost_more_than_they_could():
    async def hidden(_):
        await asyncio.sleep(0.1)
        return Reply(text="4", usage=Usage(input_tokens=10, output_tokens=5_000))

    one_by_one = replace(CHEAP, limits=Limits(concurrency=1))
    night, [client] = played(ledger(DOLLAR), (one_by_one, hidden), trials=30)
    assert [line for line in night.said if "times the most that its max_tokens" in line] == night.said[:1]
    assert client.account.overruns == 1
    reserved = [event.reserved_usd for event in night.of(Sent)]
    assert reserved[1] == night.of(Ended)[0].attempt.cost_usd > reserved[0]


def _takes(seconds: float):
    async def answer(request):
        await asyncio.sleep(seconds)
        full = request.trial.model.max_tokens
        return Reply(text="4", usage=Usage(input_tokens=520, output_tokens=full))

    return answer


def _one_token(seconds: float):
    async def answer(_):
        await asyncio.sleep(seconds)
        return Reply(text="4", usage=Usage(input_tokens=1, output_tokens=1))

    return answer


async def _never(_):
    await asyncio.sleep(0.02)
    raise ProviderError(ErrorKind.RATE_LIMITED, "later", http_status=429, retry_after_s=7_200.0)


# ── nights ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, NIGHTS, 20))
def test_whatever_happens_in_a_night_no_cap_is_passed(first):
    hold(budget_nights.broken, range(first, first + 20))


def test_the_night_of_a_seed():
    hold(budget_nights.broken, [SEED])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(NIGHTS, NIGHTS + 4))
def test_the_next_start_reads_from_the_folder_what_was_spent(seed, tmp_path):
    assert budget_nights.broken(seed, tmp_path / "out") == []


@pytest.mark.long
@pytest.mark.parametrize(("seed", "share"), [(1, 0.1), (1, 0.3), (3, 0.2)])
def test_beside_a_slow_model_of_unsteady_costs_a_quick_one_gets_no_farther(seed, share):
    alike = replace(CHEAP, limits=Limits(concurrency=20))
    models = (replace(alike, alias="quick"), replace(alike, alias="slow"))
    played = play(
        Scenario(seed=seed, models=models, budgets={("sweep", "s"): share}, slow="slow", trials=200)
    )
    budget_nights.models_under_the_same_caps_get_equally_far(played)


def test_the_nights_differ_in_all_that_may_happen():
    drawn = [budget_nights.scenario(seed) for seed in range(NIGHTS)]
    for happens in (
        lambda one: one.crash_s,
        lambda one: one.full == 1.0,
        lambda one: one.cut and one.faulty,
        lambda one: len(one.models) > 1 and one.models[0].limits.group,
        lambda one: len(one.models) > 1 and one.slow,
        lambda one: {kind for kind, _ in one.budgets} == {"sweep", "provider", "model"},
    ):
        assert sum(bool(happens(one)) for one in drawn) >= 5


def a_cent_more(one: Played) -> None:
    one.billed[0]["m"] += one.limits["sweep", "s"]


def a_forgotten_call(one: Played) -> None:
    one.kept.remove(next(event for event in one.kept if isinstance(event, Ended)))


def a_favourite(one: Played) -> None:
    kept = one.starts[0].night.kept
    kept += [event for event in kept if isinstance(event, Result) and event.trial.model.alias == "m"] * 5


def a_trial_left_open(one: Played) -> None:
    client = one.starts[0].night.lanes[0].clients[0]
    client.counters.budget_stopped = False


def an_answer_paid_twice(one: Played) -> None:
    one.starts[1].calls.append(next(iter(one.starts[1].answered_before)))


def a_result_less(one: Played) -> None:
    one.kept[:] = [event for event in one.kept if not hasattr(event, "trial")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("tamper", "rule"),
    [
        (a_cent_more, budget_nights.no_cap_is_passed),
        (a_forgotten_call, budget_nights.the_ledger_tells_what_the_folder_holds),
        (a_favourite, budget_nights.models_under_the_same_caps_get_equally_far),
        (a_trial_left_open, budget_nights.money_is_left_only_where_no_call_fits),
        (an_answer_paid_twice, budget_nights.nothing_is_asked_twice),
        (a_result_less, budget_nights.with_enough_all_is_done),
    ],
)
def test_a_rule_that_is_broken_is_found(tamper: Callable[[Played], None], rule: Callable[[Played], None]):
    models = (CHEAP, replace(CHEAP, alias="other"))
    played = play(Scenario(models=models, budgets={("sweep", "s"): 0.3}, slow="other"))
    for check in budget_nights.RULES:
        check(played)
    tamper(played)
    with pytest.raises(AssertionError):
        rule(played)
