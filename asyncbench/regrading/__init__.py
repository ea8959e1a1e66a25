"""Grades stored replies again with today's graders.

In: a results folder. Out: what would change and, if you ask for it, the changed grades in the folder.
"""

from asyncbench.regrading.folder import Regraded as Regraded, regrade_folder as regrade_folder
from asyncbench.regrading.tally import ChangedTrial as ChangedTrial, Grader as Grader, Move as Move
