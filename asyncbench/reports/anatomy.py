"""`report --style anatomy`: kinds of errors, the places of wrong digits, and the cost of right answers."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, zip_longest
from operator import attrgetter
from typing import Final

from asyncbench.analysis.anatomy.counts import (
    MOST_EXAMPLES,
    ErrorFindings,
    WrongExample,
    errors_in,
    most_of_a_group,
)
from asyncbench.analysis.anatomy.error import KINDS, ORDER, UNCLASSIFIED
from asyncbench.analysis.anatomy.numbers import MOST_PROBLEMS, CarryBin, Group
from asyncbench.analysis.cells import (
    PART_USD,
    Sums,
    cells_in,
    outcomes_of,
    repeats_of,
    summed,
    with_known_parts,
)
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.curves import GROUP, Curve, curves_by
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
from asyncbench.records import Outcome
from asyncbench.stats.paired import undominated
from asyncbench.stats.proportions import Proportion
from asyncbench.store.schema import CELL, ENTRANT
from asyncbench.tables.data import HIDDEN, data_of, in_data
from asyncbench.tables.headings import ACCURACY, FORMAT, PER_CORRECT, RIGHT_50, RIGHT_90
from asyncbench.tables.numbers import (
    MISSING,
    at_least,
    count,
    known_cost,
    per_correct,
    per_correct_text,
    percent,
    rounded,
)
from asyncbench.tables.report import Columns, Sheet

# ── The cost of right answers: share in the right form, dollars, tokens, and models that none dominates


_WHAT: Final = tuple(name for name in CELL if name not in ENTRANT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The figures of some trials."""

    of: tuple[str, ...] = field(metadata=HIDDEN)  # whose they are: values of columns
    outcomes: Mapping[str, int] = field(metadata=HIDDEN)  # trials by outcome
    repeats: float = field(metadata=HIDDEN)  # times that each problem was asked, in the mean
    format_ok: Proportion  # of the replies whose form the headline grader judged
    cost_usd: float | None  # of the calls whose cost is known; None: of none it is
    all_priced: bool  # else `cost_usd` is less than was spent
    cost_per_correct_usd: float | None  # wrong ones paid as well; None: none is right
    cost_per_trial_usd: float | None  # the mean of the trials whose calls all have a known cost
    reasoning_tokens_per_trial: float | None  # tokens, mean of the trials where they are told
    output_tokens_per_trial: float | None  # tokens, the same; reasoning is a part of them

    @property
    @in_data("accuracy")
    def accuracy(self) -> Proportion:
        """Correct of all trials."""
        return Proportion(
            successes=self.outcomes.get(Outcome.CORRECT, 0),
            trials=sum(self.outcomes.values()),
            repeats=self.repeats,
        )

    @property
    def replied(self) -> int:
        """How many trials have a reply."""
        return self.accuracy.trials - self.outcomes.get(Outcome.FAILED, 0)

    @property
    def asked(self) -> Entrant:
        """Who was asked; the figures are by `ENTRANT`, or by more."""
        return entrant_of(self.of)

    def has_place(self, spent: str) -> bool:
        """Whether it can stand on a frontier: it replied, and what it spent is known."""
        return self.replied > 0 and getattr(self, spent) is not None


def worth_of(cells: Iterable[Sums], by: tuple[str, ...]) -> tuple[Worth, ...]:
    """Return the figures by some columns of cells, in the order of their values.

    Args:
        cells: rows of the view `cells`, `with_known_parts`.
        by: the columns, e.g. `GROUP` or `ENTRANT`.
    """
    return tuple(_worth_of(of, sums) for of, sums in sorted(summed(cells, by).items()))


