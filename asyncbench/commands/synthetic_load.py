"""`load --tokens 512/128`: questions of a wished length, made once for the server that is to count them."""

import json
import re
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import typer

from asyncbench.commands.sweep_options import flag, flags_typed
from asyncbench.errors import ConfigError
from asyncbench.files import quoted

LEAST_QUESTIONS, MOST_QUESTIONS = 100, 5_000  # in a file
FILE_TOKENS: Final = 5_000_000  # of all questions in it, beyond the fewest: some 20 MB
ENDING: Final = ".questions.parquet"
_REFUSED: Final = ("suite", "problems", "max_tokens", "template", "system", "shots", "context", "style")


def lengths_typed(typed: str) -> tuple[int, int]:
    """Return the tokens of a question and of a reply that `--tokens 512/128` names.

    Raises:
        ConfigError: it names none.
    """
    match = re.fullmatch(r"(\d{1,7})/(\d{1,7})", typed)
    if match is None or not int(match[2]):
        raise ConfigError(f"--tokens {typed}: not two lengths. Type those of question and reply: 512/128")
    return int(match[1]), int(match[2])


def fill_for_tokens(context: typer.Context, typed: str, env_file: Path | None) -> str:
    """Put in the problems, the folder and the length of replies that a load of lengths asks.

    The questions are made once, after a few warm-up calls, and stand beside the results folder.

    Returns:
        The same in words.

    Raises:
        ConfigError: flags do not go together, or a warm-up call fails.
    """
    tokens, reply_tokens = lengths_typed(typed)
    flags = flags_typed(context)
    if odd := [name for name in _REFUSED if name in flags]:
        raise ConfigError(f"--tokens {typed}: it makes the questions and sets the length of replies. Leave "
                          f"out {flag(odd[0])}")  # fmt: skip
    if context.params["sweep_file"] is not None or len(flags.get("model", ())) != 1:
        raise ConfigError(
            f"--tokens {typed}: servers count differently, so questions are made for one of them. Type one "
            "--model, and no sweep file"
        )
    words = ["load", flags["model"][0], typed]
    flags.setdefault("out", Path("results", re.sub(r"[^\w.-]+", "-", "-".join(words))))
    file = Path(f"{flags['out']}{ENDING}")
    flags |= {"problems": [str(file)], "max_tokens": str(reply_tokens)}
    seed = flags.pop("seed", 0)
    if file.exists():
        settings = _settings_of(file, tokens)
        message = f"Asks the questions of {file} again. To make others, delete it."
    else:
        settings, message = _make(file, flags, tokens, seed, env_file)
    from asyncbench.run.calibrating import whole_length

    flags["params"] = whole_length(reply_tokens) if settings["ignore_eos"] else {}
    return f"{message} Results go to {flags['out']}."


def _settings_of(file: Path, tokens: int) -> dict[str, Any]:  # Any: of JSON
    """Return how the questions of a file were made; raises ConfigError where they have another length."""
    from asyncbench.problems.opening import open_set

    first = next(open_set(file).batches(1)).to_pylist()[0]
    settings: dict[str, Any] = json.loads(first["extra"])
    if settings.get("input_tokens") != tokens:
        raise ConfigError(
            f"--tokens: {file} holds other questions than those of {tokens:,} tokens. Delete it, or name "
            "another folder with --out"
        )
    return settings


def _make(
    file: Path, flags: dict[str, Any], tokens: int, seed: int, env_file: Path | None
) -> tuple[dict[str, Any], str]:
    """Write the questions of a length to a file; return how they were made, and what is said of it."""
    from asyncbench.commands.terminal import awaited, environment_of
    from asyncbench.problems.making import write_problems
    from asyncbench.problems.schema import identified
    from asyncbench.run.calibrating import WARM_UP_CALLS, calibrate
    from asyncbench.run.checkup import models_from
    from asyncbench.suites.synthetic import draft_synthetic, synthetic_questions

    (model,) = models_from(
        flags["model"], base_url=flags.get("base_url"), key_env=flags.get("key_env"), or_nothing=False
    )
    env = environment_of(env_file, [model])
    found = awaited(calibrate(model, tokens, seed=seed, env=env))
    count = min(MOST_QUESTIONS, max(LEAST_QUESTIONS, FILE_TOKENS // tokens))
    settings = {"input_tokens": tokens, "ignore_eos": found.ignores_eos}
    questions = synthetic_questions(seed, repeat(tokens, count), found.counted)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_problems(identified(draft_synthetic(question, **settings) for question in questions), file)
    message = (
        f"Asks {count:,} questions of about {tokens:,} tokens, after {WARM_UP_CALLS} warm-up calls in which "
        f"{flags['model'][0]} counted their pieces. They are in {quoted(file)}."
    )
    if found.refusal:
        message += f" It refuses `ignore_eos`, so replies may be shorter than asked: {found.refusal.strip()}"
    return settings, message
