"""Refusals and unreachable providers: one message for each, with a way out. Bugs of asyncbench likewise."""

import re
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from asyncbench.engine.telemetry import Counters
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.functions import PYTHON
from asyncbench.providers.secrets import withhold_secret
from asyncbench.records import Model

# ── Bugs of asyncbench that single replies reveal
# A bug of an adapter, a wire format or a grader costs one call or one grade, never a run.


FAULTS: Final = "faults.txt"  # in the results folder
LONGEST_TRACE: Final = 20_000  # characters of one of them: its beginning and its end


class Faults:
    """The first traceback of each kind of fault of each model, in a file of the results folder."""

    def __init__(self, folder: Path, keys: Collection[str]) -> None:
        self._file = folder / FAULTS
        self._keys = [key for key in keys if key]
        self._reported: set[tuple[str, str]] = set()

    def note(self, alias: str, error: Exception) -> None:
        """Write a fault down, without any API key, if it is the first of its kind in this run.

        A file that cannot be written is no reason to stop: what was counted is told all the same.
        """
        kind = alias, type(error).__name__
        if kind in self._reported:
            return
        self._reported.add(kind)
        text = "".join(traceback.format_exception(error))
        for key in self._keys:
            text = withhold_secret(text, key=key)
        if len(text) > LONGEST_TRACE:
            text = f"{text[: LONGEST_TRACE // 2]}\n[…]\n{text[-LONGEST_TRACE // 2 :]}"
        head = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, model {alias}\n"
        with suppress(OSError), self._file.open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{head}{text}\n")


# ── Refusals of providers

SHOWN_MODELS: Final = 3
LONGEST: Final = 240  # characters of what a provider said

# Why a model stops, where the provider's words do not say it, and what to do; {key} is filled in.
WHY: Final[Mapping[str, tuple[str, str]]] = {
    ErrorKind.AUTH: ("the provider rejects {key}", "Set a valid key"),
    ErrorKind.NO_QUOTA: ("the quota or the credit is used up", "Add credit or raise the limit there"),
    ErrorKind.UNREACHABLE: ("", "Start the server, or check its address and your network"),
    ErrorKind.NO_SUCH_MODEL: ("the provider does not know the model", "Check its name and base_url"),
    ErrorKind.REJECTED_PARAMETER: ("the provider rejects a parameter", "Change it in the sweep"),
    ErrorKind.BAD_REQUEST: (
        "the provider rejects every request",
        "Check your account there, and the model's entry in the sweep",
    ),
    ErrorKind.TOO_LONG: (
        "the provider finds every request too long",
        "Lower max_tokens, or leave out long problems",
    ),
    ErrorKind.BLOCKED: ("the provider blocks every request", "Check your account there"),
    ErrorKind.RATE_LIMITED: ("the provider refuses every call", "Wait, or check your rate limit there"),
    ErrorKind.OVERLOADED: ("the provider refuses every call", "Wait until it has room"),
}
ELSE: Final = ("no call succeeds", "Check the server")
NO_KEY: Final = "no key was sent: set key_env (or --key-env)"
KEY_NAME: Final = "the NAME of the environment variable that holds the key"
_WHO_ARE_YOU: Final = re.compile(r"\bHTTP (401|403)\b|\bkey\b", re.IGNORECASE)  # else the key is not missed
OF_PROVIDER: Final = frozenset({ErrorKind.AUTH, ErrorKind.NO_QUOTA, ErrorKind.UNREACHABLE})


class _Cause(NamedTuple):
    """Common cause of models that stop."""

    kind: str
    source: str  # a provider with its address, or a model
    key_env: str | None


