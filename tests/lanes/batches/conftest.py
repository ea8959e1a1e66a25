"""One simulator for all nights of batches."""

import pytest

from tests.sweep_files import problem_set, simulator
from tests.world.batches import Night


@pytest.fixture(scope="package")
def problems(tmp_path_factory):
    return problem_set(tmp_path_factory.mktemp("sets"), trials=1)


@pytest.fixture(scope="package")
def server(problems, tmp_path_factory):
    with simulator(problems, folder=tmp_path_factory.mktemp("batches")) as found:
        yield found


@pytest.fixture
def night(server, problems, tmp_path):
    def made(vendor, *faults, **keys):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        return Night(server, problems, folder, vendor, *faults, **keys)

    return made
