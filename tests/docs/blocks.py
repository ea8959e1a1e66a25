"""The code blocks of a page, run as a reader would: in order, in one folder with data/ and configs/.

- `console`: a line that begins with `asyncbench` is run and must end well. Models of real providers are
  answered by the simulator, through the provider's own adapter. Of what installs or runs for minutes
  (`make`, `pip`, benchmarks) it is checked that the target, the extra or the module is there.
- `python`: run; names live on from block to block.
- `yaml`: a first line `# NAME.yaml` makes it a file. It is loaded as a sweep; what is only a part of one
  is put into a whole one first.
- `csv`: becomes the file my.csv.
- `sql`: asked of results/overnight.
- `text`: what a command prints, or a drawing; it holds no command.
- `<!-- not run: REASON -->` before a block leaves it out; its commands and options must exist all the same.
"""

import ast
import asyncio
import importlib.util
import inspect
import io
import os
import re
import shlex
import shutil
import socket
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

import pytest
import typer
import yaml
from typer.core import TyperGroup

import asyncbench as ab
from asyncbench.cli import app, main
from asyncbench.config.sweep import load_sweep, sweep_from
from asyncbench.providers.endpoints import _our_endpoints, usable_endpoints
from asyncbench.simulator.settings import Settings
from docs.generated import written_by_hand
from tests.processes import Forked
from tests.simulators import forked

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^>]+?) -->\s*\n)?^```(?P<kind>\w+)[^\n]*\n(?P<text>.*?)^```$", re.M | re.S
)
_PORT = re.compile(r"--port (\d+)")
_RPM = re.compile(r"\brpm: \d+")
WHOLE = {"name": "part", "problems": ["data/llm_arithmetic.parquet"], "models": ["simulated/oracle"]}


@dataclass(frozen=True, slots=True)
class Block:
    """A code block of a page."""

    kind: str
    text: str
    line: int
    reason: str | None  # why it is not run


def blocks_of(page: Path) -> list[Block]:
    """Return the code blocks of a page, in order."""
    text = written_by_hand(page.read_text("utf-8"))
    for port in set(_PORT.findall(text)):
        text = text.replace(port, str(_free_port()))
    text = _RPM.sub(r"\g<0>0", text)  # ten times as high: a test need not wait for a limit
    found = [
        Block(block["kind"], block["text"], text.count("\n", 0, block.start("text")), block["reason"])
        for block in _BLOCK.finditer(text)
    ]
    fences = len(re.findall(r"^\s*(?:```|~~~)", text, re.M))
    assert fences == 2 * len(found), f"{page}: a block without a language, or within something else"
    return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextmanager
