"""The command line within this process, where a process of its own would show no more."""

import io
import os
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from asyncbench.cli import main

ROOT = Path(__file__).resolve().parent.parent
CLEAN = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of a command."""

    returncode: object
    stdout: str
    stderr: str


def asyncbench_here(*arguments: object) -> Done:
    """Run a command as the installed script does, without any API key, in the project's folder."""
    out, errors = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["asyncbench", *map(str, arguments)]),
        patch.dict(os.environ, CLEAN, clear=True),
        chdir(ROOT),
        redirect_stdout(out),
        redirect_stderr(errors),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Done(returncode=ended.value.code, stdout=out.getvalue(), stderr=errors.getvalue())
