"""The tables and pictures that published benchmarks print of their results, counted from a results folder.

In: a results folder. Out: reports and pictures, with what the benchmark's own document prints beside them.
Each benchmark has a folder of its own; each module imports only from lines above its own:

    printed · pictures · reports
    llm_arithmetic · integer_addition · nupa
"""

from asyncbench.published.pictures import PublishedPicture as PublishedPicture
from asyncbench.published.printed import PRINTED as PRINTED, published_table as published_table
from asyncbench.published.reports import PublishedReport as PublishedReport
