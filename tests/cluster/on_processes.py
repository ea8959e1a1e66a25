"""`python -m tests.cluster.on_processes SWEEP WORKERS [BUDGET]`: a run with so many worker processes."""

import asyncio
import sys
from pathlib import Path

from asyncbench.errors import AsyncbenchError
from asyncbench.run import RunOptions, Summary, default_screen, run_as_told
from tests.cluster.processes import ProcessCluster


async def on_processes(sweep: object, cluster: ProcessCluster, **options: object) -> Summary:
    """Run a sweep on a cluster of processes."""
    screen = default_screen(quiet=False)
    try:
        return await run_as_told(sweep, RunOptions(**options), cluster=cluster, screen=screen)  # type: ignore[arg-type]
    finally:
        await cluster.aclose()


def main() -> int:
    """Run it; return its exit code."""
    file, count, *budget = sys.argv[1:]
    try:
        budget_usd = float(budget[0]) if budget else None
        return asyncio.run(on_processes(Path(file), ProcessCluster(int(count)), budget_usd=budget_usd)).exit
    except AsyncbenchError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
