"""Counts behind the formats of numbers: entrants asked alike but for one setting, operands, and tokens."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import fsum
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, names_of
from asyncbench.analysis.pairing import ALL, Bits, Marked, Marks, common_marks
from asyncbench.reports.effects import (
    TOGETHER,
    EffectLine,
    PromptSettings,
    comparisons,
    correct_for_tests,
    joined_marks,
)
from asyncbench.suites.numbers import parts

Way = tuple[str, str, str]  # run, model, and what its conditions set beside the varied setting
Ways = Mapping[Way, Mapping[str, Entrant]]  # the entrants of each by the value of that setting
MarksByName = Mapping[str, Mapping[str, Marks]]  # name of a model → value → marks


# ── entrants that were asked alike but for one setting ───────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    """A setting of conditions whose values are compared with one of them."""

    key: str
    baseline: str
    alone: bool = False  # whether who has one value is shown, where nobody has several
    word: Callable[[Any], str]  # of a value; None: it is not set


FORMAT: Final = Varied(
    key="digits",
    baseline="plain",
    alone=True,
    word=lambda forms: " and ".join(forms or ["plain"]).replace("_", "-"),
)
EXAMPLES: Final = Varied(
    key="shots", baseline="none", word=lambda shots: "none" if shots is None else str(shots)
)
STYLE: Final = Varied(key="style", baseline="chat", word=str)
# Words that ask for a format belong to it, and so do examples that are written in it.
_WORDS: Final = frozenset({"system", "template", "turns_digest"})


def ways_by(settings: Mapping[Entrant, PromptSettings], varied: Varied) -> Ways:
    """Return the entrants by the value of a setting, with those of the same model and all else alike.

    The baseline comes first. Who has but one value is left out, unless everybody has and that is shown.
    """
    ways, words = defaultdict[Way, dict[str, Entrant]](dict), defaultdict[Way, set[str]](set)
    for who, setting in settings.items():
        run, model, condition = who
        overridden = {
            name: value for name, value in setting.params.items() if setting.model_params.get(name) != value
        }
        others = {name: v for name, v in {**setting.condition, **overridden}.items() if name not in _WORDS}
        value = varied.word(others.pop(varied.key, None))
        if varied is not FORMAT:
            others.setdefault(FORMAT.key, None)  # plain digits are named, too
        way = (run, model, ", ".join(_named_settings(others)))
        words[way].add(value)
        ways[way][f"{value} ({condition})" if value in ways[way] else value] = who
    several = {way: values for way, values in ways.items() if len(words[way]) > 1}
    return {
        way: dict(sorted(values.items(), key=lambda entry: entry[0] != varied.baseline))
        for way, values in (several or (ways if varied.alone else {})).items()
    }


def _named_settings(settings: Mapping[str, object]) -> Iterator[str]:
    """Yield each setting of a condition as names have it."""
    for name, value in settings.items():
        if name == FORMAT.key:
            yield FORMAT.word(value)
        elif (name, value) != ("style", "chat"):
            yield f"{name}={value if isinstance(value, str) else orjson.dumps(value).decode()}"


def marks_by_name(ways: Ways, trials: Marked) -> MarksByName:
    """Return the marks of each value on the problems that were asked with all: of all together first."""
    names = names_of(ways)
    marks = {
        names[way]: common_marks({value: trials.marks[who] for value, who in values.items()})
        for way, values in ways.items()
    }
    values = list(dict.fromkeys(value for by_value in marks.values() for value in by_value))
    whole = [by_value for by_value in marks.values() if len(by_value) == len(values)]
    if len(marks) == 1 or len(whole) < 2:
        return marks
    together = {value: joined_marks(by_value[value] for by_value in whole) for value in values}
    return {TOGETHER: together, **marks}


def lines_beside(
    varied: Varied, marks: MarksByName, parts: Iterable[tuple[Bits, EffectLine]] = ((ALL, {}),)
) -> tuple[EffectLine, ...]:
    """Return the lines of a table: each value beside the baseline, on each part of the problems.

    Args:
        varied: whose values they are.
        marks: of each model and value.
        parts: the problems of each, and what its lines have beside; without problems it has none.
    """
    lines: list[EffectLine] = []
    for problems, named in parts:
        for name, by_value in marks.items():
            chosen = {value: each.restrict(problems) for value, each in by_value.items()}
            if any(each.trials for each in chosen.values()):
                baseline = varied.baseline if varied.baseline in chosen else None
                lines += [{"name": name, **named, **line} for line in comparisons(chosen, baseline=baseline)]
    correct_for_tests(lines)
    return tuple(lines)


# ── operands ─────────────────────────────────────────────────────────────────────────────────────

# Two decimals of a `max` or `min`, by an example.
MISLEADING, SAME_WHOLE, OTHER_WHOLE = "9.11 < 9.9", "9.1 < 9.23", "8.5 < 9.1"
PAIRS: Final = (MISLEADING, SAME_WHOLE, OTHER_WHOLE)


def pair_of(operands: Sequence[str]) -> str | None:
    """Return how two decimals lie: where they are equal before the point, the decimals may mislead.

    They do where those of the smaller number, read as a whole number, are the larger ones: 11 and 9.
    None: these are no two decimals.
    """
    try:
        (whole, decimals), (larger_whole, larger_decimals) = (
            parts(text, "float") for text in sorted(operands, key=Decimal)
        )
    except (ArithmeticError, ValueError):
        return None
    if int(whole) != int(larger_whole):
        return OTHER_WHOLE
    return MISLEADING if int(decimals) > int(larger_decimals) else SAME_WHOLE


class OperandFacts(NamedTuple):
    """What is known of the operands of one problem."""

    digits: int  # of all of them
    operands: int
    pair: str | None  # None: they are no two decimals that are compared


def facts_by_problem(views: FolderViews) -> dict[str, OperandFacts]:
    """Return the facts of the operands of all problems.

    Raises:
        ProblemSetError: a copy of a problem set is damaged.
    """
    facts = dict[str, OperandFacts]()
    for batch in views.problems(["problem_id", "suite", "task", "representation", "operands"]):
        for problem_id, suite, task, form, operands in zip(
            *map(pa.Array.to_pylist, batch.columns), strict=True
        ):
            compared = suite == "nupa" and task in ("max", "min") and form == "float"
            facts[problem_id] = OperandFacts(
                digits=sum(map(str.isdigit, "".join(operands))),
                operands=len(operands),
                pair=pair_of(operands) if compared else None,
            )
    return facts


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────

_TOKENS: Final = """
WITH used AS (
    SELECT way, value, suite, task, variant, representation, length % 3 AS remainder, problem_id,
        coalesce(digits, 0) AS digits, coalesce(operands, 0) AS operands,
        max(formats) AS formats, avg(input_tokens) AS tokens
    FROM answers JOIN ways USING (run, model, condition) LEFT JOIN operands USING (problem_id)
    WHERE input_tokens IS NOT NULL GROUP BY ALL
), common AS (
    SELECT way, problem_id FROM used GROUP BY ALL HAVING count(*) = max(formats)
)
SELECT way, value, suite, task, variant, representation, remainder, count(*) AS prompts,
    sum(operands) AS operands, sum(digits) AS digits, sum(tokens) AS tokens,
    sum(digits * digits) AS squares, sum(digits * tokens) AS products
