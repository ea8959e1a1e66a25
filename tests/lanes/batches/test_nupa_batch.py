"""NUPA as its authors asked it: in batches; the table is that of the same set asked call by call."""

import asyncio
import os

import pytest
import yaml

from asyncbench import generate
from asyncbench.published.nupa.report import nupa_report_on
from asyncbench.run.options import RunOptions
from asyncbench.run.summary import Exit
from asyncbench.run.sweep_run import run_with_options
from tests.commands import ROOT
from tests.sweep_files import simulator
from tests.world.batches import Night

SHARE = {"per_length": 1, "lengths": "5,18,60"}
ALL = {"per_length": int(os.environ.get("ASYNCBENCH_NUPA_PER_LENGTH", "100"))}  # 239,000 problems at 100


@pytest.mark.long
@pytest.mark.parametrize(
    "asked", [SHARE, pytest.param(ALL, marks=pytest.mark.soak)], ids=["a share", "all of it"]
)
def test_nupa_s_released_set_gives_the_same_table_in_batches_as_in_real_time(tmp_path, asked):
    released = yaml.safe_load((ROOT / "configs" / "nupa-batch.yaml").read_text("utf-8"))
    [problems] = released.pop("problems")
    assert problems == {"suite": "nupa", "per_length": 100, "seed": 7, "profile": "reference"}
    path = tmp_path / "nupa.parquet"
    made = generate("nupa", path, **({"seed": 7, "profile": "reference"} | asked))
    size = {"max_requests": 40} if asked == SHARE else released["batch"]
    with simulator(path, folder=tmp_path / "batches") as server:
        night = Night(server, path, tmp_path, "simulated", "line_500=0.01", conditions=released["conditions"])
        night.raw |= {"batch": {"rounds": 9} | size, "limits": {"simulated": {"concurrency": 200}}}
        night.raw["models"][0]["max_tokens"] = released["models"][0]["max_tokens"]
        assert night.run().exit is Exit.COMPLETE
        singly = night.raw | {"out": str(tmp_path / "singly"), "mode": "realtime"}
        assert asyncio.run(run_with_options(singly, RunOptions(), env={})).exit is Exit.COMPLETE
        assert night.billed == dict.fromkeys(night.answers, 1)
        assert len(night.billed) == made.rows > 100
        assert len(night.parts) > made.rows / night.raw["batch"]["max_requests"]
    batches, calls = nupa_report_on(night.out), nupa_report_on(tmp_path / "singly")
    assert len(batches.lines) == 44
    assert batches.lines == calls.lines
