"""The page on how suites differ from their documents: its figures, options and examples are the code's."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import yaml

from asyncbench.config.sweep import sweep_from
from asyncbench.published.integer_addition.report import FIGURES
from asyncbench.published.llm_arithmetic.report import MIN_DEPTH
from asyncbench.published.nupa.report import model_columns
from asyncbench.records import Reply
from asyncbench.store.schema import SCHEMAS
from asyncbench.suites import llm_arithmetic
from asyncbench.suites.integer_addition import STRING_TASKS
from asyncbench.suites.numbers import MAX_DIGITS, length_of, parts
from asyncbench.suites.nupa import operands
from asyncbench.suites.nupa.tasks import SETS, TASKS, template
from asyncbench.suites.table import SUITES
from tests.docs.blocks import ROOT, WHOLE, Block, check_commands
from tests.rows import each_row
from tests.suites.made import drafts_of, problem

PAGE = (ROOT / "docs" / "reference" / "deviations.md").read_text("utf-8")
SUITE_OF = {"addition": "integer_addition", "NUPA": "nupa"}  # by the last word of a heading
KIND = {"/": "fraction", "e": "scientific", ".": "float"}


def rows() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each row of the page's tables: the suite of its section, the head and the cells."""
    suite, head = "", list[str]()
    for before, line in pairwise(PAGE.splitlines()):
        if line.startswith("#"):
            suite = SUITE_OF.get(line.split()[-1], "llm_arithmetic")
        elif line.startswith("|---"):
            head = _cells(before)
        elif line.startswith("| ") and before.startswith("|"):
            yield suite, head, _cells(line)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def default(suite: str, *names: str) -> tuple[Any, ...]:  # Any: of any kind, as parameters are
    return tuple(SUITES[suite].parameters[name].default for name in names)


def of_lengths(name: str) -> str:
    lengths = TASKS[f"{name}_Integer_Integer_Integer"].lengths
    return f"`{name}` of integers {lengths[0]} to {lengths[-1]}"


def half_or_fewer(task: str, variant: str) -> float:
    """Return the share of a task's pairs whose shorter operand has half of the other's digits or fewer."""
    pairs = [
        sorted(
            length_of(parts(number, draft.representation), draft.representation) for number in draft.operands
        )
        for draft in drafts_of("nupa", tasks=task, variants=variant)
    ]
    return sum(2 * shorter <= longer for shorter, longer in pairs) / len(pairs)


def figures() -> dict[str, list[str]]:
    """Return what the row of each deviation says in figures, from the code."""
    least, most = "min_digits", "max_digits"
    depths, trials = default("llm_arithmetic", "depths", "trials")
    drawn = drafts_of("llm_arithmetic", variants="float_add", depths="2", trials=20_000)
    preset = SUITES["integer_addition"].presets["upstream-code"]
    reverse, rehearse = (STRING_TASKS[f"string_{name}"].lengths for name in ("reversal", "rehearsal"))
    gaps = sorted({operands.choose_by_operand(str(digit), -5, 5) for digit in range(1, 10)})
    sets = {name: sum(name in task.sets for task in TASKS.values()) for name in SETS}
    problems = sum(len(task.lengths) for task in TASKS.values() if "released" in task.sets)
    (per_length,) = default("nupa", "per_length")
    return {
        "depths": [f"{depths[0]}-{depths[-1]}, {trials} problems of each task and depth"],
        "decimals": [f"up to {max(number for one in drawn for number in one.operands)} at depth 2"],
        "an answer of 4,301 digits": [f"{MAX_DIGITS + 1:,}"],
        "decimals with 25 digits or more": [f"{llm_arithmetic._PUBLISHED_DIGITS + 1}"],
        "overview": [f"depth {MIN_DEPTH} and deeper"],
        "digits of an operand": [
            "{} to {} |".format(*default("integer_addition", least, most)),
            f"draws {preset[least]} to {preset[most]}",
        ],
        "length of texts": ["{} to {} (rev".format(*reverse), "{} to {} (reh".format(*rehearse)],
        "longest number": [f"{MAX_DIGITS:,} digits |"],
        "tasks": [f"{sets['paper41']} in the paper", f"{sets['released']} in", f"are {sets['full']}"],
        "lengths": [of_lengths("add"), of_lengths("max")],
        "problems of a length": [f"| {per_length} |", f"{problems * per_length:,} problems"],
        "difference of exponents, `add`": [f"{gaps}".strip("[]").replace("-", "−").replace(", 4", " and 4")],
        "hard operands, `max` and `min` of floats": [f"{operands._UNSHARED_FLOATS} pairs in 10"],
        "hard operands, scientific": [f"| {operands._SHARED_EXPONENTS * 10} %"],
        "`multiply_hard`": [f"{100 * half_or_fewer('multiply', 'hard'):.0f} pairs in 100"],
        "`multiply_easy`": [f"| at most {operands.EASY_DIGITS} |"],
    }


