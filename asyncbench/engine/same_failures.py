"""Calls of a model that fail in the same way one after another: that is no matter of their questions.

A dead account fails whatever is asked, and says so in words that nobody foresaw, and that may differ each
time: a balance, the name of a request, a proverb. So a trial that fails for good is held first. An answer, or
a failure of another kind or status, shows that each held one failed by itself. Where the same goes on, the
model is suspended, and what is held stays open. Where the words differ, more calls are needed to tell.
"""

import math
import re
from typing import Final

from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.errors import ErrorKind, ProviderError

PROOF: Final = 3  # trials of a model without success, refused in the same words: it is not their questions
UNLIKELY: Final = 1e-5  # that so many in a row failed each by itself, as seldom as others did
MOST_NEEDED: Final = 100  # calls in a row, however many failed before
PROBES: Final = 2  # calls from elsewhere in the set, of a model that was answered before
IN_OTHER_WORDS: Final = 10  # calls in a row, where hardly a word is the same, and twice as many as else
ALIKE: Final = 0.6  # of the words of the shorter of two errors are in the other
PAGES: Final = 5  # of a model without success: replies that no server of such an API wrote
MINUTE_S: Final = 60.0  # of nothing else, where a failure may pass, or be about what is asked
LONGEST_GAP_S: Final = 30.0  # between two calls that may be billed

# What two errors may differ in: ids and times, and what is quoted of a request.
_OWN_WORDS: Final = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|[\w-]*\d[\w-]*|[A-Za-z_-]{20,}")
_WORD: Final = re.compile(r"\w+")
# Failures that say nothing here: a lane waits for the end of an outage by itself.
OUTAGE: Final = frozenset(
    {
        ErrorKind.RATE_LIMITED,
        ErrorKind.OVERLOADED,
        ErrorKind.TIMEOUT,
        ErrorKind.UNREACHABLE,
        ErrorKind.SERVER_ERROR,
    }
)
_OF_THE_QUESTION: Final = frozenset({ErrorKind.TOO_LONG, ErrorKind.BLOCKED})
_NOT_FOUND: Final = 404  # of a question: our simulator does not know it


