"""`report --by`: the effect of a parameter, each of its values beside the first on the same problems."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import Any, Final

import orjson

from asyncbench.analysis.cells import keep_skips
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, entrant_of, names_of, sort_entrants
from asyncbench.analysis.folder_report import FolderReport, NothingToShowError, no_trials
from asyncbench.analysis.lost_trials import lost_notes
from asyncbench.analysis.pairing import Marked, Marks, common_marks, difference_interval, marked, pair
from asyncbench.analysis.served import note_of_simulated
from asyncbench.analysis.views import counts_by
from asyncbench.errors import ConfigError
from asyncbench.reports.by_expression import EXAMPLE, ByExpression, accuracy_by
from asyncbench.reports.standings.rankings import share_of
from asyncbench.reports.standings.report import SKIPPED
from asyncbench.stats.paired import holm, sign_flip
from asyncbench.store.schema import ENTRANT, SCHEMAS
from asyncbench.tables.headings import ACCURACY
from asyncbench.tables.numbers import MISSING, count, counted_note, dollars, p_text, percent, points
from asyncbench.tables.report import Columns, Sheet, filled

CONDITION: Final = "condition"  # the value of `--by` that compares whole conditions
FOLDER: Final = "folder"  # the value of `--by` that compares several results folders
TOGETHER: Final = "all together"
PAIRED: Final = (
    "Each value is compared with the first one of the same model, on the problems that were asked with all "
    "of its values. Differences are in percentage points (paired bootstrap). p: exact paired tests, "
    "Holm-corrected for all rows."
)


# The figures of one value of the parameter that was varied: name of the model, value, number of problems that
# were asked with all values, accuracy and its difference to the first value with 95 % intervals, an exact
# two-sided p, tokens of a trial, and dollars of the priced trials. None: it is the first value, or unknown.
EffectLine = dict[str, Any]  # Any: names and figures
Use = Mapping[str, Any]  # Any: output tokens of a trial, and dollars; None: unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects(FolderReport):
    """The figures of each value of a parameter, over all models together, then model by model."""

    by: str
    lines: tuple[EffectLine, ...]
    outcomes: Mapping[str, Mapping[str, int]]  # by name of the model, with the value
    skipped: int  # trials that `stop_when` leaves out

    def remarks(self) -> Iterator[str]:
        yield PAIRED
        yield from counted_note(self.skipped, SKIPPED)
        yield from lost_notes(self.outcomes)

    def sheets(self) -> Iterator[Sheet]:
        yield filled(Sheet.of(f"By {self.by}", EFFECT_COLUMNS, self.lines, labels=2))


def effects_of(views: FolderViews, by: str) -> Effects | ByExpression:
    """Compare the values of a parameter on the problems that were asked with all of them.

    Args:
        views: of the results folder, or of several.
        by: `condition`, `folder`, or a parameter as the columns `params` and `condition_params` have it. An
            SQL expression over the columns of `trials` gives the accuracy for each of its values.

    Raises:
        ConfigError: no model was asked with several values, and it is no expression.
        StoreError: a folder cannot be read.
    """
    folder, skips, trials = views.chosen, keep_skips(views), marked(views, SETTINGS_COLUMNS)
    if not trials.marks:
        raise NothingToShowError(folder, no_trials(folder))
    folders = {name: folder_name for (folder_name, _), name in views.names.items()}
    settings, use = read_settings(views), read_use(views)
    ordered = {who: settings[who] for who in sort_entrants(trials.marks, views.manifest)}
    groups = varied_groups(ordered, folders, by)
    if not groups:
        keys = dict.fromkeys(
            key
            for setting in ordered.values()
            for key in (CONDITION, FOLDER, *setting.params, *setting.condition)
        )
        # A column of `trials` is an expression, too. Any other name is that of a setting.
        if by not in keys and (not by.isidentifier() or by in SCHEMAS["trials"].names):
            return accuracy_by(views, by)
        varied = ", ".join(key for key in keys if varied_groups(ordered, folders, key)) or "nothing"
        raise ConfigError(
            f"--by {by}: no model of {folder} was asked with several values of {by!r}, and all else alike. "
            f"What varies there: {varied}. You can also write {EXAMPLE}."
        )

    # First all models together, then each model.
    scopes = [(TOGETHER, groups)] if len(groups) > 1 else []
    scopes += [(name, {name: values}) for name, values in groups.items()]
    lines: list[EffectLine] = [
        {"name": name, **line} for name, scope in scopes for line in effect_lines(scope, trials, use)
    ]
    correct_for_tests(lines)
    return Effects(
        folder=str(folder),
        simulated_note=note_of_simulated(views, table="answers"),
        by=by,
        lines=tuple(lines),
        outcomes={
            f"{name}, {by} {value}": trials.outcomes(who, trials.marks[who].asked)
            for name, values in groups.items()
            for value, who in values.items()
        },
        skipped=skips.trials,
    )


# ── models that were asked the same way but for one value ────────────────────────────────────

SETTINGS_COLUMNS: Final = (
    *("provider", "upstream", "model_id", "style", "params", "condition_params"),
    *("output_tokens", "cost_usd"),
)
# The last row of an entrant is the most frequent: trials that were given more room later have other `params`.
_SETTINGS: Final = """
SELECT run, model, condition, provider, model_id, style, params, condition_params FROM {}
GROUP BY ALL ORDER BY count(*)
"""
_USE: Final = counts_by("answers", ENTRANT, only=("cost_usd",), more=["avg(output_tokens) AS output_tokens"])


def read_settings(views: FolderViews, table: str = "answers") -> dict[Entrant, "PromptSettings"]:
    """Return how each entrant was asked, as a table of trials says."""
    return {  # a later row replaces an earlier one: see _SETTINGS
        entrant_of(row): PromptSettings.read(row) for row in views.rows(_SETTINGS.format(table))
    }


def read_use(views: FolderViews) -> dict[Entrant, Use]:
    """Return the mean output tokens and the dollars of each entrant, of the table `answers`."""
    # The key of each row is taken out of it.
    return {(row.pop("run"), row.pop("model"), row.pop("condition")): row for row in views.rows(_USE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """How an entrant was asked, as the results say."""

    model: tuple[str, str]  # provider and model id
    model_params: Mapping[str, object]
    params: Mapping[str, object]  # the model's, overridden by the condition's
    condition: Mapping[str, object]  # what else the condition sets

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "PromptSettings":
        model, condition = (orjson.loads(row[name] or "{}") for name in ("params", "condition_params"))
        params = {**model, **condition.pop("params", {})}
        params |= {
            name: condition.pop(name) for name in ("effort", "temperature", "system") if name in condition
        }
        return cls(
            model=(row["provider"], row["model_id"]),
            model_params=model,
            params=params,
            condition={**condition, "style": row["style"]},
        )

    def key(self, *, ignored: str) -> bytes:
        """Return all settings but one parameter: equal for two entrants that differ only there."""
        if ignored == CONDITION:
            return orjson.dumps([self.model, self.model_params], option=orjson.OPT_SORT_KEYS)
        kept = [
            {name: value for name, value in options.items() if name != ignored}
            for options in (self.params, self.condition)
        ]
        return orjson.dumps([self.model, *kept], option=orjson.OPT_SORT_KEYS)

    def value_of(self, name: str) -> object:
        """Return the value of a parameter or another setting of the condition, or None if it is not set."""
        return self.params.get(name, self.condition.get(name))


def varied_groups(
    settings: Mapping[Entrant, PromptSettings], folders: Mapping[str, str], by: str
) -> dict[str, dict[str, Entrant]]:
    """Return the entrants that were asked the same way but for one value, by name, then by value.

    Both are in the order of the sweep.

    Args:
        settings: how each entrant was asked.
        folders: the folder of each model, where there are several.
        by: what was varied.
    """
    within_runs = _alike(settings, folders, by)
    several = [values for values in within_runs if len(values) > 1]

    # Each imported file is a run of its own: who has no other value there may have one in another run.
    alone = {who: settings[who] for values in within_runs if len(values) == 1 for who in values.values()}
    several += [values for values in _alike(alone, folders, by, across_runs=True) if len(values) > 1]

    # a run, model and condition name each group, whose entrants differ in one value
    mark = "in " if by == FOLDER else f"{by}="
    values_by_title = dict[Entrant, dict[str, Entrant]]()
    for values in several:
        # An alias without the varied value: `m effort=low` → `m`.
        bases = {f"{model} ".replace(f" {mark}{value} ", " ")[:-1] for value, (_, model, _) in values.items()}
        run, _, _ = next(iter(values.values()))
        conditions = ", ".join(dict.fromkeys(condition for _, _, condition in values.values()))
        name = bases.pop() if len(bases) == 1 else ", ".join(model for _, model, _ in values.values())
        values_by_title[run, name, conditions] = values
    names = names_of(values_by_title)
    return {names[title]: values for title, values in values_by_title.items()}


def _alike(
    settings: Mapping[Entrant, PromptSettings],
    folders: Mapping[str, str],
    by: str,
    *,
    across_runs: bool = False,
) -> list[dict[str, Entrant]]:
    """Return all entrants by value, in a group with those that were asked the same way but for it.

    Args:
        settings, folders, by: as `varied_groups` has them.
        across_runs: whether entrants of several runs may be in one group.
    """
    alike = defaultdict[object, dict[str, Entrant]](dict)
    for who, setting in settings.items():
        run, model, condition = who
        folder = folders.get(model, "")
        same_run = None if by == FOLDER else (None if across_runs else run, folder)
        group: tuple[object, ...] = (same_run, setting.key(ignored=by), model if by == CONDITION else None)
        varied = {FOLDER: folder, CONDITION: condition}.get(by, setting.value_of(by))
        if varied is None:
            value = "not set"
        else:
            value = varied if isinstance(varied, str) else orjson.dumps(varied).decode()
        # Two servers of the same model, or two runs of it: nothing in the results tells them apart but names.
        for name in (model, run):
            if value in alike[group]:
                group = (*group, name)
        alike[group][value] = who
    return list(alike.values())


# ── the figures of each value ────────────────────────────────────────────────────────────────


def effect_lines(
    groups: Mapping[str, Mapping[str, Entrant]], trials: Marked, use: Mapping[Entrant, Use]
) -> Iterator[EffectLine]:
    """Yield a line for each value, of all groups that were asked with every value.

    Each value but the first is compared with the first.
    """
    order = list(dict.fromkeys(value for values in groups.values() for value in values))
    whole = [values for values in groups.values() if len(values) == len(order)]
    if not whole:
        return
    marks = [common_marks({value: trials.marks[values[value]] for value in order}) for values in whole]
    joined = {value: joined_marks(by_value[value] for by_value in marks) for value in order}
    for line in comparisons(joined, baseline=order[0]):
        used = [use[values[line["value"]]] for values in whole]
        tokens, costs = ([row[name] for row in used] for name in ("output_tokens", "cost_usd"))
        yield {
            **line,
            "output_tokens": None if None in tokens else fmean(tokens),
            "cost_usd": None if None in costs else fsum(costs),
        }


def correct_for_tests(lines: Iterable[EffectLine]) -> None:
    """Put `p_holm` into lines with a p: Holm's correction for that many tests."""
    tested = [line for line in lines if line["p"] is not None]
    for line, p_holm in zip(tested, holm([line["p"] for line in tested]), strict=True):
        line["p_holm"] = p_holm


