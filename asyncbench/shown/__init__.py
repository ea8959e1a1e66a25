"""How figures and tables are written for people: terminal text, Markdown, LaTeX, HTML for notebooks.

In: rows of cells. Out: text that fits its width. Text from models is made harmless.
"""

from asyncbench.shown.headings import (
    ACCURACY as ACCURACY,
    ANSWERED as ANSWERED,
    BEST_CASE as BEST_CASE,
    BOUND_BY as BOUND_BY,
    COST_KNOWN as COST_KNOWN,
    FORMAT as FORMAT,
    HEADINGS as HEADINGS,
    LOST as LOST,
    MAJORITY_AT_K as MAJORITY_AT_K,
    MEDIAN_LATENCY as MEDIAN_LATENCY,
    MEDIAN_TTFT as MEDIAN_TTFT,
    P95_LATENCY as P95_LATENCY,
    P95_TTFT as P95_TTFT,
    PASS_AT_K as PASS_AT_K,
    PASS_HAT_K as PASS_HAT_K,
    PER_CORRECT as PER_CORRECT,
    RIGHT_50 as RIGHT_50,
    RIGHT_90 as RIGHT_90,
)
from asyncbench.shown.numbers import (
    MISSING as MISSING,
    Goodness as Goodness,
    count as count,
    days as days,
    dollars as dollars,
    duration as duration,
    of_accuracy as of_accuracy,
    of_deviate_rate as of_deviate_rate,
    of_nan_rate as of_nan_rate,
    p_sentence as p_sentence,
    p_text as p_text,
    per_correct as per_correct,
    per_correct_text as per_correct_text,
    percent as percent,
    points as points,
    seconds as seconds,
    shaded as shaded,
    whole_percent as whole_percent,
)
from asyncbench.shown.screen import (
    Cell as Cell,
    as_lines as as_lines,
    columns as columns,
    fitted as fitted,
    folded as folded,
    middle_cut as middle_cut,
    natural_width as natural_width,
    safe as safe,
    safe_note as safe_note,
    safe_notes as safe_notes,
    shown_width as shown_width,
)
from asyncbench.shown.tables import (
    SIMULATED as SIMULATED,
    Report as Report,
    Sheet as Sheet,
    filled as filled,
    html_of as html_of,
    latex_of as latex_of,
    safe_note_markdown as safe_note_markdown,
)
