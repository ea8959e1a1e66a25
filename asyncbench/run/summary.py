"""What a run did, for a person, for a script and for the shell."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_UP, Context, Decimal
from enum import IntEnum
from pathlib import Path

from asyncbench.engine import Cap, Counters, Ledger
from asyncbench.pricing import PICO_PLACES, dollars_of, picodollars
from asyncbench.records import Outcome
from asyncbench.run.faults import FAULTS
from asyncbench.run.progress import cap_text, cost_text
from asyncbench.shown import Sheet, count, dollars, html_of, percent
from asyncbench.simulator import ServerStats


class Exit(IntEnum):
    """Exit codes; docs/howto/continue.md says what each means to a script."""

    COMPLETE = 0
    BUG = 1
    USAGE = 2
    UNFINISHED = 3
    BUDGET = 4
    STORAGE = 5
    DEADLINE = 6
    INTERRUPTED = 130


GRAVEST_FIRST = (
    Exit.BUG,
    Exit.INTERRUPTED,
    Exit.STORAGE,
    Exit.BUDGET,
    Exit.DEADLINE,
    Exit.UNFINISHED,
)
SWEEP = "sweep"  # the kind of cap that is the sweep's own
SPARE = 1.1  # times what a careful forecast says
TWO_FIGURES = Context(prec=2, rounding=ROUND_UP)  # of a sum that is only proposed


def exit_code(causes: Collection[Exit]) -> Exit:
    """Return the gravest of the causes; none is a complete run."""
    return next((code for code in GRAVEST_FIRST if code in causes), Exit.COMPLETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """What became of the budgets of a sweep."""

    ledger: Ledger
    outside: Sequence[str] = ()  # models without a price, by alias: no budget held them
    rest_usd: float | None = None  # what the rest takes by a careful forecast; None: there is none

    @property
    def to_go_on(self) -> str | None:
        """USD of the sweep's budget with which it would be completed; None where that did not stop it.

        Where nobody knows what the rest takes, twice as much, or the least, be that more.
        """
        least = self._least
        if least is None:
            return None
        cap, lacked = least
        if self.rest_usd is None:
            return _proposed(max(2 * cap.limit, cap.spent + lacked))
        # The last calls need room for all that they may cost, and a forecast from few replies may be low.
        return _proposed(cap.spent + round(SPARE * picodollars(self.rest_usd)) + lacked)

    @property
    def least_to_go_on(self) -> str | None:
        """USD of the sweep's budget with which another call would be made; None where it did not stop it."""
        return None if self._least is None else _proposed(self._least[0].spent + self._least[1])

    @property
    def _least(self) -> tuple[Cap, int] | None:
        """The sweep's own cap, where that stopped it, and picodollars that the next calls lacked."""
        lacked = [
            (cap, account.lacked)
            for account in self.ledger.accounts
            for cap in account.bound_by
            if cap.kind == SWEEP
        ]
        return (lacked[0][0], sum(amount for _, amount in lacked)) if lacked else None

    def as_mapping(self) -> dict[str, object]:
        """Return all of it; what calls of unknown cost may have cost counts as spent."""
        caps = [
            {
                "kind": cap.kind,
                "of": cap.of,
                "limit_usd": dollars_of(cap.limit),
                "spent_usd": dollars_of(cap.spent),
                "reserved_usd": dollars_of(cap.reserved),
                "doubted_usd": dollars_of(cap.doubted),
                "doubted_calls": cap.doubted_calls,
            }
            for cap in self.ledger.caps
        ]
        models = {
            account.model: {
                "spent_usd": dollars_of(account.spent),
                "reserved_usd": dollars_of(account.reserved),
                "dearer_than_bound": account.overruns,
            }
            for account in self.ledger.accounts
        }
        return {
            "caps": caps,
            "models": models,
            "outside": list(self.outside),
            "rest_usd": self.rest_usd,
            "to_go_on_usd": self.to_go_on and float(self.to_go_on),
            "least_to_go_on_usd": self.least_to_go_on and float(self.least_to_go_on),
        }

    def as_lines(self) -> list[str]:
        """Return a sentence for each cap, and one for who stood outside."""
        outside = f"no price is known for {', '.join(self.outside)}: asked outside of the budget"
        dearer = [
            f"{account.model}: {account.overruns:,} calls cost more than could be; all are charged in full"
            for account in self.ledger.accounts
            if account.overruns
        ]
        return [*map(cap_text, self.ledger.caps), *[outside] * bool(self.outside), *dearer]


