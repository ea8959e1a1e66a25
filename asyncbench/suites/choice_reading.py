"""The letter that a reply chooses, beside text in any script: 答案是B。, 정답은 B입니다, 【Ｂ】.

A letter counts where it stands alone: it touches no digit and no letter of a script with capitals. Chinese,
Japanese, Korean and Thai set no space beside it. Of several letters the first rule that finds one decides:

    1. the letter in the last box that holds one
    2. the last one that the reply calls its answer     "Answer: B. A is tempting", 答案是B
    3. the only one that it marks, or says to be right  "A) 3  **B) 4**  C) 5"
    4. the last one that it does not reject             "B, not A", 选项 A 不对
    5. the last one of which it says that it is wrong   "B is false", where that was asked

A reply that chooses several, as in "A and B", chooses none. Nor does one that says "not B" alone. What stands
before "Wait, no" counts only if nothing behind it is chosen.

Each letter is judged by the few words beside it, so time is linear in the length of the text.
"""

import re
import unicodedata
from typing import Final, NamedTuple

from asyncbench.suites.answer_words import (
    ANSWER_LEADS,
    ANSWER_NOUN,
    ANSWER_NOUN_ALONE,
    CORRECTED,
    QUESTION,
    RECONSIDERED,
    THEREFORE,
)
from asyncbench.suites.boxes import last_box
from asyncbench.suites.reply_text import text_before_explanation, text_before_next_question, visible

_WORD: Final = r"0-9A-Za-zÀ-ÖØ-öø-ɏ\u0300-\u036fͰ-ϿЀ-ԯ\u0530-\u058fḀ-ỿ"
_ALONE: Final = rf"(?<![{_WORD}])(?<![{_WORD}]['’])%s(?![{_WORD}]|['’](?!d[iıuü]r)[{_WORD}])"
_CAPITAL: Final = re.compile(_ALONE % "(?!I[ ]+[a-z])[A-Z]")
_SMALL: Final = re.compile(_ALONE % "[a-z]")
# Ａ, Ⓐ, 🄰, 𝐀 and so on are letters; 🅐 and 🅰 have no plain form in Unicode.
_STYLED: Final = re.compile(
    r"[\uff21-\uff3a\uff41-\uff5a\u249c-\u24e9\U0001d400-\U0001d6a3\U0001f110-\U0001f189]"
)

# Cyrillic and Greek letters that look the same, where no word follows: Ответ: В.
_LOOKALIKES: Final = str.maketrans("АВСЕΑΒΕ", "ABCEABE")
_LOOKALIKE: Final = re.compile(_ALONE % "[АВСЕΑΒΕ]" + r"(?=[.)\]*»\"]|\s*(?:\n|$))")
# "C (both A and B)": what stands in parentheses behind a letter only mentions others.
_MENTIONED: Final = re.compile(r"(?<=(?<![^\W_])[A-Z]) ?\((?![A-Za-z]\))[^()\n]{2,200}\)")
_ABBREVIATED: Final = re.compile(r"^A[:：](?=[ \t]*\(?[A-Z]\)?[.\s]*$)", re.MULTILINE)  # of "Q: …  A: B"
_CHECKBOX: Final = re.compile(r"^([ \t>]*[-*+] )\[([xX ])\]", re.MULTILINE)
_QUESTION: Final = re.compile(QUESTION, re.MULTILINE)
_RECONSIDERED: Final = re.compile(RECONSIDERED, re.IGNORECASE)

