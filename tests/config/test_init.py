"""`asyncbench init`: a first sweep that loads, can be planned and, simulated, runs."""

import errno
import json
import os
import pty
import tempfile
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from asyncbench import run_sweep
from asyncbench.config import starter
from asyncbench.config.starter import (
    FirstSweep,
    key_variable,
    providers_with_keys,
    providers_without_starter,
    starter_models,
    starters,
    sweep_text,
    write_sweep,
)
from asyncbench.config.sweep import load_sweep
from asyncbench.errors import ConfigError
from asyncbench.files import creating, replacing
from asyncbench.planning.sweep_plan import plan
from asyncbench.pricing import rates_for
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.run.summary import Exit
from tests.commands import CLEAN, asyncbench, succeeded, whole
from tests.processes import Forked
from tests.sweep_files import base_url, problem_set, simulator

SECRET = "sk-never-to-be-seen"  # noqa: S105  no key of anybody's


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to stand in: paths of a sweep are relative to it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("provider", starters())
def test_every_starter_of_a_vendor_with_prices_is_priced_and_each_is_reached_by_a_key_alone(provider):
    endpoint = known_endpoints()[provider]
    for model_id in starters()[provider].models if endpoint.prices else ():
        assert rates_for(model_id, price=None, vendor=endpoint.prices, moment=datetime.now(UTC)), model_id
    assert endpoint.key_env
    assert endpoint.base_url_form is None


def test_a_provider_is_found_by_the_variable_of_its_key():
    env = {"OPENAI_API_KEY": SECRET, "GROQ_API_KEY": "  ", "HOME": "/"}
    assert providers_with_keys(env) == ("openai",)
    assert providers_without_starter(env) == ()


def test_keys_of_providers_without_a_starter_are_mentioned(folder):
    env = {"FIREWORKS_API_KEY": SECRET, "DASHSCOPE_API_KEY": SECRET}
    done = asyncbench("init", cwd=folder, env=env)
    assert "Keys of fireworks, dashscope are set, too." in done.stdout
    assert "simulated models" in done.stdout
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("provider", starters())
def test_a_sweep_of_a_provider_loads_and_can_be_planned(folder, provider):
    path = folder / "sweep.yaml"
    write_sweep(path, FirstSweep(name="s", models=starter_models([provider])))
    found = plan(path)
    assert [one.model for one in found.models] == [f"{provider}/{starters()[provider].models[0]}"]
    is_priced = known_endpoints()[provider].prices is not None
    assert (found.cost_usd is not None) is is_priced
    assert (found.cost_usd_most is not None) is is_priced
    assert ["no price is known" in warning for warning in found.warnings] == [True] * (not is_priced)
    assert key_variable(provider) in path.read_text()


def test_a_sweep_of_all_providers_loads(folder):
    write_sweep(folder / "all.yaml", FirstSweep(name="all", models=starter_models(starters())))
    assert len(load_sweep(folder / "all.yaml").models) == len(starters())


def test_a_ready_made_problem_set_is_used_where_there_is_one(folder):
    (folder / "data").mkdir()
    problem_set(folder).rename(folder / starter.PROBLEMS)
    asyncbench("init", "--yes", cwd=folder)
    assert [one.path for one in load_sweep(folder / "sweep.yaml").problems] == [starter.PROBLEMS]


async def test_without_a_key_the_sweep_is_simulated_and_runs(folder):
    assert "SIMULATED" in sweep_text(folder / "sweep.yaml", FirstSweep(name="s"))
    write_sweep(folder / "sweep.yaml", FirstSweep(name="s"))
    summary = await run_sweep(folder / "sweep.yaml", limit=5)
    assert (summary.exit, summary.simulated) == (Exit.COMPLETE, True)
    assert [one.done for one in summary.models.values()] == [5, 5]


@pytest.mark.parametrize(
    "name", ["2026.yaml", "a: b.yaml", "it's.yaml", 'quo"te.yaml', "añb😀.yaml", "no.yaml"]
)
def test_any_file_name_makes_a_sweep_that_loads(folder, name):
    write_sweep(folder / "new" / name, FirstSweep(name=Path(name).stem, models=starter_models(["openai"])))
    sweep = load_sweep(folder / "new" / name)
    assert f"{sweep.name}.yaml" == name
    assert sweep.out.name == sweep.name


