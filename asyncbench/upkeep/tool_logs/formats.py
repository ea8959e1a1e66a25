"""The logs of other tools that can be imported, by the name of the format."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from asyncbench.errors import ConfigError
from asyncbench.published.files import RecordedRun
from asyncbench.upkeep.tool_logs.inspect_logs import inspect_samples
from asyncbench.upkeep.tool_logs.json_lines import columns_in, json_lines
from asyncbench.upkeep.tool_logs.lm_eval import lm_eval_samples
from asyncbench.upkeep.tool_logs.promptfoo import promptfoo_results
from asyncbench.upkeep.tool_logs.told import Entry, Options, run_from


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """The logs of a tool, and how they are read."""

    summaries: ClassVar[Collection[str]] = ()  # names of files that hold sums of others: no tool writes one

    name: str
    endings: tuple[str, ...]
    options: Collection[str] = ()  # that an import of them takes
    check: Callable[[Options], object] = lambda _: None  # raises ConfigError for what is wrong with these
    entries: Callable[[Path, Options], Iterator[Entry]]

    def reader(self, options: Options) -> Callable[[Path], RecordedRun]:
        """Return a reader of a file.

        Raises:
            ConfigError: the options are not of this format.
        """
        if odd := [name for name in options if name not in self.options]:
            raise ConfigError(f"import {self.name} takes no --{', --'.join(odd)}. Remove them")
        self.check(options)
        return lambda path: run_from(path, self.entries(path, options), endings=self.endings)

    def runs_in(self, paths: Iterable[Path], options: Options) -> Iterator[RecordedRun]:
        """Return the runs of files, one each.

        Raises:
            ConfigError: the options are not of this format; later, that a file cannot be read.
        """
        return map(self.reader(options), paths)


_FORMATS: Final = (
    LogFormat(name="inspect", endings=(".eval", ".json"), options=["model"], entries=inspect_samples),
    LogFormat(name="lm-eval", endings=(".jsonl",), options=["model"], entries=lm_eval_samples),
    LogFormat(name="promptfoo", endings=(".json",), entries=promptfoo_results),
    LogFormat(
        name="jsonl",
        endings=(".jsonl", ".ndjson"),
        options=["columns", "model"],
        check=columns_in,
        entries=json_lines,
    ),
)
LOGS: Final[Mapping[str, LogFormat]] = {log_format.name: log_format for log_format in _FORMATS}
