"""A results folder belongs to one sweep: another is refused, or extends it when somebody says so."""

import asyncio
import json
import shlex

import pytest

from asyncbench import generate, load_sweep, read_trials, run_sweep
from asyncbench.errors import ConfigError
from tests.commands import asyncbench
from tests.sweep_files import base_url, calls, contents, simulator

ARITHMETIC = "--suite llm_arithmetic --depths 2-2 --trials 1"  # 8 problems
ADDITION = "--suite integer_addition --tries 5 --min-digits 1 --max-digits 2"  # 5 problems
WAYS = [
    pytest.param("simulated", "", (), id="chat"),
    pytest.param("simulated", "--effort high", (), id="streamed"),
    pytest.param("simulated-anthropic", "", (), id="anthropic"),
    pytest.param("simulated-http", "", ("--workers", "2"), id="two workers"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    arithmetic, addition = (tmp_path_factory.mktemp("sets") / name for name in ("a.parquet", "b.parquet"))
    generate("llm_arithmetic", arithmetic, seed=0, depths="2-2", trials=1)
    generate("integer_addition", addition, seed=0, tries=5, min_digits=1, max_digits=2)
    with simulator(arithmetic, addition) as running:
        yield running


@pytest.fixture
def typed(server, tmp_path):
    """Return what types a command with flags; its results go to `ok`."""

    def command(flags, *words, name="run", model="simulated/oracle"):
        address = base_url(server, model.partition("/")[0])
        model = f"--model {model} --base-url {address} --max-tokens 64 --out ok"
        return asyncbench(name, *shlex.split(f"{model} {flags}"), *words, cwd=tmp_path)

    return command


def status(folder):
    return json.loads(asyncbench("status", folder, "--json").stdout)


@pytest.mark.long
@pytest.mark.parametrize(("provider", "flags", "words"), WAYS)
def test_another_sweep_is_refused_before_anything_is_spent_or_written(
    typed, server, tmp_path, provider, flags, words
):
    model = f"{provider}/oracle"
    assert typed(f"{ARITHMETIC} {flags}", *words, model=model).returncode == 0
    held, before = contents(tmp_path / "ok"), calls(server)
    for name, more in (("run", words), ("plan", ())):
        refused = typed(f"{ADDITION} {flags}", *more, name=name, model=model)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "ok holds answers to problems of llm_arithmetic that this sweep does not ask" in refused.stderr
        assert "--extend" in refused.stderr
    assert calls(server) == before
    assert contents(tmp_path / "ok") == held


@pytest.mark.long
@pytest.mark.parametrize(("provider", "flags", "words"), WAYS)
def test_a_sweep_that_extends_the_folders_stands_in_its_file_beside_it(
    typed, server, tmp_path, provider, flags, words
):
    model = f"{provider}/oracle"
    assert typed(f"{ARITHMETIC} {flags}", *words, model=model).returncode == 0
    before = calls(server)
    more = typed(f"{ADDITION} {flags}", "--extend", "--json", *words, model=model)
    assert more.returncode == 0, more.stderr
    (counters,) = json.loads(more.stdout)["models"].values()
    assert (counters["done_before"], counters["done"]) == (8, 13)
    assert calls(server) - before == 5
    union = load_sweep(tmp_path / "ok" / "sweep.yaml")
    assert [source.suite for source in union.problems] == ["llm_arithmetic", "integer_addition"]
    again = asyncbench("run", tmp_path / "ok" / "sweep.yaml", "--json")
    assert json.loads(again.stdout)["models"][model]["done_before"] == 13
    assert calls(server) - before == 5
    assert typed(f"{ADDITION} {flags}", *words, model=model).returncode == 2  # it would drop the other again


@pytest.mark.long
def test_each_model_is_asked_what_its_sweep_asked_it(typed, tmp_path):
    """To extend a sweep does not mean to pay for pairs that nobody named."""
    assert typed(ARITHMETIC).returncode == 0
    planned = typed(ADDITION, "--extend", "--json", name="plan", model="simulated/noisy")
    left = {model["model"]: model["left"] for model in json.loads(planned.stdout)["models"]}
    assert left == {"simulated/oracle": 0, "simulated/noisy": 5}
    assert typed(ADDITION, "--extend", model="simulated/noisy").returncode == 0
    models = {model["model"]: model for model in status(tmp_path / "ok")["models"]}
    assert {alias: (one["done"], one["planned"]) for alias, one in models.items()} == {
        "simulated/oracle": (8, 8),
        "simulated/noisy": (5, 5),
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (f"{ADDITION} --effort high", "simulated/oracle that were asked with other flags"),
        (f"{ADDITION} --template 'So: {{question}}'", "has other `conditions`"),
        (f"{ADDITION} --repeats 2", "has other `repeats`"),
    ],
)
def test_what_cannot_stand_in_one_file_does_not_extend_it(typed, server, tmp_path, flags, fault):
    assert typed(ARITHMETIC).returncode == 0
    held, before = contents(tmp_path / "ok"), calls(server)
    refused = typed(flags, "--extend")
    assert refused.returncode == 2
    assert fault in refused.stderr
    assert calls(server) == before
    assert contents(tmp_path / "ok") == held


def raw(out, *problems, models=("simulated/oracle",), **keys):
    return {"name": "s", "problems": list(problems), "models": list(models), "out": str(out), **keys}


ONE = {"suite": "integer_addition", "tries": 2, "max_digits": 2}
OTHER = {"suite": "string_reversal", "tries": 2, "min_length": 1, "max_length": 2}
EDITS = {
    "a model": ({"models": ["simulated/oracle", "simulated/noisy"]}, 2),
    "another model": ({"models": ["simulated/noisy"]}, 2),
    "repeats": ({"repeats": 2}, 2),
    "a condition": ({"conditions": [{"name": "a", "system": "Be brief."}]}, 2),
    "a budget": ({"budget_usd": 5, "allow_unpriced": True}, 0),
    "more problems": ({"problems": [ONE, OTHER]}, 2),
    "a larger set": ({"problems": [ONE | {"tries": 3}]}, 1),
}


@pytest.mark.long
@pytest.mark.parametrize(("edit", "new"), EDITS.values(), ids=EDITS)
def test_an_edited_sweep_goes_on_in_its_folder_and_asks_what_is_new(tmp_path, edit, new):
    out = tmp_path / "out"
    asyncio.run(run_sweep(raw(out, ONE)))
    summary = asyncio.run(run_sweep(raw(out, ONE) | edit))
    assert summary.exit == 0
    assert sum(one.attempts for one in summary.models.values()) == new


@pytest.mark.long
@pytest.mark.parametrize("edit", [{"seed": 3}, {"tries": 1}, {"max_digits": 3}], ids=str)
def test_other_problems_of_a_suite_are_another_sweep(tmp_path, edit):
    out = tmp_path / "out"
    asyncio.run(run_sweep(raw(out, ONE)))
    with pytest.raises(ConfigError, match=r"problems of integer_addition that .* does not ask"):
        asyncio.run(run_sweep(raw(out, ONE | edit)))
    asyncio.run(run_sweep(raw(out, ONE | edit), extend=True))
    (model,) = status(out)["models"]
    assert model["done"] == model["planned"]


def test_a_set_of_the_same_content_under_another_name_is_the_same(tmp_path):
    files = [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    for file, answer in zip(files, (2, 2, 3), strict=True):
        file.write_text(json.dumps({"question": f"1+{answer - 1}?", "answer": str(answer)}))
    own = [{"path": str(file), "suite": "custom", "grader": "number"} for file in files]
    out = tmp_path / "out"
    asyncio.run(run_sweep(raw(out, own[0])))
    asyncio.run(run_sweep(raw(out, own[1])))
    assert len(read_trials(out)) == 1
    with pytest.raises(ConfigError, match="holds answers to problems of b that"):
        asyncio.run(run_sweep(raw(out, own[2])))
