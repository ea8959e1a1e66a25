"""The price of a model in a sweep file, and the server that a run starts for it."""

import re
import shlex
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field, NonNegativeFloat, model_validator

from asyncbench.config.entry import BASE_URL_PATTERN, Entry, Length, Place, Words, without_unset
from asyncbench.errors import ConfigError
from asyncbench.records import BATCH, Model, Price, Serve


class TokenPrices(Entry):
    """Prices in USD per million tokens."""

    input: Annotated[NonNegativeFloat, Field(strict=False)] = Field(
        description="USD per million input tokens."
    )
    output: Annotated[NonNegativeFloat, Field(strict=False)] = Field(
        description="USD per million output tokens."
    )
    cached_input: Annotated[NonNegativeFloat, Field(strict=False)] | None = Field(
        default=None, description="USD per million input tokens read from a cache, if the price differs."
    )
    cache_write: Annotated[NonNegativeFloat, Field(strict=False)] | None = Field(
        default=None, description="USD per million input tokens written to a cache, if the price differs."
    )


class PriceEntry(TokenPrices):
    """Prices in USD per million tokens."""

    input: Annotated[NonNegativeFloat, Field(strict=False)] | None = Field(  # type: ignore[assignment]  # None: see `batch`
        description="USD per million input tokens."
    )
    output: Annotated[NonNegativeFloat, Field(strict=False)] | None = Field(  # type: ignore[assignment]  # likewise
        description="USD per million output tokens."
    )
    batch: Annotated[float, Field(gt=0, le=1, strict=False)] | TokenPrices | None = Field(
        default=None,
        description="What a batch costs: the part of these prices that is charged, such as 0.5, or prices of "
        "its own. Without it, batches cost as much as other calls. Alone, it holds beside published prices.",
    )

    @model_validator(mode="before")
    @classmethod
    def _published(cls, raw: object) -> object:
        alone = isinstance(raw, Mapping) and {*raw} == {"batch"}
        return {"input": None, "output": None, "batch": raw["batch"]} if alone else raw  # type: ignore[index]  # a mapping

    @model_validator(mode="after")
    def _whole(self) -> "PriceEntry":
        whole = self.input is not None and self.output is not None
        alone = self.batch is not None and {self.input, self.output, self.cached_input, self.cache_write} == {
            None
        }
        if not (whole or alone):
            raise ValueError("set `input` and `output`, or `batch` alone")
        return self


def price_from(entry: PriceEntry | None) -> Price | None:
    """Return a price as written in a sweep file."""
    if entry is None:
        return None
    own = entry.batch
    batch = Price(**own.model_dump()) if isinstance(own, TokenPrices) else own
    return Price(**entry.model_dump() | {"batch": batch})


def price_mapping(price: Price | None) -> dict[str, object] | None:
    """Return what `price_from` reads back."""
    if price is None:
        return None
    batch = price_mapping(price.batch) if isinstance(price.batch, Price) else price.batch
    own = {} if price.input is None else {name: getattr(price, name) for name in TokenPrices.model_fields}
    return own | without_unset({"batch": batch})


# ── the server that a run starts for a model


# A word for a key, and then a value that is neither an option nor a variable of a shell.
_HOLDS_A_KEY: Final = re.compile(
    r"(api[-_]?key|hf[-_]?token|password|secret)[=\s]+(?!['\"]*[-$])\S", re.IGNORECASE
)


class ServeEntry(Entry):
    """A server on this computer that a run starts before its first call, and stops at its end."""

    command: Words = Field(
        description="The program and its arguments, as a list, or as one text that is split as a shell "
        "splits it. No shell runs it: variables, `~` and pipes need `bash -c '…'`. It gets the environment "
        "of asyncbench. It must stay in the foreground. Keep keys out of it: it is stored with the results.",
    )
    ready: Annotated[str, Field(pattern=BASE_URL_PATTERN)] = Field(
        description="An address that answers with a status of 2xx as soon as the model can be asked, such as "
        "`http://127.0.0.1:8000/health`. If something answers there before the start, the run is refused."
    )
    within: Length = Field(
        default=600.0, description="How long to wait until the server is ready, such as `10m`."
    )


def serve_from(entry: ServeEntry | None, *, place: Place) -> Serve | None:
    """Return the server of a model as written in a sweep file.

    Raises:
        ConfigError: its command holds what may be a key. It is not repeated.
    """
    if entry is None:
        return None
    if _HOLDS_A_KEY.search(shlex.join(entry.command)):
        raise ConfigError(
            f"{place / 'command'}: 'command' holds a key, and it is stored with the results. The server gets "
            "the environment of asyncbench: set the key there (vLLM reads VLLM_API_KEY)"
        )
    return Serve(command=tuple(entry.command), ready=entry.ready, within=entry.within)


def serve_complaint(model: Model) -> str | None:
    """Return why a run cannot start a server for a model; None: it can, or has none to start."""
    if model.serve is None:
        return None
    if model.base_url is None:
        return "nothing says that calls go to the server. Set `base_url` to its address, up to /v1"
    if model.mode == BATCH:
        return "the server ends with the run, and batches go on without it. Set `mode: realtime`"
    return None


def serve_mapping(serve: Serve | None) -> Mapping[str, object] | None:
    """Return the entry that `serve_from` reads back."""
    if serve is None:
        return None
    return {"command": list(serve.command), "ready": serve.ready, "within": serve.within}