def _proposed(pico: int) -> str:
    """Return picodollars as dollars that may be typed, rounded up."""
    return f"{TWO_FIGURES.plus(Decimal(pico).scaleb(-PICO_PLACES)).normalize():f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run did: the counters of every model by alias, and why it ended as it did."""

    sweep: str
    out: Path
    models: Mapping[str, Counters]
    causes: frozenset[Exit]
    seconds: float
    simulated: bool  # whether any of it was answered by the simulator
    seen: Sequence[ServerStats] = ()  # what each simulator counted that this run started
    budget: BudgetUse | None = None  # None: there is none
    command: str = ""  # the one that goes on with it
    raises_budget: bool = False  # whether it does so with more money than the sweep's own budget
    asked_again: bool = False  # whether trials were asked that had an answer
    conditions: Mapping[str, int] = field(default_factory=dict)  # by alias; one where it is not said

    @property
    def exit(self) -> Exit:
        """The exit code of a command that did only this."""
        return exit_code(self.causes)

    def as_json(self) -> str:
        """Return everything as JSON."""
        summary = {
            "sweep": self.sweep,
            "out": str(self.out),
            "simulated": self.simulated,
            "seconds": round(self.seconds, 3),
            "exit": int(self.exit),
            "models": {alias: counts_of(counters) for alias, counters in self.models.items()},
            "budget": None if self.budget is None else self.budget.as_mapping(),
            "simulators": list(self.seen),
        }
        return json.dumps(summary, indent=2)

    def as_text(self) -> str:
        """Return what a person wants to know when the run is over."""
        models = [
            _sentence(alias, counters, self.conditions.get(alias, 1))
            for alias, counters in self.models.items()
        ]
        return "\n".join([*self._first_line(), *models, *self._lines()])

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with the models in a table."""
        return html_of([*self._first_line(), _sheet(self.models), *self._lines()])

    def _first_line(self) -> list[str]:
        return ["SIMULATED results: no model was asked."] * self.simulated

    def _lines(self) -> list[str]:
        lines = []
        if self.exit is not Exit.COMPLETE:
            lines.append(f"{self._why()} Running it again asks only what is unfinished.")
        lines += [] if self.budget is None else self.budget.as_lines()
        lines += [
            f"the simulator saw {stats['requests']:,} requests, at most {stats['max_in_flight']:,} inside it "
            f"at once, and gave {stats['delivered']:,} answers"
            for stats in self.seen
        ]
        if any(counters.faults or counters.grader_errors for counters in self.models.values()):
            lines.append(f"the first bug of each kind, with its traceback, is in {self.out / FAULTS}")
        lines.append(f"results in {self.out} after {self.seconds:,.1f} s; `asyncbench report {self.out}`")
        return lines

    def _why(self) -> str:
        if self.exit is not Exit.BUDGET or self.budget is None:
            return WHY[self.exit]
        trials = sum(counters.open for counters in self.models.values() if counters.budget_stopped)
        kept = ", or keep the answer that was to be asked again" if self.asked_again else ""
        # those for which a model was left before its work was done
        caps = list(dict.fromkeys(cap for account in self.budget.ledger.accounts for cap in account.bound_by))
        return (
            f"Stopped by its budget ({', '.join(cap.name for cap in caps)}): {_why_spent(caps)}, and "
            f"{trials:,} trials are open{kept}. To go on, {self._way_on(caps, self.budget)}."
        )

    def _way_on(self, caps: Sequence[Cap], use: BudgetUse) -> str:
        """Return what to do: a sweep's own budget may be raised by the command, any other in its file."""
        places = {"sweep": "", "provider": " under `limits: {of}`", "model": " of {of}"}
        in_file = [cap for cap in caps if not (cap.kind == SWEEP and self.raises_budget)]
        keys = dict.fromkeys("`budget_usd`" + places[cap.kind].replace("{of}", cap.of) for cap in in_file)
        said = f"raise {' and '.join(keys)} and " if keys else ""
        said += f"run `{self.command}`"
        if not self.raises_budget:
            return said
        if use.rest_usd is None:
            return f"{said} (`asyncbench plan` says what the rest takes)"
        return (
            f"{said} (the rest takes up to {dollars(use.rest_usd)}, as the replies here tell; "
            f"--budget {use.least_to_go_on} is the least with which another call is made)"
        )


