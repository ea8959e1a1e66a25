"""Sweep files: what is understood, and how each slip is named."""

import asyncio
import gzip
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

from asyncbench import run_sweep
from asyncbench.config.run_entries import seconds_left
from asyncbench.config.sweep import as_mapping, load_sweep, sweep_from
from asyncbench.errors import ConfigError
from asyncbench.files import input_path
from asyncbench.planning import preflight
from asyncbench.planning.sweep_plan import plan
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.records import Limits, Price, RetryPolicy, Timeouts
from asyncbench.suites.requests import padding, sent_parameters, way_of_asking
from tests.rows import each_row

ROOT = Path(__file__).resolve().parents[2]
SMALL = {"name": "s", "problems": ["p.parquet"], "models": ["simulated/oracle"]}


def small(**changes):
    return SMALL | changes


def with_model(**keys):
    return small(models=[{"model": "simulated/oracle"} | keys])


def complaint_about(raw):
    with pytest.raises(ConfigError) as caught:
        sweep_from(raw, place="s.yaml")
    return str(caught.value)


def test_a_model_may_be_a_name_alone():
    (model,) = sweep_from(small(models=["openai/gpt-5-mini"])).models
    assert (model.alias, model.provider, model.model_id) == ("openai/gpt-5-mini", "openai", "gpt-5-mini")
    assert (model.api, model.key_env, model.base_url) == ("chat", "OPENAI_API_KEY", None)
    assert (model.limits, model.retry.attempts) == (Limits(counts="demanded"), 10)
    assert (model.timeouts.connect, model.timeouts.total) == (30, 600)


def test_a_model_id_may_hold_slashes():
    entry = {"model": "http/Qwen/Qwen3-32B", "base_url": "http://localhost:8000/v1"}
    assert sweep_from(small(models=[entry])).models[0].model_id == "Qwen/Qwen3-32B"


def test_every_key_of_a_model_arrives():
    entry = {
        "model": "openai/gpt-5.4-mini",
        "alias": "mini",
        "base_url": "https://example.test/v1",
        "key_env": "OTHER_KEY",
        "api": "responses",
        "temperature": 0,
        "top_p": 0.5,
        "max_tokens": 100,
        "effort": "none",
        "stream": True,
        "system": "be brief",
        "params": {"verbosity": "low"},
        "price": {"input": 1, "output": 2.5, "cached_input": 0.1, "cache_write": 1.25},
        "rpm": 60,
        "tpm": 1000.5,
        "concurrency": 7,
        "retry": {"attempts": 3, "total_s": 60},
        "timeouts": {"connect": 5, "total": 50, "first_byte": 20, "between_chunks": 10.5},
        "max_reply_mb": 2.5,
        "door": "sdk",
    }
    (model,) = sweep_from(small(models=[entry])).models
    assert (model.alias, model.base_url, model.key_env) == ("mini", "https://example.test/v1", "OTHER_KEY")
    assert (model.temperature, model.top_p, model.max_tokens) == (0, 0.5, 100)
    assert (model.api, model.effort, model.stream) == ("responses", "none", True)
    assert (model.system, model.params) == ("be brief", {"verbosity": "low"})
    assert model.price == Price(input=1, output=2.5, cached_input=0.1, cache_write=1.25)
    assert model.limits == Limits(rpm=60, tpm=1000.5, concurrency=7, counts="demanded")
    assert model.retry == RetryPolicy(attempts=3, total_s=60)
    assert model.timeouts == Timeouts(connect=5, total=50, first_byte=20, between_chunks=10.5)
    assert (model.max_reply_mb, model.door) == (2.5, "sdk")


THINKER = {"model": "anthropic/claude-sonnet-4-6", "thinking_tokens": 16_000, "max_tokens": 20_000}


@pytest.mark.parametrize(
    ("entry", "sent"),
    [
        pytest.param({"model": "simulated/oracle", "seed": 3}, {"seed": 3}, id="seed"),
        pytest.param({"model": "simulated/oracle", "stream": True}, {}, id="streamed"),
        pytest.param(
            {"model": "simulated/oracle", "stream": False, "timeouts": {"first_byte": 5}}, {}, id="whole"
        ),
        pytest.param({"model": "openai/gpt-5-mini", "effort": "low"}, {"effort": "low"}, id="effort"),
        pytest.param(THINKER, {"thinking_tokens": 16_000, "max_tokens": 20_000}, id="budget"),
        pytest.param(
            {"model": "anthropic/claude-opus-5", "thinking": "adaptive", "effort": "high", "max_tokens": 99},
            {"thinking": "adaptive", "effort": "high", "max_tokens": 99},
            id="adaptive",
        ),
    ],
)
def test_what_is_said_of_thinking_and_streaming_is_sent_as_it_is_and_reads_back(entry, sent):
    sweep = sweep_from(small(models=[entry]))

    assert sent_parameters(sweep.models[0]) == sent
    assert sweep_from(as_mapping(sweep)) == sweep


