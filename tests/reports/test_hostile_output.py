"""What models and their makers write does nothing in any report: not in a terminal, not in Markdown."""

import json
import re

import pytest

from asyncbench import read_trials, regrade_folder
from asyncbench.store.folder import Store
from tests.commands import asyncbench_here
from tests.reports.answered import Asked, folder_of
from tests.store import made

pytestmark = pytest.mark.long

EVIL = (
    "\x1b[31m\x9b2J\x07\u202egpt\u2066\u200f\u061c|`<script>alert(1)</script>`![x](http://x)\r\n# head\t\\|"
)
LONG = EVIL + "9" * 1_000_000
OTHER = "gpt-\u2067other\x1b]0;title\x07"
SUITES = {"llm_arithmetic": "int_add", "integer_addition": "integer_addition", "nupa": "add"}

REPORTS = [
    ("report",),
    *(("report", "--style", style) for style in ("morning", "standings", "heatmap", "anatomy", "quota")),
    *(("report", "--style", style) for style in ("llm-arithmetic", "integer-addition", "nupa")),
    ("compare", EVIL, OTHER),
    ("regrade",),
]
FORMS = [*((report, form) for report in REPORTS for form in ((), ("--markdown",))), (("status",), ())]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models with evil names, asked evil questions, one of them with evil answers a megabyte long."""
    answers = [
        Asked(model=model, outcomes=outcomes, suite=suite, task=task, answer=answer, condition=EVIL)
        for suite, task in SUITES.items()
        for model, outcomes, answer in ((EVIL, "-+tx", LONG), (OTHER, "+-?+", EVIL))
    ]
    out = folder_of(tmp_path_factory.mktemp("evil"), answers, questions={0: LONG, 1: EVIL}, sweep=EVIL)
    with Store.reopen(out) as store:
        store.keep(made.minute(EVIL))
    regrade_folder(out, write=True)  # by every grader of the suites, as a run does
    return out


def asked(report, folder, *form):
    done = asyncbench_here(report[0], *report[1:], folder, *form)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize(("report", "form"), FORMS, ids=lambda one: " ".join(map(ascii, one))[:40])
def test_nothing_in_a_report_does_anything(folder, report, form):
    text = asked(report, folder, *form)
    assert all(line.isprintable() for line in text.split("\n"))
    assert len(text) < 200_000
    assert r"\x1b" in text  # it is shown, not hidden
    if form:
        check_markdown(text)


def check_markdown(text):
    assert not re.search(r"<[a-z/!]", text)
    assert not re.search(r"(?<!\\)(?:\\\\)*\]\(", text)  # a link
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in table.splitlines()}) == 1


def test_an_error_that_quotes_a_name_is_harmless(folder):
    done = asyncbench_here("compare", EVIL, "nobody", folder)
    assert done.returncode == 2
    assert done.stderr.replace("\n", "").isprintable()
    assert done.stderr.count("\n") == 1


@pytest.mark.long
def test_json_keeps_every_character(folder):
    found = json.loads(asked(("compare", EVIL, OTHER), folder, "--json"))
    assert {one["question"] for one in found["only_a"]} == {EVIL}
    assert LONG in {one["question"] for one in found["only_b"]}
    assert found["a"]["name"] == EVIL
    lines = json.loads(asked(("report", "--style", "standings"), folder, "--json"))["rankings"][0]["lines"]
    assert {line["model"] for line in lines} == set(read_trials(folder, ["model"])["model"].to_pylist())
