"""The header of a log: the run, the model, the suite and the results."""

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import blake2b
from math import fsum, sqrt
from typing import Final

from asyncbench.providers.endpoints import is_simulated
from asyncbench.records import OF_CONDITIONS, Outcome
from asyncbench.store.manifest import IMPORTED, RECORDED, Manifest
from asyncbench.store.rows import encode_json
from asyncbench.suites.requests import merged_params
from asyncbench.suites.table import SUITES
from asyncbench.upkeep.inspect.samples import RIGHT, Json, Row, condition_of, model_named, usage_of

# ── Totals of the samples of a log, counted as Inspect counts


METRICS: Final = ("accuracy", "stderr")  # those that their scorers have, unless they say otherwise


class GraderCounts:
    """What one grader found: by problem, how many answers it graded and how many were right."""

    def __init__(self) -> None:
        self.graded = Counter[str]()
        self.right = Counter[str]()

    def means(self) -> Iterator[tuple[str, float]]:
        """Yield each problem with the mean of its answers, to which their epochs are reduced."""
        for problem_id, answers in self.graded.items():
            yield problem_id, self.right[problem_id] / answers

    def metrics(self) -> Json:
        """Return accuracy and standard error over problems, as their metrics of these names define them."""
        n = len(self.graded)
        mean = fsum(value for _, value in self.means()) / n
        squares = fsum((value - mean) ** 2 for _, value in self.means())
        values = (mean, sqrt(squares / (n - 1) / n) if n > 1 else 0.0)
        return {
            name: {"name": name, "value": value, "params": {}}
            for name, value in zip(METRICS, values, strict=True)
        }


class LogCounts:
    """The sums of a log. It holds numbers by problem, and no text."""

    def __init__(self) -> None:
        self.trials = 0
        self.outcomes = Counter[str]()
        self.graders = defaultdict[str, GraderCounts](GraderCounts)
        self.problem_sets: dict[str, None] = {}  # in the order met
        self.tokens = Counter[str]()
        self.tokens_untold = 0  # replies without a number of tokens
        self.started_at: datetime | None = None  # the first call known of
        self.ended_at: datetime | None = None
        self._epochs: dict[str, int] = {}  # by problem: a bit for each of its epochs
        self._costs, self._cost_untold = array("d"), 0

    @property
    def problem_ids(self) -> list[str]:
        """The problems, in the order met."""
        return list(self._epochs)

    @property
    def epochs(self) -> int:
        """The largest number of times that a problem was asked."""
        return max(bits.bit_length() for bits in self._epochs.values())

    @property
    def cost_usd(self) -> float | None:
        """The cost of all calls; None: that of some trial is not known."""
        return None if self._cost_untold else fsum(self._costs)

    def epoch_of(self, row: Row) -> int:
        """Return the number of a trial among those of its problem, from 1.

        It is its repeat, unless a folder holds the same one twice: then the alias once meant something else.
        """
        bits, epoch = self._epochs.get(row["problem_id"], 0), row["repeat"] + 1
        while bits >> (epoch - 1) & 1:
            epoch += 1
        self._epochs[row["problem_id"]] = bits | 1 << (epoch - 1)
        return int(epoch)

    def add(self, row: Row, sample: Json) -> None:
        """Count a sample, made of this row."""
        self.trials += 1
        self.outcomes[row["outcome"]] += 1
        self.problem_sets[row["problem_set"]] = None
        for grader, score in sample["scores"].items():
            counts = self.graders[grader]
            counts.graded[row["problem_id"]] += 1
            counts.right[row["problem_id"]] += score["value"] == RIGHT
        usage = usage_of(row)
        self.tokens.update(usage or {})
        self.tokens_untold += usage is None and row["outcome"] != Outcome.FAILED
        if (cost := row["cost_usd"]) is None:
            self._cost_untold += 1
        else:
            self._costs.append(cost)
        ended = row["finished_at"]
        began = ended - timedelta(seconds=row["latency_s"] or 0)
        self.started_at = min(began, self.started_at or began)
        self.ended_at = max(ended, self.ended_at or ended)


# ── headers


VERSION: Final = 2  # of their format
# Our parameters by their names in `GenerateConfig`; all others are arguments of the model.
_CONFIG: Final = {
    **{name: name for name in ("temperature", "top_p", "seed", "max_tokens")},
    "thinking_tokens": "reasoning_tokens",
    "effort": "reasoning_effort",
}
_EFFORTS: Final = {"none", "minimal", "low", "medium", "high", "xhigh", "max"}


