"""Thinking and answer of a reply are parted by one rule, before every grader of every suite.

    <think>Is it 12? No.</think>\n\nAnswer: 15      thought: Is it 12? No.    answer: Answer: 15
    Is it 12? No.</think>\n\nAnswer: 15            the same: the chat template wrote the opening tag
    <think>Is it 15?                               thought: Is it 15?        answer: none

Servers without a reasoning parser leave thinking in the text. The rule:

- A thought begins with an opening tag at the beginning of the reply or of a line, and ends with the closing
  tag of the same form. There may be several. One that never ends goes on to the end of the reply.
- A closing tag without an opening one ends a thought that began with the reply.
- Of harmony's messages, those of the channel `final` are the answer, all others are thought.
- A tag that is only spoken of is text: in quotes or backticks, in a block of code, "the </think> tag", and an
  opening tag in the middle of a line, with the closing one of that line.
- Behind a thought, what stands around the whole answer is left out: `<answer>…</answer>`, the token that ends
  a turn.

A reply that was cut in a thought whose opening tag the template wrote looks like any other: it has no tag.

The forms are those of the reasoning parsers of vLLM, SGLang and llama.cpp, and of public chat templates. Each
character is looked at a bounded number of times: a reply may be hostile.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from asyncbench.records import Reply

THINKING_VERSION = 2  # raise when a reply may be split otherwise: it is a part of each grader's version


XML_NAMES: Final = (  # <think>…</think>, with attributes, also as &lt;think&gt;
    *("think", "thinking", "thought", "thoughts", "reasoning", "reason", "reflection", "scratchpad", "cot"),
    *("longcat_think", "internal_thought", "inner_thoughts", "chain[_-]of[_-]thought", "analysis"),
    *("ant_?thinking", "(?:internal_)?monologue", "think(?:ing)?_process", "thought_process", "rationale"),
    *("reasoning_content", "deep_think", "seed:cot_budget_reflect"),
    r"\w{1,20}:think(?:ing)?",  # seed:think, mm:think
    r"think:\w{1,20}",  # think:opensource, of Hunyuan 3
)
BRACKET_NAMES: Final = ("think", "thinking", "thought", "reasoning")  # [THINK]…[/THINK], of Mistral
TAGS: Final = (  # regular expressions of the opening and the closing tag, in any case
    ("◁think▷", "◁/think▷"),  # Kimi
    (r"<\|open\|>think<\|sep\|>", r"<\|close\|>think<\|sep\|>"),  # Kimi K3
    (r"<\|start_thinking\|>", r"<\|end_thinking\|>"),  # Cohere
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),  # Sky-T1, OpenThoughts
    (r"<\|thinking_start\|>", r"<\|thinking_end\|>"),
    ("<unused94>(?:thought)?", "<unused95>"),  # MedGemma
    (r"<\|think(?:ing)?\|>", r"<\|/think(?:ing)?\|>"),
    (r"<\|channel>(?:thought|analysis)?", r"<channel\|>"),  # Gemma 4
    ("<start_working_out>", "<end_working_out>"),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    (r"<\|plamo:begin_think:plamo\|>", r"<\|plamo:end_think:plamo\|>"),
    (r"\[unused16\]", r"\[unused17\]"),  # Pangu
    (r"<details\s[^<>]{0,80}?type=\"reasoning\"[^<>]{0,200}>", "</details>"),  # Open WebUI
)
PHRASES: Final = (  # with which a reply begins, and which end the thought
    (r"(?i:here(?:'s|’s| is) my thought process:)", r"(?i:here(?:'s|’s| is) my response:)"),  # Granite
    (r"Thinking\.\.\.\n", r"\.\.\.done thinking\."),  # ollama run
    (r"(?i:here are my reasoning steps:)", r"(?i:\[begin final response\])"),  # Apriel
    # harmony whose special tokens were dropped: `analysisWe add.assistantfinal15`
    (r"(?:analysis|commentary)(?=[A-Z]|(?s:.*)assistantfinal)", "assistantfinal"),
)

_MARKS: Final = re.compile(
    "|".join(
        [
            rf"(?:<|&lt;)[ ]?(?P<xml_end>/?)[ ]?(?P<xml>{'|'.join(XML_NAMES)})(?:\s[^<>]{{0,200}}?)?"
            r"(?P<empty>/?)(?:>|&gt;)",
            rf"\[(?P<bracket_end>/?)(?P<bracket>{'|'.join(BRACKET_NAMES)})\]",
            *(f"(?P<open{n}>{opening})|(?P<close{n}>{closing})" for n, (opening, closing) in enumerate(TAGS)),
            r"(?P<fence>^(?:```|~~~))",
        ]
    ).join((r"(?=[<&\[◁`~])(?:", ")")),
    re.IGNORECASE | re.MULTILINE,
)
_PHRASES: Final = tuple((re.compile(rf"\s*{opening}"), re.compile(closing)) for opening, closing in PHRASES)
_CHANNEL: Final = re.compile(  # the head of a message of harmony
    r"<\|channel\|>([^<]{0,120})(?:<\|constrain\|>[^<]{0,80})?<\|message\|>"
)
_MESSAGE_END: Final = re.compile(r"<\|(?:end|return|call|start)\|>")
_BEFORE_A_CHANNEL: Final = re.compile(r"(?:<\|end\|>)?(?:<\|start\|>)?(?:assistant)?\s?\Z")
_SIGNS: Final = (
    "<",
    "&lt;",
    "[",
    "◁",
    "assistantfinal",
    "analysis",
    "ommentary",
    "thought process:",
    "easoning steps:",
    "done thinking.",
)

_NEAR: Final = 24  # characters before a tag, and behind it, that may say that it is only spoken of
_QUOTED: Final = re.compile(r"(?:[“‘«「『]|(?<!\w)[\"'`])\Z"), re.compile(r"[”’»」』\"'`]")
_SPOKEN_OF: Final = (
    re.compile(r"\b(?:the|an|and|or|this|that|closing|opening|ending|tags?|tokens?|called|named)[ ]+\Z"),
    re.compile(
        r"[ ]+(?:(?:tags?|tokens?|markers?|delimiters?)\b|(?:and|or|to)[ ]+[<\[◁`])"
        r"|[ ]*(?:标签|标记|タグ|태그)"
    ),
)
_BEFORE_A_THOUGHT: Final = re.compile(r"(?:\ufeff|<\|im_start\|>|<\|start\|>|assistant\b|[\s>])*")

_WRAPPED: Final = tuple(  # around a whole answer; the closing one may be the sequence that stopped the reply
    re.compile(rf"{opening}(.*?)(?:{closing})?", re.IGNORECASE | re.DOTALL)
    for opening, closing in (
        *(
            (f"<{name}>", f"</{name}>")
            for name in ("answer", "response", "output", "solution", "final_answer")
        ),
        (r"<\|begin_of_solution\|>", r"<\|end_of_solution\|>"),
        (r"<\|begin_of_box\|>", r"<\|end_of_box\|>"),  # GLM
        (r"<\|start_response\|>", r"<\|end_response\|>"),
        (r"<\|open\|>response<\|sep\|>", r"<\|close\|>response<\|sep\|>"),
        (r"\[begin final response\]", r"\[end final response\]"),
    )
)
_TURN_ENDS: Final = (
    *(
        "<|return|>",
        "<|end|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "</s>",
        "[EOS]",
    ),
    *("<|END_OF_TURN_TOKEN|>", "<|end_of_msg|>", "<|close|>message<|sep|>", "<end_of_turn>", "<turn|>"),
    *("[unused10]", "[END FINAL RESPONSE]", "<｜end▁of▁sentence｜>"),
)

Spans = Sequence[tuple[int, int]]


class SplitReply(NamedTuple):
    """The text of a reply as thought and answer."""

    thought: str | None  # None: it holds none, and the answer is the whole text as it came
    answer: str  # behind a thought without the space around it
    begins: int | None  # where in the text the answer does; None: nowhere
    ended: bool = True  # False: it was still thinking at its end


def split_thinking(text: str) -> SplitReply:
    """Split a reply into what it thought and what it answered."""
    spans = None
    if any(sign in text for sign in _SIGNS):
        spans = _spans_of_channels(text) or _spans_of_phrases(text) or _spans_of_tags(text)
    if spans is None:
        return SplitReply(None, text, 0 if text else None)
    thoughts, answers, ended = spans
    thought = "\n\n".join(filter(None, (text[start:end].strip() for start, end in thoughts)))
    begins = next((start for start, end in answers if text[start:end].strip()), None)
    if begins is not None:
        begins += len(text[begins:]) - len(text[begins:].lstrip())

    # the answer without the tokens that end a turn, and the tags around all of it
    answer = "".join(text[start:end] for start, end in answers).strip()
    for end_token in _TURN_ENDS:
        answer = answer.removesuffix(end_token).rstrip()
    whole = next(filter(None, (wrapping.fullmatch(answer) for wrapping in _WRAPPED)), None)
    return SplitReply(thought, answer if whole is None else whole[1].strip(), begins, ended)


def answer_of(reply: Reply | None) -> Reply | None:
    """Return a reply with its answer alone as its text; one without a thought as it is."""
    if reply is None or (split := split_thinking(reply.text)).thought is None:
        return reply
    return replace(reply, text=split.answer)


def reasoning_of(reply: Reply) -> str | None:
    """Return the thoughts of a reply: those that its provider shows apart, or else those in its text."""
    return reply.reasoning or split_thinking(reply.text).thought or None


def _spans_of_channels(text: str) -> tuple[Spans, Spans, bool] | None:
    """Return thoughts and answers in the harmony format, and whether there is an answer, or None.

    What stands before the first of them is a thought, whose head the template wrote.
    """
    heads = [head for head in _CHANNEL.finditer(text) if not _is_spoken_of(text, *head.span())]
    if not heads:
        return None
    beginning = heads[0].start()
    before = _BEFORE_A_CHANNEL.search(text, max(0, beginning - _NEAR), beginning)
    thoughts = [(0, before.start() if before else beginning)]
    answers: list[tuple[int, int]] = []
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=True):
        closing = _MESSAGE_END.search(text, head.end(), end)
        final = head[1].split()[:1] == ["final"]
        (answers if final else thoughts).append((head.end(), closing.start() if closing else end))
    return thoughts, answers, bool(answers)


def _spans_of_phrases(text: str) -> tuple[Spans, Spans, bool] | None:
    """Return the text before and after a phrase, and whether the thought ended, or None without it."""
    for opening, closing in _PHRASES:
        begun = opening.match(text)
        ended = closing.search(text, begun.end() if begun else 0)
        if ended and (begun or closing.pattern == "assistantfinal"):
            return [(begun.end() if begun else 0, ended.start())], [(ended.end(), len(text))], True
        if begun:
            return [(begun.end(), len(text))], [], False
    return None


def _spans_of_tags(text: str) -> tuple[Spans, Spans, bool] | None:
    """Return texts inside and outside of tags, and whether the last tag closed, or None without tags."""
    thoughts: list[tuple[int, int]] = []
    answers: list[tuple[int, int]] = []
    start = 0  # of the thought or the answer that goes on
    opened: str | None = None  # how that thought was opened
    is_thought = nested = fenced = False
    spoken: tuple[str, int] | None = None  # an opening tag in the middle of a line
    for mark in _MARKS.finditer(text):
        role, form = _role_of(mark)
        here, after = mark.span()
        if role == "fence":
            fenced ^= opened is None
        elif _is_spoken_of(text, here, after) or (fenced and opened is None):
            continue
        elif opened is not None:
            nested |= role == "open" and form == opened
            if role == "close" and form == opened:
                thoughts.append((start, here))
                start, opened = after, None
        elif role == "close":
            if spoken and spoken[0] == form and text.find("\n", spoken[1], here) < 0:
                spoken = None
                continue
            if is_thought and not nested and not text[after : after + _NEAR].strip():
                answers.append((start, here))  # behind an answer it closes nothing
            else:
                thoughts += [*answers, (start, here)]
                answers.clear()
            start, is_thought, nested = after, True, False
        elif _begins_line(text, start, here):
            if not _BEFORE_A_THOUGHT.fullmatch(text, start, here):
                answers.append((start, here))
            start, is_thought, opened = after, True, form if role == "open" else None
        else:
            spoken = form, here
    if not is_thought:
        return None
    (answers if opened is None else thoughts).append((start, len(text)))
    return thoughts, answers, opened is None


def _role_of(mark: re.Match[str]) -> tuple[str, str]:
    """Return the role of a mark (open, close, empty, fence), and the form of the tag that it is."""
    if mark["xml"]:
        name = mark["xml"].lower()
        form = "think" if name in ("thinking", "thought", "thoughts") else name  # models mix these up
        return "close" if mark["xml_end"] else "empty" if mark["empty"] else "open", form
    if mark["bracket"]:
        return "close" if mark["bracket_end"] else "open", f"[{mark['bracket'].lower()}]"
    role = str(mark.lastgroup)  # such as open3
    return role.rstrip("0123456789"), role[-2:].lstrip("en")


def _begins_line(text: str, start: int, here: int) -> bool:
    """Return whether nothing but white space and the head of a turn stands before a tag in its line."""
    _, newline, line = text[max(start, here - _NEAR) : here].rpartition("\n")
    return bool((newline or here - _NEAR <= start) and _BEFORE_A_THOUGHT.fullmatch(line))


def _is_spoken_of(text: str, here: int, after: int) -> bool:
    """Return whether a tag is only spoken of: it stands in quotes, or words beside it call it a tag."""
    before, behind = text[max(0, here - _NEAR) : here], text[after : after + _NEAR]
    quoted, spoken_of = ((rule[0].search(before), rule[1].match(behind)) for rule in (_QUOTED, _SPOKEN_OF))
    return all(quoted) or any(spoken_of)
