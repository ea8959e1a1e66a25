"""The colours of entrants: the same one in every chart, a lighter or darker one on the other ground.

Twelve that people with any colour vision tell apart as far as twelve can be, then twelve between them. Each
has a contrast of at least 3 : 1 to its ground.
"""

from typing import Final

LIGHT: Final = (
    *("#0b63ce", "#d55e00", "#079f86", "#a8409b", "#5a12a0", "#7b3801"),
    *("#1f93f5", "#64041c", "#857000", "#0d196e", "#3f6b47", "#4a4a4a"),
    *("#7f8eb5", "#bf7b67", "#1a8279", "#743b7b", "#372544", "#a63c08"),
    *("#153b68", "#c13361", "#a08f3c", "#6a6fe8", "#2b984a", "#80747a"),
)
DARK: Final = (
    *("#3fb8ff", "#ff9a2e", "#12cb8b", "#e66fbb", "#9a80ff", "#b58c14"),
    *("#aee9ff", "#dd4a48", "#ffdf33", "#4f7fe8", "#9af5a0", "#8a8f96"),
    *("#3978a0", "#a25f13", "#269669", "#daafc8", "#7457d1", "#fac36f"),
    *("#4ad2eb", "#ce6e77", "#c6ab6a", "#879cd7", "#b6d9b7", "#717171"),
)
CARDS: Final = {"light": "#ffffff", "dark": "#14171c"}  # the grounds


def colours_of(place: int) -> tuple[str, str]:
    """Return an entrant's colours on light and on dark ground; the 25th has those of the first."""
    return LIGHT[place % len(LIGHT)], DARK[place % len(DARK)]
