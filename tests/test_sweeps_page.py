"""docs/sweeps.md explains every key that a sweep file may hold."""

import re
from pathlib import Path

import pytest

from asyncbench.config import load_sweep
from asyncbench.config.conditions import ConditionEntry
from asyncbench.config.entry import Entry
from asyncbench.config.models import (
    ModelEntry,
    PriceEntry,
    ProviderEntry,
    RetryEntry,
    TimeoutsEntry,
)
from asyncbench.config.notify import NotifyEntry
from asyncbench.config.sources import ProblemsEntry
from asyncbench.config.sweep import StopEntry, SweepEntry

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "sweeps.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
ENTRIES: dict[str, tuple[type[Entry], ...]] = {
    "Top level": (SweepEntry,),
    "Stopping early": (StopEntry,),
    "A problem set": (ProblemsEntry,),
    "A model": (ModelEntry, PriceEntry, RetryEntry, TimeoutsEntry),
    "Notify": (NotifyEntry,),
    "Limits": (ProviderEntry,),
    "A condition": (ConditionEntry,),
}


@pytest.mark.parametrize("section", ENTRIES)
def test_every_key_is_explained_and_no_other(section):
    first_column = "".join(re.findall(r"^\| (.+?) \|", SECTIONS[section], re.M))
    known = {key for entry in ENTRIES[section] for key in entry.model_fields}
    assert known <= set(re.findall(r"`(\w+)`", SECTIONS[section]))
    assert set(re.findall(r"`(\w+)`", first_column)) <= known


def test_the_example_is_a_sweep(tmp_path):
    path = tmp_path / "sweep.yaml"
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    path.write_text(example)
    assert load_sweep(path).name == "overnight"
