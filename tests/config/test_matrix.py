"""Entries with lists: which plain entries they stand for, what these are called, and how faults are told."""

import json

import pytest
import yaml

from asyncbench.config.entry import Place
from asyncbench.config.matrix import LISTS_BY_NATURE, expanded
from asyncbench.config.sweep import as_mapping, load_sweep, sweep_from
from asyncbench.config.sweep_file import sweep_schema
from asyncbench.errors import ConfigError
from asyncbench.records import Condition
from asyncbench.store.manifest import claim_folder, write_sweep_file
from asyncbench.suites.requests import way_of_asking

SMALL = {"name": "s", "problems": ["p.parquet"]}
HERE = Place(source="s.yaml")


def models_of(*entries):
    return sweep_from(SMALL | {"models": list(entries)}).models


def complaint_about(*entries):
    with pytest.raises(ConfigError) as caught:
        sweep_from(SMALL | {"models": list(entries)}, place="s.yaml")
    return str(caught.value)


def nested(levels):
    deep: list[object] = []
    for _ in range(levels):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    ("keys", "aliases"),
    [
        pytest.param({"effort": ["low", "high"]}, ["effort=low", "effort=high"], id="one list"),
        pytest.param(
            {"effort": ["low", "high"], "temperature": [0, 0.5]},
            [f"effort={effort} temperature={t}" for effort in ("low", "high") for t in (0, 0.5)],
            id="the last varies fastest",
        ),
        pytest.param(
            {"temperature": [0, 0.5], "effort": ["low", "high"]},
            [f"temperature={t} effort={effort}" for t in (0, 0.5) for effort in ("low", "high")],
            id="in the order of the file",
        ),
        pytest.param(
            {"params": {"stop": ["a", "b"], "verbosity": ["low", "high"], "k": 3}},
            ["verbosity=low", "verbosity=high"],
            id="of params",
        ),
        pytest.param(
            {"params": {"reasoning": [{"effort": "low"}, {"max_tokens": 9}, None]}},
            ["reasoning.effort=low", "reasoning.max_tokens=9", "reasoning=null"],
            id="mappings",
        ),
        pytest.param({"params": {"odd": [[1, 2], [3]]}}, ["odd=1,2", "odd=3"], id="lists of lists"),
        pytest.param(
            {"thinking_tokens": [1024, 2048], "max_tokens": 4096, "model": "anthropic/claude-haiku-4-5"},
            ["thinking_tokens=1024", "thinking_tokens=2048"],
            id="whole numbers",
        ),
        pytest.param({"effort": [None, "low"]}, ["effort=null", "effort=low"], id="unset, too"),
    ],
)
def test_a_list_stands_for_an_entry_a_value(keys, aliases):
    entry = {"model": "simulated/oracle"} | keys
    assert [model.alias for model in models_of(entry)] == [f"{entry['model']} {alias}" for alias in aliases]
    named = models_of(entry | {"alias": "mini"})
    assert [model.alias for model in named] == [f"mini {alias}" for alias in aliases]
    assert len(
        {way_of_asking(model, sweep_from(SMALL | {"models": [entry]}).conditions[0]) for model in named}
    ) == (len(aliases))


def test_each_entry_asks_what_a_plain_one_would():
    matrix = models_of({"model": "simulated/oracle", "effort": ["low", "high"], "params": {"a": [1, [2]]}})
    plain = models_of(
        *(
            {"model": "simulated/oracle", "alias": model.alias, "effort": effort, "params": {"a": a}}
            for model, (effort, a) in zip(
                matrix, [("low", 1), ("low", [[2]]), ("high", 1), ("high", [[2]])], strict=True
            )
        )
    )
    assert matrix == plain


def test_models_in_a_list_keep_their_usual_aliases():
    entry = {"model": ["simulated/oracle", "simulated/noisy"], "effort": ["low", "high"]}
    assert [(model.alias, model.model_id, model.effort) for model in models_of(entry)] == [
        (f"simulated/{name} effort={effort}", name, effort)
        for name in ("oracle", "noisy")
        for effort in ("low", "high")
    ]


