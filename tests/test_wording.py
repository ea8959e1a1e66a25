"""Problems in other words and with their numbers in other forms, from the sweep file to the grade."""

import asyncio
import json
from typing import get_args

import pytest

import asyncbench as ab
from asyncbench.config.questions import ConditionEntry, DigitForm
from asyncbench.errors import ConfigError
from asyncbench.planning.sweep_plan import plan
from asyncbench.run.summary import Exit
from asyncbench.suites.numbers import DIGIT_FORMS
from asyncbench.suites.requests import FIELDS
from asyncbench.upkeep.regrading import regrade_folder
from tests.sweep_files import entry, problem_set, simulator, sweep

COT = {"name": "cot", "template": "{question}\nThink step by step."}
TALK = [{"role": "user", "content": "About {task}?"}, {"role": "assistant", "content": "{{yes}}"}]


def asked(out, sets, server, *conditions, names=("oracle",), **keys):
    models = [entry(server, f"simulated/{name}", alias=name, **keys) for name in names]
    return asyncio.run(ab.run_sweep(sweep(out, sets, *models, conditions=list(conditions))))


def rows_of(out):
    return ab.read_trials(out).to_pylist()


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Arithmetic, sums, and tasks of nupa in all four representations."""
    folder = tmp_path_factory.mktemp("sets")
    sums, nupa = folder / "sums.parquet", folder / "nupa.parquet"
    ab.generate("integer_addition", sums, seed=1, tries=10)
    tasks = "add,sub,multiply,max,truediv,floordiv,mod,to_float,to_scient,sig,digit_max,digit_add"
    ab.generate("nupa", nupa, seed=1, per_length=1, lengths="3,20", tasks=tasks)
    return [problem_set(folder, trials=1), sums, nupa]


@pytest.fixture(scope="module")
def server(sets):
    with simulator(*sets) as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize(
    ("digits", "form"),
    [
        ("reversed", lambda text: text[::-1]),
        ("spaced", " ".join),
        (["zero_padded", "reversed", "indexed"], None),
        ("grouped", lambda text: f"{int(text):,}"),
    ],
    ids=["reversed", "spaced", "combined", "grouped"],
)
def test_replies_in_another_form_are_graded_right_and_stored_as_they_came(
    tmp_path, sets, server, digits, form
):
    out = tmp_path / "out"
    told = {
        "name": "told",
        "digits": digits,
        "template": "Write numbers as they are written here. {question}",
    }
    summary = asked(out, sets, server, {"name": "bare", "digits": digits}, told)
    assert summary.exit is Exit.COMPLETE
    rows = rows_of(out)
    assert len(rows) > 200
    assert {row["outcome"] for row in rows} == {"correct"}
    sums = [row for row in rows if row["suite"] == "integer_addition"]
    for row in sums:
        assert row["answer"] == row["expected"]
        assert form is None or row["reply_text"] == form(row["expected"])
    assert any(row["reply_text"] != row["expected"] for row in sums)
    regraded = regrade_folder(out)
    assert (regraded.trials, regraded.corrected) == (len(rows), 0)
    assert {move.now for move in regraded.moves} == {"correct"}
    row = next(row for row in sums if row["reply_text"] != row["expected"])
    problem = next(one for one in ab.read_problems(out).to_pylist() if one["problem_id"] == row["problem_id"])
    forms = json.loads(row["condition_params"])["digits"]
    assert ab.grade(problem, row["reply_text"], digits=forms)[0].exact_match


@pytest.mark.long
@pytest.mark.parametrize("style", ["chat", "completion"])
def test_worked_examples_of_the_suite_are_in_the_same_form_and_words(tmp_path, sets, server, style):
    condition = {
        "name": "five",
        "shots": 5,
        "digits": "reversed",
        "style": style,
        "template": "Q: {question}",
    }
    api = {"api": "completions"} if style == "completion" else {}
    summary = asked(tmp_path / "out", sets[2:], server, condition, **api)
    assert summary.exit is Exit.COMPLETE
    assert {row["outcome"] for row in rows_of(tmp_path / "out")} == {"correct"}


def test_system_prompt_and_earlier_turns_are_templates_where_the_question_has_one(tmp_path, sets, server):
    talk = tmp_path / "talk.json"
    talk.write_text(json.dumps({"messages": TALK}))
    condition = {**COT, "system": "{suite}, {task}", "context": str(talk)}
    asked(tmp_path / "out", sets[:1], server, condition)
    rows = rows_of(tmp_path / "out")
    assert {row["outcome"] for row in rows} == {"correct"}
    assert {json.loads(row["condition_params"])["template"] for row in rows} == {COT["template"]}


@pytest.mark.long
def test_a_template_asks_again_once_and_its_name_never(tmp_path, sets):
    out, some = tmp_path / "out", sets[:1]
    with simulator(*some) as server:
        counts = []
        for condition in ({"name": "a"}, COT, {**COT, "name": "b"}, {**COT, "template": "{question} Think."}):
            asked(out, some, server, condition)
            counts.append(server.stats()["requests"])
    assert counts == [72, 144, 144, 216]


def test_the_keys_name_every_field_and_every_form():
    said = {name: field.description or "" for name, field in ConditionEntry.model_fields.items()}
    assert [field for field in FIELDS if f"`{{{field}}}`" not in said["template"]] == []
    assert {*get_args(DigitForm)} == {*DIGIT_FORMS}
    assert [form for form in DIGIT_FORMS if f"`{form}`" not in said["digits"]] == []


# ── what is refused, before anything is asked ────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param(
            'template: "{questoin} now"',
            "'template' has an unknown field {questoin}. Did you mean 'question'? Known: question, operands,",
            id="misspelt",
        ),
        pytest.param('template: "{expected} {question}"', "unknown field {expected}", id="the answer"),
        pytest.param('template: "{question} {length}"', "unknown field {length}", id="an answer of nupa"),
        pytest.param('template: "{question!r}"', "unknown field {question!r}", id="conversion"),
        pytest.param('template: "{question.__class__}"', "unknown field", id="attribute"),
        pytest.param('template: "Think step by step."', "does not say where the question goes", id="none"),
        pytest.param('template: "{{question}}"', "does not say where the question goes", id="escaped"),
        pytest.param(
            'template: "{question} }"', "has a brace without its other half. Write {{ and }}", id="unbalanced"
        ),
        pytest.param(
            "template: {question}", "'template' must be text, not a mapping. Put it in quotes", id="yaml"
        ),
        pytest.param(
            'template: "{question}"\n    system: "{x}"', "'system' has an unknown field {x}", id="system"
        ),
        pytest.param(
            'template: "{question}"\n    context: talk.json', "'messages[1] of talk.json'", id="talk"
        ),
        pytest.param(
            'template: "{operands} {question}"\n    shots: 2',
            "have no {operands} of their own",
            id="examples",
        ),
        pytest.param("digits: reverse", "'digits' must be 'reversed'", id="form"),
        pytest.param("digits: [spaced, indexed]", "cannot be both spaced and indexed", id="clash"),
    ],
)
def test_a_condition_that_cannot_be_worded_is_refused_with_file_and_line(tmp_path, monkeypatch, lines, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talk.json").write_text(json.dumps({"messages": [{**TALK[0], "content": "{a}"}, TALK[1]]}))
    file = tmp_path / "odd.yaml"
    file.write_text(
        "name: odd\nproblems: [{suite: nupa, seed: 1, per_length: 1}]\nmodels: [simulated/oracle]\n"
        f"conditions:\n  - name: c\n    {lines}\n"
    )
    with pytest.raises(ConfigError) as caught:
        plan(file)
    line = 7 if "\n" in lines and "operands" not in lines else 6
    assert str(caught.value).startswith(f"{file}, line {line}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("made", "condition", "said"),
    [
        (
            {"suite": "string_reversal", "tries": 2},
            {"digits": "reversed"},
            "string_reversal cannot bring replies back to plain digits",
        ),
        (
            {"suite": "nupa", "per_length": 1, "tasks": "add", "lengths": "5"},
            {"digits": "reversed", "style": "rules"},
            "nupa cannot bring replies in style 'rules' back to plain digits",
        ),
        (
            {"suite": "nupa", "per_length": 1, "tasks": "get_digit", "lengths": "5"},
            {"digits": "reversed"},
            "nupa's get_digit has another answer if its numbers are reversed",
        ),
        (
            {"suite": "nupa", "per_length": 1, "tasks": "length", "lengths": "5"},
            {"digits": ["reversed", "zero_padded"]},
            "nupa's length has another answer if its numbers are zero_padded",
        ),
    ],
    ids=["string", "rules", "get_digit", "length"],
)
def test_a_suite_or_task_that_cannot_undo_a_form_is_refused_with_the_way_out(tmp_path, made, condition, said):
    ran = replace_problems(tmp_path, made, {"name": "odd", **condition})
    for refuse in (plan, lambda one: asyncio.run(ab.run_sweep(one))):
        with pytest.raises(ConfigError, match="condition 'odd'") as caught:
            refuse(ran)
        assert said in str(caught.value)
        assert any(way in str(caught.value) for way in ("`suites: […]`", "sweep of its own"))


def replace_problems(tmp_path, made, condition):
    return {
        "name": "odd",
        "problems": [{"seed": 1, **made}],
        "models": ["simulated/oracle"],
        "conditions": [condition],
        "out": str(tmp_path / "out"),
    }


@pytest.fixture
def codes(tmp_path):
    """Two questions of one's own; the second answer begins with zeros."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "codes.parquet"
    rows = {
        "question": ["Use {braces} {{}} and 1,204: what is 1204?", "Code of 7?"],
        "expected": ["1,204", "007"],
    }
    pq.write_table(pa.table(rows), path)
    return path


