"""A trial as a sample of Inspect: messages, reply, usage and scores; and the totals of samples.

Inspect's own reader is the judge of all names here: `EvalSample` and what is in it.
"""

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import fsum, sqrt
from typing import Any, Final

from asyncbench.config.questions import condition_from_results
from asyncbench.records import Condition, Finish, Model, Outcome, Problem, Trial, finish_of, says_nothing
from asyncbench.store.schema import OF_THE_TRIAL
from asyncbench.suites.requests import request_for
from asyncbench.suites.thinking import split_thinking

Row = Mapping[str, Any]  # Any: the columns of `trials` or of `grades`
Json = dict[str, Any]  # Any: JSON of theirs

RIGHT, WRONG, NO_ANSWER = "C", "I", "N"  # values of a score: their word for 1, 0 and 0
_MODEL_LENGTH = "model_context_window_exceeded", "model_length"
# Columns that a sample, or its log, tells in another place than `metadata`.
_ELSEWHERE: Final = frozenset(
    {
        *("run", "sweep", "problem_id", "suite", "repeat", "condition", "style", "condition_params"),
        *("model", "provider", "model_id", "effort", "params", "expected", "reply_text", "reasoning_text"),
        *("answer", "input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens"),
        *("reasoning_tokens", "finished_at"),
    }
)
_OF_A_SCORE: Final = frozenset({*OF_THE_TRIAL, "grader", "headline", "answer", "reason", "exact_match"})
_SHOWN = 1024  # characters of a text that their list of samples holds


def condition_of(name: str, style: str, params: str) -> tuple[Condition, bool]:
    """Return how a trial was asked, and whether that is all: texts of files are not in results."""
    return condition_from_results(name, style, json.loads(params))


def sample_of(row: Row, grades: Sequence[Row], problem: Problem, condition: Condition, epoch: int) -> Json:
    """Return a trial as an `EvalSample`; the headline grade is the first score."""
    messages = _messages(row, problem, condition)
    usage, queued_s, latency_s = usage_of(row), row["queued_s"], row["latency_s"]
    total_s = None if queued_s is None or latency_s is None else queued_s + latency_s

    text, reasoning = split_thinking(row["reply_text"] or "").answer, row["reasoning_text"]
    content = [{"type": "reasoning", "reasoning": reasoning}, {"type": "text", "text": text}]
    served = _known_fields({"model": row["model_served"]})
    reply = {"role": "assistant", "content": content if reasoning else text, "source": "generate", **served}

    failed = row["outcome"] == Outcome.FAILED
    output: Json = {"model": row["model_served"] or model_named(row), "choices": [], "completion": ""}
    if failed:
        output["error"] = _error(row)
    else:
        output["choices"] = [{"message": reply, "stop_reason": _stop_reason(row)}]
        output["completion"] = split_thinking(row["reply_text"]).answer

    scores: Json = {}
    for grade in grades:
        value = RIGHT if grade["exact_match"] else NO_ANSWER if grade["answer"] is None else WRONG
        explained = _known_fields({"answer": grade["answer"], "reason": grade["reason"]})
        scores[grade["grader"]] = {"value": value, **explained, "metadata": _metadata(grade, _OF_A_SCORE)}
    return {
        "id": row["problem_id"],
        "epoch": epoch,
        "input": messages[0]["content"] if len(messages) == 1 else messages,
        "target": row["expected"],
        "messages": messages if failed else [*messages, reply],
        "output": output | _known_fields({"usage": usage, "time": latency_s}),
        "scores": scores,
        "metadata": _metadata(row, _ELSEWHERE),
        "model_usage": {model_named(row): usage | _known_fields({"total_cost": row["cost_usd"]})}
        if usage
        else {},
        "completed_at": row["finished_at"].isoformat(),
        "uuid": row["trial_id"],
        **_known_fields({"total_time": total_s, "working_time": latency_s}),
        **({"error": {"message": _error(row), "traceback": "", "traceback_ansi": ""}} if failed else {}),
    }


def summary_of(sample: Json) -> Json:
    """Return a sample's `EvalSampleSummary` for the list of samples, with no long text."""
    same = ("id", "epoch", "model_usage", "completed_at", "total_time", "working_time", "uuid")
    prompt = sample["input"]
    error = {"error": sample["error"]["message"]} if "error" in sample else {}
    return {
        **{name: sample[name] for name in same if name in sample},
        "input": _cut(prompt if isinstance(prompt, str) else prompt[-1]["content"]),
        "target": _cut(sample["target"]),
        "metadata": _all_cut(sample["metadata"]),
        "scores": {
            grader: _all_cut(score) | {"metadata": _all_cut(score["metadata"])}
            for grader, score in sample["scores"].items()
        },
        "completed": True,
        "message_count": len(sample["messages"]),
        **error,
    }


def model_named(row: Row) -> str:
    """Return the model as they name it, with its provider; of an imported one only the name is known."""
    name: str = row["model_id"]
    return name if row["provider"] in ("imported", *name.split("/")[:1]) else f"{row['provider']}/{name}"


def usage_of(row: Row) -> Json | None:
    """Return the tokens of the reply as a `ModelUsage`, or None if they are unknown.

    Their `input_tokens` are those billed in full; ours are all.
    """
    read, written, out = row["input_tokens"], row["cache_write_tokens"], row["output_tokens"]
    if read is None or out is None:
        return None
    cached = row["cached_input_tokens"]
    details = {
        "input_tokens_cache_read": cached,
        "input_tokens_cache_write": written,
        "reasoning_tokens": row["reasoning_tokens"],
    }
    full = {"input_tokens": read - (cached or 0) - (written or 0), "output_tokens": out}
    return {**full, "total_tokens": read + out, **_known_fields(details)}


def _messages(row: Row, problem: Problem, condition: Condition) -> list[Json]:
    """Return the messages of a question, worded anew as they were when it was sent."""
    model = Model(
        alias=row["model"],
        provider=row["provider"],
        model_id=row["model_id"],
        api="chat",
        system=json.loads(row["params"]).get("system"),
    )
    names = ("trial_id", "run", "sweep", "problem_set", "repeat")
    request = request_for(
        Trial(problem=problem, model=model, condition=condition, **{name: row[name] for name in names})
    )
    system = [] if request.system is None else [{"role": "system", "content": request.system}]
    return system + [{"role": message.role, "content": message.content} for message in request.messages]


def _stop_reason(row: Row) -> str:
    reason = row["finish_reason"]
    finish = finish_of(reason)
    if row["outcome"] == Outcome.REFUSED or finish is Finish.REFUSED:
        return "content_filter"
    if row["outcome"] == Outcome.TRUNCATED or finish is Finish.TRUNCATED:
        return "model_length" if reason in _MODEL_LENGTH else "max_tokens"
    return "stop" if finish is Finish.ENDED and not says_nothing(reason) else "unknown"


def _error(row: Row) -> str:
    return f"{row['error_kind'] or 'failed'}: {row['error_message'] or 'no reply is recorded'}"


def _metadata(row: Row, elsewhere: frozenset[str]) -> Json:
    return {
        name: value for name, value in row.items() if name not in elsewhere and value not in (None, "", [])
    }


def _known_fields(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _all_cut(fields: Json) -> Json:
    return {name: _cut(value) if isinstance(value, str) else value for name, value in fields.items()}


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


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
        """The cost of all calls, or None if that of a trial is unknown."""
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
