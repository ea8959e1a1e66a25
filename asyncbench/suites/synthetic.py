"""Synthetic questions of a wished number of tokens, each different from its first words on.

The text is from Lewis Carroll's "Alice's Adventures in Wonderland" (1865), which is in the public domain:
`alice.txt` has its prose without headings. A question is three words of the book, then pieces of it in
another order each time. No tokenizer is needed: a server has counted each piece, and where words end, tokens
end.
"""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from statistics import fmean
from typing import Final

from asyncbench.records import Draft

PIECES: Final = 32  # each is counted by a call of its own
PIECE_WORDS: Final = 6
OPENING: Final = "once there was"  # stands for any three short words
REQUEST: Final = " - tell the story that goes on from here, as long as you can."  # begins a token


@dataclass(frozen=True, slots=True)
class CountedPieces:
    """Pieces of text, and how many tokens a server counts for them."""

    pieces: Sequence[str]
    tokens: Sequence[float]  # of each piece behind a space
    shortest: int  # of a question without pieces: its opening and the request

    @property
    def fewest(self) -> float:
        """The tokens from which on a question can have any length."""
        return self.shortest + 2 * max(self.tokens)

    def scaled(self, tokens: int, counted: Sequence[int]) -> "CountedPieces":
        """Return the same after questions of so many tokens were counted: some servers only estimate."""
        factor = (fmean(counted) - self.shortest) / (tokens - self.shortest)
        return replace(self, tokens=[factor * length for length in self.tokens])


def text_pieces(seed: int) -> list[str]:
    """Return the pieces of a seed: words of the book that stand one after another."""
    words = _words()
    draw = random.Random(f"synthetic/pieces/{seed}")
    starts = draw.sample(range(0, len(words) - PIECE_WORDS, PIECE_WORDS), PIECES)
    return [" ".join(words[start : start + PIECE_WORDS]) for start in starts]


def worded(opening: str, pieces: Sequence[str]) -> str:
    """Return a question that begins with an opening and goes on with pieces."""
    return f"{' '.join([opening, *pieces])}{REQUEST}"


def synthetic_questions(seed: int, lengths: Iterable[int], counted: CountedPieces) -> Iterator[str]:
    """Yield a question of each length in tokens, or as near as pieces come.

    The same seed and counts give the same questions.
    """
    draw = random.Random(f"synthetic/{seed}")
    openings = sorted({word for word in _words() if word.isalpha() and word.islower() and len(word) < 6})
    longest = max(counted.tokens)
    numbers = range(len(counted.pieces))
    pairs: dict[float, list[tuple[int, ...]]] = {}  # by the tokens of both
    for m, n in product(numbers, numbers):
        pairs.setdefault(counted.tokens[m] + counted.tokens[n], []).append((m, n))
    shortest = min(pairs)
    fewer: dict[float, list[tuple[int, ...]]] = {0.0: [()]}  # a piece, or none
    for n in numbers:
        fewer.setdefault(counted.tokens[n], []).append((n,))
    for tokens in lengths:
        remaining: float = tokens - counted.shortest
        chosen = list[int]()
        while remaining > 2 * longest:
            leaving_a_pair: Sequence[int] = numbers
            if remaining < shortest + longest:
                leaving_a_pair = [n for n in numbers if remaining - counted.tokens[n] >= shortest]
            if not leaving_a_pair:  # where all pieces are about as long
                break
            chosen.append(draw.choice(leaving_a_pair))
            remaining -= counted.tokens[chosen[-1]]

        # The last two pieces come nearest to what is left; of several pairs one is drawn.
        last = pairs if remaining >= shortest else fewer
        nearest = min(last, key=lambda length: abs(remaining - length))
        chosen += draw.choice(last[nearest])
        yield worded(" ".join(draw.sample(openings, 3)), [counted.pieces[n] for n in chosen])


def draft_synthetic(question: str, **settings: object) -> Draft:
    """Return a problem that any reply answers; `settings` stand in its `extra`."""
    return Draft(
        suite="custom",
        task="synthetic",
        representation="text",
        length=len(question),
        question=question,
        expected="any",
        answer_type="text",
        extra=json.dumps({"grader": "any", **settings}),
    )


@cache
def _words() -> Sequence[str]:
    return files("asyncbench.suites").joinpath("alice.txt").read_text("utf-8").split()
