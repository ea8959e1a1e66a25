"""What is said before a question: our small talk, a user's, and worked examples."""

import json
from itertools import cycle, pairwise

import pytest

from asyncbench.errors import ConfigError
from asyncbench.records import Message
from asyncbench.suites.requests import PADDINGS, examples, padding

HELLO = [{"role": "user", "content": "hi!"}, {"role": "assistant", "content": "hello :)"}]

# extra prompt tokens that o4-mini counted for the dialogs of the llm_arithmetic project
PUBLISHED_TOKENS = {"1k": 771, "2k": 1801, "4k": 3704}


@pytest.mark.parametrize("name", PADDINGS)
def test_a_padding_has_as_many_tokens_as_the_published_one(name):
    characters = sum(len(turn.content) for turn in padding(name, place="p"))
    assert characters / 4 == pytest.approx(PUBLISHED_TOKENS[name], rel=0.05)


@pytest.mark.parametrize("name", PADDINGS)
def test_a_padding_is_a_dialog_that_a_question_can_follow(name):
    turns = padding(name, place="p")
    assert len(turns) == PADDINGS[name]
    assert all(turn.role == role for turn, role in zip(turns, cycle(("user", "assistant")), strict=False))
    assert turns[-1].role == "assistant"


def test_each_padding_is_the_beginning_of_the_next():
    pairs = list(pairwise(padding(name, place="p") for name in PADDINGS))
    assert len(pairs) == 2
    for shorter, longer in pairs:
        assert longer[: len(shorter)] == shorter


def test_a_file_of_ones_own_is_taken_as_it_is(tmp_path):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"messages": HELLO}))
    assert padding(str(path), place="p") == tuple(Message(**turn) for turn in HELLO)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{", "not JSON", id="not-json"),
        pytest.param("[]", '"messages"', id="no-messages"),
        pytest.param('{"messages": []}', '"messages"', id="empty"),
        pytest.param(json.dumps({"messages": HELLO[:1]}), "messages[1]: user and", id="ends-with-user"),
        pytest.param(json.dumps({"messages": HELLO[::-1]}), "messages[1]: user and", id="wrong-order"),
        pytest.param(json.dumps({"messages": HELLO + HELLO[1:]}), "messages[3]: user and", id="two-in-a-row"),
        pytest.param('{"messages": [{"role": "user"}]}', "messages[1]: a message needs", id="no-content"),
        pytest.param(
            '{"messages": [{"role": "x", "content": "y"}]}', "messages[1]: a message needs", id="odd-role"
        ),
    ],
)
def test_small_talk_that_cannot_be_said_is_refused(tmp_path, text, said):
    path = tmp_path / "talk.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        padding(str(path), place="sweep.yaml, conditions[1].context")
    assert f"sweep.yaml, conditions[1].context: {path}" in str(caught.value)
    assert said in str(caught.value)


def test_a_missing_file_is_an_error_and_the_way_out_is_said(tmp_path):
    with pytest.raises(ConfigError, match=r"8k was not found.*1k, 2k, 4k"):
        padding("8k", place="p")
    with pytest.raises(ConfigError, match=r"none\.jsonl was not found"):
        examples(str(tmp_path / "none.jsonl"), place="p")


def test_worked_examples_become_turns_in_their_order(tmp_path):
    path = tmp_path / "shots.jsonl"
    path.write_text('{"question": "1+1?", "answer": "2"}\n\n{"question": "2+2?", "answer": "4"}\n')
    turns = examples(str(path), place="p")
    assert [turn.content for turn in turns] == ["1+1?", "2", "2+2?", "4"]
    assert [turn.role for turn in turns] == ["user", "assistant"] * 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "holds no examples", id="empty"),
        pytest.param('{"question": "1+1?", "answer": "2"}\n{"question"', "line 2: not JSON", id="torn"),
        pytest.param('{"question": "1+1?"}', "line 1: the line is not {", id="no-answer"),
        pytest.param('{"question": "1+1?", "answer": 2}', "line 1: the line is not {", id="not-text"),
        pytest.param("[" * 100_000, "line 1: nested too deeply", id="too deep"),
        pytest.param(" " * 4_000_001, "more than 4,000,000 bytes", id="too long"),
    ],
)
def test_examples_that_cannot_be_said_are_refused(tmp_path, text, said):
    path = tmp_path / "shots.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        examples(str(path), place="p")
    assert said in str(caught.value)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "talk.json"
    path.write_bytes(b"\xc3\x28")
    with pytest.raises(ConfigError, match="not UTF-8"):
        padding(str(path), place="p")
