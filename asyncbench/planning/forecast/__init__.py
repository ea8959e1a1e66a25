"""What is left of a sweep, forecast from its finished trials: tokens, dollars and seconds, with a range.

Each module imports only from lines above its own:

    ranges · straight_line · entrants · kept
    seen_use
    replies
    remaining_cost
"""

from asyncbench.planning.forecast.entrants import cost_of_answers
from asyncbench.planning.forecast.kept import FORECAST, is_forecast_told, joined_forecasts, read_forecasts

__all__ = [
    "FORECAST",
    "cost_of_answers",
    "is_forecast_told",
    "joined_forecasts",
    "read_forecasts",
]
