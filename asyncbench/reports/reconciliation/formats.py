"""Columns of usage exports by their content: those of known exports, and those that a person names."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from asyncbench.errors import ConfigError

# What a column may hold. Several columns of one kind are added up.
FIELDS: Final[Mapping[str, str]] = {
    "day": "the day, or the start of the period",
    "model": "the model's name",
    "line_item": "the model's name, a comma, and what was billed",
    "cost": "US dollars",
    "cost_cents": "cents of a US dollar",
    "currency": "the currency of the cost; only USD is read",
    "input": "input tokens, with cached ones",
    "uncached_input": "input tokens, without cache reads and writes",
    "cached_input": "input tokens read from a cache",
    "cache_write": "input tokens written to a cache",
    "output": "output tokens, with reasoning",
    "reasoning": "reasoning tokens (part of the output)",
    "requests": "calls",
}
Columns = Mapping[str, tuple[str, ...]]  # what it is → names of columns


@dataclass(frozen=True, slots=True, kw_only=True)
class BillFormat:
    """An export that is known by its columns. In JSON, a name with a point is a key within a key."""

    name: str
    verified: str  # where its columns are described
    has_all: tuple[str, ...]  # a file with all of these is one
    columns: Columns


_OPENAI_REFERENCE: Final = "OpenAI's API reference: organization/usage/completions and organization/costs"
_ANTHROPIC_REFERENCE: Final = "Anthropic's Admin API reference: usage_report/messages and cost_report"

FORMATS: Final = (
    BillFormat(
        name="OpenAI completions usage",
        verified=_OPENAI_REFERENCE,
        has_all=("start_time", "input_tokens", "output_tokens"),
        columns={
            "day": ("start_time",),
            "model": ("model",),
            "input": ("input_tokens",),
            "cached_input": ("input_cached_tokens",),
            "cache_write": ("input_cache_write_tokens",),
            "output": ("output_tokens",),
            "requests": ("num_model_requests",),
        },
    ),
    BillFormat(
        name="OpenAI costs",
        verified=_OPENAI_REFERENCE,
        has_all=("start_time", "amount.value"),
        columns={
            "day": ("start_time",),
            "line_item": ("line_item",),
            "cost": ("amount.value",),
            "currency": ("amount.currency",),
        },
    ),
    BillFormat(
        name="Anthropic messages usage",
        verified=_ANTHROPIC_REFERENCE,
        has_all=("starting_at", "uncached_input_tokens", "output_tokens"),
        columns={
            "day": ("starting_at",),
            "model": ("model",),
            "uncached_input": ("uncached_input_tokens",),
            "cached_input": ("cache_read_input_tokens",),
            "cache_write": (
                "cache_creation.ephemeral_5m_input_tokens",
                "cache_creation.ephemeral_1h_input_tokens",
            ),
            "output": ("output_tokens",),
        },
    ),
    BillFormat(
        name="Anthropic cost report",
        verified=_ANTHROPIC_REFERENCE,
        has_all=("starting_at", "amount", "currency"),
        columns={
            "day": ("starting_at",),
            "model": ("model",),
            "cost_cents": ("amount",),
            "currency": ("currency",),
        },
    ),
    BillFormat(
        name="OpenRouter activity",
        verified="OpenRouter's API reference: activity",
        has_all=("date", "model", "usage", "completion_tokens"),
        columns={
            "day": ("date",),
            "model": ("model",),
            "cost": ("usage", "byok_usage_inference"),
            "input": ("prompt_tokens",),
            "output": ("completion_tokens",),
            "reasoning": ("reasoning_tokens",),
            "requests": ("requests",),
        },
    ),
)

# Names that say by themselves what a column holds, for files of no known export; so do those of FIELDS.
_PLAIN_NAMES: Final[Columns] = {
    "day": ("day", "date"),
    "cost": ("cost_usd", "usd"),
    "input": ("input_tokens",),
    "cached_input": ("cached_input_tokens",),
    "cache_write": ("cache_write_tokens",),
    "output": ("output_tokens",),
    "reasoning": ("reasoning_tokens",),
    "requests": ("requests", "calls"),
}
_COUNTED: Final = ("cost", "cost_cents", "input", "uncached_input", "output")


def columns_of(head: Collection[str], named: str | None, *, place: str) -> tuple[str, str | None, Columns]:
    """Return what a file is, where its columns are described, and which column holds what.

    Args:
        head: the names of its columns.
        given: `day=date,model=model_id,cost=amount+fee`; None: what is known of such exports.
        place: the file, for messages.

    Raises:
        ConfigError: a column is named that is not there, or the columns cannot be told.
    """
    if named is not None:
        return "as --columns says", None, _given(head, named, place)
    for known in FORMATS:
        if set(known.has_all) <= set(head):
            return known.name, known.verified, _present(known.columns, head)
    by_name = _present({kind: (*_PLAIN_NAMES.get(kind, ()), kind) for kind in FIELDS}, head)
    by_kind = {kind: names[:1] for kind, names in by_name.items()}
    if not by_kind.keys() & set(_COUNTED):
        raise ConfigError(
            f"{place}: this format is not known. Name the columns: --columns "
            f"day=…,model=…,cost=…,input=…,output=…. Its columns: {', '.join(map(repr, head))}."
        )
    return "columns by their names", None, by_kind


def _present(columns: Columns, head: Collection[str]) -> Columns:
    there = {kind: tuple(name for name in names if name in head) for kind, names in columns.items()}
    return {kind: names for kind, names in there.items() if names}


def _given(head: Collection[str], named: str, place: str) -> Columns:
    columns: dict[str, tuple[str, ...]] = {}
    for part in named.split(","):
        kind, _, names = part.partition("=")
        kind = kind.strip()
        if kind not in FIELDS or not names.strip():
            raise ConfigError(f"--columns: {part!r} is not WHAT=COLUMN. WHAT is one of: {', '.join(FIELDS)}.")
        if kind in columns:
            raise ConfigError(f"--columns: {kind} is there twice. Join columns to add with +: {kind}=a+b.")
        columns[kind] = tuple(name.strip() for name in names.split("+"))
        if missing := [name for name in columns[kind] if name not in head]:
            has = ", ".join(map(repr, head))
            raise ConfigError(f"{place}: there is no column {missing[0]!r}. Its columns: {has}.")
    if not columns.keys() & set(_COUNTED):
        raise ConfigError(
            f"--columns: there is nothing to compare. Name at least one of: {', '.join(_COUNTED)}."
        )
    return columns
