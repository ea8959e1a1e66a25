"""Workers on a Ray cluster: each is an actor with a process of its own.

Ray places the processes, carries bytes and tells of deaths. It repeats nothing, since calls cost money.
"""

import asyncio
import os
import pickle
import socket
import time
from collections.abc import Awaitable
from importlib.metadata import version
from typing import Any, Final

from asyncbench.cluster.messages import (
    Orders,
    Program,
    Start,
    WorkerDiedError,
    WorkerReport,
    WorkerSilentError,
)
from asyncbench.errors import AsyncbenchError, ConfigError

OURS: Final = "asyncbench"
ANSWERS_WITHIN_S: Final = 10.0
PLACED_WITHIN_S: Final = 120.0
LOOK_EVERY_S: Final = 1.0
NO_ADDRESS: Final = ("", "auto", "local")  # Ray looks for a cluster itself, or starts one
ONCE: Final = {"max_restarts": 0, "max_task_retries": 0}  # the run decides what is done again
NOT_ASKED_FOR: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # it would copy the working folder, and keys with it
}


class AsyncbenchWorker:
    """An actor that holds a program. Messages are bytes to Ray, which then shows none of them."""

    def __init__(self) -> None:
        self._program: Program | None = None

    async def hello(self) -> tuple[str, str, int]:
        """Return the version of asyncbench here, the name of the machine and the number of the process."""
        return version(OURS), socket.gethostname(), os.getpid()

    async def begin(self, name: str, program: bytes) -> None:
        """Start the program."""
        start: Start = pickle.loads(program)  # noqa: S301  from our own run
        self._program = await start(name)
        self._watch = asyncio.create_task(_end_with(os.getppid()))  # kept, or it could be collected

    async def exchange(self, orders: bytes) -> bytes:
        """Hand orders to the program, and return its report."""
        assert self._program is not None  # noqa: S101  `begin` comes first
        return pickle.dumps(await self._program.exchange(pickle.loads(orders)), 5)  # noqa: S301  from our own run

    async def close(self) -> None:
        """End the program."""
        if self._program is not None:
            await self._program.close()


async def _end_with(parent_pid: int) -> None:
    """End this process with Ray's on this machine: nothing else would, and its folder would stay locked."""
    while os.getppid() == parent_pid:  # noqa: ASYNC110  nothing tells it
        await asyncio.sleep(LOOK_EVERY_S)
    os._exit(1)


class RayLink:
    """A worker on a Ray cluster; see `Link`."""

    def __init__(self, ray: Any, actor: Any, name: str) -> None:
        self.name, self.host, self.pid = name, "", 0
        self._ray, self._actor = ray, actor

    async def exchange(self, orders: Orders) -> WorkerReport:
        """Do what `Program.exchange` does; see `Link`."""
        reply = await self._reply_to(self._actor.exchange.remote(pickle.dumps(orders, 5)))
        report: WorkerReport = pickle.loads(reply)  # noqa: S301  from our own worker
        return report

    async def close(self) -> None:
        """Do what `Program.close` does."""
        await self._reply_to(self._actor.close.remote())

    def kill(self) -> None:
        """End the worker's process at once."""
        if self._ray.is_initialized():  # else all of them are gone
            self._ray.kill(self._actor)

    async def greet(self) -> None:
        """Wait for the actor; raises as `Cluster.start`."""
        try:
            async with asyncio.timeout(PLACED_WITHIN_S):
                there, self.host, self.pid = await self._actor.hello.remote()
        except TimeoutError:
            self.kill()
            raise WorkerDiedError(
                f"worker {self.name}: Ray found no free core for it within {PLACED_WITHIN_S:.0f} s. "
                "Look at `ray status`: wait for other jobs, or add machines"
            ) from None
        except self._ray.exceptions.RayError as error:
            if getattr(error, "actor_init_failed", False):
                raise ConfigError(
                    f"worker {self.name}: asyncbench {version(OURS)} cannot be imported on a machine of the "
                    f"cluster ({_brief(error)}). Install it on all of them"
                ) from None
            raise WorkerDiedError(f"worker {self.name} did not begin: {_brief(error)}") from None
        if there != (here := version(OURS)):
            raise ConfigError(
                f"worker {self.name}: {self.host} has asyncbench {there}, and this machine {here}. "
                "Install the same version on all machines of the cluster"
            )

    async def begin(self, program: Start) -> None:
        """Have the actor start its program; raises as `Cluster.start`."""
        try:
            await self._reply_to(self._actor.begin.remote(self.name, pickle.dumps(program, 5)))
        except AsyncbenchError:
            self.kill()
            raise

    async def _reply_to(self, answer: Awaitable[Any]) -> Any:
        """Return an answer of the actor; errors of its program are raised as they were there."""
        try:
            return await answer
        except self._ray.exceptions.RayTaskError as error:
            error.cause.add_note(str(error))  # its traceback there
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            self.kill()  # it may be alive, and out of reach: nobody waits for it any more
            gone = not isinstance(error, self._ray.exceptions.ActorUnavailableError)
            raise (WorkerDiedError if gone else WorkerSilentError)(_brief(error)) from None


