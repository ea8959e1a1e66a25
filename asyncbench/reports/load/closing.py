"""The last lines of `load`: lengths that a server counted, replayed traces, and tokens per GPU second."""

from collections.abc import Sequence
from dataclasses import dataclass

from asyncbench.analysis.counting import FolderViews
from asyncbench.reports.load.lengths import AskedLengths, asked_lengths
from asyncbench.reports.load.replays import ReplayedTrace, replayed_traces
from asyncbench.reports.load.steps import steps_in
from asyncbench.tables.data import in_data
from asyncbench.tables.numbers import number_of, rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuThroughput:
    """The output tokens of a step, by GPU of its server."""

    model: str
    step: str
    gpus: int
    tokens_per_s: float | None  # None: some answers do not report their tokens
    tokens_per_s_per_gpu: float | None

    @property
    @in_data("text")
    def text(self) -> str:
        """The same as a sentence."""
        gpus = number_of(self.gpus, "GPU")
        if self.tokens_per_s is None or self.tokens_per_s_per_gpu is None:
            return f"{self.model}, {self.step}: tokens per GPU second are unknown ({gpus})."
        return (
            f"{self.model}, {self.step}: {rounded(self.tokens_per_s_per_gpu, 1)} tokens per GPU second "
            f"({rounded(self.tokens_per_s, 1)} a second, {gpus})."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosingFigures:
    """The figures that a load ends with, of all steps of its folder."""

    lengths: Sequence[AskedLengths]
    replays: Sequence[ReplayedTrace]
    gpus: Sequence[GpuThroughput]

    @property
    def text(self) -> str:
        """All of them as lines; empty: there are none."""
        lines = [lengths.text for lengths in self.lengths]
        lines += [replay.text for replay in self.replays]
        lines += [gpus.text for gpus in self.gpus]
        return "\n".join(lines)


def closing_figures(views: FolderViews) -> ClosingFigures:
    """Return the figures that a load ends with, given views with the answers to it."""
    steps = steps_in(views)
    gpus = [
        GpuThroughput(
            model=step.model,
            step=step.step,
            gpus=step.gpus,
            tokens_per_s=step.tokens_per_s,
            tokens_per_s_per_gpu=step.tokens_per_s_per_gpu,
        )
        for step in steps
        if step.gpus is not None
    ]
    lengths, replays = asked_lengths(views, steps), replayed_traces(views, steps)
    return ClosingFigures(lengths=lengths, replays=replays, gpus=gpus)
