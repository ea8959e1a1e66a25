"""Whether a bill has the days of another time zone: then the gaps of days close when ours are shifted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from asyncbench.reconciliation.causes import WORTH_NAMING, Cause
from asyncbench.reconciliation.gaps import DUST, MEASURES, BillPair
from asyncbench.reconciliation.our_costs import HOUR_S, BillNames
from asyncbench.results import Calls

pc: Any = pyarrow.compute  # see `analysis.calls`

HALF_HOUR_S: Final = HOUR_S / 2
SHIFTS: Final = [half / 2 for half in range(-24, 29)]  # hours from UTC: from the last zone to the first
_COLUMNS: Final = {"usd": "cost_usd", "input_tokens": "input_tokens", "output": "output_tokens"}
Sums = Counter[tuple[str, date]]  # by model and day


def zone_cause(
    calls: Calls, pairs: Sequence[BillPair], names: Mapping[BillNames, str], *, shift_h: float
) -> Cause | None:
    """Return the time zone in which the days fit the bill best; None where they do in this one.

    Args:
        calls: of the folder.
        pairs: the bill and the folder by model and day.
        names: what each of those asked is called in `pairs`.
        shift_h: the zone of these days, in hours from UTC.
    """
    measure = next((one for one in MEASURES if any(pair.gap(one) is not None for pair in pairs)), None)
    if measure is None or any(pair.day is None for pair in pairs) or not calls.table.num_rows:
        return None
    theirs = Sums()
    for pair in pairs:
        theirs[pair.model, pair.day or date.min] += getattr(pair.theirs, measure) or 0
    halves = _by_half_hour(calls, measure, names)
    left = {shift: _left(theirs, _by_day(halves, shift)) for shift in {*SHIFTS, shift_h}}
    # Few zones are not whole hours from UTC.
    best = min(left, key=lambda shift: (round(left[shift], 9), shift % 1, abs(shift - shift_h)))
    now = left[shift_h]
    if best == shift_h or now <= DUST or (now - left[best]) / now < WORTH_NAMING:
        return None
    share = (now - left[best]) / now
    said = f"with days of UTC{best:+g} h, {share:.0%} of what differs by day is gone (--utc-offset {best:g})"
    return Cause(name="time zone of the day", says=said, share=share)


def _left(theirs: Sums, ours: Sums) -> float:
    return sum(abs(theirs[key] - ours[key]) for key in {*theirs, *ours})


def _by_half_hour(calls: Calls, measure: str, names: Mapping[BillNames, str]) -> Counter[tuple[str, int]]:
    """Return what was used, by model and half hour since 1970."""
    column = _COLUMNS[measure]
    rows = calls.table.select(["model", "model_id", "model_served", column])
    halves = pc.divide(calls.table["started_at"].cast(pa.int64()), int(HALF_HOUR_S * 1e6))
    found: Counter[tuple[str, int]] = Counter()
    keys = ["model", "model_id", "model_served", "half"]
    for row in rows.append_column("half", halves).group_by(keys).aggregate([(column, "sum")]).to_pylist():
        asked = BillNames(row["model"], row["model_id"], row["model_served"])
        if asked in names:
            found[names[asked], row["half"]] += row[f"{column}_sum"] or 0
    return found


def _by_day(halves: Mapping[tuple[str, int], float], shift_h: float) -> Sums:
    sums = Sums()
    for (model, half), amount in halves.items():
        at_s = half * HALF_HOUR_S + shift_h * HOUR_S
        sums[model, datetime.fromtimestamp(at_s, UTC).date()] += amount  # type: ignore[assignment]  # dollars are no whole number
    return sums
