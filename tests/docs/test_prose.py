"""The sentences of the README and of the pages are short; they and messages say no word twice in a row."""

import ast
import re
from pathlib import Path
from statistics import mean

import pytest

from docs.generated import written_by_hand

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WORDS_OF_A_SENTENCE = 16  # on average
LONG, FEW_LONG = 30, 0.03
TWICE = re.compile(r"(?<![-\w/])([a-z]{2,}) \1(?![-\w/%])")  # but not `--requests requests/folder`


def prose(page):
    """Return the words of a page: no code, tables, headings, pictures and tags."""
    text = re.sub(r"```.*?```", " ", written_by_hand(page.read_text("utf-8")), flags=re.DOTALL)
    nothing_said = r"<[a-zA-Z/!][^>\n]*>|^\s*\|[^\n]*$|^#[^\n]*$|!\[[^\n]*?\]\([^\n]*?\)"
    return re.sub(nothing_said, " ", text, flags=re.MULTILINE)


def sentences(page):
    """Return how many words each sentence has; a fragment of three is none."""
    lengths = (len(sentence.split()) for sentence in re.split(r"(?<=[.!?])\s+", prose(page)))
    return [words for words in lengths if words > 3]


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_sentences_are_short(page):
    found = sentences(page) or [0]
    long = sorted(words for words in found if words > LONG)
    assert mean(found) <= WORDS_OF_A_SENTENCE
    assert len(long) <= FEW_LONG * len(found), long


def texts(module):
    """Yield the strings of a module, joined as they are printed."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=values):
                yield "".join(
                    str(value.value) if isinstance(value, ast.Constant) else "{}" for value in values
                )


@pytest.mark.long  # reads the whole code
def test_no_sentence_says_a_word_twice():
    modules = sorted((ROOT / "asyncbench").rglob("*.py"))
    said = [(page, re.sub("`.*?`", "`", prose(page))) for page in PAGES] + [
        (path, text) for path in modules for text in texts(path)
    ]
    assert len(said) > 5_000
    assert [(name_of(path), word) for path, text in said for word in TWICE.findall(text)] == []


def test_the_speeds_of_the_page_that_compares_are_those_of_the_benchmarks():
    pages = ROOT / "docs" / "explanation"
    rows = re.findall(r"^\|(.*)\| `(python -m \S+)` \|$", (pages / "comparison.md").read_text("utf-8"), re.M)
    measured = (pages / "benchmarks.md").read_text("utf-8")
    assert len(rows) > 5
    assert [command for _, command in rows if f"`{command}" not in measured] == []
    figures = [figure for row, _ in rows for figure in re.findall(r"[\d.]+(?= (?:%|µs|s|ms))", row)]
    assert len(figures) > 10
    assert [figure for figure in figures if not re.search(rf"\b{re.escape(figure)}\b", measured)] == []
