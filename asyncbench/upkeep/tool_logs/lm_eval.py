"""Samples of lm-evaluation-harness: `samples_TASK_TIME.jsonl`, as `--log_samples` writes them (0.4).

A line is a question under one filter; each filter and metric is a grader, such as
`lm-eval/exact_match,strict-match`. The model stands in the results_TIME.json beside it. A question that is
answered by likelihoods alone has no reply in words: the option that was likeliest stands for it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.published.files import Fields, RecordedRun, content, lines, mapping, parsed, required
from asyncbench.records import Reply
from asyncbench.upkeep.tool_logs.told import Entry, Score, ToldTrial, check_options, run_from

ENDINGS: Final = (".jsonl",)
_NAME: Final = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl")
_ORDER: Final = ("exact_match", "acc", "pass@1", "f1")  # of metrics: the first that is there counts


def reader(options: Mapping[str, object]) -> Callable[[Path], RecordedRun]:
    """Return what reads samples; `model` names the model of all."""
    check_options("lm-eval", options, ["model"])
    return partial(_read, named=options.get("model"))


def _read(path: Path, *, named: object) -> RecordedRun:
    return run_from(path, _entries(path, named), endings=ENDINGS)


def _entries(path: Path, named: object) -> Iterator[Entry]:
    """Yield the questions of a file, each with the lines of all its filters."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise ConfigError(f"{path} is no samples_TASK_TIME.jsonl, as lm-eval --log_samples writes them")
    model = str(named or _model_of(path, match["time"] or ""))

    # The lines of one question: a filter each, all with the same replies.
    questions: dict[object, list[tuple[str, bytes]]] = {}
    for place, line in lines(path):
        try:
            fields = mapping(parsed(line), "a sample")
            questions.setdefault(required(fields, "doc_id"), []).append((place, line))
        except ValueError as error:
            yield place, partial(_refuse, str(error))
    for of_question in questions.values():
        yield of_question[0][0], partial(_told, [line for _, line in of_question], match["task"], model)


def _refuse(message: str) -> ToldTrial:
    raise ValueError(message)


def _model_of(path: Path, time: str) -> str:
    """Return the model that the results beside samples name."""
    results = path.with_name(f"results_{time}.json")
    try:
        told = mapping(parsed(content(results)), "results of lm-eval") if results.exists() else {}
    except ValueError as error:
        raise ConfigError(f"{results}: {error}. Name the model: --model NAME") from None
    if not (model := told.get("model_name") or told.get("model_source")):
        raise ConfigError(f"{path}: no {results.name} beside it names the model. Name it: --model NAME")
    return str(model)


def _told(written: Sequence[bytes], task: str, model: str) -> ToldTrial:
    """Return a question as a trial."""
    samples = [mapping(parsed(line), "a sample") for line in written]
    sample = samples[0]
    asked = _asked(sample)
    options = [last for _, last in asked if isinstance(last, str)]
    target, doc = str(required(sample, "target")), sample.get("doc") or {}
    likelihoods = _likelihoods(sample)
    text: str | None = None
    if likelihoods and len(likelihoods) == len(options):
        text = options[likelihoods.index(max(likelihoods))].strip()
        accepted = options[int(target)].strip() if target.isdigit() and int(target) < len(options) else target
        question = "\n".join([_question(asked[0][0]), *options])
    else:
        first = sample["resps"][0] if sample.get("resps") else None
        reply = first[0] if isinstance(first, list) and first else first
        text, accepted, question = (reply if isinstance(reply, str) else None), target, _question(asked[0][0])
    return ToldTrial(
        task=task,
        question=question or str(doc),
        accepted=(accepted.strip(),) if accepted.strip() else (),
        model=model,
        reply=None if text is None else Reply(text=text),
        scores=dict(sorted(_scores(samples), key=_rank)),
    )


def _asked(sample: Fields) -> list[tuple[Any, Any]]:
    """Return the arguments of each request: what was said, and what follows it."""
    arguments = required(sample, "arguments")
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    pairs = [tuple(request.values()) if isinstance(request, dict) else tuple(request) for request in requests]
    if not pairs or any(len(pair) < 1 for pair in pairs):
        raise ValueError("'arguments' holds no request")
    return [(pair[0], pair[1] if len(pair) > 1 else None) for pair in pairs]


def _question(said: object) -> str:
    """Return the text of a request: of a chat, what the user said last."""
    text = said[0] if isinstance(said, list) and said else said
    if isinstance(text, str) and text.startswith("[{"):
        turns = parsed(text.encode())
        spoken = (
            [turn["content"] for turn in turns if turn.get("role") == "user"]
            if isinstance(turns, list)
            else []
        )
        return str(spoken[-1]) if spoken else text
    return str(text)


def _likelihoods(sample: Fields) -> list[float]:
    """Return the log likelihood of each option; empty: the question was answered in words."""
    found = []
    for replies in sample.get("resps") or []:
        pair = replies[0] if isinstance(replies, list) and replies else None
        if not isinstance(pair, list) or len(pair) != 2:
            return []
        try:
            found.append(float(pair[0]))
        except (TypeError, ValueError):
            return []
    return found


def _scores(samples: Sequence[Fields]) -> Iterator[tuple[str, Score]]:
    """Yield the grade of each metric under each filter."""
    for sample in samples:
        name = sample.get("filter") or "none"
        filtered = sample.get("filtered_resps") or []
        answer = filtered[0] if filtered and isinstance(filtered[0], str) else None
        for metric in sample.get("metrics") or []:
            value = sample.get(metric)
            if isinstance(value, int | float):
                grader = f"lm-eval/{metric}" if name == "none" else f"lm-eval/{metric},{name}"
                yield grader, Score(value=float(value), answer=answer)


def _rank(grade: tuple[str, Score]) -> int:
    metric = grade[0].removeprefix("lm-eval/").partition(",")[0]
    return _ORDER.index(metric) if metric in _ORDER else len(_ORDER)
