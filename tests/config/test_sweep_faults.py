"""A fault in a sweep: which file and line, what was found, what is allowed; and the schema for editors."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from asyncbench import plan, run_sweep
from asyncbench.config.sweep import load_sweep, sweep_from
from asyncbench.config.sweep_file import sweep_schema
from asyncbench.errors import ConfigError
from tests.commands import asyncbench_here

ROOT = Path(__file__).resolve().parents[2]

FAULTY = """\
name: night
problems: [p.parquet]
models:
  - model: simulated/oracle
    tempreature: 0
    temperature: [0, -1, 1]
    system: [short, long]
  - {model: simulated/noisy, key_env: sk-SECRET, stream: maybe}
  - &third {model: simulated/noisy, rpm: many}
limts: {simulated: {rpm: 5}}
conditions:
  - {name: a, shots: 0}
  - nam: b
stop_when: 5
repeats: 0
"""
TOLD = [
    "line 5: unknown key 'tempreature'. Did you mean 'temperature'?",
    "line 6: 'temperature[2]' must be at least 0, not -1",
    "line 7: 'system' must be text, not a list. "
    "For several, list the model once per value, each with its own alias.",
    "line 8: 'key_env' must be the NAME of an environment variable "
    "(capital letters, digits and _), not the key itself",
    "line 8: 'stream' must be true, false or 'auto', not 'maybe'",
    "line 9: 'rpm' must be a number, not 'many'",
    "line 10: unknown key 'limts'. Did you mean 'limits'?",
    "line 12: 'shots' must be at least 1 or text, not 0",
    "line 13: unknown key 'nam'. Did you mean 'name'?",
    "line 14: 'stop_when' must be a mapping of keys to values, not 5",
    "line 15: 'repeats' must be more than 0, not 0",
]


def complaint_about(path):
    with pytest.raises(ConfigError) as caught:
        load_sweep(path)
    return str(caught.value)


@pytest.fixture
def night(tmp_path, monkeypatch):
    """Writes a sweep file into the working directory."""
    monkeypatch.chdir(tmp_path)

    def written(text):
        Path("night.yaml").write_text(text)
        return "night.yaml"

    return written


def test_a_command_tells_all_of_them(tmp_path):
    (tmp_path / "night.yaml").write_text(FAULTY)
    done = asyncbench_here("plan", tmp_path / "night.yaml")
    assert done.returncode == 2
    lines = done.stderr.removeprefix("asyncbench: ").splitlines()
    assert lines == [f"{tmp_path}/night.yaml, {line}" for line in TOLD]


def test_faults_that_no_single_key_shows_are_told_together_too(night):
    text = """\
name: night
problems:
  - {path: p.parquet, grader: exact}
models:
  - opnai/gpt-5
  - {model: anthropic/claude-haiku-4-5, seed: 1}
deadline: soon
conditions:
  - {name: a, suites: [nupta]}
"""
    told = complaint_about(night(text)).splitlines()
    assert [line.split(":")[0].split(",")[1] for line in told] == [f" line {i}" for i in (5, 6, 3, 7, 9)]
    assert "Did you mean 'openai'?" in told[0]
    assert "Did you mean 'nupa'?" in told[4]


def test_what_contradicts_is_told_at_the_later_line(night):
    text = """\
name: night
problems: [p.parquet]
models:
  - {model: simulated/oracle, alias: best}
  - model: simulated/noisy
    alias: best
