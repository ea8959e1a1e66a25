"""`asyncbench init`: a first sweep that loads, can be planned and, simulated, runs."""

import errno
import os
import pty
import tempfile
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

from asyncbench import run_sweep
from asyncbench.config import load_sweep, starter
from asyncbench.config.starter import (
    STARTERS,
    key_variable,
    providers_with_keys,
    providers_without_starter,
    sweep_text,
    write_sweep,
)
from asyncbench.errors import ConfigError
from asyncbench.files import creating, replacing
from asyncbench.planning import plan
from asyncbench.pricing import rates_for
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.run.summary import Exit
from tests.commands import CLEAN, asyncbench, whole
from tests.processes import Forked
from tests.sweep_files import problem_set

SECRET = "sk-never-to-be-seen"  # noqa: S105  no key of anybody's


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to stand in: paths of a sweep are relative to it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("provider", STARTERS)
def test_every_starter_is_priced_and_reached_by_a_key_alone(provider):
    endpoint = known_endpoints()[provider]
    rates = rates_for(STARTERS[provider].model_id, price=None, vendor=endpoint.prices, at=datetime.now(UTC))
    assert rates is not None
    assert endpoint.key_env
    assert endpoint.base_url_form is None


def test_a_provider_is_found_by_the_variable_of_its_key():
    env = {"OPENAI_API_KEY": SECRET, "GROQ_API_KEY": "  ", "HOME": "/"}
    assert providers_with_keys(env) == ("openai",)
    assert providers_without_starter(env) == ()


def test_keys_of_providers_without_a_starter_are_mentioned(folder):
    env = {"FIREWORKS_API_KEY": SECRET, "DASHSCOPE_API_KEY": SECRET}
    done = asyncbench("init", cwd=folder, env=env)
    assert "keys of fireworks, dashscope are set as well" in done.stdout
    assert "simulated models" in done.stdout
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("provider", STARTERS)
def test_a_sweep_of_a_provider_loads_and_can_be_planned(folder, provider):
    path = folder / "sweep.yaml"
    write_sweep(path, [provider])
    found = plan(path)
    assert [one.model for one in found.models] == [f"{provider}/{STARTERS[provider].model_id}"]
    assert found.cost_usd is not None
    assert found.cost_usd_most is not None
    assert found.warnings == ()
    assert key_variable(provider) in path.read_text()


def test_a_sweep_of_all_providers_loads(folder):
    write_sweep(folder / "all.yaml", list(STARTERS))
    assert len(load_sweep(folder / "all.yaml").models) == len(STARTERS)


def test_a_ready_made_problem_set_is_used_where_there_is_one(folder):
    problems = problem_set(folder)
    write_sweep(folder / "sweep.yaml", [], problems=problems)
    assert [one.path for one in load_sweep(folder / "sweep.yaml").problems] == [problems]


async def test_without_a_key_the_sweep_is_simulated_and_runs(folder):
    assert "SIMULATED" in sweep_text(folder / "sweep.yaml", [], problems=None)
    write_sweep(folder / "sweep.yaml", [])
    summary = await run_sweep(folder / "sweep.yaml", limit=5)
    assert (summary.exit, summary.simulated) == (Exit.COMPLETE, True)
    assert [one.done for one in summary.models.values()] == [5, 5]


@pytest.mark.parametrize(
    "name", ["2026.yaml", "a: b.yaml", "it's.yaml", 'quo"te.yaml', "añb😀.yaml", "no.yaml"]
)
def test_any_file_name_makes_a_sweep_that_loads(folder, name):
    write_sweep(folder / "new" / name, ["openai"])
    sweep = load_sweep(folder / "new" / name)
    assert f"{sweep.name}.yaml" == name
    assert sweep.out.name == sweep.name


def test_a_file_is_never_overwritten(folder):
    path = folder / "sweep.yaml"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="never overwritten"):
        write_sweep(path, [])
    assert asyncbench("init", path, "--yes").returncode == 2
    assert path.read_text() == "mine"


def test_a_file_that_is_made_meanwhile_is_not_overwritten_either(folder, monkeypatch):
    path = folder / "sweep.yaml"

    def made_meanwhile(*_, **__):
        path.write_text("mine")
        return "ours"

    monkeypatch.setattr(starter, "refuse_existing", lambda _: None)
    monkeypatch.setattr(starter, "sweep_text", made_meanwhile)
    with pytest.raises(ConfigError, match="never overwritten"):
        write_sweep(path, [])
    assert (path.read_text(), [one.name for one in folder.iterdir()]) == ("mine", [path.name])


@pytest.mark.parametrize("there", [False, True])
def test_a_disk_without_hard_links_takes_a_new_file_all_the_same(tmp_path, monkeypatch, there):
    def refused(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "new"
    if there:
        path.write_bytes(b"old")
    with pytest.raises(FileExistsError) if there else nullcontext(), creating(path) as file:
        file.write(b"new")
    assert path.read_bytes() == (b"old" if there else b"new")
    assert [*tmp_path.iterdir()] == [path]


def test_what_is_written_again_through_a_link_lands_where_it_leads(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "figures.json", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (target.read_bytes(), len([*target.parent.iterdir()])) == (b"new", 1)


def test_a_dangling_link_is_not_written_through(folder):
    (folder / "sweep.yaml").symlink_to(folder / "elsewhere")
    with pytest.raises(ConfigError, match="never overwritten"):
        write_sweep(folder / "sweep.yaml", [])
    assert not (folder / "elsewhere").exists()


@pytest.mark.parametrize(
    "arguments", [pytest.param(["--yes"], id="--yes"), pytest.param([], id="no terminal")]
)
def test_without_questions_every_key_that_is_found_is_used(folder, arguments):
    done = asyncbench("init", *arguments, cwd=folder, env=keys("openai", "anthropic"))
    assert done.returncode == 0, done.stderr
    assert "asyncbench plan sweep.yaml" in done.stdout
    assert SECRET not in done.stdout + done.stderr + (folder / "sweep.yaml").read_text()
    assert [one.provider for one in load_sweep(folder / "sweep.yaml").models] == ["openai", "anthropic"]


@pytest.mark.parametrize(
    ("answers", "providers"),
    [
        pytest.param(b"n\ny\n", ["anthropic"], id="one"),
        pytest.param(b"\n\n", ["openai", "anthropic"], id="both, by default"),
        pytest.param(b"n\nn\n", ["simulated", "simulated"], id="none"),
    ],
)
def test_on_a_terminal_each_key_is_asked_about(folder, answers, providers):
    ours, theirs = pty.openpty()
    os.write(ours, answers)
    with tempfile.TemporaryFile("w+") as out:
        streams = {"stdin": theirs, "stdout": out.fileno(), "stderr": out.fileno()}
        code = Forked(
            "asyncbench", "init", **streams, cwd=folder, env=CLEAN | keys("openai", "anthropic")
        ).wait()
        told = whole(out)
    os.close(ours)
    os.close(theirs)
    assert code == 0, told
    assert "openai/gpt-4.1-mini (key in OPENAI_API_KEY): use it?" in told
    assert SECRET not in told
    assert [one.provider for one in load_sweep(folder / "sweep.yaml").models] == providers


def keys(*providers):
    return {key_variable(name): SECRET for name in providers}
