"""A bucket for each test: one in memory, and (marked slow) one of SeaweedFS, a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("obstore", reason="obstore is not installed: pip install 'asyncbench[s3]'")

from tests.store.bucket.s3_server import BUCKET, Memory, S3Server, Serve, forwarded, serving
from tests.store.bucket.servers import seaweedfs
from tests.sweep_files import problem_set


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """SeaweedFS, for all tests of this process."""
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as port:
        yield forwarded(port)


@pytest.fixture(params=["memory", pytest.param("seaweedfs", marks=pytest.mark.slow)])
def s3(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[S3Server]:
    """An empty bucket called `bucket`, to which the environment has the key."""
    behind = Memory() if request.param == "memory" else request.getfixturevalue("real_server")
    with serving(behind) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        if request.param != "memory":
            _empty()
            server.requests.clear()
        yield server


@pytest.fixture
def mapping(tmp_path: Path) -> dict[str, object]:
    """A sweep of one simulated model and 72 problems whose results go to the bucket."""
    return {
        "name": "night",
        "problems": [str(problem_set(tmp_path, trials=1))],
        "models": [{"model": "simulated/oracle", "price": {"input": 1, "output": 2}}],
        "out": "s3://bucket/mine/night",
    }


def _empty() -> None:
    """Delete what an earlier test left."""
    import obstore
    from obstore.store import S3Store

    bucket = S3Store(BUCKET, client_options={"allow_http": True})
    obstore.put(bucket, "made", b"")  # SeaweedFS makes a bucket with its first object
    obstore.delete(bucket, [found["path"] for page in obstore.list(bucket) for found in page])