def _worth_of(of: tuple[str, ...], sums: Sums) -> Worth:
    unknown, repeats = sums["trials"] - sums["priced"], repeats_of([sums])
    cost = known_cost(float(sums["cost_usd"]), unknown=unknown)
    return Worth(
        of=of,
        outcomes=outcomes_of(sums),
        repeats=repeats,
        format_ok=Proportion(successes=sums["format_ok"], trials=sums["format_known"], repeats=repeats),
        cost_usd=cost,
        all_priced=not unknown,
        cost_per_correct_usd=per_correct(cost, sums[Outcome.CORRECT]),
        cost_per_trial_usd=_mean(sums["cost_usd"] - sums[PART_USD], sums["priced"]),
        reasoning_tokens_per_trial=_mean(sums["reasoning_tokens"], sums["reasoning_known"]),
        output_tokens_per_trial=_mean(sums["output_tokens"], sums["known_tokens"]),
    )


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def asked_alike(cells: Iterable[Sums]) -> tuple[frozenset[Entrant], ...]:
    """Return who can be compared with whom: those who were asked the same tasks and lengths, together.

    Args:
        cells: rows of the view `cells`, `with_known_parts`.
    """
    tasks_of = defaultdict[Entrant, set[tuple[object, ...]]](set)
    for row in cells:
        tasks_of[row["run"], row["model"], row["condition"]].add(tuple(row[name] for name in _WHAT))
    alike = defaultdict[frozenset[tuple[object, ...]], set[Entrant]](set)
    for entrant, tasks in tasks_of.items():
        alike[frozenset(tasks)].add(entrant)
    return tuple(map(frozenset, alike.values()))


def best(worths: Iterable[Worth], spent: str, alike: Iterable[Collection[Entrant]]) -> dict[Entrant, bool]:
    """Return who is dominated by nobody that was asked the same; who has nobody to compare with is left out.

    Args:
        worths, spent: as `frontier` takes them.
        alike: who was asked the same, as `asked_alike` returns it.
    """
    known, unbeaten = list(worths), dict[Entrant, bool]()
    for comparable in alike:
        compared = [worth for worth in known if worth.asked in comparable and worth.has_place(spent)]
        if len(compared) > 1:
            undominated = frontier(compared, spent)
            unbeaten |= {worth.asked: worth.asked in undominated for worth in compared}
    return unbeaten


def frontier(worths: Iterable[Worth], spent: str) -> set[Entrant]:
    """Return who is dominated by nobody: no other is as accurate for as little, and better in one of the two.

    Args:
        worths: by `ENTRANT`; who has no reply is left out.
        spent: cost_per_trial_usd, or reasoning_ or output_tokens_per_trial; who has none is left out.
    """
    known = [worth for worth in worths if worth.has_place(spent)]
    ahead = undominated([(getattr(worth, spent), worth.accuracy.share or 0.0) for worth in known])
    return {worth.asked for worth in compress(known, ahead)}


