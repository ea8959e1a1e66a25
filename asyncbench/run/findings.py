"""Findings about models, and the report that shows them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Final

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.planning.records import total
from asyncbench.pricing import Rates
from asyncbench.providers.endpoints import KnownEndpoint, Quirks, known_endpoints
from asyncbench.providers.prices import is_moving_alias, same_model
from asyncbench.providers.rate_headers import FAMILIES
from asyncbench.records import BATCH, Model, Reply
from asyncbench.run.refusals import KEY_NAME, NO_KEY, sends_no_key
from asyncbench.tables.report import Report, Sheet

OF_PROVIDER: Final = frozenset({"key", "account", "address"})  # where a fault is one of all its models


class FindingState(StrEnum):
    """Severity of a finding."""

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
        """Return whether the model can be asked."""
        return all(finding.state is not FindingState.WRONG for finding in self.findings)

    @property
    def cost_usd(self) -> float | None:
        """Of all calls; None if that of any is unknown."""
        return total(self.costs_usd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Delay with which one adapter sees what its server sent: medians, seconds."""

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

    def data(self) -> dict[str, object]:
        models = [
            {"fine": checkup.fine, **asdict(checkup), "cost_usd": checkup.cost_usd} for checkup in self.models
        ]
        return {"models": models, "noise": list(map(asdict, self.noise))}

    def content(self) -> Iterator[str | Sheet]:
        # Models that one fault of their provider stops are in one group.
        groups: dict[object, list[Checkup]] = {}
        for checkup in self.models:
            faults = [
                finding
                for finding in checkup.findings
                if finding.state is FindingState.WRONG and finding.about in OF_PROVIDER
            ]
            groups.setdefault((checkup.provider, *faults) if faults else checkup.model, []).append(checkup)

        # What all of a group have stands there once.
        for group in groups.values():
            rows: list[tuple[str, str, str]] = []
            for checkup in group:
                for finding in checkup.findings:
                    shared = all(finding in member.findings for member in group)
                    if shared and checkup is not group[0]:
                        continue
                    text = finding.said if shared else f"{checkup.model}: {finding.said}"
                    rows.append((finding.state, finding.about, text))
                    if finding.way_out is not None:
                        rows.append(("", "", f"-> {finding.way_out}"))
            simulated = " (SIMULATED)" if group[0].simulated else ""
            names = ", ".join(checkup.model for checkup in group)
            title = f"{names}: {'fine' if group[0].fine else 'NOT FINE'}{simulated}"
            yield Sheet(title=title, head=("", "about", "found"), rows=rows, labels=3)

        if self.models:
            fine = sum(checkup.fine for checkup in self.models)
            paid = [usd for checkup in self.models if not checkup.simulated for usd in checkup.costs_usd]
            made_up = [usd for checkup in self.models if checkup.simulated for usd in checkup.costs_usd]
            simulated = f"; SIMULATED calls, which are free: {_dollars(made_up)}" if made_up else ""
            yield f"{fine} of {len(self.models)} models fine. These calls cost {_dollars(paid)}{simulated}."
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


NOISE = (
    "SIMULATED: the delay that this computer adds to measured times now. These are medians of calls to "
    "asyncbench's own server, whose response times are known."
)


def _dollars(costs: Sequence[float | None]) -> str:
    priced = [cost for cost in costs if cost is not None]
    unknown = len(costs) - len(priced)
    more = f" and {unknown} call{'s' * (unknown > 1)} of unknown cost" if unknown else ""
    return f"${sum(priced):.6f}{more}"


# ── Findings from calls: key, model, usage, streams, limits and prices

SHOWN: Final = 60  # characters of an answer

