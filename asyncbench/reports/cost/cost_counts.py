"""Where a folder's money went: its calls counted by model, suite, task, outcome, and kind of token."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.reports.cost.calls import PRICED, TOKEN_KINDS
from asyncbench.store.schema import LOST

OK_STATUS: Final = "ok"
NO_TOKENS: Final = "the provider reported no tokens"
NO_PRICE: Final = "no price is known"
MAYBE_BILLED: Final = "unknown whether it was billed"
CostKey = tuple[str, ...]
CELL_KEYS: Final = ("model", "suite", "task", "outcome", "status")
GROUPS: Final = ((), ("model",), ("suite", "task"), ("outcome",), ("status",), ("mode",), CELL_KEYS)
_KEYS: Final = (*CELL_KEYS, "mode")
_USD = (*TOKEN_KINDS, "reasoning", "not_split")
_TOKENS = (*TOKEN_KINDS, "reasoning")

_COSTS = f"""
SELECT {", ".join(_KEYS)}, count(*) AS calls,
    count(*) FILTER (cost_usd IS NULL) AS unknown,
    sum_usd(CASE WHEN cost_usd IS NULL THEN bound_usd END) AS unknown_reserved_usd,
    count(*) FILTER (cost_usd IS NULL AND bound_usd IS NULL) AS unknown_unbounded,
    count(*) FILTER (untold) AS unbilled_tokens,
    sum_usd(CASE WHEN untold THEN bound_usd END) AS unbilled_reserved_usd,
    count(*) FILTER (untold AND bound_usd IS NULL) AS unbilled_unbounded,
    sum_usd(cost_usd) AS usd,
    {", ".join(f"sum_usd(usd_{kind}) AS usd_{kind}" for kind in _USD)},
    {", ".join(f"sum(tokens_{kind})::BIGINT AS tokens_{kind}" for kind in _TOKENS)},
    sum(told)::BIGINT AS tokens, (sum(told) FILTER (cost_usd IS NOT NULL))::BIGINT AS priced_tokens,
    count(*) FILTER (attempt > 1) AS calls_again,
    sum_usd(CASE WHEN attempt > 1 THEN cost_usd END) AS usd_again
FROM (
    SELECT *, reasoning_tokens AS tokens_reasoning, input_tokens + output_tokens AS told,
        cost_usd IS NULL AND status = '{OK_STATUS}' AND told IS NULL AS untold
    FROM ({PRICED})
) GROUP BY GROUPING SETS ({", ".join(f"({', '.join(keys)})" for keys in GROUPS)})
ORDER BY {", ".join(_KEYS)}
"""  # noqa: S608  made of our own words alone


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCosts:
    """What a group of calls used and cost; dollars are of the calls whose cost is known."""

    calls: int
    unknown: int  # calls whose cost is unknown
    unknown_reserved_usd: float  # the most that those can have cost of which that is known
    unknown_unbounded: int  # those of which it is not
    unbilled_tokens: int  # answered calls of unknown cost, for want of token counts
    unbilled_reserved_usd: float  # of the above, what is of these
    unbilled_unbounded: int  # likewise
    usd: float
    usd_by_kind: Mapping[str, float]  # with `reasoning`, a part of the output
    tokens_by_kind: Mapping[str, int]
    tokens: int  # input and output
    priced_tokens: int  # of them, those of calls whose cost is known
    calls_again: int  # calls of a trial after its first
    usd_again: float

    @property
    def known_usd(self) -> float | None:
        """Dollars; None where no call's cost is known."""
        return self.usd if self.calls > self.unknown else None

    @property
    def cached_share(self) -> float | None:
        """The part of the input that was read from a cache, 1 is all."""
        kinds = self.tokens_by_kind
        whole = sum(kinds[kind] for kind in TOKEN_KINDS if kind != "output")
        return kinds["cached_input"] / whole if whole else None

    def as_mapping(self) -> dict[str, object]:
        """Return every figure; NULL where nothing is known."""
        return asdict(self) | {"usd": self.known_usd, "cached_share": self.cached_share}


