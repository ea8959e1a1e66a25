"""`report --fail-under`: a figure keeps a threshold or misses it, and what is none."""

import pytest

from asyncbench.errors import ConfigError
from asyncbench.reports.thresholds import ReportThreshold
from tests.commands import asyncbench_here
from tests.reports.answered import Asked, folder_of


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
    ],
)
def test_what_is_no_threshold_is_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        ReportThreshold.parse(text)


@pytest.mark.long
def test_a_threshold_for_a_model_that_is_not_there_is_refused(folder):
    done = asyncbench_here("report", folder, "--fail-under", "other: accuracy >= 0.5")
    assert done.returncode == 2
    assert "no trials of this model. There is m" in done.stderr