def any_provider_simulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the simulator answer for all providers: no key is needed, and nothing leaves this machine."""

    def running(settings: Settings) -> object:
        return forked(settings, "tests.docs.any_model")

    table = dict(_our_endpoints())
    with monkeypatch.context() as patched:
        for name, endpoint in table.items():
            if endpoint.base_url_form is None:
                served = replace(endpoint, simulated=True, base_url=None)
                patched.setitem(_our_endpoints(), name, served)
            if endpoint.key_env:
                patched.setenv(endpoint.key_env, "a-key-of-no-use")
        patched.setattr("asyncbench.simulator.process.running", running)
        patched.setattr("asyncbench.run.checkup.running", running)
        usable_endpoints.cache_clear()
        try:
            yield
        finally:
            usable_endpoints.cache_clear()  # what was remembered of this table is true of no other


@dataclass
class Reader:
    """Somebody who types what a page says, in the folder where they are."""

    patched: pytest.MonkeyPatch  # of the environment: it ends with the test
    names: dict[str, object] = field(default_factory=dict)  # of the Python blocks so far
    started: list[Forked] = field(default_factory=list)  # in the background

    def follow(self, block: Block) -> None:
        """Do what a block says."""
        if block.reason is not None:
            check_commands(block)
        else:
            _FOLLOWED[block.kind](self, block.text)

    def console(self, text: str) -> None:
        for words in _typed(text):
            if words[-1] == "&":
                self.started.append(Forked(*words[:-1]))
            elif words[0] == "sleep":
                _wait_for_servers(self.started)
            elif words[0] == "kill":
                self.stop()
            elif words[0] == "export":
                self.export(words[1:])
            elif words[0] == "mv":
                shutil.move(words[1], words[2])
            elif words[0] == "asyncbench":
                _run(_globbed(words[1:]))
            else:
                _check_there(words)

    def export(self, variables: list[str]) -> None:
        """Set variables. A key that is set stays: pages write `…` for it."""
        for name, _, value in (given.partition("=") for given in variables):
            if name not in os.environ:
                self.patched.setenv(name, value)

    def python(self, text: str) -> None:
        code = compile(text, "the page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with redirect_stdout(io.StringIO()):
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(code, self.names))  # noqa: S307  our own page
            else:
                exec(code, self.names)  # noqa: S102  our own page

    def yaml(self, text: str) -> None:
        if named := re.match(r"# (\S+\.yaml)\n", text):
            Path(named[1]).write_text(text)
        found = yaml.safe_load(text)
        if "name" in found and "models" in found:
            path = Path(named[1] if named else "read.yaml")
            path.write_text(text)
            load_sweep(path)
        else:
            sweep_from(WHOLE | found)

    def text(self, text: str) -> None:
        assert not re.search(r"^(?:\$ )?asyncbench ", text, re.M), "a command stands in a `console` block"

    def toml(self, text: str) -> None:
        assert tomllib.loads(text)

    def csv(self, text: str) -> None:
        Path("my.csv").write_text(text)

    def sql(self, text: str) -> None:
        assert ab.sql("results/overnight", text).num_columns > 0

    def stop(self) -> None:
        """End what was started in the background."""
        while self.started:
            process = self.started.pop()
            process.terminate()
            process.wait()


_FOLLOWED: Mapping[str, Callable[[Reader, str], None]] = {
    "console": Reader.console,
    "python": Reader.python,
    "yaml": Reader.yaml,
    "toml": Reader.toml,
    "csv": Reader.csv,
    "sql": Reader.sql,
    "text": Reader.text,
}


def _typed(text: str) -> Iterator[list[str]]:
    """Yield the words of each command."""
    for line in text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line.removeprefix("$ "), comments=True):
            yield words


def _run(arguments: list[str]) -> None:
    """Run a command as the installed script does; it must end with exit code 0."""
    said = io.StringIO()
    with (
        patch.object(sys, "argv", ["asyncbench", *arguments]),
        redirect_stdout(said),
        redirect_stderr(said),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert not ended.value.code, f"asyncbench {shlex.join(arguments)}\n{said.getvalue()}"


def _globbed(arguments: list[str]) -> list[str]:
    """Return arguments as a shell hands them on."""
    return [
        path
        for word in arguments
        for path in (sorted(map(str, Path().glob(word))) if "*" in word and " " not in word else [word])
    ]


def _wait_for_servers(started: list[Forked]) -> None:
    """Wait until each server that was started in the background answers."""
    for process in started:
        port = int(process.args[process.args.index("--port") + 1])
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            raise AssertionError(f"{process.args} does not answer")


def _check_there(words: list[str]) -> None:
    """Check that what a command needs is there, where running it would take long or change the machine."""
    match words:
        case ["make", *targets]:
            makefile = (ROOT / "Makefile").read_text()
            assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.M)] == []
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module)
        case ["pip", "install", package] | ["pipx", "install", package] | ["uv", "tool", "install", package]:
            _check_extra(package)
        case [".", ".venv/bin/activate"]:
            pass
        case _:
            raise AssertionError(f"cannot run {shlex.join(words)}; say why with <!-- not run: REASON -->")


def _check_extra(package: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.fullmatch(r"(?:\.|asyncbench)(?:\[([\w,]+)\])?", package)
    assert found, f"{package} is not this project"
    assert set((found[1] or "").split(",")) - {""} <= project["optional-dependencies"].keys()


def check_commands(block: Block) -> None:
    """Check that the commands of a block exist and take the options that they are given."""
    if block.kind != "console":
        return
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for words in _typed(block.text):
        if words[0] == "asyncbench":
            group.commands[words[1]].make_context(words[1], [word for word in words[2:] if word != "&"])
