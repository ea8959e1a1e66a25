"""The pages that are made from the code: what is looked up, never copied by hand."""


def pages() -> dict[str, str]:
    """Return each page's Markdown by its path below docs/."""
    return {
        "reference/commands.md": "# Commands\n",
        "reference/sweep-file.md": "# The sweep file\n",
        "reference/results.md": "# The results folder\n",
        "reference/python.md": "# Python\n",
        "reference/suites-and-providers.md": "# Suites and providers\n",
    }
