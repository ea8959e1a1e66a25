"""Drawn nights: faults and deaths at random, and whatever happens every trial is answered and paid once.

Play one again by its seed: `ASYNCBENCH_BATCH_NIGHT=7 pytest tests/lanes/batches/test_nights.py`.
"""

import os
import shutil

import pytest

from tests.temporary_root import folder_in_memory
from tests.tiers import shared_out
from tests.world.batch_nights import DrawnNight, drawn

NIGHTS = 3000
AT_ONCE = 10
ONE_NIGHT = os.environ.get("ASYNCBENCH_BATCH_NIGHT")
BLOCKS = [ONE_NIGHT] if ONE_NIGHT else range(0, NIGHTS, AT_ONCE)


@pytest.fixture
def folder():
    with folder_in_memory() as found:  # where each wait for a disk is short
        yield found


def play(seed, problems, folder, **keys):
    night = DrawnNight(drawn(seed), problems, folder / f"{seed}")
    try:
        night.play(**keys)
    except BaseException as error:
        error.add_note(f"night {seed}: {night.plan}\n{night.told}\n" + "\n".join(night.screen.lines))
        raise
    shutil.rmtree(folder / f"{seed}")


@pytest.mark.parametrize("first", shared_out(BLOCKS, first=1, long=5))
def test_whatever_happens_every_trial_is_answered_and_none_is_paid_twice(problems, folder, first):
    seeds = [int(first)] if ONE_NIGHT else range(first, first + AT_ONCE)
    for seed in seeds:
        play(seed, problems, folder)
    print("nights", *seeds)


@pytest.mark.parametrize("seed", shared_out(range(0, NIGHTS, 15), long=2))
def test_so_it_is_over_real_connections(problems, folder, seed):
    play(seed, problems, folder, over_http=True)
    print("night", seed)
