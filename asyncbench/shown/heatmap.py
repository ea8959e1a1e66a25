"""How good a share is, as a colour: red and dark where it is bad, green and light where it is good."""

from collections.abc import Callable
from colorsys import hls_to_rgb

from rich.color import Color
from rich.style import Style
from rich.text import Text

MISSING = "-"
SATURATION = 0.5  # the published scale names hue and lightness only
BLACK, WHITE = Color.from_rgb(0, 0, 0), Color.from_rgb(255, 255, 255)
LIGHT = 0.3  # from this goodness on black is the easier to read

Goodness = Callable[[float], float]  # a share in [0, 1] → 0 (bad) to 1 (as good as can be)


def of_accuracy(share: float) -> float:
    """Return how good an accuracy is."""
    return share


def of_deviate_rate(share: float) -> float:
    """Return how good a rate of wrong numbers is."""
    return 1 - share


def of_nan_rate(share: float) -> float:
    """Return how good a rate of unread replies is; steep near 0, where the published rates lie."""
    return 1.0 - float(share**0.3)


def shaded(text: str, goodness: float) -> Text:
    """Return a cell on the colour of its goodness; what is perfect is bold instead."""
    if goodness >= 1:
        return Text(text, style=Style(bold=True))
    ink = WHITE if goodness < LIGHT else BLACK
    return Text(text, style=Style(color=ink, bgcolor=colour(goodness)))


def colour(goodness: float) -> Color:
    """Return the published scale: hue 0° to 120°, lightness 0.3 to 0.7."""
    hue, lightness = goodness / 3, 0.3 + 0.4 * goodness  # hue: a share of the full circle
    return Color.from_rgb(*(round(255 * part) for part in hls_to_rgb(hue, lightness, SATURATION)))
