"""A sweep that is typed as flags: it asks what a file with the same keys asks, and writes that file."""

import json
import re
import shlex

import pytest

from asyncbench.commands.sweep_options import flag
from asyncbench.config.sweep import load_sweep
from asyncbench.suites.table import SUITES
from tests.commands import asyncbench, asyncbench_here, succeeded

WHOLE = (
    "--suite llm_arithmetic --depths 2-3 --trials 1 --variants int_add,int_mul --effort high --repeats 3 "
    "--context 1k"
)


def typed(text, out):
    return (*shlex.split(text), "--out", out)


def with_effort(effort):
    return WHOLE.replace("--effort high", f"--effort {effort}")


@pytest.mark.long
def test_the_first_command_is_whole(tmp_path):
    """It generates, asks, reports and writes the sweep file, which asks nothing again."""
    flags = typed(f"--model simulated/noisy {WHOLE}", tmp_path / "x")
    done = asyncbench("run", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    file = tmp_path / "x" / "sweep.yaml"
    assert f"To ask the same from a file: asyncbench run {file}\n" in done.stdout
    assert "x: 12/12 done." in done.stdout
    assert "50 % right up to" in done.stdout  # the report

    written = load_sweep(file)
    (source,), (model,), (condition,) = written.problems, written.models, written.conditions
    assert (source.suite, source.seed) == ("llm_arithmetic", 0)
    assert source.parameters == {"depths": "2-3", "trials": 1, "variants": "int_add,int_mul"}
    assert (model.effort, condition.name, written.repeats) == ("high", "context=1k", 3)

    planned = json.loads(asyncbench_here("plan", *flags, "--json").stdout)
    assert [(model["done"], model["left"]) for model in planned["models"]] == [(12, 0)]
    again = json.loads(asyncbench("run", file, "--json").stdout)["models"]["simulated/noisy"]
    assert (again["done"], again["done_before"], again["attempts"]) == (12, 12, 0)


def test_several_values_are_planned_as_a_matrix(tmp_path):
    models = "--model openai/gpt-5-mini --model openai/gpt-5"
    done = asyncbench_here("plan", *typed(f"{models} {with_effort('low,high')}", tmp_path / "x"))
    assert "Matrix: 2 models × 2 efforts = 4 entrants\n" in done.stdout
    assert "openai/gpt-5 effort=high" in done.stdout
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("depths", ["2 3 4", "2,3 4", "2-3 4"])
def test_numbers_may_stand_apart_as_the_benchmarks_program_takes_them(tmp_path, depths):
    base = "--model simulated/noisy --suite llm_arithmetic"
    apart, whole = (
        asyncbench_here("plan", *typed(f"{base} --depths {text} --trials 1", tmp_path / "x"), "--json")
        for text in (depths, "2-4")
    )
    assert json.loads(apart.stdout)["models"] == json.loads(whole.stdout)["models"]
    made = asyncbench_here(
        "generate", "llm_arithmetic", *typed(f"--depths {depths} --trials 1", tmp_path / "y")
    )
    assert ": 24 problems" in succeeded(made).stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("MODEL=qwen/qwen3-8b", "MODEL=qwen/qwen3-8b of {} is --model lmstudio/qwen/qwen3-8b here"),
        ("MODEL=openai/gpt-5", "MODEL=openai/gpt-5 of {} is --model openai/gpt-5 here"),
        (
            "MODEL=",
            "MODEL= of {} is --model lmstudio/NAME here. `asyncbench models lmstudio` lists the names",
        ),
        ("no line of a variable", "--model, --out missing)"),
    ],
)
def test_the_model_of_a_programs_env_file_is_named(tmp_path, line, said):
    (file := tmp_path / "x.env").write_text(f"{line}\n")
    done = asyncbench_here("run", "--suite", "integer_addition", "--env-file", file)
    assert done.returncode == 2
    assert done.stderr.endswith(said.format(file) + "\n")


# Flags, and what a sweep file says instead.
SAID: dict[str, dict[str, object]] = {
    "--temperature 0,0.5": {"temperature": [0, 0.5]},
    "--max-tokens 64 --rpm 60 --tpm 9e4": {"max_tokens": 64, "rpm": 60, "tpm": 90000},
    "--concurrency 1,8": {"concurrency": [1, 8]},
    "--base-url http://127.0.0.1:9/v1": {"base_url": "http://127.0.0.1:9/v1"},
    "--key-env MY_KEY": {"key_env": "MY_KEY"},
    "--mode batch": {"mode": "batch"},
}
WORDED = {
    r'--system "Be terse." --template "{question}\nThink."': {
        "name": "system template",
        "system": "Be terse.",
        "template": "{question}\nThink.",
    },
    "--digits zero_padded,reversed": {
        "name": "digits=zero_padded,reversed",
        "digits": ["zero_padded", "reversed"],
    },
    "--digits spaced": {"name": "digits=spaced", "digits": "spaced"},
}


