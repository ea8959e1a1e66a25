"""What only real servers show: how they refuse, and that other readers of Parquet find the parts."""

import http.client
import os
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from asyncbench.errors import ConfigError
from asyncbench.store.bucket.objects import BucketAddress, BucketObjects, TakenError
from asyncbench.store.copying import FolderCopy
from asyncbench.store.folder import Store
from tests.store.bucket.s3_server import KEY, S3Server
from tests.store.bucket.servers import moto, seaweedfs
from tests.store.made import answered, keep, seal

pytestmark = pytest.mark.slow
URL = "s3://bucket/mine/night"


@pytest.fixture
def amazon_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """moto, which answers in Amazon's words, with a bucket."""
    import obstore
    from obstore.store import S3Store

    with moto(tmp_path) as port:
        for name, value in {**KEY, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}.items():
            monkeypatch.setenv(name, value)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("PUT", "/bucket")
        assert connection.getresponse().status == 200
        connection.close()
        obstore.put(S3Store("bucket", client_options={"allow_http": True}), "made", b"")
        yield f"http://127.0.0.1:{port}"


@pytest.mark.usefixtures("amazon_like")
def test_answers_in_the_words_of_amazon_are_understood(tmp_path: Path):
    objects = BucketObjects(BucketAddress.parse(URL))
    objects.put_new("x", b"first")
    objects.put_new("x", b"first")
    with pytest.raises(TakenError):
        objects.put_new("x", b"second")
    for ask in (lambda at: at.names(), lambda at: at.get("x"), lambda at: at.put_new("x", b"")):
        with pytest.raises(ConfigError, match="no bucket 'other'"):
            ask(BucketObjects(BucketAddress.parse("s3://other/mine")))
    with pytest.raises(ConfigError, match="no bucket 'other'"):
        FolderCopy.claim("s3://other/mine", tmp_path / "night")


def test_a_key_that_a_real_server_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with seaweedfs(tmp_path) as port:
        for name, value in {**KEY, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}.items():
            monkeypatch.setenv(name, value)
        BucketObjects(BucketAddress.parse(URL)).put_new("x", b"")
        for name in ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"):
            monkeypatch.setenv(name, "another")
            with pytest.raises(ConfigError, match=name):
                BucketObjects(BucketAddress.parse(URL)).get("x")


@pytest.mark.parametrize("s3", ["seaweedfs"], indirect=True)
def test_polars_and_pandas_read_the_parts_in_the_bucket(s3: S3Server, tmp_path: Path):
    import pandas as pd
    from pyarrow.fs import S3FileSystem

    copy = FolderCopy.claim(URL, tmp_path / "night")
    with Store.open(tmp_path / "night", sweep="night") as store:
        for number in (1, 2):
            keep(store, *answered(number))
            seal(store)
            copy.push(store)
    trials = f"{URL}/trials/**/*.parquet"
    options = {
        "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "aws_endpoint_url": s3.url,
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }
    scanned = pl.scan_parquet(trials, hive_partitioning=False, storage_options=options)
    assert scanned.select("trial_id").collect().height == 2
    files = S3FileSystem(endpoint_override=s3.url, scheme="http", region="us-east-1")
    found = pd.read_parquet(f"{URL.removeprefix('s3://')}/trials", filesystem=files, columns=["trial_id"])
    assert len(found) == 2
