"""Records for Every Eval Ever: the figures of the folder, in the form of the published schema."""

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import asyncbench as ab
from asyncbench.upkeep.exporting import export_folder
from tests.commands import asyncbench_here, succeeded

SWEEP = """
name: shared
problems:
  - {suite: llm_arithmetic, seed: 7, trials: 1}
models:
  - {model: simulated/noisy, temperature: 0.5, max_tokens: 200}
conditions:
  - name: plain
  - {name: steps, system: Think step by step.}
"""
WHERE = "EVERY_EVAL_EVER_SCHEMA"  # the path of the published eval.schema.json

pytestmark = pytest.mark.long


def published_schema() -> Any:  # Any: JSON
    """Return the schema that the project publishes, of its package or of a file that is named."""
    path = os.environ.get(WHERE)
    if path is None and (spec := find_spec("every_eval_ever")) is not None and spec.origin:
        path = str(Path(spec.origin).with_name("schemas") / "eval.schema.json")
    if path is None:
        pytest.skip(f"neither the package every-eval-ever nor {WHERE} is there")
    return json.loads(Path(path).read_text())


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """The records of a small sweep under two conditions, and its results folder."""
    folder = tmp_path_factory.mktemp("every-eval-ever")
    (folder / "shared.yaml").write_text(SWEEP)
    succeeded(asyncbench_here("run", "shared.yaml", cwd=folder))
    exported = export_folder("every-eval-ever", folder / "results/shared", folder / "records")
    assert all("SIMULATED" in " ".join(file.notes) for file in exported.files)
    return {
        Path(file.path).name: json.loads(Path(file.path).read_bytes()) for file in exported.files
    }, folder / "results/shared"


def test_each_record_is_valid_by_the_published_schema(records):
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft7Validator(published_schema())
    assert {name: [*validator.iter_errors(record)] for name, record in records[0].items()} == {
        "simulated-noisy+plain.json": [],
        "simulated-noisy+steps.json": [],
    }


def test_records_have_the_figures_of_the_folder(records):
    by_name, folder = records
    told = {
        (record["evaluation_results"][0]["generation_config"]["additional_details"]["condition"], name): score
        for record in by_name.values()
        for result in record["evaluation_results"]
        for name, score in [(result["evaluation_name"], result["score_details"]["score"])]
    }
    rows = ab.sql(
        folder,
        "SELECT condition, task, sum(correct) / sum(trials) AS share FROM accuracy "
        "GROUP BY GROUPING SETS ((condition), (condition, task))",
    ).to_pylist()
    assert told == {
        (row["condition"], "/".join(filter(None, ["llm_arithmetic", row["task"]]))): row["share"]
        for row in rows
    }


def test_records_say_how_was_asked_and_that_a_simulator_answered(records):
    record = records[0]["simulated-noisy+steps.json"]
    asked = record["evaluation_results"][0]["generation_config"]
    assert asked["generation_args"] == {"temperature": 0.5, "max_tokens": 200}
    assert json.loads(asked["additional_details"]["condition_params"]) == {"system": "Think step by step."}
    assert record["model_info"]["additional_details"]["simulated"] == "true"
