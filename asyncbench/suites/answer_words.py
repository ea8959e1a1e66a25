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
