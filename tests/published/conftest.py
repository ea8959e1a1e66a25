"""The recorded runs, imported once: 17,153 trials in 26 files."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def published(recorded_runs: Path) -> list[Path]:
    """The files as they were published."""
    return sorted((recorded_runs / "files").iterdir())


@pytest.fixture(scope="session")
def imported(recorded_runs: Path) -> Path:
    """The results folder they were imported into; not to be changed."""
    return recorded_runs / "results"