def test_a_list_of_one_value_changes_no_alias_and_wraps_a_list():
    (model,) = models_of({"model": "simulated/oracle", "effort": ["low"], "params": {"odd": [[1, 2]]}})
    assert (model.alias, model.effort, model.params) == ("simulated/oracle", "low", {"odd": [1, 2]})


def test_lists_by_nature_are_sent_as_they_are():
    params = {name: ["a", "b"] for name in LISTS_BY_NATURE - {"extra_body"}}
    (model,) = models_of({"model": "simulated/oracle", "params": params})
    assert model.params == params


def test_a_sweep_with_lists_is_written_and_read_back_as_plain_entries():
    sweep = sweep_from(
        SMALL
        | {"models": [{"model": "simulated/oracle", "effort": ["low", "high"], "params": {"odd": [[1, 2]]}}]}
    )
    assert sweep_from(json.loads(json.dumps(as_mapping(sweep)))) == sweep


def test_a_sweep_without_lists_stays_what_it_is():
    raw = SMALL | {"models": ["simulated/oracle", {"model": "openai/gpt-5", "params": {"stop": ["a"]}}]}
    assert expanded(raw, place=HERE)[0] == raw


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"effort": []}, "s.yaml, models[1].effort: 'effort' is an empty list"),
        ({"effort": ["low", "high", "low"]}, "models[1].effort: 'effort' lists low twice. Remove one"),
        ({"params": {"a": [1, 1]}}, "models[1].params.a: 'a' lists 1 twice"),
        (
            {"temperature": [0, 0.0]},
            "'simulated/oracle temperature=0' and 'simulated/oracle temperature=0.0'",
        ),
        ({"seed": [*range(101)], "max_tokens": [*range(1, 11)]}, "1,010 entries, and 1,000 are the most"),
        ({"effort": ["low", 5]}, "s.yaml, models[1]: 'effort[2]' must be text, not 5. Put it in quotes"),
        ({"effort": ["low", "x\ny"]}, "names a folder"),
        ({"params": {"a": [1, nested(5000)]}}, "'a' nests without end"),
        ({"system": ["a", "b"]}, "list the model once per value"),
    ],
)
def test_lists_that_cannot_be_are_refused(entry, said):
    assert said in complaint_about({"model": "simulated/oracle"} | entry)


def test_entries_that_come_out_alike_are_refused_by_name():
    told = complaint_about(
        {"model": "simulated/oracle", "effort": ["low", "high"]},
        {"model": "simulated/oracle", "effort": "high", "alias": "hard"},
    )
    assert "'simulated/oracle effort=high' and 'hard' ask the same model the same way" in told


def test_faults_are_told_at_the_lines_of_the_file(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("""\
name: s
problems: [p.parquet]
models:
  - model: [simulated/oracle, nobody/x]
    effort:
      - low
      - high
    temperature: [0, -1]
  - {model: simulated/noisy, seed: x}
""")
    with pytest.raises(ConfigError) as caught:
        load_sweep(path)
    assert str(caught.value).splitlines() == [
        f"{path}, line 8: 'temperature[2]' must be at least 0, not -1",
        f"{path}, line 9: 'seed' must be a whole number, not 'x'",
    ]
    path.write_text(path.read_text().replace("-1", "1").replace("seed: x", "alias: 'simulated/oracle'"))
    with pytest.raises(ConfigError, match="line 4: unknown provider 'nobody'"):
        load_sweep(path)


def test_editors_are_told_that_lists_may_stand_there():
    rules = sweep_schema()["$defs"]["ModelEntry"]["properties"]
    assert {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}} in rules["model"][
        "anyOf"
    ]
    assert any(rule.get("type") == "array" for rule in rules["effort"]["anyOf"])
    assert not any(rule.get("type") == "array" for rule in rules["system"]["anyOf"])
    assert yaml.safe_dump(rules["effort"]["default"])


