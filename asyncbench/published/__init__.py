"""Results of other projects: their files in and out, and the tables that they publish.

In: recorded trials, or a results folder. Out: a results folder, files in their format, and their tables. Each
benchmark has a folder of its own; each module imports only from lines above its own:

    printed · places · recorded · pictures · reports
    exported
    llm_arithmetic · integer_addition · nupa · inspect
    formats · keeping
    importing · exporting
"""

from asyncbench.published.exporting import export_folder as export_folder
from asyncbench.published.importing import import_files as import_files
from asyncbench.published.nupa.files import import_problems as import_problems
from asyncbench.published.pictures import PublishedPicture as PublishedPicture
from asyncbench.published.printed import PRINTED as PRINTED, published_table as published_table
from asyncbench.published.reports import PublishedReport as PublishedReport
