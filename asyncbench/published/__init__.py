"""Published benchmarks: their files, read and written, and their tables and pictures beside ours."""

PUBLIC = (
    "exported",
    "formats",
    "integer_addition.report",
    "llm_arithmetic.report",
    "nupa.files",
    "nupa.report",
    "recorded",
    "reports",
)
