"""A package adds a suite, a grader and a provider by entry points, without a change to asyncbench."""

import json
import os
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.providers import endpoints
from asyncbench.suites import custom, table
from asyncbench.suites.own_graders import added_grader
from asyncbench.suites.plugins import WithPackages
from asyncbench.suites.table import SUITES
from tests.commands import CLEAN

CODE = '''
from asyncbench.providers import AddedProvider, KnownEndpoint
from asyncbench.records import Draft, Grade, Reply, Usage, outcome_of
from asyncbench.suites import Suite


def drafts(seed, parameters):
    for n in range(3):
        yield Draft(suite="doubling", task="double", representation="integer", length=1,
                    question=f"Double {n + seed}.", expected=str(2 * (n + seed)), answer_type="integer")


def graded(problem, reply, style):
    answer = None if reply is None else reply.text
    right = answer == problem.expected
    return (Grade(grader="plain", grader_version=7, headline=True, answer=answer, classification=None,
                  outcome=outcome_of(reply, answer=answer, exact_match=right), exact_match=right),)


DOUBLING = Suite(name="doubling", generator_version=1, prompt_version=1, graders=("plain",),
                 generate=drafts, grade=graded)


def shouted(reply, problem):
    return reply.isupper()


class Echo:
    """Doubles the number of a question, or shouts it; makes no call."""

    async def ask(self, request):
        words = request.messages[-1].content.rstrip(".").split()
        text = str(2 * int(words[1])) if words[0] == "Double" else " ".join(words).upper()
        return Reply(text=text, usage=Usage(input_tokens=1, output_tokens=1))

    async def aclose(self):
        pass


ECHO = AddedProvider(endpoint=KnownEndpoint(via="echo", api="chat"), open=lambda endpoint, wire: Echo())
'''
POINTS = {
    "suites": {"doubling": "doubling_pack:DOUBLING"},
    "graders": {"shouted": "doubling_pack:shouted"},
    "providers": {"echo": "doubling_pack:ECHO"},
}


