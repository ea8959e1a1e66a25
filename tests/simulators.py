"""Simulators of tests: all in one other process, each on a port of its own, or one in its own process."""

import atexit
import http.client
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import orjson

from asyncbench.simulator.process import START_TIMEOUT_S, Simulator, _end, _url
from asyncbench.simulator.settings import Settings, settings_json
from tests.processes import Forked


def page(server, path, body=None):
    """Return a page of a simulator, which is asked by POST where there is a body."""
    place = urlsplit(server.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=600)
    try:
        method, data = ("GET", None) if body is None else ("POST", orjson.dumps(body))
        connection.request(method, path, data)
        return connection.getresponse().read()
    finally:
        connection.close()


@contextmanager
def running(settings: Settings) -> Iterator[Simulator]:
    """Do what `asyncbench.simulator.process.running` does, without a process of its own."""
    simulator = Simulator(_host(), _order({"start": settings_json(settings), "folder": str(Path.cwd())}))
    try:
        yield simulator
    finally:
        _order({"stop": simulator.url})


@contextmanager
def forked(settings: Settings, program: str = "asyncbench.simulator") -> Iterator[Simulator]:
    """Do the same with a process of its own, without the imports of a new one."""
    process = _piped(program, "--until-stdin-closes", "--json-settings", settings_json(settings))
    try:
        yield Simulator(process, _url(process, START_TIMEOUT_S))
    finally:
        _end(process)


def _piped(program: str, *words: str) -> "subprocess.Popen[bytes]":
    held, given = os.pipe()
    reader, said = os.pipe()
    process = Forked(program, *words, stdin=held, stdout=said)
    os.close(held)
    os.close(said)
    process.stdin, process.stdout = os.fdopen(given, "wb", 0), os.fdopen(reader, "rb", 0)
    return cast("subprocess.Popen[bytes]", process)


@cache
def _host() -> "subprocess.Popen[bytes]":
    process = _piped("tests.simulator_host")
    atexit.register(_end, process)
    return process


def _order(order: Mapping[str, str]) -> str:
    host = _host()
    assert host.stdin is not None
    host.stdin.write(orjson.dumps(order) + b"\n")
    return _url(host, START_TIMEOUT_S)
