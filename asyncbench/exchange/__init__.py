"""Files of other projects, in and out: recorded trials, problem sets, and results for their tools.

In: their files, or a results folder. Out: a results folder, or files in their format. Each module imports
only from lines above its own:

    places · recorded · aggregate
    exported
    llm_arithmetic · integer_addition · nupa · inspect
    formats · keeping
    importing · exporting
    batch_files
"""

from asyncbench.exchange.batch_files import (
    HandedIn as HandedIn,
    export_batches as export_batches,
    hand_in_results as hand_in_results,
    import_batches as import_batches,
)
from asyncbench.exchange.exporting import export_folder as export_folder
from asyncbench.exchange.importing import Imported as Imported, import_files as import_files
from asyncbench.exchange.nupa import import_problems as import_problems
