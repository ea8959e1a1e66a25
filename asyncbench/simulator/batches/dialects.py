"""How those who imitate OpenAI's batches depart from them; the first part of a path chooses whom to play.

    http://HOST:PORT/azure/v1/batches    as Azure has them

What is asked in a dialect is made what OpenAI would be asked; what OpenAI would answer is made the dialect.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from aiohttp import web

from asyncbench.simulator.wire import Json, RefusedError, Why

Told = dict[str, Any]  # a batch as JSON


def _same(batch: Told) -> Told:
    return batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The ways of one vendor; what is left out is OpenAI's own way."""

    kept_s: tuple[float, float] = (3_600, 2_592_000)  # how long an upload may be kept
    endpoint: str = "/v1/"  # what the endpoint of a create begins with
    whole_lists: bool = False  # no pages
    told: Callable[[Told], Told] = _same  # OpenAI's batch → its own
    faults: tuple[str, ...] = ()  # which are none here
    absent: Why | None = None  # there are no batches, and it is said so

    def asked(self, body: Json) -> Json:
        """Return a create in OpenAI's form; raises RefusedError for the path of another."""
        if not str(body.get("endpoint")).startswith(self.endpoint) or (
            self.endpoint == "/" and str(body.get("endpoint")).startswith("/v1/")
        ):
            raise RefusedError(Why.BAD_REQUEST, f"endpoint must begin with {self.endpoint}.")
        return {"completion_window": "24h", **body}


def _azure(batch: Told) -> Told:
    young = batch["status"] == "validating"
    return {**batch, "request_counts": None if young else batch["request_counts"]}


_DAY_S = 86_400
OWN = Dialect()
DIALECTS: Mapping[str, Dialect] = {
    "azure": Dialect(
        kept_s=(14 * _DAY_S, 30 * _DAY_S),
        endpoint="/",
        told=_azure,
        faults=("empty_ids=1", "never_expires=1", "empty_error_file=1"),
    ),
    "groq": Dialect(whole_lists=True),
    "without": Dialect(absent=Why.NO_SUCH_PAGE),
    "forbidding": Dialect(absent=Why.WRONG_METHOD),
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
