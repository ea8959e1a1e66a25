"""What a person sees while a sweep runs."""

import asyncio
import io
import sys
import time
from types import ModuleType

import pytest
from rich.cells import cell_len
from rich.console import Console

from asyncbench.engine.budget import Cap
from asyncbench.engine.telemetry import BatchCounts, Counters, StepCounts
from asyncbench.providers.workers.process import WorkerCounts
from asyncbench.records import Attempt, Outcome, waits
from asyncbench.run.costs import cost_text, costs_text
from asyncbench.run.picture import Pace, picture, worker_lines
from asyncbench.run.progress import Lines, Messages, Notebook, Quiet, Terminal, default_screen, screen_for
from tests.world.clock import virtually

CAP = Cap(kind="sweep", of="night", limit=50 * 10**12, spent=12_345_600_000_000, reserved=10**12)


def counters(**given):
    done, wrong = given.pop("done", 0), given.pop("wrong", 0)
    made = Counters(**given)
    made.outcomes.update({Outcome.CORRECT: done, Outcome.WRONG: wrong})
    return made


def worker(name, **given):
    told = {"pid": 7, "in_flight": 3, "calls": 90, "calls_per_s": 612.4, "lag_s": 0.0016, "deaths": 0}
    return WorkerCounts(name=name, **(told | given))


async def shown(screen, lanes, *caps, for_s, then=lambda: None):
    task = asyncio.create_task(screen.show(lanes, caps))
    await asyncio.sleep(for_s)
    then()
    await asyncio.sleep(for_s)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def drawn(lanes, *caps, width=100, height=30, then=lambda: None):
    """The lines of a picture, ten seconds after its first look."""

    async def night():
        pace = Pace(lanes)
        await asyncio.sleep(10)
        then()
        pace.sample()
        return picture(lanes, pace, caps, width=width, height=height)

    out = io.StringIO()
    Console(file=out, width=width, height=height).print(virtually(night()))
    return out.getvalue().splitlines()


def figures(line):
    return " ".join(line.translate(dict.fromkeys(map(ord, "━╸─"))).split())


# ── in a pipe ────────────────────────────────────────────────────────────────────────────────


def test_in_a_pipe_there_is_a_plain_line_every_ten_seconds():
    out = io.StringIO()
    lanes = {"a": counters(planned=100, in_flight=5), "b": counters(planned=7, suspended="auth: no")}

    def some_are_done():
        lanes["a"].outcomes.update({Outcome.CORRECT: 40, Outcome.WRONG: 10})
        lanes["a"].attempts, lanes["a"].rate_limited, lanes["a"].cost_usd = 53, 3, 0.5
        lanes["a"].waits_for = waits.CONCURRENCY

    virtually(shown(Lines(out), lanes, CAP, for_s=15, then=some_are_done))
    first, second = out.getvalue().splitlines()
    assert first.startswith("0/107 done, 0 calls/s; a 0/100; b 0/7 (stopped); budget_usd: $12.3456 of")
    assert second.startswith(
        "50/107 done, accuracy 80 %, 5.3 calls/s, 3 rate-limited (429), $0.5000, about 0:00:10 left; "
        "a 50/100 (limited by concurrency); b 0/7 (stopped); budget_usd: $12.3456 of"
    )


def test_a_line_names_a_few_of_many_models():
    out = io.StringIO()
    virtually(shown(Lines(out), {f"m{n}": counters(planned=1) for n in range(30)}, for_s=6))
    (line,) = out.getvalue().splitlines()
    assert line.endswith("; m5 0/1; 24 more models")


def in_batches(*states, answered=0, **given):
    """The counters of a model whose trials are in batches, created when the night begins."""
    told = BatchCounts(states=dict(states), trials=80, answered=answered, oldest_s=0.0, next_look_s=300.0)
    return counters(planned=100, in_batches=80, batches=told, **given)


