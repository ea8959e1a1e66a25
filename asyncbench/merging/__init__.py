"""Several results folders of one sweep become one.

In: folders that were filled on several machines or at several times. Out: one folder, and what it took up.
"""

from asyncbench.merging.folder import Merged as Merged, merge_folders as merge_folders
