"""Makes one results folder of several folders of the same sweep.

In: folders from several machines or several times. Out: one folder, and what became of the rows.
"""

from asyncbench.merging.folder import Merged as Merged, merge_folders as merge_folders
