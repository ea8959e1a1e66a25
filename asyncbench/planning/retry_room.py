"""A further attempt with more room: trials whose replies were cut, asked again with a larger max_tokens.

They stay the trials that they were, so their answers take the place of the cut ones. What each call was sent
with stands in `attempts`; the row of the trial tells what its answer was given.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import orjson
import pyarrow.compute as pc

from asyncbench.errors import ConfigError
from asyncbench.providers.params import ANY_LONGEST_REPLY
from asyncbench.records import OF_CONDITIONS, Condition, Model, Outcome
from asyncbench.store.catalog import read_trials
from asyncbench.store.folder import Store


def check_longer(
    models: Iterable[Model],
    conditions: Iterable[Condition],
    *,
    retry: Collection[Outcome],
    max_tokens: int | None,
) -> None:
    """Refuse a larger max_tokens that would go unused, or is not larger.

    Raises:
        ConfigError: names the model, the value and the way out.
    """
    if max_tokens is None:
        return
    if Outcome.TRUNCATED not in retry:
        raise ConfigError(
            "--max-tokens gives truncated replies more room, so it needs --retry truncated: add that. For "
            "all other trials, set `max_tokens` in the sweep."
        )
    conditions = tuple(conditions)
    for model in models:
        asked = (condition.params for condition in conditions if condition.asks(model.alias))
        for params in (model.params, *asked):
            if named := sorted(ANY_LONGEST_REPLY & params.keys()):
                raise ConfigError(
                    f"{model.alias}: its `params` set {named[0]}, which --max-tokens does not change. Set "
                    "`max_tokens` in its entry instead, or leave the model out with --models."
                )
        if model.max_tokens is not None and max_tokens <= model.max_tokens:
            raise ConfigError(
                f"{model.alias}: --max-tokens {max_tokens:,} is not more than its max_tokens, "
                f"{model.max_tokens:,}. Give a higher number, or leave the model out with --models."
            )


class Lengths:
    """Models with another max_tokens than they have: one and the same object each time, so that what is made
    of it is made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], Model] = {}

    def of(self, model: Model, max_tokens: int | None) -> Model:
        """Return the model itself where that is its max_tokens."""
        if max_tokens == model.max_tokens:
            return model
        key = model.alias, max_tokens, *(getattr(model, name) for name in OF_CONDITIONS)
        if key not in self._made:
            self._made[key] = replace(model, max_tokens=max_tokens)
        return self._made[key]


class Room:
    """How long a reply each trial may get in this run."""

    def __init__(self, store: Store, max_tokens: int | None) -> None:
        """Find the trials that get `max_tokens`; None: all are asked as the sweep says.

        Trials that were cut with no less room before count as finished from here on: `had_it` many.

        Raises:
            ConfigError: that is so for all of them.
            StoreError: the folder cannot be read.
        """
        self.max_tokens, self.had_it = max_tokens, 0
        self._cut: frozenset[str] = frozenset()
        self._store = store
        self._models = Lengths()
        if max_tokens is not None:
            had = _room_of_cut(store)
            self._cut = frozenset(trial_id for trial_id, tokens in had.items() if tokens < max_tokens)
            self.had_it = len(had) - len(self._cut)
            store.finished |= had.keys() - self._cut
            if had and not self._cut:
                raise ConfigError(
                    f"--max-tokens {max_tokens:,}: all {len(had):,} truncated trials were cut off at "
                    f"{min(had.values()):,} tokens or more. Give a higher number."
                )

    def most(self, model: Model) -> Model:
        """Return a model with the longest reply that any of its trials may get."""
        return model if self.max_tokens is None else self._models.of(model, self.max_tokens)

    def model_of(self, model: Model, trial_id: str) -> Model:
        """Return a model as it is asked a trial now, or as it was asked where the answer is already there."""
        allowed = self.max_tokens if trial_id in self._cut else model.max_tokens
        history = self._store.histories.get(trial_id)
        if history is not None and history.ended is not None and history.ended.attempt.max_tokens is not None:
            allowed = history.ended.attempt.max_tokens
        return self._models.of(model, allowed)


def _room_of_cut(store: Store) -> Mapping[str, int]:
    """Return how many tokens each trial had whose reply was cut and which is to be asked again."""
    columns = ["trial_id", "params", "output_tokens"]
    rows = read_trials(store.folder, columns, pc.field("outcome") == Outcome.TRUNCATED.value).to_pylist()
    return {
        row["trial_id"]: max_tokens_of(row["params"]) or row["output_tokens"] or 0
        for row in rows
        if store.again.get(row["trial_id"]) is Outcome.TRUNCATED
    }


def max_tokens_of(params: str) -> int | None:
    """Return what the column `params` of a trial says of the longest reply."""
    said = orjson.loads(params).get("max_tokens")
    return said if isinstance(said, int) else None
