"""Results folders of one sweep, filled on several machines or at several times, become one."""

from asyncbench.merging.folder import Merged, merge_folders

__all__ = ["Merged", "merge_folders"]
