"""`report --style anatomy`: kinds of errors, the places of wrong digits, and the cost of right answers."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from asyncbench.analysis.anatomy.counts import ErrorFindings, errors_in, kinds_of, most_of_a_group
from asyncbench.analysis.anatomy.error import KINDS, UNCLASSIFIED
from asyncbench.analysis.anatomy.numbers import GROUP, MOST_PROBLEMS, CarryBin, Group
from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.curves import DigitsCurve, digits_at
from asyncbench.analysis.entrants import Entrant, in_order, names_of
from asyncbench.analysis.notes import (
    FolderReport,
    Graded,
    graded_by,
    headline_graders,
    lost_notes,
    no_trials,
    note_of_simulated,
)
from asyncbench.reports import anatomy_sheets as sheets
from asyncbench.reports.cost.right_answers import Worth, asked_alike, best, worth_of
from asyncbench.store.schema import ENTRANT
from asyncbench.tables.headings import RIGHT_50, RIGHT_90
from asyncbench.tables.report import Sheet

MEANING = (
    "Kinds: an answer counts for the first kind that matches; `all matches` counts later ones, too. "
    f"Carries: trials with a reply, of the first {MOST_PROBLEMS:,} problems. A carry chain is a run of "
    f"columns that pass a carry on. {RIGHT_90}, {RIGHT_50}: the length at which a logistic curve through "
    "accuracy by length drops to that share, with its 95 % CI (likelihood ratio). Cost per correct answer: "
    "wrong answers are paid as well; `(known)` means that some trials have no known cost and are left out. "
    "Unbeaten: no other model that was asked the same is as accurate for less, or more accurate for the "
    "same; `-` means that there is no such model. In all intervals a problem counts once, however often it "
    "was asked."
)
UNLIKE = "Not all models were asked the same tasks and lengths. `Unbeaten` compares only models that were."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnatomyReport(FolderReport):
    """What was found out about a folder's answers, and how it is shown."""

    graders: tuple[Graded, ...]
    order: tuple[Entrant, ...]  # as planned
    findings: tuple[ErrorFindings, ...]  # in that order, then by task
    most_of_a_group: int  # answers of a model and task that were examined
    worths: tuple[Worth, ...]  # of the same groups
    by_asked: tuple[Worth, ...]
    alike: tuple[frozenset[Entrant], ...]  # those who were asked the same
    digits: Mapping[Group, DigitsCurve]

    @property
    def examined(self) -> int:
        """How many answers were examined."""
        return sum(one.examined for one in self.findings)

    @property
    def wrong(self) -> int:
        """How many answers are wrong or could not be read."""
        return sum(one.wrong + one.unread for one in self.findings)

    def _data(self) -> dict[str, object]:
        return {
            "folder": self.folder,
            "simulated": self.simulated,
            "graders": [asdict(one) for one in self.graders],
            "wrong": self.wrong,
            "examined": self.examined,
            "most_of_a_group": self.most_of_a_group,
            "kinds": KINDS,
            "groups": [self._group(*one) for one in zip(self.findings, self.worths, strict=True)],
            "models": list(self._models()),
            "nothing": None if self.by_asked else no_trials(self.folder),
        }

    def _group(self, one: ErrorFindings, worth: Worth) -> dict[str, object]:
        return {
            **sheets.group_as_dict(one.group),
            "wrong": one.wrong,
            "unread": one.unread,
            "examined": one.examined,
            "kinds": [
                {
                    "kind": kind.kind,
                    "count": kind.count,
                    "share": kind.count / kind.examined,
                    "examples": [example._asdict() for example in kind.examples],
                }
                for kind in kinds_of([one])
            ],
            "flags": dict(one.flags.most_common()),
            "compared": one.compared,
            "too_short": one.too_short,
            "too_long": one.too_long,
            "wrong_from_left": [sheets.proportion_as_dict(at) for at in one.wrong_at(one.from_left)],
            "wrong_from_right": [sheets.proportion_as_dict(at) for at in one.wrong_at(one.from_right)],
            "by_carries": [_bin(at) for at in one.by_carries],
            "by_chain": [_bin(at) for at in one.by_chain],
            "digits": _digits(self.digits.get(one.group)),
            **_worth(worth),
        }

    def _models(self) -> Iterator[dict[str, object]]:
        cheapest = best(self.by_asked, "cost_per_trial_usd", self.alike)
        tersest = best(self.by_asked, "reasoning_per_trial", self.alike)
        for one in self.by_asked:
            entrant = sheets.entrant_of(one.of)
            yield {
                **dict(zip(ENTRANT, entrant, strict=True)),
                **_worth(one),
                "best_for_its_cost": cheapest.get(entrant),
                "best_for_its_reasoning": tersest.get(entrant),
            }

    def _notes(self) -> Iterator[str]:
        yield from self._simulated()
        if not self.by_asked:
            yield no_trials(self.folder)
            return
        if self.graders:
            yield graded_by(self.graders)
        yield self._examined()
        names = names_of(self.order)
        yield from lost_notes({names[sheets.entrant_of(one.of)]: one.outcomes for one in self.by_asked})
        if len(self.alike) > 1:
            yield UNLIKE
        yield MEANING

    def _examined(self) -> str:
        if not any(one.replied for one in self.by_asked):
            return "No trial has a reply."
        if not self.wrong:
            return "No answer is wrong."
        without = sum(one.kinds[UNCLASSIFIED] for one in self.findings)
        sentence = f"{self.examined:,} of {self.wrong:,} wrong answers (or replies without one) were examined"
        if self.examined < self.wrong:
            sentence += f" (a fixed random sample of {self.most_of_a_group:,} per model and task)"
        kinds = f"{without / self.examined:.1%} of them match no kind (unclassified)"
        return f"{sentence}. {kinds if without else 'All of them match a kind'}."

    def _sheets(self) -> Iterator[Sheet]:
        names = names_of(self.order)
        if self.examined:
            yield sheets.kinds(self.findings)
            yield sheets.by_group(self.findings, names)
            yield from sheets.by_place(self.findings, names)
        yield from sheets.by_carries(self.findings, names)
        if not self.by_asked:
            return
        yield sheets.by_worth(self.worths, self.digits, names)
        yield sheets.efficiency(self.by_asked, self.order, names, self.alike)
        yield from sheets.unclassified(self.findings, names)


