"""What a sweep would cost and how long it would take, before a cent is spent.

In: a sweep, and what its folder holds. Out: a `Plan`. Where trials are finished, a forecast with ranges takes
the place of guesses.
"""

from asyncbench.planning.finished import cost_of_answers
from asyncbench.planning.forecast_file import (
    FORECAST,
    is_forecast_told,
    joined_forecasts,
    keep_forecast,
    read_forecasts,
)
from asyncbench.planning.guesses import prices_of, rates_asked
from asyncbench.planning.records import Outlook
from asyncbench.planning.report import Plan
from asyncbench.planning.sweep_plan import bounded_plan, plan, plan_of

__all__ = [
    "FORECAST",
    "Outlook",
    "Plan",
    "bounded_plan",
    "cost_of_answers",
    "is_forecast_told",
    "joined_forecasts",
    "keep_forecast",
    "plan",
    "plan_of",
    "prices_of",
    "rates_asked",
    "read_forecasts",
]
