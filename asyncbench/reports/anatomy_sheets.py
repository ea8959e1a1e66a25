"""The anatomy of wrong answers as sheets of cells."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from asyncbench.analysis.anatomy.counts import ErrorFindings, WrongExample
from asyncbench.analysis.anatomy.error import KINDS, ORDER, UNCLASSIFIED
from asyncbench.analysis.anatomy.numbers import GROUP, CarryBin, Group
from asyncbench.analysis.curves import DigitsCurve
from asyncbench.analysis.entrants import Entrant
from asyncbench.reports.cost.right_answers import Worth, best
from asyncbench.stats.proportions import Proportion
from asyncbench.store.schema import ENTRANT
from asyncbench.tables.headings import ACCURACY, FORMAT, PER_CORRECT, RIGHT_50, RIGHT_90
from asyncbench.tables.numbers import count, per_correct_text, percent
from asyncbench.tables.report import Sheet

COMMONEST = 4  # kinds that are named beside a model and task
PLACES = 12  # digits from either end that have a column
MOST_SHOWN = 12  # unclassified answers
TEXT = 40  # characters of a number that are shown

Names = Mapping[Entrant, str]


def task_of(group: Group) -> str:
    """Return what a group was asked, shortly: `nupa/add easy fraction`, `llm_arithmetic/int_add`."""
    _, _, _, suite, task, variant, representation = group
    more = [variant, representation] if suite == "nupa" else []
    return " ".join(filter(None, [task if suite == task else f"{suite}/{task}", *more]))


def entrant_of(group: Sequence[str]) -> Entrant:
    """Return who was asked."""
    run, model, condition = group[: len(ENTRANT)]
    return run, model, condition


def kinds(findings: Sequence[ErrorFindings]) -> Sheet:
    """Return all kinds that occur, with how often, what they mean and an example."""
    counts, flags, examples = Counter[str](), Counter[str](), dict[str, WrongExample]()
    for one in findings:
        counts.update(one.kinds)
        flags.update(one.flags)
        for kind, kept in one.examples.items():
            examples.setdefault(kind, kept[0])
    examined = counts.total()
    rows = [
        (
            kind,
            KINDS.get(kind, "matches no kind"),
            _example(examples[kind]),
            f"{counts[kind]:,}",
            f"{counts[kind] / examined:.1%}",
            f"{flags[kind]:,}" if kind in KINDS else "-",
        )
        for kind in sorted(counts, key=lambda kind: ORDER.get(kind, len(ORDER)))
    ]
    title, (meaning, example), counted = KINDS_TITLE, KINDS_TEXTS, KINDS_COUNTED
    narrow = [
        Sheet(title=title, head=("kind", meaning, *counted), rows=[(*r[:2], *r[3:]) for r in rows], labels=2),
        Sheet(
            title="An example of each kind (expected → answer)",
            head=("kind", example),
            rows=[r[::2][:2] for r in rows],
            labels=2,
        ),
    ]
    return Sheet(title=title, head=("kind", meaning, example, *counted), rows=rows, labels=3, instead=narrow)


KINDS_TITLE = "Kinds of wrong answers, in the order in which they are tried"
KINDS_TEXTS, KINDS_COUNTED = ("meaning", "example"), ("answers", "share", "all matches")


def _example(one: WrongExample) -> str:
    read = one.answer if one.answer is not None else f"“{one.reply[-TEXT:].strip()}”"
    return f"{_cut(one.expected)} → {_cut(read)}"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}…"


def by_group(findings: Sequence[ErrorFindings], names: Names) -> Sheet:
    """Return the commonest kinds of each model and task."""
    rows = [
        (
            names[entrant_of(one.group)],
            task_of(one.group),
            ", ".join(f"{kind} {n / one.examined:.0%}" for kind, n in one.kinds.most_common(COMMONEST)),
            f"{one.wrong:,}",
            f"{one.unread:,}",
            f"{one.examined:,}",
            f"{one.kinds[UNCLASSIFIED] / one.examined:.1%}",
            f"{one.too_short:,}",
            f"{one.too_long:,}",
        )
        for one in findings
        if one.examined
    ]
    head = (
        *("model", "suite/task", "most frequent kinds", "wrong", "no answer", "examined", UNCLASSIFIED),
        *("too short", "too long"),
    )
    return Sheet(title="Wrong answers by model and task", head=head, rows=rows, labels=3)


def by_place(findings: Sequence[ErrorFindings], names: Names) -> Iterator[Sheet]:
    """Yield how often each digit of the truth is wrong, counted from the first and from the last."""
    ends: dict[str, Callable[[ErrorFindings], Counter[int]]] = {
        "first": lambda one: one.from_left,
        "last": lambda one: one.from_right,
    }
    for end, wrong in ends.items():
        rows = []
        for one in findings:
            if one.compared:
                shares = [f"{at.share:.0%}" for at in one.wrong_at(wrong(one))[:PLACES]]
                rows.append(
                    (
                        names[entrant_of(one.group)],
                        task_of(one.group),
                        f"{one.compared:,}",
                        *shares,
                        *["-"] * (PLACES - len(shares)),
                    )
                )
        head = ("model", "suite/task", "compared", *map(str, range(1, PLACES + 1)))
        title = f"Wrong digits by position, counted from the {end} digit of the expected value"
        if rows:
            yield Sheet(title=title, head=head, rows=rows, labels=2)


def by_carries(findings: Sequence[ErrorFindings], names: Names) -> Iterator[Sheet]:
    """Yield accuracy by number of carries and by the longest ripple of one."""
    yield from _binned(
        "Accuracy of additions and subtractions by number of carries or borrows",
        findings,
        names,
        "by_carries",
    )
    yield from _binned(
        "Accuracy of additions and subtractions by length of the longest carry chain",
        findings,
        names,
        "by_chain",
    )


def _binned(title: str, findings: Sequence[ErrorFindings], names: Names, which: str) -> Iterator[Sheet]:
    bins: list[tuple[ErrorFindings, Mapping[tuple[int, int | None], CarryBin]]] = [
        (one, {(at.first, at.last): at for at in getattr(one, which)}) for one in findings
    ]
    sizes = sorted({size for _, own in bins for size in own})
    rows = [
        (
            names[entrant_of(one.group)],
            task_of(one.group),
            *(
                percent(own[size].right.share, own[size].right.interval) if size in own else "-"
                for size in sizes
            ),
        )
        for one, own in bins
        if own
    ]
    if rows:
        yield Sheet(
            title=title, head=("model", "suite/task", *(_range(*one) for one in sizes)), rows=rows, labels=2
        )


def _range(first: int, last: int | None) -> str:
    if last is None:
        return f"{first}+"
    return f"{first}" if first == last else f"{first}-{last}"


def by_worth(worths: Sequence[Worth], digits: Mapping[Group, DigitsCurve], names: Names) -> Sheet:
    """Return accuracy, form, digits and cost of each model and task."""
    rows = [
        (
            names[entrant_of(one.of)],
            task_of(one.of),
            percent(one.accuracy.share, one.accuracy.interval),
            percent(one.format_ok.share, one.format_ok.interval),
            str(digits[one.of].at_90) if one.of in digits else "-",
            str(digits[one.of].at_50) if one.of in digits else "-",
            _each(one),
        )
        for one in worths
    ]
    head = ("model", "suite/task", ACCURACY, FORMAT, RIGHT_90, RIGHT_50, PER_CORRECT)
    return Sheet(title="Accuracy, format, length and cost by model and task", head=head, rows=rows, labels=2)


def _each(one: Worth) -> str:
    each = one.cost_per_correct_usd
    return f"{per_correct_text(one.cost_usd, each)}{'' if each is None or one.all_priced else ' (known)'}"


def efficiency(
    worths: Sequence[Worth],
    order: Sequence[Entrant],
    names: Names,
    alike: Collection[Collection[Entrant]],
) -> Sheet:
    """Return accuracy beside what it takes; a mark where none that was asked the same is as good for less."""
    cheapest, tersest = (
        best(worths, spent, alike) for spent in ("cost_per_trial_usd", "reasoning_per_trial")
    )
    of = {entrant_of(one.of): one for one in worths}
    rows = [
        (
            names[entrant],
            percent(of[entrant].accuracy.share, of[entrant].accuracy.interval),
            _per_thousand(of[entrant].cost_per_trial_usd),
            _each(of[entrant]),
            _MARK[cheapest.get(entrant)],
            _rounded(of[entrant].reasoning_per_trial),
            _MARK[tersest.get(entrant)],
            _rounded(of[entrant].output_per_trial),
        )
        for entrant in order
        if entrant in of
    ]
    head = (
        *("model", ACCURACY, "cost per 1,000 trials", PER_CORRECT, "unbeaten on cost"),
        *("reasoning tokens per trial", "unbeaten on tokens", "output tokens per trial"),
    )
    return Sheet(title="Accuracy against cost and reasoning tokens", head=head, rows=rows)


_MARK = {True: "yes", False: "", None: "-"}  # None: there is nobody to compare with


def _per_thousand(cost: float | None) -> str:
    return "unknown" if cost is None else f"${1000 * cost:,.4f}"


def _rounded(tokens: float | None) -> str:
    return count(None if tokens is None else round(tokens))


def unclassified(findings: Sequence[ErrorFindings], names: Names) -> Iterator[Sheet]:
    """Yield examples of what has no kind, in turn of each group; nothing where all have one."""
    kept = [(one, one.examples.get(UNCLASSIFIED, [])) for one in findings]
    in_turn = [
        (one, examples[i])
        for i in range(max((len(examples) for _, examples in kept), default=0))
        for one, examples in kept
        if i < len(examples)
    ]
    rows = [
        (
            names[entrant_of(one.group)],
            task_of(one.group),
            ", ".join(map(_cut, example.operands)),
            _cut(example.expected),
            _cut(example.answer) if example.answer is not None else f"“{_cut(example.reply.strip())}”",
        )
        for one, example in in_turn[:MOST_SHOWN]
    ]
    if rows:
        head = ("model", "suite/task", "operands", "expected", "answer")
        yield Sheet(title="Examples of unclassified answers", head=head, rows=rows, labels=5)


def group_as_dict(group: Group) -> dict[str, str]:
    """Return a group as an object of JSON."""
    return dict(zip(GROUP, group, strict=True))


def proportion_as_dict(one: Proportion) -> dict[str, object]:
    """Return a share as an object of JSON."""
    return {"successes": one.successes, "trials": one.trials, "share": one.share, "interval": one.interval}
