"""Summary of a run, for a person, for a script and for the shell."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import ROUND_UP, Context, Decimal
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from asyncbench.engine.budget import Cap, Ledger
from asyncbench.engine.telemetry import Counters
from asyncbench.files import quoted
from asyncbench.lanes.batches.status import PartStatus, left_in_batches, warnings_on
from asyncbench.lanes.load.steps import CLOSED_LOOP, step_text
from asyncbench.pricing import PICO_PLACES, dollars_of, picodollars
from asyncbench.records import Outcome, StepResult
from asyncbench.run.costs import cap_text, cost_in_all, cost_text, costs_text, phrases
from asyncbench.run.refusals import FAULTS
from asyncbench.tables.headings import SCORED_ONLY
from asyncbench.tables.numbers import count, dollars, duration, known_cost, percent, whole_percent
from asyncbench.tables.report import SIMULATED, Columns, Sheet, html_of
from asyncbench.tables.screen import safe_notes

if TYPE_CHECKING:  # most runs start no simulator
    from asyncbench.simulator.counts import ServerStats


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
    """Use of the budgets of a sweep."""

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
        """Return a sentence for each cap, and one for the models that no budget holds."""
        outside = f"no price is known for {', '.join(self.outside)}: no budget holds their cost"
        dearer = [
            f"{account.model}: {account.overruns:,} calls cost more than their price and max_tokens allow; "
            "they count in full"
            for account in self.ledger.accounts
            if account.overruns
        ]
        return [*map(cap_text, self.ledger.caps), *[outside] * bool(self.outside), *dearer]


def _proposed(pico: int) -> str:
    """Return picodollars as dollars that may be typed, rounded up."""
    return f"{TWO_FIGURES.plus(Decimal(pico).scaleb(-PICO_PLACES)).normalize():f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Result of a run: the counters of every model by alias, and the reasons for its end."""

    sweep: str
    out: Path
    models: Mapping[str, Counters]
    causes: frozenset[Exit]
    seconds: float
    simulated: bool  # whether any of it was answered by the simulator
    simulated_note: str = SIMULATED  # what to say then
    seen: "Sequence[ServerStats]" = ()  # what each simulator counted that this run started
    budget: BudgetUse | None = None  # None: there is none
    command: str = ""  # the one that continues the sweep
    in_session: bool = False  # a function that no file holds takes part: no command can continue
    raises_budget: bool = False  # whether it does so with more money than the sweep's own budget
    asked_again: bool = False  # whether trials were asked that had an answer
    conditions: Mapping[str, int] = field(default_factory=dict)  # by alias; one where it is not said
    stops: Sequence[str] = ()  # why models stopped, and what to do now
    batches: Sequence[PartStatus] = ()  # that are open
    steps: Sequence[StepResult] | None = None  # of a load; None: it was none
    found: Mapping[str, str] = field(default_factory=dict)  # by a search of each model for its highest rate
    limit: str | None = None  # what an option left out of the sweep; None: nothing

    @property
    def exit(self) -> Exit:
        """The exit code of a command that did only this."""
        return exit_code(self.causes)

    def as_json(self, **more: object) -> str:
        """Return everything as JSON, with more keys beside."""
        now = time.time()
        summary = {
            "sweep": self.sweep,
            "out": str(self.out),
            "simulated": self.simulated,
            "seconds": round(self.seconds, 3),
            "exit": int(self.exit),
            "models": {alias: counts_of(counters) for alias, counters in self.models.items()},
            "batches": [batch_part.json_fields(now) for batch_part in self.batches],
            "budget": None if self.budget is None else self.budget.as_mapping(),
            "simulators": list(self.seen),
        }
        if self.steps is not None:
            summary |= {"steps": [asdict(step) for step in self.steps], "found": dict(self.found)}
        return json.dumps(summary | more, indent=2)

    def as_text(self, *, brief: bool = False) -> str:
        """Return the summary of a run for a person.

        Args:
            brief: without what a look at the results folder shows: each model's figures and where they are.
        """
        # The figures of each model on one line.
        models = list[str]()
        for alias, counters in self.models.items():
            in_all, accuracy = cost_in_all(counters), _accuracy(counters, self.conditions.get(alias, 1))
            figures = {
                done_text(counters): True,
                _besides(counters): True,
                f"accuracy {accuracy}": accuracy,
                f"mean score {_mean_score(counters)}": counters.scored,
                cost_text(counters) + (f" ({in_all} in all)" if in_all else ""): True,
                f"stopped ({(counters.suspended or '').partition(':')[0]})": counters.suspended,
            }
            models.append(f"  {alias}: {phrases(figures)}")

        simulated = [] if brief else [self.simulated_note] * self.simulated
        models = [] if brief or len(models) == 1 else models
        where = [] if brief else [f"results: {self.out} (see `asyncbench report {quoted(self.out)}`)"]
        notes = [
            line  # a command must stay on one line
            for note in (*self.stops, *self._notes())
            for line in ([note] if note.startswith("To ") else safe_notes([note]))
        ]
        return "\n".join([*simulated, self._headline(), *models, *notes, *where])

    def __str__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with the models in a table."""
        where = f"results: {self.out}"
        above: list[str | Sheet] = [
            *[self.simulated_note] * self.simulated,
            self._headline(),
            Sheet.of("", MODELS, self.models.items()),
        ]
        return html_of([*above, *self.stops, *self._notes(), where])

    def _notes(self) -> list[str]:
        lines = [*self._why(), *self._left_in_batches()]
        if any(batch_part.undecided for batch_part in self.batches):  # running again alone moves nothing
            lines = [*self._left_in_batches(), *self._why()]
        lines += [] if self.budget is None else self.budget.as_lines()
        lines += [
            f"simulator: {stats['requests']:,} requests, {stats['delivered']:,} answered"
            for stats in self.seen
            if stats["requests"] or all(counters.batches is None for counters in self.models.values())
        ]
        for alias, counters in self.models.items():
            lines += [
                f"{alias}: {note}: {_replies(number)}" for note, number in sorted(counters.notes.items())
            ]
        total = Counters.summed(list(self.models.values()))
        if total.score and not total.outcomes[Outcome.CORRECT]:
            lines.append(SCORED_ONLY)
        if total.faults or total.grader_errors:
            lines.append(f"the first fault of each kind with its traceback: {self.out / FAULTS}")
        if total.grader_errors:
            again = f"asyncbench regrade {quoted(self.out)} --write"
            lines.append(f"once the grader is corrected, grade these replies: {again}")
        return lines

    def _headline(self) -> str:
        """Return how far the sweep is; the accuracy of several models together says nothing."""
        total = Counters.summed(list(self.models.values()))
        conditions = max((self.conditions.get(alias, 1) for alias in self.models), default=1)
        accuracy = _accuracy(total, conditions) if len(self.models) == 1 else ""
        parts = {
            done_text(total): True,
            _besides(total): True,
            f"Accuracy {accuracy}": accuracy,
            f"Mean score {_mean_score(total)}": total.scored and len(self.models) == 1,
            costs_text(total): True,
            duration(self.seconds): True,
        }
        return f"{self.sweep}: {phrases(parts, by='. ')}."

    def _why(self) -> list[str]:
        """Return why the run ended before all was done, and the command that continues it."""
        if self.steps is not None:
            return self._why_of_load()
        models = self.models.values()
        failed, remaining, ungraded = (
            sum(getattr(counters, name) for counters in models)
            for name in ("failed", "open", "grader_errors")
        )
        lines = [self.limit] if self.limit and self.exit in (Exit.COMPLETE, Exit.UNFINISHED) else []
        if self.exit is Exit.BUDGET and self.budget is not None:
            lines += self._why_spent(self.budget)
        elif self.exit in WHY:
            stopped = sum(counters.suspended is not None for counters in models)
            parts = {
                WHY[self.exit]: True,
                f"{stopped} of {len(models)} models stopped.": self.exit is Exit.UNFINISHED and stopped,
                f"{_trials(remaining)} left.": remaining,
                f"{_trials(failed)} without a usable reply.": failed,
                f"{_replies(ungraded)} not graded.": ungraded,
            }
            lines.append(phrases(parts, by=" "))
            if remaining > 0:
                again = "the same call in this session" if self.in_session else self.command
                lines.append(f"To continue: {again}")
            if failed > 0:
                retry = "" if "--retry" in self.command else " --retry failed"
                again = "the same with retry=['failed']" if self.in_session else f"{self.command}{retry}"
                lines.append(f"To ask again those without a reply: {again}")
        return lines

    def _why_of_load(self) -> list[str]:
        """Return the results of steps, why others were not measured, and the command that does so."""
        lines = [step_text(step) for step in self.steps or ()]
        if not self.steps and self.exit is Exit.COMPLETE:
            lines.append("Every step was measured before. To measure them once more, raise `repeats`.")
        lines += [f"{alias}: {result}" for alias, result in self.found.items()]
        if any(step.arrivals == "closed" for step in self.steps or ()):
            lines.append(f"{CLOSED_LOOP[:1].upper()}{CLOSED_LOOP[1:]}.")
        if any(step.verdict == "client_bound" for step in self.steps or ()):
            lines.append(
                "This computer was the bottleneck of some steps, so their figures are its own. Ask for lower "
                "rates, let other cores make the calls (`--workers auto`), or run on a computer with less to "
                "do."
            )
        if self.exit is Exit.BUDGET and self.budget is not None:
            caps = dict.fromkeys(cap for account in self.budget.ledger.accounts for cap in account.bound_by)
            lines.append(f"Stopped by {' and '.join(cap.label for cap in caps)}: no money for the next call.")
            return [*lines, f"To continue, {self._way_on(list(caps), self.budget)}"]
        if self.exit in WHY:
            stopped = sum(counters.suspended is not None for counters in self.models.values())
            parts = {
                WHY[self.exit]: True,
                f"{stopped} of {len(self.models)} models stopped.": stopped,
                "Steps that are incomplete or client bound are measured again.": any(
                    step.verdict in ("incomplete", "client_bound") for step in self.steps or ()
                ),
            }
            lines.append(phrases(parts, by=" "))
            lines.append(f"To measure what is left: {self.command}")
        return lines

    def _left_in_batches(self) -> list[str]:
        now = time.time()
        if not (lines := left_in_batches(self.batches, now=now)):
            return []
        lines += [*warnings_on(self.batches, now=now), f"To see them: asyncbench status {quoted(self.out)}"]
        return lines if self.exit in WHY else [*lines, f"To collect them: {self.command}"]

    def _why_spent(self, use: BudgetUse) -> list[str]:
        trials = sum(counters.open for counters in self.models.values() if counters.budget_stopped)
        kept = " (or keep their earlier answer)" if self.asked_again else ""
        # those for which a model was left before its work was done
        caps = list(dict.fromkeys(cap for account in use.ledger.accounts for cap in account.bound_by))
        names = " and ".join(cap.label for cap in caps)
        why = f"Stopped by {names}: {_why_spent(caps, use.ledger.lacked_for)}. {_trials(trials)} left{kept}."
        return [why, f"To continue, {self._way_on(caps, use)}"]

    def _way_on(self, caps: Sequence[Cap], use: BudgetUse) -> str:
        """Return the way on: the command may raise a sweep's own budget, any other stands in its file."""
        in_file = [cap for cap in caps if not (cap.kind == SWEEP and self.raises_budget)]
        keys = dict.fromkeys(PLACES[cap.kind].replace("{of}", cap.of) for cap in in_file)
        advice = f"raise {' and '.join(keys)}, then " if keys else ""
        advice += f"run `{self.command}`"
        if not self.raises_budget:
            return f"{advice}."
        if use.rest_usd is None:
            return f"{advice}. `asyncbench plan` estimates the cost of the rest."
        return (
            f"{advice}. The rest costs up to {dollars(use.rest_usd)}, judged by the replies so far; "
            f"another {use.ledger.lacked_for} needs at least --budget {use.least_to_go_on}."
        )