@pytest.mark.parametrize(
    ("model", "streams"),
    [
        pytest.param({}, False, id="short and quick"),
        pytest.param({"effort": "low"}, True, id="effort"),
        pytest.param({"effort": "none"}, False, id="no effort"),
        pytest.param({"max_tokens": 8192}, False, id="not long yet"),
        pytest.param({"max_tokens": 8193}, True, id="long"),
        pytest.param({"model": "anthropic/claude-opus-5"}, True, id="long by itself"),
        pytest.param({**THINKER}, True, id="budget"),
        pytest.param(
            {"model": "anthropic/claude-opus-5", "thinking": "adaptive", "max_tokens": 99},
            True,
            id="adaptive",
        ),
    ],
)
def test_answers_that_take_long_are_streamed_unless_told_otherwise(model, streams):
    def streamed(**changes):
        return sweep_from(small(models=[{"model": "simulated/oracle"} | model], **changes)).models[0].stream

    assert streamed() == streamed(stream="auto") == streams
    assert (streamed(stream=True), streamed(stream=False)) == (True, False)


@pytest.mark.parametrize(
    ("sweep", "model", "streams"),
    [(True, False, False), (False, True, True), (True, "auto", False), (False, "auto", False)],
)
def test_what_a_model_says_of_streaming_wins(sweep, model, streams):
    assert sweep_from(with_model(stream=model) | {"stream": sweep}).models[0].stream == streams


@pytest.mark.parametrize("api", ["chat", "completions", "responses"])
@pytest.mark.parametrize("provider", ["simulated", "simulated-http"])
def test_a_wire_format_may_be_chosen(provider, api):
    (model,) = sweep_from(small(models=[{"model": f"{provider}/oracle", "api": api}])).models
    assert model.api == api


def test_an_endpoints_own_limit_holds_where_the_sweep_says_none():
    models = ["deepseek/deepseek-chat", {"model": "ollama/qwen3", "concurrency": 2}, "openai/gpt-5-mini"]
    limits = [model.limits.concurrency for model in sweep_from(small(models=models)).models]
    assert limits == [known_endpoints()["deepseek"].concurrency, 2, None]


def test_a_providers_limit_holds_for_each_of_its_models_and_a_models_own_wins():
    sweep = sweep_from(
        small(
            limits={"simulated": {"rpm": 100, "concurrency": 9}},
            models=["simulated/oracle", {"model": "simulated/noisy", "rpm": 7}],
        )
    )
    assert [model.limits for model in sweep.models] == [
        Limits(rpm=100, concurrency=9),
        Limits(rpm=7, concurrency=9),
    ]


@pytest.mark.parametrize(
    ("model", "counts"),
    [("openai/gpt-5-mini", "demanded"), ("anthropic/claude-haiku-4-5", "uncached"), ("vllm/qwen3", "used")],
)
def test_what_a_provider_counts_is_known_and_may_be_said(model, counts):
    address = {"base_url": "http://localhost:8000/v1"}
    said = [{"model": model}, {"model": model, "alias": "b", "counts": "used", "max_tokens": 5}]
    said = [one | address for one in said]
    models = sweep_from(small(models=said)).models
    assert [one.limits.counts for one in models] == [counts, "used"]


def test_models_of_a_group_have_the_same_limits():
    limits = {"simulated": {"rpm": 100, "group": "shared", "fraction": 0.5}}
    sweep = sweep_from(small(limits=limits, models=["simulated/oracle", "simulated/noisy"]))
    assert {model.limits for model in sweep.models} == {Limits(rpm=100, group="shared", fraction=0.5)}
    assert sweep_from(as_mapping(sweep)) == sweep


SERVER = "http://127.0.0.1:8000/v1"


