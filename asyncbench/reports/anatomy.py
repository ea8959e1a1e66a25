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
    add_known_costs,
    cells_in,
    outcomes_of,
    repeats_of,
    summed,
)
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.curves import GROUP, Curve, curves_by
from asyncbench.analysis.entrants import Entrant, entrant_of, names_of, sort_entrants
from asyncbench.analysis.folder_report import FolderReport, no_trials
from asyncbench.analysis.graders import Graded, graded_by, headline_graders
from asyncbench.analysis.lost_trials import lost_notes
from asyncbench.analysis.served import note_of_simulated
from asyncbench.records import Outcome
from asyncbench.stats.paired import undominated
from asyncbench.stats.proportions import Proportion
from asyncbench.store.schema import CELL, ENTRANT
from asyncbench.tables import headings
from asyncbench.tables.data import HIDDEN, data_of, in_data
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
    """How right one group of trials is, and what it cost."""

    group: tuple[str, ...] = field(metadata=HIDDEN)  # values of the columns that the trials are grouped by
    outcomes: Mapping[str, int] = field(metadata=HIDDEN)  # trials by outcome
    repeats: float = field(metadata=HIDDEN)  # times that each problem was asked, in the mean
    format_ok: Proportion  # of the replies whose form the headline grader judged
    cost_usd: float | None  # sum of the known costs of calls; None: no call has a known cost
    all_priced: bool  # False: some calls have no known cost, so more than `cost_usd` was spent
    cost_per_correct_usd: float | None  # includes the cost of wrong answers; None: no answer is right
    cost_per_trial_usd: float | None  # the mean of the trials whose calls all have a known cost
    reasoning_tokens_per_trial: float | None  # the mean of the trials whose provider reports them
    output_tokens_per_trial: float | None  # the same mean; output includes reasoning

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
        """Who was asked; trials are grouped by the columns of `ENTRANT` first."""
        return group_entrant(self.group)

    def has_place(self, spent: str) -> bool:
        """Return whether the entrant can be on a frontier: it replied, and its spending is known."""
        return self.replied > 0 and getattr(self, spent) is not None


def worth_of(cells: Iterable[Sums], by: tuple[str, ...]) -> tuple[Worth, ...]:
    """Return one `Worth` for each group of cells, sorted by the values of the group.

    Args:
        cells: rows of the view `cells`, `add_known_costs`.
        by: the columns, e.g. `GROUP` or `ENTRANT`.
    """
    worths = list[Worth]()
    for group, sums in sorted(summed(cells, by).items()):
        unpriced, repeats = sums["trials"] - sums["priced"], repeats_of([sums])
        cost = known_cost(float(sums["cost_usd"]), unknown=unpriced)
        worth = Worth(
            group=group,
            outcomes=outcomes_of(sums),
            repeats=repeats,
            format_ok=Proportion(successes=sums["format_ok"], trials=sums["format_known"], repeats=repeats),
            cost_usd=cost,
            all_priced=not unpriced,
            cost_per_correct_usd=per_correct(cost, sums[Outcome.CORRECT]),
            cost_per_trial_usd=_mean(sums["cost_usd"] - sums[PART_USD], sums["priced"]),
            reasoning_tokens_per_trial=_mean(sums["reasoning_tokens"], sums["reasoning_known"]),
            output_tokens_per_trial=_mean(sums["output_tokens"], sums["known_tokens"]),
        )
        worths.append(worth)
    return tuple(worths)


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def asked_alike(cells: Iterable[Sums]) -> tuple[frozenset[Entrant], ...]:
    """Return groups of entrants that can be compared: each group was asked the same tasks and lengths.

    Args:
        cells: rows of the view `cells`, `add_known_costs`.
    """
    tasks_of = defaultdict[Entrant, set[tuple[object, ...]]](set)
    for row in cells:
        tasks_of[entrant_of(row)].add(tuple(row[name] for name in _WHAT))
    alike = defaultdict[frozenset[tuple[object, ...]], set[Entrant]](set)
    for entrant, tasks in tasks_of.items():
        alike[frozenset(tasks)].add(entrant)
    return tuple(map(frozenset, alike.values()))


