"""How many workers a sweep asks for, and what that number may be."""

import asyncio
import os

import pytest
import yaml
from jsonschema import Draft202012Validator

import asyncbench as ab
from asyncbench.config.overriding import replace_workers
from asyncbench.config.run_entries import usable_cores, workers_here
from asyncbench.config.sweep import as_mapping, load_sweep, sweep_from
from asyncbench.config.sweep_file import sweep_schema
from asyncbench.errors import ConfigError
from asyncbench.run.options import RunOptions
from tests.commands import asyncbench_here

SWEEP = {
    "name": "night",
    "problems": [{"suite": "integer_addition", "tries": 1}],
    "models": ["simulated/oracle"],
}


@pytest.mark.parametrize("workers", [0, 2, 64, "auto"])
def test_a_sweep_and_its_folder_keep_the_number_as_it_was_written(workers):
    sweep = sweep_from(SWEEP | {"workers": workers})
    assert sweep.workers == workers
    assert sweep_from(as_mapping(sweep)).workers == workers


def test_no_workers_are_started_unless_somebody_asks_for_them():
    assert sweep_from(SWEEP).workers == 0
    assert "workers" not in as_mapping(sweep_from(SWEEP))


def test_a_sweep_stays_the_same_with_any_number_of_workers():
    assert sweep_from(SWEEP | {"workers": 4}) == sweep_from(SWEEP)


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (65, "must be at most 64 or 'auto', not 65"),
        (-1, "must be at least 0 or 'auto', not -1"),
        (1.5, "must be a whole number or 'auto', not 1.5"),
        (True, "must be a whole number or 'auto', not true"),
        ("all", "must be a whole number or 'auto', not 'all'"),
    ],
)
def test_any_other_number_is_refused_with_its_place(tmp_path, workers, said):
    file = tmp_path / "night.yaml"
    file.write_text(yaml.safe_dump(SWEEP | {"workers": workers}))
    with pytest.raises(ConfigError, match="'workers'") as refused:
        load_sweep(file)
    assert str(refused.value).endswith(f"line {_line_of(file)}: 'workers' {said}")
    assert not Draft202012Validator(sweep_schema()).is_valid(SWEEP | {"workers": workers})


def _line_of(file):
    return next(i for i, line in enumerate(file.read_text().splitlines(), 1) if line.startswith("workers"))


@pytest.mark.long
@pytest.mark.parametrize("typed", ["65", "-1", "1.5", "٢", "two", ""])
@pytest.mark.parametrize("command", ["run", "load"])
def test_a_number_that_is_typed_is_refused_by_the_name_of_its_option(tmp_path, command, typed):
    flags = ["--model", "simulated/oracle", "--suite", "integer_addition", "--out", tmp_path / "x"]
    load = ["--rates", "1"] * (command == "load")
    done = asyncbench_here(command, *flags, *load, "--workers", typed)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--workers {typed!r}: not a number of processes" in done.stderr
    assert "from 0 (none) to 64, or auto" in done.stderr
    assert not (tmp_path / "x").exists()


def test_a_number_given_in_python_is_refused_by_the_name_of_its_argument():
    with pytest.raises(ConfigError, match="workers 'many': not a number of processes"):
        asyncio.run(ab.run_sweep(SWEEP, workers="many"))  # type: ignore[arg-type]  # as people may
    with pytest.raises(ConfigError, match="workers '-1': not a number of processes"):
        replace_workers(sweep_from(SWEEP), -1)


def test_what_is_typed_wins_over_the_sweep():
    sweep = sweep_from(SWEEP | {"workers": 4})
    assert replace_workers(sweep, None).workers == 4
    assert replace_workers(sweep, 0).workers == 0
    assert replace_workers(sweep, "auto").workers == "auto"


def test_the_command_that_goes_on_starts_as_many():
    sweep = sweep_from(SWEEP | {"out": "night"})
    assert RunOptions(workers=2).command(sweep) == "asyncbench run night/sweep.yaml --workers 2"
    assert RunOptions(workers=0).command(sweep) == "asyncbench run night/sweep.yaml --workers 0"
    assert RunOptions(workers="auto", load=()).command(sweep).endswith("load night/sweep.yaml --workers auto")
    assert "--workers" not in RunOptions().command(sweep)


def test_auto_leaves_one_core_of_those_that_this_process_may_use_to_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("asyncbench.config.run_entries.CGROUP", tmp_path)  # no quota
    before = os.sched_getaffinity(0)
    try:
        assert workers_here("auto") == min(64, len(before) - 1)
        os.sched_setaffinity(0, {min(before)})
        assert workers_here("auto") == 0
        assert workers_here(3) == 3
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        pytest.param({"cpu.max": "150000 100000\n"}, 2, id="one core and a half"),
        pytest.param({"cpu.max": "50000 100000\n"}, 1, id="half a core"),
        pytest.param({"cpu.max": "max 100000\n"}, 8, id="no quota"),
        pytest.param({"cpu.max": "1600000 100000\n"}, 8, id="more than there are"),
        pytest.param(
            {"cpu/cpu.cfs_quota_us": "250000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3, id="version 1"
        ),
        pytest.param(
            {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8, id="version 1, no quota"
        ),
        pytest.param({"cpu/cpu.cfs_quota_us": "250000\n"}, 8, id="half of version 1"),
        pytest.param({"cpu.max": ""}, 8, id="nothing in the file"),
        pytest.param({"cpu.max": "100000 0"}, 8, id="no period"),
        pytest.param({"cpu.max/x": ""}, 8, id="no file"),
        pytest.param({}, 8, id="no cgroup"),
    ],
)
def test_a_container_has_as_many_cores_as_its_quota_lets_it_use(tmp_path, monkeypatch, files, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("asyncbench.config.run_entries.CGROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert usable_cores() == cores
