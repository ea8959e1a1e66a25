"""Programs for workers of a cluster that answer whatever they are asked."""

import asyncio
import os
from typing import Any

from asyncbench.errors import ConfigError


class Echo:
    """It tells where it is, and gives back what it was sent."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def exchange(self, orders: Any) -> Any:
        if orders == "refuse":
            raise ConfigError("model one: the variable KEY_OF_TESTS is not set")
        if orders == "hang":
            await asyncio.sleep(3600)
        if orders == "key":
            return os.environ.get("KEY_OF_TESTS", "")[:4]
        return {"name": self.name, "pid": os.getpid(), "raylet": os.getppid(), "orders": orders}

    async def close(self) -> None:
        print("closed", self.name)


async def echo(name: str) -> Echo:
    return Echo(name)


async def refuse(name: str) -> Echo:
    raise ConfigError(f"{name}: no folder here")
