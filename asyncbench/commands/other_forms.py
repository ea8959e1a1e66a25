"""Commands as the benchmarks' own programs take them: lists of numbers, and options that have other names."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from asyncbench.errors import ConfigError

_NUMBERS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")

INSTEAD: Final[Mapping[str, str]] = {  # option of a benchmark's program → what asyncbench has for it
    "--retries": "write `retry: {attempts: N}` at a model in a sweep file: the most calls for a trial",
    "--retry-delay": "leave it out. A retry waits as long as the server says, or longer after each failure",
    "--output-dir": "write --out FOLDER",
    "--resume-file": "leave it out. The same command again asks only what is unfinished in its --out",
    "--reasoning-effort": "write --effort low",
    "--extra-context": "write --context 1k, 2k or 4k",
    "--system-prompt": "write --system TEXT",
    "--model-alias": "write `alias: NAME` at a model in a sweep file",
    "--litellm-params": "write `params: {…}` at a model in a sweep file",
}


def join_lists(args: Iterable[str]) -> list[str]:
    """Return arguments in which numbers that follow an option's number are joined to it.

    >>> join_lists(["--depths", "2", "3", "4", "--trials", "1"])
    ['--depths', '2,3,4', '--trials', '1']
    """
    words: list[str] = []
    for word in args:
        option, equals, value = words[-1].partition("=") if words else ("", "", "")
        before = value if equals else option if words[-2:-1] and words[-2].startswith("--") else ""
        if _NUMBERS.fullmatch(word) and _NUMBERS.fullmatch(before):
            words[-1] += f",{word}"
        else:
            words.append(word)
    return words


def refuse_others(typed: Iterable[str], options: Collection[str]) -> None:
    """Refuse an option of another program with the one that asyncbench has for it.

    Raises:
        ConfigError: an option is another program's.
    """
    for word in typed:
        name = word.replace("_", "-")
        if word not in options and (name in options or name in INSTEAD):
            raise ConfigError(f"{word}: not an option here; {INSTEAD.get(name, f'write {name}')}")


def model_in(env_file: Path) -> str:
    """Return a hint at the model that the `.env` of a program names, or an empty text."""
    from asyncbench.planning.env_files import read_env_file
    from asyncbench.providers.endpoints import known_endpoints

    try:
        variables = read_env_file(env_file)
    except ConfigError:  # no such file, or another program's: what is missing is said without it
        return ""
    if "MODEL" not in variables:
        return ""
    name = variables["MODEL"] or "NAME"
    model = name if name.partition("/")[0] in known_endpoints() else f"lmstudio/{name}"
    hint = "" if variables["MODEL"] else ". `asyncbench models lmstudio` lists the names"
    return f". MODEL={variables['MODEL']} of {env_file} is --model {model} here{hint}"
