"""`report --style card`: one model on a page, with the figures of the other reports."""

import json
from collections import Counter
from typing import Any

import pytest

import asyncbench as ab
from asyncbench import import_files
from asyncbench.errors import ConfigError
from asyncbench.reports.card import closest
from tests.contracts.night import write_night
from tests.recorded import write_jsonl
from tests.reports.answered import Asked, folder_of

FORMS = ("as_text", "as_markdown", "as_latex", "as_json", "_repr_html_")
CHOSEN: Any = {"models": ["quick"], "where": "condition = 'plain'"}
NANO = "gpt-4.1-nano-2025-04-14"


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Return a folder in which three models were asked under two conditions."""
    return write_night(tmp_path_factory.mktemp("card") / "night")


def test_a_card_is_of_one_model_and_lists_those_to_choose_from(night):
    with pytest.raises(ConfigError, match=r"has 2: quick \(plain\), quick \(short\)\. Choose one by"):
        ab.report(night, "card", models=["quick"])


def test_a_card_has_the_figures_of_the_other_reports(night):
    card, whole, anatomy = (
        json.loads(ab.report(night, style, **CHOSEN).as_json()) for style in ("card", None, "anatomy")
    )

    assert (card["suites"], card["tasks"]) == (whole["suites"], whole["tasks"])
    answers = Counter[str]()
    for group in anatomy["groups"]:
        answers.update({kind["kind"]: kind["count"] for kind in group["kinds"]})
    assert {each["kind"]: each["answers"] for each in card["kinds"]} == answers
    assert sum(each["share"] for each in card["kinds"]) == pytest.approx(1)
    curves = [group["digits"] for group in anatomy["groups"] if group["digits"]]
    breaks = [json.dumps(each["at_50"]) for each in card["lengths"]]
    assert sorted(breaks) == sorted(
        json.dumps(curve["at_50"]) for curve in curves if len(curve["points"]) > 1
    )


def test_a_thousand_right_answers_cost_what_the_wrong_ones_cost_as_well(tmp_path):
    folder = folder_of(tmp_path, [Asked(model="a", outcomes="++++++--", cost_usd=0.25)])

    assert "$333.3333" in ab.report(folder, "card").as_text()


@pytest.mark.parametrize("form", FORMS)
def test_a_card_has_every_form_of_a_report(night, form):
    text = getattr(ab.report(night, "card", **CHOSEN), form)()

    for title in ("lengths", "kinds") if form == "as_json" else ("Where it breaks", "How it errs"):
        assert title in text


def test_the_closest_published_model_has_the_least_mean_difference_over_the_common_tasks():
    own = {"add": (90.0,), "sub": (50.0,)}
    printed = {
        "far": {"add": (50.0,), "sub": (50.0,)},
        "near": {"add": (80.0,), "sub": (40.0,), "mul": (0.0,)},
        "of one task": {"add": (90.0,)},
    }
    peer = closest("s", "% correct", own, printed)

    assert peer is not None
    assert (peer.model, peer.candidates, peer.difference) == ("near", 3, 10)
    assert [task.task for task in peer.tasks] == ["add", "sub"]
    assert closest("s", "% correct", {"mod": (1.0,)}, printed | {"near": {}}) is None


def test_no_published_model_stands_beside_tasks_of_which_lengths_are_missing(night):
    assert json.loads(ab.report(night, "card", **CHOSEN).as_json())["peers"] == []


@pytest.mark.long
def test_a_published_run_is_closest_to_itself(golden, tmp_path):
    files = [path for path in write_jsonl(golden, tmp_path / "files") if path.name.startswith(NANO)]
    folder = import_files("llm-arithmetic", files, tmp_path / "nano", depths="2-10").out
    (peer,) = json.loads(ab.report(folder, "card").as_json())["peers"]

    assert (peer["suite"], peer["model"], len(peer["tasks"])) == ("llm_arithmetic", NANO, 8)
    assert peer["difference"] < 0.005  # printed figures have two decimals
