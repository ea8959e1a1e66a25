"""Answers that are JSON: equal as values, whatever their spaces, the order of their keys and the text around.

    {"name": "Anna", "age": 31.0}    equals    ```json {"age": 31, "name": "Anna"} ```

Numbers are compared exactly, at any length: 1 is 1.0 and not true. NaN is no JSON, and an object that has a
key twice with different values has none.
"""

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, NoReturn

from asyncbench.errors import ConfigError
from asyncbench.records import Problem
from asyncbench.suites.grading_process import GradingProcess
from asyncbench.suites.judgement import Judgement

MOST_FAILED: Final = 500  # brackets that begin no JSON: a reply with more is read no further
_FENCED: Final = re.compile(r"^[ \t]*(```+|~~~+)[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)


class _NotJsonError(ValueError):
    pass


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all
        raise _NotJsonError(f"{text:.40} is too large or too small a number") from None


def _no_number(text: str) -> NoReturn:
    raise _NotJsonError(f"{text} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:  # Any: JSON
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read and not equal_values(read[key], value):
            raise _NotJsonError(f"an object has the key {key!r} twice")
        read[key] = value
    return read


_DECODER: Final = json.JSONDecoder(
    parse_int=_number, parse_float=_number, parse_constant=_no_number, object_pairs_hook=_object
)


def json_value(text: str) -> Any:  # Any: JSON
    """Return the value of a text that is JSON and nothing else; its numbers are Decimals.

    Raises:
        ValueError: it is not.
    """
    try:
        return _DECODER.decode(text.strip().removeprefix("\ufeff"))
    except RecursionError:
        raise _NotJsonError("it is nested too deeply") from None


def is_json(text: str) -> bool:
    """Return whether a text is JSON and nothing else."""
    try:
        json_value(text)
    except ValueError:
        return False
    return True


def equal_values(a: Any, b: Any) -> bool:
    """Return whether two values of JSON are the same."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal_values(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal_values, a, b))
    return bool(a == b)


def check_schema(schema: object, *, place: str) -> None:
    """Refuse a JSON schema by which nothing can be checked.

    Raises:
        ConfigError: it is no schema, leads to another file, or jsonschema is not installed.
    """
    if find_spec("jsonschema") is None:
        raise ConfigError(
            f"{place}: `json_schema` needs the extra `schema`: pip install 'asyncbench[schema]'"
        )
    verdict = _process().ask("faults", schema=json.dumps(schema))
    fault = "it takes too long to check" if verdict is None else verdict.get("fault", "it cannot be read")
    if fault:
        raise ConfigError(f"{place}: `json_schema` is no usable JSON schema: {fault}. Correct it.")


@cache
def _process() -> GradingProcess:
    return GradingProcess("asyncbench.suites.json_schema")


def equal_json(reply: str, problem: Problem, schema: str | None = None) -> Judgement:
    """Return whether the JSON of a reply is an accepted value.

    `format_ok` says whether the value is as the schema demands; without a schema, whether the reply is
    nothing but the value.
    """
    wanted = [json_value(accepted) for accepted in problem.accepted]
    values = list(_values_in(reply))
    if not values:
        return Judgement(correct=False, answer=None, format_ok=False)
    kinds = {type(value) for value in wanted}
    text, value = next(((text, value) for text, value in values if type(value) in kinds), values[0])
    try:
        right = any(equal_values(value, expected) for expected in wanted)
    except RecursionError:
        right = False
    format_ok = text == reply.strip()
    if schema is not None:
        verdict = _process().ask("holds", schema=schema, text=text)
        format_ok = verdict is not None and verdict.get("holds", False)
    return Judgement(correct=right, answer=text, format_ok=format_ok)


def _values_in(reply: str) -> Iterator[tuple[str, Any]]:
    """Yield the JSON of a reply: all of it; or what is fenced, then what its text holds, the last first."""
    fenced = [match[2] for match in _FENCED.finditer(reply)]
    for text in (reply, *reversed(fenced)):
        if text.strip() and is_json(text):
            yield text.strip(), json_value(text)
            if text is reply:
                return

    # Objects and lists that stand in its text, none of them within another.
    objects = list[tuple[str, Any]]()
    end = failed = 0
    for match in re.finditer(r"[\[{]", reply):
        start = match.start()
        if start < end:
            continue
        try:
            value, end = _DECODER.raw_decode(reply, start)
            objects.append((reply[start:end], value))
        except (ValueError, RecursionError):
            failed += 1
            if failed > MOST_FAILED:
                break
    yield from reversed(objects)
