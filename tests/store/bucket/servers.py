"""Servers of S3 that packages bring: SeaweedFS, and moto for the answers that it cannot be made to give."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import HANG_S
from tests.store.bucket.s3_server import KEY

START_S = HANG_S


@contextmanager
def seaweedfs(folder: Path) -> Iterator[int]:
    """Run SeaweedFS on the loopback interface, its data in a folder; yield the port of its S3."""
    keys = [{"accessKey": KEY["AWS_ACCESS_KEY_ID"], "secretKey": KEY["AWS_SECRET_ACCESS_KEY"]}]
    may = ["Admin", "Read", "Write", "List", "Tagging"]
    config = folder / "keys.json"
    config.write_text(json.dumps({"identities": [{"name": "tests", "credentials": keys, "actions": may}]}))
    master, volume, filer, s3 = _pairs_of_ports(4)
    words = [
        *("server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=0"),
        *("-master.volumeSizeLimitMB=64", f"-master.port={master}", f"-volume.port={volume}"),
        *("-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}", f"-s3.config={config}"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"),
    ]
    with _running([_program("weed"), *words], s3, folder / "log"):
        yield s3


@contextmanager
def moto(folder: Path) -> Iterator[int]:
    """Run moto's server; yield its port."""
    (port,) = _pairs_of_ports(1)
    with _running([_program("moto_server"), "-H", "127.0.0.1", "-p", str(port)], port, folder / "log"):
        yield port


def _program(name: str) -> str:
    """Return where a package put its program; without it the test is skipped."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        pytest.skip(f"{name} is not installed: `make slow` has it")
    return str(path)


@contextmanager
def _running(words: Sequence[str], port: int, log: Path) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        end_s = time.monotonic() + START_S
        while not _answers(port):
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < end_s, log.read_text()[-2000:]
            time.sleep(0.2)
        yield
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    """Return whether a server answers as it should: SeaweedFS listens before it can store."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        return error.code == 403  # it asks for a key
    except OSError:
        return False


def _pairs_of_ports(count: int) -> list[int]:
    """Return free ports; SeaweedFS takes the one 10,000 above each as well."""
    found = list[int]()
    while len(found) < count:
        with socket.socket() as probe, socket.socket() as other:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            try:
                other.bind(("127.0.0.1", port + 10_000))
            except (OSError, OverflowError):
                continue
            if port not in found:
                found.append(port)
    return found