def best(worths: Iterable[Worth], spent: str, alike: Iterable[Collection[Entrant]]) -> dict[Entrant, bool]:
    """Return for each entrant whether none that was asked the same dominates it.

    Entrants that can be compared with no other are left out.

    Args:
        worths, spent: as `frontier` takes them.
        alike: who was asked the same, as `asked_alike` returns it.
    """
    candidates = [worth for worth in worths if worth.has_place(spent)]
    unbeaten = dict[Entrant, bool]()
    for comparable in alike:
        compared = [worth for worth in candidates if worth.asked in comparable]
        if len(compared) > 1:
            undominated = frontier(compared, spent)
            unbeaten |= {worth.asked: worth.asked in undominated for worth in compared}
    return unbeaten


def frontier(worths: Iterable[Worth], spent: str) -> set[Entrant]:
    """Return the entrants that no other dominates: as accurate for as little, and better in one of the two.

    Args:
        worths: by `ENTRANT`. An entrant without a reply is left out.
        spent: a field: `cost_per_trial_usd`, `reasoning_tokens_per_trial` or `output_tokens_per_trial`. An
            entrant that has None there is left out.
    """
    candidates = [worth for worth in worths if worth.has_place(spent)]
    ahead = undominated([(getattr(worth, spent), worth.accuracy.share or 0.0) for worth in candidates])
    return {worth.asked for worth in compress(candidates, ahead)}


# ── Errors, places of wrong digits, and right answers: the report


