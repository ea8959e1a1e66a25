"""What a sweep would cost and how long it would take, before a cent is spent.

In: a sweep and its folder. Out: a `Plan`. If trials are finished, it is a forecast with ranges;
otherwise it is a guess.
"""

from asyncbench.planning.finished import cost_of_answers as cost_of_answers
from asyncbench.planning.forecast_file import (
    FORECAST as FORECAST,
    is_forecast_told as is_forecast_told,
    joined_forecasts as joined_forecasts,
    keep_forecast as keep_forecast,
    read_forecasts as read_forecasts,
)
from asyncbench.planning.guesses import prices_of as prices_of, rates_asked as rates_asked
from asyncbench.planning.planned_load import LoadPlan as LoadPlan, load_plan as load_plan
from asyncbench.planning.records import Outlook as Outlook
from asyncbench.planning.remaining_trials import sets_of as sets_of
from asyncbench.planning.report import Plan as Plan
from asyncbench.planning.sweep_plan import (
    bounded_plan as bounded_plan,
    plan as plan,
    plan_of as plan_of,
)
