"""The grader `json`: which values are equal, and where a reply has its JSON."""

import json

import pytest

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.records import Outcome, Reply
from asyncbench.suites.custom import check_custom, check_expected, grade
from tests.suites.made import problem

FENCE = "```"


def graded(reply: str, expected: str):
    return grade(problem("custom", expected, extra='{"grader": "json"}'), Reply(text=reply))[0]


RIGHT = {
    "spaces": ('{"a":1,\n "b": [1,2]}', '{"a": 1, "b": [1, 2]}'),
    "order of keys": ('{"b": 2, "a": 1}', '{"a": 1, "b": 2}'),
    "1.0 is 1": ('{"a": 1.0}', '{"a": 1}'),
    "0.10 is 0.1": ("0.10", "0.1"),
    "minus nought": ("-0", "0"),
    "big integers": ("123456789012345678901", "123456789012345678901"),
    "integers beyond 4300 digits": ("9" * 5000, "9" * 5000),
    "beyond any float": ("1e400", "1E+400"),
    "escapes": (r'"\u00e9"', '"é"'),
    "a fence": (f'{FENCE}json\n{{"a": 1}}\n{FENCE}', '{"a": 1}'),
    "a fence that is not closed well": (f'{FENCE}json\n{{"a": 1}}{FENCE}', '{"a": 1}'),
    "text around": ('Here it is: {"a": 1}. Anything else?', '{"a": 1}'),
    "a footnote behind": ('It is {"a": 1}, see [1].', '{"a": 1}'),
    "the last of several": ('First {"a": 2}, no: {"a": 1}', '{"a": 1}'),
    "a fence in a text": ('{"x": "```json\\n{}\\n```"}', '{"x": "```json\\n{}\\n```"}'),
    "the same key twice": ('{"a": 1, "a": 1.0}', '{"a": 1}'),
    "null": ("null", "null"),
}
WRONG = {
    "true is not 1": ("true", "1"),
    "a text is not a number": ('"5"', "5"),
    "order of a list": ("[2, 1]", "[1, 2]"),
    "one key more": ('{"a": 1, "b": 2}', '{"a": 1}'),
    "a digit of a big integer": ("123456789012345678902", "123456789012345678901"),
    "what a float would forget": ("0.1", "0.1000000000000000055511151231257827"),
    "case of a key": ('{"A": 1}', '{"a": 1}'),
}
NOTHING = {
    "no JSON": "Sorry, I cannot.",
    "single quotes": "{'a': 1}",
    "cut": '{"a": 1',
    "two values of a key": '{"a": 1, "a": 2}',
    "NaN": "NaN",
    "infinity": '{"a": -Infinity}',
    "nested beyond all": "[" * 100_000,
    "brackets without end": '["a", ' * 20_000,
}


@pytest.mark.parametrize(("reply", "expected"), RIGHT.values(), ids=RIGHT)
def test_equal_values_are_right(reply, expected):
    assert graded(reply, expected).outcome == Outcome.CORRECT


@pytest.mark.parametrize(("reply", "expected"), WRONG.values(), ids=WRONG)
def test_other_values_are_wrong(reply, expected):
    assert graded(reply, expected).outcome == Outcome.WRONG


@pytest.mark.parametrize("reply", NOTHING.values(), ids=NOTHING)
def test_there_may_be_no_json(reply):
    assert graded(reply, '{"a": 1}').outcome == Outcome.NO_ANSWER


def test_format_is_kept_where_the_reply_is_nothing_but_json():
    replies = ('{"a": 1}', 'It is {"a": 1}', "none")
    assert [graded(reply, '{"a": 1}').format_ok for reply in replies] == [True, False, False]
    assert graded('It is {"a": 1}.', "{}").answer == '{"a": 1}'


@pytest.mark.parametrize("expected", ["Paris", '{"a": 1, "a": 2}', "NaN", "1e99999999999999999999", ""])
def test_an_expected_value_must_be_json(expected):
    with pytest.raises(ProblemSetError, match=r"^here: grader 'json'"):
        check_expected("json", expected, place="here")


def test_a_list_is_a_value_and_several_may_be_accepted():
    extra = json.dumps({"grader": "json", "accepted": ["[1, 2]", "null"]})
    asked = problem("custom", "[1, 2]", extra=extra)
    texts = ("[1, 2]", "null", "1")
    assert [grade(asked, Reply(text=text))[0].exact_match for text in texts] == [True, True, False]


# ── schemas


SCHEMA = {
    "type": "object",
    "required": ["n"],
    "properties": {"n": {"type": "integer"}, "s": {"pattern": "^(a|a)*$"}, "q": {"multipleOf": 0.1}},
    "additionalProperties": False,
}
HELD = {
    '{"n": 1}': True,
    'It is {"n": 1.0}.': True,
    '{"n": 1, "q": 0.3}': True,
    '{"n": "1"}': False,
    '{"n": 1.5}': False,
    '{"n": 1, "z": 2}': False,
    '{"n": 1, "s": "' + "a" * 60 + 'b"}': False,  # whose pattern does not end
    "none": False,
}


@pytest.mark.long
def test_format_is_kept_where_a_schema_holds_and_values_must_be_equal_all_the_same():
    asked = problem("custom", '{"n": 1}', extra=json.dumps({"grader": "json", "json_schema": SCHEMA}))
    grades = {text: grade(asked, Reply(text=text))[0] for text in HELD}
    assert {text: each.format_ok for text, each in grades.items()} == HELD
    assert [text for text, each in grades.items() if each.exact_match] == list(HELD)[:2]


@pytest.mark.long
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objct"},
        {"$ref": "http://127.0.0.1/schema.json"},
        {"$ref": "#/$defs/none"},
        {"pattern": "("},
        [1],
    ],
    ids=str,
)
def test_a_schema_by_which_nothing_can_be_checked_is_refused(schema):
    with pytest.raises(ConfigError, match="here: `json_schema` is no usable JSON schema"):
        check_custom("json", json_schema=schema, place="here")


def test_only_json_takes_a_schema():
    with pytest.raises(ConfigError, match="takes no `json_schema`"):
        check_custom("exact", json_schema={}, place="here")
