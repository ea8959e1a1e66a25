"""The keys of a sweep file, each with a description, and the JSON schema of the file."""

from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, PositiveInt, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from asyncbench.config.entry import Dollars, Entry, Mode, Name, Share, Streaming
from asyncbench.config.loading import LoadEntry
from asyncbench.config.models import ModelEntry, ProviderEntry, expand_model
from asyncbench.config.questions import ConditionEntry, Problems
from asyncbench.config.run_entries import BatchEntry, NotifyEntry, TrackEntry, WorkersEntry, expand_notify
from asyncbench.providers.endpoints import known_endpoints


class StopEntry(Entry):
    """When to stop asking a cell: one model, condition, suite, task, variant, representation and length."""

    ci_width: Share | None = Field(
        default=None,
        description="Stop when the 95 % confidence interval of the cell's accuracy is no wider than this.",
    )
    saturated: Share | None = Field(
        default=None,
        description="Stop when all answers of the cell are right, or all are wrong, and the 95 % confidence "
        "interval reaches no further than this from 1 or 0.",
    )


def _name_the_providers(schema: dict[str, Any]) -> None:
    schema["propertyNames"] = {"anyOf": [{"enum": list(known_endpoints())}, {"pattern": "://"}]}


class SweepEntry(Entry):
    """A sweep file: which problems are asked, of which models, how, and how fast."""

    name: Name = Field(description="The sweep's name. A results folder belongs to the sweep of this name.")
    problems: Problems = Field(
        default_factory=list,
        description="The problem sets: files, or suites to generate them with. "
        "You may leave this out if every model has its own.",
        json_schema_extra={"default": []},
    )
    models: Annotated[
        list[Annotated[ModelEntry, BeforeValidator(expand_model, json_schema_input_type=str | ModelEntry)]],
        Field(min_length=1),
    ] = Field(description="The models to ask.")
    limits: dict[str, ProviderEntry] = Field(
        default_factory=dict,
        description="Rate limits by provider, or by `base_url`. They apply to each model separately, or with "
        "`shared: true` to all of them together. Without them, asyncbench follows the rate-limit headers of "
        "the provider.",
        json_schema_extra=_name_the_providers,
    )
    conditions: Annotated[list[ConditionEntry], Field(min_length=1)] = Field(
        default_factory=lambda: [ConditionEntry(name="plain")],
        description="The ways to ask. Each condition asks all problems of its suites.",
        json_schema_extra={"default": [{"name": "plain"}]},
    )
    repeats: PositiveInt = Field(default=1, description="How often each problem is asked.")
    stream: Streaming = Field(
        default="auto",
        description="Whether replies are streamed. `auto` streams those that may take long. "
        "A model's own `stream` wins.",
    )
    mode: Mode = Field(
        default="realtime",
        description="How models are asked. `realtime`: call by call. `batch`: in batches of the provider, "
        "which cost less and take up to a day. `auto`: in batches where the provider has any, and the rest "
        "in real time before the `deadline`, if the budget can pay that. The `mode` of a model or, under "
        "`limits`, of a provider wins. It changes no trial: what was answered in one mode is not asked again "
        "in the other.",
    )
    batch: BatchEntry = Field(
        default_factory=BatchEntry,
        description="How batches are made.",
        json_schema_extra={"default": {}},
    )
    load: LoadEntry | None = Field(
        default=None,
        description="How `asyncbench load` loads the models. A sweep with it is not for `run`.",
    )
    workers: WorkersEntry = Field(
        default=0,
        description="How many processes make the calls, from 0 to 64. 0: the run makes them itself, as fast "
        "as one core can. `auto`: one fewer than there are cores. It changes no trial: continue with "
        "another number as you like. `--workers` wins.",
    )
    deadline: Annotated[object, WithJsonSchema({"type": ["string", "null"]})] = Field(
        default=None,
        description='When to stop asking: a duration from the start of a run ("8h", "1h30m"), a time of day '
        'in quotes ("07:30"), or a date and time ("2026-11-22 07:30"). Run again to continue.',
    )
    notify: (
        Annotated[NotifyEntry, BeforeValidator(expand_notify, json_schema_input_type=str | NotifyEntry)]
        | None
    ) = Field(
        default=None,
        description="Whom to tell when a run ends or dies, or a model is stopped: an address, a command, "
        "or a mapping. Without it: nobody.",
    )
    track: TrackEntry | None = Field(
        default=None,
        description="The trackers that get the figures at the end of a run: `mlflow`, `wandb` or `otel`. "
        "Each is an extra. Without it: none.",
    )
    budget_usd: Dollars | None = Field(
        default=None,
        description="The most that all calls of the sweep may cost, in USD, over all runs. "
        "The sweep never spends more. Raise it and run again to continue.",
    )
    allow_unpriced: bool = Field(
        default=False,
        description="Under a budget, also ask models without a known price. The budget does not cover them.",
    )
    stop_when: StopEntry | None = Field(
        default=None, description="When to stop asking a cell, because enough is known. Without it: never."
    )
    out: Name | None = Field(
        default=None,
        description="The results folder, relative to the working directory, or `s3://BUCKET/FOLDER`. "
        "Without it: results/ and the name.",
    )


_NUMBER_OR_TEXT: Final = {"type": ["number", "string"], "pattern": r"^[0-9.]*[0-9][0-9.]*([eE][-+]?[0-9]+)?$"}


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  pydantic passes it
        return False  # a key is its own title

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """Say that a number may be text: YAML reads 1e-3 as one."""
        number = super().float_schema(schema)
        return number | _NUMBER_OR_TEXT if schema.get("strict") is False else number


def sweep_schema() -> dict[str, Any]:
    """Return the JSON schema of a sweep file, for editors."""
    schema = SweepEntry.model_json_schema(schema_generator=_Schema)
    return {"$schema": _Schema.schema_dialect, **schema, "title": "asyncbench sweep file"}
