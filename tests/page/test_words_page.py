"""A page of answers in words: no digits, no lengths, but the question and what was answered instead."""

import csv

import pytest
import yaml

from asyncbench import report
from asyncbench.page.writing import contents_of, write_page
from tests.commands import asyncbench, succeeded

pytestmark = pytest.mark.long  # a run and a browser

CITIES = {"Norway": "Oslo", "Germany": "Berlin", "Peru": "Lima", "Kenya": "Nairobi", "Cuba": "Havana"}


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A sweep of two simulated models over questions whose answers are words."""
    folder = tmp_path_factory.mktemp("words")
    with (folder / "cities.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["question", "expected"])
        for n in range(40):
            country, city = list(CITIES.items())[n % len(CITIES)]
            lines.writerow([f"{n}: What is the capital\nof {country}?\nAnswer with one word.", city])
    source = {"path": str(folder / "cities.csv"), "suite": "custom", "grader": "exact"}
    models = ["simulated/oracle", "simulated/noisy"]
    sweep = {"name": "words", "problems": [source], "models": models, "out": str(folder / "results")}
    (folder / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    run = succeeded(asyncbench("run", folder / "sweep.yaml"))  # a browser may have this process's event loop
    (folder / "summary.txt").write_text(run.stdout)
    write_page(folder / "results")
    return folder / "results"


def test_words_have_no_digit_and_no_length_and_their_question_is_shown(words):
    blocks = contents_of(words)
    assert blocks["errors"]["kinds"]
    assert blocks["errors"]["compared"] == 0
    wrong = [trial for trial in blocks["sample"]["trials"] if trial["outcome"] == "wrong"]
    assert wrong
    assert all(trial["aligned"] is None for trial in wrong)
    assert all("What is the capital of " in trial["operands"] for trial in wrong)
    answered = {row["words"]: row["wrong"] for row in blocks["errors"]["words"]}
    assert sum(answered.values()) == len(wrong)


def test_a_page_of_words_has_no_empty_card_and_names_the_most_frequent_wrong_answers(words, opened):
    page = opened(words)
    assert "Where each breaks" not in page.page.inner_text("#view")
    assert "Every task, every model" in page.page.inner_text("#view")
    page.view("errors")
    errors = page.page.inner_text("#view")
    assert "Errors by digit position" not in errors
    assert "The most frequent wrong answers" in errors
    page.view("answers")
    assert page.page.locator(".laid").count() == 0
    assert page.told == []


def test_reports_of_words_have_no_column_that_is_always_empty(words):
    assert "right up to" not in (words.parent / "summary.txt").read_text()
    text = report(words, style="anatomy").as_text()
    assert "The most frequent wrong answers" in text
    for absent in ("Wrong digits by position", "right up to  ", "too short", "unclassified answers"):
        assert absent not in text
