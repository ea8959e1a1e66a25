r"""Units of measure behind a number: `5 cm`, `5\text{ cm}`, `3 km/h`, `9.81 m/s^2`, `20 °C`.

Two units of one kind differ by a factor: 5 m is 500 cm. A word that is no unit, as in `5 apples`, says
nothing.
"""

import re
from fractions import Fraction
from typing import Final, NamedTuple


class Unit(NamedTuple):
    """What a unit measures and how large it is."""

    kind: frozenset[tuple[str, int]]  # base units with their powers: of km/h {(m, 1), (s, -1)}
    factor: Fraction  # how many of these base units it is


_SIZES: Final = {  # names → base unit, size
    "m metre metres meter meters": ("m", "1"),
    "km kilometre kilometres kilometer kilometers": ("m", "1000"),
    "dm decimetre decimetres decimeter decimeters": ("m", "1/10"),
    "cm centimetre centimetres centimeter centimeters": ("m", "1/100"),
    "mm millimetre millimetres millimeter millimeters": ("m", "1/1000"),
    "µm μm micrometre micrometres micrometer micrometers": ("m", "1/1000000"),
    "nm nanometre nanometres nanometer nanometers": ("m", "1/1000000000"),
    "inch inches": ("m", "254/10000"),
    "ft foot feet": ("m", "3048/10000"),
    "yd yard yards": ("m", "9144/10000"),
    "mi mile miles": ("m", "1609344/1000"),
    "g gram grams": ("g", "1"),
    "kg kilogram kilograms": ("g", "1000"),
    "mg milligram milligrams": ("g", "1/1000"),
    "tonne tonnes": ("g", "1000000"),
    "lb lbs pound pounds": ("g", "45359237/100000"),
    "oz ounce ounces": ("g", "45359237/1600000"),
    "s sec secs second seconds": ("s", "1"),
    "ms millisecond milliseconds": ("s", "1/1000"),
    "min mins minute minutes": ("s", "60"),
    "h hr hrs hour hours": ("s", "3600"),
    "day days": ("s", "86400"),
    "week weeks": ("s", "604800"),
    "year years": ("year", "1"),
    "month months": ("year", "1/12"),
    "mol mole moles": ("mol", "1"),
    "A ampere amperes amp amps": ("A", "1"),
    "K kelvin kelvins": ("K", "1"),
    "°C": ("°C", "1"),
    "°F": ("°F", "1"),
    "° degree degrees": ("°", "1"),
    "rad radian radians": ("rad", "1"),
    "USD dollar dollars": ("USD", "1"),
    "cent cents": ("USD", "1/100"),
    "EUR € euro euros": ("EUR", "1"),
}
_DERIVED: Final = {  # names → size in base units, those with their powers
    "L l litre litres liter liters": ("1/1000", {"m": 3}),
    "mL ml millilitre millilitres milliliter milliliters": ("1/1000000", {"m": 3}),
    "Hz hertz": ("1", {"s": -1}),
    "N newton newtons": ("1000", {"g": 1, "m": 1, "s": -2}),
    "J joule joules": ("1000", {"g": 1, "m": 2, "s": -2}),
    "kJ kilojoule kilojoules": ("1000000", {"g": 1, "m": 2, "s": -2}),
    "W watt watts": ("1000", {"g": 1, "m": 2, "s": -3}),
    "kW kilowatt kilowatts": ("1000000", {"g": 1, "m": 2, "s": -3}),
    "Pa pascal pascals": ("1000", {"g": 1, "m": -1, "s": -2}),
    "kPa": ("1000000", {"g": 1, "m": -1, "s": -2}),
    "V volt volts": ("1000", {"g": 1, "m": 2, "s": -3, "A": -1}),
    "mph": ("1609344/3600000", {"m": 1, "s": -1}),
}
_UNITS: Final = {
    name: Unit(frozenset({(base, 1)}), Fraction(size))
    for names, (base, size) in _SIZES.items()
    for name in names.split()
} | {
    name: Unit(frozenset(powers.items()), Fraction(size))
    for names, (size, powers) in _DERIVED.items()
    for name in names.split()
}

_DIGITS: Final = str.maketrans({"²": "2", "³": "3", "^": "", "{": "", "}": "", " ": ""})
_NAME: Final = "(?:" + "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True)) + r")(?![^\W\d_²³])"
_POWER: Final = r"(?:\s*\^\s*\{?\s*-?[1-9]\s*\}?|[²³])?"
_PER: Final = r"(?:\s*(?:/|·|\*|\\cdot\b|\bper\b)\s*|\s+)"
_PRODUCT: Final = f"{_NAME}{_POWER}(?:{_PER}{_NAME}{_POWER})*"
_QUANTITY: Final = re.compile(rf"(?<=[0-9)}}$])(?:[\s~)}}$]|\\[,;: !])*(?P<unit>{_PRODUCT})")
_FACTOR: Final = re.compile(f"(?P<per>{_PER})?(?P<name>{_NAME})(?P<power>{_POWER})")
_WRAPPED: Final = re.compile(r"\\(?:text|textrm|mathrm|rm|operatorname)\s*\{([^{}]*)\}")
_PER_LATEX: Final = re.compile(r"\\d?frac\s*\{([^{}0-9]*)\}\s*\{([^{}0-9]*)\}")
_DEGREE: Final = re.compile(r"\^\s*(?:\{\s*)?\\circ\b(?:\s*\})?|\\degree\b|º")


class Quantity(NamedTuple):
    """A text whose last number has a unit."""

    bare: str  # the text without it
    name: str  # of the unit, as it stands there
    unit: Unit


def measured(text: str) -> Quantity | None:
    """Return a text without the unit of its last number, or None if it has no unit."""
    text = _PER_LATEX.sub(r" \1/\2 ", _WRAPPED.sub(r"\1", _DEGREE.sub("°", text)))
    matches = list(_QUANTITY.finditer(text))
    if not matches or re.search("[0-9]", text[matches[-1].end() :]):
        return None
    start, end = matches[-1].span("unit")
    name = text[start:end]

    # A unit may be a product, as of km/h and kg m^2.
    kind, factor = dict[str, int](), Fraction(1)
    for match in _FACTOR.finditer(name):
        power = int(match["power"].translate(_DIGITS) or 1)
        if (match["per"] or "").strip() in ("/", "per"):
            power = -power
        named = _UNITS[match["name"]]
        factor *= named.factor**power
        for base, exponent in named.kind:
            kind[base] = kind.get(base, 0) + exponent * power
    unit = Unit(frozenset((base, power) for base, power in kind.items() if power), factor)

    return Quantity(f"{text[:start].rstrip()}{text[end:]}", name, unit)
