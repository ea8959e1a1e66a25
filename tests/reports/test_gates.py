"""`compare --fail-if` and `report --fail-under`: their exit codes, lines and JUnit files."""

import json
from math import inf
from xml.etree import ElementTree  # of files that are written here

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.reports.comparison.baseline import BaselineGate, PairedFigure, gate_results
from asyncbench.tables.data import data_of
from tests.commands import asyncbench_here
from tests.reports.answered import Asked, folder_of
from tests.rows import each_row

WORSE_BY_2 = BaselineGate.parse("worse by 2 points", None)


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Results folders of the model `m`, by name."""
    folder = tmp_path_factory.mktemp("nights")
    main = "+" * 300 + "-" * 100
    outcomes = {
        "main": main,
        "same": main,
        "broken": "+" * 200 + "-" * 200,
        "unsure": "-" * 20 + "+" * 300 + "-" * 80,
        "failing": "x" * 100 + "+" * 200 + "-" * 100,
        "unpriced": main,
    }
    for name, marks in outcomes.items():
        cost = {"unpriced": None, "broken": 0.5}.get(name, 0.25)
        folder_of(folder / name, [Asked(model="m", outcomes=marks, cost_usd=cost)])
    return folder


@pytest.mark.parametrize(
    ("night", "gate", "code", "said"),
    [
        ("same", "worse", 0, "passed: m in same, shown not to be worse by 2 points: accuracy 75.0% after 75"),
        ("broken", "worse", 4, "failed: m in broken, worse: accuracy 50.0% after 75.0%, -25.0 points"),
        ("unsure", "worse", 3, "undecided: m in unsure, this needs about"),
        ("failing", "worse", 3, "100 failed calls could change this. Ask again with --retry failed"),
        ("same", "cost_usd worse by 5 %", 0, "shown not to be worse by 5 %: cost_usd 0.25 after 0.25, +0"),
        ("broken", "cost_usd worse by 5%", 4, "worse: cost_usd 0.5 after 0.25, +100.0 %"),
        ("unpriced", "cost_usd worse", 3, "cost_usd is known on both sides of 0 of 400 trials"),
        ("same", "latency_p95_s worse", 0, "shown not to be worse by 2 %: latency_p95_s"),
        ("failing", "latency_p95_s worse", 3, "100 failed calls could change this"),
    ],
)  # fmt: skip
def test_a_gate_exits_with_4_if_worse_0_if_not_and_3_if_open(nights, night, gate, code, said):
    done = asyncbench_here("compare", "m", nights / "main", nights / night, "--fail-if", gate, "--margin", 2)
    assert done.returncode == code, done.stderr
    assert said in done.stderr


def test_an_undecided_gate_says_how_many_problems_it_needs(nights):
    (result,) = gate_results("m", "m", [nights / "main", nights / "unsure"], [WORSE_BY_2])
    assert "this needs about 2,000 problems, 400 were asked: accuracy 75.0% after 75.0%" in result.sentence


def test_only_shared_trials_count_and_what_the_baseline_failed_is_left_out(tmp_path):
    folder_of(tmp_path / "a", [Asked(model="m", outcomes="x" * 50 + "+" * 350)])
    folder_of(tmp_path / "b", [Asked(model="n", outcomes="-" * 50 + "+" * 300 + "." * 50 + "-" * 99)])
    (result,) = gate_results("m", "n", [tmp_path / "a", tmp_path / "b"], [WORSE_BY_2])
    assert result.line.startswith("passed: n in b, shown not to be worse by 2 points")
    assert "on 300 problems" in result.sentence


def test_repeats_count_as_one_problem(tmp_path):
    def night(name, marks):
        folder_of(tmp_path / name, [Asked(model="m", outcomes=marks, repeat=n) for n in range(4)])

    night("a", "+" * 30 + "-" * 5)
    night("b", "-" * 3 + "+" * 27 + "-" * 5)
    (result,) = gate_results("m", "m", [tmp_path / "a", tmp_path / "b"], [WORSE_BY_2])
    assert result.status == "undecided"  # as 140 problems they would be worse
    assert "on 35 problems" in result.sentence


def test_what_cannot_be_compared_is_refused(tmp_path, nights):
    other = folder_of(tmp_path / "graded", [Asked(model="m", outcomes="+" * 9, grader="nupa")])
    with pytest.raises(
        ConfigError, match=r"nupa was graded by number v1 in .*main, and by nupa v1 in .*graded"
    ):
        gate_results("m", "m", [nights / "main", other], [WORSE_BY_2])
    simulated = folder_of(tmp_path / "sim", [Asked(model="m", outcomes="+" * 9, provider="simulated")])
    with pytest.raises(ConfigError, match=r"sim are simulated, the others are not"):
        gate_results("m", "m", [nights / "main", simulated], [WORSE_BY_2])


@each_row(
    ("text", "margin", "said"),
    [
        ("better", 2, "not a gate. Write one, such as --fail-if worse --margin 2"),
        ("speed worse", 2, "unknown metric 'speed'. Choose from accuracy, cost_usd"),
        ("worse", None, "how large a loss do you accept? Add --margin N, in points"),
        ("latency_p95_s worse", None, "Add --margin N, in percent"),
        ("worse", 0.0, "a margin of 0 cannot be tested"),
        ("worse", -1.0, "a margin of -1 cannot be tested"),
        ("worse", float("nan"), "cannot be tested"),
        ("worse by 100", None, "a margin of 100 cannot be tested"),
        ("worse by much", None, "a margin of much cannot be tested"),
        ("worse by 2 %", None, "the margin of accuracy is in points"),
        ("cost_usd worse by 2 points", None, "the margin of cost_usd is in percent"),
    ],
)
def test_what_is_no_gate_is_refused_with_the_way_out(text, margin, said):
    with pytest.raises(ConfigError) as refused:
        BaselineGate.parse(text, margin)
    assert said in str(refused.value)


@pytest.mark.parametrize(("option", "value"), [("--margin", "2"), ("--junit", "x.xml")])
def test_options_of_gates_alone_are_refused(nights, option, value):
    done = asyncbench_here("compare", "m", nights / "main", nights / "same", option, value)
    assert done.returncode == 2
    assert f"{option} is for --fail-if" in done.stderr


def test_junit_has_a_case_per_answer_with_its_figures(nights, tmp_path):
    gates = ("--fail-if", "worse", "--fail-if", "cost_usd worse by 5 %", "--margin", 2)
    file = tmp_path / "new" / "gates.xml"
    done = asyncbench_here("compare", "m", nights / "main", nights / "unpriced", *gates, "--junit", file)
    assert done.returncode == 3
    suite = ElementTree.fromstring(file.read_bytes())  # noqa: S314  ours
    assert suite.attrib == {"name": "asyncbench", "tests": "2", "failures": "0", "errors": "1"}
    assert suite[0].attrib == {"classname": "m in unpriced", "name": "worse"}
    assert suite[0].findtext("system-out", "?") in done.stderr
    assert suite[1][0].tag == "error"
    assert suite[1][0].attrib["message"] in done.stderr

    under = ("--fail-under", "accuracy >= 0.8", "--fail-under", "accuracy < 1", "--junit", file)
    done = asyncbench_here("report", nights / "main", *under)
    suite = ElementTree.fromstring(file.read_bytes())  # noqa: S314  ours
    assert (done.returncode, suite.attrib["failures"], len(suite)) == (4, "1", 2)
    assert suite[0][0].tag == "failure"
    assert suite[0][0].attrib["message"] == "m, nupa: accuracy is 0.75, not >= 0.8"
    assert suite[1].findtext("system-out") == "passed: m, nupa: accuracy is 0.75, < 1"


def test_python_json_junit_and_the_line_have_one_answer(nights, tmp_path):
    """Python, JSON, JUnit and standard error tell the same verdict, figures and numbers of problems."""
    (gate,) = ab.compare("m", "m", nights / "main", nights / "unsure", fail_if="worse", margin=2).gates
    assert (gate.status, gate.verdict, gate.margin, gate.failed_calls) == ("undecided", "undecided", 0.02, 0)
    assert gate.measured is not None
    assert (gate.measured.a, gate.measured.b, gate.measured.change) == (0.75, 0.75, 0)
    assert (gate.measured.problems, gate.problems_needed) == (400, 2_000)

    file = tmp_path / "gates.xml"
    typed = ("compare", "m", nights / "main", nights / "unsure", "--fail-if", "worse", "--margin", 2)
    done = asyncbench_here(*typed, "--json", "--junit", file)
    assert (done.returncode, done.stderr) == (3, f"{gate.line}\n")
    low, high = gate.measured.interval
    assert json.loads(done.stdout)["gates"] == [
        {
            "gate": "worse",
            "subject": "m in unsure",
            "status": "undecided",
            "sentence": gate.sentence,
            "metric": "accuracy",
            "margin": 0.02,
            "value": 0.75,
            "measured": {"a": 0.75, "b": 0.75, "change": 0.0, "problems": 400, "interval": [low, high]},
            "problems_needed": 2_000,
            "failed_calls": 0,
            "verdict": "undecided",
        }
    ]
    suite = ElementTree.fromstring(file.read_bytes())  # noqa: S314  ours
    assert suite[0][0].attrib["message"] == gate.sentence


@pytest.mark.parametrize(
    ("night", "verdict", "failed"),
    [("same", "not_worse", 0), ("broken", "worse", 0), ("failing", "undecided", 100)],
)
def test_the_verdict_is_a_word_of_three(nights, night, verdict, failed):
    (gate,) = ab.compare("m", "m", nights / "main", nights / night, fail_if=["worse"], margin=2).gates
    assert (gate.verdict, gate.failed_calls) == (verdict, failed)
    assert gate.problems_needed is None


def test_what_cannot_be_measured_is_null_and_an_end_without_limit_too(nights):
    compared = ab.compare("m", "m", nights / "main", nights / "unpriced", fail_if="cost_usd worse by 5 %")
    (gate,) = json.loads(compared.as_json())["gates"]
    assert (gate["verdict"], gate["measured"], gate["margin"]) == ("undecided", None, 0.05)
    endless = PairedFigure(a=1, b=2, change=1, interval=(0.5, inf), problems=9, text="", gain=False)
    assert data_of(endless)["interval"] == [0.5, None]


def test_a_document_has_the_answers_and_text_ends_with_them(nights):
    compared = ab.compare("m", "m", nights / "main", nights / "broken", fail_if="worse", margin=2)
    (gate,) = compared.gates
    assert compared.as_text(width=400).endswith(f"\n{gate.line}")
    assert f"**{gate.line}**" in compared.as_markdown()
    assert gate.line in compared._repr_html_()

    typed = ("compare", "m", nights / "main", nights / "broken", "--fail-if", "worse", "--margin", 2)
    assert gate.line not in asyncbench_here(*typed).stdout  # standard error has it, as the last line
    assert gate.line in asyncbench_here(*typed, "--markdown").stdout


def test_a_report_has_the_answers_of_its_thresholds(nights):
    thresholds = ["accuracy >= 0.8", "m: cost_usd < 200"]
    made = ab.report(nights / "main", fail_under=thresholds)
    assert [(gate.status, gate.metric, gate.value) for gate in made.gates] == [
        ("failed", "accuracy", 0.75),
        ("passed", "cost_usd", 100.0),
    ]
    filtered = ab.report(nights / "main", "cost", task="add", fail_under="accuracy >= 0.8")
    assert [gate.line for gate in filtered.gates] == [made.gates[0].line]

    typed = ("report", nights / "main", *(word for each in thresholds for word in ("--fail-under", each)))
    done = asyncbench_here(*typed, "--json")
    assert done.returncode == 4
    assert json.loads(done.stdout)["gates"][0] == {
        "gate": "accuracy >= 0.8",
        "subject": "m, nupa",
        "status": "failed",
        "sentence": "m, nupa: accuracy is 0.75, not >= 0.8",
        "metric": "accuracy",
        "value": 0.75,
        "sign": ">=",
        "limit": 0.8,
    }
    assert "gates" not in json.loads(asyncbench_here("report", nights / "main", "--json").stdout)


def test_python_refuses_a_margin_without_a_gate(nights):
    with pytest.raises(ConfigError, match="--margin is for --fail-if"):
        ab.compare("m", "m", nights / "main", nights / "same", margin=2)
