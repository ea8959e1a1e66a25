"""A first sweep file, for the providers whose keys are at hand; without any, for the simulator."""

import json
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from asyncbench.errors import ConfigError
from asyncbench.files import creating, writing
from asyncbench.pricing import rates_for
from asyncbench.providers import known_endpoints

PROBLEMS: Final = Path("data/llm_arithmetic.parquet")  # ready-made, in a checkout of asyncbench
SIMULATED_MODELS: Final = "simulated models: no provider with a key in the environment was chosen"
MAX_TOKENS: Final = 4096  # of a reply: enough for an answer, and it bounds what a sweep may cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """A cheap model of a provider, and limits that its lowest paid tier should bear."""

    model_id: str
    rpm: int
    concurrency: int


# Each is in the price table (a test looks it up). The limits are careful: OpenAI's lowest tier allows 500
# requests a minute and Anthropic's 1,000 (their pages, 2026); what the others allow depends on the account.
STARTERS: Final[Mapping[str, Starter]] = {
    "openai": Starter(model_id="gpt-4.1-mini", rpm=500, concurrency=50),
    "anthropic": Starter(model_id="claude-haiku-5-5", rpm=500, concurrency=50),
    "gemini": Starter(model_id="gemini-3.1-flash-lite", rpm=60, concurrency=10),
    "xai": Starter(model_id="grok-4-1-fast-non-reasoning", rpm=60, concurrency=10),
    "deepseek": Starter(model_id="deepseek-v4-flash", rpm=300, concurrency=50),
    "mistral": Starter(model_id="mistral-small-2603", rpm=60, concurrency=10),
    "groq": Starter(model_id="openai/gpt-oss-20b", rpm=30, concurrency=10),
    "cerebras": Starter(model_id="gpt-oss-120b", rpm=30, concurrency=10),
    "together": Starter(model_id="Qwen/Qwen3.5-9B", rpm=60, concurrency=10),
    "openrouter": Starter(model_id="meta-llama/llama-3.1-8b-instruct", rpm=60, concurrency=10),
    "moonshot": Starter(model_id="kimi-k2.5", rpm=60, concurrency=10),
    "zai": Starter(model_id="glm-5.3-flash", rpm=60, concurrency=10),
}


