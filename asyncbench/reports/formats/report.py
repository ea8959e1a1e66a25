"""`report --style formats`: the same problems with their numbers in several formats, beside plain digits."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import or_
from typing import Final

from asyncbench.analysis.cells import keep_skips
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import finest, names_of, sort_entrants
from asyncbench.analysis.folder_report import FolderReport, NothingToShowError, no_trials
from asyncbench.analysis.lost_trials import lost_notes
from asyncbench.analysis.pairing import Bits, kind_bits, marks_in
from asyncbench.analysis.served import note_of_simulated
from asyncbench.reports.effects import TOGETHER, EffectLine, read_settings
from asyncbench.reports.formats.counts import (
    EXAMPLES,
    FORMAT,
    PAIRS,
    STYLE,
    OperandFacts,
    facts_by_problem,
    lines_beside,
    marks_by_name,
    token_use,
    ways_by,
)
from asyncbench.reports.formats.rules import RuleFollowing, rule_following_in
from asyncbench.reports.standings.report import SKIPPED
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.headings import (
    ACCURACY,
    BESIDE_CHAT,
    BESIDE_NONE,
    BESIDE_PLAIN,
    BY_PAIR,
    BY_REMAINDER,
    TOKENS_BY_REMAINDER,
)
from asyncbench.tables.numbers import MISSING, count, counted_note, p_text, percent, points
from asyncbench.tables.report import Columns, Sheet

GROUP: Final = 3  # digits: of a token of many vocabularies, and of a group between commas
PAIRED: Final = (
    "Each format is compared with plain digits of the same model, on the problems asked in all of its "
    "formats. Differences are in percentage points (paired bootstrap). p: exact paired tests, "
    "Holm-corrected for all rows of a table."
)
TOKENS: Final = (
    "Input tokens are those that servers told. Tokens of an operand are an estimate: prompts of one task "
    "differ in their operands alone, so what grows with the digits of these is theirs (least squares)."
)
LENGTHS: Final = (
    "Mean length by what is left when it is divided by 3: {}. So compare formats within a column: across "
    "columns the length differs, too."
)
TOGETHER_ONLY: Final = "Tasks are shown of all together. `--models ALIAS` shows those of one model."
ONE_FORMAT: Final = (
    "All trials have plain digits, so there is no other format to compare. `configs/nupa-formats.yaml` "
    "asks in six."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats(FolderReport):
    """The figures of each format, over all models together, then model by model."""

    formats: tuple[EffectLine, ...]
    tasks: tuple[EffectLine, ...]  # of all models together, or of the only one
    remainders: tuple[EffectLine, ...]
    pairs: tuple[EffectLine, ...]  # of the larger or smaller of two decimals
    examples: tuple[EffectLine, ...]
    styles: tuple[EffectLine, ...]  # with a rule to carry out, beside the plain question
    rules: RuleFollowing
    rewritten: bool = field(metadata=HIDDEN)  # whether any numbers were asked in another format
    outcomes: Mapping[str, Mapping[str, int]] = field(metadata=HIDDEN)  # by name and format
    skipped: int  # trials that `stop_when` leaves out

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """None: a folder without trials has a report of its own, which says so."""
        return None

    def remarks(self) -> Iterator[str]:
        yield PAIRED if self.rewritten else ONE_FORMAT
        if any(line["tokens_per_operand"] is not None for line in self.formats):
            yield TOKENS
        if lengths := {line["remainder"]: line["mean_length"] for line in self.remainders}:
            digits = ", ".join(f"{remainder}: {mean:.1f}" for remainder, mean in lengths.items())
            yield LENGTHS.format(digits)
        if self.tasks[0]["name"] == TOGETHER:
            yield TOGETHER_ONLY
        yield from self.rules.remarks()
        yield from counted_note(self.skipped, SKIPPED)
        yield from lost_notes(self.outcomes)

    def sheets(self) -> Iterator[Sheet]:
        yield Sheet.of("Formats", FORMAT_COLUMNS, self.formats, labels=2)
        yield Sheet.of(f"By task, {self.tasks[0]['name']}", TASK_COLUMNS, self.tasks, labels=2)
        remainders = _rows_by(self.remainders, "remainder")
        yield Sheet.of("By length modulo 3", REMAINDER_COLUMNS, remainders, labels=2)
        pairs = _rows_by(self.pairs, "pair")
        yield Sheet.of("The larger or smaller of two decimals", PAIR_COLUMNS, pairs, labels=2)
        yield Sheet.of("Worked examples", EXAMPLE_COLUMNS, self.examples, labels=2)
        yield Sheet.of("Style of the question", STYLE_COLUMNS, self.styles, labels=2)
        yield from self.rules.sheets()


def formats_of(views: FolderViews) -> Formats:
    """Compare the formats in which numbers were asked on the same problems.

    Raises:
        StoreError: results cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    folder, skips, trials = views.chosen, keep_skips(views), marks_in(views)
    if not trials.marks:
        raise NothingToShowError(folder, no_trials(folder))
    settings, kinds, facts = read_settings(views, "trials"), kind_bits(views), facts_by_problem(views)
    ordered = {who: settings[who] for who in sort_entrants(trials.marks, views.manifest)}
    ways = ways_by(ordered, FORMAT)
    marks, names = marks_by_name(ways, trials), names_of(ways)
    shown, first = finest(kind[1:] for kind in kinds), next(iter(marks))
    by_task = (
        (_union(kinds[kind].values()), {"task": f"{kind[0]}/{shown[kind[1:]]}"}) for kind in sorted(kinds)
    )
    formats = lines_beside(FORMAT, marks)
    remainders = lines_beside(FORMAT, marks, _by_remainder(kinds.values()))

    # The tokens of each format.
    tokens = {(names[way], value): each for (way, value), each in token_use(views, ways, facts).items()}
    for line in (*formats, *remainders):
        used, remainder = tokens.get((line["name"], line["value"])), line.get("remainder")
        line["input_tokens"] = None if used is None else used.per_prompt
        line["tokens_per_operand"] = None if used is None else used.per_operand.get(remainder)
        line["tokens_per_digit"] = None if used is None else used.per_digit.get(remainder)

    ruled = [who for who, setting in ordered.items() if setting.value_of(STYLE.key) == "rules"]
    return Formats(
        folder=str(folder),
        simulated_note=note_of_simulated(views, table="answers"),
        formats=formats,
        tasks=lines_beside(FORMAT, {first: marks[first]}, by_task),
        remainders=remainders,
        pairs=lines_beside(FORMAT, marks, _by_pair(trials.problem_ids, facts)),
        examples=lines_beside(EXAMPLES, marks_by_name(ways_by(ordered, EXAMPLES), trials)),
        styles=lines_beside(STYLE, marks_by_name(ways_by(ordered, STYLE), trials)),
        rules=rule_following_in(views, ruled),
        rewritten=any(setting.value_of(FORMAT.key) for setting in ordered.values()),
        outcomes={
            f"{names[way]}, {value}": trials.outcomes(who, trials.marks[who].asked)
            for way, values in ways.items()
            for value, who in values.items()
        },
        skipped=skips.trials,
    )


