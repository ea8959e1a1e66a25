"""Colours of series: apart for people with deuteranopia, and apart in grey."""

import math
from itertools import combinations, pairwise

import pytest

from asyncbench.page.charts.chart import THEMES
from tests.page.charts.test_breaks import linear
from tests.rows import each_row

# Machado, Oliveira and Fernandes 2009: deuteranopia, severity 1, of linear RGB
DEUTERANOPIA = (
    (0.367322, 0.860646, -0.227968),
    (0.280085, 0.672501, 0.047413),
    (-0.011820, 0.042940, 0.968881),
)
XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)


def product(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def deuteranopic(rgb):
    return [min(1, max(0, part)) for part in product(DEUTERANOPIA, rgb)]


def lab(rgb):
    """CIELAB of linear RGB, under D65."""
    x, y, z = (
        t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
        for t in (part / white for part, white in zip(product(XYZ, rgb), WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(first, second):
    """Sharma, Wu and Dalal 2005."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    c7 = ((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2) ** 7
    stretch = 1.5 - 0.5 * math.sqrt(c7 / (c7 + 25**7))
    c1, c2 = math.hypot(a1 * stretch, b1), math.hypot(a2 * stretch, b2)
    h1, h2 = (math.degrees(math.atan2(b, a * stretch)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0
    hue = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    hue_step = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2))
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    waves = ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.2, 4, -63))
    t = 1 + sum(a * math.cos(math.radians(n * hue + shift)) for a, n, shift in waves)
    sl = 1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2)
    sc, sh = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    spread = 60 * math.exp(-(((hue - 275) / 25) ** 2))
    turned = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7)) * math.sin(math.radians(spread))
    dl, dc, dh = (l2 - l1) / sl, (c2 - c1) / sc, hue_step / sh
    return math.sqrt(dl**2 + dc**2 + dh**2 + turned * dc * dh)


@each_row(
    ("first", "second", "distance"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
        ((50, 2.5, 0), (58, 24, 15), 19.4535),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_distances_are_those_that_the_formulas_authors_print(first, second, distance):
    assert ciede2000(first, second) == pytest.approx(distance, abs=1e-4)


@pytest.mark.parametrize("theme", THEMES)
def test_colours_of_series_stay_apart_under_deuteranopia_and_in_grey(theme):
    colours = [linear(colour) for colour in THEMES[theme]["range"]["category"]]
    for seen in (colours, [*map(deuteranopic, colours)]):
        assert min(ciede2000(lab(one), lab(other)) for one, other in combinations(seen, 2)) >= 15
    lightness = sorted(lab(colour)[0] for colour in colours)
    assert min(lighter - darker for darker, lighter in pairwise(lightness)) >= 7
