"""The price of a model in a sweep file, and the record it becomes."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated

from pydantic import Field, NonNegativeFloat, model_validator

from asyncbench.config.entry import Entry
from asyncbench.records import Price


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
    said = asdict(replace(price, batch=None))
    if price.input is None:
        return {"batch": price_mapping(price.batch) if isinstance(price.batch, Price) else price.batch}
    del said["batch"]
    if isinstance(price.batch, Price):
        return said | {"batch": price_mapping(price.batch)}
    return said if price.batch is None else said | {"batch": price.batch}
