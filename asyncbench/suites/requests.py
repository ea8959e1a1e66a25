"""Requests from trials: a condition applied to a problem, and the comparison of two ways of asking."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

import orjson

from asyncbench.records import Condition, Message, Model, Problem, Request, Trial
from asyncbench.suites.wording import on_top_of, wording_of

SENT_WHEN_SET = (
    "system",
    "temperature",
    "top_p",
    "seed",
    "max_tokens",
    "effort",
    "thinking_tokens",
    "thinking",
)

JOIN: Final = "\n\n"  # between the system prompts of a model and of a suite


def request_for(trial: Trial) -> Request:
    """Return what is asked for a trial: the question as suite and template word it, nothing added.

    What its condition says first comes before it, then a suite's own worked examples. The system prompt is
    the condition's, or else the model's and the suite's, one after the other.
    """
    condition, model = trial.condition, trial.model
    worded = wording_of(trial.problem, condition)
    own, turns = on_top_of(condition)
    of_model = model.system if condition.system is None else None
    system_texts = [text for text in (of_model, worded.system) if text is not None]
    system = JOIN.join(system_texts) if system_texts else None
    return Request(
        trial=trial,
        system=system if own is None else own,
        messages=(*turns, *worded.turns, Message(role="user", content=worded.question)),
    )


def characters(request: Request) -> int:
    """Return the characters sent, from which token estimates are made."""
    return len(request.system or "") + sum(len(message.content) for message in request.messages)


# Tokens of a prompt that no text of ours is for: the roles and marks of a chat template, and what a template
# says before all else. Of 26 recorded models phi-4-reasoning-plus has most: 170 tokens beyond our bytes.
TOKENS_BESIDE_A_MESSAGE: Final = 16
TOKENS_BESIDE_A_CALL: Final = 512


def most_input_tokens(request: Request) -> int:
    """Return a number of tokens that a request cannot exceed: one for each byte, and what templates add.

    A token of a byte-level vocabulary stands for a byte at least. Parameters count, since a schema or a tool
    is read, too.
    """
    texts = [request.system or "", *(message.content for message in request.messages)]
    return _most_read(texts) + _most_beside_texts(request.trial.model, request.trial.condition)


def most_tokens_before(model: Model, condition: Condition) -> int:
    """Return the part of `most_input_tokens` that goes along with every question.

    With that of `worded_size` it is never too few, and two too many where only a model has a system prompt.
    """
    joined = "" if model.system is None else model.system + JOIN
    own, turns = on_top_of(condition)
    texts = [joined if condition.system is None else own or "", *(turn.content for turn in turns)]
    return _most_read(texts) + _most_beside_texts(model, condition)


def _most_read(texts: Sequence[str]) -> int:
    return sum(map(_bytes, texts)) + TOKENS_BESIDE_A_MESSAGE * len(texts)


def _most_beside_texts(model: Model, condition: Condition) -> int:
    own, added = model.params, condition.params
    params = {**own, **added} if own or added else None
    return TOKENS_BESIDE_A_CALL + (len(orjson.dumps(params, default=str)) if params else 0)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def worded_size(problem: Problem, condition: Condition) -> tuple[int, int]:
    """Return the characters of what the suite of a problem says, and their part of `most_input_tokens`.

    It is all that `characters_before_question` and `most_tokens_before` leave out. It is the same for every
    model.
    """
    worded = wording_of(problem, condition)
    system = "" if worded.system is None or on_top_of(condition)[0] is not None else worded.system
    texts = [*(turn.content for turn in worded.turns), worded.question]
    return len(system) + sum(map(len, texts)), _most_read(texts) + _bytes(system)


def characters_before_question(model: Model, condition: Condition) -> int:
    """Return the characters that go along with every question of a model under a condition."""
    own, turns = on_top_of(condition)
    system = model.system if condition.system is None else own
    return len(system or "") + sum(len(turn.content) for turn in turns)


def sent_parameters(model: Model) -> dict[str, object]:
    """Return what shapes a model's replies beside the question: only what the sweep sets."""
    own = {name: value for name in SENT_WHEN_SET if (value := getattr(model, name)) is not None}
    return own | dict(model.params)


def recorded_parameters(model: Model) -> dict[str, object]:
    """Return all that goes along with the question: the sweep's parameters, and those that a budget adds.

    Limits that are compared are told, too, though not sent. What a budget adds says who may serve a call, as
    a limit does, and makes no trial another.
    """
    return merged_params(model.budget_params, sent_parameters(model)) | model.compared_limits


def merged_params(ours: Mapping[str, object], overrides: Mapping[str, object]) -> dict[str, object]:
    """Return `ours` with what is given over it, objects inside objects likewise."""
    merged = dict(ours)
    for name, value in overrides.items():
        before = ours.get(name)
        inside = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[name] = merged_params(before, value) if inside else value  # type: ignore[arg-type]  # it is inside
    return merged


def way_of_asking(model: Model, condition: Condition) -> bytes:
    """Return the way of asking as canonical JSON: equal for two entries that would ask alike.

    Alias, price, limits, deadlines and retries are left out: they change no reply. Limits are a part of it
    only where they are compared. So is the address
    of a simulator, which is a free port of this machine.
    """
    system = {} if condition.system is None else {"system": condition.system}
    # What comes before the question: the words themselves, whatever file they came from.
    turns = [(turn.role, turn.content) for turn in condition.turns]
    before_question = {
        "turns": turns or None,
        "shots": condition.shots,
        "template": condition.template,
        "digits": condition.digits or None,
    }
    way = {
        "provider": model.provider,
        "base_url": None if model.simulated else model.base_url,
        "api": model.api,
        "model_id": model.model_id,
        "params": sent_parameters(model.under(condition)) | system | dict(condition.params),
        "style": condition.style,
        "condition": {name: value for name, value in before_question.items() if value is not None},
    }
    replayed = {} if model.replay is None else {"replay": model.replay}  # whose answers are given again
    limits = {"limits": model.compared_limits} if model.compared else {}
    return orjson.dumps(way | replayed | limits, option=orjson.OPT_SORT_KEYS)


class TrialIds:
    """The ids of all trials of one model under one condition: 128 bits of content as 32 hex characters.

    An imported trial's `run` is a part of it: two files may hold the same question of the same model. So is
    the step of a load: two steps may ask the same.
    """

    def __init__(
        self, model: Model, condition: Condition, *, run: str | None = None, load: str | None = None
    ) -> None:
        self._way = blake2b(way_of_asking(model, condition), digest_size=16)
        if run is not None:
            self._way.update(f"\n{run}".encode())
        if load is not None:
            self._way.update(f"\0{load}".encode())

    def of(self, problem_id: str, *, prompt_version: int, repeat: int) -> str:
        """Return the id of asking this problem this way for the (repeat + 1)-th time."""
        return self.of_all([problem_id], prompt_version=prompt_version, repeat=repeat)[0]

    def of_all(self, problem_ids: Iterable[str], *, prompt_version: int, repeat: int) -> list[str]:
        """Return the ids of asking some problems."""
        copy, ids = self._way.copy, list[str]()
        for problem_id in problem_ids:
            digest = copy()
            digest.update(f"\n{problem_id}\n{prompt_version}\n{repeat}".encode())
            ids.append(digest.hexdigest())
        return ids
