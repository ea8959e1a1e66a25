"""Chats as questions of a file of one's own: what is asked, what the id covers, and what is refused."""

import asyncio
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.opening import open_set
from asyncbench.suites.chats import chat_in, readable_question
from tests.commands import asyncbench_here, succeeded
from tests.rows import each_row

SYSTEM = {"role": "system", "content": "As digits."}
TALK = [
    {"role": "user", "content": "I have 6\nboxes of 7."},
    {"role": "assistant", "content": 'What of "them"?'},
]
LAST = {"role": "user", "content": "How many?"}
CHAT = [SYSTEM, *TALK, LAST]


def written(path, *chats):
    """Write a row for each chat, whose answer is its number."""
    rows = [{"messages": chat, "answer": str(number)} for number, chat in enumerate(chats, 1)]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


def problems_in(path, **options):
    return list(open_set(path, suite="custom", grader="number", **options).read())


def test_lists_and_json_text_in_any_file_are_one_question_that_holds_every_message(tmp_path):
    forms = [
        written(tmp_path / "lists.jsonl", CHAT),
        written(tmp_path / "lists.parquet", CHAT),
        written(tmp_path / "text.jsonl", json.dumps(CHAT)),
        written(tmp_path / "others.jsonl", [SYSTEM | {"role": "developer"}, *TALK, LAST | {"role": "human"}]),
    ]
    (first,), *others = (problems_in(path) for path in forms)

    assert others == [[first]] * 3
    assert [(turn.role, turn.content) for turn in chat_in(first.question)] == [
        (*turn.values(),) for turn in CHAT
    ]
    assert readable_question(first.question) == (
        'system: As digits.\nuser: I have 6\nboxes of 7.\nassistant: What of "them"?\nuser: How many?'
    )


def test_a_chat_has_another_id_with_any_message_changed_and_than_its_last_message_or_its_words(tmp_path):
    chats = [[*CHAT[:i], turn | {"content": "5"}, *CHAT[i + 1 :]] for i, turn in enumerate(CHAT)]
    flat = readable_question(problems_in(written(tmp_path / "chat.jsonl", CHAT))[0].question)
    path = written(tmp_path / "own.jsonl", CHAT, *chats, CHAT[1:], CHAT[3:], flat)

    problems = problems_in(path)
    assert len({problem.problem_id for problem in problems}) == len(problems) == 8
    assert [problem.question for problem in problems[-2:]] == ["How many?", flat]


def test_the_wording_goes_around_the_last_message(tmp_path):
    (problem,) = problems_in(written(tmp_path / "own.jsonl", CHAT), wording="Q: {question}\nA:")

    *before, last = chat_in(problem.question)
    assert [turn.content for turn in before] == [turn["content"] for turn in CHAT[:-1]]
    assert last.content == "Q: How many?\nA:"


@each_row(
    ("chat", "said"),
    [
        ([SYSTEM], "the roles of the chat are system. A system message may stand first, then"),
        (CHAT[:3], "the roles of the chat are system, user, assistant. "),
        ([*TALK, *TALK[1:], LAST], "the roles of the chat are user, assistant, assistant, user. "),
        ([TALK[0], LAST], "Join messages of the same role"),
        ([*TALK, SYSTEM, LAST], "A system message may stand first"),
        ([TALK[1], LAST], "roles of the chat are assistant, user. "),
        ([*TALK, {"role": "tool", "content": "7"}, LAST], "message 3 of the chat has the role 'tool'."),
        ([TALK[0], TALK[1] | {"tool_calls": [{"id": 1}]}, LAST], "message 2 of the chat calls a tool."),
        ([SYSTEM, LAST | {"content": [{"type": "image_url"}]}], "message 2 of the chat is no text."),
        ([SYSTEM, LAST | {"content": None}], "message 2 of the chat is no text."),
        ([SYSTEM, LAST | {"content": " "}], "message 2 of the chat is empty."),
        ([SYSTEM, LAST | {"content": "\ud800"}], "message 2 of the chat: column 'content' holds half"),
    ],
)
def test_a_chat_that_cannot_be_asked_is_refused_with_its_row(chat, said, tmp_path):
    path = written(tmp_path / "own.jsonl", CHAT, chat)
    with pytest.raises(ProblemSetError) as caught:
        problems_in(path)
    assert f"{path}, line 2: column 'messages': " in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.long
def test_a_run_asks_chats_of_the_same_last_message_and_keeps_them(tmp_path):
    """The right answers are their numbers: the simulator finds a chat by all of its messages."""
    path = written(tmp_path / "own.jsonl", CHAT, [*TALK, LAST], [LAST], [SYSTEM, LAST])
    conditions = [{"name": "plain"}, {"name": "all", "system": "Be brief.", "context": "1k"}]
    models = [{"model": "simulated/oracle", "alias": api, "api": api} for api in ("chat", "responses")]
    out = tmp_path / "out"
    sweep = {
        "problems": [{"path": str(path), "suite": "custom", "grader": "number"}],
        "models": models,
        "conditions": conditions,
        "out": str(out),
    }
    asyncio.run(ab.run_sweep(sweep))

    trials = ab.read_trials(out).to_pylist()
    assert len(trials) == 16
    assert {trial["outcome"] for trial in trials} == {"correct"}
    kept = {row["question"] for row in ab.read_problems(out).to_pylist()}
    assert kept == {problem.question for problem in problems_in(path)}

    page = tmp_path / "page.html"
    succeeded(asyncbench_here("report", out, "--html", "--out", page))
    assert "assistant: What of" in page.read_text()


@pytest.mark.long
def test_a_format_without_roles_refuses_chats_before_anything_is_asked(tmp_path):
    path = written(tmp_path / "own.jsonl", [LAST], CHAT)
    sweep = {
        "problems": [{"path": str(path), "suite": "custom", "grader": "number"}],
        "models": [{"model": "simulated/oracle", "alias": "base", "api": "completions"}],
        "out": str(tmp_path / "out"),
    }
    with pytest.raises(ConfigError, match="base: questions of own are chats, and `api: completions` sends"):
        asyncio.run(ab.run_sweep(sweep))


@pytest.mark.long
def test_a_comparison_shows_the_turns_of_a_chat_on_which_models_differ(tmp_path):
    path = written(tmp_path / "own.jsonl", CHAT)
    (tmp_path / "mine.py").write_text("def right(messages): return '1'\ndef wrong(messages): return '0'\n")
    out = tmp_path / "out"
    succeeded(
        asyncbench_here(
            "run", path, "--model", "mine.py:right", "--model", "mine.py:wrong", "--out", out, cwd=tmp_path
        )
    )

    done = succeeded(asyncbench_here("compare", "right", "wrong", out, "--examples", "1"))
    assert 'user: I have 6 boxes of 7. assistant: What of "them"?' in done.stdout
