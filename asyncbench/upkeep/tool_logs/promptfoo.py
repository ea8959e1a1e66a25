"""Results of promptfoo: the JSON of `promptfoo eval --output results.json`, or of `promptfoo export eval`.

The form is version 3 (promptfoo 0.121). A provider is a model. Where there are several prompts, each is a
condition and the question is what fills them, so that prompts are compared on the same questions. The grade
is that of all assertions together (`promptfoo`).
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from asyncbench.errors import ConfigError
from asyncbench.published.files import Fields, content, mapping, parsed, required
from asyncbench.records import Condition, Reply
from asyncbench.upkeep.tool_logs.told import Entry, Options, Score, ToldTrial, moment, seconds, usage_in

VERSION: Final = 3
GRADER: Final = "promptfoo"
_COMPARED: Final = ("equals", "contains", "icontains", "starts-with", "is-json")  # with a text as the answer
_ERROR: Final = 2  # a `failureReason`: no answer came, where 1 is an assertion that failed


def promptfoo_results(path: Path, _options: Options) -> Iterator[Entry]:
    """Yield the results of a file."""
    try:
        results = mapping(
            required(mapping(parsed(content(path), with_nan=True), "results of promptfoo"), "results"),
            "results",
        )
        rows, version = required(results, "results"), results.get("version")
    except ValueError as error:
        raise ConfigError(f"{path} holds no results of promptfoo: {error}") from None
    if version != VERSION or not isinstance(rows, list):
        raise ConfigError(f"{path}: results of version {version!r} cannot be read, but version {VERSION} can")
    ended_at = moment(results.get("timestamp"))
    several = len({str(row.get("promptId")) for row in rows if isinstance(row, dict)}) > 1
    task = path.name.removesuffix(".json")
    for number, row in enumerate(rows):
        yield f"{path}, results.results[{number}]", partial(_told, row, task, ended_at, several=several)


def _told(raw: object, task: str, ended_at: float | None, *, several: bool) -> ToldTrial:
    """Return a result as a trial. A test that is run several times has a test index of its own each time."""
    row = mapping(raw, "a result")
    prompt, provider = mapping(required(row, "prompt"), "a prompt"), row.get("provider") or {}
    response, test = row.get("response") or {}, row.get("testCase") or {}
    model = str(provider.get("label") or required(provider, "id"))
    condition = Condition()
    question = str(required(prompt, "raw"))
    if several:
        label = str(prompt.get("label") or row.get("promptId"))
        condition = Condition(name=label, described={"prompt": label})
        question = (
            "\n".join(f"{name}: {value}" for name, value in (row.get("vars") or {}).items()) or question
        )

    error = row.get("error") if row.get("failureReason") == _ERROR or "output" not in response else None
    output = response.get("output")
    reply = None
    if error is None:
        usage = response.get("tokenUsage") or {}
        names = {"input_tokens": "prompt", "output_tokens": "completion"}
        text = output if isinstance(output, str) else str(output)
        reply = Reply(text=text, usage=usage_in(usage, **names) if usage.get("total") else None)

    # The grade is right where all assertions passed.
    score, passed = row.get("score"), row.get("success")
    partly = float(score) if isinstance(score, int | float) and 0 < score < 1 else 0.0
    reason = (row.get("gradingResult") or {}).get("reason")
    latency = row.get("latencyMs")
    return ToldTrial(
        task=task,
        question=question,
        accepted=tuple(_accepted(test)),
        model=model,
        simulated=provider.get("id") == "echo",
        condition=condition,
        reply=reply,
        error=None if error is None else str(error),
        scores={GRADER: Score(value=1.0 if passed else partly, reason=reason)},
        latency_s=None if latency is None or response.get("cached") else seconds(latency / 1000),
        cost_usd=seconds(row.get("cost")) if reply is not None and row.get("cost") else None,
        ended_at=ended_at,
    )


def _accepted(test: Fields) -> Iterator[str]:
    """Yield the text that the first assertion compares with; nothing where it compares with none."""
    for assertion in test.get("assert") or []:
        if isinstance(assertion, dict) and assertion.get("type") in _COMPARED:
            value = assertion.get("value")
            if isinstance(value, str) and value.strip():
                yield value
                return
