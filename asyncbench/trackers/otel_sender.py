"""OpenTelemetry: a span for each call, by the conventions for generative AI.

Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/. Prompts and replies are not sent.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from asyncbench.analysis.sql import sql
from asyncbench.errors import ConfigError
from asyncbench.providers.endpoints import usable_endpoints
from asyncbench.store.manifest import read_manifest
from asyncbench.tables.numbers import number_of

BATCH: Final = 512  # spans of one request
_CALLS: Final = """
    SELECT a.*, t.model_id, t.model_served, t.params, t.finish_reason, t.suite, t.task, t.condition,
        a.attempt = t.attempts AS answered
    FROM attempts AS a LEFT JOIN trials AS t
        ON a.trial_id = t.trial_id AND a.model = t.model AND a.load IS NOT DISTINCT FROM t.load
    ORDER BY a.started_at
"""
# Of the parameters of a request, by the names that asyncbench has for them.
_OF_REQUEST: Final = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "seed",
    "frequency_penalty",
    "presence_penalty",
)


def send(folder: Path, address: str, since: datetime | None = None) -> str:
    """Send a span for each call of a results folder; return what was sent.

    The ids of a span come from those of its call, so what is sent twice can be told.

    Raises:
        ConfigError: the collector cannot be reached, or refused the spans.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExportResult

    path = "" if address.rstrip("/").endswith("/v1/traces") else "/v1/traces"
    exporter = OTLPSpanExporter(endpoint=address.rstrip("/") + path)
    manifest = read_manifest(folder)
    resource = Resource.create({"service.name": "asyncbench", "asyncbench.sweep": manifest["sweep"]})

    sent = 0
    for calls in sql(folder, _CALLS).to_batches(max_chunksize=BATCH):
        spans = list(_spans_of(calls.to_pylist(), resource, since))
        if spans and exporter.export(spans) is not SpanExportResult.SUCCESS:
            raise ConfigError(
                f"otel: after {sent:,} spans, the collector did not take the next. Look whether it takes "
                "OTLP over HTTP at this address, which usually has port 4318"
            )
        sent += len(spans)
    exporter.shutdown()
    return f"{number_of(sent, 'span')} are sent"


def _spans_of(calls: Iterable[Mapping[str, Any]], resource: Any, since: datetime | None) -> Iterator[Any]:
    """Yield the spans of calls that took place, in the order of their beginnings."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    for call in calls:
        began = call["started_at"]
        if call["latency_s"] is None or began is None or (since is not None and began < since):
            continue  # a request of a batch has no time of its own
        began_ns = round(began.timestamp() * 1e6) * 1000  # exact: a stored time has microseconds
        trace_id = int.from_bytes(hashlib.sha256(f"{call['trial_id']} {call['load']}".encode()).digest()[:16])
        span_id = int.from_bytes(
            hashlib.sha256(f"{trace_id} {call['attempt']} {began_ns}".encode()).digest()[:8]
        )
        failed = call["status"] != "ok"
        yield ReadableSpan(
            name=f"chat {call['model_id'] or call['model']}",
            context=SpanContext(
                trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
            ),
            resource=resource,
            attributes=_attributes(call, failed),
            kind=SpanKind.CLIENT,
            status=Status(StatusCode.ERROR, call["error"]) if failed else Status(StatusCode.UNSET),
            start_time=began_ns,
            end_time=began_ns + round(call["latency_s"] * 1e9),
        )


def _attributes(call: Mapping[str, Any], failed: bool) -> dict[str, Any]:
    """Return the attributes of a call; what is unknown is left out."""
    params = json.loads(call["params"] or "{}")
    endpoint = usable_endpoints().get(call["provider"])
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": endpoint.conventions
        if endpoint and endpoint.conventions
        else call["provider"],
        "gen_ai.request.model": call["model_id"],
        "gen_ai.usage.input_tokens": call["input_tokens"],
        "gen_ai.usage.cache_read.input_tokens": call["cached_input_tokens"],
        "gen_ai.usage.cache_creation.input_tokens": call["cache_write_tokens"],
        "gen_ai.usage.output_tokens": call["output_tokens"],
        "gen_ai.response.time_to_first_chunk": call["ttft_s"],
        "http.response.status_code": call["http_status"],
        "asyncbench.model": call["model"],
        "asyncbench.condition": call["condition"],
        "asyncbench.suite": call["suite"],
        "asyncbench.task": call["task"],
        "asyncbench.trial_id": call["trial_id"],
        "asyncbench.attempt": call["attempt"],
        "asyncbench.request_id": call["request_id"],
        "asyncbench.queued_s": call["queued_s"],
        "asyncbench.cost_usd": None if call["cost_usd"] is None else float(call["cost_usd"]),
        **{f"gen_ai.request.{name}": params.get(name) for name in _OF_REQUEST},
    }
    if failed:
        attributes["error.type"] = call["status"]
    elif call["answered"]:
        attributes["gen_ai.response.model"] = call["model_served"]
        attributes["gen_ai.response.finish_reasons"] = call["finish_reason"] and [call["finish_reason"]]
    return {name: value for name, value in attributes.items() if value is not None}
