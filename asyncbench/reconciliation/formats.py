"""Which columns of a usage export hold what: those of known exports, and those that a person names."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from asyncbench.errors import ConfigError

# What a column may hold. Several columns of one kind are added up.
FIELDS: Final[Mapping[str, str]] = {
    "day": "the day, or when the period began",
    "model": "the model's name",
    "line_item": "the model's name, then a comma and what was billed of it",
    "cost": "US dollars",
    "cost_cents": "cents of a US dollar",
    "currency": "of the cost; none but USD is read",
    "input": "input tokens, cached ones included",
    "uncached_input": "input tokens without those read from or written to a cache",
    "cached_input": "input tokens read from a cache",
    "cache_write": "input tokens written to a cache",
    "output": "output tokens, reasoning included",
    "reasoning": "reasoning tokens, a part of the output",
    "requests": "calls",
}
Columns = Mapping[str, tuple[str, ...]]  # what it is → names of columns


@dataclass(frozen=True, slots=True, kw_only=True)
class BillFormat:
    """An export that is known by its columns. In JSON, a name with a point is a key within a key."""

    name: str
    verified: str | None  # where its columns are described; None: seen in use, in no documentation
    needs: Columns
    may_have: Columns = field(default_factory=dict)

    def fits(self, head: Collection[str]) -> bool:
        """Whether a file has every column that tells this export from others."""
        return all(name in head for names in self.needs.values() for name in names)

    def columns(self, head: Collection[str]) -> Columns:
        """Return the columns that a file has of this export."""
        present = {
            kind: tuple(name for name in names if name in head) for kind, names in self.may_have.items()
        }
        both = {kind: self.needs.get(kind, ()) + present.get(kind, ()) for kind in FIELDS}
        return {kind: names for kind, names in both.items() if names}


_OPENAI_REFERENCE: Final = "OpenAI's API reference: organization/usage/completions and organization/costs"
_ANTHROPIC_REFERENCE: Final = "Anthropic's Admin API reference: usage_report/messages and cost_report"

FORMATS: Final = (
    BillFormat(
        name="OpenAI completions usage",
        verified=_OPENAI_REFERENCE,
        needs={"day": ("start_time",), "input": ("input_tokens",), "output": ("output_tokens",)},
        may_have={
            "model": ("model",),
            "cached_input": ("input_cached_tokens",),
            "cache_write": ("input_cache_write_tokens",),
            "requests": ("num_model_requests",),
        },
    ),
    BillFormat(
        name="OpenAI costs",
        verified=_OPENAI_REFERENCE,
        needs={"day": ("start_time",), "cost": ("amount.value",)},
        may_have={"line_item": ("line_item",), "currency": ("amount.currency",)},
    ),
    BillFormat(
        name="OpenAI costs (CSV)",
        verified=None,
        needs={"day": ("start_time",), "cost": ("amount_value",)},
        may_have={"line_item": ("line_item",), "currency": ("amount_currency",)},
    ),
    BillFormat(
        name="Anthropic messages usage",
        verified=_ANTHROPIC_REFERENCE,
        needs={
            "day": ("starting_at",),
            "uncached_input": ("uncached_input_tokens",),
            "output": ("output_tokens",),
        },
        may_have={
            "model": ("model",),
            "cached_input": ("cache_read_input_tokens",),
            "cache_write": (
                "cache_creation.ephemeral_5m_input_tokens",
                "cache_creation.ephemeral_1h_input_tokens",
            ),
        },
    ),
    BillFormat(
        name="Anthropic cost report",
        verified=_ANTHROPIC_REFERENCE,
        needs={"day": ("starting_at",), "cost_cents": ("amount",), "currency": ("currency",)},
        may_have={"model": ("model",)},
    ),
    BillFormat(
        name="Anthropic usage (CSV)",
        verified=None,
        needs={
            "day": ("usage_date_utc",),
            "model": ("model_version",),
            "uncached_input": ("usage_input_tokens_no_cache",),
            "output": ("usage_output_tokens",),
        },
        may_have={
            "cached_input": ("usage_input_tokens_cache_read",),
            "cache_write": ("usage_input_tokens_cache_write_5m", "usage_input_tokens_cache_write_1h"),
        },
    ),
    BillFormat(
        name="Anthropic costs (CSV)",
        verified=None,
        needs={"day": ("usage_date_utc",), "model": ("model",), "cost": ("cost_usd",)},
    ),
    BillFormat(
        name="OpenRouter activity",
        verified="OpenRouter's API reference: activity",
        needs={"day": ("date",), "model": ("model",), "cost": ("usage",), "output": ("completion_tokens",)},
        may_have={
            "cost": ("byok_usage_inference",),
            "input": ("prompt_tokens",),
            "reasoning": ("reasoning_tokens",),
            "requests": ("requests",),
        },
    ),
)

# Names that say by themselves what a column holds, for files of no known export; so do those of FIELDS.
_PLAIN_NAMES: Final[Columns] = {
    "day": ("day", "date"),
    "model": ("model",),
    "cost": ("cost_usd", "usd", "cost"),
    "input": ("input_tokens",),
    "cached_input": ("cached_input_tokens",),
    "cache_write": ("cache_write_tokens",),
    "output": ("output_tokens",),
    "reasoning": ("reasoning_tokens",),
    "requests": ("requests", "calls"),
}
_COUNTED: Final = ("cost", "cost_cents", "input", "uncached_input", "output")


def columns_of(head: Collection[str], given: str | None, *, place: str) -> tuple[str, str | None, Columns]:
    """Return what a file is, where its columns are described, and which column holds what.

    Args:
        head: the names of its columns.
        given: `day=date,model=model_id,cost=amount+fee`; None: what is known of such exports.
        place: the file, for messages.

    Raises:
        ConfigError: a column is named that is not there, or the columns cannot be told.
    """
    if given is not None:
        return "as --columns says", None, _given(head, given, place)
    for known in FORMATS:
        if known.fits(head):
            return known.name, known.verified, known.columns(head)
    named = {kind: (*_PLAIN_NAMES.get(kind, ()), kind) for kind in FIELDS}
    found = {kind: (one,) for kind, names in named.items() if (one := _first(names, head))}
    if not found.keys() & set(_COUNTED):
        raise ConfigError(
            f"{place}: is no export that is known. Say which columns hold what: --columns "
            f"day=…,model=…,cost=…,input=…,output=…; it has: {_listed(head)}"
        )
    return "columns by their names", None, found


def _first(names: Collection[str], head: Collection[str]) -> str | None:
    return next((name for name in names if name in head), None)


def _given(head: Collection[str], given: str, place: str) -> Columns:
    found: dict[str, tuple[str, ...]] = {}
    for part in given.split(","):
        kind, _, names = part.partition("=")
        kind = kind.strip()
        if kind not in FIELDS or not names.strip():
            raise ConfigError(
                f"--columns: {part!r} is not understood; write WHAT=COLUMN, WHAT of: {', '.join(FIELDS)}"
            )
        if kind in found:
            raise ConfigError(
                f"--columns: {kind} stands twice; columns that add up are joined by +: {kind}=a+b"
            )
        found[kind] = tuple(name.strip() for name in names.split("+"))
        if missing := [name for name in found[kind] if name not in head]:
            raise ConfigError(f"{place}: has no column {missing[0]!r}; it has: {_listed(head)}")
    if not found.keys() & set(_COUNTED):
        raise ConfigError(f"--columns: names nothing to compare; give at least one of: {', '.join(_COUNTED)}")
    return found


def _listed(head: Collection[str]) -> str:
    return ", ".join(map(repr, head))