MEANING = (
    "Kinds: an answer counts for the first kind that matches; `all matches` counts later ones, too. "
    f"Carries: trials with a reply, of the first {MOST_PROBLEMS:,} problems. A carry chain is a run of "
    f"columns that pass a carry on. {headings.RIGHT_90}, {headings.RIGHT_50}: the length at which a "
    "logistic curve through accuracy by length drops to that share, with its 95 % CI (likelihood ratio). "
    "Cost per correct answer: wrong answers are paid as well; `(known)` means that some trials have no known "
    "cost and are left out. Unbeaten: no other model that was asked the same is as accurate for less, or "
    "more accurate for the same; `-` means that there is no such model. In all intervals a problem counts "
    "once, however often it was asked."
)
Names = Mapping[Entrant, str]
UNLIKE = "Not all models were asked the same tasks and lengths. `Unbeaten` compares only models that were."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnatomyReport(FolderReport):
    """The errors in a folder's answers and the cost of the right ones, with their tables."""

    graders: tuple[Graded, ...]
    order: tuple[Entrant, ...] = field(metadata=HIDDEN)  # the order of the sweep
    findings: tuple[ErrorFindings, ...] = field(metadata=HIDDEN)  # in that order, then by task
    most_of_a_group: int  # at most so many answers of a model and task were examined
    worths: tuple[Worth, ...] = field(metadata=HIDDEN)  # one for each of `findings`
    by_asked: tuple[Worth, ...] = field(metadata=HIDDEN)  # one for each entrant
    alike: tuple[frozenset[Entrant], ...] = field(metadata=HIDDEN)  # entrants that were asked the same
    digits: Mapping[Group, Curve] = field(metadata=HIDDEN)  # accuracy by length

    @property
    @in_data("examined")
    def examined(self) -> int:
        """The number of answers that were examined."""
        return sum(findings.examined for findings in self.findings)

    @property
    @in_data("wrong")
    def wrong(self) -> int:
        """The number of answers that are wrong or could not be read."""
        return sum(findings.wrong + findings.unread for findings in self.findings)

    def data(self) -> dict[str, object]:
        groups = [
            {
                **dict(zip(GROUP, finding.group, strict=True)),
                "wrong": finding.wrong,
                "unread": finding.unread,
                "examined": finding.examined,
                "kinds": [
                    {
                        "kind": kind,
                        "count": times,
                        "share": times / finding.examined,
                        "examples": [example._asdict() for example in finding.examples[kind][:MOST_EXAMPLES]],
                    }
                    for kind, times in finding.kinds.items()
                ],
                "flags": dict(finding.flags.most_common()),
                "words": dict(finding.words.most_common(MOST_WORDS)),
                "compared": finding.compared,
                "too_short": finding.too_short,
                "too_long": finding.too_long,
                "wrong_from_left": data_of(finding.wrong_at(finding.from_left)),
                "wrong_from_right": data_of(finding.wrong_at(finding.from_right)),
                "by_carries": data_of(finding.by_carries),
                "by_chain": data_of(finding.by_chain),
                "digits": _curve_data(self.digits.get(finding.group)),
                **data_of(worth),
            }
            for finding, worth in zip(self.findings, self.worths, strict=True)
        ]
        cheapest, tersest = self._best
        models = [
            {
                **dict(zip(ENTRANT, worth.asked, strict=True)),
                **data_of(worth),
                "best_for_its_cost": cheapest.get(worth.asked),
                "best_for_its_reasoning": tersest.get(worth.asked),
            }
            for worth in self.by_asked
        ]
        return FolderReport.data(self) | {"kinds": KINDS, "groups": groups, "models": models}

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """The sentence that a folder without trials gets instead of tables."""
        return None if self.by_asked else no_trials(self.folder)

    def remarks(self) -> Iterator[str]:
        if self.graders:
            yield graded_by(self.graders)

        # how many of the wrong answers were examined and matched a kind of error
        if not any(findings.replied for findings in self.by_asked):
            yield "No trial has a reply."
        elif not self.wrong:
            yield "No answer is wrong."
        else:
            unclassified = sum(findings.kinds[UNCLASSIFIED] for findings in self.findings)
            sentence = (
                f"{self.examined:,} of {self.wrong:,} wrong answers (or replies without one) were examined"
            )
            if self.examined < self.wrong:
                sentence += f" (a fixed random sample of {self.most_of_a_group:,} per model and task)"
            kinds = f"{percent(unclassified / self.examined)} of them match no kind (unclassified)"
            yield f"{sentence}. {kinds if unclassified else 'All of them match a kind'}."

        names = names_of(self.order)
        yield from lost_notes({names[worth.asked]: worth.outcomes for worth in self.by_asked})
        if len(self.alike) > 1:
            yield UNLIKE
        yield MEANING

    def sheets(self) -> Iterator[Sheet]:
        names = names_of(self.order)
        who: Columns[ErrorFindings] = {
            "model": lambda findings: names[group_entrant(findings.group)],
            "suite/task": lambda findings: task_of(findings.group),
        }
        if self.examined:
            yield _kinds(self.findings)
            examined = [findings for findings in self.findings if findings.examined]
            compared = any(findings.compared for findings in examined)
            columns = {**who, **WRONG, **(WRONG_LENGTHS if compared else {})}
            yield Sheet.of("Wrong answers by model and task", columns, examined, labels=3)
            yield _frequent_words(self.findings, who)
            if compared:
                yield _wrong_digits("first", self.findings, who)
                yield _wrong_digits("last", self.findings, who)
        yield _binned("number of carries or borrows", self.findings, who, attrgetter("by_carries"))
        yield _binned("length of the longest carry chain", self.findings, who, attrgetter("by_chain"))
        yield self._worth_sheet(names)
        yield self._efficiency_sheet(names)
        yield _unclassified(self.findings, who)

    def _worth_sheet(self, names: Names) -> Sheet:
        """Return accuracy, form, digits and cost of each model and task."""

        def length_at(worth: Worth, share: float) -> str:
            curve = self.digits.get(worth.group)
            return MISSING if curve is None else str(curve.length_at(share))

        lengths: Columns[Worth] = {
            headings.RIGHT_90: lambda worth: length_at(worth, 0.9),
            headings.RIGHT_50: lambda worth: length_at(worth, 0.5),
        }
        columns: Columns[Worth] = {
            "model": lambda worth: names[worth.asked],
            "suite/task": lambda worth: task_of(worth.group),
            headings.ACCURACY: lambda worth: percent(worth.accuracy.share, worth.accuracy.interval),
            headings.FORMAT: lambda worth: percent(worth.format_ok.share, worth.format_ok.interval),
            **(lengths if self.digits else {}),
            headings.PER_CORRECT: _cost_per_correct,
        }
        return Sheet.of("Accuracy, format, length and cost by model and task", columns, self.worths, labels=2)

    def _efficiency_sheet(self, names: Names) -> Sheet:
        """Return accuracy beside its cost; a mark where no comparable model is as good for less."""
        cheapest, tersest = self._best
        columns: Columns[Worth] = {
            "model": lambda worth: names[worth.asked],
            headings.ACCURACY: lambda worth: percent(worth.accuracy.share, worth.accuracy.interval),
            "cost per 1,000 trials": lambda worth: (
                "unknown"
                if worth.cost_per_trial_usd is None
                else f"${rounded(1000 * worth.cost_per_trial_usd, 4)}"
            ),
            headings.PER_CORRECT: _cost_per_correct,
            "unbeaten on cost": lambda worth: _MARK[cheapest.get(worth.asked)],
            "reasoning tokens per trial": lambda worth: _rounded(worth.reasoning_tokens_per_trial),
            "unbeaten on tokens": lambda worth: _MARK[tersest.get(worth.asked)],
            "output tokens per trial": lambda worth: _rounded(worth.output_tokens_per_trial),
        }
        ordered = sorted(self.by_asked, key=lambda worth: self.order.index(worth.asked))
        return Sheet.of("Accuracy against cost and reasoning tokens", columns, ordered)

    @property
    def _best(self) -> tuple[Mapping[Entrant, bool], Mapping[Entrant, bool]]:
        """The results of `best` for dollars and for tokens of reasoning."""
        cheapest, tersest = (
            best(self.by_asked, spent, self.alike)
            for spent in ("cost_per_trial_usd", "reasoning_tokens_per_trial")
        )
        return cheapest, tersest


