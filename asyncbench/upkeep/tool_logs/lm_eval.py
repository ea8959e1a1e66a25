"""Samples of lm-evaluation-harness: `samples_TASK_TIME.jsonl`, as `--log_samples` writes them (0.4).

A line is a question under one filter; each filter and metric is a grader, such as
`lm-eval/exact_match,strict-match`. The model stands in the results_TIME.json beside it. A question that is
answered by likelihoods alone has no reply in words: the option that was likeliest stands for it.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final

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

    # The results beside the samples name the model, unless an option does, and tell whether it is a mock.
    results = path.with_name(f"results_{match['time'] or ''}.json")
    fields: Fields = {}
    try:
        if results.exists():
            fields = mapping(parsed(content(results), with_nan=True), "results of lm-eval")
    except ValueError as error:
        if not options.get("model"):
            raise ConfigError(f"{results}: {error}. Name the model: --model NAME") from None
    source = fields.get("model_source")
    model = options.get("model") or fields.get("model_name") or source
    if not model:
        raise ConfigError(f"{path}: no {results.name} beside it names the model. Name it: --model NAME")

    # The lines of one question: a filter each, all with the same replies.
    questions: dict[object, tuple[str, list[Fields]]] = {}
    for origin, line in lines(path):
        try:
            sample = mapping(parsed(line, with_nan=True), "a sample")
            questions.setdefault(required(sample, "doc_id"), (origin, []))[1].append(sample)
        except ValueError as error:
            yield origin, partial(_refuse, str(error))
    for origin, samples in questions.values():
        yield origin, partial(_told, samples, match["task"], str(model), simulated=source == "dummy")


def _refuse(message: str) -> ToldTrial:
    raise ValueError(message)


def _told(samples: Sequence[Fields], task: str, model: str, *, simulated: bool) -> ToldTrial:
    """Return a question as a trial."""
    sample = samples[0]

    # The arguments of a request are the messages and, for likelihoods, the option that follows them.
    arguments = required(sample, "arguments")
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    pairs = [tuple(request.values()) if isinstance(request, dict) else tuple(request) for request in requests]
    if not pairs or not all(pairs):
        raise ValueError("'arguments' holds no request")
    options = [pair[1] for pair in pairs if len(pair) > 1 and isinstance(pair[1], str)]
    accepted, question = str(required(sample, "target")), _question(pairs[0][0])

    # The likeliest option is the reply, or the text that the model wrote.
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
        simulated=simulated,
        repeat=0,
        reply=None if text is None else Reply(text=text),
        scores=_scores(samples),
    )


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


def _scores(samples: Sequence[Fields]) -> dict[str, Score]:
    """Return the grade of each metric under each filter, that which counts first."""
    scores = list[tuple[int, str, Score]]()
    for sample in samples:
        name = sample.get("filter") or "none"
        filtered = sample.get("filtered_resps") or []
        answer = filtered[0] if filtered and isinstance(filtered[0], str) else None
        for metric in sample.get("metrics") or []:
            value = sample.get(metric)
            if isinstance(value, int | float):
                grader = f"lm-eval/{metric}" if name == "none" else f"lm-eval/{metric},{name}"
                rank = _ORDER.index(metric) if metric in _ORDER else len(_ORDER)
                scores.append((rank, grader, Score(value=float(value), answer=answer)))
    return {grader: score for _, grader, score in sorted(scores, key=itemgetter(0))}