def test_shared_limits_are_one_for_all_models_of_an_account_or_an_address():
    limits = {"openai": {"rpm": 5000, "shared": True}, "http": {"rpm": 9, "group": "g"}}
    limits |= {SERVER: {"concurrency": 4, "shared": True}}
    models = ["openai/a", {"model": "openai/b", "key_env": "OPENAI_API_KEY"}]
    models += [{"model": "openai/c", "key_env": "OTHER_KEY"}, {"model": "openai/d", "group": "own"}]
    models += [{"model": "http/x", "base_url": SERVER}, {"model": "http/y", "base_url": f"{SERVER}/"}]
    sweep = sweep_from(small(limits=limits, models=models))
    groups = [model.limits.group for model in sweep.models]
    assert groups == ["openai", "openai", "openai OTHER_KEY", "own", SERVER, SERVER]
    assert {(model.limits.rpm, model.limits.concurrency) for model in sweep.models[4:]} == {(9, 4)}
    assert sweep_from(as_mapping(sweep)).models == sweep.models


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({SERVER: {"rpm": 5}}, f"limits.{SERVER}: no model has this `base_url`. Those of this sweep: none"),
        ({SERVER: {"budget_usd": 5}}, "`budget_usd` is for a provider"),
        ({"simulated": {"shared": "yes"}}, "limits.simulated: 'shared' must be true or false, not 'yes'"),
        ({"simulated": {"shared": True, "group": "g"}}, "`shared` and `group` are both set"),
        ({"groq": {"shared": True}}, "`shared` of groq covers no model of this sweep"),
    ],
)
def test_limits_of_an_address_are_for_models_that_are_asked_there(limits, said):
    assert said in complaint_about(small(limits=limits))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"rpm": 7}, "limit of `limits.simulated` (`shared`), but set different ones (rpm 100; rpm 7)"),
        ({"alias": "simulated"}, "models[2]: alias 'simulated' also names a limit that models share"),
    ],
)
def test_a_shared_limit_is_set_once_and_its_name_is_nobodys_alias(model, said):
    models = ["simulated/oracle", {"model": "simulated/noisy"} | model]
    assert said in complaint_about(small(limits={"simulated": {"rpm": 100, "shared": True}}, models=models))


@pytest.mark.parametrize(
    ("models", "said"),
    [
        pytest.param(
            [
                {"model": "simulated/oracle", "group": "g", "rpm": 60},
                {"model": "simulated/noisy", "group": "g", "rpm": 70},
            ],
            ["models[1] and models[2]", "'g'", "rpm 60", "rpm 70", "Set the same"],
            id="of different limits",
        ),
        pytest.param(
            [{"model": "simulated/oracle", "group": "b"}, {"model": "simulated/noisy", "alias": "b"}],
            ["models[2]", "'b' also names a limit that models share"],
            id="called like a model",
        ),
        pytest.param(
            [{"model": "simulated/oracle", "group": "7"}], ["models[1].group", "'7'", "letter"], id="a number"
        ),
    ],
)
def test_a_group_that_cannot_be_is_refused(models, said):
    message = complaint_about(small(models=models))
    assert all(word in message for word in said), message


@pytest.mark.parametrize("fraction", [0, 1.1, -1])
def test_a_fraction_is_a_part_of_the_whole(fraction):
    assert "'fraction'" in complaint_about(with_model(fraction=fraction))


NOON = datetime(2026, 11, 21, 12, 0).astimezone()  # of this machine, whose time deadlines are in


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("8h", 28_800),
        ("1h30m", 5_400),
        ("1.5h", 5_400),
        ("90s", 90),
        ("12:30", 1_800),
        ("07:30", 19.5 * 3600),  # tomorrow
        ("12:00", 86_400),  # now has passed
        ("2026-11-21 13:00", 3_600),
        ((NOON.astimezone(UTC) + timedelta(hours=1)).isoformat(), 3_600),
    ],
)
def test_a_deadline_is_a_while_a_time_of_day_or_a_moment(written, seconds):
    sweep = sweep_from(small(deadline=written))
    assert sweep.deadline == written
    assert seconds_left(written, NOON) == seconds
    assert sweep_from(as_mapping(sweep)) == sweep


@pytest.mark.parametrize(
    ("now", "written", "hours"),
    [
        ("2027-03-27 22:00", "07:30", 8.5),  # the clocks go forward: an hour less
        ("2027-03-27 22:00", "2027-03-28 07:30", 8.5),
        ("2026-10-24 22:00", "07:30", 10.5),
        ("2026-10-25 00:30+00:00", "02:45", 0.25),  # 02:30, for the first time
        ("2026-10-25 01:30+00:00", "02:45", 0.25),  # for the second time
    ],
)
def test_a_deadline_is_kept_by_the_clock_on_the_wall(monkeypatch, now, written, hours):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert seconds_left(written, datetime.fromisoformat(now).astimezone()) == hours * 3_600
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_moment_that_yaml_reads_by_itself_is_a_deadline():
    sweep = sweep_from(small(deadline=datetime(2026, 11, 21, 13)))  # noqa: DTZ001  as YAML gives it
    assert seconds_left(str(sweep.deadline), NOON) == 3_600


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (450, "put it in quotes"),
        ("soon", "'soon' is not a time"),
        ("25:00", "is not a time"),
        ("0h", "is not a time"),
    ],
)
def test_a_deadline_that_cannot_be_read_is_refused(written, said):
    message = complaint_about(small(deadline=written))
    assert "'deadline'" in message
    assert said in message