def test_limits_in_a_list_make_trials_of_their_own():
    entry = {"model": "simulated/oracle", "effort": ["low", "high"], "concurrency": [8, 16]}
    sweep = sweep_from(SMALL | {"models": [entry]})
    assert [(model.alias, model.limits.concurrency, model.compared) for model in sweep.models] == [
        (f"simulated/oracle effort={effort} concurrency={n}", n, ("concurrency",))
        for effort in ("low", "high")
        for n in (8, 16)
    ]
    assert len({way_of_asking(model, sweep.conditions[0]) for model in sweep.models}) == 4
    assert len({model.turn for model in sweep.models}) == 1
    assert sweep_from(json.loads(json.dumps(as_mapping(sweep)))) == sweep


def test_a_limit_that_is_not_compared_is_no_part_of_a_trial():
    plain, fast = (models_of({"model": "simulated/oracle"} | limit)[0] for limit in ({}, {"rpm": [60]}))
    assert way_of_asking(plain, Condition()) == way_of_asking(fast, Condition())
    assert (fast.turn, fast.limits.rpm) == (None, 60)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"compare": ["rpm"]}, "models[1].compare: rpm is not set, so it cannot be compared"),
        ({"concurrency": [8, 16], "group": "g"}, "share the rate limit of group 'g'"),
        ({"concurrency": [8, 0]}, "'concurrency[2]' must be more than 0, not 0"),
        ({"rpm": [60, 90], "compare": None}, "'compare' must be a list"),
        ({"rpm": [60, 90], "compare": 3}, "'compare' must be a list"),
        ({"rpm": [60, 90], "compare": "rpm"}, "'compare' must be a list"),
    ],
)
def test_limits_that_cannot_be_compared_are_refused(entry, said):
    assert said in complaint_about({"model": "simulated/oracle"} | entry)


def kept(folder, params):
    """Make a results folder as a version before lists of values left it: a list in `params` was sent."""
    content = SMALL | {"models": [{"model": "simulated/oracle", "params": params}], "out": str(folder)}
    claim_folder(folder, sweep="s")
    write_sweep_file(folder, yaml.safe_dump(content).encode(), {})
    return content


def test_an_old_folders_own_sweep_is_read_without_expansion(tmp_path):
    kept(tmp_path / "x", {"odd": [15, 16, 17], "one": [5], "k": 3})
    (model,) = load_sweep(tmp_path / "x" / "sweep.yaml").models
    assert (model.alias, model.params) == ("simulated/oracle", {"odd": [15, 16, 17], "one": [5], "k": 3})


def test_values_of_two_types_are_two_values():
    models = models_of(
        {"model": "simulated/oracle", "params": {"a": [True, "true"], "b": [{"c": 1}, {"c": "1"}]}}
    )
    assert [model.alias.removeprefix("simulated/oracle ") for model in models] == [
        f"a={a} b={b}" for a in ("true", '"true"') for b in ('{"c": 1}', '{"c": "1"}')
    ]
    assert [model.params["a"] for model in models] == [True, True, "true", "true"]


@pytest.mark.parametrize("values", [[15, 16, 17], [5], ["a", "b"]])
def test_a_list_that_an_old_folder_was_asked_with_is_not_asked_again_by_value(tmp_path, values):
    content = kept(tmp_path / "x", {"odd": values})
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError) as caught:
        load_sweep(tmp_path / "s.yaml")
    assert "s.yaml, line " in str(caught.value)
    assert f"To send the list, wrap it: {json.dumps([values])}" in str(caught.value)
    content["models"] = [{"model": "simulated/oracle", "params": {"odd": [values]}}]
    (model,) = sweep_from(content).models
    assert (model.alias, model.params) == ("simulated/oracle", {"odd": values})
    content["models"] = [{"model": "simulated/oracle", "alias": "new", "params": {"odd": values}}]
    assert len(sweep_from(content).models) == len(values)
