"""Systems on which asyncbench does not run refuse it with one line."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

ON_WINDOWS = """
import sys
sys.platform = "win32"
sys.modules |= dict.fromkeys(("fcntl", "pwd", "resource"))  # importing one of them fails, as it does there
"""


@pytest.mark.parametrize(
    ("lines", "said", "code"),
    [
        ("from asyncbench.__main__ import main; main()", "asyncbench: Windows is not supported. Install", 2),
        ("import asyncbench as ab; ab.run_sweep", "asyncbench.errors.ConfigError: Windows is not", 1),
    ],
)
def test_windows_is_refused_with_one_line_that_names_the_way_out(lines, said, code):
    done = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS + lines], capture_output=True, text=True, check=False
    )
    *_, line = done.stderr.splitlines()
    assert (done.returncode, line.startswith(said)) == (code, True), done.stderr
    assert "in WSL (`wsl --install`" in line
    assert code == 1 or len(done.stderr.splitlines()) == 1