def test_while_batches_run_a_line_comes_seldom_but_whenever_something_changes():
    out = io.StringIO()
    lanes = {"a": in_batches(("running", 2), done=20)}

    def one_ended():
        lanes["a"].batches = in_batches(("running", 1), ("ended", 1), answered=50).batches

    virtually(shown(Lines(out), lanes, for_s=1000, then=one_ended))
    first, same, changed, *_ = out.getvalue().splitlines()
    assert len(out.getvalue().splitlines()) == 4  # of 200 every ten seconds
    assert first == (
        "20/100 done, accuracy 100 %, 0 calls/s; a 20/100 (limited by batches); "
        "a batches: 2 running; 80 trials, oldest 10 s, next look in 5 min"
    )
    assert "oldest 10 min, next look in 0 s" in same
    assert "a batches: 1 running, 1 ended; 80 trials, 50 done there, oldest 17 min" in changed


# ── on a terminal ────────────────────────────────────────────────────────────────────────────


def test_a_terminal_shows_a_row_for_each_model_and_a_total_with_the_time_left():
    lanes = {"small": counters(planned=200), "large": counters(planned=1_000)}

    def half_is_done():
        lanes["small"].outcomes.update({Outcome.CORRECT: 90, Outcome.WRONG: 10})
        lanes["large"].outcomes.update({Outcome.CORRECT: 300, Outcome.WRONG: 200})
        lanes["small"].attempts, lanes["large"].attempts = 100, 507
        lanes["small"].waits_for, lanes["large"].waits_for = "requests", "output_tokens"
        lanes["large"].rate_limited, lanes["large"].cost_usd, lanes["large"].in_flight = 7, 1.25, 40

    head, small, large, total, footer = drawn(lanes, width=140, then=half_is_done)
    assert figures(head) == "model done accuracy calls/s limited by 429s cost time left in flight"
    assert figures(small) == "small 100/200 90 % 10 RPM - $0.0000 0:00:10 0"
    assert figures(large) == "large 500/1,000 60 % 51 output TPM 7 $1.2500 0:00:10 40"
    assert figures(total) == "total 600/1,200 65 % 61 7 $1.2500 0:00:10 40"
    assert footer == "0:00:10 so far"
    bars = [line[line.index("━") : line.rindex("─") + 1] for line in (small, large, total)]
    assert {len(bar) for bar in bars} == {30}
    assert [bar.count("━") for bar in bars] == [15, 15, 15]


@pytest.mark.parametrize("width", [50, 80, 100, 140])
@pytest.mark.parametrize("models", [1, 2, 30])
def test_it_fits_its_screen_and_folds_models_that_have_no_room(models, width):
    lanes = {f"claude-sonnet-4-6-think-{n}": counters(planned=12_345, done=2_000) for n in range(models)}
    for n, one in enumerate(lanes.values()):
        one.waits_for, one.cost_usd = "client", 123.4
        if n % 3 == 0:
            one.planned = 2_000
    failure = Attempt(
        trial_id="t", attempt=1, model="x", provider="p", started_at=1.0, status="timeout", error="no " * 90
    )
    next(iter(lanes.values())).latest_failure = failure
    lines = drawn(lanes, CAP, width=width, height=24)
    assert len(lines) < 24
    assert all(cell_len(line) <= width for line in lines)
    assert lines[-1].startswith("last error, ")
    told = "\n".join(lines)
    if models == 1:
        assert "total" not in told
        return
    assert "total" in told
    folded = [line for line in lines if line.startswith("+")]
    assert len(folded) == (models == 30)
    if folded:  # those that are done, before any that still runs
        rest = int(folded[0].split()[0])
        assert folded[0].startswith(f"+{rest} models")
        assert width < 80 or f" {min(rest, 10)} done " in folded[0]
        assert width < 80 or rest + told.count("this computer") == 30


def test_a_short_name_leaves_the_head_of_its_column_whole():
    assert drawn({"m": counters(planned=10)})[0].startswith("model ")


def test_whatever_a_lane_waits_for_has_a_word():
    causes = {value for name, value in vars(waits).items() if name.isupper() and isinstance(value, str)}
    assert len(causes) == 13
    assert all(waits.WORDS[cause] for cause in causes)


