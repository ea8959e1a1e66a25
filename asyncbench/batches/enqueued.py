"""How much may wait in batches at once: a vendor's limit, given or learnt from what it refuses."""

import re
from contextlib import suppress
from typing import Final

FIRST_TOKENS: Final = 80_000.0  # of the first parts, where no limit is known: every account takes as many
SHARE: Final = 0.9  # of a limit that a refusal told
STEP, BACK = 1.2, 1.01  # an estimate that was too low: up with each refusal, back with each batch taken
FIRST_WAIT_S, LONGEST_WAIT_S = 60.0, 900.0  # between two tries while the vendor refuses

_LIMIT = re.compile(r"limit:?\s+(?:of\s+)?(\d[\d,_]*)", re.IGNORECASE)
_ORGANIZATION = re.compile(r"\borg(?:anization)?[ -]\S+")


def limit_told(message: str) -> float | None:
    """Return the limit that a refusal names, with commas or without; None: it names none."""
    for found in _LIMIT.finditer(message):
        with suppress(ValueError):
            return float(found[1].replace(",", "").replace("_", ""))
    return None


def without_organization(message: str) -> str:
    """Return a refusal without the name of the organization, which is nobody else's business."""
    return _ORGANIZATION.sub("organization …", message)


class EnqueuedLimit:
    """What one model's unfinished batches may hold together, in tokens as we estimate them.

    Where a limit is set or was told it holds. Else the first part is small, and what may wait doubles each
    time that the vendor takes it. Batches of others count, too: then nothing helps but to wait.
    """

    def __init__(
        self, given: float | None = None, *, first: float = FIRST_TOKENS, most_factor: float = 4.0
    ) -> None:
        """Begin.

        Args:
            given: the limit that a user knows; None: it is to be learnt.
            first: what may wait at first where it is not known.
            most_factor: the most that a prompt may count in place of its own tokens, such as with the longest
                reply that it allows; a refusal beyond it is about batches of others.
        """
        self._given, self._grown = given, first
        self._told: float | None = None
        self._factor, self._most_factor = 1.0, most_factor  # the vendor's tokens for one of ours
        self._held: dict[str, float] = {}  # key of a batch → its tokens
        self._refusals = 0  # since a batch was taken

    @property
    def most(self) -> float:
        """The most tokens that may wait together, and so of one part."""
        known = [limit for limit in (self._given, self._told) if limit is not None]
        return min(known or [self._grown]) / self._factor

    @property
    def free(self) -> float:
        """The tokens that may be added now."""
        return self.most - sum(self._held.values())

    @property
    def wait_s(self) -> float:
        """How long to wait before the next try: longer with each refusal in a row, 0 after none."""
        return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (self._refusals - 1)) if self._refusals else 0.0

    def admits(self, tokens: float) -> bool:
        """Tell whether a part may be submitted now; one larger than `most` has to be packed anew."""
        return tokens <= self.free

    def submitted(self, key: str, tokens: float) -> None:
        """Count a part, from the moment on at which it may have been created."""
        self._held[key] = tokens

    def taken(self, key: str) -> None:
        """Note that the vendor validated a batch and runs it."""
        if key not in self._held:
            return
        self._refusals = 0
        self._factor = max(1.0, self._factor / BACK)
        self._grown = max(self._grown, 2 * sum(self._held.values()))

    def ended(self, key: str) -> None:
        """Give back what an ended batch held, however it ended."""
        self._held.pop(key, None)

    def refused(self, key: str, message: str) -> None:
        """Learn from a refusal, which may come with the create or by polling."""
        tokens, told = self._held.pop(key, 0.0), limit_told(message)
        self._refusals += 1
        together = tokens + sum(self._held.values())
        if told is None:
            self._grown = max(1.0, together / 2)
            return
        self._told = SHARE * told
        if together * self._factor <= self._told:  # it should have fitted
            self._factor = min(self._most_factor, self._factor * STEP)