def test_each_entry_of_a_sweep_is_on_one_line(folder):
    wording = "{question}\n\n{choices}"
    file = starter.OwnFile(path=folder / "own.csv", grader="choice", wording=wording, answer_form="index")
    text = sweep_text(folder / "own.yaml", FirstSweep(name="own", file=file))
    (line,) = [line for line in text.splitlines() if "own.csv" in line]
    assert yaml.safe_load(line)[0]["wording"] == wording


def test_a_file_is_never_overwritten(folder):
    path = folder / "sweep.yaml"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="never overwritten"):
        write_sweep(path, FirstSweep(name="s"))
    assert asyncbench("init", path, "--yes").returncode == 2
    assert path.read_text() == "mine"


def test_a_file_that_is_made_meanwhile_is_not_overwritten_either(folder, monkeypatch):
    path = folder / "sweep.yaml"

    def made_meanwhile(*_, **__):
        path.write_text("mine")
        return "ours"

    monkeypatch.setattr(starter, "refuse_existing", lambda _: None)
    monkeypatch.setattr(starter, "sweep_text", made_meanwhile)
    with pytest.raises(ConfigError, match="never overwritten"):
        write_sweep(path, FirstSweep(name="s"))
    assert (path.read_text(), [one.name for one in folder.iterdir()]) == ("mine", [path.name])


