"""Many simulators in one process. An order is a line of JSON on standard input, and so is its answer."""

import asyncio
import os
import resource
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack

import orjson

from asyncbench.errors import AsyncbenchError
from asyncbench.simulator.serving import listening
from asyncbench.simulator.settings import parse_settings
from tests.servers.vendor_batches import VendorServer


async def _serve() -> None:
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    orders, servers = asyncio.StreamReader(limit=2**30), dict[str, AsyncExitStack]()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    while line := await orders.readline():
        try:
            answer = {"url": await _obey(orjson.loads(line), servers)}
        except AsyncbenchError as error:
            answer = {"error": str(error)}
        os.write(1, orjson.dumps(answer) + b"\n")


async def _obey(order: Mapping[str, str], servers: dict[str, AsyncExitStack]) -> str:
    if "stop" in order:
        await servers.pop(order["stop"]).aclose()
        return order["stop"]
    os.chdir(order["folder"])  # where the names of its files count from
    server = AsyncExitStack()
    url = await server.enter_async_context(listening(parse_settings(order["start"]), VendorServer))
    servers[url] = server
    return url


if __name__ == "__main__":
    asyncio.run(_serve())