def joined_marks(marks: Iterable[Marks]) -> Marks:
    """Return marks with all turns of several: the same problem of each is a further turn of that problem."""
    several = list(marks)
    return Marks(
        asked=tuple(bits for each in several for bits in each.asked),
        right=tuple(bits for each in several for bits in each.right),
    )


def comparisons(marks: Mapping[str, Marks], *, baseline: str | None) -> Iterator[EffectLine]:
    """Yield the accuracy with each value, and its difference to that with another one.

    Args:
        marks: of each value, on the problems that were asked with all of them.
        baseline: the value that the others are compared with; None: they are not.
    """
    first = None if baseline is None else marks[baseline]
    for value, answers in marks.items():
        # Without a common problem anything is possible.
        share, interval = share_of(answers) if answers.trials else (0.0, (0.0, 1.0))
        line: EffectLine = {
            "value": value,
            "problems": answers.problems.bit_count(),
            "accuracy": share,
            "interval": interval,
            **dict.fromkeys(("difference", "difference_interval", "p", "p_holm")),
        }
        if first is not None and answers is not first and (paired := pair(answers, first)).trials:
            line |= {"difference": paired.difference, "difference_interval": difference_interval(paired)}
            line["p"] = sign_flip(paired.differences)
        yield line


EFFECT_COLUMNS: Final[Columns[EffectLine]] = {
    "model": lambda line: line["name"],
    "value": lambda line: line["value"],
    "problems": lambda line: count(line["problems"]),
    ACCURACY: lambda line: percent(line["accuracy"], line["interval"]),
    "beside the first (95 % CI)": lambda line: points(line["difference"], line["difference_interval"]),
    "p (Holm)": lambda line: p_text(line["p_holm"]),
    "output tokens per trial": lambda line: (
        MISSING if line["output_tokens"] is None else f"{line['output_tokens']:,.0f}"
    ),
    "cost": lambda line: MISSING if line["cost_usd"] is None else dollars(line["cost_usd"]),
}
