"""Which models are looked at: those named, or those of a sweep file."""

import re
from collections.abc import Sequence
from pathlib import Path

from asyncbench.config import BASE_URL_PATTERN, ENV_VARIABLE, load_sweep, sweep_from
from asyncbench.errors import ConfigError
from asyncbench.records import Model
from asyncbench.sweeps import chosen_models

SWEEP_FILES = (".yaml", ".yml")


def models_from(
    what: Sequence[str], *, base_url: str | None, key_env: str | None, or_nothing: bool
) -> tuple[Model, ...]:
    """Return the models that a command names.

    Args:
        what: provider/model names, or the path of one sweep file.
        base_url: where the named models are; None: their own address.
        key_env: the variable that holds their key; None: their own.
        or_nothing: whether naming none will do.

    Raises:
        ConfigError: none is named, an option is none, a sweep cannot be read, or a model cannot be asked.
    """
    _check(base_url, key_env)
    if not what:
        if or_nothing:
            return ()
        raise ConfigError("nobody to look at: name models as provider/model, or give a sweep file")
    if any(one.endswith(SWEEP_FILES) for one in what):
        return _of_sweep(what, base_url, key_env)
    given = {"base_url": base_url, "key_env": key_env}
    keys = {name: value for name, value in given.items() if value is not None}
    sweep = {
        "name": "doctor",
        "problems": [{"suite": "integer_addition"}],  # a sweep needs some; they are not asked
        "models": [{"model": one, **keys} for one in what],
    }
    return sweep_from(sweep, place="doctor").models


def _check(base_url: str | None, key_env: str | None) -> None:
    """Refuse options by their own names. What was given is not repeated: by a slip it may be a key."""
    if base_url is not None and not re.fullmatch(BASE_URL_PATTERN, base_url):
        raise ConfigError("--base-url: give an address such as http://localhost:8000/v1")
    if key_env is not None and not re.fullmatch(ENV_VARIABLE, key_env):
        raise ConfigError("--key-env: give the NAME of a variable, such as OPENAI_API_KEY")


def _of_sweep(what: Sequence[str], base_url: str | None, key_env: str | None) -> tuple[Model, ...]:
    if len(what) > 1 or base_url or key_env:
        raise ConfigError("give one sweep file alone: addresses and keys of its models stand in it")
    return chosen_models(load_sweep(Path(what[0])), None)
