"""What a sweep would cost and how long it would take: nothing is asked, nothing is written.

Each module imports only from lines above its own:

    figures · used · left · pace
    tokens
    making
"""

from asyncbench.plan.figures import ModelPlan, Plan, PlannedSet
from asyncbench.plan.making import plan

__all__ = ["ModelPlan", "Plan", "PlannedSet", "plan"]
