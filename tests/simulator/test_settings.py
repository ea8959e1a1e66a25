"""Settings are checked once, where they are made, and travel to the process as JSON."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from asyncbench.cli import app
from asyncbench.errors import ConfigError
from asyncbench.simulator.batches.settings import BatchSettings
from asyncbench.simulator.settings import Settings, parse_fault, parse_settings, settings_json

FULL = Settings(
    port=8080,
    seed=-7,
    problems=(Path("data/a b.parquet"), Path("ü.parquet")),
    replay=(Path("results/night"),),
    keys=("k1", "k2"),
    rpm=600,
    tpm=1e6,
    input_tpm=0.5,
    output_tpm=80_000,
    limit_model="gcra",
    burst_s=0.1,
    tokens_counted="demanded",
    latency_s=0.25,
    latency_sigma=0.5,
    service="lognormal",
    slots=8,
    freeze_at_s=20.0,
    freeze_s=2.0,
    ttft_s=0.1,
    chunks=7,
    like="deepseek",
    faults=(parse_fault("429=0.05"), parse_fault("cut=0.01@noisy-2")),
    batch=BatchSettings(
        speedup=3600, latency_s=60, max_requests=5, faults=("expires=#1,3:0.5", "line_500=0.1")
    ),
    folder=Path("night/simulator"),
)


@pytest.mark.parametrize("settings", [Settings(), FULL], ids=["default", "full"])
def test_settings_survive_the_way_through_json(settings):
    assert parse_settings(settings_json(settings)) == settings


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "settings: Invalid JSON"),
        ('{"rmp": 600}', "rmp: "),
        ('{"host": "0.0.0.0"}', "host: "),  # it is reached from this machine alone
        ('{"rpm": "many"}', "rpm: "),
        ('{"faults": [{"kind": "404", "rate": 1}]}', "faults.0.kind: "),
        ('{"batch": {"speed": 2}}', "batch.speed: "),
        ('{"batch": {"speedup": 0}}', "batch.speedup is 0; it must be above 0"),
        ('{"batch": {"max_requests": 0}}', "batch.max_requests is 0; it must be above 0"),
        ('{"batch": {"latency_sigma": -1}}', "batch.latency_sigma is -1; it must be 0 or above"),
        ('{"rpm": 0}', "rpm is 0; it must be above 0"),
        ('{"like": "closedai"}', "like is 'closedai'; choose of openai, mistral"),
    ],
)
def test_a_slip_is_refused_by_its_key(text, complaint):
    with pytest.raises(ConfigError, match=complaint):
        parse_settings(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("port", 65_536),
        ("rpm", 0),
        ("tpm", -1),
        ("input_tpm", float("nan")),
        ("output_tpm", float("inf")),
        ("burst_s", 0),
        ("latency_s", -0.1),
        ("latency_sigma", float("nan")),
        ("ttft_s", -1),
        ("chunks", 0),
        ("slots", 0),
        ("freeze_at_s", -1),
        ("freeze_s", float("inf")),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        Settings(**{field: value})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--limit-model", "leaky"], "limit_model is 'leaky'; choose of token_bucket, gcra, fixed_window"),
        (
            ["--limit-model", "quanta", "--burst", "2"],
            "burst_s is 2, but limit_model 'quanta' knows none; leave",
        ),
        (["--tokens-counted", "all"], "tokens_counted is 'all'; choose of used, demanded"),
        (["--input-tpm", "0"], "input_tpm is 0"),
        (["--service", "slow"], "service is 'slow'; choose of fixed, exponential, lognormal"),
        (["--slots", "0"], "slots is 0"),
        (["--freeze-at", "-1"], "freeze_at_s is -1"),
        (["--freeze", "-1"], "freeze_s is -1"),
        (["--output-tpm", "-1"], "output_tpm is -1"),
        (["--batch", "3600"], "batch must be a mapping, such as"),
        (["--batch", "{"], "batch is '{', which is no JSON"),
        (["--batch", '{"speed": 2}'], "batch.speed: .*keys: speedup, latency_s"),
        (["--batch", '{"faults": ["rain=1"]}'], "no kind 'rain'; kinds: failed, slow_start"),
    ],
)
def test_the_command_s_options_are_held_to_the_same_rules(options, complaint):
    done = CliRunner().invoke(app, ["simulate", "--problems", "additions.parquet", *options])

    assert isinstance(done.exception, ConfigError)
    assert re.search(complaint, str(done.exception))
