"""A command line is read: options with their values, none of which is dropped."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from typer.core import TyperCommand

from asyncbench.errors import ConfigError


class Command(TyperCommand):
    """A command that refuses an option with two values, of which the parser would keep the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        params = self.get_params(ctx)
        names = {word: param for param in params for word in (*param.opts, *param.secondary_opts)}
        alone = {word for word, param in names.items() if is_alone(param)}
        _refuse_repeated(
            (names[word].opts[0] if word in names else word, word if value is None else value)
            for word, value in typed_options(args, alone)
            if not (word in names and names[word].multiple)
        )
        return super().parse_args(ctx, args)


def _refuse_repeated(typed: Iterable[tuple[str, str]]) -> None:
    """Refuse an option that stands with two values."""
    before: dict[str, str] = {}
    for option, value in typed:
        if before.setdefault(option, value) != value:
            raise ConfigError(f"{option} stands twice, with {before[option]} and {value}. Give it once.")


def is_alone(option: Any) -> bool:  # Any: typer names no class of them
    """Return whether an option takes no value."""
    return bool(getattr(option, "is_flag", False) or getattr(option, "count", False))


def typed_options(args: Sequence[str], alone: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each option as it is typed, with its value; those of `alone` take none."""
    words = iter(args)
    for word in words:
        if word == "--":
            return
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            yield name, value if equals else None if name in alone else next(words, None)
