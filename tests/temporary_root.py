"""The temporary folder of one test session, which no other session touches.

pytest's own, `/tmp/pytest-of-USER`, is shared by all sessions of a user: with the policy `none`, a session
that ends removes what the others write. So each session has a folder of its own. It holds the `tmp_path` of
tests, what `tempfile` makes, and caches.

The folder is removed by a shell that waits for the end of a pipe. The pipe ends with this process, however it
ends: by itself, by Ctrl-C or by `kill -9`.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Processes of a session that was killed may go on writing for some seconds.
REMOVAL = 'cat > /dev/null; for n in $(seq 100); do rm -rf "$@" 2> /dev/null && break; sleep 0.2; done'
MEMORY = Path("/dev/shm")  # noqa: S108  # only a folder of the session's own is made in it


class TemporaryRoot:
    """A folder for everything that a session writes, until it ends.

    Args:
        config: of the session. Where `--basetemp` names a folder, that is used and kept.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="asyncbench-tests-"))
        self._remover = subprocess.Popen(
            ["/bin/sh", "-c", REMOVAL, "sh", self.folder, MEMORY / self.folder.name],
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C of a terminal must not end it
        )
        if config.option.basetemp is None:
            config.option.basetemp = str(self.folder / "tests")

        # Workers of pytest-xdist and all processes that tests start inherit it.
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.folder)

    def remove(self) -> None:
        """Remove the folder, and wait until it is gone."""
        self._remover.communicate()


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Lend a folder where nobody waits for a disk; an ordinary one where there is no such."""
    session = Path(tempfile.gettempdir())
    if os.access(MEMORY, os.W_OK):
        session = MEMORY / session.name
        session.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=session) as folder:
        yield Path(folder)
