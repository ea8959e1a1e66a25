"""`report --by model`: models over all their variants, the best of these, and the effect of each setting.

Variants are the ways in which a sweep asked one model: its parameters crossed with the conditions.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from math import fsum
from operator import and_
from typing import Final

from asyncbench.analysis.cells import keep_skips
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, entry_of, names_of, shared_beginning, sort_entrants
from asyncbench.analysis.folder_report import FolderReport, NothingToShowError, no_trials
from asyncbench.analysis.pairing import Marked, Marks, ModelPair, difference_interval, marked, pair
from asyncbench.analysis.served import note_of_simulated
from asyncbench.reports.effects import (
    CONDITION,
    EFFECT_COLUMNS,
    SETTINGS_COLUMNS,
    TOGETHER,
    EffectLine,
    PromptSettings,
    Use,
    correct_for_tests,
    effect_lines,
    joined_marks,
    read_settings,
    read_use,
    varied_groups,
)
from asyncbench.reports.standings.rankings import share_of
from asyncbench.stats.paired import holm, sign_flip
from asyncbench.tables.headings import ACCURACY, BESIDE_BEST, BEST_ACCURACY
from asyncbench.tables.numbers import MISSING, count, dollars, p_text, percent, points, rounded
from asyncbench.tables.report import Columns, Sheet, filled

ALPHA: Final = 0.05
MODELS: Final = "Models: the mean over their variants"
ADDED: Final = "What each setting adds"
MEANING: Final = (
    "A variant is a model with one value of each setting. A model's figures are on the problems that all its "
    "variants were asked. A problem counts once, whatever the number of variants. Differences are in "
    "percentage points, paired by problem, on the variants that both have. The best variant is picked by the "
    "same answers, so its accuracy is a little too high. p: exact paired tests, Holm-corrected."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLine:
    """One model over all its variants."""

    model: str
    variants: int
    problems: int
    accuracy: float | None  # the mean over its variants; None: these share no problem
    interval: tuple[float, float] | None  # 95 %
    difference: float | None  # to the best model; None: it is the best, or they share nothing
    difference_interval: tuple[float, float] | None
    p: float | None
    p_holm: float | None
    best: str  # what differs in its best variant; of several alike the first as planned; empty: it has one
    alike: int  # other variants that are just as accurate
    best_accuracy: float | None
    best_interval: tuple[float, float] | None
    cost_usd: float | None  # None: the cost of a variant is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ByModel(FolderReport):
    """The models of a folder, each over all its variants, and the effect of each setting."""

    models: tuple[ModelLine, ...]  # the best first
    settings: tuple[EffectLine, ...]

    def finding(self) -> Iterator[str]:
        """Yield the best model over all variants; nothing where there is one model."""
        if len(self.models) < 2:
            return
        first, second = self.models[:2]
        variants = f" over its {first.variants:,} variants" if first.variants > 1 else ""
        right = f"{first.model} is right in {percent(first.accuracy)}{variants}"
        if second.difference is None or second.p is None:
            yield f"{right}, {second.model} in {percent(second.accuracy)}."
        elif second.p >= ALPHA:
            yield f"{right}, statistically tied with {second.model} ({percent(second.accuracy)})."
        else:
            yield f"{right}, {rounded(-100 * second.difference, 1)} points ahead of {second.model}."

    def remarks(self) -> Iterator[str]:
        yield from self.finding()
        yield MEANING

    def sheets(self) -> Iterator[Sheet]:
        yield filled(Sheet.of(MODELS, MODEL_COLUMNS, self.models))
        yield filled(Sheet.of(ADDED, SETTING_COLUMNS, self.settings, labels=3))


def variants_of(views: FolderViews) -> ByModel:
    """Return the models of folders over all their variants.

    Raises:
        ConfigError: there is no trial.
        StoreError: a folder cannot be read.
    """
    keep_skips(views)
    trials = marked(views, SETTINGS_COLUMNS)
    if not trials.marks:
        raise NothingToShowError(views.chosen, no_trials(views.chosen))
    settings, use = read_settings(views), read_use(views)
    ordered = {who: settings[who] for who in sort_entrants(trials.marks, views.manifest)}
    models = models_in(ordered)
    folders = {name: label for (label, _), name in views.names.items()}
    costs = {who: row["cost_usd"] for who, row in use.items()}
    added = list(_setting_lines(models, ordered, folders, trials, use))
    correct_for_tests(added)
    simulated = note_of_simulated(views, table="answers")
    views.drop("answers")
    return ByModel(
        folder=str(views.chosen),
        simulated_note=simulated,
        models=tuple(_model_lines(models, trials, costs)),
        settings=tuple(added),
    )


def crossed_in(views: FolderViews) -> bool:
    """Return whether models and settings were crossed: a model has three variants, or two have two."""
    rows = views.rows("SELECT DISTINCT run, model, condition, provider, model_id FROM trials")
    names = Counter((row["provider"], row["model_id"]) for row in rows)
    if not _are_crossed(names.values()):
        return False
    return _are_crossed(map(len, models_in(read_settings(views, "trials")).values()))


def _are_crossed(variants: Iterable[int]) -> bool:
    several = [count for count in variants if count > 1]
    return len(several) > 1 or max(several, default=0) > 2


# ── models and their variants ────────────────────────────────────────────────────────────────────


Variants = Mapping[str, Entrant]  # what differs in a variant, such as `t=0 · steps` → who was asked


def models_in(settings: Mapping[Entrant, PromptSettings]) -> dict[str, Variants]:
    """Return the models of entrants by name, each with its variants; both in the order of the sweep.

    Entrants are variants of one model if they have its provider and id, and were asked in different ways.
    """
    by_model = defaultdict[object, list[Entrant]](list)
    for who, setting in settings.items():
        by_model[setting.model].append(who)

    # Two servers of the same model, or two runs of it, are no variants: their aliases and runs differ.
    groups = list[list[Entrant]]()
    for entrants in by_model.values():
        ways = {(settings[who].key(ignored=""), who[2]) for who in entrants}
        split = defaultdict[object, list[Entrant]](list)
        for who in entrants:
            split[None if len(ways) == len(entrants) else (entry_of(who[1])[0], who[0])].append(who)
        groups += split.values()

    bases = [list(dict.fromkeys(entry_of(model)[0] for _, model, _ in entrants)) for entrants in groups]
    titles = names_of(
        [
            (entrants[0][0], base[0] if len(base) == 1 else settings[entrants[0]].model[1], "")
            for base, entrants in zip(bases, groups, strict=True)
        ]
    )

    # A variant is named by what differs, and the only one of a model not at all.
    models: dict[str, Variants] = {}
    for title, entrants in zip(titles.values(), groups, strict=True):
        names = names_of(entrants)
        cut = len(shared_beginning([*names.values()]))
        models[title] = {
            name[cut:].removeprefix("(").removesuffix(")") if len(entrants) > 1 else "": who
            for who, name in names.items()
        }
    return models


def _model_lines(
    models: Mapping[str, Variants], trials: Marked, costs: Mapping[Entrant, float | None]
) -> Iterator[ModelLine]:
    """Yield the lines of models, the best first."""
    common: dict[str, dict[str, Marks]] = {}  # of variants, on the problems that all of them were asked
    for name, variants in models.items():
        problems = reduce(and_, (trials.marks[who].problems for who in variants.values()))
        common[name] = {label: trials.marks[who].restrict(problems) for label, who in variants.items()}

    joined = {name: joined_marks(variants.values()) for name, variants in common.items()}
    shares = {name: share_of(marks) if marks.trials else None for name, marks in joined.items()}
    best_first = sorted(models, key=lambda name: -(share[0] if (share := shares[name]) else -1.0))
    pairs = [_paired(common[name], common[best_first[0]]) for name in best_first[1:]]
    p_values = [None if counts is None else sign_flip(counts.differences) for counts in pairs]
    adjusted = iter(holm([p for p in p_values if p is not None]))

    for name, counts, p in zip(best_first, [None, *pairs], [None, *p_values], strict=True):
        figures = {label: share_of(marks) for label, marks in common[name].items() if marks.trials}
        best = max(figures, key=lambda label: figures[label][0], default="")
        known = [cost for who in models[name].values() if (cost := costs[who]) is not None]
        yield ModelLine(
            model=name,
            variants=len(models[name]),
            problems=joined[name].problems.bit_count(),
            accuracy=share[0] if (share := shares[name]) else None,
            interval=share[1] if share else None,
            difference=None if counts is None else counts.difference,
            difference_interval=None if counts is None else difference_interval(counts),
            p=p,
            p_holm=None if p is None else next(adjusted),
            best=best,
            alike=sum(share == figures[best][0] for share, _ in figures.values()) - 1 if best else 0,
            best_accuracy=figures[best][0] if figures else None,
            best_interval=figures[best][1] if figures else None,
            cost_usd=fsum(known) if len(known) == len(models[name]) else None,
        )


def _paired(a: Mapping[str, Marks], b: Mapping[str, Marks]) -> ModelPair | None:
    """Return how two models compare on their common variants, or None if these share no problem."""
    labels = [label for label in a if label in b]
    counts = pair(joined_marks(a[label] for label in labels), joined_marks(b[label] for label in labels))
    return counts if counts.trials else None


# ── settings ─────────────────────────────────────────────────────────────────────────────────────


def _setting_lines(
    models: Mapping[str, Variants],
    settings: Mapping[Entrant, PromptSettings],
    folders: Mapping[str, str],
    trials: Marked,
    use: Mapping[Entrant, Use],
) -> Iterator[EffectLine]:
    """Yield a line for each value of each setting: first of all models together, then of each model.

    Each value is compared on all variants that differ in nothing else.
    """
    keys = dict.fromkeys(key for setting in settings.values() for key in setting.model_params)
    several = {name: variants.values() for name, variants in models.items() if len(variants) > 1}
    scopes: dict[str, Collection[Entrant]] = dict(several)
    if len(several) > 1:
        scopes = {TOGETHER: [who for entrants in several.values() for who in entrants], **several}
    for scope, entrants in scopes.items():
        chosen = {who: settings[who] for who in settings if who in entrants}
        for key in (*keys, CONDITION):
            groups = varied_groups(chosen, folders, key)
            for line in effect_lines(groups, trials, use):
                yield {"name": scope, "setting": key, **line}


# ── columns ──────────────────────────────────────────────────────────────────────────────────────


MODEL_COLUMNS: Final[Columns[ModelLine]] = {
    "model": lambda line: line.model,
    "variants": lambda line: count(line.variants),
    "problems": lambda line: count(line.problems),
    ACCURACY: lambda line: percent(line.accuracy, line.interval),
    BESIDE_BEST: lambda line: points(line.difference, line.difference_interval),
    "p (Holm)": lambda line: p_text(line.p_holm),
    "best variant": lambda line: f"{line.best}{f' and {line.alike} alike' if line.alike else ''}" or MISSING,
    BEST_ACCURACY: lambda line: percent(line.best_accuracy, line.best_interval) if line.best else MISSING,
    "cost": lambda line: MISSING if line.cost_usd is None else dollars(line.cost_usd),
}
SETTING_COLUMNS: Final[Columns[EffectLine]] = {
    "model": lambda line: line["name"],
    "setting": lambda line: line["setting"],
    **{heading: cell for heading, cell in EFFECT_COLUMNS.items() if heading != "model"},
}