def test_a_deadline_that_has_passed_is_refused():
    with pytest.raises(ConfigError, match="has passed"):
        seconds_left("2026-11-21 11:59", NOON)


def test_a_model_may_have_problems_of_its_own():
    sweep = sweep_from(
        small(models=["simulated/oracle", {"model": "simulated/noisy", "problems": ["q.parquet"]}])
    )
    assert [str(sweep.problems_of(model)[0].path) for model in sweep.models] == ["p.parquet", "q.parquet"]


def test_results_go_to_a_folder_of_the_sweeps_name_unless_told_otherwise():
    assert sweep_from(SMALL).out == Path("results/s")
    assert sweep_from(small(out="elsewhere")).out == Path("elsewhere")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(
            small(limits={"simulated": {"rmp": 1}}),
            ["limits.simulated: ", "'rmp'", "mean 'rpm'?"],
            id="limits",
        ),
        pytest.param(small(limits={"opnai": {}}), ["limits", "'opnai'", "mean 'openai'?"], id="provider"),
        pytest.param(
            with_model(retry={"tries": 1}),
            ["models[1].retry: ", "'tries'", "Known keys: attempts, total_s, unreachable_s."],
            id="retry",
        ),
        pytest.param(
            with_model(timeouts={"connnect": 1}),
            ["models[1].timeouts: ", "'connnect'", "mean 'connect'?"],
            id="timeouts",
        ),
        pytest.param(
            small(problems=[{"path": "x", "colums": {}}]),
            ["problems[1]: ", "'colums'", "mean 'columns'?"],
            id="problems",
        ),
        pytest.param(
            small(problems=[{"suite": "llm_arithmetic", "depth": 2}]),
            ["problems[1]", "'depth'", "depths"],
            id="suite-parameter",
        ),
    ],
)
def test_an_unknown_key_is_named_with_its_place_and_the_known_ones(raw, said):
    message = complaint_about(raw)
    for part in said:
        assert part in message


