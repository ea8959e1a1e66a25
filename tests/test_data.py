"""The ready-made problem sets are what their documented commands make, here as anywhere."""

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from asyncbench.problems.making import generate
from asyncbench.problems.opening import open_set

DATA = Path(__file__).resolve().parent.parent / "data"
COMMANDS = {
    Path(words[4]).name: words
    for words in map(
        shlex.split, re.findall(r"^asyncbench generate .*$", (DATA / "README.md").read_text(), re.M)
    )
}
MB = 1024 * 1024


def batched(words: list[str]) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2], strict=True))


def test_every_file_has_its_command_and_every_command_its_file():
    assert {path.name for path in DATA.glob("**/*.parquet")} == {*COMMANDS, "recorded.parquet"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_documented_command_makes_the_same_content_again(name, tmp_path):
    _, _, suite, _, out, _, seed, *rest = COMMANDS[name]
    given = {key.removeprefix("--").replace("-", "_"): value for key, value in batched(rest)}
    again = generate(suite, tmp_path / name, seed=int(seed), **given)
    kept = open_set(DATA / name)

    assert out == f"data/{name}"
    assert list(again.read()) == list(kept.read())
    assert (again.digest, again.seed) == (kept.digest, kept.seed)
    assert open_set(again.path).parameters == kept.parameters


def test_nupa_mini_has_two_of_each_of_the_44_tasks_at_each_length():
    kept = open_set(DATA / "nupa-mini.parquet")
    cells = Counter((one.task, one.variant, one.representation, one.length) for one in kept.read())
    steady = {cell: n for cell, n in cells.items() if cell[0] != "to_float" or cell[2] != "fraction"}

    assert len({cell[:3] for cell in cells}) == 44
    assert set(steady.values()) == {2}
    assert {cell[3] for cell in steady} == {*range(1, 21), 30, 40, 60, 80, 100}


def test_the_data_stay_under_5_mb():
    assert sum(path.stat().st_size for path in DATA.rglob("*")) < 5 * MB