def anatomy_on(folder: Folders) -> AnatomyReport:
    """Return the anatomy of a results folder's answers; nothing is written to it.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: its results cannot be read.
        ProblemSetError: one of its copies of the problems is damaged.
    """
    return counted(folder, _anatomy)


def _anatomy(views: FolderViews) -> AnatomyReport:
    by_group, cells = errors_in(views), views.table("FROM cells")
    order = in_order({sheets.entrant_of(group) for group in by_group}, views.manifest)
    groups = sorted(by_group, key=lambda group: (order.index(sheets.entrant_of(group)), group))
    worths = {worth.of: worth for worth in worth_of(cells, GROUP)}
    return AnatomyReport(
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views),
        graders=headline_graders(views),
        order=tuple(order),
        findings=tuple(by_group[group] for group in groups),
        most_of_a_group=most_of_a_group(by_group.values()),
        worths=tuple(worths[group] for group in groups),
        by_asked=worth_of(cells, ENTRANT),
        alike=asked_alike(cells),
        digits={tuple(curve.of.values()): curve for curve in digits_at(cells, GROUP)},
    )


# ── as JSON ──────────────────────────────────────────────────────────────────────────────────


def _worth(one: Worth) -> dict[str, object]:
    return {
        "accuracy": sheets.proportion_as_dict(one.accuracy),
        "format_ok": sheets.proportion_as_dict(one.format_ok),
        "cost_usd": one.cost_usd,
        "all_priced": one.all_priced,
        "cost_per_trial_usd": one.cost_per_trial_usd,
        "cost_per_correct_usd": one.cost_per_correct_usd,
        "reasoning_tokens_per_trial": one.reasoning_per_trial,
        "output_tokens_per_trial": one.output_per_trial,
    }


def _bin(one: CarryBin) -> dict[str, object]:
    return {"first": one.first, "last": one.last, **sheets.proportion_as_dict(one.right)}


def _digits(one: DigitsCurve | None) -> dict[str, object] | None:
    """Return a curve as an object of JSON; None: no length of its trials is known."""
    if one is None:
        return None
    line = one.curve.line
    return {
        "state": one.curve.state,
        "intercept": line and line.intercept,
        "slope": line and line.slope,
        "points": one.curve.points,
        "at_90": asdict(one.at_90),
        "at_50": asdict(one.at_50),
    }
