"""The overview after a run: one screen, whatever the folder holds."""

import shlex
import subprocess

import pytest

from asyncbench import generate
from asyncbench.analysis.counting import counted
from asyncbench.commands.running import show_overview
from asyncbench.reports.status.run_overview import run_overview_of
from asyncbench.store.folder import Store
from tests.commands import asyncbench_here
from tests.reports.answered import Asked, folder_of


def lines_of(folder, *, width=80):
    return counted(folder, run_overview_of).as_text(width=width).splitlines()


@pytest.fixture
def folder(tmp_path):
    return folder_of(
        tmp_path,
        [
            Asked(model="good", outcomes="+" * 45 + "-" * 5),
            Asked(model="cut", outcomes="+" * 5 + "-" * 35 + "t" * 8 + "xx"),
        ],
        planned={
            "good": {"plain": {"nupa": {"add": 50}}},
            "cut": {"plain": {"nupa": {"add": 60}}},
        },
    )


@pytest.mark.long
def test_it_says_who_is_better_what_it_cost_and_what_needs_attention(folder):
    text = "\n".join(lines_of(folder, width=100))
    assert "s: 2 models, 100 of 110 trials, $25.0000" in text
    assert "nupa: 2 models on the same 50 problems" in text
    assert "good leads. The other is significantly worse." in text
    assert "Same rank = no significant difference (paired test, 5 %)." in text
    good, cut = (
        next(line for line in text.splitlines() if name in line.split()[1:]) for name in ("good", "cut")
    )
    assert good.split()[:4] == ["1", "good", "90.0%", "(78.6-95.7)"]
    assert "$12.5000" in good.split()
    assert cut.split()[:2] == ["2", "cut"]
    assert "! unfinished, run it again: cut 10" in text
    assert "! over 1 % lost: cut 8 truncated, 2 failed, 20.0%" in text
    wide = "\n".join(lines_of(folder, width=300))
    assert f"asyncbench compare good cut {folder}" in wide
    assert f"asyncbench view {folder}" in wide


@pytest.mark.long
def test_whose_replies_were_all_cut_has_no_rank_and_is_told_what_to_raise(tmp_path):
    answers = [
        Asked(model=name, outcomes=own) for name, own in (("a", "+++-"), ("b", "+--+"), ("cut", "tttt"))
    ]
    text = "\n".join(lines_of(folder_of(tmp_path, answers)))
    assert "nupa: 2 models on the same 4 problems" in text
    assert "! not ranked, every reply was cut: cut. Raise max_tokens, --retry truncated" in text
    assert "over 1 % lost" not in text


