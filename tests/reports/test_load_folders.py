"""What else is read of a folder that holds a load: nothing forgets it, and nothing takes it for a sweep."""

import json
import re

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.upkeep.exporting import export_folder
from tests.reports.loaded import folder_of, step
from tests.store import made

FEW = [0.2 + n / 1000 for n in range(100)]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Answers to a load alone."""
    path = tmp_path_factory.mktemp("loaded") / "load"
    return folder_of(path, step(40, FEW), step(80, FEW, first=1000, verdict="client_bound"))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A sweep of two planned trials, of which one is done, and a load of the same model."""
    path = tmp_path_factory.mktemp("mixed") / "night"
    plan = {"night": {"planned": {"small": {"plain": {"nupa": {"add": 2}}}}}}
    return folder_of(path, made.answered(5000), step(40, FEW), runs=plan)


@pytest.mark.long
def test_a_report_of_a_load_alone_is_that_of_its_steps(loaded):
    assert ab.report(loaded).as_text() == ab.report(loaded, "load").as_text()


@pytest.mark.long
@pytest.mark.parametrize("style", ["morning", "standings", "heatmap", "anatomy", "quota"])
def test_styles_that_leave_loads_out_say_so_and_which_does_not(loaded, style):
    text = ab.report(loaded, style).as_text(width=300)
    assert f"`--style {style}` leaves out" in text
    assert "`--style load` shows them" in text


@pytest.mark.long
def test_an_accuracy_is_of_the_sweep_and_its_cost_of_all_calls(mixed):
    text = ab.report(mixed).as_text(width=200)
    assert "1 trial: 0 failed" in text
    cost = ab.report(mixed, "cost")
    told = json.loads(cost.as_json())
    assert "100 of these calls were made by `asyncbench load`." in cost.as_text(width=200)
    assert told["whole"]["usd"] == pytest.approx(0.25 + 100 * 0.001)
    assert [group["name"] for group in told["tasks"]] == [["nupa", "add"]]
    assert told["whole"]["correct"] == 101


def test_a_status_counts_steps_apart_from_the_trials_of_a_sweep(loaded, mixed):
    text = ab.status(loaded).as_text(width=200)
    assert "small under load: 2 steps, 1 measured, 1 client bound" in text
    assert re.search(r"^small +- +- +- +- +0 +200 ", text, re.M)  # it has steps, no planned trials
    assert ab.status(loaded).as_line().count("small under load: 2 steps") == 1
    assert f"asyncbench report {loaded} --style load shows what each step came to" in text
    (model,) = ab.status(mixed).models
    assert (model.planned, model.done, model.open) == (2, 1, 1)
    assert "load" not in ab.status(made.folder_of(mixed.parent / "plain", *made.answered(1))).as_text()


def test_an_export_leaves_answers_to_a_load_out(loaded, tmp_path):
    with pytest.raises(ConfigError, match="no finished trial"):
        export_folder("inspect", loaded, tmp_path / "inspect")
    with pytest.raises(ConfigError, match="no finished trial"):
        export_folder("nupa", loaded, tmp_path / "nupa")


def test_a_bill_is_compared_with_the_calls_of_a_load_too(loaded, tmp_path):
    bill = tmp_path / "bill.csv"
    bill.write_text("day,model,cost\n2026-09-21,gpt-5-mini-2026-08-07,0.2\n")
    found = ab.reconcile(bill, loaded, columns="day=day,model=model,cost=cost")
    assert found.close
    assert "0.2000" in found.as_text(width=200)
