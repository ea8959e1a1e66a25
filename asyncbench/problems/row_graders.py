"""The graders of a file of one's own: one for all rows, or the one that each row names in a column.

    grader: number                                all rows
    columns: {grader: kind}                       each row names one; a row that names none is refused
    columns: {grader: kind}, grader: mine:check   a row that names none is graded by this function

A row names no function of somebody's own, unless the sweep file does: data does not say which code runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.suites.custom import check_custom
from asyncbench.suites.own_graders import TAKES, use_grader
from asyncbench.suites.plugins import OwnFunction, function_named, is_in_file

TAKEN_BY: Final[Mapping[str, str]] = {
    "pattern": "regex",
    "decimal": "number",
    "json_schema": "json",
}  # option → its grader

Settings = dict[str, Any]  # Any: JSON, of a problem's `extra`


def used_grader(name: str, near: Path | None, *, place: str) -> OwnFunction:
    """Load a grader of somebody's own, make it known to the problems that name it, and return it.

    `near` is the sweep file, beside which it is looked for first.

    Raises:
        ConfigError: it cannot be imported, or does not take a reply and a problem.
    """
    grader = function_named(name, near, place=f"{place}: grader {name!r}", takes=TAKES)
    use_grader(grader)
    return grader


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGraders:
    """The settings of each grader of a file, which its problems keep in `extra`."""

    default: str | None  # of rows that name none; None: each must name one
    in_column: bool = False  # whether rows name graders
    options: Mapping[str, Any] = field(default_factory=dict)  # of `TAKEN_BY`; None: not set
    near: Path | None = None  # the sweep file
    settings: dict[str, Settings] = field(default_factory=dict)  # by name, of the graders met so far

    def of(self, name: str, *, place: str) -> Settings:
        """Return the settings of the grader that a row names; \"\": it names none.

        Raises:
            ConfigError: the grader cannot be used, or there is none.
        """
        name = name.strip() or self.default or ""
        if name in self.settings:
            return self.settings[name]
        if not name:
            raise ConfigError(f"{place}: no grader. Write one, or set `grader` for rows that name none.")
        if is_in_file(name) and name != self.default:
            raise ConfigError(
                f"{place}: {name!r} is a function. Leave this cell empty, and write `grader: {name}` in the "
                "sweep file."
            )
        options = {
            option: value
            for option, value in self.options.items()
            if value is not None and (not self.in_column or TAKEN_BY[option] == name)
        }
        check_custom(name, **options, place=place)
        function = used_grader(name, self.near, place=place) if is_in_file(name) else None
        source = {} if function is None else {"source": function.digest}
        self.settings[name] = {"grader": name if function is None else function.name, **options, **source}
        return self.settings[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The graders met so far."""
        return tuple(settings["grader"] for settings in self.settings.values())

    @property
    def own(self) -> dict[str, str]:
        """The graders that are somebody's own functions: name → digest of its source."""
        return {
            settings["grader"]: settings["source"]
            for settings in self.settings.values()
            if "source" in settings
        }