"""
    assert complaint_about(night(text)) == (
        "night.yaml, line 5: models[1] and models[2] are both called 'best'. Give one of them another `alias`"
    )


def test_a_command_that_cannot_be_split_is_not_repeated(night):
    told = complaint_about(night("name: s\nproblems: [p]\nmodels: [simulated/x]\nnotify: 'sh -c \"SECRET'\n"))
    assert told == "night.yaml, line 4: 'notify' cannot be read: No closing quotation"


@pytest.mark.parametrize("name", ["2026", "2026-11-22", "1.5", "true"])
def test_a_name_that_yaml_reads_as_something_else_has_to_be_quoted(night, name):
    told = complaint_about(night(f"name: {name}\nproblems: [p]\nmodels: [simulated/oracle]\n"))
    assert told == f"night.yaml, line 1: 'name' must be text, not {name}. Put it in quotes"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("models: [simulated/x]\n", "night.yaml: 'name' is missing", id="missing"),
        pytest.param(
            "models:\n- &a {model: simulated/x, rmp: 1}\n- {<<: *a, alias: b}\n",
            "line 2: unknown key 'rmp'",
            id="alias",
        ),
        pytest.param("models:\n\n  - 5\n", "line 3: 'models[1]' must be provider/model, or", id="5"),
    ],
)
def test_the_line_is_the_one_to_change(night, text, line):
    assert line in complaint_about(night(text))


def test_a_wrong_value_lists_no_keys_and_an_unknown_key_only_those_of_its_level(night):
    text = "name: s\nproblems: [p]\nmodels: [{model: simulated/x, temperature: hot, price: {in: 1}}]\n"
    wrong, unknown, *missing = complaint_about(night(text)).splitlines()
    assert wrong.endswith("'temperature' must be a number, not 'hot'")
    assert unknown.endswith("unknown key 'in'. Known keys: input, output, cached_input, cache_write, batch.")
    assert [line.rpartition(": ")[2] for line in missing] == ["'input' is missing", "'output' is missing"]


def test_a_dict_is_told_by_the_place_of_its_keys():
    models = ["simulated/oracle", {"model": "simulated/noisy", "price": {"input": -1, "output": 1}}]
    with pytest.raises(ConfigError) as caught:
        sweep_from({"name": "s", "problems": ["p"], "models": models, "repaets": 2})
    assert str(caught.value).splitlines() == [
        "sweep, models[2].price: 'input' must be at least 0, not -1",
        "sweep: unknown key 'repaets'. Did you mean 'repeats'?",
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("sk-proj-SECRET: x\n", id="a key"),
        pytest.param("sk-proj-SECRET: x\nsk-proj-SECRET: y\n", id="a key that is set twice"),
        pytest.param("models: [{model: simulated/x, key_env: !sk-SECRET x}]\n", id="a tag"),
        pytest.param("name: *sk-SECRET\n", id="an alias of YAML"),
        pytest.param("repeats: !!int sk-SECRET\n", id="a number"),
        pytest.param("limits: sk-SECRET\n", id="a value"),
        pytest.param("limits: {sk-SECRET: {rpm: many}}\n", id="a provider"),
        pytest.param("limits: {gsk_4f9aB0cdSECRETe81f2a3: {rpm: 5}}\n", id="a key of Groq"),
        pytest.param("deadline: 4f9aB0cdSECRETe81f2a3b4c5d6e7f80\n", id="a key without a beginning"),
        pytest.param("models: [sk-SECRET, sk-SECRET/gpt-5]\n", id="a model"),
    ],
)
def test_a_key_in_the_wrong_place_is_never_repeated(night, text):
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in small().items() if f"{key}:" not in text]
    told = complaint_about(night("".join([text, *lines])))
    assert "SECRET" not in told.upper().replace("[KEY]", "")
    assert "line" in told or "base 10" in told


def test_a_dict_does_not_repeat_a_key_either():
    with pytest.raises(ConfigError) as caught:
        sweep_from(small(limits={"sk-SECRET": {"rpm": "many"}}))
    assert str(caught.value) == "sweep, limits.[key]: 'rpm' must be a number, not 'many'"


@pytest.mark.parametrize("name", ["api_key", "key", "token", "apiKey", "OPENAI_API_KEY"])
def test_who_writes_a_key_at_a_model_is_told_where_it_belongs(name):
    with pytest.raises(ConfigError) as caught:
        sweep_from(small(models=[{"model": "simulated/oracle", name: "sk-SECRET"}]))
    assert str(caught.value) == (
        f"sweep, models[1]: unknown key {name!r}. "
        "Set `key_env` to the NAME of the environment variable that holds the key"
    )


def test_other_keys_that_hold_such_a_word_are_still_suggested():
    with pytest.raises(ConfigError, match="Did you mean 'max_tokens'"):
        sweep_from(small(models=[{"model": "simulated/oracle", "max_token": 5}]))


def test_a_bare_on_is_called_by_its_name(night):
    """YAML 1.1 reads `on` as true."""
    text = "name: s\nproblems: [p]\nmodels: [simulated/x]\nnotify:\n  command: x\n  on: finishd\n"
    assert complaint_about(night(text)) == (
        "night.yaml, line 6: 'on' must be 'finished', 'suspended', 'crashed' or 'batches', not 'finishd'"
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1: 2\n", id="the sweep"),
        pytest.param("limits: {1: {rpm: 5}}\n", id="a provider"),
        pytest.param("models: [{model: simulated/oracle, params: {1: 2}}]\n", id="a parameter"),
        pytest.param("problems: [{suite: integer_addition, 1: 2}]\n", id="a problem set"),
    ],
)
def test_a_key_that_is_no_text_has_to_be_quoted(night, text):
    told = complaint_about(night(text)).splitlines()
    assert "night.yaml, line 1: the key 1 must be text; put it in quotes" in told
    assert not any("[2]" in line or "[key]" in line for line in told)


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({"m" * 5000: 1}, id="a key"),
        pytest.param({"models": ["m" * 5000]}, id="a model"),
        pytest.param({"models": ["m" * 5000 + "/m"]}, id="a provider"),
        pytest.param({"models": [{"model": "simulated/oracle", "alias": "1." * 2500 + "e5"}]}, id="an alias"),
        pytest.param({"models": [{"model": f"simulated/{'m' * 5000}"}] * 2}, id="a name of two"),
        pytest.param({"limits": {"m" * 5000: {"rpm": "many"}}}, id="a place"),
        pytest.param({"deadline": "m" * 5000}, id="a deadline"),
    ],
)
def test_a_long_text_is_cut(keys):
    with pytest.raises(ConfigError) as caught:
        sweep_from(small(**keys))
    assert "…" in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("sweep", [3, None, [1]])
async def test_what_is_no_sweep_is_refused_by_its_kind(sweep):
    said = f"a sweep is a path, a dict or a Sweep, not {type(sweep).__name__}"
    for ask in (load_sweep, plan):
        with pytest.raises(ConfigError, match=said):
            ask(sweep)
    with pytest.raises(ConfigError, match=said):
        await run_sweep(sweep)


# ── the schema ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def schema():
    Draft202012Validator.check_schema(sweep_schema())
    return Draft202012Validator(sweep_schema())


@pytest.mark.long
@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_the_schema_accepts_every_ready_made_sweep(schema, path):
    schema.validate(yaml.safe_load(path.read_text()))


def small(**keys):
    return {"name": "s", "problems": ["p.parquet"], "models": ["simulated/oracle"]} | keys


BOTH = [
    small(),
    small(models=[{"model": "simulated/oracle", "stream": "auto", "price": None, "retry": {"attempts": 2}}]),
    small(problems=[{"suite": "integer_addition", "tries": 5}, {"path": "x", "suite": "custom"}]),
    small(notify="true", stop_when={"ci_width": 0.1}, budget_usd=5, deadline="8h", allow_unpriced=True),
    small(notify={"command": ["sh", "-c", "true"], "on": "finished"}, conditions=[{"name": "a", "shots": 2}]),
    small(limits={"openai": {"rpm": 5, "counts": "used"}}),
    small(budget_usd="5", limits={"openai": {"rpm": "1e3", "fraction": "0.5"}}),
]
NEITHER = [
    small(limts={}),
    small(models=[{"model": "simulated/oracle", "tempreature": 0}]),
    small(models=[{"model": "simulated/oracle", "temperature": [0, -1]}]),
    small(models=[{"model": "simulated/oracle", "effort": []}]),
    small(models=[{"model": "simulated/oracle", "system": ["a", "b"]}]),
    small(models=[]),
    small(problems=[{"suite": "integer_addition", "triess": 5}]),
    small(limits={"opnai": {}}),
    small(conditions=[{"name": "a", "shots": 0}]),
    small(stop_when={"ci_width": 2}),
    small(budget_usd=0),
    small(budget_usd="five"),
    small(budget_usd="-5"),
    small(notify={"on": "sunday", "command": "true"}),
    {"models": ["simulated/oracle"]},
]


@pytest.mark.parametrize("raw", BOTH, ids=map(str, range(len(BOTH))))
def test_schema_and_loader_accept_the_same(schema, raw):
    sweep_from(raw)
    schema.validate(raw)


@pytest.mark.parametrize("raw", NEITHER, ids=map(str, range(len(NEITHER))))
def test_schema_and_loader_refuse_the_same(schema, raw):
    assert not schema.is_valid(raw)
    with pytest.raises(ConfigError):
        sweep_from(raw)


def test_the_schema_explains_every_key():
    levels = [sweep_schema(), *sweep_schema()["$defs"].values()]
    assert len(levels) > 10
    for level in levels:
        assert level["description"]
        for key, rule in level["properties"].items():
            assert len(rule["description"]) > 10, key


def test_the_schema_is_printed_or_written(tmp_path):
    assert json.loads(asyncbench_here("schema").stdout) == sweep_schema()
    out = tmp_path / "s.json"
    done = asyncbench_here("schema", "--out", out)
    assert json.loads(out.read_text()) == sweep_schema()
    assert f"# yaml-language-server: $schema={out}" in done.stdout


@pytest.mark.parametrize(
    ("keys", "of_model", "told"),
    [
        (
            {"batch": {"price": 0.5}},
            {},
            "It stands in the model's entry: `price: {input: …, output: …,",
        ),
        ({}, {"batch": {"rounds": 1}}, "`batch` stands at the top of the sweep, for all models."),
        ({}, {"price": {"input": 1, "output": 2, "batch": {"input": 1}}}, "price.batch: 'output' is missing"),
    ],
)
def test_a_key_of_batches_in_the_wrong_place_is_told_where_it_belongs(keys, of_model, told):
    model = {"model": "simulated/oracle", **of_model}
    with pytest.raises(ConfigError) as refused:
        sweep_from({"name": "s", "problems": ["p.parquet"], "models": [model], **keys})
    assert told in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    assert "constrained" not in str(refused.value)
