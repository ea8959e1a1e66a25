"""How a run and its files are named after each other."""

from pathlib import Path
from urllib.parse import quote

from asyncbench.errors import ConfigError

LONGEST = 200  # characters once percent-encoded: a run names a file, with room for an ending


def run_of(path: Path, ending: str) -> str:
    """Return the run that a file becomes: its name without the ending of its format.

    Raises:
        ConfigError: that can name no file in turn.
    """
    run = path.name.removesuffix(ending)
    try:
        encoded = quote(run, safe="")
    except UnicodeEncodeError:
        raise ConfigError(f"{str(path)!r}: the name is not UTF-8 text; rename the file") from None
    if not 1 <= len(encoded) <= LONGEST:
        raise ConfigError(
            f"{path}: the name of the run would be empty or longer than {LONGEST} characters "
            "once percent-encoded; rename the file"
        )
    return run


def file_of(run: str, ending: str) -> str:
    """Return the name of the file that an imported run becomes again."""
    return f"{run.replace('/', '%2F')}{ending}"


def problems_file(run: str) -> str:
    """Return where in a results folder the problems of an imported run are."""
    return f"problems/{quote(run, safe='')}.parquet"