FROM used SEMI JOIN common USING (way, problem_id) GROUP BY ALL
"""


class TokenUse(NamedTuple):
    """Input tokens of the prompts of one value, on the problems that were asked with all of them."""

    per_prompt: float
    # Estimates, by the length modulo 3 and of all lengths (None); none where lengths do not differ.
    per_operand: Mapping[int | None, float]
    per_digit: Mapping[int | None, float]


def token_use(
    views: FolderViews, ways: Ways, facts: Mapping[str, OperandFacts]
) -> dict[tuple[Way, str], TokenUse]:
    """Return the input tokens of each value of each way, after `marks_in`."""
    ordered = list(ways)
    rows = [
        (*who, n, value, len(ways[way])) for n, way in enumerate(ordered) for value, who in ways[way].items()
    ]
    names = ("run", "model", "condition", "way", "value", "formats")
    views.put("ways", pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))))
    digits, operands = [each.digits for each in facts.values()], [each.operands for each in facts.values()]
    views.put("operands", pa.table({"problem_id": list(facts), "digits": digits, "operands": operands}))

    sums = defaultdict[tuple[Way, str], list[Mapping[str, Any]]](list)
    for row in views.rows(_TOKENS):
        sums[ordered[row["way"]], row["value"]].append(row)
    return {key: _use_of(rows) for key, rows in sums.items()}


def _use_of(rows: Iterable[Mapping[str, Any]]) -> TokenUse:
    """Estimate the tokens of operands: of all that a prompt of a task holds, only these differ.

    Tokens are a line over digits, with one slope and a beginning for each task (least squares). What is
    above the beginning are the tokens of the operands.
    """
    by_kind = defaultdict[tuple[str, ...], list[Mapping[str, Any]]](list)
    for row in rows:
        by_kind[row["suite"], row["task"], row["variant"], row["representation"]].append(row)
    added = ("prompts", "operands", "digits", "tokens", "squares", "products")
    totals = {
        kind: {name: fsum(row[name] for row in kept) for name in added} for kind, kept in by_kind.items()
    }

    spread = fsum(each["squares"] - each["digits"] ** 2 / each["prompts"] for each in totals.values())
    shared = fsum(
        each["products"] - each["digits"] * each["tokens"] / each["prompts"] for each in totals.values()
    )
    per_prompt = fsum(each["tokens"] for each in totals.values()) / fsum(
        each["prompts"] for each in totals.values()
    )
    if not spread:
        return TokenUse(per_prompt, {}, {})

    slope = shared / spread
    sums = defaultdict[int | None, Counter[str]](Counter)
    for kind, kept in by_kind.items():
        beginning = (totals[kind]["tokens"] - slope * totals[kind]["digits"]) / totals[kind]["prompts"]
        for row in (row for row in kept if row["operands"]):
            used = {"tokens": row["tokens"] - row["prompts"] * beginning}
            for remainder in {row["remainder"], None}:
                sums[remainder].update(used | {name: row[name] for name in ("operands", "digits")})
    return TokenUse(
        per_prompt,
        *(
            {rest: each["tokens"] / each[name] for rest, each in sums.items()}
            for name in ("operands", "digits")
        ),
    )
