"""The figures of a plan, and how they are shown."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSet:
    """A problem set of the sweep."""

    name: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """What is left of one model: tokens, cost and time are those of the trials left alone."""

    model: str  # the alias
    trials: int
    done: int  # finished in the results folder, failed ones included
    left: int
    input_tokens: int
    output_tokens: int
    output_tokens_most: int | None  # None: nothing limits them
    cost_usd: float | None  # None: no price is known
    cost_usd_most: float | None  # None: no price is known, or nothing limits the replies
    price_source: str | None
    group: str | None  # whose lane it shares
    seconds: float
    bound_by: str | None  # the limit it waits for: rpm, tpm, …, or concurrency; None: nothing is left
    max_tokens: int | None
    max_tokens_required: bool  # the model's longest reply: the format demands one where the sweep has none


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a sweep would cost and how long it would take."""

    sweep: str
    out: str
    simulated: bool  # whether any of it is answered by the simulator
    limit: int | None  # problems per model
    problem_sets: tuple[PlannedSet, ...]
    models: tuple[ModelPlan, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def cost_usd(self) -> float | None:
        """Of all models; None when that of any is unknown."""
        return _sum(one.cost_usd for one in self.models)

    @property
    def cost_usd_most(self) -> float | None:
        """Of all models at most; None when that of any is unknown."""
        return _sum(one.cost_usd_most for one in self.models)

    @property
    def seconds(self) -> float:
        """Until the slowest model is done: each has limits of its own."""
        lanes: dict[str, float] = {}
        for one in self.models:
            lane = one.group or one.model
            lanes[lane] = lanes.get(lane, 0.0) + one.seconds  # of a group, one model's turn is not another's
        return max(lanes.values(), default=0.0)

    def as_json(self) -> str:
        """Return everything as JSON."""
        together = {
            "left": sum(one.left for one in self.models),
            "cost_usd": self.cost_usd,
            "cost_usd_most": self.cost_usd_most,
            "seconds": self.seconds,
        }
        return json.dumps(asdict(self) | {"together": together}, indent=2)

    def as_text(self) -> str:
        """Return what a person wants to know before anything is spent."""
        sets = ((one.name, f"{one.rows:,}") for one in self.problem_sets)
        blocks = [
            self._opening(),
            aligned([("problem set", "rows"), *sets]),
            aligned([TRIALS_HEAD, *map(_trials_row, self.models)]),
            aligned([COST_HEAD, *map(_cost_row, self.models), self._together()]),
            _listed("Assumed:", self.assumptions),
            _listed("Beware:", self.warnings),
        ]
        return "\n\n".join(filter(None, blocks))

    def _opening(self) -> str:
        first = f", the first {self.limit:,} problems of each model" if self.limit is not None else ""
        simulated = ["SIMULATED models are among these: asyncbench's own server answers for them."]
        said = f"{self.sweep}{first}; results in {self.out}. Nothing was asked, nothing was written."
        return "\n".join(simulated * self.simulated + [said])

    def _together(self) -> Row:
        known = sum(one.cost_usd or 0 for one in self.models)
        most = sum(one.cost_usd_most or 0 for one in self.models)
        costs = (
            _dollars(self.cost_usd, known=known),
            _dollars(self.cost_usd_most, known=most),
        )
        return ("together", *costs, duration(self.seconds), "", "", "")


def _sum(parts: Iterable[float | None]) -> float | None:
    values = list(parts)
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


# ── how figures are written ──────────────────────────────────────────────────────────────────

TRIALS_HEAD = ("model", "trials", "done", "left", "input tok.", "output tok.", "at most")
COST_HEAD = ("model", "cost", "at most", "time", "bound by", "max_tokens", "price")


def _trials_row(one: ModelPlan) -> Row:
    counts = (one.trials, one.done, one.left, one.input_tokens, one.output_tokens)
    most = "unlimited" if one.output_tokens_most is None else f"{one.output_tokens_most:,}"
    return one.model, *(f"{count:,}" for count in counts), most


def _cost_row(one: ModelPlan) -> Row:
    cap = "none" if one.max_tokens is None else f"{one.max_tokens:,}" + "*" * one.max_tokens_required
    costs = _dollars(one.cost_usd), _dollars(one.cost_usd_most)
    return one.model, *costs, duration(one.seconds), one.bound_by or "-", cap, one.price_source or "unknown"


def _dollars(cost: float | None, *, known: float = 0) -> str:
    """Return USD; `known` is the part that is known of an unknown cost."""
    if cost is not None:
        return f"${cost:,.4f}"
    return f"${known:,.4f} + unknown" if known else "unknown"


def duration(seconds: float) -> str:
    """Return hours, minutes and seconds, rounded up to a second: 90.2 s as `0:01:31`."""
    minutes, rest = divmod(-int(-seconds // 1), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def aligned(rows: Sequence[Row]) -> str:
    """Return rows as lines of columns: the first to the left, the others to the right."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(
        "  ".join(
            [row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))]
        ).rstrip()
        for row in rows
    )


def _listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"- {line}" for line in lines)]) if lines else ""
