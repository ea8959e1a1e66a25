"""How the batches of a sweep are made: the entry `batch` of its file, and the record it becomes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field, PositiveInt

from asyncbench.config.entry import Entry
from asyncbench.records import REALTIME


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """How the batches of a sweep are made."""

    max_requests: int = 10_000  # of a part
    max_bytes: int = 50_000_000  # likewise
    enqueued_tokens: int | None = None  # of prompts in unfinished batches of a model; None: to be learnt
    rounds: int = 2  # parts that a trial is in before `fallback` is for it
    fallback: str = REALTIME  # or none: what was not answered then stays open
    on_doubt: str = "wait"  # or resubmit: which may pay twice


class BatchEntry(Entry):
    """How batches are made, for models whose `mode` is `batch`."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "price": "It stands in the model's entry: `price: {input: …, output: …, batch: 0.5}`."
    }

    max_requests: PositiveInt = Field(
        default=10_000,
        description="The most requests of one batch. If asyncbench cannot find out whether a batch was "
        "created, so many trials wait, or may be paid twice.",
    )
    max_bytes: PositiveInt = Field(default=50_000_000, description="The most bytes of one batch.")
    enqueued_tokens: PositiveInt | None = Field(
        default=None,
        description="The most prompt tokens in unfinished batches of one model, as your provider allows. "
        "Without it, asyncbench begins with 80,000 and learns.",
    )
    rounds: PositiveInt = Field(
        default=2, description="How many batches a trial may be in without an answer before `fallback`."
    )
    fallback: Literal["realtime", "none"] = Field(
        default="realtime",
        description="What becomes of trials that batches did not answer. `realtime`: they are asked call by "
        "call, at the full price. `none`: they stay open for the next run.",
    )
    on_doubt: Literal["wait", "resubmit"] = Field(
        default="wait",
        description="What to do if nobody can tell whether a batch was created. `wait`: do not ask its "
        "trials again. `resubmit`: ask them again, which may be paid twice.",
    )
