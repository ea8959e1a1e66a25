"""What a broken connection means: aiohttp's errors, beneath whatever an SDK wraps around them."""

from collections.abc import Iterator
from typing import Final

import aiohttp

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.failures import told
from asyncbench.providers.secrets import hush

_BROKE_OFF: Final = "the reply broke off or was not HTTP"
# First match wins: children before parents.
KINDS: Final[tuple[tuple[type[BaseException], ErrorKind, str], ...]] = (
    (aiohttp.ConnectionTimeoutError, ErrorKind.UNREACHABLE, "no connection within timeouts.connect"),
    (aiohttp.ServerTimeoutError, ErrorKind.TIMEOUT, "no word within timeouts.total"),
    (aiohttp.ClientConnectionError, ErrorKind.UNREACHABLE, "no connection, or lost before an answer"),
    (aiohttp.ClientError, ErrorKind.BAD_REPLY, _BROKE_OFF),
    (TimeoutError, ErrorKind.TIMEOUT, "no whole reply within timeouts.total"),  # our own deadline
    (OSError, ErrorKind.UNREACHABLE, "no connection"),
)


def broken(error: BaseException, *, key: str, sent: bool = False, answered: bool = False) -> ProviderError:
    """Say what an error without a whole response means.

    Args:
        error: of a library; its causes are looked at.
        key: the API key, which the message must not repeat.
        sent: the whole request was handed over: it may be worked for, and billed.
        answered: the answer had begun, and may be billed: then nothing is called unreachable.

    The names that SDKs give are not believed: openai 3.52 calls refused, unknown and reset connections
    timeouts. Without an error of aiohttp among the causes the connection held, and what came over it
    could not be read (a false Content-Encoding, say).
    """
    hush(error, key=key)
    for cause in _causes(error):
        for family, kind, meaning in KINDS:
            if isinstance(cause, family):
                if answered and kind is ErrorKind.UNREACHABLE:
                    kind, meaning = ErrorKind.BAD_REPLY, _BROKE_OFF
                return ProviderError(
                    kind,
                    told(f"{meaning}: {cause}".removesuffix(": "), key=key),
                    may_have_been_billed=True if sent else None,
                )
    *_, last = _causes(error)
    return ProviderError(ErrorKind.BAD_REPLY, told(f"the reply cannot be read: {last}", key=key))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
