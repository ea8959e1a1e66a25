"""The letter that a reply chooses, beside any script, and not one that it only mentions."""

from hypothesis import given, strategies as st

from asyncbench.suites.choice_reading import last_letter
from tests.rows import each_row
from tests.suites.choice_cases import CHOSEN

LETTERS = "ABCDEFGHJ"


@each_row(("text", "letter"), CHOSEN)
def test_a_reply_chooses_a_letter(text, letter):
    assert last_letter(text) == letter


@given(
    st.sampled_from(LETTERS),
    st.sampled_from(LETTERS),
    st.sampled_from(
        [
            "答案是{}，选项 {} 不对",
            "The answer is {}, not {}.",
            "정답은 {}이고, {} 는 아닙니다.",
            "{} is correct; {} is wrong",
        ]
    ),
)
def test_a_letter_that_is_rejected_is_never_read(chosen, rejected, sentence):
    assert last_letter(sentence.format(chosen, rejected)) == chosen or chosen == rejected


@given(
    st.sampled_from(LETTERS), st.sampled_from([r"\boxed{{{}}}", r"\boxed{{\text{{{}}}}}", r"\boxed{{({})}}"])
)
def test_a_box_wins(letter, box):
    assert last_letter(f"{box.format(letter)}. The answer is Z, as Q") == letter