def anatomy_of(views: FolderViews) -> AnatomyReport:
    """Return the anatomy of the answers of results folders.

    Raises:
        StoreError: the results cannot be read.
        ProblemSetError: a folder's copy of the problems is damaged.
    """
    by_group, cells = errors_in(views), add_known_costs(views, cells_in(views), CELL)
    order = sort_entrants({group_entrant(group) for group in by_group}, views.manifest)
    groups = sorted(by_group, key=lambda group: (order.index(group_entrant(group)), group))
    worths = {worth.group: worth for worth in worth_of(cells, GROUP)}
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

COMMONEST: Final = 4  # so many kinds of errors are named beside a model and task
MOST_WORDS: Final = 20  # so many wrong answers in words are in the data of a model and task
PLACES: Final = 12  # so many digits from either end have a column
MOST_SHOWN: Final = 12  # so many unclassified answers are shown
TEXT: Final = 40  # so many characters of a number are shown

WRONG: Final[Columns[ErrorFindings]] = {
    "most frequent kinds": lambda findings: ", ".join(
        f"{kind} {percent(n / findings.examined, decimals=0)}"
        for kind, n in findings.kinds.most_common(COMMONEST)
    ),
    "wrong": lambda findings: count(findings.wrong),
    "no answer": lambda findings: count(findings.unread),
    "examined": lambda findings: count(findings.examined),
    UNCLASSIFIED: lambda findings: percent(findings.kinds[UNCLASSIFIED] / findings.examined),
}
WRONG_LENGTHS: Final[Columns[ErrorFindings]] = {
    "too short": lambda findings: count(findings.too_short),
    "too long": lambda findings: count(findings.too_long),
}
_MARK: Final = {True: "yes", False: "", None: MISSING}  # None: there is no other model to compare with


def task_of(group: Group) -> str:
    """Return the short name of a group's task: `nupa/add easy fraction`, `llm_arithmetic/int_add`."""
    _, _, _, suite, task, variant, representation = group
    more = [variant, representation] if suite == "nupa" else []
    return " ".join(filter(None, [task if suite == task else f"{suite}/{task}", *more]))


def group_entrant(group: Sequence[str]) -> Entrant:
    """Return the run, model and condition of a group."""
    run, model, condition = group[: len(ENTRANT)]
    return run, model, condition