# Which setting a failure is about, and what to do.
_FAILURES: Final[Mapping[ErrorKind, tuple[str, str]]] = {
    ErrorKind.AUTH: (
        "key",
        "check that the key is complete, belongs to this provider and may use this model",
    ),
    ErrorKind.NO_QUOTA: ("account", "add credit to the account, or raise its spending limit"),
    ErrorKind.NO_SUCH_MODEL: ("model", "check the model's name and base_url; `asyncbench models` lists some"),
    ErrorKind.REJECTED_PARAMETER: ("parameters", "change or remove what the message names"),
    ErrorKind.BAD_REQUEST: ("parameters", "change or remove what the message names"),
    ErrorKind.TOO_LONG: ("parameters", "lower max_tokens, or shorten the system prompt"),
    ErrorKind.BLOCKED: ("answer", "a filter blocked a harmless question: check the settings of the account"),
    ErrorKind.UNREACHABLE: ("address", "start the server, or check base_url and your network"),
    ErrorKind.TIMEOUT: ("answer", "try again: a server of your own may still be loading the model"),
    ErrorKind.RATE_LIMITED: ("limits", "wait and try again: another program may be using this key"),
    ErrorKind.OVERLOADED: ("answer", "the provider is overloaded: try again later"),
    ErrorKind.SERVER_ERROR: ("answer", "the provider failed: try again, then check its status page"),
    ErrorKind.BAD_REPLY: ("answer", "check that base_url is the address of the API, such as https://host/v1"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCall:
    """One call that was made, and what came of it."""

    ended: Reply | ProviderError
    latency_s: float
    headers: Mapping[str, str] = field(default_factory=dict)  # those about rate limits

    @property
    def reply(self) -> Reply | None:
        """The reply, unless the call failed."""
        return self.ended if isinstance(self.ended, Reply) else None


def rate_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that tell of rate limits; no others, which could hold anything."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {
        name: value
        for name, value in sorted(lower.items())
        if name == "retry-after" or any(family in name for family in FAMILIES)
    }


def call_findings(model: Model, plain: ProbeCall, streamed: ProbeCall | None) -> Iterator[Finding]:
    """Yield findings of calls; only the call that a sweep would make, whole or streamed, can be wrong."""
    credentials = known_endpoints()[model.provider].credentials
    lane = streamed if model.stream and streamed else plain
    answered = next((call for call in (lane, plain) if call.reply), lane)
    if isinstance(reply := answered.ended, ProviderError):
        about, way_out = _FAILURES[reply.kind]
        if credentials and reply.kind is ErrorKind.AUTH:
            way_out = f"renew the credentials of this machine, {credentials}, or ask for access to this model"
        elif reply.kind is ErrorKind.AUTH and sends_no_key(model):
            way_out = f"{NO_KEY} to {KEY_NAME}"
        yield Finding(about=about, state=FindingState.WRONG, said=_error_text(reply), way_out=way_out)
        return
    without_key = f"found: {credentials}" if credentials else "none needed"
    yield _ok("key", f"{model.key_env} works" if model.key_env else without_key)
    yield from _reply_findings(model, reply, answered.latency_s)

    # The limits that the provider reports, or where a run gets them from.
    if answered.headers:
        yield _ok("limits", ", ".join(f"{name}: {value}" for name, value in answered.headers.items()))
    elif (model.limits.rpm, model.limits.tpm) != (None, None):
        yield _ok("limits", "the provider reports none; a run uses those of your sweep")
    else:
        yield _note("limits", "the provider reports none: set rpm and tpm, or concurrency, in your sweep")

    if isinstance(plain.ended, ProviderError):
        yield _note("whole", _error_text(plain.ended), way_out="keep `stream: true` for this model")
    if streamed is not None:
        yield _stream_finding(streamed, wrong=lane is streamed)
        if answered is plain and streamed.reply and streamed.reply.usage is None:
            yield _usage_finding(streamed.reply)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCheck:
    """Result of listing the batches of a key, which costs nothing."""

    most_requests: int  # of one batch
    most_bytes: int
    error: ProviderError | None = None


def batch_findings(model: Model, endpoint: KnownEndpoint, check: BatchCheck | None) -> Iterator[Finding]:
    """Yield findings on a model's batches; `check` is None if nobody looked."""
    if model.mode != BATCH:
        return
    text = "the parameters were tried in one call of real time, which batches would tell a day later"
    if check is not None:
        size = f"{check.most_requests:,} requests and {check.most_bytes / 1e6:,.0f} MB"
        text = f"at most {size} in one; {text}"
    if check is not None and check.error is not None:
        refused = check.error.kind is ErrorKind.AUTH
        state = FindingState.WRONG if refused else FindingState.NOTE
        way_out = "check base_url, or set `mode: realtime`"
        if refused:
            way_out = "let this key see files and batches, or set `mode: realtime`"
        elif check.error.kind is not ErrorKind.UNREACHABLE:
            way_out += ": without batches a run does what `fallback` says"
        yield Finding(
            about="batches", state=state, said=f"no list: {_error_text(check.error)}", way_out=way_out
        )
    elif endpoint.batches_proven_at(model.base_url):
        yield _ok("batches", text)
    else:
        departures = f" ({endpoint.batch.description})" if endpoint.batch.departures else ""
        untried = f"{text}; built by documents{departures}, and never tried"
        yield _note("batches", untried, way_out="send a small batch first: `asyncbench run SWEEP --limit 10`")


def settings_findings(
    model: Model, rates: Rates | None, quirks: Quirks, *, batch_part: float | None = None
) -> Iterator[Finding]:
    """Yield findings on a model that need no call.

    Args:
        model: as it is to be asked.
        rates: what it costs in its mode.
        quirks: of its endpoint.
        batch_part: of the price in real time that a batch costs, by the provider's page.
    """
    if model.replay is not None:
        yield _ok("replay", f"replays {model.replay}, so no model is asked")
    if not model.simulated and (why := is_moving_alias(model.model_id)):
        yield _note("name", why)
    if rates is None:
        batch = f", batch: {batch_part or 0.5}" if model.mode == BATCH else ""
        price = f"`price: {{input: …, output: …{batch}}}`"
        way_out = None if model.simulated else f"set {price} (USD per million tokens)"
        yield _note("price", "unknown, so the cost of a run will be unknown", way_out=way_out)
    else:
        first = rates.brackets[0]
        more = f", more above {rates.brackets[1].above:,} input tokens" if len(rates.brackets) > 1 else ""
        text = f"${first.input} in, ${first.output} out per million tokens{more} ({rates.source})"
        yield _ok("price", text)
    names = [
        quirk.name for quirk in fields(Quirks) if getattr(quirks, quirk.name) != getattr(Quirks(), quirk.name)
    ]
    if names:  # the endpoint is not asked as OpenAI would be
        departures = ", ".join(f"{name}: {getattr(quirks, name) or 'none'}" for name in names)
        yield _note("quirks", f"assumed, not tested: {departures}")


def _stream_finding(call: ProbeCall, *, wrong: bool) -> Finding:
    """Say how a stream arrived; `wrong`: a sweep would fail with it."""
    if isinstance(call.ended, ProviderError):
        way_out = "keep `stream: false` for this model"
        state = FindingState.WRONG if wrong else FindingState.NOTE
        return Finding(about="stream", state=state, said=_error_text(call.ended), way_out=way_out)
    if call.ended.ttft_s is None:
        return _note("stream", "the answer came in one piece, so there is no time to first token (TTFT)")
    return _ok(
        "stream", f"first token after {call.ended.ttft_s:.3f} s, the last after {call.latency_s:.3f} s"
    )


def _reply_findings(model: Model, reply: Reply, latency_s: float) -> Iterator[Finding]:
    """Yield the model that answered, its answer, and its amount of thinking."""
    served = reply.model_served
    if served is None:
        yield _note("model", f"the reply does not say which model answered for {model.model_id}")
    elif same_model(model.model_id, served):
        yield _ok("model", f"{served} answered")
    else:
        yield _note(
            "model",
            f"{served} answered for {model.model_id}",
            way_out="check that you want this: some servers answer any name with the model they have loaded",
        )

    text = " ".join(reply.text.split())
    quote = f"{text[:SHOWN]!r} after {latency_s:.3f} s, with the time to connect"
    if not text and reply.cut_short:
        yield _note(
            "answer",
            f"the reply was cut off after {latency_s:.3f} s, before any text: the model thinks first",
            way_out="set a high max_tokens for this model, or none",
        )
    else:
        unexpected = f"unexpected answer to 2 + 2: {quote}"
        yield _ok("answer", quote) if "4" in text else _note("answer", unexpected)

    yield _usage_finding(reply)

    if reply.reasoning or (reply.usage and reply.usage.reasoning_tokens):
        yield _ok("thinking", f"reported: {'its text' if reply.reasoning else 'its number of tokens'}")
    elif (model.effort or "none") != "none" or model.thinking_tokens or model.thinking:
        yield _note("thinking", "asked for, but the reply shows none")
    else:
        yield _ok("thinking", "none reported")


def _usage_finding(reply: Reply) -> Finding:
    """Say how many tokens the reply reports."""
    usage = reply.usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return _note(
            "usage", "not reported (in streams)" if reply.ttft_s else "not reported, so the cost is unknown"
        )
    thought = f", {usage.reasoning_tokens:,} of them reasoning" if usage.reasoning_tokens else ""
    return _ok("usage", f"{usage.input_tokens:,} input and {usage.output_tokens:,} output tokens{thought}")


def _error_text(error: ProviderError) -> str:
    return f"{error.kind}: {error.message}"


def _ok(about: str, text: str) -> Finding:
    return Finding(about=about, state=FindingState.OK, said=text)


def _note(about: str, text: str, *, way_out: str | None = None) -> Finding:
    return Finding(about=about, state=FindingState.NOTE, said=text, way_out=way_out)
