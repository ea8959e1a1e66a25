"""The record of a suite: its generator, its parameters and its grading."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from asyncbench.errors import ConfigError
from asyncbench.records import Draft, Grade, Message, Problem, Reply

Kind = tuple[str, str, str]  # task, variant and representation of a problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a suite's generator: the same in command, Python and sweep file.

    `parse` takes what was written (text from a command, any YAML value from a sweep) and raises
    ValueError with the rule when it cannot be meant. What it returns, it also accepts.
    """

    default: object
    parse: Callable[[object], object]
    help: str
    later: bool = False  # left out at its default, so that sets that were made before it keep their names


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The messages with which a suite asks a problem."""

    system: str | None = None
    turns: tuple[Message, ...] = ()  # its worked examples
    chat: tuple[Message, ...] = ()  # earlier messages of a question that is a chat, its system prompt first
    question: str  # the last message of the user


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The way of asking of a suite that says more than the question of a problem; pure functions.

    `wording(problem, style, shots, digits)` is what is said. `question_in(message)` finds the question again
    in the last message of the user (None: there is none). `added_characters(style, shots)` are the most
    characters that are said beside a question. `complaint(kind, style, digits)` tells why problems of a kind
    cannot be asked in a style or with their numbers in other forms (None: they can).
    """

    wording: Callable[[Problem, str, int, Sequence[str]], Wording]
    question_in: Callable[[str], str | None]
    added_characters: Callable[[str, int], int]
    complaint: Callable[[Kind, str, Sequence[str]], str | None]
    shots: Mapping[str, int]  # by style: how many worked examples it has; a style without any is left out


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSize:
    """How large a set of a suite a first sweep has."""

    parameter: str  # of the generator, which says how many problems there are
    most: int  # that `init` takes: it counts and prices them at once
    usual: int | None = None  # None: the parameter's default


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A benchmark.

    `generate(seed, parameters)` yields drafts in balanced order: row i of every cell before row
    i + 1. `grade(problem, reply, style)` is pure and linear in the reply's length; the headline grade
    comes first, and a trial without a reply (None) is graded as failed.
    """

    name: str
    about: str = ""  # what it asks, for who chooses one in `init`
    unit: str = ""  # that a problem's length counts, such as digits; empty: no word fits
    first: FirstSize | None = None  # None: `init` does not offer it
    generator_version: int  # raise when the same seed gives other problems
    prompt_version: int  # raise when the same problem is asked with other words
    graders: tuple[str, ...]  # headline first
    styles: tuple[str, ...] = ("chat",)  # the forms of asking that its graders know
    shots_from_file: bool = False  # worked examples of the user's own may stand before its questions
    asking: Asking | None = None  # None: the question of a problem is asked as it stands
    rewritable: tuple[str, ...] = ("chat",)  # the styles in which its numbers may take other forms (`digits`)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # what each `preset` sets
    check: Callable[[Mapping[str, object]], None] | None = None  # ValueError: values that do not go together
    generate: Callable[[int, Mapping[str, object]], Iterator[Draft]] | None  # None: nothing to generate
    has_small_cells: bool = False  # that may hold fewer problems than asked for: a set counts them
    grade: Callable[[Problem, Reply | None, str], tuple[Grade, ...]]

    def parsed(self, given: Mapping[str, object], *, place: str) -> dict[str, object]:
        """Return every parameter's value, those of the preset and the defaults included.

        Raises:
            ConfigError: an unknown parameter, a value that its rule refuses, values that contradict
                each other or the preset.
        """
        chosen: dict[str, object] = {}
        for name, written in given.items():
            if name not in self.parameters:
                names = ", ".join(self.parameters) or "none"
                raise ConfigError(f"{place}: {self.name} has no parameter {name!r}. Known: {names}.")
            try:
                chosen[name] = self.parameters[name].parse(written)
            except ValueError as error:
                raise ConfigError(f"{place}: {name}: {written!r} {error}") from None
        preset = dict(self.presets.get(str(chosen.get("preset")), {}))
        for name, value in preset.items():
            if chosen.get(name, value) != value:
                raise ConfigError(
                    f"{place}: {name} is {chosen[name]!r}, but preset {chosen['preset']!r} sets {value!r}. "
                    "Remove one of the two."
                )
        defaults = {name: parameter.default for name, parameter in self.parameters.items()}
        values = defaults | preset | chosen
        try:
            if self.check:
                self.check(values)
        except ValueError as error:
            raise ConfigError(f"{place}: {error}") from None
        return {
            name: values[name]
            for name, parameter in self.parameters.items()
            if not (parameter.later and values[name] == parameter.default)
        }


def whole_number(minimum: int, maximum: int | None = None) -> Callable[[object], int]:
    """Return a parser of whole numbers from `minimum` to `maximum`, both included."""

    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError("is not a whole number")
        try:
            number = int(value)
        except ValueError:
            raise ValueError("is not a whole number") from None
        if number < minimum:
            raise ValueError(f"is too small: at least {minimum}")
        if maximum is not None and number > maximum:
            raise ValueError(f"is too large: at most {maximum:,}")
        return number

    return parse


def whole_numbers(minimum: int, maximum: int) -> Callable[[object], tuple[int, ...]]:
    """Return a parser of sets of whole numbers: `2-10`, `2,5,8`, `2-4,8`, `[2, 5, 8]` or `5`.

    They come out ascending, each once.
    """
    number = whole_number(minimum, maximum)

    def span(item: object) -> range:
        ends = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", item) if isinstance(item, str) else None
        first, last = map(number, ends.groups()) if ends else (number(item),) * 2
        if first > last:
            raise ValueError(f"has a range that runs backwards: write {last}-{first}")
        return range(first, last + 1)

    def parse(value: object) -> tuple[int, ...]:
        return tuple(sorted({n for item in _items(value) for n in span(item)}))

    return parse


def some_of(choices: Iterable[str]) -> Callable[[object], tuple[str, ...]]:
    """Return a parser of one or more of these names: `a,b` or `[a, b]`; they come out in this order."""
    names = tuple(choices)

    def parse(value: object) -> tuple[str, ...]:
        chosen = {item.strip() if isinstance(item, str) else item for item in _items(value)}
        if not chosen.issubset(names):
            raise ValueError(f"holds an unknown name. Known: {', '.join(names)}")
        return tuple(name for name in names if name in chosen)

    return parse


def one_of(choices: Iterable[str]) -> Callable[[object], str | None]:
    """Return a parser of one of some names, or None."""
    names = tuple(choices)

    def parse(value: object) -> str | None:
        if value is None:
            return None
        if value not in names:
            raise ValueError(f"is unknown. Known: {', '.join(names)}")
        return str(value)

    return parse


def ascending(low: str, high: str) -> Callable[[Mapping[str, object]], None]:
    """Return a check that the parameter `low` is not above the parameter `high`."""

    def check(values: Mapping[str, object]) -> None:
        if cast("int", values[low]) > cast("int", values[high]):
            raise ValueError(f"{low} ({values[low]}) is greater than {high} ({values[high]}).")

    return check


def _items(value: object) -> list[object]:
    if isinstance(value, str):
        return list(value.split(","))
    if value in ([], ()):
        raise ValueError("is empty. Give at least one")
    return list(value) if isinstance(value, list | tuple) else [value]