class Refusals:
    """Refusals of providers in one run; each is reported once."""

    def __init__(
        self, models: Iterable[Model], notify: Callable[[str], None], *, retries: bool = True
    ) -> None:
        self._models, self._notify = list(models), notify
        self._goes_on = "asyncbench keeps trying" if retries else "The load goes on to the end of its step"
        self._reported: set[tuple[_Cause, bool]] = set()  # and whether its models have stopped

    def failed(self, model: Model, error: ProviderError) -> None:
        """Say at the first call that a server cannot be reached, or a function fails; others follow."""
        if error.fault is not None:
            cause = _Cause(type(error.fault).__name__, model.alias, None)
            if self._is_new(cause, stopped=False):
                self._notify(f"{model.alias}: {_shortened(error.message)}. {FAULTS} has the traceback.")
            return
        if error.kind is not ErrorKind.UNREACHABLE:
            return
        cause = _cause_of(model, error.kind)
        if self._is_new(cause, stopped=False):  # each failed call comes here
            why, remedy = _why(model, f"{error.kind.value}: {error.message}")
            self._notify(f"{cause.source}: {why}. {self._goes_on}{self._note_on_others(cause)}. {remedy}.")

    def stopped(self, model: Model, reason: str) -> None:
        """Say why a model stops, once for all with that cause; `reason` is as in `Counters.suspended`."""
        cause = _cause_of(model, reason.partition(":")[0])
        if self._is_new(cause, stopped=True):
            why, remedy = _why(model, reason)
            stops = "It stops"
            if cause.kind in OF_PROVIDER:
                alike = sum(_cause_of(candidate, cause.kind) == cause for candidate in self._models)
                # Each is asked itself: a key may be good for some models of a provider.
                each = ", and each model there that is refused like it" if alike > 1 else ""
                stops = f"{model.alias} stops{each}"
            stops += self._note_on_others(cause)
            waits = ""
            if cause.kind == ErrorKind.UNREACHABLE:
                waits = " To wait for it, set `unreachable_s` under `retry`."
            self._notify(f"{cause.source}: {why}. {stops}. {remedy}, then run again.{waits}")

    def _note_on_others(self, cause: _Cause) -> str:
        """Return that models without this cause go on, if there are any."""
        several = any(_cause_of(model, cause.kind) != cause for model in self._models)
        return "; the other models go on" if several else ""

    def _is_new(self, cause: _Cause, *, stopped: bool) -> bool:
        """Return whether a cause was not reported before, and note that it is now."""
        is_new = (cause, stopped) not in self._reported
        self._reported.add((cause, stopped))
        return is_new


def stop_lines(models: Iterable[Model], counters: Mapping[str, Counters]) -> list[str]:
    """Return why models stopped and what to do, a line for each reason."""
    by_cause: dict[_Cause, list[Model]] = {}
    for model in models:
        if reason := counters[model.alias].suspended:
            by_cause.setdefault(_cause_of(model, reason.partition(":")[0]), []).append(model)
    lines = []
    for stopped in by_cause.values():
        names = ", ".join(model.alias for model in stopped[:SHOWN_MODELS])
        more = len(stopped) - SHOWN_MODELS
        reason = counters[stopped[0].alias].suspended or ""
        several = f" and {more:,} more" if more > 0 else ""
        why, remedy = _why(stopped[0], reason)
        lines.append(f"stopped: {names}{several}: {why}. {remedy}, then run again.")
    return lines


def _why(model: Model, reason: str) -> tuple[str, str]:
    """Return the reason, with the provider's words, and the way out."""
    kind, _, message = reason.partition(": ")
    if model.provider == PYTHON:
        return _shortened(message), "Correct the function"
    why, remedy = WHY.get(kind, ELSE)
    if kind == ErrorKind.AUTH and sends_no_key(model) and _WHO_ARE_YOU.search(message):
        return f"{NO_KEY} ({_shortened(message)})", f"Set it to {KEY_NAME}"
    key = "the call" if model.key_env is None else f"the key in {model.key_env}"
    if (lent := known_endpoints()[model.provider].credentials) and kind == ErrorKind.AUTH:
        key, remedy = "the credentials of this machine", f"Renew them, {lent}"
    message = _shortened(message)
    return f"{why.format(key=key)} ({message})" if why else message, remedy


def _shortened(message: str) -> str:
    return message.rstrip(".") if len(message) <= LONGEST else f"{message[:LONGEST]}…"


def sends_no_key(model: Model) -> bool:
    """Return whether nothing in the calls of a model says who asks: no key, header, query or certificate."""
    lent = known_endpoints()[model.provider].credentials
    return not (model.variables or model.simulated or lent)


def _cause_of(model: Model, kind: str) -> _Cause:
    """Return the cause that a model shares with others: those of a provider, or itself alone."""
    if kind not in OF_PROVIDER:
        return _Cause(kind, model.alias, None)
    source = model.provider
    if model.base_url is not None:  # its scheme, host and port: the rest of it may hold a token
        url = urlsplit(model.base_url)
        source = f"{model.provider} at {url.scheme}://{url.netloc.rpartition('@')[2]}"
    return _Cause(kind, source, None if kind == ErrorKind.UNREACHABLE else model.key_env)