def test_every_limit_has_a_word():
    from asyncbench.engine.limits import BURST_S, DAY

    assert {*BURST_S, DAY} <= set(waits.WORDS)


def test_what_limits_a_model_is_what_it_mostly_waited_for():
    lanes = {"a": counters(planned=10, waits_for="tokens")}

    async def night():
        pace = Pace(lanes)
        for waits_for in ("tokens", None, "requests", "tokens", "concurrency"):
            lanes["a"].waits_for = waits_for
            await asyncio.sleep(1)
            pace.sample()
        return pace.limited_by("a")

    assert virtually(night()) == "TPM"


def test_a_model_that_ended_says_how():
    lanes = {
        "stopped": counters(planned=5, suspended="auth: no"),
        "spent": counters(planned=5, budget_stopped=True),
        "done": counters(planned=5, done=5),
    }
    told = dict(zip(lanes, drawn(lanes)[1:], strict=False))
    assert " stopped " in told["stopped"].removeprefix("stopped")
    assert " budget spent " in told["spent"]
    assert " done " in told["done"].removeprefix("done")


def test_this_run_and_all_runs_are_told_apart():
    lanes = {"a": counters(planned=720, done_before=144, done=358, cost_usd=0.0055, cost_before_usd=0.0022)}
    lanes["a"].attempts = 358
    lines = drawn(lanes)
    assert " 502/720 " in lines[1]
    assert "$0.0055 this run, $0.0077 in all" in lines[2]
    assert lines[3] == "358 done this run (accuracy is of these)"


def test_the_last_error_of_all_models_is_shown():
    lanes = {"a": counters(planned=5), "b": counters(planned=5), "c": counters(planned=5)}
    now = time.time()
    for n, alias in enumerate("ab"):
        call = Attempt(
            trial_id="t",
            attempt=1,
            model=alias,
            provider="p",
            started_at=now - 60 + n,
            latency_s=1.0,
            status="rate_limited",
            error=f"HTTP 429: slow down {alias}\x1b[31m",
        )
        lanes[alias].count(call)
    *_, last = drawn(lanes)
    assert last.startswith("last error, 0:0")
    assert "ago: b: rate_limited: HTTP 429: slow down b" in last
    assert "\x1b" not in last


@pytest.mark.parametrize("terminal", [False, True], ids=["lines", "terminal"])
def test_what_is_spent_of_a_budget_is_shown(terminal):
    out = io.StringIO()
    screen = Terminal(Console(file=out, force_terminal=True, width=100)) if terminal else Lines(out)
    virtually(shown(screen, {"a": counters(planned=7)}, CAP, for_s=15))
    said = "budget_usd: $12.3456 of $50.0000 spent, $1.0000 reserved for calls in flight"
    assert said in out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_terminal_shows_what_is_in_batches_instead_of_a_dead_bar(width):
    lanes = {"a": in_batches(("in doubt", 1), ("running", 2), done=20), "b": counters(planned=100)}
    _, a, _, _, footer, batches = drawn(lanes, width=width)
    assert all(cell_len(line) <= width for line in (a, footer, batches))
    bar = a.split()[1]
    assert 3 <= bar.count("╍") / bar.count("━") <= 6
    assert figures(a.replace("╍", "")).startswith("a 20/100 100 % 0 batches")
    assert batches == "a batches: 1 in doubt, 2 running; 80 trials, oldest 10 s, next look in 5 min"


def test_a_load_says_its_step_and_the_time_left_of_all_steps():
    step = StepCounts(
        name="poisson 8/s #1", number=2, total=3, counts_from_s=5, ends_s=70, later_s=120, due=80, answered=70
    )
    loaded = counters(planned=80, done=80, step=step)
    *_, row, time_left, line = drawn({"simulated/noisy": loaded}, width=80)
    assert "done" not in row  # what is due now is answered, but more will be
    assert time_left == "0:00:10 so far, about 0:03:00 left"
    assert line == "simulated/noisy: step 2 of 3, poisson 8/s #1: 80 due, 70 answered, 0 in flight"
    out = io.StringIO()
    virtually(shown(Lines(out), {"m": loaded}, for_s=6))
    assert "about 0:03:00 left; m 80/80; m: step 2 of 3, poisson 8/s #1" in out.getvalue()
    step.total = None
    *_, line = drawn({"simulated/noisy": loaded}, width=80)
    assert line.startswith("simulated/noisy: step 2 of a search, poisson 8/s #1: 80 due")


