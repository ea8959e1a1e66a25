"""Samples of lm-evaluation-harness: `samples_TASK_TIME.jsonl`, as `--log_samples` writes them (0.4).

A line is a question under one filter; each filter and metric is a grader, such as
`lm-eval/exact_match,strict-match`. The model stands in the results_TIME.json beside it. A question that is
answered by likelihoods alone has no reply in words: the option that was likeliest stands for it.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.published.files import Fields, content, lines, mapping, parsed, required
from asyncbench.records import Reply
from asyncbench.upkeep.tool_logs.told import Entry, Options, Score, ToldTrial

_NAME: Final = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl")
_ORDER: Final = ("exact_match", "acc", "pass@1", "f1")  # of metrics: the first that is there counts


def lm_eval_samples(path: Path, options: Options) -> Iterator[Entry]:
    """Yield the questions of a file, with the lines of all filters; the option `model` names the model."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise ConfigError(f"{path} is no samples_TASK_TIME.jsonl, as lm-eval --log_samples writes them")
    model = str(options.get("model") or _model_of(path, match["time"] or ""))

    # The lines of one question: a filter each, all with the same replies.
    questions: dict[object, tuple[str, list[Fields]]] = {}
    for origin, line in lines(path):
        try:
            sample = mapping(parsed(line), "a sample")
            questions.setdefault(required(sample, "doc_id"), (origin, []))[1].append(sample)
        except ValueError as error:
            yield origin, partial(_refuse, str(error))
    for origin, samples in questions.values():
        yield origin, partial(_told, samples, match["task"], model)


def _refuse(message: str) -> ToldTrial:
    raise ValueError(message)


def _model_of(path: Path, time: str) -> str:
    """Return the model that the results beside samples name."""
    results = path.with_name(f"results_{time}.json")
    try:
        fields = mapping(parsed(content(results)), "results of lm-eval") if results.exists() else {}
    except ValueError as error:
        raise ConfigError(f"{results}: {error}. Name the model: --model NAME") from None
    if not (model := fields.get("model_name") or fields.get("model_source")):
        raise ConfigError(f"{path}: no {results.name} beside it names the model. Name it: --model NAME")
    return str(model)


def _told(samples: Sequence[Fields], task: str, model: str) -> ToldTrial:
    """Return a question as a trial."""
    sample = samples[0]
    requests = _requests(sample)
    options = [last for _, last in requests if isinstance(last, str)]
    accepted, question = str(required(sample, "target")), _question(requests[0][0])
    likelihoods = _likelihoods(sample)
    text: str | None = None
    if likelihoods and len(likelihoods) == len(options):
        text = options[likelihoods.index(max(likelihoods))].strip()
        if accepted.isdigit() and int(accepted) < len(options):
            accepted = options[int(accepted)]
        question = "\n".join([question, *options])
    else:
        first = sample["resps"][0] if sample.get("resps") else None
        reply = first[0] if isinstance(first, list) and first else first
        text = reply if isinstance(reply, str) else None
    return ToldTrial(
        task=task,
        question=question or str(sample.get("doc") or {}),
        accepted=(accepted.strip(),) if accepted.strip() else (),
        model=model,
        repeat=0,
        reply=None if text is None else Reply(text=text),
        scores=dict(sorted(_scores(samples), key=_rank)),
    )


def _requests(sample: Fields) -> list[tuple[Any, Any]]:
    """Return the arguments of each request: what was said, and what follows it."""
    arguments = required(sample, "arguments")
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    pairs = [tuple(request.values()) if isinstance(request, dict) else tuple(request) for request in requests]
    if not pairs or any(len(pair) < 1 for pair in pairs):
        raise ValueError("'arguments' holds no request")
    return [(pair[0], pair[1] if len(pair) > 1 else None) for pair in pairs]


def _question(message: object) -> str:
    """Return the text of a request: of a chat, what the user said last."""
    text = message[0] if isinstance(message, list) and message else message
    if isinstance(text, str) and text.startswith("[{"):
        turns = parsed(text.encode())
        if isinstance(turns, list):
            by_user = [turn["content"] for turn in turns if turn.get("role") == "user"]
            return str(by_user[-1]) if by_user else text
    return str(text)


def _likelihoods(sample: Fields) -> list[float]:
    """Return the log likelihood of each option; empty: the question was answered in words."""
    likelihoods = []
    for replies in sample.get("resps") or []:
        pair = replies[0] if isinstance(replies, list) and replies else None
        if not isinstance(pair, list) or len(pair) != 2:
            return []
        try:
            likelihoods.append(float(pair[0]))
        except (TypeError, ValueError):
            return []
    return likelihoods


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
