"""Addresses, objects, and what is said when a bucket refuses."""

import sys
from pathlib import Path

import pytest

from asyncbench.errors import AsyncbenchError, ConfigError, StoreError
from asyncbench.store.bucket.objects import BucketAddress, BucketObjects, TakenError, s3_address
from tests.store.bucket.s3_server import KEY, Answer, Request, S3Server, refusal

PLACE = BucketAddress.parse("s3://bucket/mine")


@pytest.mark.parametrize("text", ["s3://bucket/a", "s3:/bucket/a", "s3://bucket/a/", "S3://bucket/a"])
def test_a_path_is_read_as_the_address_that_it_was(text: str):
    assert s3_address(Path(text)) == s3_address(text) == "s3://bucket/a"


@pytest.mark.parametrize("text", ["results/night", "/s3/night", "hf://datasets/a/b", "s3"])
def test_other_paths_are_no_addresses(text: str):
    assert s3_address(text) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s3://", "names no bucket"),
        ("s3://b ucket/a", "names no bucket"),
        ("s3://bucket", "nothing in it"),
        ("s3://bucket/a/../b", "`.` or `..`"),
        ("s3://bucket/a//b", "empty name"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(text: str, said: str):
    with pytest.raises(ConfigError, match=said):
        BucketAddress.parse(text)


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize("name", ["a b/é#?%2F&<x>/+", "suite=x%20y/part-1.parquet"])
def test_any_name_can_be_written_listed_read_and_deleted(name: str, tmp_path: Path):
    objects = BucketObjects(PLACE)
    objects.put_new(name, b"bytes")

    assert objects.names() == [name]
    assert objects.get(name) == b"bytes"
    objects.download(name, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"bytes"
    objects.delete([name, "none"])
    assert objects.names() == []


@pytest.mark.usefixtures("s3")
def test_a_list_is_read_to_its_end():
    objects, names = BucketObjects(PLACE), [f"below/{n:02}/x" for n in range(20)]
    for name in names:
        objects.put_new(name, b"")

    assert sorted(objects.names("below")) == names
    assert sorted(objects.folders("below")) == [f"{n:02}" for n in range(20)]


@pytest.mark.usefixtures("s3")
def test_an_object_is_never_written_over():
    objects = BucketObjects(PLACE)
    objects.put_new("x", b"first")
    objects.put_new("x", b"first")  # as when the answer to the first was lost

    with pytest.raises(TakenError):
        objects.put_new("x", b"second")
    assert objects.get("x") == b"first"


def test_a_put_whose_answer_was_lost_is_made_again_and_found(s3: S3Server):
    def lose(count: int, _: Request) -> Answer | None:
        return Answer(500) if count == 1 else None

    s3.after = lose
    BucketObjects(PLACE).put_new("x", b"bytes")
    assert BucketObjects(PLACE).get("x") == b"bytes"


@pytest.mark.parametrize(
    ("code", "statuses"), [("SlowDown", [500, 503]), ("ConditionalRequestConflict", [409])]
)
def test_a_server_that_is_busy_or_has_two_writes_at_once_is_asked_again(s3: S3Server, code: str, statuses):
    s3.before = lambda count, _: refusal(statuses[count - 1], code) if count <= len(statuses) else None

    BucketObjects(PLACE).put_new("x", b"bytes")
    assert BucketObjects(PLACE).get("x") == b"bytes"


def test_an_object_that_holds_other_bytes_than_were_sent_is_noticed(s3: S3Server):
    behind = s3.behind
    s3.behind = lambda request: behind(
        request._replace(body=b"other") if request.method == "PUT" else request
    )

    with pytest.raises(StoreError, match="does not hold what was sent"):
        BucketObjects(PLACE).put_new("x", b"bytes")


def test_a_tag_that_is_no_digest_is_fine_if_the_bytes_are_right(s3: S3Server):
    def tagged(_: int, request: Request) -> Answer | None:
        return Answer(200, headers={"ETag": '"of-an-encrypted-object"'}) if request.method == "PUT" else None

    s3.after = tagged
    BucketObjects(PLACE).put_new("x", b"bytes")


REFUSALS = [
    (404, "NoSuchBucket", ConfigError, "no bucket 'bucket'"),
    (403, "InvalidAccessKeyId", ConfigError, "AWS_ACCESS_KEY_ID"),
    (403, "SignatureDoesNotMatch", ConfigError, "AWS_SECRET_ACCESS_KEY"),
    (403, "AccessDenied", ConfigError, "PutObject"),
    (400, "ExpiredToken", ConfigError, "AWS_SESSION_TOKEN"),
    (418, "Teapot", StoreError, r"status 418 \(Teapot\)"),
]


@pytest.mark.parametrize(("status", "code", "kind", "said"), REFUSALS, ids=[code for _, code, *_ in REFUSALS])
def test_a_refusal_says_what_to_do(
    s3: S3Server, status: int, code: str, kind: type[AsyncbenchError], said: str
):
    s3.before = lambda *_: refusal(status, code)
    for ask in (lambda at: at.put_new("x", b""), lambda at: at.names()):
        with pytest.raises(kind, match=said) as caught:
            ask(BucketObjects(PLACE))
        assert KEY["AWS_SECRET_ACCESS_KEY"] not in str(caught.value)


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9", "127.0.0.1 cannot be reached"),
        ("AWS_ENDPOINT_URL", "http://s3.example.org", "AWS_ALLOW_HTTP"),
        ("AWS_ENDPOINT_URL", "not an address", "is no address"),
        ("AWS_ENDPOINT_URL", "http://[::1", "is no address"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_told(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(name, value)
    with pytest.raises(AsyncbenchError, match=said):
        BucketObjects(PLACE).get("x")


@pytest.mark.usefixtures("s3")
def test_without_a_key_its_variables_are_named(monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")  # where a machine of Amazon has its key

    with pytest.raises(ConfigError, match="Set AWS_ACCESS_KEY_ID"):
        BucketObjects(PLACE).get("x")


def test_without_the_extra_its_name_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(ConfigError, match=r"pip install 'asyncbench\[s3\]'"):
        BucketObjects(PLACE)