def providers_with_keys(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the providers that a first sweep can ask: their key's variable is set."""
    return tuple(name for name in STARTERS if _has_key(name, env))


def providers_without_starter(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the other known providers whose key's variable is set: which model to ask is for their user."""
    return tuple(name for name in known_endpoints() if name not in STARTERS and _has_key(name, env))


def _has_key(provider: str, env: Mapping[str, str]) -> bool:
    return bool(env.get(key_variable(provider), "").strip())


def described_models(provider: str) -> str:
    """Return a provider with its cheap model and the name of its key's variable."""
    return f"{provider}/{STARTERS[provider].model_id} (key in {key_variable(provider)})"


def key_variable(provider: str) -> str:
    """Return the name of the variable that holds a provider's key; empty where it needs none."""
    return known_endpoints()[provider].key_env or ""


def refuse_existing(path: Path) -> None:
    """Refuse a place where something is.

    Raises:
        ConfigError: it is never overwritten.
    """
    if path.exists() or path.is_symlink():
        raise _there(path)


def _there(path: Path) -> ConfigError:
    return ConfigError(f"{path} is there already and is never overwritten: name another file, or move it")


def write_sweep(path: Path, providers: Collection[str], *, problems: Path = PROBLEMS) -> None:
    """Write a first sweep to a new file.

    Args:
        path: the file; its name without ending becomes that of the sweep.
        providers: keys of `STARTERS`; none: simulated models are asked.
        problems: a problem set; where there is none, the sweep makes one of its own.

    Raises:
        ConfigError: the file is there already, or can be none.
        StoreError: the disk does not take it.
    """
    text = sweep_text(path, providers, problems=problems if problems.is_file() else None)
    try:
        with writing(path), creating(path) as file:
            file.write(text.encode())
    except ConfigError as error:
        if isinstance(error.__cause__, FileExistsError):
            raise _there(path) from error
        raise


def sweep_text(path: Path, providers: Collection[str], *, problems: Path | None) -> str:
    """Return the text of a first sweep; what it says of prices holds today.

    Args:
        path: where it will stand, for its comments; its name without ending is that of the sweep.
        providers: keys of `STARTERS`; none: simulated models.
        problems: a problem set; None: the sweep makes one.
    """
    chosen = [name for name in STARTERS if name in providers]
    return _TEMPLATE.format(
        path=shlex.quote(str(path)),
        name=_quoted(path.stem),
        out=_quoted(f"results/{path.stem}"),
        folder=shlex.quote(f"results/{path.stem}"),
        problems=_FILE.format(path=_quoted(str(problems))) if problems else _GENERATED,
        models="\n".join(map(_model, chosen)) if chosen else _SIMULATED,
        limits="\n".join([_LIMITS_COMMENT, *map(_limits, chosen)]) if chosen else _SIMULATED_LIMITS,
    )


def _quoted(text: str) -> str:
    """Return text as YAML has it: a JSON string is one."""
    return json.dumps(text, ensure_ascii=False)


def _model(provider: str) -> str:
    model_id, at, price = STARTERS[provider].model_id, datetime.now(UTC), "price unknown"
    rates = rates_for(model_id, price=None, vendor=known_endpoints()[provider].prices, at=at)
    if rates is not None:
        first = rates.brackets[0]
        cost = f"USD {first.input} in, {first.output} out for a million tokens"
        price = f"{cost} ({rates.source}, {at:%Y-%m-%d})"
    return _MODEL.format(
        name=provider, model_id=model_id, price=price, key=key_variable(provider), max_tokens=MAX_TOKENS
    )


def _limits(provider: str) -> str:
    starter = STARTERS[provider]
    return f"  {provider}: {{rpm: {starter.rpm}, concurrency: {starter.concurrency}}}"


_TEMPLATE: Final = """\
# A first sweep, written by `asyncbench init`. Change what you like, then:
#
#   asyncbench plan {path}               what it would cost and how long it would take; asks nothing
#   asyncbench run {path} --limit 5      five problems per model: keys, names, prices
#   asyncbench run {path}                the rest; run it again after anything, it goes on
#   asyncbench report {folder}
name: {name}

problems:
{problems}

models:
{models}

limits:
{limits}

# How the problems are asked: every condition asks every problem. Take away the # to compare.
conditions:
  - {{name: plain}}
  # - {{name: small-talk-2k, context: 2k}} # after about 2,000 tokens of small talk

repeats: 1 # how often each problem is asked
out: {out}
"""

_FILE: Final = """\
  - {path}
  # One that is made from a seed, the same on every machine (`asyncbench suites` lists what there is):
  # - {{suite: integer_addition, seed: 7, tries: 100}}"""

_GENERATED: Final = """\
  # Made from a seed, the same on every machine. `asyncbench suites` lists what there is; a Parquet file of
  # problems is named by its path alone.
  - {suite: llm_arithmetic, seed: 1, trials: 10} # problems per operation and number of digits"""

_MODEL: Final = """\
  # {price}.
  # The key is read from {key}; its value never reaches a file.
  - model: {name}/{model_id}
    max_tokens: {max_tokens} # the longest reply; without it, nothing bounds the cost"""

_LIMITS_COMMENT: Final = """\
  # For each model of the provider separately. Careful figures: raise them to what your account allows."""

_SIMULATED: Final = """\
  # SIMULATED: no provider's key was at hand (or none was chosen), so asyncbench's own server answers, and
  # every result says so. With a key in the environment, `asyncbench init` writes a sweep of real models.
  - model: simulated/oracle # always right
    price: {input: 0, output: 0} # USD for a million tokens
  - model: simulated/noisy # errs more, the longer the numbers are
    price: {input: 0, output: 0}"""

_SIMULATED_LIMITS: Final = """\
  simulated: {concurrency: 50}"""