def custom(tmp_path, path, grader, condition):
    return replace_problems(tmp_path, {}, {"name": "odd", **condition}) | {
        "problems": [{"path": str(path), "suite": "custom", "grader": grader}]
    }


def test_an_answer_that_does_not_survive_a_form_is_refused(tmp_path, codes):
    with pytest.raises(ConfigError, match=r"the answer .1,204. .* does not survive `digits: zero_padded`"):
        plan(custom(tmp_path, codes, "exact", {"digits": "zero_padded"}))


def test_questions_of_ones_own_may_hold_braces_and_their_numbers_any_form(tmp_path, codes):
    condition = {"template": "{{json}} {question}", "digits": "reversed"}
    summary = asyncio.run(ab.run_sweep(custom(tmp_path, codes, "number", condition)))
    assert summary.exit is Exit.COMPLETE
    rows = {row["expected"]: row for row in rows_of(tmp_path / "out")}
    assert {row["outcome"] for row in rows.values()} == {"correct"}
    assert rows["1,204"]["reply_text"] == "4021"


def test_problems_without_operands_refuse_a_template_that_shows_them(tmp_path, codes):
    with pytest.raises(ConfigError, match="problems of custom have no operands"):
        plan(custom(tmp_path, codes, "number", {"template": "{question} {operands}"}))
