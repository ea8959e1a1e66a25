"""Names where room is short: those that are shown together differ as shown, and what differs stands whole."""

import re

from hypothesis import given, strategies as st

from asyncbench.analysis.entrants import (
    LONGEST_NAME,
    LONGEST_SHORT,
    distinct_names,
    names_of,
    short_names,
)
from asyncbench.published.reports import MARK, PublishedPicture

PART = st.text("abXY01-_./ ()", min_size=40, max_size=90)
TELLING = st.text("abXY01", min_size=1, max_size=12)


@given(PART, st.sets(TELLING, min_size=2, max_size=40), PART, st.sampled_from([11, 24, LONGEST_NAME]))
def test_long_names_that_begin_and_end_alike_differ_as_shown(beginning, telling, end, longest):
    names = [f"{beginning}{word}{end}" for word in telling]
    for shown in (distinct_names(names, longest=longest), short_names(names)):
        assert len({*shown.values()}) == len(names)
    assert max(map(len, distinct_names(names, longest=longest).values())) <= longest
    assert max(map(len, short_names(names).values())) <= LONGEST_SHORT


@given(st.lists(st.text(min_size=0, max_size=70), min_size=2, max_size=30, unique=True))
def test_any_names_differ_as_shown_whatever_they_hold(names):
    shown = distinct_names(names)
    assert len({*shown.values()}) == len(names)
    assert all(text.isprintable() and len(text) <= LONGEST_NAME for text in shown.values())


@given(st.sets(TELLING, min_size=2, max_size=12), st.text("cd/ ", min_size=40, max_size=60))
def test_what_differs_between_separators_stands_whole(telling, beginning):
    names = {word: f"{beginning}-{word}-instruct-turbo-preview-of-last-year" for word in telling}
    shown = distinct_names(names.values())
    assert all(re.search(rf"(?<!\w){word}(?!\w)", shown[name]) for word, name in names.items())


def test_variants_of_a_list_are_named_by_what_differs():
    entrants = [
        ("sweep", f"groq/{model} temperature={value}", condition)
        for model in ("alpha", "beta")
        for value in (0, 0.5)
        for condition in ("plain", "steps")
    ]
    names = names_of(entrants)
    assert names["sweep", "groq/alpha temperature=0", "steps"] == "groq/alpha · t=0 · steps"
    assert short_names(names.values())["groq/alpha · t=0 · steps"] == "alpha · t=0 · steps"


def test_a_condition_tells_two_runs_of_a_model_apart_and_a_run_is_named_by_its_own_name_once():
    asked = [("zero", "llama", "chat"), ("five", "llama", "few")]
    assert names_of(asked) == dict(zip(asked, ["llama (chat)", "llama (few)"], strict=True))
    alike = [("llama", "llama", "chat"), ("later", "llama", "chat")]
    assert names_of(alike) == dict(zip(alike, ["llama", "llama, run later"], strict=True))


def test_tables_of_a_picture_have_whole_names_however_long():
    name = "Meta-Llama-3.1-8B-Instruct-" * 10
    rows = [{"model": f"{name}{n} {MARK}", "share": 0.5} for n in (1, 2)]
    picture = PublishedPicture(name="p", title="t", kind="dots", rows=rows, y="model", value="share")
    for text in (picture.as_markdown(), picture.as_latex()):
        assert all(f"{name}{n} {MARK}" in text.replace("{}", "") for n in (1, 2))