@dataclass(frozen=True, kw_only=True)
class LogHeader:
    """What a log says of itself."""

    row: Row  # of one of its trials: what is the same in all of them
    counts: LogCounts
    manifest: Manifest
    planned: int

    @property
    def unasked(self) -> int:
        """The number of planned trials that are not finished."""
        return max(0, self.planned - self.counts.trials)

    def start(self) -> Json:
        """Return what a log begins with."""
        return {"version": VERSION, "eval": self._spec, "plan": self._plan()}

    def whole(self) -> Json:
        """Return an `EvalLog` without its samples."""
        return {
            **self.start(),
            "status": "cancelled" if self.unasked else "success",
            "results": self._results(),
            "stats": self._stats(),
        }

    def reductions(self) -> Iterator[bytes]:
        """Yield the JSON of all `EvalSampleReductions`, problem by problem."""
        yield b"["
        for n, (grader, counts) in enumerate(self.counts.graders.items()):
            yield b"," * (n > 0) + b'{"scorer":' + encode_json(grader) + b',"samples":['
            for i, (problem_id, value) in enumerate(counts.means()):
                yield b"," * (i > 0) + encode_json({"sample_id": problem_id, "value": value})
            yield b"]}"
        yield b"]"

    @cached_property
    def _spec(self) -> Json:
        """Return the `EvalSpec`."""
        row, counts = self.row, self.counts
        suite = SUITES.get(row["suite"])
        config, arguments = self._parameters()
        own = {"condition": row["condition"], "style": row["style"]} | self._described()
        return {
            "eval_id": self._id("run", "model", "condition", "suite"),
            "run_id": self._id("run"),
            "created": self.manifest["created_at"],
            "task": row["suite"],
            "task_id": self._id("suite", "condition"),
            "task_version": suite.prompt_version if suite else 0,
            "task_args": own,
            "task_args_passed": own,
            "tags": ["asyncbench", *self._origins()],
            "dataset": {
                "name": ", ".join(counts.problem_sets),
                "samples": len(counts.problem_ids),
                "sample_ids": counts.problem_ids,
                "shuffled": False,
            },
            "model": model_named(row),
            "model_generate_config": config,
            "model_args": arguments,
            # A failed trial has an error and, since we count it as not right, scores.
            "config": {"epochs": counts.epochs, "fail_on_error": False, "score_on_error": True},
            "metadata": self._metadata(),
            "scorers": [
                {"name": grader, "metrics": [{"name": f"inspect_ai/{name}"} for name in METRICS]}
                for grader in counts.graders
            ],
        }

    def _plan(self) -> Json:
        step = {"solver": "generate", "params": {}, "params_passed": {}}
        return {"name": "plan", "steps": [step], "config": self._spec["model_generate_config"]}

    def _results(self) -> Json:
        counts = self.counts
        scores = [
            {
                "name": grader,
                "scorer": grader,
                "scored_samples": len(scored.graded),
                "unscored_samples": 0,
                "params": {},
                "metrics": scored.metrics(),
            }
            for grader, scored in counts.graders.items()
        ]
        headline = self.row["grader"]
        return {
            "total_samples": max(self.planned, counts.trials),
            "completed_samples": counts.trials - counts.outcomes[Outcome.FAILED],
            **({"logged_samples": counts.trials} if self.unasked else {}),
            "scores": scores,
            "headline": {"scorer": headline, "score": headline, "metric": METRICS[0]},
            "metadata": {"outcomes": dict(counts.outcomes), "cost_usd": counts.cost_usd},
        }

    def _stats(self) -> Json:
        counts = self.counts
        cost = {} if counts.cost_usd is None else {"total_cost": counts.cost_usd}
        return {
            "started_at": counts.started_at,
            "completed_at": counts.ended_at,
            "model_usage": {model_named(self.row): dict(counts.tokens) | cost} if counts.tokens else {},
        }

    def _metadata(self) -> Json:
        row = self.row
        recorded = [entry for entry in self.manifest.get(RECORDED, []) if entry["alias"] == row["model"]]
        return {
            **{name: row[name] for name in ("sweep", "run", "model", "provider", "condition", "suite")},
            "simulated": is_simulated(row["provider"]),
            **({"recorded_answers": recorded} if recorded else {}),
            "cost_usd": self.counts.cost_usd,
        }

    def _origins(self) -> Iterator[str]:
        if is_simulated(self.row["provider"]):
            yield "simulated"
        if self.manifest.get(IMPORTED):
            yield "imported"

    def _described(self) -> Json:
        """Return the condition in short; the digest only tells one text from another."""
        described: Json = json.loads(self.row["condition_params"])
        return {name: value for name, value in described.items() if name != "turns_digest"}

    def _parameters(self) -> tuple[Json, Json]:
        """Return what was sent beside the messages: what their config has a name for, and the rest."""
        row = self.row
        condition, _ = condition_of(row["condition"], row["style"], row["condition_params"])
        sent = dict(merged_params(json.loads(row["params"]), condition.params))
        sent |= {name: value for name in OF_CONDITIONS if (value := getattr(condition, name)) is not None}
        sent.pop("system", None)
        config = {
            _CONFIG[name]: sent.pop(name)
            for name in list(sent)
            if name in _CONFIG and (name != "effort" or sent[name] in _EFFORTS)
        }
        return config, sent

    def _id(self, *names: str) -> str:
        parts = [self.row["sweep"], *(self.row[name] for name in names)]
        return blake2b(encode_json(parts), digest_size=11).hexdigest()
