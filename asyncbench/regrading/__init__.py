"""The newest graders over stored replies: what would change, and, when asked for, the change itself."""

from asyncbench.regrading.folder import Regraded, regrade_folder

__all__ = ["Regraded", "regrade_folder"]
