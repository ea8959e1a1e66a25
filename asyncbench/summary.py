"""What a run did, for a person, for a script and for the shell."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from asyncbench.engine.budget import Cap, Ledger
from asyncbench.engine.telemetry import Counters
from asyncbench.pricing import dollars_of
from asyncbench.progress import cap_text, cost_text
from asyncbench.records import Outcome
from asyncbench.simulator.counts import ServerStats


class Exit(IntEnum):
    """Exit codes; what each means to a script is in the README."""

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


def exit_code(causes: Collection[Exit]) -> Exit:
    """Return the gravest of the causes; none is a complete run."""
    return next((code for code in GRAVEST_FIRST if code in causes), Exit.COMPLETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What became of the budgets of a sweep."""

    ledger: Ledger
    outside: Sequence[str] = ()  # models without a price, by alias: no budget held them

    def as_mapping(self) -> dict[str, object]:
        """Return all of it; what calls of unknown cost may have cost counts as spent."""
        caps = [
            {
                "kind": cap.kind,
                "of": cap.of,
                "limit_usd": dollars_of(cap.limit),
                "spent_usd": dollars_of(cap.spent),
                "reserved_usd": dollars_of(cap.reserved),
            }
            for cap in self.ledger.caps
        ]
        models = {
            one.model: {
                "spent_usd": dollars_of(one.spent),
                "reserved_usd": dollars_of(one.reserved),
                "dearer_than_bound": one.overruns,
            }
            for one in self.ledger.accounts
        }
        return {"caps": caps, "models": models, "outside": list(self.outside)}

    def as_lines(self) -> list[str]:
        """Return a sentence for each cap, and one for who stood outside."""
        outside = f"no price is known for {', '.join(self.outside)}: asked outside of the budget"
        dearer = [
            f"{one.model}: {one.overruns:,} calls cost more than could be; all are charged in full"
            for one in self.ledger.accounts
            if one.overruns
        ]
        return [*map(cap_text, self.ledger.caps), *[outside] * bool(self.outside), *dearer]


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
    budget: Spent | None = None  # None: there is none
    command: str | None = None  # the one that goes on with it; None: it was no command
    asked_again: bool = False  # whether trials were asked that had an answer

    @property
    def exit(self) -> Exit:
        """The exit code of a command that did only this."""
        return exit_code(self.causes)

    def as_json(self) -> str:
        """Return everything as JSON."""
        models = {
            alias: {
                "planned": one.planned,
                "done": one.done,
                "done_before": one.done_before,
                "skipped": one.skipped,
                "failed": one.failed,
                "grader_errors": one.grader_errors,
                "outcomes": {outcome.value: one.outcomes[outcome] for outcome in Outcome},
                "attempts": one.attempts,
                "rate_limited": one.rate_limited,
                "input_tokens": one.input_tokens,
                "output_tokens": one.output_tokens,
                "cost_usd": one.cost_usd,
                "unpriced_attempts": one.unpriced,
                "suspended": one.suspended,
                "budget_stopped": one.budget_stopped,
                "client_bound": one.client_bound,
            }
            for alias, one in self.models.items()
        }
        summary = {
            "sweep": self.sweep,
            "out": str(self.out),
            "simulated": self.simulated,
            "seconds": round(self.seconds, 3),
            "exit": int(self.exit),
            "models": models,
            "budget": None if self.budget is None else self.budget.as_mapping(),
            "simulators": list(self.seen),
        }
        return json.dumps(summary, indent=2)

    def as_text(self) -> str:
        """Return what a person wants to know when the run is over."""
        lines = [_sentence(alias, one) for alias, one in self.models.items()]
        if self.exit is not Exit.COMPLETE:
            lines.append(f"{self._why()} Running it again asks only what is unfinished.")
        lines += [] if self.budget is None else self.budget.as_lines()
        lines += [
            f"the simulator saw {one['requests']:,} requests, at most {one['max_in_flight']:,} in flight, "
            f"and gave {one['delivered']:,} answers"
            for one in self.seen
        ]
        lines.append(f"results in {self.out} after {self.seconds:,.1f} s; `asyncbench report {self.out}`")
        return "\n".join(["SIMULATED results: no model was asked."] * self.simulated + lines)

    def _why(self) -> str:
        if self.exit is not Exit.BUDGET:
            return WHY[self.exit]
        trials = sum(one.open for one in self.models.values() if one.budget_stopped)
        kept = ", or keep the answer that was to be asked again" if self.asked_again else ""
        command = f"`{self.command}`" if self.command else "the sweep again"
        caps = self._binding()
        passed = [cap for cap in caps if cap.spent >= cap.limit]
        why = "all of it is spent" if passed else "what is left does not suffice for another call"
        return (
            f"Stopped by its budget ({', '.join(cap.name for cap in caps)}): {why}, and {trials:,} trials "
            f"are open{kept}. To go on, raise {_keys(caps)} and run {command}."
        )

    def _binding(self) -> list[Cap]:
        """Return the caps for which a model was left before its work was done."""
        if self.budget is None:
            return []
        accounts = self.budget.ledger.accounts
        return list(dict.fromkeys(cap for one in accounts for cap in one.bound_by))


def _keys(caps: Sequence[Cap]) -> str:
    """Return which keys of a sweep file set caps."""
    places = {"sweep": "", "provider": " under `limits: {of}`", "model": " of {of}"}
    return " and ".join(
        dict.fromkeys("`budget_usd`" + places[cap.kind].replace("{of}", cap.of) for cap in caps)
    )


WHY = {
    Exit.INTERRUPTED: "Interrupted; everything answered so far is saved.",
    Exit.DEADLINE: "Stopped by its deadline; everything answered so far is saved.",
    Exit.UNFINISHED: "Not complete: trials failed (--retry failed asks them again) or a model is suspended.",
}


def _sentence(alias: str, one: Counters) -> str:
    correct, closed = one.outcomes[Outcome.CORRECT], one.outcomes.total()
    parts = [f"{alias}: {one.done:,} of {one.planned:,} trials done"]
    if one.done_before:
        parts.append(f"{one.done_before:,} of them before")
    if one.skipped:
        parts.append(f"{one.skipped:,} skipped (`stop_when`: enough is known of their cells)")
    if closed:
        parts.append(f"{correct:,} of {closed:,} correct now")
    if one.failed:
        parts.append(f"{one.failed:,} failed")
    if one.grader_errors:
        parts.append(f"{one.grader_errors:,} not graded (a bug of ours; the replies are kept)")
    parts.append(cost_text(one))
    if one.suspended:
        parts.append(f"SUSPENDED ({one.suspended})")
    if one.client_bound:
        parts.append("client-bound at times: this machine was the bottleneck")
    return ", ".join(parts)
