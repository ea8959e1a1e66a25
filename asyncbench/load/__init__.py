"""Load: calls at times drawn beforehand, whatever is in flight, and what each step of it came to.

In: the `load` block of a sweep and its trials. Out: the same events as of any other lane, and a row of
`steps` for each step. Each module imports only from lines above its own:

    arrivals
"""

from asyncbench.load.arrivals import due_times as due_times
