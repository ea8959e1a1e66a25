"""every-eval-ever: results as records in the schema from which pages of models read evaluations.

One file for each model and condition of a run, with the accuracy of each suite and of each of its tasks. The
schema is version 0.3.0 of https://github.com/evaleval/every_eval_ever.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Final

from asyncbench.analysis.sql import sql
from asyncbench.errors import ConfigError
from asyncbench.providers.endpoints import is_simulated
from asyncbench.published.files import FileToWrite, Row, names_told_apart
from asyncbench.stats.proportions import wilson
from asyncbench.store.rows import encode_json
from asyncbench.upkeep.inspect.samples import model_named

SCHEMA_VERSION: Final = "0.3.0"
UNTOLD: Final = "unknown"  # what a results folder does not tell, and the schema asks for
_KEY: Final = ("run", "model", "condition")
_ENTRANTS: Final = """
SELECT run, model, condition, first(provider) AS provider, first(model_id) AS model_id,
    first(style) AS style, first(condition_params) AS condition_params, first(params) AS params,
    first(effort) AS effort, max(finished_at) AS ended, count(*) AS trials
FROM trials WHERE load IS NULL GROUP BY ALL ORDER BY run, model, condition
"""
_COUNTS: Final = """
SELECT counts.*, problem_sets FROM (
    SELECT run, model, condition, suite, task, count(DISTINCT task) AS tasks, sum(trials)::BIGINT AS trials,
        sum(correct)::BIGINT AS correct, sum(failed)::BIGINT AS failed,
        sum(independent)::DOUBLE AS independent
    FROM accuracy
    GROUP BY GROUPING SETS ((run, model, condition, suite), (run, model, condition, suite, task))
) AS counts JOIN (
    SELECT run, suite, string_agg(DISTINCT problem_set, ', ' ORDER BY problem_set) AS problem_sets
    FROM trials WHERE load IS NULL GROUP BY ALL
) AS sets ON counts.run IS NOT DISTINCT FROM sets.run AND counts.suite = sets.suite
ORDER BY counts.suite, task NULLS FIRST
"""
_NUMBERS: Final = ("temperature", "top_p", "top_k", "max_tokens")  # parameters that the schema names

Json = dict[str, Any]  # Any: whatever JSON holds


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A model under a condition of a run, and its counts."""

    row: Row
    counts: Sequence[Row]
    sweep: str

    def write(self, file: BinaryIO) -> tuple[int, Sequence[str]]:
        """Write the record; return its trials, and what to fill in before it is published."""
        file.write(encode_json(self.record(datetime.now(UTC))) + b"\n")
        notes = ["scores between 0 and 1 and single replies are left out"]
        if is_simulated(self.row["provider"]):
            notes.append("SIMULATED: not to be published")
        return self.row["trials"], [*notes, f"source_organization_name is {UNTOLD!r}: write yours"]

    def record(self, now: datetime) -> Json:
        """Return the record as the schema has it."""
        row, created = self.row, f"{now.timestamp():.6f}"
        model, simulated = model_named(row), is_simulated(row["provider"])
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": f"{self.sweep}/{model.replace('/', '_')}/{created}",
            "evaluation_timestamp": row["ended"].isoformat(),
            "retrieved_timestamp": created,
            "source_metadata": {
                "source_name": "asyncbench",
                "source_type": "evaluation_run",
                "source_organization_name": UNTOLD,
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": "asyncbench", "version": version("asyncbench")},
            "model_info": {
                "name": row["model"],
                "id": model,
                "inference_platform": row["provider"],
                "additional_details": {"deployment_type": UNTOLD, "model_availability": UNTOLD}
                | ({"simulated": "true"} if simulated else {}),
            },
            "evaluation_results": [self._result(counts) for counts in self.counts],
        }

    def _result(self, counts: Row) -> Json:
        """Return the accuracy of a suite, or of one of its tasks."""
        name = "/".join(filter(None, [counts["suite"], counts["task"]]))
        accuracy = counts["correct"] / counts["trials"]
        low, high = wilson(accuracy, counts["independent"])
        interval = {"lower": low, "upper": high, "confidence_level": 0.95, "method": "Wilson score"}
        condition = {key: str(self.row[key]) for key in ("condition", "style", "condition_params", "params")}
        effort = {"effort": self.row["effort"]} if self.row["effort"] else {}
        sent = json.loads(self.row["params"] or "{}")
        arguments = {  # those that the schema has names for
            name: sent[name]
            for name in _NUMBERS
            if isinstance(sent.get(name), int | float) and not isinstance(sent[name], bool)
        }
        return {
            "evaluation_result_id": f"{name}/accuracy",
            "evaluation_name": name,
            "source_data": {"dataset_name": counts["problem_sets"], "source_type": "other"},
            "metric_config": {
                "evaluation_description": "Share of right answers. A failed call counts as not right.",
                "metric_id": "accuracy",
                "metric_name": "Accuracy",
                "metric_kind": "accuracy",
                "metric_unit": "proportion",
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": 0,
                "max_score": 1,
            },
            "score_details": {
                "score": accuracy,
                "details": {key: str(counts[key]) for key in ("trials", "correct", "failed")},
                "uncertainty": {"confidence_interval": interval, "num_samples": counts["trials"]},
            },
            "generation_config": {
                "generation_args": arguments,
                "additional_details": condition | effort,
            },
        }


def evaluations(folder: Path, manifest: Mapping[str, Any]) -> list[FileToWrite]:
    """Return the files of a results folder, by run, model and condition.

    Raises:
        ConfigError: it has no finished trial.
        StoreError: it cannot be read.
    """
    entrants, counts = sql(folder, _ENTRANTS).to_pylist(), sql(folder, _COUNTS).to_pylist()
    if not entrants:
        raise ConfigError(
            f"{folder} has no finished trial, so there is nothing to export. Answers to loads are left out."
        )
    files = list[FileToWrite]()
    for row, name in zip(entrants, names_told_apart(entrants, _KEY, ".json"), strict=True):
        of_row = [entry for entry in counts if all(entry[key] == row[key] for key in _KEY)]
        several = {entry["suite"] for entry in of_row if entry["tasks"] > 1}
        of_row = [entry for entry in of_row if entry["task"] is None or entry["suite"] in several]
        evaluation = Evaluation(row=row, counts=of_row, sweep=str(manifest.get("sweep") or folder.name))
        files.append(FileToWrite(name=name, write=partial(Evaluation.write, evaluation)))
    return files
