"""forecast.json: what was forecast of a sweep, to be held against what came of it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from asyncbench.errors import StoreError

FORECAST: Final = "forecast.json"
VERSION: Final = 1  # raise when a key changes meaning; adding one is not a change
MOST: Final = 20  # forecasts that are kept: the first, and the latest
Kept = Mapping[str, Any]  # Any: JSON, as docs/results.md describes it


def read_forecasts(folder: Path) -> tuple[Kept, ...]:
    """Return the forecasts that a results folder holds, the oldest first; none where it has no file of them.

    Raises:
        StoreError: the file cannot be read, or a later asyncbench wrote it.
    """
    path = folder / FORECAST
    try:
        told = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, orjson.JSONDecodeError) as error:
        raise StoreError(f"{path} cannot be read: {error}. Remove it; a later run writes it anew.") from error
    match told:
        case {"version": int(version), "forecasts": list(forecasts)} if version <= VERSION:
            return tuple(forecasts)
    raise StoreError(f"{path} is none that this asyncbench can read. Remove it, or install a later one.")


def with_forecast(before: Sequence[Kept], made: Kept, *, by: str) -> bytes | None:
    """Return the file with one forecast more; None where it would tell nothing new.

    Args:
        before: what the file holds.
        made: what was forecast: `sweep`, `limit`, `models` and `together`.
        by: pilot or run.
    """
    if not made["models"] or any(_told(one) == _told(made) for one in before):
        return None
    one = {"made_at": datetime.now(UTC).isoformat(timespec="seconds"), "by": by, **made}
    return _file([*before, one])


def joined_forecasts(several: Iterable[Sequence[Kept]]) -> bytes | None:
    """Return the file with what several files hold, each forecast once; None where they hold nothing."""
    every = [one for forecasts in several for one in forecasts]
    once = [one for i, one in enumerate(every) if one not in every[:i]]
    return _file(sorted(once, key=lambda one: str(one["made_at"]))) if once else None


def _file(forecasts: Sequence[Kept]) -> bytes:
    kept = [*forecasts[:1], *forecasts[1:][-(MOST - 1) :]]
    return orjson.dumps({"version": VERSION, "forecasts": kept}, option=orjson.OPT_INDENT_2)


def _told(made: Kept) -> tuple[object, ...]:
    """Return what a forecast was made from."""
    models = {
        alias: [one.get(name) for name in ("trials", "observed", "left", "prices")]
        for alias, one in made["models"].items()
    }
    return made["sweep"], made["limit"], models


def is_forecast_told(
    before: Iterable[Kept], model: str, *, limit: int | None, trials: int, prices: object
) -> bool:
    """Whether a model was forecast for so many trials at these prices, from however many of them."""
    return any(
        (one["limit"], of.get("trials"), of.get("prices")) == (limit, trials, prices)
        for one in before
        if (of := one["models"].get(model)) is not None
    )
