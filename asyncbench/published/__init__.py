"""Published benchmarks: their files, read and written, and their tables and pictures beside ours."""

PUBLIC = (
    "files",
    "formats",
    "integer_addition.report",
    "llm_arithmetic.counts",
    "llm_arithmetic.report",
    "nupa.counts",
    "nupa.files",
    "nupa.report",
    "reports",
)