def _kinds(findings: Sequence[ErrorFindings]) -> Sheet:
    """Return the kinds of errors that occur: how often, what they mean, and an example of each."""

    def example_text(example: WrongExample) -> str:
        read = example.answer if example.answer is not None else f"“{example.reply[-TEXT:].strip()}”"
        return f"{_cut(example.expected)} → {_cut(read)}"

    counts, flags, examples = Counter[str](), Counter[str](), dict[str, WrongExample]()
    for group in findings:
        counts.update(group.kinds)
        flags.update(group.flags)
        for kind, kept in group.examples.items():
            examples.setdefault(kind, kept[0])
    texts: Columns[str] = {
        "kind": str,
        "meaning": lambda kind: KINDS.get(kind, "matches no kind"),
        "example": lambda kind: example_text(examples[kind]),
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


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}…"


def _frequent_words(findings: Sequence[ErrorFindings], who: Columns[ErrorFindings]) -> Sheet:
    """Return the most frequent answers instead of the right words, by model and task."""
    rows = [
        [*(cell(group) for cell in who.values()), _cut(words), count(times), percent(times / group.examined)]
        for group in findings
        for words, times in group.words.most_common(COMMONEST)
    ]
    head = (*who, "wrong answer", "answers", "share of the wrong")
    return Sheet(title="The most frequent wrong answers", head=head, rows=rows, labels=3)


def _wrong_digits(end: str, findings: Sequence[ErrorFindings], who: Columns[ErrorFindings]) -> Sheet:
    """Return how often digits of the expected value are wrong, counted from its first or last digit."""
    rows = []
    for group in findings:
        if group.compared:
            shares = group.wrong_at(group.from_left if end == "first" else group.from_right)[:PLACES]
            digits = [percent(share.share, decimals=0) for share in shares]
            digits += [MISSING] * (PLACES - len(digits))
            rows.append([*(cell(group) for cell in who.values()), count(group.compared), *digits])
    title = f"Wrong digits by position, counted from the {end} digit of the expected value"
    head = (*who, "compared", *map(str, range(1, PLACES + 1)))
    return Sheet(title=title, head=head, rows=rows, labels=2)


def _binned(
    by: str,
    findings: Sequence[ErrorFindings],
    who: Columns[ErrorFindings],
    bins_of: Callable[[ErrorFindings], Sequence[CarryBin]],
) -> Sheet:
    """Return accuracy by number of carries, or by the length of the longest carry chain."""
    binned = [group for group in findings if bins_of(group)]
    sizes = sorted({(carries.first, carries.last) for group in binned for carries in bins_of(group)})

    def right(size: tuple[int, int | None], group: ErrorFindings) -> str:
        shares = [carries.right for carries in bins_of(group) if (carries.first, carries.last) == size]
        return percent(shares[0].share, shares[0].interval) if shares else MISSING

    columns = dict(who)
    for first, last in sizes:
        heading = f"{first}+" if last is None else f"{first}-{last}"
        if first == last:
            heading = str(first)
        columns[heading] = partial(right, (first, last))
    return Sheet.of(f"Accuracy of additions and subtractions by {by}", columns, binned, labels=2)


def _cost_per_correct(worth: Worth) -> str:
    cost = per_correct_text(worth.cost_usd, worth.cost_per_correct_usd)
    return at_least(cost, partial=not worth.all_priced)


def _rounded(tokens: float | None) -> str:
    return count(None if tokens is None else round(tokens))


def _unclassified(findings: Sequence[ErrorFindings], who: Columns[ErrorFindings]) -> Sheet:
    """Return examples of answers that match no kind, one of each group in turn."""
    kept = [[(group, example) for example in group.examples.get(UNCLASSIFIED, [])] for group in findings]
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


def _curve_data(curve: Curve | None) -> dict[str, object] | None:
    """Return a curve as a JSON object, or None if no trial has a length."""
    if curve is None:
        return None
    line = curve.line
    return {
        "state": curve.state,
        "intercept": line and line.intercept,
        "slope": line and line.slope,
        "points": curve.points,
        "at_90": data_of(curve.length_at(0.9)),
        "at_50": data_of(curve.length_at(0.5)),
    }