# ── Errors, places of wrong digits, and right answers: the report


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
Names = Mapping[Entrant, str]
UNLIKE = "Not all models were asked the same tasks and lengths. `Unbeaten` compares only models that were."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnatomyReport(FolderReport):
    """What was found out about a folder's answers, and how it is shown."""

    graders: tuple[Graded, ...]
    order: tuple[Entrant, ...] = field(metadata=HIDDEN)  # as planned
    findings: tuple[ErrorFindings, ...] = field(metadata=HIDDEN)  # in that order, then by task
    most_of_a_group: int  # answers of a model and task that were examined
    worths: tuple[Worth, ...] = field(metadata=HIDDEN)  # of the same groups
    by_asked: tuple[Worth, ...] = field(metadata=HIDDEN)
    alike: tuple[frozenset[Entrant], ...] = field(metadata=HIDDEN)  # those who were asked the same
    digits: Mapping[Group, Curve] = field(metadata=HIDDEN)

    @property
    @in_data("examined")
    def examined(self) -> int:
        """How many answers were examined."""
        return sum(one.examined for one in self.findings)

    @property
    @in_data("wrong")
    def wrong(self) -> int:
        """How many answers are wrong or could not be read."""
        return sum(one.wrong + one.unread for one in self.findings)

    def _data(self) -> dict[str, object]:
        cheapest, tersest = self._best
        return FolderReport._data(self) | {
            "kinds": KINDS,
            "groups": [self._group(*one) for one in zip(self.findings, self.worths, strict=True)],
            "models": [
                {
                    **dict(zip(ENTRANT, one.asked, strict=True)),
                    **data_of(one),
                    "best_for_its_cost": cheapest.get(one.asked),
                    "best_for_its_reasoning": tersest.get(one.asked),
                }
                for one in self.by_asked
            ],
        }

    def _group(self, one: ErrorFindings, worth: Worth) -> dict[str, object]:
        return {
            **dict(zip(GROUP, one.group, strict=True)),
            "wrong": one.wrong,
            "unread": one.unread,
            "examined": one.examined,
            "kinds": [
                {
                    "kind": kind,
                    "count": times,
                    "share": times / one.examined,
                    "examples": [example._asdict() for example in one.examples[kind][:MOST_EXAMPLES]],
                }
                for kind, times in one.kinds.items()
            ],
            "flags": dict(one.flags.most_common()),
            "compared": one.compared,
            "too_short": one.too_short,
            "too_long": one.too_long,
            "wrong_from_left": data_of(one.wrong_at(one.from_left)),
            "wrong_from_right": data_of(one.wrong_at(one.from_right)),
            "by_carries": data_of(one.by_carries),
            "by_chain": data_of(one.by_chain),
            "digits": _digits(self.digits.get(one.group)),
            **data_of(worth),
        }

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """What to say of a folder without trials."""
        return None if self.by_asked else no_trials(self.folder)

    def _remarks(self) -> Iterator[str]:
        if self.graders:
            yield graded_by(self.graders)
        yield self._examined()
        names = names_of(self.order)
        yield from lost_notes({names[one.asked]: one.outcomes for one in self.by_asked})
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
        kinds = f"{percent(without / self.examined)} of them match no kind (unclassified)"
        return f"{sentence}. {kinds if without else 'All of them match a kind'}."

    def _sheets(self) -> Iterator[Sheet]:
        names = names_of(self.order)
        who: Columns[ErrorFindings] = {
            "model": lambda one: names[entrant_of(one.group)],
            "suite/task": lambda one: task_of(one.group),
        }
        if self.examined:
            yield _kinds(self.findings)
            examined = [one for one in self.findings if one.examined]
            yield Sheet.of("Wrong answers by model and task", {**who, **WRONG}, examined, labels=3)
            compared = [one for one in self.findings if one.compared]
            for end in ("first", "last"):
                places: Columns[ErrorFindings] = {
                    "compared": lambda one: count(one.compared),
                    **{str(place): partial(_wrong_at, place, end) for place in range(1, PLACES + 1)},
                }
                title = f"Wrong digits by position, counted from the {end} digit of the expected value"
                yield Sheet.of(title, {**who, **places}, compared, labels=2)
        yield _binned("number of carries or borrows", self.findings, who, attrgetter("by_carries"))
        yield _binned("length of the longest carry chain", self.findings, who, attrgetter("by_chain"))
        yield self._by_worth(names)
        yield self._efficiency(names)
        yield _unclassified(self.findings, who)

    def _by_worth(self, names: Names) -> Sheet:
        """Return accuracy, form, digits and cost of each model and task."""
        digits = self.digits
        columns: Columns[Worth] = {
            "model": lambda one: names[entrant_of(one.of)],
            "suite/task": lambda one: task_of(one.of),
            ACCURACY: lambda one: percent(one.accuracy.share, one.accuracy.interval),
            FORMAT: lambda one: percent(one.format_ok.share, one.format_ok.interval),
            RIGHT_90: lambda one: str(digits[one.of].length_at(0.9)) if one.of in digits else MISSING,
            RIGHT_50: lambda one: str(digits[one.of].length_at(0.5)) if one.of in digits else MISSING,
            PER_CORRECT: _each,
        }
        return Sheet.of("Accuracy, format, length and cost by model and task", columns, self.worths, labels=2)

    def _efficiency(self, names: Names) -> Sheet:
        """Return accuracy beside its cost; a mark where none that was asked the same is as good for less."""
        cheapest, tersest = self._best
        columns: Columns[Worth] = {
            "model": lambda one: names[entrant_of(one.of)],
            ACCURACY: lambda one: percent(one.accuracy.share, one.accuracy.interval),
            "cost per 1,000 trials": lambda one: (
                "unknown"
                if one.cost_per_trial_usd is None
                else f"${rounded(1000 * one.cost_per_trial_usd, 4)}"
            ),
            PER_CORRECT: _each,
            "unbeaten on cost": lambda one: _MARK[cheapest.get(one.asked)],
            "reasoning tokens per trial": lambda one: _rounded(one.reasoning_tokens_per_trial),
            "unbeaten on tokens": lambda one: _MARK[tersest.get(one.asked)],
            "output tokens per trial": lambda one: _rounded(one.output_tokens_per_trial),
        }
        ordered = sorted(self.by_asked, key=lambda one: self.order.index(one.asked))
        return Sheet.of("Accuracy against cost and reasoning tokens", columns, ordered)

    @property
    def _best(self) -> tuple[Mapping[Entrant, bool], Mapping[Entrant, bool]]:
        """Who is as accurate as nobody else for less, in dollars and in tokens of reasoning."""
        cheapest, tersest = (
            best(self.by_asked, spent, self.alike)
            for spent in ("cost_per_trial_usd", "reasoning_tokens_per_trial")
        )
        return cheapest, tersest


