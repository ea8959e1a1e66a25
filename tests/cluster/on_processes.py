"""`python -m tests.cluster.on_processes SWEEP WORKERS [BUDGET]`: a run with so many worker processes."""

import asyncio
import sys
from pathlib import Path

from asyncbench.errors import AsyncbenchError
from asyncbench.run.options import RunOptions
from asyncbench.run.progress import default_screen
from asyncbench.run.summary import Summary
from asyncbench.run.sweep_run import run_with_options
from asyncbench.store.catalog import read_trials
from tests.cluster.processes import ProcessCluster

ANSWER = ["trial_id", "model", "outcome", "exact_match", "reply_text"]


def rows_of(folder):
    return sorted(read_trials(folder, ANSWER).to_pylist(), key=lambda row: row["trial_id"])


def run_on(cluster, meant, screen=None, beside=None, **options):
    """Run a sweep on a cluster, and do something beside it; return its summary."""

    async def running():
        try:
            told = {"cluster": cluster, "screen": screen, "env": {}}
            run = asyncio.create_task(run_with_options(meant, RunOptions(**options), **told))
            if beside is not None:
                await beside(cluster)
            return await run
        finally:
            await cluster.aclose()

    return asyncio.run(running())


def main() -> int:
    """Run it; return its exit code."""
    file, count, *budget = sys.argv[1:]
    try:
        budget_usd = float(budget[0]) if budget else None
        screen = default_screen(quiet=False)
        summary: Summary = run_on(ProcessCluster(int(count)), Path(file), screen, budget_usd=budget_usd)
        return summary.exit
    except AsyncbenchError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
