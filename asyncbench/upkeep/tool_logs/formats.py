"""The logs of other tools that can be imported, by the name of the format."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from asyncbench.published.files import RecordedRun
from asyncbench.upkeep.tool_logs import inspect_logs, json_lines, lm_eval, promptfoo

Reader = Callable[[Path], RecordedRun]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """The logs of a tool, and how they are read."""

    endings: tuple[str, ...]
    reader: Callable[[Mapping[str, object]], Reader]  # options → what reads a file
    summaries: Collection[str] = ()  # names of files that are no logs

    def runs_in(self, paths: Iterable[Path], options: Mapping[str, object]) -> Iterator[RecordedRun]:
        """Return the runs of files, one each.

        Raises:
            ConfigError: the options are not of this format; later, that a file cannot be read.
        """
        return map(self.reader(options), paths)


LOGS: Final[Mapping[str, LogFormat]] = {
    "inspect": LogFormat(endings=inspect_logs.ENDINGS, reader=inspect_logs.reader),
    "lm-eval": LogFormat(endings=lm_eval.ENDINGS, reader=lm_eval.reader),
    "promptfoo": LogFormat(endings=promptfoo.ENDINGS, reader=promptfoo.reader),
    "jsonl": LogFormat(endings=json_lines.ENDINGS, reader=json_lines.reader),
}
