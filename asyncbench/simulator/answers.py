"""What the simulated models answer: a pure function of (seed, model name, question) and nothing else.

So faults, order, retries and resuming change no answer.
"""

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from asyncbench.simulator.questions import KnownAnswer

LENGTH_SCALE = 30.0  # `noisy` is right on exp(-length / LENGTH_SCALE) of the problems of a length
EMPTY_SHARE = 0.02  # of its wrong answers
DECORATED_SHARE = 0.1  # of its right answers: graders must read an answer out of a sentence, too

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?(/\d+)?")
_MANTISSA = re.compile(r"\d+(\.\d+)?")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

Answerer = Callable[[KnownAnswer, str], str]  # what is known, and the text that seeds whatever is drawn


def oracle(known: KnownAnswer, _seed: str) -> str:
    """Answer right, always."""
    return known.expected


def noisy(known: KnownAnswer, seed: str) -> str:
    """Answer wrong the more often the longer the problem is, the way models get numbers wrong."""
    draw = random.Random(seed)
    if draw.random() < math.exp(-known.length / LENGTH_SCALE):
        return f"The answer is {known.expected}." if draw.random() < DECORATED_SHARE else known.expected
    if draw.random() < EMPTY_SHARE:
        return ""
    return mistaken(known.expected, draw)


# `noisy-2` is `noisy` under another name: it errs on other problems.
MODELS: Mapping[str, Answerer] = {"oracle": oracle, "noisy": noisy}


def answerer(model: str) -> Answerer | None:
    """Return how the model of this name answers; None: there is no such model."""
    family, dash, suffix = model.partition("-")
    return None if dash and not suffix else MODELS.get(family)


def mistaken(expected: str, draw: random.Random) -> str:
    """Return an answer near the expected one that is never equal to it, in value or in text."""
    if _NUMBER.fullmatch(expected) is None:
        return _other_character(expected, draw)
    # Only the mantissa or numerator: a change there always changes the value, one elsewhere may not.
    start, end = _MANTISSA.search(expected).span()  # type: ignore[union-attr]  # every number holds one
    right = expected[start:end]
    wrong = next(text for text in _slips(right, draw) if text and Decimal(text) != Decimal(right))
    return expected[:start] + wrong + expected[end:]


def _slips(digits: str, draw: random.Random) -> Iterator[str]:
    """Yield slips of the pen in random order, the last of which surely changes the value."""
    places = [place for place, character in enumerate(digits) if character != "."]
    slips = [_dropped, _swapped, _carry_lost]
    for slip in draw.sample([*slips, _changed], k=len(slips) + 1):
        yield slip(digits, draw.choice(places), draw)
    yield _changed(digits, draw.choice(places), draw)


def _changed(digits: str, place: int, draw: random.Random) -> str:
    other = (int(digits[place]) + draw.randint(1, 9)) % 10
    return f"{digits[:place]}{other}{digits[place + 1 :]}"


def _carry_lost(digits: str, place: int, _draw: random.Random) -> str:
    return f"{digits[:place]}{(int(digits[place]) - 1) % 10}{digits[place + 1 :]}"


def _dropped(digits: str, place: int, _draw: random.Random) -> str:
    rest = digits[:place] + digits[place + 1 :]
    return rest if _MANTISSA.fullmatch(rest) else ""


def _swapped(digits: str, place: int, _draw: random.Random) -> str:
    pair = digits[place : place + 2]
    return digits[:place] + pair[::-1] + digits[place + 2 :] if pair.isdigit() else ""


def _other_character(text: str, draw: random.Random) -> str:
    place = draw.randrange(len(text)) if text else 0
    right = text[place : place + 1].lower()
    other = draw.choice([letter for letter in _LETTERS if letter != right])
    return text[:place] + other + text[place + 1 :]