@each_row(
    ("raw", "said"),
    [
        pytest.param([], "must be a mapping of keys to values, not a list", id="not-a-mapping"),
        pytest.param({"problems": ["p"], "models": ["simulated/oracle"]}, "'name'", id="no-name"),
        pytest.param(small(models=[]), "'models'", id="no-models"),
        pytest.param(small(problems=[]), "no problems", id="no-problems"),
        pytest.param(small(models=["gpt-5"]), "names no provider. Write one before it", id="no-provider"),
        pytest.param(small(models=["acme/gpt"]), "unknown provider 'acme'", id="unknown-provider"),
        pytest.param(small(models=["http/qwen"]), "needs a `base_url`", id="no-base-url"),
        pytest.param(small(models=["azure/gpt"]), "https://RESOURCE", id="no-base-url-of-ones-own"),
        pytest.param(with_model(api="messages"), "speaks api 'chat' and", id="wrong-api"),
        pytest.param(with_model(api="grpc"), "'api'", id="no-such-api"),
        pytest.param(with_model(stream="sometimes"), "'stream'", id="stream-sometimes"),
        pytest.param(small(stream="yes"), "'stream'", id="sweep-streams-yes"),
        pytest.param(with_model(effort=""), "'effort'", id="empty-effort"),
        pytest.param(with_model(effort=3), "'effort'", id="effort-is-a-number"),
        pytest.param(with_model(thinking="a lot"), "'thinking'", id="thinking-a-lot"),
        pytest.param(with_model(thinking_tokens=0), "'thinking_tokens'", id="nothing-to-think-with"),
        pytest.param(
            small(models=[THINKER | {"thinking": "adaptive"}]),
            "exclude each other. Remove one",
            id="two-ways-of-thinking",
        ),
        pytest.param(with_model(timeouts={"first_byte": 0}), "'first_byte'", id="no-time-for-a-byte"),
        pytest.param(with_model(concurrency=0), "'concurrency'", id="zero-concurrency"),
        pytest.param(with_model(rpm=0), "'rpm'", id="zero-rpm"),
        pytest.param(with_model(rpm="many"), "'rpm' must be a number, not 'many'", id="rpm-is-text"),
        pytest.param(with_model(temperature=-1), "'temperature'", id="negative-temperature"),
        pytest.param(with_model(temperature="inf"), "'temperature' must be a finite number", id="infinite"),
        pytest.param(with_model(top_p=2), "'top_p'", id="top-p-above-one"),
        pytest.param(with_model(max_tokens=1.5), "'max_tokens'", id="half-a-token"),
        pytest.param(with_model(base_url="localhost:8000"), "'base_url'", id="base-url-without-scheme"),
        pytest.param(with_model(base_url="http://me:secret@host"), "'base_url'", id="base-url-with-password"),
        pytest.param(with_model(key_env="sk-1234"), "'key_env'", id="a-key-instead-of-its-name"),
        pytest.param(with_model(problems=[]), "'problems'", id="own-problems-empty"),
        pytest.param(small(repeats=0), "'repeats'", id="zero-repeats"),
        pytest.param(small(problems="p.parquet"), "'problems'", id="problems-not-a-list"),
        pytest.param(small(problems=[{"suite": "custom"}]), "cannot be generated", id="custom-no-file"),
        pytest.param(small(problems=[{"suite": "nope"}]), "'nope'", id="unknown-suite"),
        pytest.param(
            small(problems=[{"path": "x", "grader": "exact"}]),
            "need `suite: custom`",
            id="not-custom",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(raw, said):
    assert said in complaint_about(raw)


@pytest.mark.parametrize("beside", [{"rpm": 5}, {"stream": True}, {"timeouts": {"first_byte": 5}}])
def test_entries_that_would_ask_the_same_are_refused_whatever_they_are_called(beside):
    same = small(models=["simulated/oracle", {"model": "simulated/oracle", "alias": "again", **beside}])
    assert "'simulated/oracle' and 'again' ask the same model the same way" in complaint_about(same)


ODD_ALIASES = [
    *("4711", "2026-01-01", "a\nb", "ü" * 50),
    *("__HIVE_DEFAULT_PARTITION__", "1e5", "-1.5E-3", "0x1F", "0b101", "inf", "-infinity", "NaN", "epoch"),
    *("true", "false", "2026-01-01T00:00:00", "2026-01-01 00:00:00Z", "20260101T000000"),
]
FINE_ALIASES = [
    *("gpt-5", "o3", "e5", "4o-mini", "7b", "1e5-instruct", "2026-01-01-gpt", "info", "nano", "true-ish"),
    *("null", "None", "NA", "0x", "1_000k", "12h", "a b", "a%20b", "_x", "b=c", "openai/gpt-5"),
]


@pytest.mark.parametrize("alias", ODD_ALIASES)
def test_an_alias_that_cannot_name_a_folder_is_refused(alias):
    assert "names a folder" in complaint_about(with_model(alias=alias))


@pytest.mark.long
@pytest.mark.parametrize("alias", FINE_ALIASES)
def test_every_reader_finds_an_alias_as_it_was_given(alias, tmp_path):
    import pandas
    import polars

    assert sweep_from(with_model(alias=alias)).models[0].alias == alias
    part = tmp_path / "trials" / f"model={quote(alias, safe='')}" / "part.parquet"
    part.parent.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), part)
    files, top = str(tmp_path / "trials" / "**" / "*.parquet"), tmp_path / "trials"
    assert duckdb.read_parquet(files, hive_partitioning=True).fetchall() == [(1, alias)]
    assert polars.read_parquet(files, hive_partitioning=True)["model"].to_list() == [alias]
    assert dataset(top, partitioning="hive").to_table()["model"].to_pylist() == [alias]
    assert pandas.read_parquet(top)["model"].tolist() == [alias]


def with_conditions(*conditions, **changes):
    return small(conditions=list(conditions), **changes)


def test_every_key_of_a_condition_arrives(tmp_path):
    shots = tmp_path / "shots.jsonl"
    shots.write_text('{"question": "1+1?", "answer": "2"}')
    entry = {
        "name": "all",
        "system": "be brief",
        "context": "1k",
        "shots": str(shots),
        "style": "chat",
        "params": {"verbosity": "low"},
        "suites": ["custom"],
    }
    (condition,) = sweep_from(with_conditions(entry)).conditions
    assert (condition.name, condition.style, condition.system) == ("all", "chat", "be brief")
    assert (condition.params, condition.suites) == ({"verbosity": "low"}, {"custom"})
    assert condition.turns[:-2] == padding("1k", place="")
    assert [turn.content for turn in condition.turns[-2:]] == ["1+1?", "2"]
    told = {name: entry[name] for name in ("system", "context", "shots", "params")}
    assert condition.described == told | {"turns_digest": condition.described["turns_digest"]}


def test_another_text_under_the_same_path_is_told_apart(tmp_path):
    shots = tmp_path / "shots.jsonl"
    raw = with_conditions({"name": "few", "shots": str(shots)})
    digests = set()
    for answer in "24":
        shots.write_text(f'{{"question": "1+1?", "answer": "{answer}"}}')
        digests.add(sweep_from(raw).conditions[0].described["turns_digest"])
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        pytest.param([], "'conditions'", id="none"),
        pytest.param([{"name": "a"}, {"name": "a", "system": "s"}], "are both called 'a'", id="namesakes"),
        pytest.param([{"name": "a"}, {"name": "b"}], "'simulated/oracle' under 'a' and", id="same"),
        pytest.param(
            [{"name": "a", "suites": ["custom"]}, {"name": "b"}], "ask the same model", id="same-partly"
        ),
        pytest.param([{"name": "a", "context": "3k"}], "conditions[1].context: 3k was", id="no-such-padding"),
        pytest.param([{"name": "a", "context": 4}], "'context'", id="padding-is-a-number"),
        pytest.param([{"name": "a", "shots": 0}], "'shots", id="no-shots"),
        pytest.param([{"name": "a", "shots": "gone.jsonl"}], "conditions[1].shots", id="no-such-file"),
        pytest.param([{"name": "a", "style": "chatty"}], "'style'", id="no-such-style"),
        pytest.param([{"name": "a", "suites": ["nupta"]}], "no suite 'nupta'", id="no-such-suite"),
        pytest.param([{"name": "a", "suites": []}], "'suites'", id="for-nothing"),
        pytest.param([{"name": "a", "params": {"model": "x"}}], "'model' cannot stand in params", id="taken"),
        pytest.param([{"name": "a", "params": {"x": 10**30}}], "cannot be sent as JSON", id="not-json"),
        pytest.param([{"name": "a", "params": {"x": float("nan")}}], "cannot be sent as JSON", id="nan"),
    ],
)
def test_a_condition_that_cannot_be_meant_is_refused(conditions, said):
    assert said in complaint_about(with_conditions(*conditions))


