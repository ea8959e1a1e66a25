"""Requests from trials: the words for a problem, its condition applied, and the comparison of ways of asking.

The words are those of its suite, in the template of its condition if there is one. A template is text with
fields in braces; `{{` and `}}` are braces. Data that is filled in is never read as a template again. A field
tells what a problem is, and nothing from which its answer could be known.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import blake2b
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from string import Formatter
from typing import Final

import orjson

from asyncbench.contents import text_of
from asyncbench.errors import ConfigError
from asyncbench.files import found_input
from asyncbench.records import Condition, Message, Model, Problem, Request, Trial
from asyncbench.suites.chats import chat_in, map_contents
from asyncbench.suites.numbers import MOST_GROWTH, rewritten
from asyncbench.suites.suite import Wording
from asyncbench.suites.table import SUITES

# ── the messages for a problem

QUESTION: Final = "question"
# Not `expected` and `extra`, which hold the answer, nor `length`: it is the answer to a task of nupa.
OF_A_PROBLEM: Final = ("suite", "task", "variant", "representation", "answer_type")
FIELDS: Final = (QUESTION, "operands", *OF_A_PROBLEM)


def fields_in(template: str) -> tuple[str, ...]:
    """Return all that a template has in braces, as it stands there; some of it may be no field.

    Raises:
        ValueError: a brace stands alone.
    """
    return tuple(field for _, field in _parts(template) if field is not None)


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template with the values of its fields."""
    return "".join(text + ("" if field is None else values[field]) for text, field in _parts(template))


@lru_cache(maxsize=1024)
def _parts(template: str) -> tuple[tuple[str, str | None], ...]:
    """Return each text with the field behind it. A conversion or a format is a part of the field's name."""
    return tuple(
        (text, None if field is None else field + (f"!{to}" if to else "") + (f":{form}" if form else ""))
        for text, field, form, to in Formatter().parse(template)
    )


def wording_of(problem: Problem, condition: Condition) -> Wording:
    """Return the words that ask a problem under a condition.

    With a template that is all; without one, a system prompt and turns of the condition come on top.
    """
    suite, digits = SUITES.get(problem.suite), condition.digits
    if suite is None or suite.asking is None:
        question = map_contents(problem.question, partial(rewritten, digits=digits, numbers=problem.operands))
        *chat, last = chat_in(question) or [Message(role="user", content=question)]
        worded = Wording(chat=tuple(chat), question=last.content)
    else:
        worded = suite.asking.wording(problem, condition.style, condition.shots or 0, digits)
    if (template := condition.template) is None:
        return worded

    # The suite's own words stand in the templates of the condition.
    values = {name: getattr(problem, name) for name in OF_A_PROBLEM}
    operands = rewritten(", ".join(problem.operands), digits)
    values |= {QUESTION: worded.question, "operands": operands}
    talk = len(condition.turns) - condition.examples
    turns = [replace(turn, content=filled(turn.content, values)) for turn in condition.turns[:talk]]
    for turn in (*condition.turns[talk:], *worded.turns):  # examples are asked as the question is
        example_values = values | {QUESTION: turn.content}
        turns.append(replace(turn, content=filled(template, example_values)) if turn.role == "user" else turn)
    return Wording(
        system=worded.system if condition.system is None else filled(condition.system, values),
        turns=tuple(turns),
        chat=worded.chat,
        question=filled(template, values),
    )


def asks_as_it_stands(name: str, condition: Condition) -> bool:
    """Return whether the only message for a problem of a suite is its question, unchanged."""
    suite = SUITES.get(name)
    return (suite is None or suite.asking is None) and condition.template is None and not condition.digits


def fixed_messages(condition: Condition) -> tuple[str | None, tuple[Message, ...]]:
    """Return the system prompt and the turns that go along with every question as they stand."""
    return (condition.system, condition.turns) if condition.template is None else (None, ())


@lru_cache(maxsize=1024)
def digits_stored(condition_params: str) -> tuple[str, ...]:
    """Return the forms of numbers that a value of the column `condition_params` tells."""
    return tuple(json.loads(condition_params).get("digits", ()))