MODELS: Columns[tuple[str, Counters]] = {  # of an alias and its counters
    "model": lambda row: row[0],
    "trials done": lambda row: count(row[1].done),
    "planned": lambda row: count(row[1].planned),
    "accuracy this run": lambda row: percent(row[1].accuracy),
    "failed": lambda row: count(row[1].failed),
    "cost this run": lambda row: cost_text(row[1]),
    "stopped": lambda row: row[1].suspended or "",
}


def counts_of(counters: Counters) -> dict[str, object]:
    """Return the outcomes of a model's trials, for a script."""
    return {
        "planned": counters.planned,
        "done": counters.done,
        "done_before": counters.done_before,
        "skipped": counters.skipped,  # by `stop_when`
        "failed": counters.failed,
        "mean_score": counters.score / counters.scored if counters.scored else None,
        "grader_errors": counters.grader_errors,
        "faults": counters.faults,
        "outcomes": {outcome.value: counters.outcomes[outcome] for outcome in Outcome},
        "attempts": counters.attempts,
        "rate_limited": counters.rate_limited,
        "notes": dict(counters.notes),  # replies of which something was not believed or passed over
        "input_tokens": counters.input_tokens,
        "output_tokens": counters.output_tokens,
        "cost_usd": known_cost(counters.cost_usd, unknown=counters.unpriced),
        "unpriced_attempts": counters.unpriced,
        "suspended": counters.suspended,
        "budget_stopped": counters.budget_stopped,
        "client_bound": counters.client_bound,
    }


