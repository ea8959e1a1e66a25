"""The findings about models, and the report that shows them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

from asyncbench.tables.report import Report, Sheet

OF_PROVIDER: Final = frozenset({"key", "account", "address"})  # where a fault is one of all its models


class FindingState(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    NOTE = "note"  # a sweep runs, but you should know
    WRONG = "wrong"  # a sweep would fail


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

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
        yield from map(_sheet, _together(self.models))
        if self.models:
            fine = sum(checkup.fine for checkup in self.models)
            paid = [usd for checkup in self.models if not checkup.simulated for usd in checkup.costs_usd]
            made_up = [usd for checkup in self.models if checkup.simulated for usd in checkup.costs_usd]
            beside = f"; SIMULATED calls, which are free: {_dollars(made_up)}" if made_up else ""
            yield f"{fine} of {len(self.models)} models fine. These calls cost {_dollars(paid)}{beside}."
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
            yield Sheet(title="Delay of this computer", head=head, rows=measured)


def _together(models: Sequence[Checkup]) -> Iterable[Sequence[Checkup]]:
    """Return the checkups; models that one fault of their provider stops are in one group."""
    groups: dict[object, list[Checkup]] = {}
    for checkup in models:
        faults = [
            finding
            for finding in checkup.findings
            if finding.state is FindingState.WRONG and finding.about in OF_PROVIDER
        ]
        groups.setdefault((checkup.provider, *faults) if faults else checkup.model, []).append(checkup)
    return groups.values()


def _sheet(group: Sequence[Checkup]) -> Sheet:
    """Return the findings about some models; those that all of them have stand there once."""
    rows: list[tuple[str, str, str]] = []
    for checkup in group:
        for finding in checkup.findings:
            shared = all(finding in other.findings for other in group)
            if shared and checkup is not group[0]:
                continue
            said = finding.said if shared else f"{checkup.model}: {finding.said}"
            rows.append((finding.state, finding.about, said))
            if finding.way_out is not None:
                rows.append(("", "", f"-> {finding.way_out}"))
    simulated = " (SIMULATED)" if group[0].simulated else ""
    names = ", ".join(checkup.model for checkup in group)
    title = f"{names}: {'fine' if group[0].fine else 'NOT FINE'}{simulated}"
    return Sheet(title=title, head=("", "about", "found"), rows=rows, labels=3)


NOISE = (
    "SIMULATED: the delay that this computer adds to measured times now. These are medians of calls to "
    "asyncbench's own server, whose response times are known."
)


def _dollars(costs: Sequence[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    unknown = len(costs) - len(known)
    more = f" and {unknown} call{'s' * (unknown > 1)} of unknown cost" if unknown else ""
    return f"${sum(known):.6f}{more}"
