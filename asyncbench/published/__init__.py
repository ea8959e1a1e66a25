"""Other projects' result files: import and export.

What a file says of one trial is a `Recorded`; `import_files` keeps a file of them as a run of a results
folder, `export_folder` writes runs and sweeps as such files. `import_problems` makes a problem set of NUPA's
test set. Each format is a module; each module imports only from lines above its own:

    fields · names · places
    recorded · exported
    llm_arithmetic · integer_addition · nupa
    formats · keeping
    importing · exporting
"""

from asyncbench.published.exporting import export_folder
from asyncbench.published.importing import import_files
from asyncbench.published.nupa.files import import_problems

__all__ = ["export_folder", "import_files", "import_problems"]