def _by_remainder(kinds: Iterable[Mapping[int | None, Bits]]) -> Iterator[tuple[Bits, EffectLine]]:
    """Yield the problems by their length modulo 3, with their mean length."""
    lengths = defaultdict[int, Bits](int)
    for by_length in kinds:
        for length, bits in by_length.items():
            if length is not None:
                lengths[length] |= bits
    for remainder in range(GROUP):
        chosen = {length: bits for length, bits in lengths.items() if length % GROUP == remainder}
        if problems := sum(bits.bit_count() for bits in chosen.values()):
            mean = sum(length * bits.bit_count() for length, bits in chosen.items()) / problems
            yield _union(chosen.values()), {"remainder": remainder, "mean_length": mean}


def _by_pair(
    problem_ids: Sequence[str], facts: Mapping[str, OperandFacts]
) -> Iterator[tuple[Bits, EffectLine]]:
    """Yield the problems that compare two decimals, by how these lie."""
    pairs = [facts[problem_id].pair if problem_id in facts else None for problem_id in problem_ids]
    for pair in PAIRS:
        yield _union(1 << place for place, its_pair in enumerate(pairs) if its_pair == pair), {"pair": pair}


def _union(problems: Iterable[Bits]) -> Bits:
    return reduce(or_, problems, 0)


def _tokens(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.1f}"


def _compared(beside: str) -> Columns[EffectLine]:
    """Return the columns of an accuracy and what it is compared with."""
    return {
        "problems": lambda line: count(line["problems"]),
        ACCURACY: lambda line: percent(line["accuracy"], line["interval"]),
        beside: lambda line: points(line["difference"], line["difference_interval"]),
        "p (Holm)": lambda line: p_text(line["p_holm"]),
    }


FORMAT_COLUMNS: Final[Columns[EffectLine]] = {
    "model": lambda line: line["name"],
    "format": lambda line: line["value"],
    **_compared(BESIDE_PLAIN),
    "input tokens per trial": lambda line: _tokens(line["input_tokens"]),
    "tokens per operand": lambda line: _tokens(line["tokens_per_operand"]),
}
TASK_COLUMNS: Final[Columns[EffectLine]] = {
    "suite/task": lambda line: line["task"],
    "format": lambda line: line["value"],
    **_compared(BESIDE_PLAIN),
}
Parts = Mapping[object, EffectLine]  # of one model and format, by what the problems are parted by


def _rows_by(lines: Iterable[EffectLine], key: str) -> Iterable[Parts]:
    """Return a row for each model and format, with its lines by one of their figures."""
    rows = defaultdict[tuple[str, str], dict[object, EffectLine]](dict)
    for line in lines:
        rows[line["name"], line["value"]][line[key]] = line
    return rows.values()


def _columns_by(headings: Mapping[object, str]) -> Columns[Parts]:
    """Return the columns of accuracies side by side, after those that name a row."""

    def share(row: Parts, key: object) -> str:
        return percent(row[key]["accuracy"], row[key]["interval"]) if key in row else MISSING

    return {
        "model": lambda row: next(iter(row.values()))["name"],
        "format": lambda row: next(iter(row.values()))["value"],
        "problems": lambda row: ", ".join(
            count(row[key]["problems"]) if key in row else "0" for key in headings
        ),
        **{heading: partial(share, key=key) for key, heading in headings.items()},
    }


def _digit_tokens(row: Parts, remainder: int) -> str:
    value = row[remainder]["tokens_per_digit"] if remainder in row else None
    return MISSING if value is None else f"{value:.2f}"


REMAINDER_COLUMNS: Final[Columns[Parts]] = {
    **_columns_by(dict(enumerate(BY_REMAINDER))),
    **{heading: partial(_digit_tokens, remainder=rest) for rest, heading in enumerate(TOKENS_BY_REMAINDER)},
}
PAIR_COLUMNS: Final[Columns[Parts]] = _columns_by(dict(zip(PAIRS, BY_PAIR, strict=True)))
STYLE_COLUMNS: Final[Columns[EffectLine]] = {
    "model": lambda line: line["name"],
    "style": lambda line: line["value"],
    **_compared(BESIDE_CHAT),
}
EXAMPLE_COLUMNS: Final[Columns[EffectLine]] = {
    "model": lambda line: line["name"],
    "worked examples": lambda line: line["value"],
    **_compared(BESIDE_NONE),
}
