"""Tables and text for people: headings, numbers, LaTeX and HTML, and lines that fit a terminal."""

PUBLIC = (
    "data",
    "gates",
    "headings",
    "html",
    "latex",
    "numbers",
    "report",
    "screen",
)