def wheel(folder: Path, points: dict[str, dict[str, str]], code: str, name: str = "doubling_pack") -> Path:
    """Build a wheel of one module, as the format's specification says."""
    info = f"{name}-1.2.dist-info"
    groups = "".join(
        f"[asyncbench.{kind}]\n" + "".join(f"{key} = {value}\n" for key, value in named.items())
        for kind, named in points.items()
    )
    contents = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.2\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": groups,
    }
    record = "".join(
        f"{path},sha256={urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text)}\n"
        for path, text in contents.items()
    )
    made = folder / f"{name}-1.2-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as file:
        for path, text in {**contents, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            file.writestr(path, text)
    return made


def installed(folder: Path) -> Path:
    """Install a wheel of this package into a folder of its own, without any network."""
    target = folder / "site"
    offline = ("--no-index", "--no-deps", "--disable-pip-version-check", "--no-compile", "--quiet")
    made = wheel(folder, POINTS, CODE)
    subprocess.run([sys.executable, "-m", "pip", "install", *offline, "--target", target, made], check=True)
    return target


COMMANDS = """
import sys
from asyncbench.cli import main

for words in sys.argv[1:]:
    sys.argv = ["asyncbench", *words.split()]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""


def commands_with(site: Path, *commands: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run commands in one process where the packages of a folder are installed; the first fault ends it."""
    return subprocess.run(
        [sys.executable, "-c", COMMANDS, *commands],
        env=CLEAN | {"PYTHONPATH": os.pathsep.join([str(site), str(Path(ab.__file__).parents[1])])},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_a_package_adds_a_suite_a_grader_and_a_provider_which_results_name(tmp_path):
    site = installed(tmp_path)
    (tmp_path / "own.csv").write_text("question,expected\nShout this,\n")
    (tmp_path / "sweep.yaml").write_text(
        "name: added\nmodels: [echo/one]\nproblems:\n"
        "  - {suite: doubling, seed: 20}\n"
        "  - {path: own.csv, suite: custom, grader: shouted}\n"
    )
    regrade = "regrade results/added --grader shouted"
    done = commands_with(site, "run sweep.yaml --workers 2", regrade, "suites --json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No outcome changes" in done.stdout
    listed = json.loads(done.stdout[done.stdout.rindex("\n{") :])
    assert listed["doubling"] == {"graders": ["plain"], "parameters": []}

    out = tmp_path / "results" / "added"
    digest = sha256(f"doubling_pack.py\n{sha256(CODE.encode()).hexdigest()}\n".encode()).hexdigest()
    rows = ab.read_grades(out).to_pylist()
    assert sorted((row["suite"], row["grader"], row["grader_version"], row["outcome"]) for row in rows) == [
        ("custom", "shouted", int(digest[:7], 16), "correct"),
        *[("doubling", "plain", 7, "correct")] * 3,
    ]
    assert json.loads((out / "manifest.json").read_text())["plugins"] == [
        {"kind": kind, "name": name, "package": "doubling-pack", "version": "1.2", "source": digest}
        for kind, name in (("suites", "doubling"), ("graders", "shouted"), ("providers", "echo"))
    ]
    assert {row["provider"] for row in ab.read_trials(out).to_pylist()} == {"echo"}


TABLES: dict[str, Callable[[], Mapping[str, object]]] = {
    "suites": lambda: WithPackages("suites", {"nupa": SUITES["nupa"]}, table._added),
    "graders": lambda: WithPackages("graders", {}, added_grader, reserved=custom.CUSTOM_GRADERS),
    "providers": lambda: WithPackages("providers", {}, endpoints._checked_provider),
}


@pytest.mark.parametrize(
    ("kind", "name", "code", "complaint"),
    [
        ("graders", "mine", "", "adds 'mine' to asyncbench's graders, but it cannot be used: AttributeError"),
        ("graders", "mine", "def it(reply): ...", "'mine' takes other arguments. Define `def mine"),
        ("graders", "number", "", "adds 'number' to asyncbench's graders, which have that name already. Uni"),
        ("graders", "mine", "raise SystemExit", "it cannot be used: SystemExit: . Update or uninstall the p"),
        ("suites", "nupa", "", "adds 'nupa' to asyncbench's suites, which have that name already"),
        ("suites", "mine", "it = 3", "it must be a Suite called 'mine'"),
        ("providers", "mine", "it = 3", "it must be an AddedProvider"),
        (
            "providers",
            "mine",
            "from asyncbench.providers import *\n"
            "it = AddedProvider(endpoint=KnownEndpoint(via='other', api='chat'))",
            "its endpoint has via='other', and not openai or anthropic or http",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_name_of_its_package(
    kind, name, code, complaint, tmp_path, monkeypatch
):
    module = f"broken_{sha256((kind + name + code).encode()).hexdigest()[:8]}"
    with zipfile.ZipFile(wheel(tmp_path, {kind: {name: f"{module}:it"}}, code, module)) as file:
        file.extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(ConfigError) as caught:
        TABLES[kind]()[name if "already" not in complaint else "new"]
    assert f"the package {module.replace('_', '-')} adds {name!r}" in str(caught.value)
    assert complaint in str(caught.value)


@pytest.mark.long
def test_a_provider_that_cannot_be_used_stops_only_who_asks_it(tmp_path):
    points = {"providers": {"mine": "broken:it"}}
    with zipfile.ZipFile(wheel(tmp_path, points, "raise OSError('half installed')", "broken")) as file:
        file.extractall(tmp_path / "site")
    for name, model in {"sound": "simulated/oracle", "broken": "mine/one"}.items():
        problems = "[{suite: llm_arithmetic, seed: 7, trials: 1}]"
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}\nmodels: [{model}]\nproblems: {problems}\n")
    useful = commands_with(tmp_path / "site", "models", "run sound.yaml --limit 1", cwd=tmp_path)
    assert useful.returncode == 0, useful.stderr
    assert useful.stderr.count("the package broken adds 'mine' to asyncbench's providers, but") == 1

    refused = commands_with(tmp_path / "site", "run broken.yaml", cwd=tmp_path)
    assert refused.returncode == 2
    assert "it cannot be used: OSError: half installed. Update or uninstall" in refused.stderr
    assert not (tmp_path / "results" / "broken").exists()
