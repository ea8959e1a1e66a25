"""Models that are Python functions: `mine.py:answer` in a sweep file, or one that a program hands over.

    async def answer(question):
        return "42"  # or {"text": "42", "input_tokens": 12, "output_tokens": 1, "cost_usd": 0.0001}

It takes the text of the question; a function whose first parameter is `messages` takes a list of dicts with
`role` and `content`. Parameters that a sweep sets, such as `temperature`, it takes by their names. A function
that is not asynchronous runs in a thread of its own.
"""

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, Final, TypeVar

from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.files import found_input
from asyncbench.providers.calls import Call
from asyncbench.providers.error_kinds import BY_STATUS
from asyncbench.providers.secrets import withhold_pasted_key
from asyncbench.records import Condition, Model, Reply, ReplyTimes, Request, Usage
from asyncbench.suites.handed_functions import MARK, SESSION, digest_of_definition
from asyncbench.suites.plugins import function_named
from asyncbench.suites.requests import sent_parameters

PYTHON: Final = "python"  # the provider, as a sweep and results name it
MESSAGES: Final = "messages"  # the parameter that takes all of them
_NAME: Final = re.compile(
    rf"(?:{PYTHON}/)?(?:(?P<file>.+\.py):)?(?P<function>\w+)(?:@(?P<digest>[0-9a-f]{{{MARK}}}))?"
)
_T = TypeVar("_T")
_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)
_TEXTS: Final = ("reasoning", "finish_reason", "model_served")
_RULE: Final = "Return text, or a dict with `text` and, if you like, " + ", ".join(
    f"`{name}`" for name in (*_COUNTS, "cost_usd", *_TEXTS)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionName:
    """A function as a sweep names it: `mine.py:answer`, or `python/…` as results folders write it."""

    function: str
    file: str | None  # None: a program handed it over, and its digest is a mark of that process
    digest: str | None  # of its source when it was named; None: of what it is now

    @classmethod
    def parse(cls, model: str) -> "FunctionName | None":
        """Return the function that a model's name means, or None if it names no function."""
        if model.startswith(SESSION):
            model = f"{PYTHON}/{model.removeprefix(SESSION)}"
        match = _NAME.fullmatch(model)
        if match is None or not (match["file"] or (match["digest"] and model.startswith(f"{PYTHON}/"))):
            return None
        return cls(function=match["function"], file=match["file"], digest=match["digest"])

    def located(self, near: Path | None, *, place: str) -> "FunctionName":
        """Return the name with the whole path of its file and the digest of its source.

        Raises:
            ConfigError: there is no such file or function.
        """
        if self.digest is not None or self.file is None:
            return self
        way_out = "Put the file beside the sweep file, or correct the name"
        file = found_input(Path(self.file), near, place=place, way_out=way_out).resolve()
        try:
            digest = digest_of_definition(file.read_bytes(), self.function)
        except (OSError, SyntaxError, ValueError) as error:
            raise ConfigError(f"{place}: {file} cannot be read: {error}. Correct it.") from None
        if digest is None:
            raise ConfigError(f"{place}: {file} has no function {self.function!r}. Correct the name.")
        return FunctionName(function=self.function, file=str(file), digest=digest[:MARK])

    @property
    def model_id(self) -> str:
        """Name and digest, without the folder of the file: a file that is moved stays what it is."""
        file = "" if self.file is None else f"{Path(self.file).name}:"
        return f"{file}{self.function}@{self.digest}"


def python_name(model: Model) -> str:
    """Return the name of a function by which a later run finds it."""
    folder = "" if model.file is None else f"{Path(model.file).parent}/"
    return f"{PYTHON}/{folder}{model.model_id}"


def check_functions(models: Iterable[Model], conditions: Iterable[Condition]) -> None:
    """Refuse models whose function cannot be called as the sweep asks.

    Raises:
        ConfigError: it is gone, has changed, or takes other arguments.
    """
    conditions = tuple(conditions)
    for model in models:
        if model.provider != PYTHON:
            continue
        function = function_of_model(model)
        for condition in conditions:
            if not condition.asks(model.alias):
                continue
            parameters = _parameters(model, condition)
            try:
                inspect.signature(function).bind("question", **parameters)
            except TypeError as error:
                names = ", ".join(parameters) or "no parameters"
                raise ConfigError(
                    f"{model.alias}: the sweep sets {names}, and the function takes others: {error}. Write "
                    f"`def {function.__name__}({', '.join([*list(_signature(function))[:1], *parameters])})`."
                ) from None
            except ValueError:
                pass  # a function in C does not say what it takes


def function_of_model(model: Model) -> Callable[..., Any]:
    """Return the function that a model is.

    Raises:
        ConfigError: it is gone, has changed, or cannot be called with a question.
    """
    name, digest = model.model_id.rpartition(":")[2].split("@")
    text = f"{SESSION}{name}@{digest}" if model.file is None else f"{model.file}:{name}"
    if model.file is not None:
        now = FunctionName(function=name, file=model.file, digest=None).located(None, place=model.alias)
        if now.digest != digest:
            raise ConfigError(
                f"{model.alias}: {name!r} in {model.file} is not what it was when this sweep was written. "
                "Run your own sweep again, which asks the new function, or undo the change."
            )
    return function_named(text, None, place=model.alias, takes=("question",), awaited=True).call


def is_of_session(model: Model) -> bool:
    """Return whether a model is a function that no other process can tell from another."""
    return model.provider == PYTHON and model.file is None


class FunctionProvider:
    """Calls a function as a model."""

    def __init__(self, model: Model) -> None:
        self._function, self._model = function_of_model(model), model
        self._takes_messages = next(iter(_signature(self._function)), "") == MESSAGES

    async def ask(self, request: Request) -> Reply:
        """Call the function once.

        Raises:
            ProviderError: it raises, takes too long, or returns something else than a reply.
        """
        system = [] if request.system is None else [{"role": "system", "content": request.system}]
        messages = [*system, *({"role": turn.role, "content": turn.content} for turn in request.messages)]
        text = "\n\n".join(message["content"] for message in messages)
        question = messages if self._takes_messages else text

        # It takes all parameters of a sweep, as `check_functions` saw; `doctor` adds some of its own.
        signature = _signature(self._function)
        takes_any = any(entry.kind is entry.VAR_KEYWORD for entry in signature.values())
        parameters = _parameters(request.trial.model, request.trial.condition)
        parameters = {name: value for name, value in parameters.items() if takes_any or name in signature}

        loop, name = asyncio.get_running_loop(), self._function.__name__
        async with Call(self._model.timeouts) as call:
            call.sent(reused=False)
            sent_s = loop.time()
            try:
                if inspect.iscoroutinefunction(self._function):
                    returned = await self._function(question, **parameters)
                else:
                    work = partial(self._function, question, **parameters)
                    returned = await call_in_thread(work, name=name)
                    if inspect.isawaitable(returned):
                        returned = await returned
            except ProviderError:
                raise
            except Exception as error:
                raise _failure(error, name) from error
            took_s = loop.time() - sent_s
        try:
            return _reply(returned, sent_s=sent_s, took_s=took_s)
        except (TypeError, ValueError) as error:
            failure = ProviderError(ErrorKind.BAD_REQUEST, f"{name} returned {error}")
            failure.fault = error
            raise failure from error

    async def aclose(self) -> None:
        """Do nothing: it has no connection."""


def _signature(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except ValueError:  # a function in C does not say what it takes
        return {}


def _parameters(model: Model, condition: Condition) -> dict[str, Any]:
    """Return the parameters that a sweep sets for a model. The system prompt is in the question."""
    parameters = {**sent_parameters(model.under(condition)), **condition.params}
    parameters.pop("system", None)
    return parameters


async def call_in_thread(work: Callable[[], _T], *, name: str) -> _T:
    """Return the result of a function that would hold up the event loop.

    It runs in a daemon thread of this name: one that never ends keeps no process from ending. What it raises
    is raised here. What would end a process, such as SystemExit, is a RuntimeError.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[_T] = loop.create_future()

    def end(error: BaseException | None, returned: Any) -> None:
        if ended.done():
            return
        if error is None:
            ended.set_result(returned)
        else:
            ended.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))

    def call() -> None:
        raised, returned = None, None
        try:
            returned = work()
        except BaseException as error:
            raised = error
        with suppress(RuntimeError):  # the run has ended meanwhile
            loop.call_soon_threadsafe(end, raised, returned)

    Thread(target=call, name=name, daemon=True).start()
    return await ended


def _failure(error: Exception, name: str) -> ProviderError:
    """Return the error that a function's exception means; a server's status counts where it has one."""
    status = getattr(error, "status_code", None) or getattr(
        getattr(error, "response", None), "status_code", 0
    )
    if isinstance(error, TimeoutError):
        kind = ErrorKind.TIMEOUT
    elif isinstance(error, ConnectionError):
        kind = ErrorKind.UNREACHABLE
    elif isinstance(status, int) and status >= 400:
        kind = BY_STATUS.get(status, ErrorKind.SERVER_ERROR if status >= 500 else ErrorKind.BAD_REQUEST)
    else:
        kind = ErrorKind.BAD_REQUEST
    words = withhold_pasted_key(" ".join(str(error).split()))
    failure = ProviderError(kind, f"{name} raised {type(error).__name__}: {words}"[:500])
    failure.fault = error if kind is ErrorKind.BAD_REQUEST else None
    return failure


def _reply(returned: object, *, sent_s: float, took_s: float) -> Reply:
    """Return a function's result as a reply.

    Raises:
        TypeError: it is something else, and how it can be said.
    """
    fields = {"text": returned} if isinstance(returned, str) else returned
    if not isinstance(fields, Mapping) or not isinstance(fields.get("text"), str):
        raise TypeError(f"{returned!r:.80}. {_RULE}")
    if unknown := fields.keys() - {"text", *_COUNTS, *_TEXTS, "cost_usd"}:
        raise TypeError(f"{', '.join(map(repr, sorted(map(str, unknown))))}, which says nothing. {_RULE}")
    counts = {name: int(fields[name]) for name in _COUNTS if fields.get(name) is not None}
    if min(counts.values(), default=0) < 0:
        raise ValueError(f"{returned!r:.80}. Counts are not negative")
    cost = fields.get("cost_usd")
    return Reply(
        text=fields["text"],
        usage=Usage(**counts) if counts else None,
        raw_usage=dict(counts) or None,
        vendor_cost_usd=None if cost is None else float(cost),
        latency_s=took_s,
        http_status=None,
        times=ReplyTimes(sent_s=sent_s),
        **{name: fields[name] for name in _TEXTS if fields.get(name) is not None},
    )
