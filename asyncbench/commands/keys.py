"""The API keys that a command is given, remembered so that nothing it prints shows them."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncbench.records import Model

KEYS: set[str] = set()  # that this command was given


def environment_of(env_file: Path | None, models: Iterable["Model"]) -> dict[str, str]:
    """Return the variables in which these models' keys are looked up: of this process, then of a file."""
    from asyncbench.sweeps import read_env_file

    given = read_env_file(env_file) if env_file else {}
    env = {**os.environ, **given}
    KEYS.update(given.values(), (env.get(model.key_env or "", "") for model in models))
    return env
