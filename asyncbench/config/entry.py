"""What one part of a sweep file may hold, and the complaint about its first fault."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from asyncbench.errors import ConfigError
from asyncbench.prompting import merged_params

# Parts of the sweep format whose work is not built yet: refused with a message, never ignored.
NOT_BUILT: Mapping[str, frozenset[str]] = {
    "sweep": frozenset({"mode"}),
    "model": frozenset({"mode"}),
}
# Be it by a slip: what was found there is never repeated.
MAY_HOLD_A_KEY = frozenset({"key_env", "base_url", "command", "webhook", "webhook_env"})
ENV_VARIABLE: Final = r"^[A-Z_][A-Z0-9_]*$"
# They would change who is asked, what, or how.
NOT_IN_PARAMS = frozenset({"model", "messages", "system", "instructions", "input", "prompt", "stream"})


class Entry(BaseModel):
    """One part of a sweep file."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _no_flag(value: object) -> object:
    """Refuse `true`, which would be read as 1."""
    if isinstance(value, bool):
        raise PydanticCustomError("number", "Input should be a number")
    return value


Number = Annotated[float, Field(gt=0, strict=False)]
Dollars = Annotated[
    float, BeforeValidator(_no_flag), Field(gt=0, strict=False, allow_inf_nan=False)
]  # a flag would be read as a dollar
Share = Annotated[float, Field(ge=0.001, lt=1, strict=False)]  # narrower takes more answers than are asked
Name = Annotated[str, Field(min_length=1)]
Streaming = Literal[True, False, "auto"]
Keys = Annotated[dict[str, object], Field(default_factory=dict)]  # left out: none

E = TypeVar("E", bound=Entry)


def read_entry(kind: type[E], raw: object, *, place: str, level: str) -> E:
    """Return `raw` as an entry, or complain about its first fault: place, key, rule, known keys."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{place}: {raw!r} is not a mapping of keys to values")
    for key in raw:
        if key in NOT_BUILT.get(level, ()):
            raise ConfigError(f"{place}: {key!r} is part of the sweep format but not built yet; leave it out")
    try:
        return kind.model_validate(dict(raw))
    except ValidationError as error:
        # A misspelt key first: what is missing is often only its other half.
        fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        key = ".".join(map(str, fault["loc"]))
        known = ", ".join(kind.model_fields)
        secret = key.partition(".")[0] in MAY_HOLD_A_KEY
        shown = fault["type"] not in ("missing", "extra_forbidden") and not secret
        found = f" (found {fault['input']!r:.200})" if shown else ""
        raise ConfigError(f"{place}: {key!r}: {fault['msg']}{found}; known keys: {known}") from None


def params_from(given: Mapping[str, object], *, place: str) -> dict[str, object]:
    """Return provider parameters; what `extra_body` holds is merged into them, as both SDKs do.

    Raises:
        ConfigError: one of them is for asyncbench to set.
    """
    params, extra = dict(given), given.get("extra_body")
    if extra is not None and not isinstance(extra, Mapping):
        raise ConfigError(
            f"{place}.params.extra_body: {extra!r:.200} is not a mapping; write its keys in params"
        )
    if "extra_body" in params and "google" not in (extra or {}):  # Gemini's servers know one of their own
        del params["extra_body"]
        return params_from(merged_params(params, extra or {}), place=place)
    if taken := sorted(NOT_IN_PARAMS & params.keys()):
        raise ConfigError(f"{place}.params: {taken[0]!r} cannot stand here: it is for asyncbench to set")
    return params
