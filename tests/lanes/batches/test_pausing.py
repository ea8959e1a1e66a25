"""Batches in a run that is paused: none is created, and those that were go on."""

import asyncio

from tests.sweep_files import Said
from tests.world.batches import Forwarded


class Paused(Said):
    """A screen that pauses the run before it begins, or when a batch is out, for two hours."""

    def __init__(self, asked, *, batches):
        super().__init__()
        self.asked, self.batches, self.seen = asked, batches, []

    async def show(self, lanes, caps=()):  # noqa: ARG002  as a screen is called
        (counters,) = lanes.values()
        while len(self.asked.truth) < self.batches:  # noqa: ASYNC110  no server tells us
            await asyncio.sleep(0.01)
        counters.paused = True
        at_s = self.asked.clock.now()
        while self.asked.clock.now() < at_s + 7200:  # noqa: ASYNC110  the clock tells nobody
            await asyncio.sleep(0.01)
        self.seen = self.asked.truth
        counters.paused = False


def test_none_is_created_before_it_goes_on(night):
    asked = night("simulated", batch={"max_requests": 20})
    asked.clock, asked.screen = Forwarded(asked.server), Paused(asked, batches=0)
    asked.completes(clock=asked.clock)
    assert asked.screen.seen == []
    assert len(asked.answers) == 72


def test_those_that_were_created_end_meanwhile(night):
    asked = night("simulated-anthropic", batch={"max_requests": 20})
    asked.clock, asked.screen = Forwarded(asked.server), Paused(asked, batches=1)
    asked.completes(clock=asked.clock)
    assert asked.screen.seen
    assert {batch["status"] for batch in asked.screen.seen} == {"completed"}
