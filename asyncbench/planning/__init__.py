"""What a sweep would cost and how long it would take, before a cent is spent.

In: a sweep, and what its folder holds. Out: a `Plan`. Where trials are finished, a forecast with ranges takes
the place of guesses. Each module imports only from lines above its own:

    forecast · pace · prices · cuts · remaining_trials
    tokens
    forecasting
    outlook
    limits
    making · keeping
"""

from asyncbench.planning.keeping import keep_forecast
from asyncbench.planning.making import bounded_plan, plan, plan_of
from asyncbench.planning.outlook import ModelPlan, Outlook, Plan, PlannedSet
from asyncbench.planning.prices import prices_of, rates_asked

__all__ = [
    "ModelPlan",
    "Outlook",
    "Plan",
    "PlannedSet",
    "bounded_plan",
    "keep_forecast",
    "plan",
    "plan_of",
    "prices_of",
    "rates_asked",
]