class RayCluster:
    """The machines of a Ray cluster; see `Cluster`."""

    def __init__(self, ray: Any, *, each: int | None, ours: bool) -> None:
        self._ray, self._each, self._ours = ray, each, ours
        self._links: list[RayLink] = []

    @property
    def count(self) -> int:
        """The number of workers it takes: one a core, or as many a machine as were asked for."""
        cores = [int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]]
        return sum(cores) if self._each is None else self._each * sum(map(bool, cores))

    async def start(self, name: str, program: Start) -> RayLink:
        """Start a worker, on the machines in turn; raises as `Cluster.start`."""
        actor_class = self._ray.remote(num_cpus=1, scheduling_strategy="SPREAD", **ONCE)(AsyncbenchWorker)
        ends_s = time.monotonic() + PLACED_WITHIN_S
        while True:
            link = RayLink(self._ray, actor_class.options(name=f"{name} {len(self._links)}").remote(), name)
            self._links.append(link)
            try:
                await link.greet()
                break
            except WorkerDiedError:  # Ray does not know for a while that a machine is gone
                if time.monotonic() > ends_s:
                    raise
                await asyncio.sleep(LOOK_EVERY_S)
        await link.begin(program)
        return link

    async def aclose(self) -> None:
        """End all workers, and a cluster that was started for this run."""
        for link in self._links:
            link.kill()
        if self._ours:
            await asyncio.to_thread(self._ray.shutdown)


async def open_ray_cluster(address: str = "", *, each: int | None = None) -> RayCluster:
    """Return a Ray cluster.

    Args:
        address: `HOST:PORT` of its head. "": the cluster of `RAY_ADDRESS`, else that of this machine,
            else a new one.
        each: how many workers a machine takes; None: one a core.

    Raises:
        ConfigError: Ray is not installed, no such cluster answers, or it has no core.
    """
    os.environ.update({**NOT_ASKED_FOR, **os.environ})
    try:
        import ray
    except ModuleNotFoundError:
        raise ConfigError("--ray needs the extra `ray`: pip install 'asyncbench[ray]'") from None
    cluster = RayCluster(ray, each=each, ours=not ray.is_initialized())
    if not ray.is_initialized():
        target = address or os.environ.get("RAY_ADDRESS", "")
        await _check_address(target)
        # Ray prints nothing: what it tells of deaths, the run tells, and its output may be JSON.
        ray._private.worker.print_to_stdstream = lambda *_, **__: None
        try:  # in a thread: in the main one Ray would take SIGTERM from the run
            await asyncio.to_thread(
                ray.init,
                address or None,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
            )
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            raise ConfigError(f"--ray{target and f' {target}'}: {_brief(error)}") from None
    if not cluster.count:
        await cluster.aclose()
        raise ConfigError("--ray: no machine of the cluster has a core for a worker. Look at `ray status`")
    return cluster


async def _check_address(address: str) -> None:
    """Refuse an address where no cluster answers: Ray would try for minutes."""
    if "://" in address:
        raise ConfigError(
            f"--ray {address}: a run cannot be a client of Ray, since workers would end with its connection. "
            "Start it on a machine of the cluster, with `ray job submit` for example"
        )
    if address in NO_ADDRESS:
        return
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, ValueError) as error:
        why = str(error) or f"it did not answer within {ANSWERS_WITHIN_S:.0f} s"
        raise ConfigError(
            f"--ray {address}: no cluster answers there ({why}). Give the HOST:PORT that `ray start --head` "
            "printed, or `--ray` alone for the cluster of this machine"
        ) from None
    writer.close()


def _brief(error: BaseException) -> str:
    """Return the first sentence of an error's last line, which says the most."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip().partition(". ")[0].rstrip(".")
