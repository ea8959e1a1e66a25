"""The lengths that a load asked for, beside those that the server counted."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.reports.load.steps import StepFigures
from asyncbench.tables.data import in_data

# The answers of each step to questions that were made of a length.
_LENGTHS: Final = """
WITH made AS (
    SELECT DISTINCT problem_set, problem_id, (extra->>'input_tokens')::BIGINT AS tokens
    FROM problems WHERE suite = 'custom' AND task = 'synthetic' AND extra->>'input_tokens' IS NOT NULL
)
SELECT made.tokens, attempts.max_tokens AS reply_tokens, model, load, count(*) AS answers,
    min(attempts.input_tokens) AS counted_least, max(attempts.input_tokens) AS counted_most,
    count(attempts.output_tokens) AS told,
    count(*) FILTER (attempts.output_tokens < attempts.max_tokens) AS shorter
FROM attempts JOIN trials USING (trial_id, model, load) JOIN made USING (problem_set, problem_id)
WHERE phase = 'measured' AND attempts.status = 'ok' AND attempts.max_tokens IS NOT NULL
GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedLengths:
    """The answers to questions of one length, whose replies could be of one length."""

    tokens: int  # that a question was to have
    reply_tokens: int  # that a reply was to have
    answers: int
    counted_least: int | None  # tokens of a question, as the server counted; None: it tells none
    counted_most: int | None
    told: int  # answers whose length is told
    shorter: int  # answers of `told` that are shorter than asked

    @property
    @in_data("text")
    def text(self) -> str:
        """The same as a sentence."""
        counted = "the server counted none"
        if self.counted_least is not None:
            counted = f"server counted {self.counted_least:,}–{self.counted_most:,}"
        shorter = f"{self.shorter:,} of {self.told:,} shorter" if self.told else "how many is not told"
        return f"Asked {self.tokens:,} in ({counted}), {self.reply_tokens:,} out; {shorter}."


def asked_lengths(views: FolderViews, steps: Iterable[StepFigures]) -> tuple[AskedLengths, ...]:
    """Return the lengths that the server counted in the steps shown; empty where none were asked.

    Args:
        views: with all calls of the load, and the answers to it.
        steps: as `steps_in` returns them.
    """
    shown = {(step.model, load) for step in steps for load in step.loads}
    rows = [row for row in views.rows(_LENGTHS) if (row["model"], row["load"]) in shown]
    lengths = list[AskedLengths]()
    for (tokens, reply_tokens), group in groupby(rows, key=lambda row: (row["tokens"], row["reply_tokens"])):
        loads = list(group)
        counted = [row for row in loads if row["counted_least"] is not None]
        lengths.append(
            AskedLengths(
                tokens=tokens,
                reply_tokens=reply_tokens,
                answers=sum(row["answers"] for row in loads),
                counted_least=min((row["counted_least"] for row in counted), default=None),
                counted_most=max((row["counted_most"] for row in counted), default=None),
                told=sum(row["told"] for row in loads),
                shorter=sum(row["shorter"] for row in loads),
            )
        )
    return tuple(lengths)
