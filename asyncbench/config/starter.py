"""A first sweep file of about ten lines, for chosen models or for the providers whose keys are set."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from asyncbench.errors import ConfigError
from asyncbench.files import creating, writing
from asyncbench.pricing import rates_for
from asyncbench.providers.endpoints import Starter, known_endpoints, usable_endpoints
from asyncbench.suites.table import SUITES

PROBLEMS: Final = Path("data/llm_arithmetic.parquet")  # ready-made, in a checkout of asyncbench
SIMULATED_MODELS: Final = ("simulated/oracle", "simulated/noisy")  # always right; errs more on longer numbers
MAX_TOKENS: Final = 4096  # of a reply: enough for an answer, and it bounds what a sweep may cost


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownServer:
    """A kind of server that people run themselves, and where it usually is."""

    provider: str  # that a sweep file names
    about: str
    address: str | None = None  # where the table of endpoints has none
    lists: bool = True  # under /models, what may be asked of it

    @property
    def base_url(self) -> str | None:
        """Its usual address, or None if nobody can guess it."""
        return self.address or known_endpoints()[self.provider].base_url

    @property
    def key_env(self) -> str | None:
        """The variable with its key, or None if it usually needs no key."""
        return known_endpoints()[self.provider].key_env


SERVERS: Final[Mapping[str, KnownServer]] = {
    "vllm": KnownServer(provider="vllm", about="usually at port 8000"),
    "llama.cpp": KnownServer(
        provider="http", about="llama-server, usually at port 8080", address="http://localhost:8080/v1"
    ),
    "ollama": KnownServer(provider="ollama", about="usually at port 11434"),
    "lmstudio": KnownServer(provider="lmstudio", about="usually at port 1234"),
    "azure": KnownServer(
        provider="azure",
        about="https://RESOURCE.openai.azure.com/openai/v1; a model is a deployment",
        lists=False,  # it lists models, and is asked for deployments
    ),
    "other": KnownServer(provider="http", about="any address that speaks as OpenAI's does"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnServer:
    """A server of one's own."""

    base_url: str
    key_env: str | None = None  # the NAME of the variable with its key; None: it needs none


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFile:
    """A problem set, or a file of one's own with its columns and its grader."""

    path: Path
    columns: Mapping[str, str | Sequence[str]] = field(default_factory=dict)  # our name → the file's
    grader: str | None = None  # None: a problem set of asyncbench, which says so itself
    decimal: str | None = None  # what stands before decimals; None: a point
    wording: str | None = None  # how a row is asked; None: its question as it stands
    answer_form: str | None = None  # how an answer names a choice; None: there are none

    def entry(self) -> dict[str, object] | str:
        """Return the file as a sweep names it."""
        if self.grader is None:
            return str(self.path)
        columns = dict(self.columns)
        settings = {"decimal": self.decimal, "wording": self.wording, "answer_form": self.answer_form}
        return {
            "path": str(self.path),
            "suite": "custom",
            "grader": self.grader,
            **{name: value for name, value in settings.items() if value},
            "columns": columns,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSweep:
    """The choices for a first sweep."""

    name: str
    models: tuple[str, ...] = ()  # provider/model id; none: simulated ones
    servers: Mapping[str, OwnServer] = field(default_factory=dict)  # of models that are on one's own
    suite: str = "llm_arithmetic"
    size: int | None = None  # how many problems, as the suite counts them; None: as many as it usually has
    file: OwnFile | None = None  # instead of a suite
    budget_usd: float | None = None

    @property
    def out(self) -> Path:
        """The results folder."""
        return Path("results", self.name)

    def variables(self) -> tuple[str, ...]:
        """Return the names of the variables that hold keys."""
        server_keys = {model: server.key_env or "" for model, server in self.servers.items()}
        named = (server_keys.get(model, key_variable(provider_of(model))) for model in self.models)
        return tuple(dict.fromkeys(filter(None, named)))

    def mapping(self) -> dict[str, Any]:
        """Return the mapping of the sweep file."""
        if self.file is not None:
            problems = self.file.entry()
        else:
            parameter, usual, _ = size_of(self.suite)
            problems = {"suite": self.suite, "seed": 1, parameter: usual if self.size is None else self.size}

        models = self.models or SIMULATED_MODELS
        entries = list[dict[str, object]]()
        for model in models:
            endpoint, server = known_endpoints()[provider_of(model)], self.servers.get(model)
            entry: dict[str, object] = {"model": model, "max_tokens": MAX_TOKENS}
            if server is not None:
                entry["base_url"] = server.base_url
                if server.key_env not in (None, endpoint.key_env):
                    entry["key_env"] = server.key_env
            if endpoint.simulated or (server is not None and endpoint.prices is None):
                entry["price"] = {"input": 0, "output": 0}
            entries.append(entry)

        limits = {name: starter_limits(name) for name in dict.fromkeys(map(provider_of, models))}
        limits = {name: values for name, values in limits.items() if values}
        return {
            "name": self.name,
            "problems": [problems],
            "models": entries,
            **({"limits": limits} if limits else {}),
            **({} if self.budget_usd is None else {"budget_usd": self.budget_usd}),
            "out": str(self.out),
        }


def provider_of(model: str) -> str:
    """Return the provider of `provider/model id`."""
    return model.partition("/")[0]


def size_of(suite: str) -> tuple[str, int, int]:
    """Return the parameter of a suite that says how many problems it has; its usual and its largest value.

    Both are those of a first sweep.
    """
    parameters = SUITES[suite].parameters
    first = SUITES[suite].first
    assert first is not None, "offered"  # noqa: S101  by `init`, which offers no other
    usual = parameters[first.parameter].default if first.usual is None else first.usual
    return first.parameter, int(str(usual)), first.most


def starter_limits(provider: str) -> dict[str, int]:
    """Return careful rate limits of a provider; none are known: none."""
    endpoint = known_endpoints()[provider]
    if endpoint.starter is None:
        return {"concurrency": 50} if endpoint.simulated else {}
    return {"rpm": endpoint.starter.rpm, "concurrency": endpoint.starter.concurrency}


def starters() -> Mapping[str, Starter]:
    """Return the first sweep of each provider that needs nothing but a key."""
    endpoints = usable_endpoints().items()
    return {name: endpoint.starter for name, endpoint in endpoints if endpoint.starter is not None}


def starter_models(providers: Collection[str]) -> tuple[str, ...]:
    """Return the cheap model of each of these providers."""
    return tuple(f"{name}/{starter.models[0]}" for name, starter in starters().items() if name in providers)


def providers_with_keys(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the providers that a first sweep can ask: their key's variable is set."""
    return tuple(name for name in starters() if _has_key(name, env))


def providers_without_starter(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the other known providers whose key's variable is set: which model to ask is for their user."""
    return tuple(
        name
        for name, endpoint in usable_endpoints().items()
        if endpoint.starter is None and _has_key(name, env)
    )


def _has_key(provider: str, env: Mapping[str, str]) -> bool:
    return bool(env.get(key_variable(provider), "").strip())


def price_text(model: str) -> str | None:
    """Return the price of `provider/model id` as a person reads it, or None if it is unknown."""
    provider, _, model_id = model.partition("/")
    endpoint = known_endpoints()[provider]
    rates = rates_for(model_id, price=None, vendor=endpoint.prices, moment=datetime.now(UTC))
    if rates is None:
        return None
    first = rates.brackets[0]
    return f"${first.input.normalize():f} in, ${first.output.normalize():f} out"


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
    return ConfigError(f"{path} exists already and is never overwritten. Name another file, or move it")


def write_sweep(path: Path, first: FirstSweep) -> None:
    """Write a first sweep to a new file.

    Raises:
        ConfigError: the file is there already, or can be none.
        StoreError: the disk does not take it.
    """
    text = sweep_text(path, first)
    try:
        with writing(path), creating(path) as file:
            file.write(text.encode())
    except ConfigError as error:
        if isinstance(error.__cause__, FileExistsError):
            raise _there(path) from error
        raise


def sweep_text(path: Path, first: FirstSweep) -> str:
    """Return the text of a first sweep; what it says of prices holds today.

    Args:
        path: where it will stand, for its comments.
        first: what it asks.
    """
    sweep = first.mapping()
    lines = [f"# Check it with: asyncbench doctor {shlex.quote(str(path))}"]
    if {*SIMULATED_MODELS} & {entry["model"] for entry in sweep["models"]}:
        lines.append("# SIMULATED: oracle and noisy answer on your own machine, without a key and for free.")
    for key, value in sweep.items():
        if isinstance(value, list):
            lines += [f"{key}:", *(f"  - {_flow(item)}{_comment(item)}" for item in value)]
        elif isinstance(value, dict):
            lines += [f"{key}: # for each model; raise them to what your account allows"]
            lines += [f"  {name}: {_flow(values)}" for name, values in value.items()]
        else:
            lines.append(f"{key}: {_flow(value)}{_comment(key)}")
    return "\n".join([*lines, ""])


def _flow(value: object) -> str:
    """Return a value as YAML on one line."""
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    text = yaml.dump(
        value,
        Dumper=OneLineTexts,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=float("inf"),
    )
    return text.removesuffix("...\n").strip()


class OneLineTexts(yaml.SafeDumper):
    """Writes a text of several lines on one: "{question}\\n{choices}"."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Return the node of a text."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"' if "\n" in text else None)


OneLineTexts.add_representer(str, OneLineTexts.represent_text)


def _comment(item: object) -> str:
    """Return the comment after a key or an item of a list."""
    if item == "budget_usd":
        return " # USD; all runs together never cost more"
    if not isinstance(item, dict) or "price" in item or "model" not in item:
        return ""
    price = price_text(item["model"])
    cost = f"{price} per million tokens" if price else "price unknown"
    return f" # {cost}; key in {key_variable(provider_of(item['model'])) or 'no variable'}"