@pytest.mark.long
@pytest.mark.parametrize(("planned", "words"), [(2, "1 of 2 trials"), (1, "1 trial"), (0, "1 trial")])
def test_trials_that_left_the_sweep_are_not_part_of_fewer(tmp_path, planned, words):
    plan: dict[str, object] = {"a": {"plain": {"nupa": {"add": planned}}}}
    folder = folder_of(tmp_path, [Asked(model="a", outcomes="+")], planned=plan)
    assert f"s: 1 model, {words}, $" in lines_of(folder)[0]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """25 models with long names, of which two share each accuracy and some were cut off."""
    answers = [
        Asked(model=LONG_NAME.format(n), outcomes="+" * (n // 4) + "-" * (6 - n // 4) + "t" * (n % 2))
        for n in range(25)
    ]
    return folder_of(tmp_path_factory.mktemp("many"), answers)


LONG_NAME = "a-provider/a-model-with-a-long-name-of-2026-08-07-thinking-{:02}"


@pytest.mark.long
@pytest.mark.parametrize("width", [60, 80, 100])
def test_many_models_fit_on_one_screen(many, width):
    lines = lines_of(many, width=width)
    assert len(lines) <= 24
    text, commands = "\n".join(lines).split("\nNext:\n", maxsplit=1)
    assert max(map(len, text.splitlines())) <= width
    wider = [line.removesuffix(" \\").split() for line in commands.splitlines() if len(line) > width]
    assert all(len(words) == 1 for words in wider)  # of a command, a word alone


@pytest.mark.long
@pytest.mark.parametrize("width", [60, 80, 100])
def test_headings_and_warnings_are_folded_and_not_cut(many, width):
    text = " ".join("\n".join(lines_of(many, width=width)).split())
    assert "on the same 6 problems" in text
    lost = text[text.index("! over 1 % lost") : text.index(" Next:")]
    assert lost.count("1 truncated, 14.3%") == 2
    assert lost.endswith("! over 1 % lost: 10 more")


@pytest.mark.long
@pytest.mark.parametrize("width", [60, 100, 300])
def test_a_shell_takes_the_lines_of_a_command_together_whatever_is_in_it(tmp_path, width):
    names = [f"it's a {'long ' * n}name\\" for n in (12, 9)]
    folder = folder_of(tmp_path / "a folder", [Asked(model=name, outcomes="+-") for name in names])
    text = "\n".join(lines_of(folder, width=width))
    lines = text.partition("asyncbench compare")[2].splitlines()
    last = next(n for n, line in enumerate(lines) if not line.endswith("\\"))
    command = "compare" + "\n".join(lines[: last + 1])
    script = f"printf '%s\\n' {command}"
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["compare", *names, str(folder)]


def compared(folder):
    """Return the two whose comparison is suggested."""
    (line,) = (line for line in lines_of(folder, width=400) if " asyncbench compare " in line)
    words = shlex.split(line)
    return words[words.index("compare") + 1 :][:2]


BEST_OTHER_MODEL = [("b", "y", 2), ("b", "x", 10), ("a", "x", 20), ("a", "y", 19)], ["a (x)", "b (x)"]
PLACE_BETWEEN_CONDITIONS = [("a", "x", 20), ("a", "y", 19), ("a", "z", 2)], ["a (y)", "a (z)"]


@pytest.mark.long
@pytest.mark.parametrize(("asked", "pair"), [BEST_OTHER_MODEL, PLACE_BETWEEN_CONDITIONS])
def test_the_leader_and_the_best_other_model_or_conditions_of_one_are_to_be_compared(tmp_path, asked, pair):
    answers = [
        Asked(model=model, outcomes="+" * right + "-" * (20 - right), condition=condition)
        for model, condition, right in asked
    ]
    assert compared(folder_of(tmp_path, answers)) == pair


@pytest.mark.long
def test_what_is_left_out_of_a_long_list_is_counted(many):
    lines = lines_of(many)
    shown = [line.split()[1][-2:] for line in lines if "%" in line and "a-prov" in line.split()[1]]
    (gap,) = [line for line in lines if " more)" in line]
    assert shown[0] == "24"
    assert shown[-3:] == ["01", "02", "03"]  # as good as 00, and in the order of the plan
    assert int(gap.strip(" (").split()[0]) == 25 - len(shown)


def test_names_that_are_too_long_keep_both_ends(tmp_path):
    names = [f"provider/{'x' * 60}-{n}" for n in range(2)]
    lines = lines_of(folder_of(tmp_path, [Asked(model=name, outcomes="+-") for name in names]), width=60)
    shown = [line.split()[1] for line in lines if "50.0%" in line]
    assert [(name[:4], name[-1]) for name in shown] == [("prov", "0"), ("prov", "1")]


@pytest.mark.long
def test_several_suites_have_a_column_each(tmp_path):
    answers = [
        Asked(model=model, outcomes=outcomes, suite=suite, task=suite)
        for model, suite, outcomes in (
            *(("a", "nupa", "++++"), ("a", "custom", "+---")),
            *(("b", "nupa", "----"), ("b", "custom", "++++")),
        )
    ]
    lines = lines_of(folder_of(tmp_path, answers), width=100)
    head = next(n for n, line in enumerate(lines) if "accuracy" in line)
    assert lines[head + 1].split()[-4:-2] == ["custom", "nupa"]
    assert lines[head + 2].split()[-3:-1] == ["25.0%", "100.0%"]


@pytest.mark.long
def test_those_who_share_no_problems_are_listed_without_places(tmp_path):
    answers = [Asked(model=f"m{n}", outcomes="+" * n + "-", first=50 * n) for n in range(1, 4)]
    text = "\n".join(lines_of(folder_of(tmp_path, answers)))
    assert "not ranked (too few problems in common)" in text
    assert "asyncbench compare" not in text


@pytest.mark.long
def test_whom_the_ranking_leaves_out_is_named(tmp_path):
    answers = [Asked(model=name, outcomes="+-" * 10) for name in ("a", "b")]
    text = "\n".join(lines_of(folder_of(tmp_path, [*answers, Asked(model="c", outcomes="+")])))
    assert "! asked too few of these problems to be ranked: c" in text


def test_simulated_results_say_so_on_the_first_line(tmp_path):
    folder = folder_of(tmp_path, [Asked(model="a", outcomes="+", provider="simulated")])
    assert " ".join(lines_of(folder)[:2]).startswith(
        "SIMULATED: these replies came from asyncbench's own server"
    )


def test_a_folder_without_trials_has_an_overview(tmp_path):
    lines = lines_of(folder_of(tmp_path, []))
    assert lines[0].startswith("s: 0 models, 0 trials")


@pytest.mark.long
def test_a_folder_that_is_written_to_is_not_called_unfinished(folder):
    with Store.reopen(folder):
        assert "unfinished" not in "\n".join(lines_of(folder))


@pytest.fixture
def ad_hoc(tmp_path):
    problems = generate("llm_arithmetic", tmp_path / "p.parquet", seed=3, depths="2", trials=1).path
    return "run", "--model", "simulated-http/noisy", "--problems", problems, "--out", tmp_path / "out"


@pytest.mark.long
def test_a_run_ends_with_the_overview_which_changes_nothing_if_it_fails(ad_hoc, monkeypatch):
    with monkeypatch.context() as odd:
        odd.setattr(
            "asyncbench.reports.status.run_overview.run_overview_of", failing(RuntimeError("odd\x1b[2J"))
        )
        done = asyncbench_here(*ad_hoc)
    assert done.returncode == 0
    assert "8/8 done" in done.stdout
    said = rf"asyncbench: no overview (RuntimeError: odd\x1b[2J); all results are saved in {ad_hoc[-1]}"
    assert said in done.stderr.splitlines()

    assert (
        asyncbench_here(*ad_hoc)
        .stdout.rstrip()
        .endswith(counted(ad_hoc[-1], run_overview_of).as_text(width=100))
    )
    assert "Next:" not in asyncbench_here(*ad_hoc, "--quiet").stdout


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def test_an_overview_may_be_interrupted(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("asyncbench.analysis.counting.counted", failing(KeyboardInterrupt()))
    show_overview(tmp_path)
    assert capsys.readouterr().err == "Stopped before the overview. All results are saved.\n"


def test_an_overview_of_what_cannot_be_read_is_one_line(tmp_path, capsys):
    show_overview(tmp_path)
    assert "is not a results folder" in capsys.readouterr().err