def most_characters(condition: Condition, suite: str, longest_question: int) -> int:
    """Return the most characters of a problem's messages, less those of `characters_before_question`.

    Of a template this is an estimate: its fields other than the question are thought no longer than that.
    """
    asking, shots = SUITES[suite].asking, condition.shots or 0
    longest = longest_question + (0 if asking is None else asking.added_characters(condition.style, shots))
    longest *= MOST_GROWTH if condition.digits else 1
    if (template := condition.template) is None:
        return longest
    texts = [condition.system or "", *(turn.content for turn in condition.turns)]
    texts += [template] * (1 + shots + condition.examples // 2)
    return sum(map(len, texts)) + longest * max(1, sum(len(fields_in(text)) for text in texts))


# ── Messages before a question: small talk that fills the context, or worked examples
# A file of small talk, and our own `small_talk.json`, is JSON:
# {"messages": [{"role": "user", "content": "hi!"}, {"role": "assistant", "content": "hello :)"}]}
# A file of worked examples is JSON Lines: {"question": "2 + 2?", "answer": "4"}.


# How many messages of our small talk each padding is: about 770, 1,800 and 3,700 tokens, as those of the
# llm_arithmetic project are. Each is the beginning of the next.
PADDINGS: Mapping[str, int] = {"1k": 16, "2k": 28, "4k": 44}


def padding(name: str, *, place: str, near: Path | None = None) -> tuple[Message, ...]:
    """Return the small talk called `name`: a key of `PADDINGS`, or a file (`near`: see `input_path`).

    Raises:
        ConfigError: the file is missing or is not in the form described above; names `place`.
    """
    if name in PADDINGS:
        ours = files("asyncbench.suites").joinpath("small_talk.json").read_text("utf-8")
        return _dialog(ours, place=place)[: PADDINGS[name]]
    text = _text(name, near, place=place, way_out=f"Name a file, or one of {', '.join(PADDINGS)}")
    return _dialog(text, place=f"{place}: {name}")


def examples(path: str, *, place: str, near: Path | None = None) -> tuple[Message, ...]:
    """Return the worked examples of a file as turns, in its order: each question, then its answer.

    `near` is the sweep file that names it: see `input_path`.

    Raises:
        ConfigError: the file is missing or is not in the form described above; names `place`.
    """
    text = _text(path, near, place=place, way_out="Correct the path")
    turns: list[Message] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{place}: {path}, line {number}"
        match _json(line, place=where):
            case {"question": str() as question, "answer": str() as answer} if question and answer:
                turns.append(Message(role="user", content=question))
                turns.append(Message(role="assistant", content=answer))
            case _:
                raise ConfigError(f'{where}: the line is not {{"question": "…", "answer": "…"}}. Correct it.')
    if not turns:
        raise ConfigError(f"{place}: {path} holds no examples. Add one per line.")
    return tuple(turns)


def _text(name: str, near: Path | None, *, place: str, way_out: str) -> str:
    path = found_input(name, near, place=place, way_out=way_out)
    return text_of(path, subject=f"{place}: {path}", way_out=way_out)


def _dialog(text: str, *, place: str) -> tuple[Message, ...]:
    match _json(text, place=place):
        case {"messages": [_, *_] as messages}:
            turns = []
            for number, raw in enumerate(messages, 1):
                match raw:
                    case {"role": ("user" | "assistant") as role, "content": str() as content} if content:
                        turns.append(Message(role=role, content=content))
                    case _:
                        raise ConfigError(
                            f"{place}, messages[{number}]: a message needs a role (user or assistant) and a "
                            "content (text)."
                        )
        case _:
            raise ConfigError(
                f'{place}: the file is not {{"messages": [{{"role": …, "content": …}}, …]}}. Correct it.'
            )
    expected = cycle(("user", "assistant"))
    wrong = [i for i, (turn, role) in enumerate(zip(turns, expected, strict=False), 1) if turn.role != role]
    if wrong or len(turns) % 2:
        raise ConfigError(
            f"{place}, messages[{wrong[0] if wrong else len(turns)}]: user and assistant must take turns, "
            "the user first and the assistant last. Your question follows."
        )
    return tuple(turns)


def _json(text: str, *, place: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{place}: not JSON: {error}. Correct it.") from None
    except RecursionError:
        raise ConfigError(f"{place}: nested too deeply. Write it flat.") from None


# ── requests, and what shapes a reply beside the question

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
    """Return the request of a trial: the question as suite and template word it, nothing added.

    What its condition says first comes before it, then a suite's own worked examples, and the earlier turns
    of a question that is a chat. The system prompt is the condition's, or else the model's and the suite's,
    one after the other; that of a chat follows them.
    """
    condition, model = trial.condition, trial.model
    worded = wording_of(trial.problem, condition)
    fixed_system, turns = fixed_messages(condition)
    model_system = model.system if condition.system is None else None
    general = (model_system, worded.system) if fixed_system is None else (fixed_system,)
    of_chat = (turn.content for turn in worded.chat if turn.role == "system")
    system_texts = [text for text in (*general, *of_chat) if text is not None]
    chat_turns = (turn for turn in worded.chat if turn.role != "system")
    return Request(
        trial=trial,
        system=JOIN.join(system_texts) if system_texts else None,
        messages=(*turns, *worded.turns, *chat_turns, Message(role="user", content=worded.question)),
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
    fixed_system, turns = fixed_messages(condition)
    texts = [joined if condition.system is None else fixed_system or "", *(turn.content for turn in turns)]
    return _most_read(texts) + _most_beside_texts(model, condition)


def _most_read(texts: Sequence[str]) -> int:
    return sum(map(_bytes, texts)) + TOKENS_BESIDE_A_MESSAGE * len(texts)


def _most_beside_texts(model: Model, condition: Condition) -> int:
    params = {**model.params, **condition.params} if model.params or condition.params else None
    return TOKENS_BESIDE_A_CALL + (len(orjson.dumps(params, default=str)) if params else 0)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def worded_size(problem: Problem, condition: Condition) -> tuple[int, int]:
    """Return the characters of what the suite of a problem says, and their part of `most_input_tokens`.

    It is all that `characters_before_question` and `most_tokens_before` leave out. It is the same for every
    model.
    """
    worded = wording_of(problem, condition)
    system = "" if worded.system is None or fixed_messages(condition)[0] is not None else worded.system
    before = (*worded.turns, *worded.chat)
    texts = [*(turn.content + JOIN * (turn.role == "system") for turn in before), worded.question]
    return len(system) + sum(map(len, texts)), _most_read(texts) + _bytes(system)


def characters_before_question(model: Model, condition: Condition) -> int:
    """Return the characters that go along with every question of a model under a condition."""
    fixed_system, turns = fixed_messages(condition)
    system = model.system if condition.system is None else fixed_system
    return len(system or "") + sum(len(turn.content) for turn in turns)


def sent_parameters(model: Model) -> dict[str, object]:
    """Return the parameters that shape a model's replies beside the question: only those of the sweep."""
    named = {name: value for name in SENT_WHEN_SET if (value := getattr(model, name)) is not None}
    return named | dict(model.params)


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

    Alias, price, limits, deadlines and retries are left out: they change no reply. So is the address of a
    simulator, which is a free port of this machine. Limits are a part of it only where they are compared.
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
    settings = {
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
    return orjson.dumps(settings | replayed | limits, option=orjson.OPT_SORT_KEYS)


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

    def make(self, problem_id: str, *, prompt_version: int, repeat: int) -> str:
        """Return the id of asking this problem this way for the (repeat + 1)-th time."""
        return self.make_all([problem_id], prompt_version=prompt_version, repeat=repeat)[0]

    def make_all(self, problem_ids: Iterable[str], *, prompt_version: int, repeat: int) -> list[str]:
        """Return the ids of asking some problems."""
        copy, ids = self._way.copy, list[str]()
        for problem_id in problem_ids:
            digest = copy()
            digest.update(f"\n{problem_id}\n{prompt_version}\n{repeat}".encode())
            ids.append(digest.hexdigest())
        return ids
