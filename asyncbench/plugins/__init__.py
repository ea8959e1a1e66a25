"""Code of somebody's own: a function in a file that a sweep names, or what an installed package adds.

In: a name. Out: what it stands for, with a digest of its source, so that results can say which it was.
"""

from asyncbench.plugins.packages import Origin as Origin, WithPackages as WithPackages
from asyncbench.plugins.sources import (
    OwnFunction as OwnFunction,
    checked_callable as checked_callable,
    file_named as file_named,
    function_named as function_named,
    is_in_file as is_in_file,
    version_of as version_of,
)
