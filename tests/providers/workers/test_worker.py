"""A worker, told over its socket what to do as by a run: what it answers, and what it does not tell."""

import asyncio
import socket

import pytest

from asyncbench.providers.credentials import Credentials
from asyncbench.providers.workers import worker as worker_module
from asyncbench.providers.workers.process import WorkerProcess
from asyncbench.providers.workers.worker import Frames, Worker
from asyncbench.providers.workers.workers import LATE_CHECKS, LATE_S, Workers
from asyncbench.records import Condition, Model

KEY = "sk-PL4NTEDworker00112233"
MODEL = Model(alias="m", provider="openai", model_id="m", api="chat")
ASKED = ("learn", 7, MODEL, Condition())


class Stumbling:
    """A provider with a bug."""

    async def ask(self, _):
        raise LookupError(f"no way for {KEY}")

    async def aclose(self):
        pass


@pytest.fixture
async def told(monkeypatch):
    """What a worker is told, and what it says of calls."""
    ours, theirs = socket.socketpair()
    said: asyncio.Queue[tuple[object, ...]] = asyncio.Queue()

    def take(value):
        if value[0] not in ("beat", "opened"):
            said.put_nowait(value)

    loop = asyncio.get_running_loop()
    _, frames = await loop.create_unix_connection(lambda: Frames(take, lambda: None), sock=ours)
    monkeypatch.setattr(worker_module, "open_provider", lambda *_, **__: Stumbling())
    monkeypatch.setattr(worker_module, "collect_rarely", lambda _: None)  # it is for a process of its own
    begun = Worker(theirs)
    running = asyncio.create_task(begun.run())
    yield frames.send, said, begun
    frames.close()
    await running


async def test_a_bug_in_a_worker_is_told_with_its_traceback_and_without_the_key(told):
    tell, said, _ = told
    tell(("open", 1, MODEL, Credentials(key=KEY), None))
    tell(ASKED)
    tell(("ask", 0, 1, 7, None, [("user", "1+1")]))
    what, call, how, (name, text), lag_s = await said.get()
    assert (what, call, how, name) == ("ended", 0, "fault", "LookupError")
    assert "no way for [key]" in text
    assert "in ask" in text
    assert KEY not in text
    assert lag_s >= 0


async def test_calls_that_are_cancelled_as_they_come_are_forgotten(told):
    tell, said, begun = told
    tell(("open", 1, MODEL, Credentials(key=KEY), None))
    tell(ASKED)
    for call in range(5):
        tell(("ask", call, 1, 7, None, []))
        tell(("cancel", call))
    tell(("ask", 9, 1, 7, None, []))
    assert (await said.get())[1] == 9
    assert begun._calls == {}


async def test_a_call_of_a_model_that_was_never_opened_is_a_fault_and_the_worker_goes_on(told):
    tell, said, _ = told
    for call in (0, 1):
        tell(("ask", call, 9, 9, None, []))
    assert [(await said.get())[:3] for _ in range(2)] == [("ended", 0, "fault"), ("ended", 1, "fault")]


def models(count):
    return [Model(alias=str(n), provider="openai", model_id="m", api="chat") for n in range(count)]


@pytest.mark.parametrize(
    ("workers", "asked", "homes"),
    [
        (2, 1, ["12"]),
        (2, 2, ["1", "2"]),
        (2, 3, ["1", "2", "1"]),
        (4, 2, ["13", "24"]),
        (3, 2, ["13", "2"]),
    ],
)
def test_models_are_shared_out_evenly(workers, asked, homes):
    found = Workers(workers, models(asked), {}, notify=print)
    assert ["".join(own.name for own in found._homes[str(n)]) for n in range(asked)] == homes


def test_a_worker_with_less_to_do_helps_if_those_of_a_model_stay_late():
    found = Workers(2, models(2), {}, notify=print)
    first, second = found._all
    own = found._homes["0"]

    def after_checks(count):
        for _ in range(count):
            found._help("0", own)
        return own

    assert after_checks(LATE_CHECKS) == [first], "nothing is late"
    first.calls, first.late_s = {0: None}, 2 * LATE_S  # type: ignore[dict-item]  # some call
    assert after_checks(LATE_CHECKS - 1) == [first], "it may be late for a moment"
    second.late_s = 2 * LATE_S
    assert after_checks(LATE_CHECKS) == [first], "the other has enough to do itself"
    second.late_s = 0.0
    assert after_checks(LATE_CHECKS) == [first, second]
    assert after_checks(LATE_CHECKS) == [first, second]


def test_the_worker_with_the_fewest_calls_makes_the_next():
    found = Workers(2, models(1), {}, notify=print)
    first, second = found._all
    for worker in (first, second):
        worker._alive = True  # its process is there
    first.calls = {0: None}  # type: ignore[dict-item]  # some call
    assert found.chosen("0") is second
    second._alive = False  # it has died
    assert found.chosen("0") is first


async def test_what_a_worker_is_told_while_it_is_dead_is_told_again_to_the_next():
    dead = WorkerProcess("1", {}, notify=print, give_up=print, on_caught=print)
    dead.send_once(1, ("open", 1, MODEL, Credentials(key=KEY), None))
    await dead.wait_until_opened()  # it has nothing to open
    told: list[object] = []
    dead._frames = Frames(print, print)
    dead._frames.send = told.append  # type: ignore[method-assign,assignment]  # a process is there
    for _ in range(2):
        dead.send_once(1, ("open", 1, MODEL, Credentials(key=KEY), None))
    assert told == [("open", 1, MODEL, Credentials(key=KEY), None)]


def test_a_worker_that_was_never_started_has_nothing_to_tell():
    counts = WorkerProcess("1", {}, notify=print, give_up=print, on_caught=print).counts()
    assert (counts.pid, counts.calls, counts.calls_per_s, counts.deaths) == (0, 0, 0.0, 0)
