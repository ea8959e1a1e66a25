"""What `--help` shows, of every command; `-h`, `--version` and shell completion."""

import os
import re
import subprocess
import sys

import pytest
import typer

import asyncbench as ab
from asyncbench.analysis.views import VIEWS
from asyncbench.cli import app
from asyncbench.commands.sweep_options import SELDOM
from asyncbench.errors import ConfigError
from tests.commands import CLEAN, asyncbench_here, succeeded

COMMANDS = {command.name: command for command in vars(typer.main.get_command(app))["commands"].values()}


@pytest.fixture(params=[80, 100])
def width(request, monkeypatch):
    """A terminal of so many columns."""
    monkeypatch.setenv("COLUMNS", str(request.param))
    monkeypatch.setitem(CLEAN, "COLUMNS", str(request.param))
    return request.param


@pytest.mark.usefixtures("width")
def test_commands_are_listed_in_groups_each_in_one_short_line():
    shown = asyncbench_here("--help").stdout
    groups = dict(
        re.findall(
            r"^(Start|Control|Look|Data|Keep):\n((?:  .+\n)+)", shown.split("Options:")[0], re.MULTILINE
        )
    )
    listed = {name: re.findall(r"^  (\S+) +(.+)$", lines, re.MULTILINE) for name, lines in groups.items()}

    assert [name for name, _ in listed["Start"]] == [
        "demo",
        "init",
        "doctor",
        "plan",
        "run",
        "load",
        "cancel",
    ]
    assert list(groups) == ["Start", "Control", "Look", "Data", "Keep"]
    summaries = dict(line for lines in listed.values() for line in lines)
    assert summaries.keys() == COMMANDS.keys()
    assert sum(lines.count("\n") for lines in groups.values()) == len(summaries)  # none takes two lines
    for name, summary in summaries.items():
        assert len(summary) <= 60, name
        assert summary.endswith("."), name
        assert "asyncbench" not in summary, name


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_that_fits_and_says_what_each_option_does(command, width):
    shown = asyncbench_here(command, "--help").stdout
    examples = re.findall(r"^  asyncbench .+$", shown, re.MULTILINE)
    assert examples
    assert all(line.startswith(f"  asyncbench {command}") for line in examples)
    assert all(len(line) <= width for line in shown.splitlines())
    for parameter in COMMANDS[command].params:
        assert parameter.help.endswith((".", "…")), parameter.name
    source = COMMANDS[command].help
    for example in re.findall(r"^asyncbench .+$", source, re.MULTILINE):
        assert f"  {example}\n" in shown  # not wrapped


def test_help_on_run_is_short_and_leaves_what_few_need_to_a_second_screen(monkeypatch):
    monkeypatch.setitem(CLEAN, "COLUMNS", "80")
    monkeypatch.setenv("COLUMNS", "80")
    first, second = (succeeded(asyncbench_here("run", word)).stdout for word in ("--help", "--help-all"))
    assert first.count("\n") <= 92
    options = {word for parameter in COMMANDS["run"].params for word in parameter.opts if word[:1] == "-"}
    assert options <= set(re.findall(r"--[a-z-]+", second))
    assert {f"--{name.replace('_', '-')}" for name in SELDOM}.isdisjoint(
        re.findall(r"^  (--[a-z-]+)", first, re.M)
    )


def test_help_on_sql_lists_every_view():
    text = " ".join(COMMANDS["sql"].help.split())
    assert f"Views: {', '.join(VIEWS)}." in text


@pytest.mark.parametrize("words", [(), ("run",)])
def test_h_is_short_for_help(words):
    done = succeeded(asyncbench_here(*words, "-h"))
    assert done.stdout == asyncbench_here(*words, "--help").stdout


def test_the_version_is_that_of_the_package():
    done = asyncbench_here("--version")
    assert (done.returncode, done.stdout) == (0, f"asyncbench {ab.__version__}\n")


def completed(*words):
    """Return what a shell would offer for the last word."""
    asked = {"COMP_WORDS": " ".join(["asyncbench", *words]), "COMP_CWORD": str(len(words))}
    script = "import sys; sys.argv = ['asyncbench']; from asyncbench.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | asked | {"_ASYNCBENCH_COMPLETE": "complete_bash"},
    )
    return done.stdout.split()


@pytest.mark.long
def test_a_shell_completes_commands_options_and_styles():
    assert completed("") == list(COMMANDS)
    assert completed("run", "--re") == ["--repeats", "--retry", "--reuse", "--resubmit"]
    assert completed("plan", "--suite", "nupa", "--le") == ["--lengths"]
    assert completed("report", "x", "--style", "h") == ["heatmap"]


def test_a_load_has_no_flag_that_would_do_nothing():
    named = {word for param in COMMANDS["load"].params for word in param.opts}
    assert {"--rpm", "--rates"} <= named
    assert "--mode" not in named
    assert (
        asyncbench_here("load", "--model", "simulated/x", "--rates", "1", "--mode", "batch").returncode == 2
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "s.yaml", "--limit", "3", "--limit=4"], "--limit stands twice, with 3 and 4. Give it once."),
        (["run", "--models", "a,b", "s.yaml", "--models", "c"], "--models stands twice, with a,b and c."),
        (["report", "f", "--where", "a", "--where", "b"], "--where stands twice, with a and b."),
        (["generate", "nupa", "--out", "f", "--depths", "2", "--depths", "3"], "--depths stands twice"),
        (["plan", "--suite", "llm_arithmetic", "--depths=2", "--depths", "3"], "--depths stands twice"),
    ],
)
def test_an_option_with_two_values_is_refused(words, said):
    done = asyncbench_here(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_every_option_is_refused_with_two_values_or_takes_them_all():
    takes_one = [
        (command, option)
        for command, made in COMMANDS.items()
        for option in made.params
        if option.param_type_name == "option" and not (option.multiple or option.is_flag)
    ]
    assert len(takes_one) > 60
    for command, option in takes_one:
        made, name = COMMANDS[command], option.opts[0]
        one, two = ("auto", "local") if name == "--ray" else ("1", "2")  # it may stand without an address
        with pytest.raises(
            ConfigError, match=f"{name} (stands twice, with {one} and {two}|2: a second suite)"
        ):
            made.make_context(command, [name, one, name, two])
