"""A process is killed at any request to a bucket; the next one finishes: nothing is lost, or there twice."""

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

import asyncbench as ab
from asyncbench.store.copying import FolderCopy
from asyncbench.store.folder import Store
from tests.store.bucket.s3_server import Answer, Request, S3Server, nothing
from tests.store.dying import start
from tests.store.made import answered, keep, seal, trial_id

pytestmark = pytest.mark.long

ALL = [trial_id(n) for n in range(1, 4)]
STRIDE = 5  # of the requests at which one test kills


def work(address: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Answer three trials, upload each, compact, and end; what was done before is not done again."""
    os.environ.update(environment)
    copy = FolderCopy.claim(address, folder)
    with Store.open(folder, sweep="night") as store:
        for number in range(1, 4):
            if trial_id(number) not in store.finished:
                keep(store, *answered(number))
            seal(store)
            copy.push(store)
        store.compact(all_tables=True)
    asyncio.run(copy.finish(print, tries=1))


def killed(s3: S3Server, address: str, folder: Path, at: int, *, after: bool) -> bool:
    """Do the work in a process that dies before or after a request is done, if it comes to that one."""
    process = start(work, address, folder, {**s3.env, "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]})
    s3.requests.clear()

    def kill(count: int, _: Request) -> Answer | None:
        if count != at:
            return None
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        return Answer(503)  # which nobody reads

    if after:
        s3.after = kill
    else:
        s3.before = kill
    process.join()
    s3.before = s3.after = nothing
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode != 0


@pytest.mark.parametrize("first", range(1, STRIDE + 1))
@pytest.mark.parametrize("after", [False, True], ids=["before it is done", "before it is answered"])
@pytest.mark.long
def test_a_kill_at_any_request_loses_nothing(s3: S3Server, tmp_path: Path, first: int, after: bool):
    at, was_killed = first, True
    while was_killed:
        address, folder = f"s3://bucket/{at}-{after}/night", tmp_path / str(at) / "night"
        was_killed = killed(s3, address, folder, at, after=after)
        assert not killed(s3, address, folder, 10**6, after=after)  # the same machine goes on
        trials = ab.read_trials(address, ["trial_id", "attempts"])
        assert sorted(map(str, trials["trial_id"].to_pylist())) == ALL
        assert trials.equals(ab.read_trials(folder, ["trial_id", "attempts"]))
        assert len(ab.read_attempts(address)) == len(ALL)  # no call was made twice
        at += STRIDE
    assert at > 20
