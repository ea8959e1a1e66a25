"""Models of a sweep have folders of their own, also on a disk that takes no notice of capitals."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.store.names import check_apart

PAIRS = {
    "capitals": ("Qwen", "qwen"),
    "one accent, written twice": ("caf\u00e9", "cafe\u0301"),
    "capitals with accents": ("\u00c9tude", "e\u0301tude"),
    "a sharp s": ("stra\u00dfe", "STRASSE"),
    "a dotted capital": ("\u0130x", "i\u0307x"),
    "a Greek sigma at the end": ("\u03bb\u03cc\u03b3\u03bf\u03c2", "\u039b\u038c\u0393\u039f\u03a3"),
    "the sign of Kelvin": ("\u212a2", "k2"),
    "a blank at the end": ("gpt", "gpt "),
}
APART = [("Qwen", "Qwen2"), ("a_b", "a-b"), ("I", "\u0131x"), ("caf\u00e9", "cafe"), ("a.b", "ab")]


@pytest.mark.parametrize("names", PAIRS.values(), ids=PAIRS.keys())
def test_names_that_a_disk_may_take_for_one_are_refused(names):
    with pytest.raises(ConfigError, match="differ only in capitals"):
        check_apart(names, place="sweep.yaml", way_out="Rename one")


@pytest.mark.parametrize("names", APART)
def test_names_that_every_disk_keeps_apart_are_taken(names):
    check_apart(names, place="sweep.yaml", way_out="Rename one")


def test_names_that_a_folder_holds_together_may_stay():
    check_apart(["A", "a"], {"A", "a", "b."}, place="sweep.yaml", way_out="Rename one")
    with pytest.raises(ConfigError, match="'A' and 'a' differ"):
        check_apart([], {"A"}, {"a"}, place="two folders", way_out="Keep them apart")
    with pytest.raises(ConfigError, match=r"'b\.' names a folder, and Windows leaves out the dot"):
        check_apart(["b."], {"A", "a"}, place="sweep.yaml", way_out="Rename it")


def sweep_in(folder: Path, *aliases: str, **model: object) -> dict[str, object]:
    (folder / "own.csv").write_text("question,answer\n1+1?,2\n2+2?,4\n")
    asked = ["simulated/oracle", "simulated/noisy", "simulated/noisy-2"]
    models = [{"model": name, "alias": alias, **model} for name, alias in zip(asked, aliases, strict=False)]
    return {
        "name": "apart",
        "problems": [{"path": str(folder / "own.csv"), "suite": "custom", "grader": "number"}],
        "models": models,
        "out": str(folder / "results"),
    }


async def test_a_sweep_is_refused_before_anything_is_asked(tmp_path):
    with pytest.raises(ConfigError, match="'Small' and 'small' differ only in capitals"):
        await ab.run_sweep(sweep_in(tmp_path, "Small", "small"))
    assert not (tmp_path / "results").exists()


async def test_a_shared_limit_has_a_folder_of_its_own_too(tmp_path):
    with pytest.raises(ConfigError, match="'Shared' and 'shared' differ only in capitals"):
        await ab.run_sweep(sweep_in(tmp_path, "shared", group="Shared"))


async def test_a_folder_that_holds_the_namesake_is_left_as_it_is(tmp_path):
    await ab.run_sweep(sweep_in(tmp_path, "Small"))
    with pytest.raises(ConfigError, match="'Small' and 'small' differ only in capitals"):
        await ab.run_sweep(sweep_in(tmp_path, "small"))
    assert ab.read_trials(tmp_path / "results").num_rows == 2


async def test_folders_with_one_of_them_each_are_not_merged(tmp_path):
    folders = [tmp_path / name for name in ("first", "second")]
    for folder, alias in zip(folders, ("Small", "small"), strict=True):
        folder.mkdir()
        await ab.run_sweep(sweep_in(folder, alias))
    with pytest.raises(ConfigError, match=r"'Small' and 'small' differ only in .* Keep the folders apart"):
        ab.merge_folders([folder / "results" for folder in folders], tmp_path / "both")


@pytest.fixture
def folding(tmp_path):
    """Return a folder on a disk that keeps capitals, but takes names that differ only in them for one."""
    tools = [shutil.which(name) for name in ("mkfs.exfat", "mount.exfat-fuse", "losetup")]
    if not all(tools) or os.geteuid():
        pytest.skip("needs to be root, with Debian's packages exfat-fuse and exfatprogs")
    make, mount, attach = map(str, tools)
    image, folder = tmp_path / "disk.img", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(64_000_000)
    subprocess.run([make, image], check=True, capture_output=True)
    attached = subprocess.run([attach, "-f", "--show", image], check=False, capture_output=True, text=True)
    if attached.returncode:
        pytest.skip(f"needs a loop device: {attached.stderr.strip()}")
    device = attached.stdout.strip()
    mounted = subprocess.run([mount, device, folder], check=False, capture_output=True, text=True)
    try:
        if mounted.returncode:
            pytest.skip(f"needs FUSE: {mounted.stderr.strip()}")
        yield folder
        subprocess.run(["/bin/umount", folder], check=True)
    finally:
        subprocess.run([attach, "-d", device], check=True)


@pytest.mark.slow
async def test_on_a_disk_that_folds_case_nothing_is_lost(folding):
    (folding / "A").touch()
    assert (folding / "a").exists()
    await ab.run_sweep(sweep_in(folding, "Small", "CON", "aux.txt"))
    trials = ab.read_trials(folding / "results")
    assert sorted(map(str, trials["model"].to_pylist())) == sorted(["Small", "CON", "aux.txt"] * 2)
    with pytest.raises(ConfigError, match="'Small' and 'small' differ only in capitals"):
        await ab.run_sweep(sweep_in(folding, "small"))
    await ab.run_sweep(sweep_in(folding, "Small", "CON", "aux.txt"))
    assert ab.read_trials(folding / "results").num_rows == 6
    assert ab.read_attempts(folding / "results").num_rows == 6
