"""What was found out about a model, and how it is told."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from asyncbench.checkup.client_latency import Noise


class FindingState(StrEnum):
    """How a finding is to be taken."""

    OK = "ok"
    NOTE = "note"  # a sweep runs, but somebody should know
    WRONG = "wrong"  # a sweep would fail


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    about: str  # key, model, answer, usage …
    state: FindingState
    said: str
    way_out: str | None = None  # where something is to be done


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """All that was found out about one model of a sweep."""

    model: str  # the alias
    provider: str
    model_id: str
    simulated: bool
    findings: tuple[Finding, ...]
    latency_s: float | None  # of the plain call; None: it failed
    ttft_s: float | None  # of the streamed call; None: it failed, or came in one piece
    costs_usd: tuple[float | None, ...]  # of each call; None: unknown

    @property
    def fine(self) -> bool:
        """Whether nothing stands in the way of a sweep."""
        return all(one.state is not FindingState.WRONG for one in self.findings)

    @property
    def cost_usd(self) -> float | None:
        """Of all calls; None if that of any is unknown."""
        known = [cost for cost in self.costs_usd if cost is not None]
        return sum(known) if len(known) == len(self.costs_usd) else None


def as_json(checkups: Sequence[Checkup], noise: Sequence[Noise]) -> str:
    """Return everything as JSON."""
    models = [{"fine": one.fine, **asdict(one), "cost_usd": one.cost_usd} for one in checkups]
    return json.dumps({"models": models, "noise": [asdict(one) for one in noise]}, indent=2)


def as_text(checkups: Sequence[Checkup], noise: Sequence[Noise]) -> str:
    """Return it for a person: a paragraph a model, what is wrong with its way out."""
    paragraphs = [_paragraph(one) for one in checkups]
    if checkups:
        paragraphs.append(_sum_of(checkups))
    if noise:
        paragraphs.append("\n".join([NOISE_HEAD, *map(_noise_line, noise)]))
    return "\n\n".join(paragraphs)


NOISE_HEAD = (
    "SIMULATED: what this machine, as busy as it is now, adds to the times it measures: medians of calls to\n"
    "our own loopback server, whose delays are known (its own lateness is in them)"
)


def _paragraph(one: Checkup) -> str:
    simulated = " (SIMULATED)" if one.simulated else ""
    lines = [f"{one.model}: {'fine' if one.fine else 'NOT FINE'}{simulated}"]
    for finding in one.findings:
        lines.append(f"  {finding.state:<5}  {finding.about:<10} {finding.said}")
        if finding.way_out is not None:
            lines.append(f"{'':<20}-> {finding.way_out}")
    return "\n".join(lines)


def _sum_of(checkups: Sequence[Checkup]) -> str:
    fine = sum(one.fine for one in checkups)
    paid = [cost for one in checkups if not one.simulated for cost in one.costs_usd]
    made_up = [cost for one in checkups if one.simulated for cost in one.costs_usd]
    simulated = f"; SIMULATED ones, which nobody pays: {_dollars(made_up)}" if made_up else ""
    return f"{fine} of {len(checkups)} models fine; these calls cost {_dollars(paid)}{simulated}"


def _dollars(costs: Sequence[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    unknown = len(costs) - len(known)
    more = f" and {unknown} call{'s' * (unknown > 1)} of unknown cost" if unknown else ""
    return f"${sum(known):.6f}{more}"


def _noise_line(one: Noise) -> str:
    return (
        f"  {one.adapter:<10} {one.calls:,} calls, {one.in_flight} in flight: "
        f"time to first token {1000 * one.ttft_error_s:+.1f} ms, latency {1000 * one.latency_error_s:+.1f} ms"
    )