class SameFailures:
    """The latest calls of one model, as far as all failed in the same way; times are the loop's clock.

    Args:
        answers: of earlier runs.
    """

    def __init__(self, *, answers: int) -> None:
        self.accepted = answers > 0  # requests as such: some were answered, or failed in different ways
        self.held: list[tuple[PendingTrial, ProviderError]] = []
        self.next_s = -math.inf  # no call before that
        self._answers, self._failures = answers, 0  # of this run; those of the present row apart
        self._kind: tuple[ErrorKind, int | None] | None = None
        self._words: frozenset[str] = frozenset()  # of the first error of the present row
        self._alike = True  # all of the row say so in much the same words
        self._calls = 0  # in the present row
        self._trials = set[str]()  # of these, up to `PROOF`
        self._probes = 0  # of them, those that were to tell whether anything would fail
        self._first_s = -math.inf  # when the first of the row ended
        self._suspicious_s = math.inf  # since when calls are to tell
        self._since_s = math.inf  # when the first of them was sent
        self._at_s = -math.inf  # when the latest of them ended
        self._foreign = False
        self.why = ""  # they fail, for a person

    def answered(self, pending: PendingTrial) -> bool:
        """Take in an answer; return whether it ends the row: it was asked after the first failure was there.

        One that was asked before may have been the last of an account: proof is counted anew.
        """
        self._answers += 1
        self.accepted = True
        if pending.sent_s < self._first_s and not _is_batched(pending):
            self._start_over()
            return False
        self._end()
        return True

    def failed(self, pending: PendingTrial, error: ProviderError, at_s: float) -> bool:
        """Take in a failure; return whether it ends the row of those before."""
        kind = (error.kind, error.http_status)
        # Its words without status and code, and without what it tells of one call alone.
        message = error.message.partition(": ")[2] or error.message
        words = frozenset(_WORD.findall(_OWN_WORDS.sub(" ", message).lower()))
        differs = self._kind is not None and kind != self._kind
        if differs:
            self._end()
        if not self._calls:
            self._words, self._alike = words, True
        shared = len(words & self._words) >= ALIKE * min(len(words), len(self._words))
        self._alike = self._alike and shared
        self._kind, self._foreign = kind, error.foreign
        prefix = "no reply so far can be read: " if error.kind is ErrorKind.BAD_REPLY else ""
        self.why = f"{error.kind.value}: {prefix}{error.message}"
        self._since_s, self._at_s = min(self._since_s, pending.sent_s), at_s
        self._calls += 1
        if len(self._trials) < PROOF:
            self._trials.add(pending.request.trial.trial_id)
        self._first_s = at_s if self._first_s == -math.inf else self._first_s
        self._probes += pending.sent_s >= self._suspicious_s or _is_batched(pending)
        if self.suspicious:
            self._suspicious_s = min(self._suspicious_s, at_s)
        if self.suspicious and self._passes:
            gap_s = min(LONGEST_GAP_S, 2.0 ** (self._calls - self._half))
            self.next_s = at_s + gap_s
        return differs

    def _end(self) -> None:
        self.accepted = True
        self._failures += self._calls
        self._kind, self._first_s = None, -math.inf
        self._start_over()

    def _start_over(self) -> None:
        self._calls, self._probes, self._since_s = 0, 0, math.inf
        self._suspicious_s, self.next_s = math.inf, -math.inf
        self._trials.clear()

    @property
    def suspicious(self) -> bool:
        """Whether it looks as if anything would fail: one call at a time is to tell."""
        return len(self.held) >= self._half or (self._calls >= self._half and self._several)

    @property
    def certain(self) -> bool:
        """Whether whatever is asked fails in the same way."""
        needs_time = self._concerns_question or (self._passes and not self._misdirected)
        lasts = not needs_time or self._at_s - self._since_s >= MINUTE_S
        is_probed = self._probes >= PROBES or not self.accepted
        return lasts and is_probed and self._calls >= self._needed and self._several

    @property
    def _several(self) -> bool:
        """Whether so many trials failed that it is none of theirs alone."""
        return len(self._trials) >= PROOF or self._misdirected

    @property
    def _misdirected(self) -> bool:
        """Whether another server than that of the API seems to answer."""
        return self._foreign and not self.accepted

    @property
    def _passes(self) -> bool:
        """Whether such a failure may pass, so that its trials are tried again."""
        return self._kind is not None and self._kind[0] is ErrorKind.BAD_REPLY

    @property
    def _concerns_question(self) -> bool:
        kind, status = self._kind or (None, None)
        return kind in _OF_THE_QUESTION or status == _NOT_FOUND

    @property
    def _needed(self) -> int:
        """The calls in a row that are enough: the fewer, the fewer failed before."""
        if self._concerns_question:
            return MOST_NEEDED
        if self._passes:
            return PAGES if self._misdirected else self._half
        enough = self._unlikely if self.accepted else PROOF
        return enough if self._alike else max(IN_OTHER_WORDS, 2 * enough)

    @property
    def _half(self) -> int:
        if self._concerns_question:
            return MOST_NEEDED
        if not self._alike and not self._passes:
            return self._needed // 2
        return max(PROOF, self._unlikely // 2) if self.accepted or self._passes else PROOF

    @property
    def _unlikely(self) -> int:
        failing = (self._failures + 0.5) / (self._answers + self._failures + 1)
        return max(PROOF, min(MOST_NEEDED, math.ceil(math.log(UNLIKELY) / math.log(failing))))


def _is_batched(pending: PendingTrial) -> bool:
    """Whether a trial comes from a batch, which was sent before its trials were read again."""
    return pending.sent_s < pending.taken_s
