"""Tables and text for people: headings, numbers, LaTeX and HTML, and lines that fit a terminal."""

PUBLIC = (
    "data",
    "gates",
    "headings",
    "numbers",
    "report",
    "screen",
)
