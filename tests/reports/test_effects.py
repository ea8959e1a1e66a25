"""`report --by`: the values of what a sweep varied, each beside the first on the same problems."""

import asyncio
import json

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.tables.headings import HEADINGS
from tests.commands import asyncbench_here, succeeded

MATRIX = """\
name: matrix
problems: [{suite: integer_addition, tries: 12}]
models:
  - model: [simulated/noisy, simulated/noisy-2, simulated/oracle]
    effort: [low, medium, high]
    max_tokens: 400
conditions:
  - {name: plain}
  - {name: terse, system: Answer with the number alone.}
"""
MODELS = ("simulated/noisy", "simulated/noisy-2", "simulated/oracle")
EFFORTS = ("low", "medium", "high")


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Three models at three efforts in two wordings. With much effort some replies have no room."""
    place = tmp_path_factory.mktemp("matrix")
    (place / "matrix.yaml").write_text(MATRIX + f"out: {place / 'out'}\n")
    summary = asyncio.run(ab.run_sweep(place / "matrix.yaml"))
    assert sum(counters.planned for counters in summary.models.values()) == 3 * 3 * 2 * 12
    return place / "out"


def lines_of(night, by):
    return json.loads(ab.report(night, by=by).as_json())["lines"]


@pytest.mark.long
def test_each_value_is_beside_the_first_as_compare_has_the_two(night):
    lines = lines_of(night, "effort")
    ways = [f"{model} ({wording})" for model in MODELS for wording in ("plain", "terse")]
    assert [(line["name"], line["value"]) for line in lines] == [
        (name, effort) for name in ("all together", *ways) for effort in EFFORTS
    ]
    (high,) = (
        line for line in lines if line["name"] == "simulated/oracle (terse)" and line["value"] == "high"
    )
    one, other = (f"simulated/oracle effort={effort} (terse)" for effort in ("high", "low"))
    whole = json.loads(ab.compare(one, other, night).as_json())["rows"][0]
    assert high["difference"] == whole["difference"] < 0
    assert high["difference_interval"] == whole["interval"]
    assert (high["p"], high["problems"]) == (whole["p"], 12)
    assert high["p_holm"] >= high["p"]
    assert high["output_tokens"] > 100


@pytest.mark.long
def test_all_models_together_count_a_problem_once(night):
    lines = lines_of(night, "effort")
    together = {line["value"]: line for line in lines[:3]}
    for effort in EFFORTS:
        each = [line["accuracy"] for line in lines[3:] if line["value"] == effort]
        assert together[effort]["accuracy"] == pytest.approx(sum(each) / len(each))
    assert (together["low"]["difference"], together["low"]["p"]) == (None, None)
    low, high = together["high"]["difference_interval"]
    assert low <= together["high"]["difference"] <= high < 0
    assert together["high"]["problems"] == 12


@pytest.mark.long
def test_a_wording_is_compared_likewise(night):
    lines = lines_of(night, "condition")
    assert [line["value"] for line in lines] == ["plain", "terse"] * 10
    assert {line["name"] for line in lines[2:]} == {
        f"{model} · effort={effort}" for model in MODELS for effort in EFFORTS
    }


@pytest.mark.long
def test_entries_of_ones_own_and_efforts_of_conditions_are_told_from_the_results_alone(tmp_path):
    raw = {
        "name": "own",
        "problems": [{"suite": "integer_addition", "tries": 5}],
        "models": ["simulated/noisy", {"model": "simulated/noisy", "alias": "cold", "temperature": 0}],
        "conditions": [
            {"name": "a", "effort": "low"},
            {"name": "b", "effort": "high", "system": "x"},
            {"name": "c", "effort": "high"},
        ],
        "out": str(tmp_path / "out"),
    }
    asyncio.run(ab.run_sweep(raw))
    (tmp_path / "out/sweep.yaml").unlink()
    by_temperature = lines_of(tmp_path / "out", "temperature")
    assert [(line["name"], line["value"]) for line in by_temperature[2:]] == [
        (f"simulated/noisy, cold ({name})", value) for name in "abc" for value in ("not set", "0.0")
    ]
    by_effort = lines_of(tmp_path / "out", "effort")
    assert [(line["name"], line["value"]) for line in by_effort[2:]] == [
        (model, value) for model in ("simulated/noisy", "cold") for value in ("low", "high")
    ]


def test_what_was_not_varied_is_refused_with_what_was(night):
    with pytest.raises(ConfigError, match=r"What varies there: condition, effort, system\. You"):
        ab.report(night, by="temperature")
    with pytest.raises(ConfigError, match="--by cannot be used with --style cost"):
        ab.report(night, "cost", by="effort")


@pytest.mark.long
def test_the_command_shows_the_table(night):
    done = succeeded(asyncbench_here("report", night, "--by", "effort"))
    assert "By effort" in done.stdout
    assert "all together" in done.stdout
    sheet = ab.report(night, "standings", by="effort").content()
    head = next(part.head for part in sheet if not isinstance(part, str))
    assert set(head) <= HEADINGS.keys()
