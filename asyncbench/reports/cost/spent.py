"""What was spent on each entrant: its calls, dollars and tokens, beside its trials."""

from dataclasses import dataclass
from typing import Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.names import Entrant
from asyncbench.analysis.views import CALLS_OF_ENTRANTS

# Answers taken over from another sweep cost nothing here, so they are no part of it.
_SPENT: Final = f"""
WITH {CALLS_OF_ENTRANTS}, spent AS (
    SELECT run, model, condition, count(*) AS calls, count(*) FILTER (cost_usd IS NULL) AS unknown,
        count(*) FILTER (cost_usd IS NULL AND status <> 'ok') AS unknown_failed,
        count(*) FILTER (cost_usd IS NULL AND status = 'ok'
            AND (input_tokens IS NULL OR output_tokens IS NULL)) AS unknown_tokens,
        CASE WHEN count(cost_usd) > 0 THEN sum_usd(cost_usd) END AS cost_usd,
        sum(input_tokens)::BIGINT AS input_tokens, sum(cached_input_tokens)::BIGINT AS cached_input_tokens,
        sum(output_tokens)::BIGINT AS output_tokens, sum(reasoning_tokens)::BIGINT AS reasoning_tokens
    FROM entrant_calls GROUP BY ALL
), here AS (
    SELECT run, model, condition, count(*) AS trials, count(*) FILTER (outcome = 'correct') AS correct
    FROM trials WHERE reused_from IS NULL AND load IS NULL GROUP BY ALL
)
SELECT coalesce(run, '') AS run, model, coalesce(condition, '') AS condition,
    spent.* EXCLUDE (run, model, condition), coalesce(trials, 0) AS trials, coalesce(correct, 0) AS correct
FROM spent LEFT JOIN here USING (run, model, condition) ORDER BY ALL
"""  # noqa: S608  made of our own words alone


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantSpending:
    """The calls of one that was asked; amounts are of the calls that tell them, None: none does."""

    run: str  # of open trials empty, like `condition`, where the model has several
    model: str
    condition: str
    calls: int
    unknown: int  # calls whose cost is unknown, of them:
    unknown_failed: int  # without an answer, so nobody knows whether they are billed
    unknown_tokens: int  # the provider told no tokens
    cost_usd: float | None
    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    trials: int  # finished, and asked here
    correct: int

    @property
    def entrant(self) -> Entrant:
        """Who was asked."""
        return self.run, self.model, self.condition

    @property
    def per_1000_usd(self) -> float | None:
        """Dollars for a thousand trials, retries counted."""
        return None if self.cost_usd is None or not self.trials else 1000 * self.cost_usd / self.trials

    @property
    def per_correct_usd(self) -> float | None:
        return None if self.cost_usd is None or not self.correct else self.cost_usd / self.correct

    @property
    def cached_share(self) -> float | None:
        """The part of the input that was read from a cache."""
        cached = self.cached_input_tokens
        return None if cached is None or not self.input_tokens else cached / self.input_tokens


def spending_by_entrant(views: FolderViews) -> tuple[EntrantSpending, ...]:
    """Return what was spent on each entrant."""
    return tuple(EntrantSpending(**row) for row in views.rows(_SPENT))
