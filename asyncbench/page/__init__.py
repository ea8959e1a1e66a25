"""The page of results: charts, the file to mail, and the server of `asyncbench view`."""

PUBLIC = (
    "charts.figure_files",
    "live.serving",
    "report_page",
    "writing",
)
