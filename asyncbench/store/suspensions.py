"""Which models of a folder were refused for good: read off their calls, for a killed run says nothing.

A refusal suspends a model when it is about whatever it would be asked. Then no call of it is begun any more;
so the last calls of such a model ended in a refusal, and none was begun after that.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import FINAL_FOR_LANE, ErrorKind
from asyncbench.store.snapshot import Snapshot

# a few equal ones of the last kind suspend a model; then their trials stay open
REFUSALS = (*sorted(FINAL_FOR_LANE), ErrorKind.BAD_REQUEST)


def suspended(seen: Snapshot, last_begun: Mapping[str, datetime]) -> dict[str, str]:
    """Return why each model that is refused for good is: alias → the kind of the error.

    Args:
        seen: the folder.
        last_begun: when the last call of each model was begun, by alias.
    """
    wanted = ["model", "trial_id", "status", "started_at", "latency_s"]
    refused = seen.read("attempts", wanted, pc.field("status").isin(pa.array(REFUSALS, pa.string())))
    asked = pc.unique(refused.filter(pc.field("status") == ErrorKind.BAD_REQUEST.value)["trial_id"])
    closed = set(seen.read("trials", ["trial_id"], pc.field("trial_id").isin(asked))["trial_id"].to_pylist())
    ends: defaultdict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for row in refused.to_pylist():
        if row["status"] in FINAL_FOR_LANE or row["trial_id"] not in closed:
            ended_at = row["started_at"] + timedelta(seconds=row["latency_s"] or 0.0)
            ends[row["model"]].append((ended_at, row["status"]))
    last = {model: max(many) for model, many in ends.items()}
    return {model: why for model, (ended_at, why) in last.items() if last_begun[model] <= ended_at}
