"""The recorded runs as files again."""

from pathlib import Path

import pytest

from asyncbench.upkeep.exporting import export_folder
from tests.recorded import made_once


@pytest.fixture(scope="session")
def written_again(imported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the recorded runs were exported to; not to be changed."""
    folder = made_once(
        tmp_path_factory,
        "exported-runs",
        lambda folder: export_folder("llm-arithmetic", imported, folder / "files"),
    )
    return folder / "files"