def anatomy_of(views: FolderViews) -> AnatomyReport:
    """Return the anatomy of the answers of results folders.

    Raises:
        StoreError: their results cannot be read.
        ProblemSetError: one of their copies of the problems is damaged.
    """
    by_group, cells = errors_in(views), with_known_parts(views, cells_in(views), CELL)
    order = in_order({entrant_of(group) for group in by_group}, views.manifest)
    groups = sorted(by_group, key=lambda group: (order.index(entrant_of(group)), group))
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
        digits=curves_by(cells, GROUP),
    )


# ── tables ───────────────────────────────────────────────────────────────────────────────────

COMMONEST: Final = 4  # kinds that are named beside a model and task
PLACES: Final = 12  # digits from either end that have a column
MOST_SHOWN: Final = 12  # unclassified answers
TEXT: Final = 40  # characters of a number that are shown

WRONG: Final[Columns[ErrorFindings]] = {
    "most frequent kinds": lambda one: ", ".join(
        f"{kind} {percent(n / one.examined, decimals=0)}" for kind, n in one.kinds.most_common(COMMONEST)
    ),
    "wrong": lambda one: count(one.wrong),
    "no answer": lambda one: count(one.unread),
    "examined": lambda one: count(one.examined),
    UNCLASSIFIED: lambda one: percent(one.kinds[UNCLASSIFIED] / one.examined),
    "too short": lambda one: count(one.too_short),
    "too long": lambda one: count(one.too_long),
}
_MARK: Final = {True: "yes", False: "", None: MISSING}  # None: there is nobody to compare with


def task_of(group: Group) -> str:
    """Return what a group was asked, shortly: `nupa/add easy fraction`, `llm_arithmetic/int_add`."""
    _, _, _, suite, task, variant, representation = group
    more = [variant, representation] if suite == "nupa" else []
    return " ".join(filter(None, [task if suite == task else f"{suite}/{task}", *more]))


def entrant_of(group: Sequence[str]) -> Entrant:
    """Return who was asked."""
    run, model, condition = group[: len(ENTRANT)]
    return run, model, condition


