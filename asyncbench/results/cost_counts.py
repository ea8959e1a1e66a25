"""Where a folder's money went: its calls counted by model, suite, task, outcome, and kind of token."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from asyncbench.engine import CHARACTERS_PER_TOKEN
from asyncbench.records import Outcome
from asyncbench.results.calls import TOKEN_KINDS, Calls, Column, with_dollars
from asyncbench.store import LOST

pc: Any = pyarrow.compute  # see `calls`

OK_STATUS: Final = "ok"
OPEN: Final = "open"  # of a trial that is not finished
NO_TOKENS: Final = "the provider told no tokens"
NO_PRICE: Final = "no price is known for them"
MAYBE_BILLED: Final = "not known whether it was billed"
CostKey = tuple[str, ...]
_KEYS = ("model", "suite", "task", "outcome", "status")
_AMOUNTS = (*TOKEN_KINDS, "reasoning", "not_split")


@dataclass(slots=True, kw_only=True)
class CallCosts:
    """What a group of calls used and cost; dollars are of the calls whose cost is known."""

    calls: int = 0
    unknown: int = 0  # calls whose cost is unknown
    unknown_reserved_usd: float = 0.0  # the most that those can have cost of which that is known
    unknown_unbounded: int = 0  # those of which it is not
    unbilled_tokens: int = 0  # answered calls of unknown cost, for want of token counts
    unbilled_reserved_usd: float = 0.0  # of the above, what is of these
    unbilled_unbounded: int = 0  # likewise
    usd: float = 0.0
    usd_by_kind: Counter[str] = field(default_factory=Counter)  # with `reasoning`, a part of the output
    tokens_by_kind: Counter[str] = field(default_factory=Counter)
    tokens: int = 0  # input and output
    priced_tokens: int = 0  # of them, those of calls whose cost is known
    calls_again: int = 0  # calls of a trial after its first
    usd_again: float = 0.0

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

    def add(self, other: "CallCosts") -> None:
        """Count another group's calls as well."""
        for name in self.__slots__:
            value = getattr(other, name)
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    def without(self, part: "CallCosts") -> "CallCosts":
        """Return the rest of the calls of unknown cost; `part` are some of them."""
        return CallCosts(
            unknown=self.unknown - part.unknown,
            unknown_reserved_usd=self.unknown_reserved_usd - part.unknown_reserved_usd,
            unknown_unbounded=self.unknown_unbounded - part.unknown_unbounded,
        )

    def as_mapping(self) -> dict[str, object]:
        """Return every figure; NULL where nothing is known."""
        known = {
            "usd": self.known_usd,
            "usd_by_kind": {kind: self.usd_by_kind[kind] for kind in _AMOUNTS},
            "tokens_by_kind": {kind: self.tokens_by_kind[kind] for kind in (*TOKEN_KINDS, "reasoning")},
            "cached_share": self.cached_share,
        }
        return {name: getattr(self, name) for name in self.__slots__} | known


Cells = Mapping[CostKey, CallCosts]  # by model, suite, task, outcome, status


def cost_cells_of(calls: Calls) -> Cells:
    """Return what the calls of each model, suite, task, outcome and status cost; open trials are `OPEN`."""
    rows = _counted(with_dollars(calls))
    for name in ("suite", "task", "outcome"):
        rows = _replaced(rows, name, pc.fill_null(rows[name], OPEN))
    names = [name for name in rows.schema.names if name not in _KEYS]
    sums = rows.group_by(list(_KEYS)).aggregate([([], "count_all"), *((name, "sum") for name in names)])
    return {tuple(row[key] for key in _KEYS): _spent(row) for row in sums.sort_by(_SORTED).to_pylist()}


_SORTED: Final = [(key, "ascending") for key in _KEYS]


def _counted(rows: pa.Table) -> pa.Table:
    """Return the keys, and columns of which all that a group tells is the sum."""
    unknown = pc.is_null(rows["cost_usd"])
    again = pc.greater(rows["attempt"], 1)
    told = pc.add(rows["input_tokens"], rows["output_tokens"])
    untold = pc.and_(unknown, pc.and_(pc.equal(rows["status"], OK_STATUS), pc.is_null(told)))
    columns = {
        **{key: rows[key] for key in _KEYS},
        **{f"usd_{kind}": rows[f"usd_{kind}"] for kind in _AMOUNTS},
        **{f"tokens_{kind}": rows[f"tokens_{kind}"] for kind in TOKEN_KINDS},
        "tokens_reasoning": rows["reasoning_tokens"],
        "usd": rows["cost_usd"],
        "unknown": _ones(unknown),
        "unknown_reserved_usd": _where(unknown, rows["bound_usd"]),
        "unknown_unbounded": _ones(pc.and_(unknown, pc.is_null(rows["bound_usd"]))),
        "unbilled_tokens": _ones(untold),
        "unbilled_reserved_usd": _where(untold, rows["bound_usd"]),
        "unbilled_unbounded": _ones(pc.and_(untold, pc.is_null(rows["bound_usd"]))),
        "tokens": told,
        "priced_tokens": _where(pc.is_valid(rows["cost_usd"]), told),
        "calls_again": _ones(again),
        "usd_again": _where(again, rows["cost_usd"]),
    }
    return pa.table(columns)


