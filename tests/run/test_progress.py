"""What a person sees while a sweep runs."""

import asyncio
import io

import pytest
from rich.console import Console

from asyncbench.engine.budget import Cap
from asyncbench.engine.telemetry import Counters
from asyncbench.records import Attempt, Outcome
from asyncbench.run.progress import ClosingRate, Lines, Quiet, Terminal, cost_text, eta_text
from tests.engine.night import virtually


def counters(**given):
    done = given.pop("done", 0)
    made = Counters(**given)
    made.outcomes[Outcome.CORRECT] = done
    return made


async def shown(screen, lanes, *caps, for_s, then=lambda: None):
    task = asyncio.create_task(screen.show(lanes, caps))
    await asyncio.sleep(for_s)
    then()
    await asyncio.sleep(for_s)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_elsewhere_than_on_a_terminal_there_is_a_plain_line_every_ten_seconds():
    out = io.StringIO()
    lanes = {"a": counters(planned=100, in_flight=5), "b": counters(planned=7)}

    def some_are_done():
        lanes["a"].outcomes[Outcome.CORRECT] = 50

    virtually(shown(Lines(out), lanes, for_s=15, then=some_are_done))
    first, second = out.getvalue().splitlines()
    assert first.startswith("a 0/100, 5 in flight, 0/s, 0 429s, $0.0000, ETA -; b 0/7")
    assert second.startswith("a 50/100, 5 in flight, 5/s, 0 429s, $0.0000, ETA 0:00:10; b")


def test_a_terminal_shows_a_line_per_model():
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=100)
    lanes = {"simulated/oracle": counters(planned=1000, done=10, in_flight=7, rate_limited=3)}
    virtually(shown(Terminal(console), lanes, for_s=1))
    text = drawn.getvalue()
    for part in ("simulated/oracle", "10/1,000", "429s", "in flight", "ETA"):
        assert part in text


@pytest.mark.parametrize("terminal", [False, True], ids=["lines", "terminal"])
def test_what_is_spent_of_a_budget_is_shown(terminal):
    out = io.StringIO()
    screen = Terminal(Console(file=out, force_terminal=True, width=100)) if terminal else Lines(out)
    cap = Cap(kind="sweep", of="night", limit=50 * 10**12, spent=12_345_600_000_000, reserved=10**12)
    virtually(shown(screen, {"a": counters(planned=7)}, cap, for_s=15))
    assert "sweep night: $12.3456 (+ $1.0000 in flight) of $50.0000 spent" in out.getvalue()


def test_quiet_shows_nothing(capsys):
    virtually(Quiet().show({"a": counters()}))
    Quiet().say("hello")
    assert capsys.readouterr() == ("", "")


def test_a_rate_is_that_of_the_last_ten_seconds():
    lanes = {"a": counters(planned=1000)}

    async def night():
        rates = ClosingRate(lanes)
        for _ in range(20):
            await asyncio.sleep(1)
            lanes["a"].outcomes[Outcome.CORRECT] += 1
            rates.sample()
        for _ in range(20):
            await asyncio.sleep(1)
            lanes["a"].outcomes[Outcome.WRONG] += 7
            rates.sample()
        return rates.of("a")

    assert virtually(night()) == pytest.approx(7, rel=0.01)


def test_the_time_left_goes_by_the_rate():
    assert eta_text(counters(planned=7300, done=100), rate=1.0) == "2:00:00"
    assert eta_text(counters(planned=5, done=5), rate=1.0) == "done"
    assert eta_text(counters(planned=5), rate=0.0) == "-"
    assert eta_text(counters(planned=5, suspended="auth: no"), rate=1.0) == "suspended"


def test_unknown_cost_is_never_shown_as_nothing():
    assert cost_text(counters(attempts=3, unpriced=3)) == "unpriced"
    assert cost_text(counters(attempts=3, unpriced=3, lost=1)) == "unpriced"
    assert cost_text(counters(attempts=3, unpriced=1, cost_usd=0.5)) == "$0.5000+?"
    assert cost_text(counters(attempts=3, cost_usd=0.5)) == "$0.5000"


def test_a_cost_that_only_lost_calls_leave_unknown_is_not_called_a_missing_price():
    made = counters()
    for n, status in enumerate(("lost", "timeout")):
        made.count(
            Attempt(trial_id=f"t{n}", attempt=1, model="m", provider="p", started_at=1.0, status=status)
        )
    assert cost_text(made) == "cost unknown (2 lost)"
