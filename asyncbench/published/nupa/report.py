"""`report --style nupa`: what the paper "Number Cookbook" publishes of a model, from any results folder."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from asyncbench.providers import is_simulated
from asyncbench.published.nupa.counts import (
    FIGURES,
    Figure,
    LengthTally,
    TaskFindings,
    TaskLine,
    by_asked,
    lines_of,
    macro,
    planned_of,
    read_graded,
)
from asyncbench.published.nupa.tables import MARK, sheets
from asyncbench.results import Asked, Graded, graded_by, left_out_at_import, left_out_of, names_of
from asyncbench.shown import SIMULATED, Report, Sheet
from asyncbench.store import read_manifest
from asyncbench.suites.nupa import GRADERS, Number, range_of

MEANING = (
    "Means over answers, by `strict`: the answer stands where the published code looks for it. S, M, L, XL: "
    "1-4, 5-8, 9-14, 15-20 digits, or 1-10, 11-20, 21-60, 61-100. Digit match: of the truth's digits. "
    "dlength: digits too many or too few. Well learned: the longest length with a mean of 90 % (dlength 0.1) "
    "or better; preserving: 10 % exact, 50 % of digits, dlength 1."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NupaReport(Report):
    """A folder's figures of NUPA, and how they are shown."""

    folder: str
    simulated: bool
    graders: tuple[Graded, ...]
    empty: int
    left_out: dict[str, int]  # run → entries of its file that could not be imported
    planned: Mapping[Asked, int]
    lines: tuple[TaskLine, ...]  # as the manifest has who was asked, then as the table of tasks

    def _data(self) -> dict[str, object]:
        return {
            "folder": self.folder,
            "simulated": self.simulated,
            "graders": [asdict(one) for one in self.graders],
            "left_out": self.left_out,
            "empty": self.empty,
            "models": [self._model(asked, lines) for asked, lines in by_asked(self.lines).items()],
            "lines": [_line(line) for line in self.lines],
        }

    def _sheets(self) -> Iterator[Sheet]:
        yield from sheets(self.lines)

    def _model(self, asked: Asked, lines: list[TaskLine]) -> dict[str, object]:
        run, model, condition = asked
        return {
            "run": run,
            "model": model,
            "condition": condition,
            "style": lines[0].style,
            "tasks": len(lines),
            "planned": self.planned.get(asked),
            "trials": sum(line.trials for line in lines),
            "failed": sum(line.failed for line in lines),
            "ungraded": sum(line.ungraded for line in lines),
            "mean_over_tasks": {
                grader: {
                    name: _exactly(macro([line.by_grader[grader].figures[name] for line in lines]))
                    for name in FIGURES
                }
                for grader in GRADERS
            },
        }

    def _notes(self) -> Iterator[str]:
        if self.simulated:
            yield SIMULATED
        yield graded_by(self.graders)
        trials, failed = sum(line.trials for line in self.lines), sum(line.failed for line in self.lines)
        yield f"{trials:,} trials: {failed:,} failed, {self.empty:,} replied without text."
        yield from self._unfinished()
        if count := sum(line.ungraded for line in self.lines):
            yield f"{count:,} replies could not be graded and are left out: `asyncbench regrade` tries again."
        yield from left_out_at_import(self.left_out)
        if any(line.other_form for line in self.lines):
            yield (
                f"{MARK}: `search` and `strict` are more than a point apart: replies were not in the form "
                "asked for, which says nothing about arithmetic."
            )
        yield MEANING

    def _unfinished(self) -> Iterator[str]:
        named = names_of({line.asked: None for line in self.lines})
        done = {asked: sum(line.trials for line in those) for asked, those in by_asked(self.lines).items()}
        left = [
            f"{named[asked]} {count:,} of {self.planned[asked]:,}"
            for asked, count in done.items()
            if count < self.planned.get(asked, 0)
        ]
        if left:
            yield f"Not finished: {', '.join(left)} trials."


def nupa_report_on(folder: Path | str) -> NupaReport:
    """Return the figures of NUPA in a results folder.

    Raises:
        ConfigError: it is not a results folder, or holds no trial of NUPA.
        StoreError: its results cannot be read.
    """
    manifest, found = read_manifest(Path(folder)), read_graded(folder)
    return NupaReport(
        folder=str(folder),
        simulated=any(map(is_simulated, found.providers)),
        graders=found.graders,
        empty=found.empty,
        left_out=left_out_of(manifest, runs=found.runs),
        planned=dict(planned_of(manifest)),
        lines=lines_of(found.trials, manifest),
    )


# ── as JSON has it ───────────────────────────────────────────────────────────────────────────


def _line(line: TaskLine) -> dict[str, object]:
    task = line.task
    return {
        "run": line.run,
        "model": line.model,
        "condition": line.condition,
        "style": line.style,
        "task": task.task,
        "variant": task.variant,
        "representation": task.representation,
        "task_name": task.name,
        "length_class": task.length_class,
        "trials": line.trials,
        "failed": line.failed,
        "ungraded": line.ungraded,
        "answers": line.answers,
        "other_form": line.other_form,
        **{grader: _findings(one, task.length_class) for grader, one in line.by_grader.items()},
    }


def _findings(found: TaskFindings, length_class: int) -> dict[str, object]:
    return {
        **{name: _figure(figure) for name, figure in found.figures.items()},
        "by_length": [
            {"length": length, "range": range_of(length, length_class), **_means(tally)}
            for length, tally in found.by_length.items()
        ],
    }


def _figure(figure: Figure) -> dict[str, object]:
    mastered = {} if figure.digits is None else asdict(figure.digits)
    return {**_exactly({"mean": figure.mean, **figure.ranges}), **mastered}


def _means(tally: LengthTally) -> dict[str, object]:
    means = {name: float(getattr(tally, name) / tally.answers) for name in FIGURES}
    return {"answers": tally.answers, **means}


def _exactly(values: Mapping[str, Number | None]) -> dict[str, float | None]:
    """Return numbers as JSON has them: each the nearest binary float."""
    return {name: None if value is None else float(value) for name, value in values.items()}
