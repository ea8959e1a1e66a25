"""Thinking is not the answer: each form of it, before each grader. A form is a line of FORMS."""

import json
import random
from time import process_time

import pytest

from asyncbench.records import Outcome, Problem, Reply
from asyncbench.suites import custom, integer_addition, llm_arithmetic
from asyncbench.suites.nupa import suite as nupa
from asyncbench.suites.nupa.grading import GRADERS
from asyncbench.suites.own_graders import use_grader
from asyncbench.suites.plugins import Origin, OwnFunction
from asyncbench.suites.table import _added
from asyncbench.suites.thinking import split_thinking
from tests.rows import each_row
from tests.suites.made import problem

THOUGHT = "Is it 12? The answer is 12. Answer: 12?"
FORMS = [  # thinking before an answer, as models and servers write it; {} stands for the thought
    "<think>{}</think>\n\n",
    "<think>\n{}\n</think>",
    "\n<think>{}</think> ",
    "<THINK>{}</THINK>\n",
    '<think type="slow" seconds="3">{}</think>\n',
    "<think >{}</think >\n",
    "<think>\n\n</think>\n\n",
    "<think></think>",
    "<think/>\n",
    "{}</think>\n\n",
    "{}\n</think>\n",
    "</think>",
    "<think>{}</think><think>{}</think>\n",
    "<think>{}</think>\n<thinking>{}</thinking>\n",
    "<think>{}<think>{}</think>{}</think>\n",
    "<think><think>{}</think></think>\n",
    "<think>The user asks for <think> tags. {}</think>\n",
    "<think>Is `</think>` the end? The </think> tag is. {}</think>\n",
    "<|im_start|>assistant\n<think>{}</think>\n",
    "&lt;think&gt;{}&lt;/think&gt;\n",
    "<thinking>{}</thinking>",
    "<thought>{}</thought>\n",
    "<reasoning>{}</reasoning>\n",
    "<reflection>{}</reflection>\n",
    "<scratchpad>\n{}\n</scratchpad>\n",
    "<seed:think>{}</seed:think>",
    "<mm:think>{}</mm:think>",
    "<think:opensource>{}</think:opensource>",
    "<longcat_think>{}</longcat_think>",
    "<analysis>{}</analysis>\n",
    "<antThinking>{}</antThinking>",
    "<thought_process>{}</thought_process>\n",
    "<rationale>{}</rationale>\n",
    "<think>{}</thinking>\n",
    "<thinking>{}</think>\n",
    "< think >{}</ think >\n",
    "<unused94>thought\n{}<unused95>",
    "<|thinking_start|>{}<|thinking_end|>",
    "Thinking...\n{}\n...done thinking.\n\n",
    "<think>{}</think>\n<|begin_of_box|>",
    "[THINK]{}[/THINK]",
    "[THINKING]{}[/THINKING]\n",
    "◁think▷{}◁/think▷",
    "{}◁/think▷",
    "<|open|>think<|sep|>{}<|close|>think<|sep|><|open|>response<|sep|>",
    "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>",
    "<|begin_of_thought|>\n{}\n<|end_of_thought|>\n<|begin_of_solution|>\n",
    "<|think|>{}<|/think|>",
    "<|channel>thought\n{}<channel|>",
    "<start_working_out>{}<end_working_out>",
    "<|inner_prefix|>{}<|inner_suffix|>",
    "<|plamo:begin_think:plamo|>{}<|plamo:end_think:plamo|>",
    "[unused16]{}[unused17]",
    '<details type="reasoning" done="true">\n<summary>Thought for 3 s</summary>\n{}\n</details>\n',
    "Here is my thought process: {} Here is my response: ",
    "Here's my thought process:\n{}\nHere's my response:\n",
    "Here are my reasoning steps:\n{}\n[BEGIN FINAL RESPONSE]\n",
    "<think>\n{}\n</think>\n<answer>\n",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>commentary<|message|>{}<|end|>"
    "<|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    "<|channel|>final<|message|>",
    "analysis{}assistantfinal",
    "analysisWe add. {}assistantcommentary{}assistantfinal",
]
ENDS = {  # what ends a turn in some of them, where its tokens are shown
    "<|channel|>": "<|return|>",
    "<answer>": "\n</answer>",
    "<|START_RESPONSE|>": "<|END_RESPONSE|>",
    "<|begin_of_solution|>": "\n<|end_of_solution|>",
    "<|open|>response": "<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>",
    "<|begin_of_box|>": "<|end_of_box|>",
    "[BEGIN FINAL": "\n[END FINAL RESPONSE]\n<|end|>",
    "im_start": "<|im_end|>",
}
SPOKEN_OF = [  # answers that speak of tags: none of it is a thought
    "B. The </think> tag ends a thought.",
    "B. It writes `</think>` then.",
    'B ends it with "</think>".',
    "Models write <think> before and </think> after. B",
    "Use <think>…</think>. B",
    "B\n```\n<think>\nx\n</think>\n```\n",
    "```xml\n<think>\n```\nB",
    "<think> and </think> are tags. B",
    "<think> tags come first: B",
    "用「</think>」结束。B",
    "</think> 标签: B",
    "analysis of both gives B",
    "`<|channel|>final<|message|>` is harmony's. B",
    "a < b > c [1] B",
]


