"""JSON Lines of any tool, whose fields `--columns` names: `question=prompt,reply=output,grade=score`.

`grade` is true or false, or a number from 0 to 1; its grader is called as its field.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.published.files import lines, mapping, parsed
from asyncbench.records import Condition, Reply
from asyncbench.upkeep.tool_logs.told import Entry, Options, Score, ToldTrial, moment, seconds, usage_in

NEEDED: Final = ("question", "reply", "grade")
FIELDS: Final = (
    *NEEDED,
    *("expected", "model", "task", "condition", "error", "finished_at"),
    *("input_tokens", "output_tokens", "latency_s", "cost_usd"),
)


def columns_in(options: Options) -> Mapping[str, str]:
    """Return the names of the fields, by what they hold.

    Raises:
        ConfigError: a name that is needed is missing, or one is unknown.
    """
    columns = options.get("columns") or {}
    assert isinstance(columns, Mapping)  # noqa: S101  as the command gives it
    if unknown := [name for name in columns if name not in FIELDS]:
        raise ConfigError(f"--columns {unknown[0]}=…: no such field. Choose of {', '.join(FIELDS)}")
    if missing := [name for name in NEEDED if name not in columns]:
        raise ConfigError(
            f"import jsonl: --columns names no {missing[0]}. Write --columns "
            "question=FIELD,reply=FIELD,grade=FIELD"
        )
    if "model" not in columns and "model" not in options:
        raise ConfigError(
            "import jsonl: name the model, by --model NAME, or its field by --columns model=FIELD"
        )
    return columns


def json_lines(path: Path, options: Options) -> Iterator[Entry]:
    """Yield the lines of a file."""
    columns, model = columns_in(options), options.get("model")
    for origin, line in lines(path):
        yield origin, partial(_told, line, path, columns, model)


def _told(line: bytes, path: Path, columns: Mapping[str, str], model: object) -> ToldTrial:
    """Return a line as a trial."""
    row = mapping(parsed(line), "a line")
    values: dict[str, Any] = {name: row.get(field) for name, field in columns.items()}
    question, text, grade = (values[name] for name in NEEDED)
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"{columns['question']!r} holds no question")
    error = values.get("error")
    if text is not None and not isinstance(text, str):
        raise ValueError(f"{columns['reply']!r} is no text")
    if text is not None and not (isinstance(grade, int | float) and 0 <= grade <= 1):
        raise ValueError(f"{columns['grade']!r} is {grade!r}, neither true or false nor a number from 0 to 1")
    expected = values.get("expected")
    answers = expected if isinstance(expected, list) else [expected]
    condition = Condition(name=str(values["condition"])) if values.get("condition") else Condition()
    names = {name: name for name in ("input_tokens", "output_tokens")}
    return ToldTrial(
        task=str(values.get("task") or path.name.partition(".")[0]),
        question=question,
        accepted=tuple(str(answer) for answer in answers if answer not in (None, "")),
        model=str(model or values["model"]),
        condition=condition,
        reply=None if text is None else Reply(text=text, usage=usage_in(values, **names)),
        error=None if error is None else str(error),
        scores={f"jsonl/{columns['grade']}": Score(value=float(grade or 0))},
        latency_s=seconds(values.get("latency_s")),
        cost_usd=seconds(values.get("cost_usd")),
        ended_at=moment(values.get("finished_at")),
    )
