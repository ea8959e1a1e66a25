"""What every test shares: the golden data, and a guard that refuses any socket but loopback."""

import gc
import ipaddress
import multiprocessing.util
import os
import re
import shlex
import socket
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import certifi
import pytest
from hypothesis import HealthCheck, settings

from tests.temporary_root import TemporaryRoot

if TYPE_CHECKING:
    from asyncbench.simulator.process import Simulator

LONGEST = (
    *("tests/test_published_table.py", "tests/crash/", "tests/test_cli.py", "tests/docs/test_published.py"),
    *(
        "tests/test_volume.py",
        "tests/test_secrets.py",
        "tests/store/test_sealing.py",
        "tests/docs/test_blocks.py",
    ),
)
COLLECTED_AFTER = 10_000  # objects
WHOLE_MODULE = re.compile(r"^pytestmark = pytest\.mark\.(\w+)", re.MULTILINE)
NO_TEXTS = "golden data not found"
NO_PLACE = ("tests/golden/README.md", 1)
MOST_SHOWN = 20  # failures with a traceback; beyond that something common to all is broken
ROOT = Path(__file__).resolve().parent.parent

# No test asserts a time: on a busy machine drawing and running an example may take seconds.
settings.register_profile("whatever it takes", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("whatever it takes")
os.environ.pop(
    "COLUMNS", None
)  # of a worker of xdist it is 80, whatever the terminal; tables would be folded
os.environ["TERM"] = "xterm"  # a dumb terminal redraws nothing; tests of one say so
# Before anything imports huggingface_hub, here and in the processes that tests start: whoever runs the tests
# may have a token, a cache and another endpoint; hf_xet opens sockets that the guard below does not see.
for name in [name for name in os.environ if name.startswith(("HF_", "HUGGING"))]:
    del os.environ[name]
os.environ |= {
    "HF_ENDPOINT": "http://127.0.0.1:9",  # where nobody listens
    "HF_HOME": str(ROOT / "tests" / "no-home-of-the-hub"),
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep all that is there once tests are collected out of the garbage collector's sight.

    It would look through a million objects of pytest and of libraries again and again. At its end a run lets
    go of what it set aside, and of these with it: so the collector looks less often than usual.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a module that another tier has as a whole: its libraries may take seconds."""
    if not collection_path.match("test_*.py"):
        return None
    tier = WHOLE_MODULE.search(collection_path.read_text("utf-8"))
    return (tier is not None and f"not {tier[1]}" in config.option.markexpr) or None


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a browser, and begin with the longest: the last test keeps only one worker busy."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


@pytest.hookimpl(tryfirst=True)  # before pytest decides where temporary folders are
def pytest_configure(config: pytest.Config) -> None:
    """Give the session a temporary folder of its own; workers of pytest-xdist write in it, too."""
    if not hasattr(config, "workerinput"):
        root = TemporaryRoot(config)
        # After multiprocessing removed its own folder in this one, which it does at -100.
        multiprocessing.util.Finalize(None, root.remove, exitpriority=-200)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Let no test end a worker: what would end the session is a failure of this test, by its name.

    Without pytest-xdist a KeyboardInterrupt may be somebody's Ctrl-C. Workers ignore that.
    """
    try:
        return (yield)
    except (KeyboardInterrupt, GeneratorExit, pytest.exit.Exception) as error:
        if not hasattr(item.config, "workerinput"):
            raise
        raise RuntimeError(f"the test raised {error!r}") from error


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a test even where pytest cannot show its traceback, and name missing texts once.

    A time limit may interrupt a test where a traceback entry has no line: pytest then fails to format it, and
    the whole session would end without a word about the test.
    """
    try:
        report = yield
    except Exception as error:
        shown = [f"pytest could not show this failure: {error!r}"]
        assert call.when != "collect"  # only phases of a test come here
        traceback = call.excinfo.tb if call.excinfo else None
        while traceback is not None:
            code = traceback.tb_frame.f_code
            shown.append(f"{code.co_filename}:{traceback.tb_lineno}: in {code.co_name}")
            traceback = traceback.tb_next
        report = pytest.TestReport(
            item.nodeid, item.location, {}, "failed", "\n".join(shown), call.when, duration=call.duration
        )
    if isinstance(report.longrepr, tuple) and NO_TEXTS in report.longrepr[2]:
        report.longrepr = (*NO_PLACE, report.longrepr[2])
    return report


@pytest.hookimpl(tryfirst=True)  # before the terminal shows any traceback
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Show no traceback where all is broken: the list of failures fits on a screen."""
    if session.testsfailed > MOST_SHOWN:
        session.config.option.tbstyle = "no"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the command that repeats what failed."""
    failed = [report.nodeid for kind in ("failed", "error") for report in terminalreporter.getreports(kind)]
    if failed:
        names = shlex.join(dict.fromkeys(failed[:MOST_SHOWN]))
        terminalreporter.write_line(f'To repeat: {sys.executable} -m pytest -m "" {names}')


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let no test read or write the cache of whoever runs it."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session", autouse=True)
def _trust(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let clients trust one certificate: each reads what it trusts, of a machine hundreds."""
    for name in ("SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"):
        os.environ.pop(name, None)
    first, end, _ = Path(certifi.where()).read_text("utf-8").partition("-----END CERTIFICATE-----\n")
    trusted = tmp_path_factory.mktemp("trust") / "ca.pem"
    trusted.write_text(first + end, "utf-8")
    os.environ["SSL_CERT_FILE"] = str(trusted)


@pytest.fixture(scope="session", autouse=True)
def _simulators() -> Iterator[None]:
    """Let runs share one process of simulators: from nothing, each imports for most of a second.

    That one starts from nothing is shown by tests/simulator/test_process.py, and by commands that do.
    """
    import asyncbench.run.checkup
    import asyncbench.simulator.process
    from tests.simulators import running

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asyncbench.simulator.process, "running", running)
        patched.setattr(asyncbench.run.checkup, "running", running)
        yield


@pytest.fixture(autouse=True)
def _suites_of_one_test() -> Iterator[None]:
    """Forget the suites that a test makes known: a process has one table of them, which others print."""

    def added() -> dict[str, object]:
        table = sys.modules.get("asyncbench.suites.table")
        return {} if table is None else table.SUITES._loaded

    before = dict(added())
    yield
    if added() != before:
        added().clear()
        added().update(before)
        sys.modules["asyncbench.suites.table"].grader_versions.cache_clear()


@pytest.fixture(scope="session", autouse=True)
def _no_collection_before_an_overview() -> Iterator[None]:
    """Let a run of this process show its overview without a look for garbage first.

    That one goes through all that pytest and its plugins hold, half a second each time. In processes that
    tests start it stays.
    """
    import asyncbench.commands.running

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asyncbench.commands.running, "gc", SimpleNamespace(collect=lambda: 0))
        yield


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set of 72 arithmetic problems; not to be changed."""
    from tests.sweep_files import problem_set

    return problem_set(tmp_path_factory.mktemp("sets"), trials=1)


@pytest.fixture(scope="module")
def server(problems: Path) -> "Iterator[Simulator]":
    """A simulator that knows these problems."""
    from tests.sweep_files import simulator

    with simulator(problems) as found:
        yield found


@pytest.fixture(scope="session")
def golden() -> Path:
    """The facts of the recorded data that results must match. Its replies are invented, and read the same."""
    return ROOT / "tests" / "golden"


@pytest.fixture(scope="session")
def texts() -> Path:
    """The recorded data with its replies, for tests marked `long`. Where it is absent they are skipped."""
    folder = Path(os.environ.get("ASYNCBENCH_GOLDEN", ROOT.parent / "shared" / "golden"))
    if not folder.is_dir():
        pytest.skip(f"{NO_TEXTS} at {folder}; set ASYNCBENCH_GOLDEN")
    return folder


@pytest.fixture(scope="session")
def recorded_runs(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recorded runs of llm_arithmetic, 17,153 trials in 26 files; not to be changed.

    `files` holds them as they were published, but for the words of the replies. `results` is the results
    folder that they were imported into, once for all processes of a test run.
    """
    from asyncbench.upkeep.importing import import_files
    from tests.recorded import made_once, write_jsonl

    def make(folder: Path) -> None:
        import_files("llm-arithmetic", write_jsonl(golden, folder / "files"), folder / "results")

    return made_once(tmp_path_factory, "recorded-runs", make)


