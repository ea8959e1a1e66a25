"""What aiohttp's errors mean, whoever wraps them."""

import inspect
import itertools

import aiohttp
import pytest

from asyncbench.errors import ErrorKind
from asyncbench.providers.http import KINDS, broken

EVERY_ERROR = {
    value
    for value in vars(aiohttp).values()
    if inspect.isclass(value) and issubclass(value, aiohttp.ClientError)
}
UNREACHABLE = {
    aiohttp.ClientConnectionError,
    aiohttp.ClientConnectionResetError,
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ClientConnectorDNSError,
    aiohttp.ClientConnectorError,
    aiohttp.ClientConnectorSSLError,
    aiohttp.ClientOSError,
    aiohttp.ClientProxyConnectionError,
    aiohttp.ClientSSLError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ServerConnectionError,
    aiohttp.ServerDisconnectedError,
    aiohttp.ServerFingerprintMismatch,
}
TIMEOUT = {aiohttp.ServerTimeoutError, aiohttp.SocketTimeoutError}


def kind_of(error: type[BaseException]) -> ErrorKind:
    return next(kind for family, kind, _ in KINDS if issubclass(error, family))


def test_no_row_stands_below_its_parent():
    assert len(KINDS) > 1
    for (above, *_), (below, *_) in itertools.combinations(KINDS, 2):
        assert not issubclass(below, above)


def test_every_error_of_aiohttp_is_deliberately_placed():
    """A new release cannot add an error that is silently called a bad reply."""
    assert {error for error in EVERY_ERROR if kind_of(error) is ErrorKind.UNREACHABLE} == UNREACHABLE
    assert {error for error in EVERY_ERROR if kind_of(error) is ErrorKind.TIMEOUT} == TIMEOUT


@pytest.mark.parametrize("error", [OSError, ConnectionResetError])
def test_an_error_of_the_system_is_unreachable(error):
    assert broken(error("no route"), key="").kind is ErrorKind.UNREACHABLE


def test_the_cause_is_believed_and_not_the_name():
    host = aiohttp.ClientConnectionError("no such host")
    named = SDKTimeoutError("Request timed out.")
    named.__cause__ = host

    error = broken(named, key="")

    assert error.kind is ErrorKind.UNREACHABLE
    assert error.message == "the connection was lost before an answer: no such host"


class SDKTimeoutError(Exception):
    """Neither aiohttp's nor the system's."""


@pytest.mark.parametrize("error", [aiohttp.ClientConnectionError("gone"), ConnectionResetError("gone")])
def test_what_breaks_after_the_answer_began_may_be_billed(error):
    """A server that was there cannot be called unreachable."""
    assert broken(error, key="", answered=True).kind is ErrorKind.BAD_REPLY
    assert broken(aiohttp.ServerTimeoutError(), key="", answered=True).kind is ErrorKind.TIMEOUT


@pytest.mark.parametrize("error", [aiohttp.ServerDisconnectedError(), ConnectionResetError("gone")])
def test_what_breaks_after_the_request_was_handed_over_may_be_billed(error):
    assert broken(error, key="", sent=True).may_have_been_billed
    assert not broken(error, key="", sent=False).may_have_been_billed


def test_an_error_without_a_known_cause_is_a_bad_reply():
    wrapped = SDKTimeoutError("Connection error.")
    wrapped.__cause__ = ValueError("incorrect header check")

    error = broken(wrapped, key="")

    assert (error.kind, error.message) == (
        ErrorKind.BAD_REPLY,
        "the reply cannot be read: incorrect header check",
    )


def test_a_deadline_names_the_setting():
    assert broken(TimeoutError(), key="").message == "no complete reply within timeouts.total"
