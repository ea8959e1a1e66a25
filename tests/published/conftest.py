"""The recorded runs, imported once: 17,153 trials in 26 files."""

from pathlib import Path

import pytest

from asyncbench.published import import_files
from tests.recorded import write_jsonl


@pytest.fixture(scope="session")
def published(golden, tmp_path_factory) -> list[Path]:
    """The files as they were published."""
    return write_jsonl(golden, tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="session")
def imported(published, tmp_path_factory) -> Path:
    """The results folder they were imported into; not to be changed."""
    folder: Path = tmp_path_factory.mktemp("imported") / "results"
    import_files("llm-arithmetic", published, folder)
    return folder