def _kinds(findings: Sequence[ErrorFindings]) -> Sheet:
    """Return all kinds that occur, with how often, what they mean and an example."""
    counts, flags, examples = Counter[str](), Counter[str](), dict[str, WrongExample]()
    for one in findings:
        counts.update(one.kinds)
        flags.update(one.flags)
        for kind, kept in one.examples.items():
            examples.setdefault(kind, kept[0])
    texts: Columns[str] = {
        "kind": str,
        "meaning": lambda kind: KINDS.get(kind, "matches no kind"),
        "example": lambda kind: _example(examples[kind]),
    }
    figures: Columns[str] = {
        "answers": lambda kind: count(counts[kind]),
        "share": lambda kind: percent(counts[kind] / counts.total()),
        "all matches": lambda kind: count(flags[kind]) if kind in KINDS else MISSING,
    }
    kinds = sorted(counts, key=lambda kind: ORDER.get(kind, len(ORDER)))
    title = "Kinds of wrong answers, in the order in which they are tried"
    named, meaning, example = ({name: texts[name]} for name in texts)
    narrow = (
        Sheet.of(title, {**named, **meaning, **figures}, kinds, labels=2),
        Sheet.of("An example of each kind (expected → answer)", {**named, **example}, kinds, labels=2),
    )
    return replace(Sheet.of(title, {**texts, **figures}, kinds, labels=3), instead=narrow)


def _example(one: WrongExample) -> str:
    read = one.answer if one.answer is not None else f"“{one.reply[-TEXT:].strip()}”"
    return f"{_cut(one.expected)} → {_cut(read)}"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}…"


def _wrong_at(place: int, end: str, one: ErrorFindings) -> str:
    """Return how often a digit of the truth is wrong, counted from the first or from the last."""
    shares = one.wrong_at(one.from_left if end == "first" else one.from_right)
    return percent(shares[place - 1].share, decimals=0) if place <= len(shares) else MISSING


def _binned(
    by: str,
    findings: Sequence[ErrorFindings],
    who: Columns[ErrorFindings],
    bins_of: Callable[[ErrorFindings], Sequence[CarryBin]],
) -> Sheet:
    """Return accuracy by number of carries, or by the longest ripple of one."""
    own = [one for one in findings if bins_of(one)]
    sizes = sorted({(at.first, at.last) for one in own for at in bins_of(one)})

    def right(size: tuple[int, int | None], one: ErrorFindings) -> str:
        shares = [at.right for at in bins_of(one) if (at.first, at.last) == size]
        return percent(shares[0].share, shares[0].interval) if shares else MISSING

    columns: Columns[ErrorFindings] = {**who, **{_range(*size): partial(right, size) for size in sizes}}
    return Sheet.of(f"Accuracy of additions and subtractions by {by}", columns, own, labels=2)


def _range(first: int, last: int | None) -> str:
    if last is None:
        return f"{first}+"
    return f"{first}" if first == last else f"{first}-{last}"


def _each(one: Worth) -> str:
    each = one.cost_per_correct_usd
    return at_least(per_correct_text(one.cost_usd, each), partial=not one.all_priced)


def _rounded(tokens: float | None) -> str:
    return count(None if tokens is None else round(tokens))


def _unclassified(findings: Sequence[ErrorFindings], who: Columns[ErrorFindings]) -> Sheet:
    """Return examples of what has no kind, in turn of each group."""
    kept = [[(one, example) for example in one.examples.get(UNCLASSIFIED, [])] for one in findings]
    in_turn = [row for turn in zip_longest(*kept) for row in turn if row is not None]
    columns: Columns[tuple[ErrorFindings, WrongExample]] = {
        "model": lambda row: who["model"](row[0]),
        "suite/task": lambda row: who["suite/task"](row[0]),
        "operands": lambda row: ", ".join(map(_cut, row[1].operands)),
        "expected": lambda row: _cut(row[1].expected),
        "answer": lambda row: (
            f"“{_cut(row[1].reply.strip())}”" if row[1].answer is None else _cut(row[1].answer)
        ),
    }
    return Sheet.of("Examples of unclassified answers", columns, in_turn[:MOST_SHOWN], labels=5)


# ── as JSON ──────────────────────────────────────────────────────────────────────────────────


def _digits(one: Curve | None) -> dict[str, object] | None:
    """Return a curve as an object of JSON; None: no length of its trials is known."""
    if one is None:
        return None
    line = one.line
    return {
        "state": one.state,
        "intercept": line and line.intercept,
        "slope": line and line.slope,
        "points": one.points,
        "at_90": data_of(one.length_at(0.9)),
        "at_50": data_of(one.length_at(0.5)),
    }