def call_costs(views: FolderViews) -> dict[tuple[str, ...], dict[CostKey, CallCosts]]:
    """Return what calls cost by each of `GROUPS`, and by its values; `keep_calls` comes before.

    Calls of open trials have `OPEN` for suite, task and outcome.
    """
    found: dict[tuple[str, ...], dict[CostKey, CallCosts]] = {keys: {} for keys in GROUPS}
    for row in views.rows(_COSTS):
        group = {key: value for key in _KEYS if (value := row.pop(key)) is not None}
        row = {name: value or 0 for name, value in row.items()}
        usd = {kind: row.pop(f"usd_{kind}") for kind in _USD}
        tokens = {kind: row.pop(f"tokens_{kind}") for kind in _TOKENS}
        found[(*group,)][(*group.values(),)] = CallCosts(usd_by_kind=usd, tokens_by_kind=tokens, **row)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownCosts:
    """Calls without a known cost for one reason."""

    calls: int
    reserved_usd: float  # the most that those can have cost of which that is known
    unbounded: int  # those of which it is not


def unknown_by_cause(by_status: Mapping[CostKey, CallCosts]) -> dict[str, UnknownCosts]:
    """Return the calls without a cost by what is missing, the commonest first."""
    found = {
        cause: unknown
        for (status,), spent in by_status.items()
        for cause, unknown in _causes(status, spent)
        if unknown.calls
    }
    return dict(sorted(found.items(), key=lambda item: (-item[1].calls, item[0])))


def _causes(status: str, spent: CallCosts) -> Iterator[tuple[str, UnknownCosts]]:
    whole = UnknownCosts(
        calls=spent.unknown, reserved_usd=spent.unknown_reserved_usd, unbounded=spent.unknown_unbounded
    )
    if status != OK_STATUS:
        yield f"{'ended unseen' if status == LOST else status}: {MAYBE_BILLED}", whole
        return
    untold = UnknownCosts(
        calls=spent.unbilled_tokens,
        reserved_usd=spent.unbilled_reserved_usd,
        unbounded=spent.unbilled_unbounded,
    )
    yield NO_TOKENS, untold
    yield (
        NO_PRICE,
        UnknownCosts(
            calls=whole.calls - untold.calls,
            reserved_usd=whole.reserved_usd - untold.reserved_usd,
            unbounded=whole.unbounded - untold.unbounded,
        ),
    )


# ── replies without a count ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """Replies of one model without a count of their output tokens, and an estimate by their length.

    The estimate stands alone: no sum takes it up. Thinking that a reply does not show is not in it.
    """

    model: str
    replies: int
    characters: int  # of the replies, and of the thinking that they show
    characters_per_token: float
    measured: bool  # on the model's replies with a count; False: assumed

    @property
    def estimated_output_tokens(self) -> int:
        """About as many output tokens, by the length of the replies."""
        return round(self.characters / self.characters_per_token)

    def as_mapping(self) -> dict[str, object]:
        """Return every figure."""
        return asdict(self) | {"estimated_output_tokens": self.estimated_output_tokens}


# Tokens without the thinking that the reply does not show.
_REPLIES = """
SELECT model, count(*) FILTER (output_tokens IS NULL) AS replies,
    (sum(characters) FILTER (output_tokens IS NULL))::BIGINT AS characters,
    coalesce(sum(characters) FILTER (output_tokens IS NOT NULL), 0)::BIGINT AS told_characters,
    coalesce(sum(output_tokens - hidden), 0)::BIGINT AS told_tokens
FROM (
    SELECT model, output_tokens, length(reply_text) + length(coalesce(reasoning_text, '')) AS characters,
        CASE WHEN reasoning_text IS NULL THEN coalesce(reasoning_tokens, 0) ELSE 0 END AS hidden
    FROM trials WHERE reused_from IS NULL AND reply_text IS NOT NULL
) GROUP BY model HAVING replies > 0 ORDER BY model
"""


def untold_in(views: FolderViews) -> tuple[Untold, ...]:
    """Return the replies without a count, by model; all replies are read."""
    return tuple(map(_untold, views.rows(_REPLIES)))


def _untold(row: Mapping[str, Any]) -> Untold:
    measured = row["told_characters"] > 0 and row["told_tokens"] > 0
    return Untold(
        model=row["model"],
        replies=row["replies"],
        characters=row["characters"],
        characters_per_token=(
            row["told_characters"] / row["told_tokens"] if measured else float(CHARACTERS_PER_TOKEN)
        ),
        measured=measured,
    )
