"""How those who imitate OpenAI's batches depart from them; the first part of a path chooses whom to play.

    http://HOST:PORT/together/v1/batches    as Together has them (its reference pages, its SDK 3.1.1)

What is asked in a dialect is made what OpenAI would be asked; what OpenAI would answer is made the dialect.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import orjson
from aiohttp import web

from asyncbench.simulator.wire import Json, RefusedError, Why

Told = dict[str, Any]  # a batch as JSON
_USUAL_KEYS = ("input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after")


def _same(batch: Told) -> Told:
    return batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The ways of one vendor; what is left out is OpenAI's own way."""

    keys: tuple[str, ...] = _USUAL_KEYS  # that a create may have
    purpose: str = "batch"  # of uploads
    kept_s: tuple[float, float] = (3_600, 2_592_000)  # how long an upload may be kept
    endpoint: str = "/v1/"  # what the endpoint of a create begins with
    bare: bool = False  # lines without method and url
    listed: str = "after"  # or: whole, numbered
    words: Mapping[str, str] = field(default_factory=dict)  # OpenAI's state → its own
    batch: Callable[[Told], Told] = _same  # OpenAI's batch, its states in other words → its own
    created: Callable[[Told], Told] = _same  # that → what a create answers
    array: bool = False  # a list is an array
    faults: tuple[str, ...] = ()  # which are none here
    absent: Why | None = None  # there are no batches, and it is said so

    def told(self, batch: Told) -> Told:
        """Write a batch of OpenAI's in this dialect."""
        status = str(batch["status"])
        return self.batch({**batch, "status": self.words.get(status, status)})

    def asked(self, body: Json) -> Json:
        """Return a create in OpenAI's form; raises RefusedError for what the vendor does not know."""
        if unknown := [key for key in body if key not in self.keys]:
            raise RefusedError(Why.BAD_REQUEST, f"Unknown: {', '.join(unknown)}.")
        if not str(body.get("endpoint")).startswith(self.endpoint) or (
            self.endpoint == "/" and str(body.get("endpoint")).startswith("/v1/")
        ):
            raise RefusedError(Why.BAD_REQUEST, f"endpoint must begin with {self.endpoint}.")
        files = body.get("input_files")
        file_id = files[0] if isinstance(files, list) and files else body.get("input_file_id")
        return {"completion_window": "24h", **body, "input_file_id": file_id}

    def mend(self, path: Path, endpoint: str, model: object) -> None:
        """Write the lines of a file as OpenAI would have them; `model`: of the batch, for those without."""
        if self.bare:
            with path.open("rb") as lines:
                said = [orjson.loads(line) for line in lines]
            call = {"method": "POST", "url": endpoint}
            whole = [{**line, **call, "body": {"model": model, **line["body"]}} for line in said]
            path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in whole))


def _azure(batch: Told) -> Told:
    young = batch["status"] == "validating"
    return {**batch, "request_counts": None if young else batch["request_counts"]}


def _together(batch: Told) -> Told:
    counts, errors = batch["request_counts"], batch["errors"]
    done = counts["completed"] + counts["failed"]
    ended_at = next(
        (batch[name] for name in ("completed_at", "failed_at", "expired_at") if batch[name]), None
    )
    return {
        **{name: batch[name] for name in ("id", "endpoint", "input_file_id")},
        "status": batch["status"].upper(),
        "progress": 100.0 * done / counts["total"] if counts["total"] else 0.0,
        "created_at": _iso(batch["created_at"]),
        "completed_at": _iso(ended_at),
        "output_file_id": batch["output_file_id"] or "",
        "error_file_id": batch["error_file_id"] or "",
        "error": errors["data"][0]["message"] if errors else "",
        "model_id": batch["model"],
        "user_id": "simulated",
    }


def _mistral(batch: Told) -> Told:
    counts = batch["request_counts"]
    return {
        **{name: batch[name] for name in ("id", "endpoint", "status", "metadata", "model", "created_at")},
        "object": "batch",
        "input_files": [batch["input_file_id"]],
        "output_file": batch["output_file_id"],
        "error_file": batch["error_file_id"],
        "errors": [
            {"message": error["message"], "count": 1} for error in (batch["errors"] or {}).get("data", ())
        ],
        "total_requests": counts["total"],
        "completed_requests": counts["completed"] + counts["failed"],
        "succeeded_requests": counts["completed"],
        "failed_requests": counts["failed"],
        "completed_at": batch["completed_at"] or batch["failed_at"] or batch["expired_at"],
    }


def _iso(at: object) -> str | None:
    return datetime.fromtimestamp(at, UTC).isoformat() if isinstance(at, int | float) else None


_DAY_S = 86_400
_CAPITALS = ("validating", "in_progress", "finalizing", "completed", "failed", "expired", "cancelling")
OWN = Dialect()
DIALECTS: Mapping[str, Dialect] = {
    "azure": Dialect(
        kept_s=(14 * _DAY_S, 30 * _DAY_S),
        endpoint="/",
        batch=_azure,
        faults=("empty_ids=1", "never_expires=1", "empty_error_file=1"),
    ),
    "groq": Dialect(listed="whole"),
    "deepinfra": OWN,
    "together": Dialect(
        keys=("input_file_id", "endpoint", "completion_window", "model_id", "priority"),
        purpose="batch-api",
        bare=True,
        listed="whole",
        batch=_together,
        created=lambda job: {"job": job, "warning": None},
        array=True,
        words={"finalizing": "in_progress", "cancelling": "in_progress"},
    ),
    "mistral": Dialect(
        keys=("input_files", "endpoint", "model", "metadata", "timeout_hours"),
        bare=True,
        listed="numbered",
        batch=_mistral,
        words={
            "validating": "QUEUED",
            "in_progress": "RUNNING",
            "finalizing": "RUNNING",
            "completed": "SUCCESS",
            "failed": "FAILED",
            "expired": "TIMEOUT_EXCEEDED",
            "cancelling": "CANCELLATION_REQUESTED",
            "cancelled": "CANCELLED",
        },
    ),
    "novita": Dialect(
        keys=("input_file_id", "endpoint", "completion_window"),
        bare=True,
        listed="whole",
        words={state: state.upper() for state in (*_CAPITALS, "cancelled")},
    ),
    "without": Dialect(absent=Why.NO_SUCH_PAGE),
    "forbidding": Dialect(absent=Why.WRONG_METHOD),
    "maritaca": Dialect(words={"validating": "queued", "in_progress": "running", "completed": "succeeded"}),
}
_PLACE = "dialect"


def in_dialect(request: web.BaseRequest) -> web.BaseRequest:
    """Return a request as OpenAI would get it, with the dialect of its path noted."""
    first, _, rest = request.path.removeprefix("/").partition("/")
    if first in DIALECTS:
        request = request.clone(rel_url=request.rel_url.with_path(f"/{rest}", keep_query=True))
        request[_PLACE] = DIALECTS[first]
    return request


def dialect_of(request: web.BaseRequest) -> Dialect:
    return cast("Dialect", request.get(_PLACE, OWN))
