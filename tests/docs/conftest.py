"""The docs site, built once for all tests of it."""

from pathlib import Path

import pytest

from docs.__main__ import build


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The built site. A warning of the generator, such as a link to nowhere, ends the build."""
    folder: Path = tmp_path_factory.mktemp("site") / "site"
    build(folder)
    return folder