def _sheet(models: Mapping[str, Counters]) -> Sheet:
    head = ("model", "trials done", "planned", "accuracy this run", "failed", "cost this run", "suspended")
    rows = [
        (
            alias,
            count(each.done),
            count(each.planned),
            percent(each.outcomes[Outcome.CORRECT] / closed if (closed := each.outcomes.total()) else None),
            count(each.failed),
            cost_text(each),
            each.suspended or "",
        )
        for alias, each in models.items()
    ]
    return Sheet(title="", head=head, rows=rows)


def counts_of(counters: Counters) -> dict[str, object]:
    """Return what became of a model's trials, for a script."""
    return {
        "planned": counters.planned,
        "done": counters.done,
        "done_before": counters.done_before,
        "skipped": counters.skipped,  # by `stop_when`
        "failed": counters.failed,
        "grader_errors": counters.grader_errors,
        "faults": counters.faults,
        "outcomes": {outcome.value: counters.outcomes[outcome] for outcome in Outcome},
        "attempts": counters.attempts,
        "rate_limited": counters.rate_limited,
        "input_tokens": counters.input_tokens,
        "output_tokens": counters.output_tokens,
        "cost_usd": counters.cost_usd,
        "unpriced_attempts": counters.unpriced,
        "suspended": counters.suspended,
        "budget_stopped": counters.budget_stopped,
        "client_bound": counters.client_bound,
    }


def _why_spent(caps: Sequence[Cap]) -> str:
    if any(cap.spent - cap.doubted > cap.limit for cap in caps):
        return "more than that is spent already"
    if any(cap.spent - cap.doubted == cap.limit for cap in caps):
        return "all of it is spent"
    calls = max((cap.doubted_calls for cap in caps), default=0)
    if any(cap.spent >= cap.limit for cap in caps):
        return f"all of it may be spent, as the cost of {calls:,} calls is unknown"
    unsure = f", as the cost of {calls:,} calls is unknown" if calls else ""
    return f"what is left does not suffice for another call{unsure}"


WHY = {
    Exit.INTERRUPTED: "Interrupted; everything answered so far is saved.",
    Exit.DEADLINE: "Stopped by its deadline; everything answered so far is saved.",
    Exit.UNFINISHED: "Not complete: trials failed (--retry failed asks them again), or some are open.",
}


def _sentence(alias: str, counters: Counters, conditions: int) -> str:
    correct, closed = counters.outcomes[Outcome.CORRECT], counters.outcomes.total()
    together = f" ({conditions:,} conditions together)" if conditions > 1 else ""
    parts = {
        f"{alias}: {counters.done:,} of {counters.planned:,} trials done": True,
        f"{counters.done_before:,} of them before": counters.done_before,
        f"{counters.skipped:,} skipped (`stop_when`: enough is known of their cells)": counters.skipped,
        f"{correct:,} of {closed:,} correct now{together}": closed,
        f"{counters.failed:,} failed": counters.failed,
        f"{counters.faults:,} calls ended as bad_reply by a bug of ours": counters.faults,
        f"{counters.grader_errors:,} not graded (a bug of ours; replies are kept)": counters.grader_errors,
        cost_text(counters): True,
        f"SUSPENDED ({counters.suspended})": counters.suspended,
        "client-bound at times: this machine was the bottleneck": counters.client_bound,
    }
    return ", ".join(part for part, said in parts.items() if said)
