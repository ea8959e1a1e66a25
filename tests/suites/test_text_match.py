"""The graders `text` and `contains`: what counts in words, and what does not."""

import json

import pytest

from asyncbench.records import Reply
from asyncbench.suites.custom import grade
from tests.rows import each_row
from tests.suites.made import problem


def right(grader: str, reply: str, *accepted: str) -> bool:
    extra = {"grader": grader, "accepted": list(accepted)}
    return grade(problem("custom", accepted[0], extra=json.dumps(extra)), Reply(text=reply))[0].exact_match


EQUAL = [
    ("paris.", "Paris"),
    ("  The Beatles ", "Beatles"),
    ("a Beatle", "Beatle"),
    ("**Paris**", "Paris"),
    ("`Paris`", "Paris"),
    ("- Paris", "Paris"),
    ("“Hamlet”", '"Hamlet"'),
    ("don’t", "dont"),
    ("rock'n'roll", "rock 'n' roll"),
    ("U.S.A.", "USA"),
    ("Tolkien, J. R. R.", "Tolkien, J.R.R."),
    ("New-York", "new york"),
    ("Newyork", "New York"),
    ("AC/DC", "ac dc"),
    ("naïve Café", "naive cafe"),
    ("cafe\u0301", "café"),
    ("straße", "STRASSE"),
    ("İstanbul", "istanbul"),
    ("ISTANBUL", "ıstanbul"),
    ("Ørsted", "orsted"),
    ("Łódź", "Lodz"),
    ("ΣΟΦΟΣ", "σοφος"),
    ("ﬁne", "fine"),
    ("ＡＢＣ１", "abc1"),
    ("soft\u00adware\u200b", "software"),
    ("東京。", "東京"),
    ("東 京", "東京"),
    ("Vitamin a", "vitamin A"),
    ("the", "The"),
    ("+", "+"),
    ("?", "?"),
    ("50 %", "50%"),
    ("1,000", "1000"),
    ("–5", "-5"),
    ("3–4", "3-4"),
    ("x²", "x^2"),
    ("1½", "1 1/2"),
    ("$5$", "5"),
    (r"\boxed{\text{Paris}}", "Paris"),
    ("<b>Paris</b>", "Paris"),
    ("Tom &amp; Jerry", "Tom & Jerry"),
    ("~~London~~ Paris", "Paris"),
]
APART = [
    ("London", "Paris"),
    ("It is Paris", "Paris"),
    ("1.5", "15"),
    ("1,5", "1.5"),
    ("-5", "5"),
    (".5", "5"),
    ("3-4", "34"),
    ("10:30", "1030"),
    ("10²", "102"),
    ("1½", "11/2"),
    ("1 2", "12"),
    ("C++", "C"),
    ("C#", "C"),
    ("+", "-"),
    ("?", "!"),
    ("the", "a"),
    ("vitamin", "Vitamin A"),
    ("か", "が"),
    ("कल", "कुल"),
    ("Paris Paris", "Paris"),
    ("London Big", "Big London"),
]


@each_row(("reply", "expected"), EQUAL)
def test_case_accents_punctuation_and_articles_do_not_count(reply, expected):
    assert right("text", reply, expected)
    assert right("text", expected, reply)


@pytest.mark.parametrize(("reply", "expected"), APART)
def test_what_tells_answers_apart_counts(reply, expected):
    assert not right("text", reply, expected)


CONTAINED = [
    ("The capital is Paris.", "Paris", True),
    ("PARIS, of course", "paris", True),
    ("comparison", "Paris", False),
    ("150", "15", False),
    ("15 apples", "15", True),
    ("It is 1.5", "5", False),
    ("It is 1.5.", "1.5", True),
    ("x=-5", "5", False),
    ("x=-5", "-5", True),
    ("3.14159", "3.14", False),
    ("It costs $1,000.", "1000", True),
    ("the United States of America", "United States", True),
    ("Washington, D.C. it is", "Washington D.C.", True),
    ("Your grade is A", "A", True),
    ("the answer is 北京。", "北京", True),
    ("答案是北京。", "北京", True),
    ("答案不是北京。", "北京", False),
    ("It is not Paris", "Paris", False),
    ("It cannot be Paris", "Paris", False),
    ("No es París", "París", False),
    ("Neither Paris nor Rome", "Rome", False),
    ("It isn't Paris, but Lyon", "Paris", False),
    ("It is not the Paris of old", "Paris", False),
    ("Not Lyon but Paris", "Paris", True),
    ("Lyon? Certainly not. Paris!", "Paris", True),
    ("not Paris? Yes, Paris.", "Paris", True),
    ("Lyon rather than Paris", "Paris", False),
    ("c plus + is it", "+", True),
]


@each_row(("reply", "expected", "contained"), CONTAINED)
def test_whole_words_are_contained_where_no_not_is_before_them(reply, expected, contained):
    assert right("contains", reply, expected) is contained


@pytest.mark.parametrize("grader", ["text", "contains"])
def test_any_accepted_answer_is_right_and_is_the_answer(grader):
    asked = problem("custom", "Paris", extra=json.dumps({"grader": grader, "accepted": ["Paris", "Paname"]}))
    grades = [grade(asked, Reply(text=text))[0] for text in ("paname!", "Paris", " Lyon ")]
    assert [(each.exact_match, each.answer) for each in grades] == [
        (True, "Paname"),
        (True, "Paris"),
        (False, "Lyon"),
    ]
