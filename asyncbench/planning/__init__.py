"""What a sweep would cost and how long it would take: nothing is asked, nothing is written.

Where its folder holds finished trials, that is forecast from them, with a range; the rest is guessed.

Each module imports only from lines above its own:

    left · pace · prices · cutting
    tokens
    forecasting
    figures
    limiting
    making · keeping
"""

from asyncbench.planning.making import plan
from asyncbench.planning.outlook import ModelPlan, Plan, PlannedSet

__all__ = ["ModelPlan", "Plan", "PlannedSet", "plan"]