@pytest.mark.parametrize("beside", [{}, {"system": "Be terse."}])
def test_a_template_that_changes_nothing_makes_no_second_condition(beside):
    plain, idle = ({"name": name} | beside for name in ("plain", "idle"))
    raw = {"name": "s", "problems": ["p.parquet"], "models": ["simulated/oracle"]}
    with pytest.raises(ConfigError, match="ask the same model the same way"):
        sweep_from(raw | {"conditions": [plain, idle | {"template": "{question}"}]})
    fields = {"system": "A {task}."}
    two = sweep_from(raw | {"conditions": [plain | fields, idle | fields | {"template": "{question}"}]})
    assert len(two.conditions) == 2  # only one of them fills in the task


def test_the_same_way_of_asking_may_hold_for_other_suites_under_another_name():
    two = [{"name": "a", "suites": ["custom"]}, {"name": "b", "suites": ["llm_arithmetic"]}]
    assert len(sweep_from(with_conditions(*two)).conditions) == 2


def test_a_condition_that_makes_two_models_one_is_refused():
    models = ["simulated/oracle", {"model": "simulated/oracle", "alias": "cold", "temperature": 0}]
    message = complaint_about(with_conditions({"name": "a", "params": {"temperature": 0}}, models=models))
    assert "'simulated/oracle' and 'cold' ask the same model the same way" in message


@pytest.mark.parametrize(
    "entry",
    [
        {"model": "openai/gpt-5-mini", "replay": "results/x"},
        {"model": "simulated/oracle", "replay": "results/x", "base_url": "http://localhost:1/v1"},
    ],
    ids=["not-simulated", "another-server"],
)
def test_only_our_own_simulator_repeats_results(entry):
    assert "`replay` needs a simulated provider" in complaint_about(small(models=[entry]))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"model": "anthropic/claude-haiku-4-5", "seed": 1}, "accepts no seed"),
        ({"model": "openai/gpt-4.1", "seed": 1, "api": "responses"}, "'responses' has no seed"),
        ({"model": "openai/o3", "temperature": 0}, "accepts no temperature"),
        ({"model": "simulated/oracle", "thinking_tokens": 2048}, "does not accept `thinking_tokens`"),
        (THINKER | {"max_tokens": 16_000}, "Raise `max_tokens`"),
    ],
    ids=["model", "wire format", "OpenAI's model", "endpoint", "budget"],
)
def test_what_would_be_refused_is_refused_before_it_is_sent(entry, said):
    message = complaint_about(small(models=[entry]))
    assert "s.yaml, models[1]" in message
    assert said in message


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_every_ready_made_sweep_is_valid_with_its_problems_there_and_reads_back_as_itself(path):
    sweep = load_sweep(path)
    sources = [source for model in sweep.models for source in sweep.problems_of(model)]
    assert sources
    assert all(source.path is None or input_path(source.path, path).is_file() for source in sources)
    assert as_mapping(sweep_from(as_mapping(sweep))) == as_mapping(sweep)


