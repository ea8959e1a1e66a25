"""What was found out about a model, and how it is told."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from asyncbench.shown import Report, Sheet


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
        """Whether the model can be asked."""
        return all(finding.state is not FindingState.WRONG for finding in self.findings)

    @property
    def cost_usd(self) -> float | None:
        """Of all calls; None if that of any is unknown."""
        known = [cost for cost in self.costs_usd if cost is not None]
        return sum(known) if len(known) == len(self.costs_usd) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How late one adapter sees what its server sent: medians, seconds."""

    adapter: str
    calls: int
    in_flight: int
    ttft_error_s: float
    latency_error_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport(Report):
    """All that was found out, and what this client adds to the times that it measures."""

    models: Sequence[Checkup]
    noise: Sequence[Noise] = ()

    def _data(self) -> dict[str, object]:
        models = [
            {"fine": checkup.fine, **asdict(checkup), "cost_usd": checkup.cost_usd} for checkup in self.models
        ]
        return {"models": models, "noise": list(map(asdict, self.noise))}

    def _parts(self) -> Iterator[str | Sheet]:
        for checkup in self.models:
            rows: list[tuple[str, str, str]] = []
            for finding in checkup.findings:
                rows.append((finding.state, finding.about, finding.said))
                if finding.way_out is not None:
                    rows.append(("", "", f"-> {finding.way_out}"))
            simulated = " (SIMULATED)" if checkup.simulated else ""
            title = f"{checkup.model}: {'fine' if checkup.fine else 'NOT FINE'}{simulated}"
            yield Sheet(title=title, head=("", "about", "found"), rows=rows, labels=3)
        if self.models:
            fine = sum(checkup.fine for checkup in self.models)
            paid = [usd for checkup in self.models if not checkup.simulated for usd in checkup.costs_usd]
            made_up = [usd for checkup in self.models if checkup.simulated for usd in checkup.costs_usd]
            beside = f"; SIMULATED ones, which nobody pays: {_dollars(made_up)}" if made_up else ""
            yield f"{fine} of {len(self.models)} models fine; these calls cost {_dollars(paid)}{beside}"
        if self.noise:
            yield NOISE
            head = ("adapter", "calls", "in flight", "time to first token", "latency")
            measured = [
                (
                    *(noise.adapter, f"{noise.calls:,}", str(noise.in_flight)),
                    *(f"{1000 * late:+.1f} ms" for late in (noise.ttft_error_s, noise.latency_error_s)),
                )
                for noise in self.noise
            ]
            yield Sheet(title="What this client adds", head=head, rows=measured)


NOISE = (
    "SIMULATED: what this machine, as busy as it is now, adds to the times it measures: medians of calls to "
    "our own loopback server, whose delays are known (its own lateness is in them)"
)


def _dollars(costs: Sequence[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    unknown = len(costs) - len(known)
    more = f" and {unknown} call{'s' * (unknown > 1)} of unknown cost" if unknown else ""
    return f"${sum(known):.6f}{more}"