@pytest.mark.parametrize("terminal", [False, True], ids=["lines", "terminal"])
def test_workers_are_shown_as_they_stand_now_where_there_are_some(terminal):
    out, workers = io.StringIO(), list[WorkerCounts]()
    screen = Terminal(Console(file=out, force_terminal=True, width=100)) if terminal else Lines(out)
    screen.count_workers = lambda: tuple(workers)

    def they_are_there():
        assert "worker" not in out.getvalue()
        workers.extend([worker("1"), worker("2", calls_per_s=1598.0, lag_s=0.0042)])

    virtually(shown(screen, {"a": counters(planned=7)}, for_s=15, then=they_are_there))
    assert "2 workers: 612 + 1,598 calls/s, lag 4 ms" in out.getvalue()


def test_many_workers_are_one_short_line_too_and_the_dead_are_counted():
    assert worker_lines([]) == []
    assert worker_lines([worker("1", calls_per_s=0.26)]) == ["1 worker: 0.3 calls/s, lag 2 ms"]
    many = [worker(str(n), calls_per_s=100.0, deaths=n % 2) for n in range(63)]
    assert worker_lines(many) == ["63 workers: 6,300 calls/s, lag 2 ms, 31 died"]


def test_a_terminal_is_left_without_the_table_when_the_run_is_over():
    out = io.StringIO()
    screen = Terminal(Console(file=out, force_terminal=True, width=100))
    virtually(shown(screen, {"a": counters(planned=7)}, for_s=1, then=lambda: screen.say("a word")))
    assert "0/7" in out.getvalue()
    assert "a word" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")  # the last line of it is erased


def test_quiet_shows_nothing(capsys):
    virtually(Quiet().show({"a": counters()}))
    Quiet().say("hello")
    assert capsys.readouterr() == ("", "")


# ── rates and costs ──────────────────────────────────────────────────────────────────────────


def test_a_rate_is_that_of_the_last_ten_seconds():
    lanes = {"a": counters(planned=1000)}

    async def night():
        pace = Pace(lanes)
        for per_s in [1] * 20 + [7] * 20:
            await asyncio.sleep(1)
            lanes["a"].outcomes[Outcome.CORRECT] += per_s
            lanes["a"].attempts += 2 * per_s
            pace.sample()
        return pace.calls_per_s(["a"]), pace.left_s(["a"])

    calls_per_s, left_s = virtually(night())
    assert calls_per_s == pytest.approx(14, rel=0.01)
    assert left_s == pytest.approx((1000 - 160) / 7, rel=0.01)


def test_the_time_left_is_that_of_the_slowest_that_still_runs():
    lanes = {
        "fast": counters(planned=1_000),
        "slow": counters(planned=1_000),
        "stopped": counters(planned=1_000, suspended="auth: no"),
    }

    def go_on():
        lanes["fast"].outcomes[Outcome.CORRECT], lanes["slow"].outcomes[Outcome.CORRECT] = 500, 100

    *_, total, _ = drawn(lanes, then=go_on)
    assert total.endswith(" 0:01:30")


def test_unknown_cost_is_never_shown_as_nothing():
    assert cost_text(counters(attempts=3, unpriced=3)) == "unpriced"
    assert cost_text(counters(attempts=3, unpriced=3, lost=1)) == "unpriced"
    assert cost_text(counters(attempts=3, unpriced=1, cost_usd=0.5)) == "≥ $0.5000 and 1 call of unknown cost"
    assert cost_text(counters(attempts=3, cost_usd=0.5)) == "$0.5000"
    assert costs_text(counters(attempts=3, cost_usd=0.5, unpriced_before=2)) == (
        "$0.5000 this run, ≥ $0.5000 and 2 calls of unknown cost in all"
    )


