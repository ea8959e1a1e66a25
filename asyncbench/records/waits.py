"""The causes for which a lane starts no call: one word each for screens and tables, and what it means."""

from collections.abc import Mapping
from typing import Final

WORK: Final = "work"  # nothing to ask: the source is dry or still being read, or what is left waits
CONCURRENCY: Final = "concurrency"  # all slots are taken
BUDGET: Final = "budget"  # what calls in flight may still cost leaves no money for another
PAUSE: Final = "pause"  # the provider refuses everything for now
CLIENT: Final = "client"  # our own event loop is late
FIRST_ANSWER: Final = "first_answer"  # it is not known yet whether key and model are good
RETRIES: Final = "retries"  # too many trials wait to be tried again
RAMP: Final = "ramp"  # connections are opened no faster
RESUME: Final = "resume"  # a person paused the run

# What a screen tells apart beside them: `concurrency` that nobody set, a `pause` without refusals, and limits
# of which a share alone is used, or that are guessed, because calls were refused; and money that is kept for
# models that share a budget and are behind.
SERVER: Final = "server"
NO_REPLY: Final = "no_reply"
BACK_OFF: Final = "back_off"
OTHERS: Final = "others"

# Cause → its word, and what completes "no call could start because"; None: no lane counts its seconds.
_CAUSES: Final[Mapping[str, tuple[str, str | None]]] = {
    "requests": ("RPM", "of the limit on requests per minute"),
    "tokens": ("TPM", "of the limit on tokens per minute"),
    "input_tokens": ("input TPM", "of the limit on input tokens per minute"),
    "output_tokens": ("output TPM", "of the limit on output tokens per minute"),
    "day": ("daily limit", "of a limit per day"),
    CONCURRENCY: ("concurrency", "every slot was taken"),
    PAUSE: ("429 pause", "the provider refused everything"),
    CLIENT: ("this computer", "asyncbench's own event loop was late"),
    RAMP: ("ramp-up", "connections are opened no faster"),
    RETRIES: ("retries", "too many trials waited for a retry"),
    WORK: ("last calls", "there was nothing to ask"),
    BUDGET: ("reserved money", "the budget left no money for another call, or other models are behind"),
    FIRST_ANSWER: ("first reply", "no call has shown yet that the key and the model work"),
    RESUME: ("paused", "somebody paused the run"),
    SERVER: ("server", None),
    NO_REPLY: ("no reply", None),
    BACK_OFF: ("429 back-off", None),
    OTHERS: ("other models", None),
}
WORDS: Final = {cause: word for cause, (word, _) in _CAUSES.items()}
REASONS: Final = {cause: why for cause, (_, why) in _CAUSES.items() if why}
