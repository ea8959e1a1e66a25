"""Who may read a results folder: its owner alone, until told otherwise; its files follow the umask."""

import os
import stat
import subprocess
import sys

import pytest
import yaml

from asyncbench.store.folder import Store
from asyncbench.store.parts import TEMPORARY
from tests.store.made import answered, keep as kept
from tests.sweep_files import problem_set
from tests.upkeep.exchange.made import jsonl, trial

COMMANDS = """
import sys
from asyncbench.cli import main
for line in sys.stdin.read().splitlines():
    sys.argv = ["asyncbench", *line.split()]
    try:
        main()
    except SystemExit as ended:
        assert ended.code == 0, (line, ended.code)
"""


def rights(path):
    return stat.S_IMODE(path.lstat().st_mode)


def check(folder, umask):
    assert rights(folder) == 0o700
    for path in folder.rglob("*"):
        assert rights(path) == (0o777 if path.is_dir() else 0o666) & ~umask, path


@pytest.mark.parametrize("umask", [0o002, 0o027, 0o077], ids=oct)
def test_a_new_folder_is_for_its_owner_and_its_files_follow_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        with Store.open(tmp_path / "results" / "night", sweep="night") as store:
            kept(store, *answered(1))
            store.write_file("note.json", b"{}")
            check(store.folder, umask)
            assert (store.folder / TEMPORARY).is_dir()
            assert list((store.folder / "journal").iterdir())
        check(store.folder, umask)
    finally:
        os.umask(before)
    assert rights(tmp_path / "results") == 0o777 & ~umask


def test_a_folder_that_is_there_keeps_its_rights(tmp_path):
    tmp_path.chmod(0o755)
    Store.open(tmp_path, sweep="night").close()
    assert rights(tmp_path) == 0o755


@pytest.mark.long
def test_folders_of_runs_merges_and_imports_are_for_their_owner(tmp_path):
    problems = problem_set(tmp_path, trials=1)
    problems.chmod(0o600)
    for name in "ab":
        models = [f"simulated/{'oracle' if name == 'a' else 'noisy'}"]
        said = {"name": "s", "problems": [str(problems)], "models": models, "out": str(tmp_path / name)}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(said))
    lines = jsonl(tmp_path / "x.jsonl", trial())
    commands = [
        *(f"run {tmp_path}/{name}.yaml --limit 2" for name in "ab"),
        f"merge {tmp_path}/a {tmp_path}/b --out {tmp_path}/merged",
        f"import llm-arithmetic {lines} --out {tmp_path}/imported",
    ]
    subprocess.run(
        [sys.executable, "-c", COMMANDS], input="\n".join(commands), text=True, check=True, umask=0o002
    )
    for name in ("a", "b", "merged", "imported"):
        check(tmp_path / name, 0o002)
