"""The command line in a process of its own, and within this one where that would show no more."""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar
from unittest.mock import patch

import pytest

from asyncbench.cli import main
from tests.processes import Forked

ROOT = Path(__file__).resolve().parent.parent
CLEAN = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}


T = TypeVar("T", "subprocess.CompletedProcess[str]", "Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of a command."""

    returncode: object
    stdout: str
    stderr: str


def asyncbench(
    *arguments: object, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, in the project's folder and without any API key unless given."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        streams = {"stdout": out.fileno(), "stderr": errors.fileno()}
        command = Forked("asyncbench", *arguments, **streams, cwd=cwd, env=CLEAN | dict(env or {}))
        return subprocess.CompletedProcess(command.args, command.wait(), whole(out), whole(errors))


def succeeded(done: T) -> T:
    """Return what became of a command that ended well."""
    assert done.returncode == 0, done.stderr
    return done


def whole(file: IO[str]) -> str:
    """Return all that a process has written to a file so far."""
    file.seek(0)
    return file.read()


def asyncbench_here(*arguments: object, cwd: Path = ROOT) -> Done:
    """Run a command as the installed script does, without any API key, in the project's folder."""
    out, errors = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["asyncbench", *map(str, arguments)]),
        patch.dict(os.environ, CLEAN, clear=True),
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(errors),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Done(returncode=ended.value.code, stdout=out.getvalue(), stderr=errors.getvalue())
