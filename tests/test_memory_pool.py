"""Where Arrow takes its memory from, in a process of its own: it is decided once, when pyarrow is loaded."""

import os
import subprocess
import sys

import pytest

SHOW = "import asyncbench, pyarrow; print(pyarrow.default_memory_pool().backend_name)"
VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"


@pytest.mark.parametrize(
    ("said", "used"),
    [
        pytest.param({}, "system", id="from-the-system"),
        pytest.param({VARIABLE: "mimalloc"}, "mimalloc", id="unless-the-user-says-otherwise"),
    ],
)
def test_arrow_takes_its_memory(said, used):
    env = {name: value for name, value in os.environ.items() if name != VARIABLE} | said
    shown = subprocess.run([sys.executable, "-c", SHOW], env=env, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == used
