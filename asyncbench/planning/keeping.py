"""A plan's forecast, as a results folder keeps it."""

from dataclasses import asdict
from pathlib import Path

from asyncbench.files import write_durably
from asyncbench.planning.forecast.kept import FORECAST, read_forecasts, with_forecast
from asyncbench.planning.forecasting import Forecast
from asyncbench.planning.outlook import ModelPlan, Plan
from asyncbench.store import TEMPORARY


def keep_forecast(plan: Plan, *, by: str) -> None:
    """Add a plan's forecast to its results folder, where it tells anything new.

    Raises:
        StoreError: the folder cannot be read or written.
    """
    folder = Path(plan.out)
    if (told := with_forecast(read_forecasts(folder), forecast_of(plan), by=by)) is not None:
        write_durably(folder / FORECAST, told, temporary=folder / TEMPORARY / FORECAST)


def forecast_of(plan: Plan) -> dict[str, object]:
    """Return what a plan forecasts, for forecast.json; models of which too little is known are left out."""
    models = {
        one.model: _kept(one, one.forecast) for one in plan.models if one.forecast is not None and one.left
    }
    total = plan.forecast_total
    return {
        "sweep": plan.sweep,
        "limit": plan.limit,
        "models": models,
        "together": None if total is None else {"total": asdict(total)},
    }


def _kept(one: ModelPlan, forecast: Forecast) -> dict[str, object]:
    return {
        "trials": one.trials,
        "observed": one.done,
        "left": one.left,
        "spent": asdict(forecast.spent),
        "total": asdict(forecast.total),
        "seconds": asdict(forecast.seconds),
        "bound_by": one.bound_by,
        "price_source": one.price_source,
        "prices": one.prices,
    }
