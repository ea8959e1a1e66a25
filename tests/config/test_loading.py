"""The entry `load` of a sweep file: what it becomes, and what does not go together."""

import json
import math

import pytest

from asyncbench.config.entry import Place
from asyncbench.config.loading import Find, Slo
from asyncbench.config.sweep import as_mapping, replace_load, sweep_from
from asyncbench.errors import ConfigError
from asyncbench.run.lanes import cautions_of_load, models_under_load

MODEL = {"model": "openai/a", "max_tokens": 9}
TTFT = {"ttft": 0.5}


def sweep(load, model=None, **keys):
    problems = [{"suite": "integer_addition", "seed": 1}]
    return sweep_from(
        {"name": "x", "problems": problems, "models": [MODEL | (model or {})], "load": load, **keys}
    )


def complaint(load, **keys):
    with pytest.raises(ConfigError) as refused:
        sweep(load, **keys)
    return str(refused.value)


def test_durations_are_texts_or_seconds_and_what_is_left_out_has_its_default():
    load = sweep({"rates": [1, 2.5], "duration": "1m30s", "drain": 5, "rest": "0s"}).load
    assert (load.rates, load.duration, load.drain, load.rest) == ((1.0, 2.5), 90.0, 5.0, 0.0)
    assert (load.arrivals, load.warmup, load.order, load.slo, load.find) == (
        "poisson",
        15.0,
        "shuffled",
        None,
        None,
    )


@pytest.mark.parametrize(
    "load",
    [
        {"rates": [1, 2], "slo": TTFT},
        {"arrivals": "gamma", "burstiness": 0.5, "rates": [3], "seed": 7, "past_limits": True},
        {"arrivals": "closed", "rates": [4], "think": "2s", "order": "rising", "same_problems": False},
        {"find": {"lowest": 1, "highest": 200}, "slo": {"tpot": 0.05, "latency": 20, "share": 0.9}},
        {"arrivals": "trace", "rates": [0.5, 2], "gpus": 8},
    ],
)
def test_the_file_in_the_results_folder_says_the_same(load):
    asked = sweep(load)
    assert sweep_from(as_mapping(asked)).load == asked.load


def test_all_of_a_trace_counts_unless_the_load_says_otherwise():
    whole = sweep({"arrivals": "trace", "rates": [2]}).load
    assert (whole.warmup, whole.duration) == (0.0, math.inf)
    keys = {"arrivals": "trace", "rates": [2], "warmup": None, "duration": None}
    typed = replace_load(sweep({"rates": [1], "duration": "9s"}), keys, place=Place(source="command line"))
    assert typed.load == whole  # those of the file's own load are for its rates
    assert sweep({"arrivals": "trace", "rates": [2], "duration": "9s"}).load.duration == 9.0


def test_an_ordinary_sweep_says_nothing_of_load():
    assert "load" not in as_mapping(sweep(None))


def test_replies_are_streamed_unless_the_sweep_says_otherwise():
    assert [sweep({"rates": [1]}, **keys).models[0].stream for keys in ({}, {"stream": False})] == [
        True,
        False,
    ]
    assert not sweep({"rates": [1]}, {"stream": False}).models[0].stream


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ({}, "load: Neither `rates` nor `find` is set. Set one"),
        ({"rates": [1], "find": {"lowest": 1, "highest": 2}, "slo": TTFT}, "Both `rates` and `find` are set"),
        ({"rates": [1], "trace": {}}, "unknown key 'trace'"),
        (
            {"arrivals": "trace", "find": {"lowest": 1, "highest": 2}, "slo": TTFT},
            "find: a trace has times of its own. List speeds in `rates`",
        ),
        ({"rates": []}, "'rates' must not be empty"),
        (
            {"rates": [1, 0.02], "duration": "40s"},
            "at 0.02 calls a second no call is due in 40 s. Set a higher rate, or `duration: 50s` or more",
        ),
        ({"rates": [2, 1, 2]}, "load.rates: lists 2 twice. To measure a step again, set `repeats`"),
        ({"rates": [0]}, "more than 0"),
        ({"rates": [1], "duration": "0s"}, "'duration' must be more than 0"),
        ({"rates": [1], "drain": "5 x"}, "'drain' must be a duration, such as"),
        ({"rates": [1.5], "arrivals": "closed"}, "whole numbers of callers"),
        (
            {"rates": [9], "arrivals": "closed", "max_in_flight": 8},
            "9 callers are more than `max_in_flight`",
        ),
        (
            {"rates": [1, 1e9], "warmup": 0, "duration": "1s"},
            "load.rates: 1e+09 calls a second make a step of 1,000,000,000 calls, and the most is "
            "10,000,000. Set a lower rate, or a shorter `duration` or `warmup`",
        ),
        ({"rates": [99], "warmup": "30h"}, "load.rates: 99 calls a second make a step of 10,703,880 calls"),
        ({"find": {"lowest": 1, "highest": 1e6}, "slo": TTFT}, "load.find: 1e+06 calls a second make"),
        ({"rates": [1], "burstiness": 2}, "`arrivals: gamma` alone"),
        ({"rates": [1], "think": 1}, "`arrivals: closed` alone"),
        ({"rates": [1], "slo": {"share": 0.9}}, "it promises nothing"),
        ({"find": {"lowest": 1, "highest": 2}}, "Set one"),
        ({"find": {"lowest": 2, "highest": 2}, "slo": TTFT}, "must be above `lowest` (2)"),
        ({"find": {"lowest": 1, "highest": 2}, "slo": TTFT, "arrivals": "closed"}, "callers have no rate"),
    ],
)
def test_what_does_not_go_together_is_refused_with_a_way_out(load, said):
    assert said in complaint(load)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"model": {"concurrency": 3}}, "'openai/a' has a `concurrency`, which would delay calls"),
        ({"model": {"group": "g"}}, "shares its limit; a load is on each model by itself"),
        ({"mode": "batch"}, "is asked in batches"),
        ({"model": {"concurrency": 3}, "load": {"arrivals": "closed"}}, "`rates` says how many callers"),
        ({"model": {"stream": False}, "load": {"slo": TTFT}}, "`stream: false`, so no token is timed"),
        ({"model": {"rpm": 100}}, "has `rpm: 100`, which 2 calls a second pass"),
        ({"stop_when": {"ci_width": 0.1}}, "load: the sweep has `stop_when`, but each step has"),
    ],
)
def test_neither_do_these_of_models_and_the_sweep(keys, said):
    load, others = {"rates": [1, 2]} | keys.get("load", {}), {k: v for k, v in keys.items() if k != "load"}
    assert said in complaint(load, **others)
    place = Place(source="sweep") / "load"
    if "stream" not in keys.get("model", {}):  # which is on as soon as a load is typed
        with pytest.raises(ConfigError) as refused:
            replace_load(sweep(None, **others), load, place=place)
        assert said in str(refused.value)


