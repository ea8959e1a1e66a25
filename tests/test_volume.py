"""Memory and disk do not grow with the number of trials."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from asyncbench.store.folder import SEAL_AT_BYTES, SEAL_AT_RESULTS
from tests.sweep_files import outcomes

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent
ROOM = 128 * 2**20  # bytes above the peak of the first tenth, in which nothing is sealed yet
SEALING = 64 * 2**20  # bytes written while the segment before is made into parts


def run_large(folder: Path, trials: int):
    command = [sys.executable, "-m", "tests.volume", str(folder), str(trials)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["done"] == told["planned"] == len(outcomes(folder / "out"))
    return told


def check(told, *, what, room=ROOM):
    planned = told["planned"]
    early = max(memory for done, memory, _ in told["readings"] if done <= planned / 10)
    late = max(memory for done, memory, _ in told["readings"] if done > planned / 10)
    journal = max(size for *_, size in told["readings"])
    print(
        f"{what}: {planned:,} trials, at most {early / 2**20:.0f} MiB in the first tenth, "
        f"{late / 2**20:.0f} MiB after it; journal at most {journal / 2**20:.0f} MiB"
    )
    assert late <= early + room
    assert journal <= SEAL_AT_BYTES + SEALING


def test_five_thousand_trials_need_no_more_memory_than_five_hundred(tmp_path):
    check(run_large(tmp_path, 5_000), what="volume", room=ROOM / 2)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_trials_need_no_more_memory_than_ten_thousand(tmp_path):
    check(run_large(tmp_path, 100_000), what="volume (soak)")
    parts = sorted((tmp_path / "out" / "trials").rglob("*.parquet"))
    rows = [pq.ParquetFile(part).metadata.num_rows for part in parts]
    assert len(rows) >= 2, "nothing was sealed on the way"
    assert max(rows) <= 1.5 * SEAL_AT_RESULTS