PLACES = {  # where a sweep says a budget, by the kind of its cap
    "sweep": "budget_usd",
    "provider": "budget_usd under `limits: {of}`",
    "model": "budget_usd of {of}",
}
WHY = {
    Exit.INTERRUPTED: "Interrupted. Everything answered so far is saved.",
    Exit.DEADLINE: "The deadline has passed. Everything answered so far is saved.",
    Exit.UNFINISHED: "Not complete.",
}


def _why_spent(caps: Sequence[Cap], lacked_for: str) -> str:
    """Return in what way caps hold no more calls; `lacked_for` is what the next one is called."""
    if any(cap.spent - cap.doubted > cap.limit for cap in caps):
        return "more than that is spent already"
    if any(cap.spent - cap.doubted == cap.limit for cap in caps):
        return "all of it is spent"
    calls = max((cap.doubted_calls for cap in caps), default=0)
    if any(cap.spent >= cap.limit for cap in caps):
        return f"all of it may be spent, because the cost of {calls:,} calls is unknown"
    unsure = f", because the cost of {calls:,} calls is unknown" if calls else ""
    return f"the rest of it is too little for another {lacked_for}{unsure}"


def _trials(count: int) -> str:
    return "1 trial is" if count == 1 else f"{count:,} trials are"


def _replies(number: int) -> str:
    return "1 reply" if number == 1 else f"{number:,} replies"