def test_a_rate_above_the_limit_is_asked_where_somebody_wants_to_see_it():
    assert sweep({"rates": [2], "past_limits": True}, {"rpm": 60}).load.rates == (2.0,)


def test_keys_that_are_typed_win_and_a_step_is_listed_or_found():
    place = Place(source="command line")
    asked = sweep({"rates": [1, 2], "slo": TTFT, "duration": "5s"})
    typed = replace_load(asked, {"find": {"lowest": 1, "highest": 9}, "duration": "7s"}, place=place).load
    assert typed is not None
    assert (typed.rates, typed.find) == ((), Find(lowest=1, highest=9, tolerance=0.05))
    assert (typed.duration, typed.slo) == (7.0, Slo(ttft=0.5, ttfo=None, tpot=None, latency=None, share=0.95))
    fresh = replace_load(sweep(None), {"rates": [3]}, place=place)
    assert fresh.load is not None
    assert fresh.load.rates == (3.0,)
    assert [model.stream for model in fresh.models] == [True]
    with pytest.raises(ConfigError, match="`concurrency`"):
        replace_load(sweep(None, {"concurrency": 2}), {"rates": [3]}, place=place)


def test_keys_that_are_typed_make_a_load_whole_that_a_file_left_open(tmp_path):
    file, place = tmp_path / "sweep.yaml", Place(source="command line", flags={"share": "--slo share"})
    told = {"name": "x", "problems": [{"suite": "integer_addition"}], "models": [MODEL]}
    for load in ({"duration": "7s"}, {"duration": "7s", "rates": [1]}):
        file.write_text(json.dumps(told | {"load": load}))
        for given in (file, told | {"load": load}):
            keys = {"find": {"lowest": 1, "highest": 4}, "slo": TTFT}
            found = replace_load(given, keys, place=place).load
            assert found is not None
            assert (found.find, found.rates, found.duration) == (
                Find(lowest=1, highest=4, tolerance=0.05),
                (),
                7.0,
            )
    with pytest.raises(ConfigError, match=r"command line: '--slo share' must be less than 1, not 95$"):
        replace_load(tmp_path / "none.yaml", {"slo": {"ttft": 1, "share": 95.0}}, place=place)


def test_retries_that_a_model_sets_are_said_not_to_hold():
    loaded = sweep({"rates": [1]}, {"retry": {"attempts": 3}})
    assert loaded.load is not None
    models = models_under_load(loaded.models, loaded.load)
    assert [model.retry.attempts for model in models] == [1]
    assert [*cautions_of_load(loaded.load, models, loaded.models)][:1] == [
        "openai/a: `retry.attempts: 3` does not hold: a load makes each call once"
    ]


def test_the_usual_concurrency_of_a_provider_is_none_that_the_sweep_set():
    model = {"model": "vllm/a"}
    loaded = sweep({"rates": [1]}, model)
    assert [asked.limits.concurrency for asked in models_under_load(loaded.models, loaded.load)] == [None]
    assert sweep_from(as_mapping(loaded)).load == loaded.load
    assert "Remove it. For a fixed number" in complaint({"rates": [1]}, model=model | {"concurrency": 9})


def test_other_tools_names_of_times_are_understood_and_their_milliseconds_are_not_taken_for_seconds():
    load = sweep({"rates": [1], "slo": {"time_to_first_token": 0.5, "e2el": 20}}).load
    assert load is not None
    assert load.slo == Slo(ttft=0.5, ttfo=None, tpot=None, latency=20.0, share=0.95)
    said = complaint({"rates": [1], "slo": {"time_to_first_token": 450}})
    assert "load.slo: `ttft: 450` is in seconds. For milliseconds, set 0.45" in said
