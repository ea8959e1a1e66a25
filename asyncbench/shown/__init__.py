"""How figures and tables are written for people: terminal text, Markdown, LaTeX.

In: rows of cells. Out: text that fits its width and is harmless, whoever wrote what it quotes.
"""

from asyncbench.shown.heatmap import MISSING, Goodness, of_accuracy, of_deviate_rate, of_nan_rate, shaded
from asyncbench.shown.screen import (
    Cell,
    as_lines,
    columns,
    fitted,
    folded,
    middle_cut,
    natural_width,
    safe,
    safe_note,
    safe_notes,
    shown_width,
)
from asyncbench.shown.tables import (
    SIMULATED,
    Report,
    Sheet,
    count,
    dollars,
    latex_of,
    per_correct,
    per_correct_text,
    percent,
    safe_note_markdown,
    seconds,
)

__all__ = [
    "MISSING",
    "SIMULATED",
    "Cell",
    "Goodness",
    "Report",
    "Sheet",
    "as_lines",
    "columns",
    "count",
    "dollars",
    "fitted",
    "folded",
    "latex_of",
    "middle_cut",
    "natural_width",
    "of_accuracy",
    "of_deviate_rate",
    "of_nan_rate",
    "per_correct",
    "per_correct_text",
    "percent",
    "safe",
    "safe_note",
    "safe_note_markdown",
    "safe_notes",
    "seconds",
    "shaded",
    "shown_width",
]