def asked(suite: str, expected: str, **extra: str) -> Problem:
    return problem(suite, expected, kind="integer", extra=json.dumps(extra))


def said_15(reply: str, _: Problem) -> bool:
    return reply == "15"


OWN = OwnFunction(name="mine:said_15", call=said_15, digest="ab" * 32)
use_grader(OWN)
PACKAGED = _added(
    integer_addition.STRING_REVERSAL,
    Origin(kind="suites", name="string_reversal", package="p", version="1", source="ab" * 32),
)
ASKED = {  # a grader's name: (how it grades, a problem, an answer that is right)
    "int": (integer_addition.grade, asked("integer_addition", "15"), "15"),
    "string": (integer_addition.grade_string, asked("string_reversal", "15"), "15"),
    "nupa": (nupa.SUITE.grade, asked("nupa", "15"), "The answer is 15"),
    "layered": (llm_arithmetic.grade, asked("llm_arithmetic", "15"), "15"),
    "exact": (custom.grade, asked("custom", "15", grader="exact"), "15"),
    "number": (custom.grade, asked("custom", "15", grader="number"), "15 km"),
    "choice": (custom.grade, asked("custom", "B", grader="choice"), "B"),
    "regex": (
        custom.grade,
        asked("custom", "15", grader="regex", pattern=r"(?:Answer: |^)(\d+)"),
        "Answer: 15",
    ),
    "own": (custom.grade, asked("custom", "15", grader=OWN.name, source=OWN.digest), "15"),
    "package": (PACKAGED.grade, asked("string_reversal", "15"), "15"),
}


@each_row("grader", ASKED)
@each_row("form", FORMS)
def test_a_right_answer_behind_thinking_is_right(form, grader):
    grade, question, answer = ASKED[grader]
    end = next((end for sign, end in ENDS.items() if sign in form), "")

    for text in (form.replace("{}", THOUGHT) + answer, form.replace("{}", THOUGHT) + answer + end):
        assert grade(question, Reply(text=text), "chat")[0].outcome == Outcome.CORRECT, text
        assert split_thinking(text).answer == answer
        assert answer in text[split_thinking(text).begins :]
    assert (THOUGHT in (split_thinking(text).thought or "")) == ("{}" in form)


