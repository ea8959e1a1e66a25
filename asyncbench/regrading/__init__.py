"""Today's graders over stored replies.

In: a results folder. Out: what would change and, if you ask for it, the changed grades in the folder.
"""

from asyncbench.regrading.folder import Regraded, regrade_folder
from asyncbench.regrading.tally import ChangedTrial, Grader, Move

__all__ = [
    "ChangedTrial",
    "Grader",
    "Move",
    "Regraded",
    "regrade_folder",
]