def test_resolved_conditions_read_back_as_themselves():
    raw = with_conditions(
        {"name": "plain"},
        {"name": "talk", "context": "2k", "system": "s", "params": {"a": 1}, "suites": ["llm_arithmetic"]},
        {
            "name": "cot",
            "template": "{question}\nThink.",
            "system": "{task}",
            "context": "1k",
            "digits": "spaced",
        },
        {"name": "both", "digits": ["reversed", "zero_padded"]},
        models=[{"model": "simulated/x", "replay": "results/x"}],
    )
    sweep = sweep_from(raw)
    assert sweep_from(as_mapping(sweep)) == sweep


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: No such file"):
        load_sweep(tmp_path / "nowhere.yaml")


NINE = ",".join(["*a{0}"] * 9)
BOMB = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{NINE.format(i - 1)}]\n" for i in range(1, 9))
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 200))


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("params: " + "[" * 5000, "nested deeper than 100 levels", id="brackets"),
        pytest.param("- " * 5000, "nested deeper than 100 levels", id="dashes"),
        pytest.param(CHAIN, "nested deeper than 100 levels", id="deep through aliases"),
        pytest.param(BOMB, "with its aliases written out", id="alias bomb"),
        pytest.param(
            f"a: &a {'x' * 9999}\nb: [{'*a, ' * 999}]", "with its aliases written out", id="long text"
        ),
        pytest.param("params: &a [*a]", "*a stands within itself", id="itself"),
        pytest.param("seed: 1" + ":1" * 9999, "more than 100 characters", id="base 60"),
        pytest.param("seed: 0x" + "f" * 9999, "more than 100 characters", id="hexadecimal"),
        pytest.param("deadline: 2026-13-01", "month must be in 1..12", id="no date"),
        pytest.param("seed: !!bool x", "cannot be read as YAML", id="no flag"),
        pytest.param(
            "budget_usd: 5\nname: s\nbudget_usd: 50",
            "line 3, column 1: cannot be read as YAML: the key 'budget_usd' is set twice",
            id="a key twice",
        ),
        pytest.param("#" * 4_000_001, "more than 4,000,000 bytes", id="too long"),
        pytest.param(b"\x80\x81", "not UTF-8", id="no text"),
        pytest.param(gzip.compress(b"name: s"), "packed (gzip). Unpack it", id="packed"),
        pytest.param("name: [", "line 1, column 8: cannot be read as YAML", id="no yaml"),
    ],
)
def test_a_file_without_bounds_or_sense_is_refused_and_named(tmp_path, text, said):
    path = tmp_path / "odd.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=r"odd\.yaml") as caught:
        load_sweep(path)
    assert said in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_sweep_file_and_its_shots_may_be_text_of_windows(tmp_path, encoding):
    (tmp_path / "q.csv").write_text("question,answer\n1 + 1?,2\n")
    (tmp_path / "shots.jsonl").write_bytes('{"question": "0 + 1?", "answer": "1"}\n'.encode(encoding))
    (tmp_path / "s.yaml").write_bytes(
        "name: s\nproblems: [{path: q.csv, suite: custom, grader: number}]\nmodels: [simulated/oracle]\n"
        "conditions: [{name: shown, shots: shots.jsonl}]\n".encode(encoding)
    )
    (condition,) = load_sweep(tmp_path / "s.yaml").conditions
    assert [turn.content for turn in condition.turns] == ["0 + 1?", "1"]


def test_an_alias_stands_for_what_it_names(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nproblems: [p.parquet]\nmodels:\n"
        "  - &one {model: simulated/oracle, params: {a: &list {x: [1, [2]]}, b: *list}}\n"
        "  - {<<: *one, alias: other, params: {a: *list}}\n"
    )
    one, other = load_sweep(path).models
    assert (one.params, other.params) == (
        {"a": {"x": [1, [2]]}, "b": {"x": [1, [2]]}},
        {"a": {"x": [1, [2]]}},
    )


def without_end():
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    "keys",
    [{"seed": 10**25}, {"params": {"a": {1: 2}}}, {"params": {"x": without_end()}}],
    ids=["seed", "params", "nests without end"],
)
def test_a_parameter_that_json_cannot_hold_is_refused(keys):
    assert "cannot be sent as JSON" in complaint_about(with_model(**keys))


@pytest.mark.parametrize(
    "keys",
    [
        {"key_env": "sk-SECRET"},
        {"key_env": "gsk_sEcReT_SECRET"},
        {"base_url": "https://u:SECRET@h/v1"},
        {"base_url": "https://h/v1?key=SECRET"},
    ],
    ids=["key", "key-like-a-name", "password", "query"],
)
def test_a_key_in_the_wrong_place_is_refused_and_not_repeated(keys):
    assert "SECRET" not in complaint_about(with_model(**keys))


