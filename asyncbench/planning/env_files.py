"""Files of environment variables: `NAME=value` lines, which hold keys."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from asyncbench.contents import text_of
from asyncbench.errors import ConfigError

ENV_FILE: Final = ".env"  # is looked for beside a sweep, then in the working folder
_VARIABLE: Final = re.compile(
    r"""[^\S\n]*(?:export[^\S\n]+)?(?P<name>[A-Za-z_]\w*)[^\S\n]*=[^\S\n]*
    (?:'(?P<plain>[^']*)'|"(?P<escaped>(?:\\.|[^"\\])*)"|(?P<bare>(?:[^'"\#\s]|(?<==)\#)[^\n]*?|))
    [^\S\n]*(?:(?<=[\s'"])\#[^\n]*)?(?:\n|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_REFERENCE: Final = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def read_env_file(path: Path, *, lenient: bool = False) -> dict[str, str]:
    """Return the variables of a file of NAME=value lines, as python-dotenv reads it.

    Quoted values may have several lines, and ` #` begins a comment outside of quotes. `${NAME}` is the value
    of a variable above it, or of the environment.

    Args:
        path: the file.
        lenient: skip what is no NAME=value line, since the file may be another program's. [False]

    Raises:
        ConfigError: the file cannot be read, or a line is something else. No value is repeated.
    """
    text = text_of(path, subject=f"{path}: cannot be read", way_out="Name a file of NAME=value lines")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    variables: dict[str, str] = {}
    position = 0
    while position < len(text):
        place = f"{path}, line {text.count(chr(10), 0, position) + 1}"
        match = _VARIABLE.match(text, position)
        if match is None:
            line, newline, _ = text[position:].partition("\n")
            position += len(line + newline)
            if line.strip() and not line.lstrip().startswith("#") and not lenient:
                raise ConfigError(f"{place}: this is no NAME=value line. Correct or remove it.")
            continue

        # What stands in single quotes is meant as it is.
        position, value = match.end(), match["plain"]
        if value is None:
            escaped = match["escaped"] or ""
            written = match["bare"] or _ESCAPED.sub(lambda sign: _ESCAPES.get(sign[1], sign[1]), escaped)
            try:
                value = _filled(written, os.environ | variables)
            except KeyError as error:
                if lenient:
                    continue
                raise ConfigError(
                    f"{place}: ${{{error.args[0]}}} is not set. Set it above, or write the value."
                ) from None
        variables[match["name"]] = value
    return variables


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Return a value with the variables that it names; KeyError: one is not set and has no default."""

    def value_of(reference: re.Match[str]) -> str:
        name, default = reference.groups()
        return values[name] if default is None else values.get(name) or default

    return _REFERENCE.sub(value_of, text)


def keys_beside(sweep_file: Path | None, names: Iterable[str]) -> tuple[Path | None, dict[str, str]]:
    """Return the `.env` that has variables which are not set, and these; (None, {}): there is none.

    Args:
        sweep_file: the sweep, beside which a `.env` counts first. None: only the working folder has one.
        names: the variables that are looked for. Nothing else of the file is taken.
    """
    missing = [name for name in names if not os.environ.get(name, "").strip()]
    folders = [*([] if sweep_file is None else [sweep_file.parent]), Path()]
    for path in dict.fromkeys(folder / ENV_FILE for folder in folders):
        if missing and path.is_file():
            variables = read_env_file(path, lenient=True)
            if keys := {name: variables[name] for name in missing if variables.get(name)}:
                return path, keys
    return None, {}
