"""Reads `.eval` logs with Inspect's own package, in an environment that has it; imports nothing of ours.

python inspect_reader.py FOLDER    what the package says of each log, as JSON
python inspect_reader.py --schema  the JSON schema of its records, as `inspect_schema.json` holds it
"""

import json
import sys
from importlib.metadata import version
from typing import Any

from inspect_ai.log import (
    EvalLog,
    EvalSample,
    EvalSampleReductions,
    EvalSampleSummary,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    recompute_metrics,
)
from pydantic.json_schema import models_json_schema

Json = dict[str, Any]

# ── what it reads ────────────────────────────────────────────────────────────────────────────


def metrics(log: EvalLog) -> Json:
    return {
        score.name: {name: metric.value for name, metric in score.metrics.items()}
        for score in log.results.scores
    }


def read(path: str) -> Json:
    """Return what the package says of a log. `counted` is what it counts itself, from the samples."""
    header = read_eval_log(path, header_only=True)
    said, headline = metrics(header), header.results.headline.score
    log = read_eval_log(path)
    recompute_metrics(log)
    last = log.samples[-1]
    alone = read_eval_log_sample(path, id=last.id, epoch=last.epoch)
    by_uuid = read_eval_log_sample(path, uuid=last.uuid)
    summaries = read_eval_log_sample_summaries(path)
    usage = header.stats.model_usage.get(header.eval.model)
    return {
        "status": header.status,
        "task": header.eval.task,
        "model": header.eval.model,
        "condition": header.eval.task_args["condition"],
        "tags": header.tags,
        "headline": headline,
        "said": said,
        "counted": metrics(log),
        "samples": len(log.samples),
        "summaries": len({(summary.id, summary.epoch) for summary in summaries}),
        "reduced": {reduction.scorer: len(reduction.samples) for reduction in log.reductions},
        "right": sum(sample.scores[headline].value == "C" for sample in log.samples),
        "errors": sum(sample.error is not None for sample in log.samples),
        "output_tokens": sum(
            sample.output.usage.output_tokens for sample in log.samples if sample.output.usage
        ),
        "cost_usd": usage and usage.total_cost,
        "found_alone": alone == last == by_uuid,
        "texts": {
            sample.uuid: [sample.messages[-1 if sample.error else -2].text, sample.output.completion]
            for sample in log.samples
        },
    }


# ── what it publishes ────────────────────────────────────────────────────────────────────────

# Of all that its records may hold, these are enough for a log without tools, files or sandboxes.
KEPT = {
    *("EvalLog", "EvalSpec", "EvalConfig", "EvalDataset", "EvalPlan", "EvalPlanStep", "GenerateConfig"),
    *("EvalResults", "EvalScore", "EvalMetric", "HeadlineMetric", "EvalScorer", "EvalMetricDefinition"),
    *("EvalStats", "ModelUsage", "EvalSample", "EvalSampleSummary", "ChatMessageSystem", "ChatMessageUser"),
    *("ChatMessageAssistant", "ContentText", "ContentReasoning", "ModelOutput", "ChatCompletionChoice"),
    *("Score", "EvalError", "EvalSampleReductions", "EvalSampleScore"),
}
WORDS = {"description", "title", "default", "discriminator"}


def schema() -> str:
    """Return the schema of the kept records as JSON, one a line: names and types, without any text."""
    top = (EvalLog, EvalSample, EvalSampleSummary, EvalSampleReductions)
    _, whole = models_json_schema([(model, "validation") for model in top])
    kept = (
        f"{json.dumps(name)}: {json.dumps(bare(said), sort_keys=True)}"
        for name, said in sorted(whole["$defs"].items())
        if name in KEPT
    )
    source = f"Names and types of inspect-ai {version('inspect-ai')} (MIT License)."
    return f'{{"$comment": {json.dumps(source)}, "$defs": {{\n' + ",\n".join(kept) + "\n}}"


def bare(said: Any) -> Any:
    """Return a schema without words and without records that are not kept; None: it is of such a one."""
    if not isinstance(said, dict):
        return said
    if said.get("$ref", "").rpartition("/")[2] not in KEPT | {""}:
        return None
    found = {key: value for key, value in said.items() if key not in WORDS}
    if found.get("type") == "null":  # nothing that we write is null
        return None
    for key in ("anyOf", "oneOf"):
        if key in found:
            kinds = [kind for kind in map(bare, found.pop(key)) if kind is not None]
            if not kinds:
                return None
            found |= kinds[0] if len(kinds) == 1 else {key: kinds}
    for key in ("items", "additionalProperties"):
        if key in found and (found := found | {key: bare(found[key])})[key] is None:
            return None
    if "properties" in found:
        inner = {name: bare(value) for name, value in said["properties"].items()}
        found["properties"] = {name: value for name, value in inner.items() if value is not None}
        found["additionalProperties"] = False
    return found


if __name__ == "__main__":
    asked = sys.argv[1]
    if asked == "--schema":
        print(schema())
    else:
        print(json.dumps({info.name.rpartition("/")[2]: read(info.name) for info in list_eval_logs(asked)}))
