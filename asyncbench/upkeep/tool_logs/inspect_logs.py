"""Logs of Inspect: `.eval`, a ZIP archive with a sample a file, and `.json`, one object.

The form is that of inspect_ai 0.3 (`EvalLog`, version 2). A score `C`, `I`, `P` or `N` counts 1, 0, 0.5 or 0,
as its own metrics have it; a score with several values is a grader for each.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

import pyarrow as pa

from asyncbench.errors import ConfigError
from asyncbench.published.files import Fields, content, mapping, parsed, required
from asyncbench.records import Reply, Usage
from asyncbench.upkeep.tool_logs.told import Entry, Options, Score, ToldTrial, moment, seconds, usage_in

_ZSTD: Final = 93  # how Inspect compresses since 0.3.2xx; zipfile reads it from Python 3.14 on
_LOCAL_HEADER: Final = 30  # bytes of it before the name
_NO_ANSWER: Final = "N"
_WORDS: Final[Mapping[str, float]] = {
    "c": 1.0,
    "i": 0.0,
    "p": 0.5,
    "n": 0.0,
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}


def inspect_samples(path: Path, options: Options) -> Iterator[Entry]:
    """Yield the samples of a log; the option `model` names the model of all."""
    samples = list[tuple[str, Callable[[], Fields]]]()
    try:
        if path.suffix == ".json":
            log = mapping(parsed(content(path), with_nan=True), "a log of Inspect")
            for number, raw in enumerate(log.get("samples") or []):
                samples.append((f"{path}, samples[{number}]", partial(mapping, raw, "a sample")))
        else:
            archive = ZipFile(path)
            names = archive.namelist()
            # A run that was cut off, or still goes on, has no header so far.
            headers = [name for name in ("header.json", "_journal/start.json") if name in names]
            if not headers:
                raise ValueError(f"{path.name} holds neither header.json nor _journal/start.json")
            log = _object(archive, headers[0])
            for name in names:
                if name.startswith("samples/") and name.endswith(".json"):
                    samples.append((f"{path}, {name}", partial(_object, archive, name)))
        described = mapping(required(log, "eval"), "what was run")
        task, log_model = required(described, "task"), str(required(described, "model"))
    except (ValueError, BadZipFile) as error:
        raise ConfigError(f"{path} is no log of Inspect: {error}. Name a .eval or .json log") from None
    graders = [scorer["name"] for scorer in described.get("scorers") or [] if "name" in scorer]
    model = str(options.get("model") or log_model)
    for origin, read in samples:
        yield (
            origin,
            partial(_told, read, task=str(task), log_model=log_model, model=model, graders=graders),
        )


def _object(archive: ZipFile, name: str) -> Fields:
    """Return the JSON object of a member of an archive."""
    entry = archive.getinfo(name)
    if entry.compress_type != _ZSTD:
        return mapping(parsed(archive.read(entry), with_nan=True), "an object")

    # `zipfile` does not read Zstandard before Python 3.14.
    stream = archive.fp
    if stream is None:
        raise ValueError("the archive is closed")
    stream.seek(entry.header_offset)
    name_length, extra_length = struct.unpack("<26x2H", stream.read(_LOCAL_HEADER))
    stream.seek(entry.header_offset + _LOCAL_HEADER + name_length + extra_length)
    packed = pa.BufferReader(stream.read(entry.compress_size))
    try:
        data = pa.CompressedInputStream(packed, "zstd").read()
    except OSError as error:
        raise ValueError(f"{entry.filename} is damaged: {error}") from None
    return mapping(parsed(data, with_nan=True), "an object")


def _told(
    read: Callable[[], Fields], *, task: str, log_model: str, model: str, graders: Sequence[str]
) -> ToldTrial:
    """Return a sample as a trial; `log_model` is the model as the log names it."""
    sample = read()
    output, target = sample.get("output") or {}, sample.get("target")
    targets = target if isinstance(target, list) else [target]
    accepted = tuple(answer for answer in targets if isinstance(answer, str) and answer.strip())

    # The tokens of all calls of the sample, where they are told: those of a model that grades are apart.
    usage = (sample.get("model_usage") or {}).get(log_model) or output.get("usage") or {}

    # The reply is the last one; a sample that ended in an error has none, whatever was said before.
    error, choices = sample.get("error"), output.get("choices") or []
    reply = None
    if not error and choices:
        reply = Reply(
            text=str(output.get("completion") or _text(choices[0]["message"].get("content"))),
            finish_reason=choices[0].get("stop_reason"),
            model_served=output.get("model"),
            usage=_usage(usage),
        )
    scores = dict(_scores(sample.get("scores") or {}))
    if reply is None and not scores:
        scores = {f"inspect/{next(iter(graders), 'score')}": Score(value=0)}
    return ToldTrial(
        task=task,
        question=_question(sample),
        accepted=accepted,
        model=model,
        simulated=log_model.startswith("mockllm/"),
        repeat=max(0, int(sample.get("epoch") or 1) - 1),
        reply=reply,
        error=(error or {}).get("message") if isinstance(error, dict) else None,
        scores=scores,
        latency_s=seconds(output.get("time")),
        cost_usd=seconds(usage.get("total_cost")),
        ended_at=moment(sample.get("completed_at")),
    )


def _question(sample: Fields) -> str:
    """Return the question: the input as it was given, with its choices."""
    question = required(sample, "input")
    if isinstance(question, list):
        turns = [turn for turn in question if isinstance(turn, dict) and turn.get("role") == "user"]
        question = "\n\n".join(_text(turn.get("content")) for turn in turns)
    choices = sample.get("choices") or []
    listed = [f"{chr(ord('A') + n)}) {choice}" for n, choice in enumerate(choices)]
    return "\n".join([str(question), *listed])


def _text(content: object) -> str:
    """Return the text of a message, which may have several parts."""
    if isinstance(content, list):
        return "".join(str(block.get("text") or "") for block in content if isinstance(block, dict))
    return str(content or "")


def _scores(scores: Mapping[str, Any]) -> Iterator[tuple[str, Score]]:
    """Yield the score of each scorer; of one with several values, each."""
    for scorer, score in scores.items():
        value = score.get("value")
        values = dict(enumerate(value)) if isinstance(value, list) else value
        for name, single in (values if isinstance(values, dict) else {"": value}).items():
            grader = f"inspect/{scorer}" if name == "" else f"inspect/{scorer}.{name}"
            number = _WORDS.get(single.lower()) if isinstance(single, str) else single
            if not isinstance(number, int | float):
                raise ValueError(f"the score of {grader} is {single!r}, neither a number nor C, I, P or N")
            answer = "" if single == _NO_ANSWER else score.get("answer")
            yield grader, Score(value=float(number), answer=answer, reason=score.get("reason"))


def _usage(fields: Mapping[str, Any]) -> Usage | None:
    """Return the tokens of a reply: Inspect's `input_tokens` are without those of a cache."""
    names = {
        "input_tokens": "input_tokens",
        "cached_input_tokens": "input_tokens_cache_read",
        "cache_write_tokens": "input_tokens_cache_write",
        "output_tokens": "output_tokens",
        "reasoning_tokens": "reasoning_tokens",
    }
    usage = usage_in(fields, **names)
    if usage is None or usage.input_tokens is None:
        return usage
    cached = (usage.cached_input_tokens or 0) + (usage.cache_write_tokens or 0)
    return replace(usage, input_tokens=usage.input_tokens + cached)