def _ones(chosen: Column) -> Column:
    return pc.cast(chosen, pa.int64())


def _where(chosen: Column, values: Column) -> Column:
    return pc.if_else(chosen, values, pa.scalar(None, values.type))


def _replaced(rows: pa.Table, name: str, column: Column) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, column)


def _spent(row: Mapping[str, Any]) -> CallCosts:
    found = {name.removesuffix("_sum"): value or 0 for name, value in row.items() if name.endswith("_sum")}
    return CallCosts(
        calls=row["count_all"],
        usd_by_kind=Counter({kind: found.pop(f"usd_{kind}") for kind in _AMOUNTS}),
        tokens_by_kind=Counter({kind: found.pop(f"tokens_{kind}") for kind in (*TOKEN_KINDS, "reasoning")}),
        **found,
    )


def together(cells: Cells, key: Callable[[CostKey], CostKey | None]) -> dict[CostKey, CallCosts]:
    """Return the cells summed by what `key` makes of theirs; None leaves a cell out."""
    sums: dict[CostKey, CallCosts] = {}
    for cell, spent in cells.items():
        if (group := key(cell)) is not None:
            sums.setdefault(group, CallCosts()).add(spent)
    return dict(sorted(sums.items()))


def all_of(cells: Iterable[CallCosts]) -> CallCosts:
    """Return all of them together."""
    whole = CallCosts()
    for one in cells:
        whole.add(one)
    return whole


def correct_by(trials: pa.Table, keys: Sequence[str]) -> dict[CostKey, int]:
    """Return the right answers that were asked for here, not those taken over from another sweep."""
    asked = trials.filter(pc.is_null(trials["reused_from"]))
    right = asked.filter(pc.equal(asked["outcome"], Outcome.CORRECT.value))
    counts = right.group_by(list(keys)).aggregate([([], "count_all")]).to_pylist()
    return {tuple(row[key] for key in keys): row["count_all"] for row in counts}


def unknown_by_cause(cells: Cells) -> dict[str, CallCosts]:
    """Return the calls without a cost by what is missing, the commonest first."""
    found: dict[str, CallCosts] = {}
    for (*_, status), spent in cells.items():
        if not spent.unknown:
            continue
        for cause, part in _causes(status, spent):
            found.setdefault(cause, CallCosts()).add(part)
    return dict(sorted(found.items(), key=lambda item: (-item[1].unknown, item[0])))


def _causes(status: str, spent: CallCosts) -> Iterable[tuple[str, CallCosts]]:
    whole = CallCosts(
        unknown=spent.unknown,
        unknown_reserved_usd=spent.unknown_reserved_usd,
        unknown_unbounded=spent.unknown_unbounded,
    )
    if status != OK_STATUS:
        yield f"{'ended unseen' if status == LOST else status}: {MAYBE_BILLED}", whole
        return
    untold = CallCosts(
        unknown=spent.unbilled_tokens,
        unknown_reserved_usd=spent.unbilled_reserved_usd,
        unknown_unbounded=spent.unbilled_unbounded,
    )
    if untold.unknown:
        yield NO_TOKENS, untold
    if whole.unknown > untold.unknown:
        yield NO_PRICE, whole.without(untold)


# ── replies without a count ──────────────────────────────────────────────────────────────────

OF_REPLIES: Final = ("model", "reply_text", "reasoning_text", "output_tokens", "reasoning_tokens")


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


def untold(batches: Iterable[pa.RecordBatch]) -> tuple[Untold, ...]:
    """Return the replies without a count, by model; the batches hold `OF_REPLIES` of all replies."""
    sums: dict[tuple[str, bool], Counter[str]] = {}
    for batch in batches:
        groups = _lengths(batch).group_by(["model", "told"])
        sums_of = groups.aggregate([([], "count_all"), ("characters", "sum"), ("tokens", "sum")])
        for row in sums_of.to_pylist():
            key = row.pop("model"), row.pop("told")
            sums.setdefault(key, Counter()).update({name: value or 0 for name, value in row.items()})
    return tuple(
        _untold(model, found, sums.get((model, True), Counter()))
        for (model, told), found in sorted(sums.items())
        if not told
    )


def _lengths(rows: pa.RecordBatch) -> pa.Table:
    """Return each reply's characters, and its tokens without the thinking that it does not show."""
    shown = pc.is_valid(rows["reasoning_text"])
    texts = (pc.fill_null(rows[name], "") for name in ("reply_text", "reasoning_text"))
    hidden = pc.if_else(shown, 0, pc.fill_null(rows["reasoning_tokens"], 0))
    columns = {
        "model": rows["model"],
        "told": pc.is_valid(rows["output_tokens"]),
        "characters": pc.cast(pc.add(*map(pc.utf8_length, texts)), pa.int64()),
        "tokens": pc.subtract(rows["output_tokens"], hidden),
    }
    return pa.table(columns)


def _untold(model: str, found: Counter[str], told: Counter[str]) -> Untold:
    measured = told["characters_sum"] > 0 and told["tokens_sum"] > 0
    return Untold(
        model=model,
        replies=found["count_all"],
        characters=found["characters_sum"],
        characters_per_token=(
            told["characters_sum"] / told["tokens_sum"] if measured else float(CHARACTERS_PER_TOKEN)
        ),
        measured=measured,
    )
