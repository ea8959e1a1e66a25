"""What the calls cost that gave trials their answers: a forecast is of these, and of no others."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

_SAME: Final = ("input_tokens", "output_tokens")  # of a trial and of the call that gave its answer
OF_TRIALS: Final = ("trial_id", "reused_from", *_SAME)
OF_CALLS: Final = ("trial_id", "attempt", "status", "cost_usd", *_SAME)


def cost_of_answers(trials: pa.Table, calls: pa.Table) -> pa.Table:
    """Return trial_id and cost_usd (NULL: unknown) of the calls that gave finished trials their answers.

    Of a trial that was asked again it is the last that was answered; in a merged folder, where the better
    answer stays, the last whose tokens are those of the trial. Trials that failed, and those whose answers
    were taken over, have none.

    Args:
        trials: the finished ones, with `OF_TRIALS`.
        calls: any, with `OF_CALLS`.
    """
    ours = trials.filter(pc.is_null(trials["reused_from"])).select(["trial_id", *_SAME])
    ours = ours.rename_columns(["trial_id", *(f"{name} of the trial" for name in _SAME)])
    answered = calls.select(list(OF_CALLS)).filter(pc.equal(calls["status"], pa.scalar("ok")))
    rows = answered.join(ours, "trial_id", join_type="inner")
    same = pc.and_(*(_equal(rows[name], rows[f"{name} of the trial"]) for name in _SAME))
    rows = rows.append_column("same", pc.cast(same, pa.int8()))
    rows = rows.sort_by([("same", "ascending"), ("attempt", "ascending")])
    groups = rows.group_by("trial_id", use_threads=False)  # the only way in which the order of rows counts
    last = groups.aggregate([("cost_usd", "last", pc.ScalarAggregateOptions(skip_nulls=False))])
    return last.rename_columns(["trial_id", "cost_usd"])


def _equal(a: Any, b: Any) -> Any:
    return pc.equal(pc.fill_null(a, -1), pc.fill_null(b, -1))
