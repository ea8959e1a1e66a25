"""`report --fail-under`: a figure keeps a threshold or misses it, and what is none."""

import pytest

from asyncbench.errors import ConfigError
from asyncbench.reports.thresholds import ReportThreshold
from tests.commands import asyncbench_here
from tests.reports.answered import Asked, folder_of
from tests.reports.loaded import folder_of as loaded_folder, step


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which `m` is right on 7 of 10."""
    return folder_of(tmp_path_factory.mktemp("thresholds"), [Asked(model="m", outcomes="+++++++---")])


@pytest.mark.parametrize(
    ("threshold", "failed"),
    [
        ("accuracy >= 0.7", None),
        ("m: accuracy > 0.7", "m, nupa: accuracy is 0.7, not > 0.7"),
        ("m: accuracy_low >= 0.6", "m, nupa: accuracy_low is 0.39"),
        ("open <= 0", "open is unknown, not <= 0"),
    ],
)
def test_a_missed_threshold_ends_with_4_and_says_what_the_figure_is(folder, threshold, failed):
    done = asyncbench_here(
        "report", folder, "--json", "--fail-under", "accuracy < 1", "--fail-under", threshold
    )
    assert done.returncode == (4 if failed else 0)
    assert "passed: m, nupa: accuracy is 0.7, < 1" in done.stderr
    assert (failed or "passed: m, nupa: accuracy is 0.7, >= 0.7") in done.stderr
    assert done.stdout.startswith("{")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("accuracy", "not a threshold. Write one, such as"),
        ("rightness >= 0.5", "unknown metric 'rightness'. Choose from accuracy, accuracy_low"),
        ("accuracy >= 90", "write a number, and 0.9 for 90 %"),
        ("accuracy >= 90%", "write a number, and 0.9 for 90 %"),
        ("cost_usd < nan", "write a number"),
        ("m: total_cost_usd < 1", "total_cost_usd is of all models. For one, write `m: cost_usd`"),
    ],
)
def test_what_is_no_threshold_is_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        ReportThreshold.parse(text)


@pytest.mark.parametrize(
    ("threshold", "code", "said"),
    [
        ("p95_s <= 1", 4, "failed: small at 50/s: p95_s is 3.001, not <= 1"),
        ("small at 40/s: p95_s <= 1", 0, "passed: small at 40/s: p95_s is 0.501, <= 1"),
        ("small at 40/s: ttft_p50_s < 0.2", 4, "small at 40/s: ttft_p50_s is 0.25"),
        ("small at 60/s: p95_s < 9", 4, "small at 60/s: p95_s is endless, not < 9"),
        ("small at 60/s: p99_s < 9", 3, "p99_s is unknown: 200 calls, and p99 takes 368"),
        ("small at 40/s: goodput_per_s >= 20", 4, "goodput_per_s is 19, not >= 20"),
        ("small at 70/s: p95_s < 9", 3, "undecided: small at 70/s: the step is client bound"),
        ("total_cost_usd < 1", 0, "passed: all models: total_cost_usd is 0.66, < 1"),
        ("small: cost_usd < 0.5", 4, "failed: small, load: cost_usd is 0.66, not < 0.5"),
        ("other: p95_s < 1", 2, "no steps of a load of this model. There is small"),
    ],
)  # fmt: skip
def test_a_threshold_holds_for_each_step_of_a_load(tmp_path, threshold, code, said):
    steps = [
        step(40, [0.5] * 200),
        step(50, [0.5] * 150 + [3.0] * 50, first=1_000),
        step(60, [0.5] * 160 + [None] * 40, first=2_000),
        step(70, [0.5] * 100, first=3_000, verdict="client_bound"),
    ]
    folder = loaded_folder(tmp_path, *steps)
    done = asyncbench_here("report", folder, "--style", "load", "--fail-under", threshold)
    assert done.returncode == code, done.stderr
    assert said in done.stderr


@pytest.mark.long
def test_a_threshold_for_a_model_that_is_not_there_is_refused(folder):
    done = asyncbench_here("report", folder, "--fail-under", "other: accuracy >= 0.5")
    assert done.returncode == 2
    assert "no trials of this model. There is m" in done.stderr
