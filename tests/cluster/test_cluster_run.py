"""A run whose workers are processes of their own: the answers, budgets and ends of one process."""

import asyncio

import asyncbench as ab
from tests.cluster.on_processes import on_processes

SWEEP = {
    "name": "night",
    "problems": [{"suite": "integer_addition", "tries": 2, "max_digits": 12, "seed": 7}],
    "models": ["simulated/oracle", {"model": "simulated/noisy", "alias": "noisy"}],
    "budget_usd": 5,
    "allow_unpriced": True,
}
WHAT = ["trial_id", "model", "outcome", "exact_match", "reply_text", "attempts"]


def rows_of(folder):
    return sorted(ab.read_trials(folder, WHAT).to_pylist(), key=lambda row: row["trial_id"])


def test_a_cluster_gives_the_answers_of_one_process(tmp_path):
    alone, spread = SWEEP | {"out": str(tmp_path / "alone")}, SWEEP | {"out": str(tmp_path / "spread")}
    asyncio.run(ab.run_sweep(alone))
    summary = asyncio.run(on_processes(spread))
    assert summary.exit == 0
    assert rows_of(tmp_path / "spread") == rows_of(tmp_path / "alone")
    assert {row["worker"] for row in ab.read_attempts(tmp_path / "spread", ["worker"]).to_pylist()} == {
        "w001-e1",
        "w002-e1",
    }
    assert not (tmp_path / "spread" / "workers").exists()