def test_every_figure_is_the_codes():
    deepest = llm_arithmetic.SUITE.parameters["depths"].parse
    assert deepest("1000") == (1000,)
    with pytest.raises(ValueError, match="1,000"):
        deepest("1001")
    said = {cells[0]: f"| {' | '.join(cells)} |" for _, _, cells in rows()}
    assert {name: texts for name, texts in figures().items() if any(t not in said[name] for t in texts)} == {}


OPTIONS = [
    pytest.param(suite, option, id=f"{cells[0]} {option}")
    for suite, head, cells in rows()
    if head[-1] == "for the document's own"
    for option in re.findall(r"`([^`]+)`|\*([^*]+)\*", cells[-1])
]


@pytest.mark.parametrize(("suite", "option"), OPTIONS)
def test_every_option_is_there(suite, option, tmp_path, monkeypatch):
    name = "".join(option)
    if name.startswith("configs/"):
        assert (ROOT / name).exists()
    elif name.startswith("asyncbench "):
        check_commands(Block("console", name, 0, None))
    elif ": " in name:
        monkeypatch.chdir(tmp_path)
        talk = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
        (tmp_path / "talk.json").write_text(json.dumps(talk))
        accept(suite, yaml.safe_load(name))
    else:
        graders = {grader for one in SUITES.values() for grader in one.graders}
        columns = {*SCHEMAS, *SCHEMAS["grades"].names, *FIGURES, *model_columns(intervals=False)}
        assert name in graders | columns | {*llm_arithmetic.ARITHMETIC_TASKS}


def accept(suite, given):
    """Load a sweep with a setting where it belongs."""
    if given.keys() <= {"seed", *SUITES[suite].parameters}:
        sweep_from(WHOLE | {"problems": [{"suite": suite, **given}]})
    elif {"context", "system"} & given.keys():
        sweep_from(WHOLE | {"conditions": [{"name": "own", **given}]})
    else:
        sweep_from(WHOLE | {"models": [{"model": "openai/gpt-5-mini", **given}]})


def test_what_the_page_says_of_nupas_words_is_so():
    (wording,) = [cells for suite, _, cells in rows() if suite == "nupa" and cells[0] == "wording"]
    ours = {task.task: template(task, "fixed") for task in TASKS.values()}
    published = {task.task: template(task, "reference") for task in TASKS.values()}

    # ours are the program's but for one word
    assert {task for task, question in ours.items() if question != published[task]} == {"min"}
    assert ("mininal" in published["min"], "minimal" in ours["min"]) == (True, True)
    assert all(question.endswith(" =") for question in ours.values())
    assert (" * " in ours["multiply"], "occurrence" in ours["count"]) == (True, True)

    # and differ from the paper's in what the page names
    assert ours["mod"].endswith(" =")
    assert not ours["sig"].endswith(".")
    assert "maximal" not in ours["min"]
    for words in ('"maximal"', "`mod` has no ` =`", "full stop", "`×`", '"occurance"', '"mininal"'):
        assert words in wording[1]
    assert wording[2] == 'as the program; "minimal"'


EXAMPLES = [(suite, head, cells) for suite, head, cells in rows() if head[0] == "reply"]


@each_row(("suite", "head", "cells"), EXAMPLES)
def test_every_example_is_graded_so(suite, head, cells):
    reply, right, *read = (cell.strip("`") if i < 2 else cell for i, cell in enumerate(cells[:-1]))
    kind = next((KIND[sign] for sign in KIND if sign in right), "integer")
    grades = SUITES[suite].grade(problem(suite, right, kind=kind), Reply(text=reply), "chat")
    assert head[2:-1] == [f"`{grade.grader}`" for grade in grades]
    assert read == [
        f"`{grade.answer}`, {'right' if grade.exact_match else 'wrong'}" if grade.answer else "nothing"
        for grade in grades
    ]


def test_each_grader_has_ten_examples_and_more():
    assert all(sum(suite == one for one, _, _ in EXAMPLES) > 10 for suite in SUITE_OF.values())
    assert len(OPTIONS) > 20
