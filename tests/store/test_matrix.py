"""The readers' matrix: damage of any kind to any file of a folder, and every command that reads one.

A command tells what it tells of the sound folder, or what is wrong with which file and what to do: it never
shows another figure in silence. What is drawn is told by its seed: ASYNCBENCH_MATRIX_SEED=7 plays it again.
"""

import os
import random
import re
import shutil

import pytest
import yaml

from asyncbench.store.folder import Store
from tests.commands import asyncbench_here
from tests.store.made import ended, reply, result, sent, trial
from tests.sweep_files import entry, problem_set, simulator

pytestmark = pytest.mark.long

SEED = os.environ.get("ASYNCBENCH_MATRIX_SEED")
WAYS_OUT = ("estore", "ove it", "--accept-loss", "run the sweep again")
CALLS = "SELECT model, count(*) AS n, sum(cost_usd) AS usd FROM attempts GROUP BY ALL ORDER BY ALL"
TRIALS = "SELECT model, task, outcome, count(*) AS n FROM trials GROUP BY ALL ORDER BY ALL"
READERS = {
    "status": ("status", "{folder}", "--json"),
    "sql of calls": ("sql", "{folder}", CALLS, "--json"),
    "sql of trials": ("sql", "{folder}", TRIALS, "--json"),
    "report": ("report", "{folder}", "--json"),
    "regrade": ("regrade", "{folder}", "--json"),
    "regrade --write": ("regrade", "{folder}", "--write", "--json"),
    "merge": ("merge", "{folder}", "{other}", "--out", "{out}"),
    "page": ("report", "{folder}", "--html", "--out", "{out}"),
    "run": ("run", "{sweep}", "--quiet", "--limit", "6"),
}
QUICK = ("status", "sql of calls", "sql of trials")  # drawn more often than the others
WRITERS = ("regrade --write", "run")  # of which the folder tells afterwards what became of it
VOLATILE = r'"(written_at|made_at|part_bytes|journal_bytes|parts)": ?[^,}\n]+|\d\d:\d\d(:\d\d)?'


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two nights of two models, and a third that was killed; another folder of the sweep to merge with."""
    home = tmp_path_factory.mktemp("matrix")
    problems = problem_set(home)
    with simulator(problems, latency_s=0.0) as server:
        models = [
            entry(server, f"simulated/{name}", price={"input": 1, "output": 2})
            for name in ("oracle", "noisy")
        ]
        for out, limits in (("other", (8,)), ("night", (3, 6))):
            for limit in limits:
                assert asyncbench_here(
                    "run", sweep_file(home / out, problems, models), "--quiet", "--limit", limit
                ).returncode in (0, 3)
        with Store.reopen(home / "night") as store:
            for n in range(4):
                store.keep(sent(trial(n)))
                store.keep(ended(trial(n), reply(n)))
                store.keep(result(trial(n), reply(n)))
            shutil.copytree(store.folder, home / "killed")
        yield home, problems, models


def sweep_file(folder, problems, models):
    said = {"name": "night", "out": str(folder), "problems": [str(problems)], "models": models}
    path = folder.with_name(f"{folder.name}.yaml")
    path.write_text(yaml.safe_dump(said))
    return path


def ask(reader, folder, home):
    """Run a command on a folder; return what became of it, and what it tells without times."""
    place, problems, models = home
    out = folder.with_name("out")
    shutil.rmtree(out, ignore_errors=True)
    out.unlink(missing_ok=True)
    sweep = sweep_file(folder, problems, models)
    names = {"folder": folder, "other": place / "other", "out": out, "sweep": sweep}
    done = asyncbench_here(*(word.format(**names) for word in READERS[reader]))
    told = done.stdout
    if done.returncode == 0 and reader in WRITERS:
        told = asyncbench_here("sql", folder, TRIALS, "--json").stdout
    if done.returncode == 0 and reader == "merge":
        told += asyncbench_here("sql", out, CALLS, "--json").stdout
    if done.returncode == 0 and reader == "page":
        told = out.read_text()
    return done, re.sub(VOLATILE, "", told)


def files_of(folder):
    parts = [path for path in folder.rglob("*.parquet") if "problems" not in path.parts]
    journal = list((folder / "journal").iterdir())
    return sorted(parts), [*journal, folder / "manifest.json", folder / "sweep.yaml"]


def damage(folder, rng):
    """Do something to a file of a folder; return what, and the files that may be named for it."""
    parts, others = files_of(folder)
    path, other = rng.choice([rng.choice(parts), rng.choice(others)]), rng.choice(parts)
    data = bytearray(path.read_bytes())
    kind = rng.choice(["flip", "truncate", "zero", "delete", "copy", "swap"])
    at = rng.randrange(len(data))
    named = {path}
    path.unlink()
    if kind == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "truncate":
        data = (
            data[:at] if data[at - 1 : at] != b"\n" else data[: at - 1]
        )  # at its end a journal was never more
    elif kind == "zero":
        end = min(len(data), at + rng.choice([1, 16, 4096]))
        data[at:end] = bytes(end - at)
    elif kind == "copy":
        copy = rng.choice(
            [
                path.with_name(f"part-000077{path.suffix}"),
                other.with_name(f"part-000078{path.suffix}"),
                path.with_name(f"000077{path.suffix}"),
            ]
        )
        copy.write_bytes(data)
        named.add(copy)
    elif kind == "swap" and other != path:
        path.write_bytes(other.read_bytes())
        other.unlink()
        path, named = other, named | {other}
    if kind != "delete":
        path.write_bytes(data)
    return f"{kind} of {', '.join(str(one.relative_to(folder)) for one in sorted(named))} at {at}", named


def drawn(seed, home, tmp_path, sound):
    """Return what is wrong with what a reader makes of a damage; None: nothing is."""
    rng = random.Random(seed)
    reader = rng.choice([*READERS, *QUICK * 6])
    folder = tmp_path / "night"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(home[0] / "killed", folder)
    if reader not in sound:
        sound[reader] = ask(reader, folder, home)[1]
        shutil.rmtree(folder)
        shutil.copytree(home[0] / "killed", folder)
    what, named = damage(folder, rng)
    done, told = ask(reader, folder, home)
    said = done.stderr + done.stdout
    about = f"seed {seed}: {what}, {reader}: exit {done.returncode}: {said[-600:]}"
    if done.returncode in (2, 5):
        named_there = any(path.name in said for path in named) or "manifest.json" in said
        return None if named_there and any(way in said for way in WAYS_OUT) else about
    if told == sound[reader] or "damaged" in said:
        return None if done.returncode in (0, 3) else about
    return about


@pytest.mark.long
@pytest.mark.parametrize("first", [0, 10] if SEED is None else [int(SEED)])
def test_no_damage_changes_a_figure_in_silence(home, tmp_path, first):
    sound: dict[str, str] = {}
    seeds = range(first, first + (10 if SEED is None else 1))
    assert [wrong for seed in seeds if (wrong := drawn(seed, home, tmp_path, sound))] == []


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_no_damage_of_two_thousand_changes_a_figure_in_silence(home, tmp_path):
    first = random.SystemRandom().randrange(10**9) if SEED is None else int(SEED)
    print(f"seeds {first} to {first + 1999}")
    sound: dict[str, str] = {}
    assert [
        wrong for seed in range(first, first + 2000) if (wrong := drawn(seed, home, tmp_path, sound))
    ] == []