def test_a_resume_of_calls_of_unknown_cost_says_so_in_words():
    assert costs_text(counters(unpriced_before=30)) == "30 calls of unknown cost in all"
    assert costs_text(counters(attempts=3, unpriced=3, unpriced_before=30)) == (
        "unpriced this run, 33 calls of unknown cost in all"
    )
    assert costs_text(counters(cost_before_usd=0.5)) == "$0.5000 in all"


def test_a_cost_that_only_lost_calls_leave_unknown_is_not_called_a_missing_price():
    made = counters()
    for n, status in enumerate(("lost", "timeout")):
        made.count(
            Attempt(trial_id=f"t{n}", attempt=1, model="m", provider="p", started_at=1.0, status=status)
        )
    assert cost_text(made) == "cost unknown (2 lost)"


# ── which screen ─────────────────────────────────────────────────────────────────────────────


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("progress", "stderr", "kind"),
    [
        (None, io.StringIO(), Quiet),
        (True, io.StringIO(), Lines),
        (False, _Terminal(), Quiet),
        (None, _Terminal(), Terminal),
        (True, _Terminal(), Terminal),
    ],
)
def test_a_program_shows_progress_on_a_terminal_or_where_it_is_told_to(monkeypatch, progress, stderr, kind):
    monkeypatch.setattr(sys, "stderr", stderr)
    assert type(screen_for(progress)) is kind


@pytest.mark.parametrize(
    ("quiet", "stderr", "kind"),
    [(True, _Terminal(), Messages), (False, _Terminal(), Terminal), (False, io.StringIO(), Lines)],
)
def test_a_command_shows_a_table_on_a_terminal_and_lines_elsewhere(monkeypatch, quiet, stderr, kind):
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    assert type(default_screen(quiet=quiet)) is kind
    monkeypatch.setenv("TERM", "dumb")  # it cannot redraw a table: nothing would be seen
    assert type(default_screen(quiet=quiet)) is (Lines if kind is Terminal else kind)


class ZMQInteractiveShell:
    """What a notebook's kernel calls its shell: by this name rich, and so asyncbench, knows a notebook."""


class Cell:
    """The output of a cell: what was displayed, and what it was updated to."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data, *, raw, display_id):
        assert raw
        assert display_id
        self.shown.append(data)
        return self

    def update(self, data, *, raw):
        assert raw
        self.shown.append(data)


@pytest.fixture
def notebook(monkeypatch):
    cell, module = Cell(), ModuleType("IPython.display")
    monkeypatch.setattr("builtins.get_ipython", ZMQInteractiveShell, raising=False)
    module.display = cell.display  # type: ignore[attr-defined]  # the one function that is used
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return cell


@pytest.mark.parametrize(("progress", "kind"), [(None, Notebook), (True, Notebook), (False, Quiet)])
def test_a_notebook_shows_progress_unless_it_is_told_not_to(notebook, progress, kind):
    assert type(screen_for(progress)) is kind
    assert notebook.shown == []


def test_a_cell_shows_the_table_and_keeps_the_last(notebook, capsys):
    lanes = {"a<b": counters(planned=10)}

    def all_is_done():
        lanes["a<b"].outcomes[Outcome.CORRECT] = 10

    screen = screen_for(None)
    virtually(shown(screen, lanes, CAP, for_s=3, then=all_is_done))
    first, *_, last = notebook.shown
    assert "0/10" in first["text/plain"]
    assert "10/10" in last["text/plain"]
    assert "of $50.0000 spent" in last["text/plain"]
    assert last["text/html"].startswith("<pre")
    assert "a&lt;b" in last["text/html"]
    assert "color: #008000" in last["text/html"]  # what is done is green
    screen.say("a word")
    assert capsys.readouterr().out == "a word\n"
