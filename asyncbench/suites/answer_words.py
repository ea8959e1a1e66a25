"""The words with which a reply names its answer, concludes, and takes back what it said: in many languages.

They are regular expressions, for readers that ignore case.
"""

from typing import Final

# Before an answer: the word itself, and what leads from it to the answer.
ANSWER_NOUN: Final = (
    r"\b(?:answer|choice|option|solution|respuesta|opción|resposta|risposta|réponse|antwort|lösung|antwoord"
    r"|svar(?:et)?|vastaus|odpowied[zź]|odpově[dď]|ответ|вариант|відповідь|cevap|yanıt|đáp án|jawaban"
    r"|απάντηση)\b"
)
ANSWER_LEADS: Final = (
    r"(?:[:=→—–-]|\b(?:is|be|lautet|ist|est|es|è|é|là|adalah|jest|to|je|är|er|on|είναι|это)\b)"
)
# In these languages the noun alone is enough.
ANSWER_NOUN_ALONE: Final = (
    r"(?:الجواب|الإجابة|إجابة|תשובה|उत्तर|答案|正解|解答|回答|答え|答|정답|답변|답|คำตอบ|ตอบ)"
)

# Before a conclusion.
THEREFORE: Final = (
    r"(?:\b(?:therefore|thus|hence|so|daher|also|donc|entonces|luego|portanto|quindi|поэтому|значит)\b"
    r"|因此|所以|故|よって|したがって|따라서)"
)
# Before what replaces something that was said.
CORRECTED: Final = (
    r"(?:\b(?:wait|actually|no|rather|correction|corrected|mistake|sorry|oops|instead|moment)\b|不对|等等)"
)
# What a reply says of all that stands before it.
RECONSIDERED: Final = (
    r"(?:\bwait\b(?=[,.!…—–-]|\s*$)|\b(?:oops|scratch that|on (?:second thought|reflection)|correction)\b"
    r"|\bthat(?:['’]s| is| was) (?:wrong|incorrect|not (?:right|correct))"
    r"|\bI (?:made|was) (?:a mistake|an error|wrong|mistaken)\b|\bmoment mal\b|不对[，,。!！]|等等|等一下)"
)
# At the end of what stands before a number or a letter that the answer is not.
REJECTED: Final = (
    r"(?:\b(?:(?:can)?not|nicht|pas|не|never|rather than|instead of|(?:an)?statt)|n['’]t"
    r"|不是|并非|並非|而?非|不等于"
    r"|≠|\\neq?)(?: (?:be|equal(?: to)?))?"
)
# A sentence that asks: of "Is it 12? No, 17" it holds no answer.
QUESTION: Final = r"(?:^|(?<=[.!?。！？\n]))[^.!?。！？\n]{1,300}[?？]"
# At the beginning of a line: an explanation of what stands before it; another question.
EXPLAINED: Final = (
    r"(?:(?:explanation|reasoning|justification|rationale|because|since|erklärung|begründung|weil|explicación"
    r"|porque|explication|explicação|spiegazione|perché|объяснение|пояснение|потому)(?!\w)"
    r"|here(?:['’]s| is) (?:why|how|the (?:explanation|reasoning))|解释|解析|理由|説明|因为|풀이|설명)"
)
NEXT_QUESTION: Final = (
    r"^[\W_]{0,6}(?:question|q|problem|exercise|frage|pregunta|pergunta|domanda|вопрос|问题|题目|質問|問題|문제|질문"
    r"|user|human|instruction)\s{0,2}[0-9]{0,4}[*_]{0,2}[:：.)]"
)