@pytest.mark.long
@pytest.mark.parametrize("flags", [*SAID, *WORDED])
def test_a_flag_says_what_its_key_says(tmp_path, flags):
    import yaml

    entry: dict[str, object] = {"model": "openai/gpt-4.1-mini"} | SAID.get(flags, {})
    content = {
        "name": "x",
        "problems": [{"suite": "integer_addition", "seed": 4, "tries": 3}],
        "models": [entry],
        "conditions": [WORDED.get(flags, {"name": "plain"})],
        "out": str(tmp_path / "x"),
    }
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(content))
    beside = "--model openai/gpt-4.1-mini --suite integer_addition --seed 4 --tries 3"
    by_flags = asyncbench_here("plan", *typed(f"{beside} {flags}", tmp_path / "x"), "--json")
    by_file = asyncbench_here("plan", tmp_path / "x.yaml", "--json")
    assert (by_flags.returncode, by_file.returncode) == (0, 0), by_flags.stderr + by_file.stderr
    assert json.loads(by_flags.stdout)["models"] == json.loads(by_file.stdout)["models"]


BASE = "--model simulated/noisy --suite llm_arithmetic"
OWN = "--model simulated/noisy --suite custom --problems x.csv --grader number"


def test_columns_of_a_file_of_ones_own_are_named_in_a_flag(tmp_path):
    (file := tmp_path / "x.csv").write_text("ask,gold\n1+1?,2\n")
    lacking, found = (
        asyncbench_here("plan", *typed(f"{OWN.replace('x.csv', str(file))} {flags}", tmp_path / "x"))
        for flags in ("", "--columns question=ask,expected=gold")
    )
    assert "Name the column to use as question: `--columns question=…`" in lacking.stderr
    assert re.search(r"^x +1$", succeeded(found).stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (f"{BASE} --depths 10-2", "--depths 10-2: has a range that runs backwards: write 2-10"),
        (f"{BASE} --depth 2-3", "No such option: --depth"),
        (f"{BASE} --depths 2 3 --retries 3", "--retries: not an option here; write `retry: {attempts: N}`"),
        (f"{BASE} --output_dir y", "--output_dir: not an option here; write --out FOLDER"),
        (f"{BASE} --max_tokens 5", "--max_tokens: not an option here; write --max-tokens"),
        (f"{BASE} --seed 2 3", "Invalid value for '--seed': it must be a whole number, not 2,3."),
        (f"{BASE} --limit 0", "Invalid value for '--limit': it must be at least 1, not 0."),
        (f"{BASE} --tries 5", "No such option: --tries"),
        (f"{BASE} --mode fast", "--mode"),
        (f"{BASE} --trials x", "--trials x: is not a whole number"),
        ("--model simulated/noisy --depths 2-3", "--depths: a parameter of llm_arithmetic. Name the suite"),
        (f"{BASE} --depths 2-2 --suite nupa", "--suite nupa: a second suite. Name one"),
        (f"--suite=nupa {BASE}", "--suite llm_arithmetic: a second suite"),
        (f"{BASE} --json --per-length 2", "No such option: --per-length"),
        (
            "--template --suite nupa --model simulated/noisy --depths 2-3",
            "--depths: a parameter of llm_arithmetic",
        ),
        (f"{BASE} --template --suite", "--template: 'template' does not say where the question goes"),
        ("--model simulated/noisy --suite llm_arithmetik", "Did you mean 'llm_arithmetic'?"),
        (
            "--model simulated/noisy --suite integer_addition --min-digits 9 --max-digits 3",
            "--suite integer_addition: min_digits (9) is greater than max_digits (3)",
        ),
        ("--model simulated/noisy --problems none.parquet", "--problems: none.parquet was not found"),
        (
            "--model simulated/noisy --problems data/nupa-mini.parquet --seed 1",
            "--seed: only the problems",
        ),
        ("--model simulated/noisy --suite custom", "--suite custom: your own problems are in a file"),
        (f"{BASE} --grader number", "--grader: only your own problems take one"),
        (f"{BASE} --columns question=a", "--columns: only your own problems take one"),
        (f"{OWN} --columns question", "--columns question: this is no NAME=COLUMN"),
        ("--suite llm_arithmetic", "(--model missing)"),
        ("--model simulated/noisy", "(--suite or --problems missing)"),
        ("--model gpt-5 --suite llm_arithmetic", "--model: 'gpt-5' names no provider"),
        (f"{BASE} --model simulated/noisy", "--model simulated/noisy: given twice"),
        (f"{BASE} --temperature -1", "'--temperature' must be at least 0, not -1"),
        (f"{BASE} --temperature warm", "--temperature warm: not a number"),
        (f"{BASE} --temperature 0,0", "--temperature: 'temperature' lists 0 twice"),
        (f"{BASE} --effort low,", "--effort 'low,': a value is empty"),
        (f"{BASE} --max-tokens 0", "'--max-tokens' must be more than 0"),
        (f"{BASE} --repeats 0", "'--repeats' must be more than 0"),
        (f"{BASE} --repeats x", "Invalid value for '--repeats'"),
        (f"{BASE} --concurrency 1.5", "'--concurrency' must be a whole number"),
        (f"{BASE} --base-url here", "'--base-url' must be an address"),
        (f"{BASE} --key-env sk-secret", "'--key-env' must be the NAME of an environment variable"),
        (f"{BASE} --context 3k", "--context: 3k was not found"),
        (f"{BASE} --shots 3", "'shots=3': llm_arithmetic defines no worked examples"),
        (f"{BASE} --style haiku", "'--style' must be 'chat', 'completion' or 'rules'"),
        (f"{BASE} --digits backwards", "'--digits' must be 'reversed'"),
        (f"{BASE} --template Think", "--template: 'template' does not say where the question goes"),
        (f"configs/demo.yaml {BASE}", "give either configs/demo.yaml or --model, --suite, not both"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_bad_flag_is_named_before_anything_is_spent(tmp_path, command, flags, said):
    done = asyncbench_here(command, *typed(flags, tmp_path / "x"))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.long
def test_a_folder_is_compared_with_all_it_holds_and_not_with_its_last_sweep_alone(tmp_path):
    """Two wordings would stand under one name, or two draws of one suite in one cell."""
    out = tmp_path / "x"
    base = (
        "--model simulated/noisy --limit 1 --suite llm_arithmetic --depths 2-2 --trials 1 --variants int_add"
    )
    worded = "--template 'A {question}'"
    other = base.replace("llm_arithmetic --depths 2-2 --trials 1 --variants int_add", "nupa --lengths 2-2")
    for flags in (f"{base} {worded}", base, f"{other} --extend"):
        succeeded(asyncbench_here("run", "--quiet", *typed(flags, out)))
    before = (out / "sweep.yaml").read_bytes()
    refused = asyncbench_here("run", *typed(f"{base} --template 'B {{question}}'", out))
    assert refused.returncode == 2
    assert f"continue with: asyncbench run {out / 'sweep.yaml'}" in refused.stderr
    assert (out / "sweep.yaml").read_bytes() == before
    assert f"--out {out}: it holds answers of simulated/noisy that were asked with other" in refused.stderr
    redrawn = asyncbench_here("run", *typed(f"{base} --seed 5", out))
    assert redrawn.returncode == 2
    assert f"--out {out}: it holds problems of llm_arithmetic with seed 0" in redrawn.stderr
    succeeded(asyncbench_here("plan", *typed(f"{base.replace('2-2', '2-3')} --extend", out)))


def test_longer_replies_of_truncated_trials_need_the_file(tmp_path):
    """As flags of a sweep they would be another sweep, and all of it asked again."""
    words = typed(f"{BASE} --max-tokens 9 --retry truncated", tmp_path / "x")
    done = asyncbench_here("run", *words)
    file = tmp_path / "x" / "sweep.yaml"
    assert done.returncode == 2
    assert f"`asyncbench run {file} --retry truncated --max-tokens 9`" in done.stderr
    done = asyncbench_here("run", "configs/demo.yaml", "--retry", "truncated", "--max-tokens", "9x")
    assert "--max-tokens 9x: not a whole number" in done.stderr


def test_questions_of_your_own_need_no_sweep_file(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n')
    flags = f"--model simulated/noisy --suite custom --problems {tmp_path / 'q.jsonl'}"
    planned = asyncbench_here("plan", *typed(f"{flags} --grader number", tmp_path / "x"), "--json")
    assert [model["left"] for model in json.loads(planned.stdout)["models"]] == [1]
    lacking = asyncbench_here("plan", *typed(flags, tmp_path / "x"))
    assert "need a --grader. `asyncbench problems inspect" in lacking.stderr
    wrong = asyncbench_here("plan", *typed(f"{flags} --grader guess", tmp_path / "x"))
    assert (wrong.returncode, "guess" in wrong.stderr) == (2, True)


@pytest.mark.long
@pytest.mark.parametrize("suite", [name for name, suite in SUITES.items() if suite.generate])
def test_each_parameter_of_a_suite_is_a_flag_that_its_help_shows(suite):
    shown = asyncbench_here("run", "--suite", suite, "--help").stdout
    section = shown.split(f"Parameters of {suite}:\n")[1].split("\n\n")[0]
    assert [line.split()[0] for line in section.splitlines() if line.startswith("  --")] == list(
        map(flag, SUITES[suite].parameters)
    )


CSV = "prompt,answer\n1+1?,2\n2+3?,5\n"
CHOICES = [{"question": letter, "choices": ["a", "b"], "answer": int(letter)} for letter in "10"]
OWN_FILES = {  # name and content → what is said of it
    (
        "my.csv",
        CSV,
    ): "2 problems, question from prompt, expected from answer (guessed; --columns to change)",
    ("my.ndjson", '{"question": "1+1?", "expected": "two"}\n'): "grader exact (guessed; --grader to change)",
    ("my.json", json.dumps(CHOICES)): "answers as index (guessed; --answer-form",
    ("my data.tsv", "question\tanswer\n1.5\t1,5\n"): "to change), results go to results/my-data\n",
}


@pytest.mark.parametrize(("name", "content"), OWN_FILES)
def test_a_file_of_problems_stands_for_suite_grader_and_folder(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    done = succeeded(asyncbench_here("plan", name, "--model", "simulated/oracle", cwd=tmp_path))
    assert done.stderr.startswith(f"asyncbench: {name}: ")
    assert OWN_FILES[name, content] in done.stderr
    assert done.stderr.count("\n") == 1
    assert f"Plan of {name.split('.')[0].replace(' ', '-')}. " in done.stdout


REFUSED = {  # flags beside my.csv → what to do
    "": "my.csv holds problems. Name the models to ask, such as `--model openai/gpt-5-mini`.",
    "--model simulated/oracle --suite nupa": "--suite nupa makes others. Leave one of them out",
    "--model simulated/oracle --problems other.csv": "Leave one of them out",
    "--model simulated/oracle --columns expected=right": "it has no column 'right'. Its columns: prompt",
    "--model simulated/oracle --seed 7": "To draw some from this seed, add --sample",
}


@pytest.mark.parametrize("flags", REFUSED)
def test_what_does_not_go_with_a_file_of_problems_is_refused(tmp_path, flags):
    (tmp_path / "my.csv").write_text(CSV)
    done = asyncbench_here("plan", "my.csv", *shlex.split(flags), cwd=tmp_path)
    assert done.returncode == 2
    assert REFUSED[flags] in done.stderr


@pytest.mark.long
def test_a_file_of_problems_resumes_and_its_namesake_is_refused(tmp_path):
    (tmp_path / "my.csv").write_text(CSV)
    flags = ("--model", "simulated/oracle", "--model", "simulated/noisy")
    done = asyncbench("run", "my.csv", *flags, cwd=tmp_path)
    assert "my: 4/4 done." in succeeded(done).stdout
    again = json.loads(succeeded(asyncbench("run", "my.csv", *flags, "--json", cwd=tmp_path)).stdout)
    assert [model["attempts"] for model in again["models"].values()] == [0, 0]
    assert load_sweep(tmp_path / "results/my/sweep.yaml").problems[0].grader == "number"

    (tmp_path / "b").mkdir()
    (tmp_path / "b/my.csv").write_text(CSV.replace("1+1", "1+1+0"))
    refused = asyncbench_here("run", "b/my.csv", *flags, cwd=tmp_path).stderr
    assert "results/my has the results of my.csv. Name another folder for those of b/my.csv: --out" in refused


def test_a_sweep_in_json_stays_a_sweep(tmp_path):
    (tmp_path / "my.csv").write_text(CSV)
    source = {"path": str(tmp_path / "my.csv"), "suite": "custom", "grader": "number"}
    sweep = {"name": "j", "problems": [source | {"columns": {"question": "prompt"}}]}
    (file := tmp_path / "s.json").write_text(json.dumps(sweep | {"models": ["simulated/oracle"]}, indent=2))
    assert "Plan of j. " in succeeded(asyncbench_here("plan", file)).stdout