def done_text(counters: Counters) -> str:
    """Return how many trials are done of how many, and how many of them by this run."""
    now = f" ({counters.outcomes.total():,} this run)" if counters.done_before else ""
    return f"{counters.done:,}/{counters.planned:,} done{now}"


def _accuracy(counters: Counters, conditions: int) -> str:
    """Return the share of right answers of this run; empty: there are none."""
    if (share := counters.accuracy) is None:
        return ""
    now = " this run" if counters.done_before else ""
    together = f" ({conditions:,} conditions together)" if conditions > 1 else ""
    return f"{whole_percent(share)} %{' of answers' if counters.loaded else ''}{now}{together}"


def _mean_score(counters: Counters) -> str:
    """Return the mean of the scores that replies of this run got."""
    return f"{counters.score / counters.scored:.3f}" if counters.scored else ""


def _besides(counters: Counters) -> str:
    """Return the trials that are not simply done, in words; empty without any."""
    return phrases(
        {
            f"{counters.skipped:,} skipped by stop_when": counters.skipped,
            f"{counters.failed:,} failed": counters.failed,
            f"{counters.faults:,} calls failed by a bug of asyncbench": counters.faults,
            f"{_replies(counters.grader_errors)} kept but not graded, since their grader failed": (
                counters.grader_errors
            ),
            "this computer was the bottleneck at times": counters.client_bound,
        }
    )