@pytest.mark.parametrize("there", [False, True])
def test_a_disk_without_hard_links_takes_a_new_file_all_the_same(tmp_path, monkeypatch, there):
    def refused(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "new"
    if there:
        path.write_bytes(b"old")
    with pytest.raises(FileExistsError) if there else nullcontext(), creating(path) as file:
        file.write(b"new")
    assert path.read_bytes() == (b"old" if there else b"new")
    assert [*tmp_path.iterdir()] == [path]


def test_what_is_written_again_through_a_link_lands_where_it_leads(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "figures.json", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (target.read_bytes(), len([*target.parent.iterdir()])) == (b"new", 1)


def test_a_dangling_link_is_not_written_through(folder):
    (folder / "sweep.yaml").symlink_to(folder / "elsewhere")
    with pytest.raises(ConfigError, match="never overwritten"):
        write_sweep(folder / "sweep.yaml", FirstSweep(name="s"))
    assert not (folder / "elsewhere").exists()


@pytest.mark.parametrize(
    "arguments", [pytest.param(["--yes"], id="--yes"), pytest.param([], id="no terminal")]
)
def test_without_questions_every_key_that_is_found_is_used(folder, arguments):
    done = succeeded(asyncbench("init", *arguments, cwd=folder, env=keys("openai", "anthropic")))
    assert "asyncbench plan sweep.yaml" in done.stdout
    assert ("Nothing was asked: standard input is no terminal" in done.stdout) == (arguments == [])
    assert SECRET not in done.stdout + done.stderr + (folder / "sweep.yaml").read_text()
    assert [one.provider for one in load_sweep(folder / "sweep.yaml").models] == ["openai", "anthropic"]


ANSWERS = [
    pytest.param(
        ["", "", "", "", "", "", ""],
        {"models": ["openai/gpt-4.1-mini", "anthropic/claude-haiku-5-5"], "suite": "llm_arithmetic"},
        id="all that is in brackets",
    ),
    pytest.param(
        ["1", "anthropic", "2,claude-opus-5-5", "2", "20", "7"],
        {
            "models": ["anthropic/claude-sonnet-5-5", "anthropic/claude-opus-5-5"],
            "suite": "integer_addition",
            "tries": 20,
            "budget_usd": 7,
        },
        id="chosen by number and name",
    ),
    pytest.param(
        ["provider", "gemini", "1", "string_reversal", "5", "0"],
        {
            "models": ["gemini/gemini-3.1-flash-lite"],
            "suite": "string_reversal",
            "tries": 5,
            "budget_usd": None,
        },
        id="no key yet and no limit",
    ),
    pytest.param(
        ["provider", "openai", "gpt-99", "1", "1"],
        {"models": ["openai/gpt-99"], "suite": "llm_arithmetic", "trials": 1, "budget_usd": None},
        id="no price, so no budget",
    ),
    pytest.param(
        ["4", "nobody", "nothing", "9", "1", "many", "3"],
        {"models": ["simulated/oracle", "simulated/noisy"], "suite": "llm_arithmetic", "trials": 3},
        id="slips are asked again",
    ),
]


def test_a_number_that_cannot_be_meant_is_asked_again(folder):
    answers = ["", "openai", "", "integer_addition", "0", "99999999999", "²", "7", "9" * 400, "5"]
    told, code = on_a_terminal(folder, answers, env=keys("openai"))
    assert code == 0, told
    assert "0 is too small: at least 1." in told
    assert "99999999999 is too large: at most 100,000." in told
    assert "² is not a whole number." in told
    assert "is too large: at most 1,000,000." in told
    sweep = load_sweep(folder / "sweep.yaml")
    assert [source.parameters["tries"] for source in sweep.problems] == [7]
    assert sweep.budget_usd == 5


@pytest.mark.parametrize(("answers", "chosen"), ANSWERS)
def test_on_a_terminal_it_asks_what_a_person_knows(folder, answers, chosen):
    told, code = on_a_terminal(folder, answers, env=keys("openai", "anthropic"))
    assert code == 0, told
    sweep = load_sweep(folder / "sweep.yaml")
    (source,) = sweep.problems
    assert [f"{one.provider}/{one.model_id}" for one in sweep.models] == chosen["models"]
    assert source.suite == chosen["suite"]
    assert {**source.parameters, **chosen} == {**chosen, **source.parameters}  # what is in both is the same
    if "budget_usd" in chosen:
        assert sweep.budget_usd == chosen["budget_usd"]
    assert len((folder / "sweep.yaml").read_text().splitlines()) <= 14
    assert SECRET not in told + (folder / "sweep.yaml").read_text()


ROWS = [
    {"id": "1", "prompt": "What is 2+2?", "topic": "sums", "truth": "4"},
    {"id": "2", "prompt": "What is 9+3?", "topic": "sums", "truth": "12"},
]


def of_ones_own(path):
    """Write a file of questions in the form that its name says, and return its name."""
    match path.suffix:
        case ".csv":
            path.write_text("\n".join([",".join(ROWS[0]), *(",".join(row.values()) for row in ROWS)]))
        case ".jsonl":
            path.write_text("\n".join(map(json.dumps, ROWS)))
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path.name


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
async def test_a_file_of_ones_own_shows_its_first_row_and_is_read_as_a_person_says(folder, ending):
    name = of_ones_own(folder / f"my.{ending}")
    answers = ["nothing", "file", "none.csv", name, "", "1,4", "truth", "3", ""]
    told, code = on_a_terminal(folder, answers, env={})
    assert code == 0, told
    assert "none.csv: no such file" in told
    assert "2  prompt  What is 2+2?\n   3  topic   sums\n   4  truth   4\n" in told
    assert "Choose one alone." in told
    (source,) = load_sweep(folder / "sweep.yaml").problems
    assert source.columns == {"question": "prompt", "expected": "truth", "task": "topic"}
    summary = await run_sweep(folder / "sweep.yaml")
    assert [one.done for one in summary.models.values()] == [2, 2]
    assert "number" in (folder / "sweep.yaml").read_text()


@pytest.mark.parametrize(("mark", "decimal"), [("", ","), ("comma", ","), ("1", ".")])
def test_the_mark_before_decimals_is_asked_where_a_file_does_not_tell(folder, mark, decimal):
    (folder / "my.csv").write_text("question;answer\nHow many in all?;1,234\n")
    told, code = on_a_terminal(folder, ["nothing", "file", "my.csv", "", "", "", mark, ""], env={})
    assert code == 0, told
    assert "What stands before decimals in 1,234?" in told
    (source,) = load_sweep(folder / "sweep.yaml").problems
    assert (source.grader, source.decimal) == ("number", decimal)


def test_a_grader_that_reads_no_answer_is_asked_for_again_and_our_own_files_need_none(folder):
    path = problem_set(folder, trials=1)
    of_ones_own(folder / "my.csv")
    answers = ["nothing", "file", "my.csv", "prompt", "topic", "-", "number", path.name]
    told, code = on_a_terminal(folder, answers, env={})
    assert code == 0, told
    assert "grader 'number' finds no answer in the expected value 'sums'" in told
    assert [str(source.path) for source in load_sweep(folder / "sweep.yaml").problems] == [path.name]


async def test_a_server_of_ones_own_lists_its_models_and_is_asked(folder, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    of_ones_own(folder / "my.csv")
    with simulator(problem_set(folder, trials=1)) as server:
        url = base_url(server, "simulated-http")
        known = ["server", "other", "localhost", url.removesuffix("/v1"), SECRET, "MY_KEY", "oracle,noisy"]
        answers = [*known, "file", "my.csv", "", "truth", "", ""]
        told, code = on_a_terminal(folder, answers, env={"MY_KEY": SECRET})
        assert code == 0, told
        summary = await run_sweep(folder / "sweep.yaml")
    assert "'localhost' is not an address. Write it like https://host/v1" in told
    assert "Type its name, never the key itself." in told
    assert "oracle\n" in told
    assert SECRET not in told + (folder / "sweep.yaml").read_text()
    assert [one.done for one in summary.models.values()] == [2, 2]


@pytest.mark.parametrize(
    ("answers", "said", "model"),
    [
        pytest.param(["vllm", "http://127.0.0.1:9/v1", "", "m"], "refused", "vllm/m", id="nobody answers"),
        pytest.param(["other", "URL", "", "m"], "it asks for a key (401)", "http/m", id="no key"),
        pytest.param(["azure", "https://me.openai.azure.com/openai/v1", "", "d"], "", "azure/d", id="azure"),
    ],
)
def test_a_server_that_lists_nothing_is_asked_for_what_a_person_types(folder, answers, said, model):
    with simulator(problem_set(folder, trials=1)) as server:
        typed = [base_url(server, "simulated-http") if answer == "URL" else answer for answer in answers]
        told, code = on_a_terminal(folder, ["server", *typed, "2", "3", "0"], env={})
    assert code == 0, told
    assert said in told
    assert plan(folder / "sweep.yaml").models[0].model == model


@pytest.mark.parametrize("stop", ["\x04", "2\n1\n\x04"])
def test_a_terminal_that_ends_leaves_no_file_and_says_so(folder, stop):
    told, code = on_a_terminal(folder, [stop], env={})
    assert code == 130
    assert "asyncbench: interrupted; no file was written" in told
    assert not (folder / "sweep.yaml").exists()


def test_it_shows_keys_prices_and_cost_and_says_what_is_next(folder):
    told, _ = on_a_terminal(folder, ["", "gemini", "", "", "10", "3"], env=keys("openai"))
    assert "openai      your key is in OPENAI_API_KEY" in told
    assert "gemini      needs a key in GEMINI_API_KEY" in told
    assert "gemini-3.1-flash-lite  $0.25 in, $1.5 out" in told
    assert "720 calls, for about $" in told
    after = told.split("Next:")[1].split()
    assert after[:2] == ["export", "GEMINI_API_KEY=…"]
    assert [after[i + 1] for i, word in enumerate(after) if word == "asyncbench"] == ["doctor", "plan", "run"]


def on_a_terminal(folder, answers, *, env):
    """Return what init shows to somebody who types these answers, and its exit code."""
    ours, theirs = pty.openpty()
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    with tempfile.TemporaryFile("w+") as out:
        streams = {"stdin": theirs, "stdout": out.fileno(), "stderr": out.fileno()}
        code = Forked("asyncbench", "init", **streams, cwd=folder, env=CLEAN | env).wait()
        told = whole(out)
    os.close(ours)
    os.close(theirs)
    return told, code


def test_options_are_folded_at_words_to_the_width_of_the_terminal(folder):
    told, _ = on_a_terminal(folder, ["nothing", "", ""], env={"COLUMNS": "60"})
    listed = [line for line in told.splitlines() if line.startswith("   ")]
    assert max(map(len, listed)) <= 60
    assert "any address like OpenAI's" in " ".join(" ".join(listed).split())


def keys(*providers):
    return {key_variable(name): SECRET for name in providers}