@pytest.mark.parametrize("name", ["model", "messages", "system", "instructions", "input", "prompt", "stream"])
def test_params_cannot_change_who_is_asked_or_how(name):
    assert f"{name!r} cannot stand in params" in complaint_about(with_model(params={name: True}))


@pytest.mark.parametrize(
    ("given", "params"),
    [
        ({"a": 1, "extra_body": {"b": {"c": 2}}}, {"a": 1, "b": {"c": 2}}),
        ({"a": {"x": 1}, "extra_body": {"a": {"y": 2}}}, {"a": {"x": 1, "y": 2}}),
        ({"extra_body": {"extra_body": {"top_k": 3}}}, {"top_k": 3}),
        ({"extra_body": {"extra_body": {"google": {"a": 1}}}}, {"extra_body": {"google": {"a": 1}}}),
        ({"extra_body": {"google": {"a": 1}}}, {"extra_body": {"google": {"a": 1}}}),
        ({"extra_body": None}, {}),
    ],
    ids=["merged", "into one", "twice", "Gemini's SDK", "Gemini's own", "nothing"],
)
@pytest.mark.parametrize("level", ["model", "condition"])
def test_what_the_sdks_call_extra_body_is_a_part_of_params(level, given, params):
    def sweep(said):
        return with_model(params=said) if level == "model" else with_conditions({"name": "c", "params": said})

    found, plain = sweep_from(sweep(given)), sweep_from(sweep(params))
    assert (found.models if level == "model" else found.conditions)[0].params == params
    assert way_of_asking(found.models[0], found.conditions[0]) == way_of_asking(
        plain.models[0], plain.conditions[0]
    )
    assert as_mapping(sweep_from(as_mapping(found))) == as_mapping(found)


@pytest.mark.parametrize(
    ("extra", "said"),
    [({"stream": True}, "'stream' cannot stand in params"), ([1], "is not a mapping, but a list")],
)
def test_an_extra_body_is_judged_like_params(extra, said):
    assert said in complaint_about(with_model(params={"extra_body": extra}))
    assert said in complaint_about(with_conditions({"name": "c", "params": {"extra_body": extra}}))


IGNORED = [
    *((name, 5, "set `repeats`") for name in ("n", "best_of", "num_return_sequences", "candidate_count")),
    *((name, 5, "does not keep") for name in ("logprobs", "top_logprobs", "prompt_logprobs")),
    ("include", ["message.output_text.logprobs"], "does not keep"),
    ("echo", True, "Remove it"),
    ("background", True, "does not fetch it later"),
    ("audio", {"voice": "alloy"}, "sound, which asyncbench does not keep"),
    ("extra_headers", {"x-a": "SECRET"}, "set `headers` or `query`"),
    ("extra_query", {"api-version": "SECRET"}, "is the NAME of a variable"),
    ("api_key", "SECRET", "`key_env`"),
    ("timeout", 30, "`timeouts: {total: …}`"),
    ("max_retries", 3, "`retry: {attempts: …}`"),
    ("stream_options", {"include_usage": False}, "no cost would be known"),
]


@pytest.mark.parametrize(("name", "value", "said"), IGNORED, ids=[name for name, *_ in IGNORED])
def test_a_parameter_that_would_be_paid_for_and_ignored_is_refused_before_any_call(name, value, said):
    for raw in (
        with_model(params={name: value}),
        with_model(params={"extra_body": {name: value}}),
        with_conditions({"name": "odd", "params": {name: value}}),
    ):
        with pytest.raises(ConfigError, match=f"`params: {name}`") as caught:
            plan(sweep_from(raw))
        with pytest.raises(ConfigError, match=f"`params: {name}`"):
            asyncio.run(run_sweep(sweep_from(raw)))
        assert said in str(caught.value)
        assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "params",
    [
        {"n": 1},
        {"logprobs": False},
        {"top_logprobs": None},
        {"stream_options": {"include_obfuscation": False}},
    ],
    ids=lambda params: next(iter(params)),
)
def test_a_parameter_that_asks_for_nothing_beside_is_fine(params):
    sweep = sweep_from(with_model(params=params))
    assert preflight.chosen_models(sweep, None) == sweep.models


def test_anthropics_required_max_tokens_is_the_models_maximum_and_is_said():
    (model,) = sweep_from(small(models=["anthropic/claude-haiku-4-5"])).models
    assert sent_parameters(model) == {"max_tokens": 64_000}
