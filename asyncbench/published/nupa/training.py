"""The lengths up to which models were trained, as their user says: `8`, `8,20` or `llama-ft=8`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from asyncbench.config.entry import suggestion
from asyncbench.errors import ConfigError
from asyncbench.suites.nupa.tasks import NupaTask

OPTION: Final = "--training-length"
FORMS: Final = "8, or 8,20 (tasks of up to 20 and of up to 100 digits), or MODEL=8"
PAPER: Final = {20: 8, 100: 20}  # class of a task → the longest problems of the paper's training sets

ByClass = Mapping[int, int]  # 20 or 100: the longest problems of a task → length


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLengths:
    """The longest problems that each model was trained on, as far as they were given."""

    others: ByClass | None = None  # of models that are not named
    by_model: Mapping[str, ByClass]

    @property
    def given(self) -> bool:
        """True if a length of any model was given."""
        return self.others is not None or bool(self.by_model)

    def length_of(self, model: str, task: NupaTask) -> int | None:
        """Return the training length of a model, by its alias, in a task."""
        lengths = self.by_model.get(model, self.others)
        return None if lengths is None else lengths[task.length_class]


NO_TRAINING_LENGTHS: Final = TrainingLengths(by_model={})


def training_lengths(typed: int | str | Sequence[str], models: Collection[str]) -> TrainingLengths:
    """Return the training lengths that were typed, one of all models or of a model each.

    Args:
        typed: `8`, `8,20`, `MODEL=8`, or several of them.
        models: the aliases of those that were asked.

    Raises:
        ConfigError: one is no length, is of a model that was not asked, or is of one that has a length.
    """
    by_model = dict[str, ByClass]()
    for text in [str(typed)] if isinstance(typed, int | str) else typed:
        model, _, lengths = text.strip().rpartition("=")
        if model and model not in models:
            raise ConfigError(f"{OPTION} {text}: {model!r} was not asked. {suggestion(model, models)}")
        if model in by_model:
            raise ConfigError(f"{OPTION} {text}: {model or 'all models'} had a length before. Give one each.")
        by_model[model] = _by_class(lengths, text)
    others = by_model.pop("", None)
    return TrainingLengths(others=others, by_model=by_model)


def _by_class(lengths: str, text: str) -> ByClass:
    """Return the length of both classes of tasks; one number is that of both."""
    numbers = [number.strip() for number in lengths.split(",")]
    if len(numbers) > len(PAPER) or not all(
        number.isascii() and number.isdecimal() and int(number) for number in numbers
    ):
        raise ConfigError(f"{OPTION} {text}: that is no length in digits. Give {FORMS}.")
    return dict(zip(PAPER, (int(numbers[0]), int(numbers[-1])), strict=True))