_NEAR: Final = 48  # characters beside a letter that may judge it
_MARKUP: Final = re.compile(
    r"[*_`$\"“”„«»「」『』【】\[\](){}]|\\(?:text|mathrm|textbf|mathbf)(?![A-Za-z])|\\[(\[)\]]"
)
_NOUN: Final = (
    "(?:(?:the |la |le |die |el )?(?:option|choice|answer|letter|opción|antwort|réponse|ответ|вариант"
    "|选项|選項|選択肢|選択|보기|선택지|ข้อ|ตัวเลือก) *)?"
)
_ANSWER: Final = (
    rf"(?:{ANSWER_NOUN}[^.!?\n]{{0,30}}?{ANSWER_LEADS}[^.!?\n]{{0,16}}"
    r"|\b(?:cevap|yanıt|ответ|đáp án|jawaban)\b *"
    rf"|{ANSWER_NOUN_ALONE}[^.!?。！？\n]{{0,20}})$"
)
# At the end of what stands before a letter.
_CHOSEN_BEFORE: Final = re.compile(
    rf"{_ANSWER}"
    r"|(?:选择|選擇|选|選)[^.!?。！？\n选選]{0,4}$(?<![项項] )(?<![项項])"
    r"|\b(?:choose|select|pick|chose|selected|picked|go with|going with|opt for|vote for|wähle|elijo|escojo"
    r"|choisis|scelgo|escolho|выбираю|wybieram)\b[^.!?\n]{0,16}$"
    rf"|(?:{THEREFORE}|{CORRECTED}|^[^\w\n]*(?:不|否|いいえ|아니))[,:，、]? *(?:it(?:'s| is)|是)? *$"
    r"|\b(?:must|should|has to|best) (?:be|is) *$"
    r"|\b(?:only|sino|sondern) *$",
    re.IGNORECASE,
)
_REJECTED_BEFORE: Final = re.compile(
    r"(?:\b(?:not|nicht|non|no|pas|не|nie|não|niet|ikke|inte|değil|never|neither|nor|unlike|except|excluding)"
    r"|n['’]t(?: be)?|\b(?:than|instead of|statt|rules? out|ruled out|eliminat(?:e|es|ed|ing)"
    r"|reject(?:s|ed)?|discard(?:s|ed)?)"
    rf"|而?不是|并非|並非|而?非|不选|不選|排除|ไม่ใช่)[:：]? *{_NOUN}$",
    re.IGNORECASE,
)
# At the start of what stands behind a letter.
_NEGATED: Final = r"(?:cannot|can['’]t|isn['’]t|doesn['’]t|n['’]est pas|no es|non è|não é|не)"
_REJECTED_BEHIND: Final = re.compile(
    rf"[\s,:：]*(?:(?:{_NEGATED}|is|are|was|seems|would be|does|can|ist|est|es|è|é|—|-|=|это)\s+"
    r"(?:\w+\s){0,2}?(?:wrong|incorrect|false|not|ruled out|eliminated|falsch|nicht|faux|fausse|incorrecte?"
    r"|pas|incorrect[oa]|fals[oa]|sbagliat[oa]|errad[oa]|невер\w*|неправильн\w*)"
    rf"|(?:{_NEGATED}|невер\w*|неправильн\w*|wrong|incorrect|false|falsch)\b|❌|✗|✘"
    r"|[^,，、.。;；!！?？\n]{0,12}?(?:不对|不對|不正确|不正確|不是|错|錯|不符|不成立|不適|間違|誤り|不正解"
    r"|ではな|ではあり|でない|じゃな|じゃあり|아니|아닙|아님|틀|오답|ไม่ใช่|ไม่ถูก|ผิด))",
    re.IGNORECASE,
)
_CHOSEN_BEHIND: Final = re.compile(
    r"[\s:：]*(?:(?:true|correct)\b|✅|✓|✔|(?:is|est|ist|es|è|é)\s+(?:\w+\s){0,2}?"
    r"(?:correct|right|best|better|richtig|korrekt|correcte|correct[oa]|corret[oa]|giust[oa])\b"
    r"|[^,，、.。;；!！?？\n]{0,8}?(?:正确|正確|が正し|正解|정답|맞|ถูกต้อง)|[^\n✗✘❌]{0,40}[✅✓✔☑])",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(r"\s*(?:吗|嗎|か|呢|인가요|입니까)?[?？]")
# At the start of a sentence these are words, where a word in small letters follows that is no verb.
_ARTICLE: Final = re.compile(
    r"[AEIOUWYZ] (?!(?:is|isn|was|are|has|would|will|can|could|should|does|seems|looks|and|or|because|since"
    r"|for|as|but|here|ist|und|oder|weil|est|et|ou|car|es|y|o|porque|é|e|ou|è|är|och|jest|i|lub)\b)[a-zà-ÿ]"
)
_SMALL_ENDS: Final = re.compile(r"\s*(?:[.,;:)]|\n|$)")
# Letters of which a reply says the same: A and B; A, C, or D; A、C和D; and A, B where nothing stands behind.
_OPEN, _CLOSE = r"[\s(\[{【（「*_]*", r"[\s)\]}】）」*_]*"
_COMMA: Final = rf"{_CLOSE}[,，、]{_OPEN}"
_AND: Final = (
    rf"{_CLOSE}[,，、]?\s*(?:(?i:and|or|nor|und|oder|noch)\b|(?:y|o|ni|et|ou|e|и|или|ni|ve|veya)\b"
    rf"|和|或|及|与|および|また(?:は)?|と|와|과|및|또는|และ|หรือ|[&+/]){_OPEN}(?:option "
    rf"|answer |choice )?{_OPEN}"
)
_LETTER: Final = rf"[A-Z](?![{_WORD}])"
_LISTED: Final = re.compile(
    rf"(?<![{_WORD}]){_LETTER}(?:{_COMMA}{_LETTER}){{0,9}}+{_AND}{_LETTER}"
    rf"|(?<![{_WORD}]){_LETTER}(?:{_COMMA}{_LETTER}){{1,9}}+(?=[\s)\]}}*.]*(?:\n|\Z))"
)
_LINE: Final = re.compile(r"(?:^|\n)[ \t>#.•-]*$")
_TICK: Final = re.compile(r"(?:\A|\n)[^\w\n]*(?:(?P<on>[✅✓✔☑])|[✗✘❌☐])[^\w\n]*\Z")  # before a letter
_BOLD: Final = re.compile(r"(?:\*\*|__)\(?\Z")
_LABEL: Final = re.compile(r"[*_]*[.):：]")
_LINE_END: Final = re.compile(r"[ \t.。:]*(?:\n|$)")
_BOXED: Final = re.compile(
    rf"\s*(?:{_NOUN})?[:：]?\s*([A-Za-z])(?![{_WORD}])(?!\s*[=^+<>|\\])", re.IGNORECASE
)


class _Letter(NamedTuple):
    """A letter of a reply, and what the words beside it say of it."""

    letter: str
    start: int  # in the text
    chosen: bool  # "the answer is B"
    marked: bool  # "B is correct", "B ✓", or it has a line of its own, or is the bold one of several
    asserted: bool  # marked, or it begins a line: "B) Vitamin C"
    denied: bool  # "not B"
    rejected: bool  # denied, or "B is wrong"
    group: int  # of letters of which the same is said, as in "A and B"; a number below 0 for one alone


class SeveralLettersError(ValueError):
    """A text chooses several letters."""


def last_letter(text: str) -> str | None:
    """Return the letter A-Z that a reply chooses, as a capital; None where it chooses none or several.

    A small letter counts only where no capital stands alone or where it is called the answer, for it may be
    the article. So may the A of "A dog" or the I of "I am".
    """
    chosen, _ = _chosen(text)
    return chosen.pop() if len(chosen) == 1 else None


def only_letter(text: str) -> str | None:
    """Return the letter that an expected value is, read as in a reply; None where there is none in it.

    Raises:
        SeveralLettersError: it is several, such as B, C.
    """
    chosen, others = _chosen(text)
    if len(chosen | others) > 1:
        raise SeveralLettersError(f"it holds several letters: {', '.join(sorted(chosen | others))}")
    return chosen.pop() if chosen else None


def _chosen(text: str) -> tuple[set[str], set[str]]:
    """Return the letters that a text chooses, and others that it might choose as well."""
    text = visible(text)

    # Plain letters, without those that parentheses behind a letter mention.
    if not text.isascii():
        text = _STYLED.sub(_plain, text)
        text = _LOOKALIKE.sub(lambda letter: letter[0].translate(_LOOKALIKES), text)
    text = _CHECKBOX.sub(lambda box: f"{box[1]}{'☐' if box[2] == ' ' else '✓'}", text)
    text = _MENTIONED.sub("", _ABBREVIATED.sub("Answer:", text))

    # An answer that stands alone in front of its explanation, or before another question.
    first = text_before_explanation(text)
    if first is not None and len(alone := {letter.letter for letter in _letters(first)}) == 1:
        return alone, set()
    first = text_before_next_question(text)
    if first is not None and any(letter.chosen for letter in _letters(first)):
        text = first

    # A box with a letter in it counts, else what is no question.
    if (box := last_box(text)) is not None and (boxed := _BOXED.match(_MARKUP.sub(" ", box))):
        return {boxed[1].upper()}, set()
    unasked = _QUESTION.sub(" ", text)
    if letters := _letters(unasked):
        text = unasked
    else:
        letters = _letters(text)

    # Of the letters that are not rejected or taken back: those chosen, marked, asserted, or all.
    unrejected = [letter for letter in letters if not letter.rejected]
    taken_back = max((words.end() for words in _RECONSIDERED.finditer(text)), default=0)
    unrejected = [letter for letter in unrejected if letter.start >= taken_back] or unrejected
    marked = [letter for letter in unrejected if letter.marked]
    asserted = [letter for letter in unrejected if letter.asserted]
    mentioned = [letter for letter in letters if not letter.denied]
    for fits, others in (
        ([letter for letter in unrejected if letter.chosen], []),
        (marked if len({letter.letter for letter in marked}) == 1 else [], []),
        (asserted if len({letter.letter for letter in asserted}) == 1 else [], []),
        (unrejected, unrejected),
        (mentioned, mentioned),
    ):
        if fits:
            group = fits[-1].group
            chosen = {letter.letter for letter in letters if letter.group == group}
            return chosen, {letter.letter for letter in others}
    return set(), set()


def _plain(styled: re.Match[str]) -> str:
    """Return a letter in a circle, a square or another width as (B)."""
    number = ord(styled[0])
    if 0x1F150 <= number <= 0x1F189:
        return f"({chr(ord('A') + (number - 0x1F150) % 32)})" if (number - 0x1F150) % 32 < 26 else styled[0]
    plain = unicodedata.normalize("NFKC", styled[0]).strip("()")
    return f"({plain})" if (len(plain) == 1 and number >= 0x1F100) or 0x249C <= number <= 0x24E9 else plain


def _letters(text: str) -> list[_Letter]:
    """Return the letters that stand alone and are no words, in order."""
    matches = [*_CAPITAL.finditer(text)]
    capitals = [letter for letter in matches if not _is_word(text, letter.start())] or matches
    matches = sorted([*capitals, *_SMALL.finditer(text)], key=re.Match.start)
    letters: list[_Letter] = []
    group_at = {
        start: n for n, listed in enumerate(_LISTED.finditer(text)) for start in range(*listed.span())
    }
    for i, letter in enumerate(matches):
        start = max(matches[i - 1].end() if i else 0, letter.start() - _NEAR)
        end = min(matches[i + 1].start() if i + 1 < len(matches) else len(text), letter.end() + _NEAR)
        before = _MARKUP.sub("", text[start : letter.start()])
        behind = _MARKUP.sub("", text[letter.end() : end])
        if end < len(text):
            behind = f"{_REJECTED_BEFORE.sub('', behind)}…"  # of "B, not A" the not belongs to A
        lead = before if start == 0 else text[start - 1] + before
        begins, tick = _LINE.search(lead), _TICK.search(lead)
        is_question = bool(_ASKED.match(behind))
        chosen = not is_question and bool(_CHOSEN_BEFORE.search(before) or (tick and tick["on"]))
        alone = begins and _LINE_END.match(behind)
        bold = begins and _BOLD.search(text, start, letter.start())
        marked = bool(alone or bold or _CHOSEN_BEHIND.match(behind))
        labels = bool(begins and letter[0].isupper() and _LABEL.match(text, letter.end()))
        denied = bool(_REJECTED_BEFORE.search(before) or (tick and not tick["on"]))
        if letter[0].islower() and capitals and not (chosen and _SMALL_ENDS.match(behind)):
            continue
        letters.append(
            _Letter(
                letter=letter[0].upper(),
                chosen=chosen,
                start=letter.start(),
                marked=marked,
                asserted=marked or labels,
                denied=denied,
                rejected=denied != bool(_REJECTED_BEHIND.match(behind)),  # "all except B are wrong"
                group=group_at.get(letter.start(), -letter.start() - 1),
            )
        )
    rejected = {letter.group for letter in letters if letter.rejected}
    return [letter._replace(rejected=letter.group in rejected) for letter in letters]


def _is_word(text: str, start: int) -> bool:
    """Return whether a capital begins a sentence as a word: A dog, I am, Y también."""
    before = text[max(0, start - _NEAR) : start].rstrip(" \t")
    return bool(_ARTICLE.match(text, start)) and (not before or before[-1] in ".!?:\n")
