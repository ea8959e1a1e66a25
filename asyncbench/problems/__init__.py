"""Problem sets: made with a seed, opened, checked, and streamed in batches.

In: a suite and its parameters, or a file, here or elsewhere. Out: problems, in the order of the file.
"""

PUBLIC = (
    "accepted",
    "choices",
    "copies",
    "custom",
    "files",
    "hub",
    "making",
    "opening",
    "problem_set",
    "recorded",
    "row_graders",
    "samples",
    "schema",
    "sorted_files",
    "text_files",
    "traces",
)
