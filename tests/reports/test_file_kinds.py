"""Files in the forms that people have: told by `problems inspect`, asked and graded right by its lines."""

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import asyncbench as ab
from asyncbench.errors import ProblemSetError
from asyncbench.problems.opening import open_set
from asyncbench.records import Reply
from asyncbench.suites.custom import grade
from tests.commands import asyncbench_here, succeeded

ONE_LETTER = "Answer with one letter."
CITY = {"question": "Capital of France?"}
CITIES = ["Rome", "Paris", "Oslo", "Bern"]
SKY = {"question": "Which is the sky?"}
SKIES = ["blue", "red", "green", "grey"]
ASKED = f"Capital of France?\n\nA. Rome\nB. Paris\nC. Oslo\nD. Bern\n\n{ONE_LETTER}"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A file, and what is made of it."""

    name: str  # of the file
    rows: list[dict[str, Any]] | str  # a text: as it is
    grader: str
    asked: str  # for the first row
    expected: tuple[str, ...]
    right: str = ""  # a reply to the first row, beside its expected answer
    wrong: str

    def write(self, folder: Path) -> Path:
        """Write it as its ending says, and return its path."""
        path = folder / self.name
        if isinstance(self.rows, str):
            path.write_text(self.rows)
        elif path.suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(self.rows), path)
        else:
            path.write_text("\n".join(map(json.dumps, self.rows)))
        return path


def in_both_forms(kind: Kind) -> list[Kind]:
    """Return a file as JSON lines and as Parquet."""
    return [replace(kind, name=f"{kind.name}.{ending}") for ending in ("jsonl", "parquet")]


def choice(form: str, rows: list[dict[str, Any]] | str, *, ending: str = "jsonl", asked: str = ASKED) -> Kind:
    """Return a file of which the second choice is right, then the first."""
    return Kind(
        name=f"{form}.{ending}",
        rows=rows,
        grader="choice",
        asked=asked,
        expected=("B", "A"),
        right="It is **B**, not A.",
        wrong="A",
    )


def lettered(columns: list[str], answers: tuple[Any, Any], answer: str = "answer") -> list[dict[str, Any]]:
    """Return two rows with a column for each choice."""
    return [
        {**asked, **dict(zip(columns, choices, strict=True)), answer: right}
        for asked, choices, right in zip((CITY, SKY), (CITIES, SKIES), answers, strict=True)
    ]


def labelled(label: str, text: str) -> dict[str, str]:
    """Return a choice as an object."""
    return {"label": label, "text": text}


MMLU = [CITY | {"choices": CITIES, "answer": 1}, SKY | {"choices": SKIES, "answer": 0}]
ARC = [
    CITY | {"choices": {"text": CITIES, "label": ["A", "B", "C", "D"]}, "answerKey": "B"},
    SKY | {"choices": {"text": SKIES[:2], "label": ["1", "2"]}, "answerKey": "1"},
]
KINDS = [
    choice("mmlu", MMLU, ending="parquet"),
    choice("mmlu", MMLU),
    choice("arc", ARC, ending="parquet"),
    choice("arc", ARC),
    choice("letters", lettered(list("ABCD"), ("B", "(a)"))),
    choice("texts", lettered(["option_a", "option_b", "option_c", "option_d"], ("Paris", " BLUE"))),
    choice("medmcqa", lettered(["opa", "opb", "opc", "opd"], (1, 0), "cop")),
    choice("counted from one", lettered(["option1", "option2", "option3", "option4"], ("2", "1"))),
    choice(
        "from one",
        [
            CITY | {"options": CITIES, "answer": 2},
            SKY | {"options": SKIES, "answer": 1},
            SKY | {"options": SKIES[::-1], "answer": 4},
        ],
    ),
    choice(
        "hellaswag",
        [
            {"ctx": "Capital of France?", "endings": CITIES, "label": "1"},
            {"ctx": "Which is the sky?", "endings": SKIES, "label": "0"},
        ],
    ),
    choice(
        "medqa",
        [
            CITY | {"options": dict(zip("ABCD", CITIES, strict=True)), "answer": "Paris"},
            SKY | {"options": dict(zip("ABCD", SKIES, strict=True)), "answer": "blue"},
        ],
        ending="parquet",
    ),
    choice(
        "commonsenseqa",
        [
            CITY | {"choices": [labelled("A", "Rome"), labelled("B", "Paris")], "answerKey": "B"},
            SKY | {"choices": [labelled("A", "blue"), labelled("B", "red")], "answerKey": "A"},
        ],
        asked=f"Capital of France?\n\nA. Rome\nB. Paris\n\n{ONE_LETTER}",
    ),
    choice(
        "aqua",
        [
            CITY | {"options": ["A)Rome", "B)Paris", "C)Oslo", "D)Bern"], "correct": "B"},
            SKY | {"options": ["A)blue", "B)red"], "correct": "A"},
        ],
    ),
    choice(
        "inspect",
        "input,choices,target,id\n"
        'Capital of France?,"[""Rome"",""Paris"",""Oslo"",""Bern""]",B,1\n'
        'Which is the sky?,"[""blue"",""red""]",A,2\n',
        ending="csv",
    ),
    choice(
        "pandas",
        "question,choices,answer\n"
        "Capital of France?,\"['Rome', 'Paris', 'Oslo', 'Bern']\",1\n"
        "Which is the sky?,\"['blue', 'red']\",0\n",
        ending="csv",
    ),
    choice(
        "mmlu without a header",
        "Capital of France?,Rome,Paris,Oslo,Bern,B\nWhich is the sky?,blue,red,red,grey,A\n",
        ending="csv",
    ),
    choice(
        "columns",
        "question,A,B,C,D,answer\nCapital of France?,Rome,Paris,Oslo,Bern,B\n"
        "Which is the sky?,blue,red,green,,A\n",
        ending="csv",
    ),
    choice(
        "winogrande",
        [
            {"sentence": "Rome beat Paris, so _ won.", "option1": "Rome", "option2": "Paris", "answer": "2"},
            {
                "sentence": "Rome lost to Paris, as _ slept.",
                "option1": "Rome",
                "option2": "Paris",
                "answer": "1",
            },
        ],
        asked=f"Rome beat Paris, so _ won.\n\nA. Rome\nB. Paris\n\n{ONE_LETTER}",
    ),
    choice(
        "openbookqa",
        [
            {"question_stem": row["question"], **{name: row[name] for name in ("choices", "answerKey")}}
            for row in ARC
        ],
    ),
    choice(
        "listed already",
        [
            {"prompt": "Paris is in (A) Asia (B) Europe?", "choices": ["Asia", "Europe"], "answer": 1},
            {"prompt": "Rome is in (A) Europe (B) Asia?", "choices": ["Europe", "Asia"], "answer": 0},
        ],
        asked="Paris is in (A) Asia (B) Europe?",
    ),
    *in_both_forms(
        Kind(
            name="boolq",
            rows=[
                {"question": "is rain wet", "answer": True, "passage": "Rain is water."},
                {"question": "is fire wet", "answer": False, "passage": "Fire is hot."},
            ],
            grader="text",
            asked="Rain is water.\n\nis rain wet",
            expected=("true", "false"),
            right="Yes.",
            wrong="No",
        )
    ),
    *in_both_forms(
        Kind(
            name="triviaqa",
            rows=[
                CITY | {"answer": {"value": "Paris", "aliases": ["Paname", "City of Light"], "type": "Wiki"}},
                {
                    "question": "Who wrote Ulysses?",
                    "answer": {"value": "Joyce", "aliases": [], "type": "Wiki"},
                },
            ],
            grader="text",
            asked="Capital of France?",
            expected=("Paris", "Joyce"),
            right="paname",
            wrong="Rome",
        )
    ),
    Kind(
        name="squad.parquet",
        rows=[CITY | {"answers": {"text": ["Paris", "Paris, France"], "answer_start": [3, 3]}}],
        grader="text",
        asked="Capital of France?",
        expected=("Paris",),
        right="Paris, France",
        wrong="France",
    ),
    Kind(
        name="promptfoo.csv",
        rows="question,__expected\nCapital of France?,contains: Paris\n6 x 7?,equals: 42\n1?,1\n",
        grader="",  # each row has its own
        asked="Capital of France?",
        expected=("Paris", "42", "1"),
        right="It is Paris.",
        wrong="Rome",
    ),
    Kind(
        name="promptfoo vars.csv",
        rows="city,question,__expected\nParis,Which country?,contains: France\nRome,Who?,contains: Italy\n",
        grader="",
        asked="Which country?",  # with a `wording` the other variables stand in it
        expected=("France", "Italy"),
        right="In France.",
        wrong="Italy",
    ),
    Kind(
        name="promptfoo numbered.csv",
        rows="question,__expected1,__description,__metadata:topic\nCapital of France?,contains: Paris,a,b\n",
        grader="",
        asked="Capital of France?",
        expected=("Paris",),
        right="It is Paris.",
        wrong="Rome",
    ),
    Kind(
        name="inspect.json",
        rows=json.dumps(
            [
                {"input": "6 x 7?", "target": "42", "id": "HumanEval/0", "metadata": {"level": 1}},
                {"input": "1 + 1?", "target": "2", "id": "HumanEval/1", "metadata": {"level": 2}},
            ]
        ),
        grader="number",
        asked="6 x 7?",
        expected=("42", "2"),
        right="It is 42.",
        wrong="0",
    ),
    *in_both_forms(
        Kind(
            name="messages",
            rows=[{"messages": [{"role": "user", "content": "6 x 7?"}], "answer": "42"}],
            grader="number",
            asked="6 x 7?",
            expected=("42",),
            wrong="41",
        )
    ),
    Kind(
        name="messages as JSON.csv",
        rows='prompt,answer\n"[{""role"": ""user"", ""content"": [{""text"": ""6 x 7?""}]}]",42\n',
        grader="number",
        asked="6 x 7?",
        expected=("42",),
        wrong="41",
    ),
    Kind(
        name="gsm8k.jsonl",
        rows=[{"question": "What is 6 x 7?", "answer": "6 x 7 = <<6*7=42>>42\n#### 42"}],
        grader="number",
        asked="What is 6 x 7?",
        expected=("6 x 7 = <<6*7=42>>42\n#### 42",),
        right="The answer is 42.",
        wrong="6 x 7 = 41",
    ),
    Kind(
        name="math.jsonl",
        rows=[
            {
                "problem": "Half of x?",
                "level": "Level 1",
                "solution": "It is $x/2$, so $\\boxed{\\frac{x}{2}}$.",
            },
            {"problem": "1 + 1?", "level": "Level 1", "solution": "We get $\\boxed{2}$."},
        ],
        grader="math",
        asked="Half of x?",
        expected=("It is $x/2$, so $\\boxed{\\frac{x}{2}}$.", "We get $\\boxed{2}$."),
        right="$\\boxed{x/2}$",
        wrong="$\\boxed{x}$",
    ),
    Kind(
        name="math 500.jsonl",
        rows=[
            {"problem": "Polar form?", "solution": "Long.", "answer": "\\left( 3, \\frac{\\pi}{2} \\right)"},
            {"problem": "1 + 1?", "solution": "Short.", "answer": "2"},
            {"problem": "Her name?", "solution": "She.", "answer": "\\text{Evelyn}"},
        ],
        grader="math",
        asked="Polar form?",
        expected=("\\left( 3, \\frac{\\pi}{2} \\right)", "2", "\\text{Evelyn}"),
        right="$\\boxed{(3, \\pi/2)}$",
        wrong="$\\boxed{(3, \\pi)}$",
    ),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_form_is_told_and_its_lines_ask_and_grade_it(kind, tmp_path):
    path = kind.write(tmp_path)
    found = ab.inspect_problems(path)
    (entry,) = yaml.safe_load(found.sweep)["problems"]
    first, *others = open_set(**entry).read()

    assert found.grader == (kind.grader or None)
    assert {shown.outcome for shown in found.examples} == {"correct"}
    assert first.question == found.examples[0].messages[-1]["content"] == kind.asked
    assert tuple(problem.expected for problem in (first, *others))[: len(kind.expected)] == kind.expected
    for reply, right in (
        (kind.expected[0], True),
        (kind.right or kind.expected[0], True),
        (kind.wrong, False),
    ):
        (verdict,) = grade(first, Reply(text=reply))
        assert verdict.exact_match is right, reply


WARNED = {
    "choices of NumPy": (
        "question,choices,answer\nQ?,['x' 'y' 'z'],1\nR?,['s' 't'],0\n",
        "'choices' seems to hold",
    ),
    "two assertions": (
        "question,__expected1,__expected2\nQ?,equals: 1,contains: 1\n",
        "'__expected1' counts. Others are not read: __expected2.",
    ),
}


@pytest.mark.parametrize(("text", "warning"), WARNED.values(), ids=WARNED)
def test_what_is_left_out_of_a_question_or_its_grading_is_warned_of(text, warning, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(text)
    assert [warning in line for line in ab.inspect_problems(path).warnings()] == [True]


def test_programs_that_tests_would_grade_are_named_as_such(tmp_path):
    path = tmp_path / "humaneval.jsonl"
    columns = ("task_id", "prompt", "canonical_solution", "test", "entry_point")
    path.write_text(json.dumps(dict.fromkeys(columns, "x")))
    with pytest.raises(ProblemSetError, match="seem to be programs, which asyncbench does not run"):
        ab.inspect_problems(path)


@pytest.mark.parametrize("text", [None, {"title": ["Paris"]}, "", "Capital of France?"])
def test_a_context_that_is_no_text_or_is_asked_already_is_left_out(text, tmp_path):
    rows = [CITY | {"answer": "Paris", "context": text}]
    found = ab.inspect_problems(
        Kind(name="own.jsonl", rows=rows, grader="", asked="", expected=(), wrong="").write(tmp_path)
    )

    assert found.wording is None
    assert found.unused == ("context",)


def test_the_lines_of_a_file_with_choices_run(tmp_path):
    path = KINDS[0].write(tmp_path)
    shown = succeeded(asyncbench_here("problems", "inspect", path)).stdout
    sweep = tmp_path / "mmlu.yaml"
    lines = shown.partition("For your sweep file:")[2]
    sweep.write_text(f"name: mmlu\nmodels: [simulated/oracle]\nout: {tmp_path / 'out'}\n{lines}")

    assert "Choices are read from 'choices' (guessed from its name) and asked as A-D." in shown
    assert "An answer is a number from 0." in shown
    succeeded(asyncbench_here("run", sweep))
    assert sorted(
        (row["answer"], row["outcome"]) for row in ab.read_trials(tmp_path / "out").to_pylist()
    ) == [
        ("A", "correct"),
        ("B", "correct"),
    ]


def test_the_flags_of_a_run_name_columns_of_choices_as_inspect_does(tmp_path):
    path = next(kind for kind in KINDS if kind.name == "columns.csv").write(tmp_path)
    flags = (
        "--suite",
        "custom",
        "--grader",
        "choice",
        "--columns",
        "choices=A+B+C+D",
        "--out",
        tmp_path / "out",
    )
    succeeded(asyncbench_here("run", "--model", "simulated/oracle", "--problems", path, *flags))

    assert {trial["outcome"] for trial in ab.read_trials(tmp_path / "out").to_pylist()} == {"correct"}


@pytest.mark.long
def test_files_of_all_forms_are_asked_in_one_sweep_and_graded_right(tmp_path):
    entries = list[dict[str, Any]]()
    for kind in KINDS:
        entries += yaml.safe_load(ab.inspect_problems(kind.write(tmp_path)).sweep)["problems"]
    sweep = {
        "name": "all",
        "problems": entries,
        "models": [{"model": "simulated/oracle", "price": {"input": 0, "output": 0}}],
        "out": str(tmp_path / "out"),
    }
    asyncio.run(ab.run_sweep(sweep))
    trials = ab.read_trials(tmp_path / "out").to_pylist()

    assert len({trial["problem_set"] for trial in trials}) >= 10
    assert [trial for trial in trials if trial["outcome"] != "correct"] == []