@each_row("grader", ASKED)
@each_row("form", ["<think>", "[THINK]", "◁think▷", "<|channel|>analysis<|message|>", "analysisWe. "])
def test_a_thought_that_never_ends_is_no_answer_however_right_it_looks(form, grader):
    grade, question, answer = ASKED[grader]
    text = f"{form}{THOUGHT}\n{answer}"

    assert grade(question, Reply(text=text), "chat")[0].outcome == Outcome.NO_ANSWER
    assert grade(question, Reply(text=text, finish_reason="length"), "chat")[0].outcome == Outcome.TRUNCATED
    assert split_thinking(text)[1:] == ("", None, False)


@pytest.mark.parametrize("text", SPOKEN_OF)
def test_a_tag_that_is_only_spoken_of_is_text(text):
    grade, question, _ = ASKED["choice"]

    assert split_thinking(text).thought is None
    assert split_thinking(text).answer == text
    assert grade(question, Reply(text=text), "chat")[0].outcome == Outcome.CORRECT


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("15\n<think>3?</think>\n", "3?", "15"),
        ("Let me see.\n<think>12?</think>\nAnswer: 15", "12?", "Let me see.\n\nAnswer: 15"),
        ("Sure! <think>\n12?\n</think>\n15", "Sure! <think>\n12?", "15"),
        ("<think>12?</think>\n15</think>", "12?", "15"),
        ("15</think>", "15", ""),
        ("<think>15</think>", "15", ""),
        ("It is A </think> A", "It is A", "A"),
        ('"12"</think>"15"', '"12"', '"15"'),
        ("**12**</think>**15**", "**12**", "**15**"),
    ],
)
def test_what_stands_around_thinking(text, thought, answer):
    assert split_thinking(text)[:2] == (thought, answer)


def test_documents_graders_read_the_whole_reply():
    grades = ASKED["nupa"][0](
        ASKED["nupa"][1], Reply(text="<think>The answer is 12?</think>The answer is 15"), "chat"
    )
    legacy = ASKED["layered"][0](ASKED["layered"][1], Reply(text="<think>It is 15"), "chat")[1]

    assert [(one.grader, one.answer, one.headline) for one in grades] == [
        ("answer", "15", True),
        ("strict", "12", False),
        ("search", "12", False),
    ]
    assert set(GRADERS) == {"strict", "search"}
    assert (legacy.grader, legacy.answer) == ("legacy", "15")


PIECES = [
    *{form.replace("{}", "") for form in FORMS},
    "12",
    "The answer is",
    "\n",
    " ",
    "```\n",
    "`",
    "<",
    "think>",
]


@each_row("seed", range(300))
def test_nothing_is_lost_but_tags_and_space(seed):
    draw = random.Random(seed)
    words = [f"w{n}w" for n in range(8)]
    text = "".join(piece for word in words for piece in (draw.choice(PIECES), word))
    split = split_thinking(text)

    found = [word for word in words if word in (split.thought or "") or word in split.answer]
    assert found == words
    assert all(word not in split.answer for word in words if word in (split.thought or ""))
    assert (split.begins is None) == (not split.answer.strip())


HOSTILE = [
    *(
        "<think>",
        "</think>",
        "<think> and ",
        "<",
        "<think ",
        "```\n",
        "`</think>`",
        "a<think>",
        "[THINK]",
        "<details ",
    ),
    *(
        "<|channel|>final<|message|>",
        "<|start|>",
        "assistant",
        "</s>",
        "<answer>",
        "<think>x</think>",
        "<|channel|>",
    ),
    *("here is my", "<think>\n</think>\n", " \n", "&lt;", "a:think>"),
]


@pytest.mark.long
@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize(
    "start",
    [
        "",
        *(
            pytest.param(start, marks=pytest.mark.long)
            for start in ("<think>", "analysis", "<|channel|>", "<think>x</think>")
        ),
    ],
)
def test_a_hostile_reply_takes_linear_time(piece, start):
    """A rule that looks back at all before each tag would take minutes, and the test its time limit."""
    began = process_time()
    split_thinking(start + piece * 40_000)
    assert process_time() - began < 60