@pytest.fixture(scope="session")
def published(recorded_runs: Path) -> list[Path]:
    """The recorded runs as files like those that were published: 26 of them."""
    return sorted((recorded_runs / "files").iterdir())


@pytest.fixture(scope="session")
def imported(recorded_runs: Path) -> Path:
    """The results folder that the recorded runs were imported into; not to be changed."""
    return recorded_runs / "results"


def _is_loopback(address: object) -> bool:
    if not isinstance(address, tuple):
        return True  # a Unix socket
    host = str(address[0])
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class LoopbackSocket(socket.socket):
    """A socket that connects to this machine only."""

    def connect(self, address: object) -> None:
        if not _is_loopback(address):
            raise RuntimeError(f"a test tried to reach {address}: only loopback is allowed")
        super().connect(address)  # type: ignore[arg-type]  # as given by the caller

    def connect_ex(self, address: object) -> int:
        if not _is_loopback(address):
            raise RuntimeError(f"a test tried to reach {address}: only loopback is allowed")
        return super().connect_ex(address)  # type: ignore[arg-type]  # as given by the caller


# For the whole test process, before any library takes a reference to the class. Processes that tests
# start are ours or talk to ours; the event loop's sock_connect goes through `connect` as well.
socket.socket = cast("type[socket.socket]", LoopbackSocket)  # type: ignore[misc]  # replaced on purpose
