"""An alias behind which several stood is told."""

import json
from typing import Any

import pyarrow as pa
import pytest

from asyncbench.analysis.counting import counted
from asyncbench.analysis.served import mixtures, simulated_by
from asyncbench.providers.wire import SIMULATOR
from asyncbench.records import Reply
from asyncbench.reports.overview import overview_of
from asyncbench.store.folder import Store
from asyncbench.store.schema import TRIALS
from tests.analysis.views.made import views_of
from tests.reports.test_report import result
from tests.store import made
from tests.world.night import requests


def told_of(*rows, provider="acme", model_id=None):
    """What is told of rows of (model, model_served, fingerprint, upstream), all of one provider and model."""
    names = ("model", "model_served", "fingerprint", "upstream", "provider", "model_id")
    trials = pa.Table.from_pylist(
        [dict(zip(names, (*row, provider, model_id), strict=True)) for row in rows],
        schema=pa.schema([TRIALS.field(name).with_nullable(True) for name in TRIALS.names]),
    )
    with views_of(trials=trials) as views:
        return mixtures(views)


def test_an_alias_answered_by_two_models_is_told_with_counts_the_commonest_first():
    told = told_of(("m", "a-1", None, None), ("m", "a-2", None, None), ("m", "a-2", None, None))
    assert told == ("Several models answered for m: a-2 (2), a-1 (1).",)


def test_fingerprints_and_upstreams_are_told_likewise():
    told = told_of(("m", "a", "fp1", "x"), ("m", "a", "fp2", "y"))
    assert [line.split(":")[0] for line in told] == [
        "Several builds (system fingerprints) answered for m",
        "Several upstream providers answered for m",
    ]


def test_two_aliases_with_a_model_each_are_no_mixture():
    assert told_of(("m", "a", None, None), ("n", "b", None, None)) == ()


def test_what_a_failed_trial_leaves_unknown_is_no_second_model():
    assert told_of(("m", "a", None, None), ("m", None, None, None)) == ()


def test_another_model_than_the_one_asked_is_told_with_counts():
    told = told_of(("m", "llama-3", None, None), ("m", "llama-3", None, None), model_id="qwen3-32b")
    assert told == ("m asked for qwen3-32b, but another model answered: llama-3 (2).",)


@pytest.mark.parametrize(
    ("model_id", "by", "provider"),
    [
        pytest.param("gpt-4o", "gpt-4o-2024-08-06", "openai", id="the dated name"),
        pytest.param("qwen/qwen3-32b", "Qwen3-32B", "http", id="without its vendor"),
        pytest.param("noisy-2", "noisy", "simulated", id="simulated"),
        pytest.param("qwen3-32b", None, "http", id="untold"),
    ],
)
def test_the_model_asked_is_not_told_by_its_other_names(model_id, by, provider):
    assert told_of(("m", by, None, None), model_id=model_id, provider=provider) == ()


def test_an_empty_folder_tells_nothing():
    assert told_of() == ()


def test_the_report_warns_of_it_in_every_form(tmp_path):
    served = ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20")
    with Store.open(tmp_path, sweep="s") as store:
        for request, model in zip(requests(2), served, strict=True):
            made.keep(store, *made.with_calls(result(request, Reply(text="4", model_served=model))))
    report, told = counted(tmp_path, overview_of), "Several models answered for m: gpt-4o-2024-08-06 (1)"
    assert told in report.as_text()
    assert told in report.as_markdown()
    assert told in json.loads(report.as_json())["mixtures"][0]


@pytest.mark.parametrize(
    ("answers", "vendors"),
    [
        ([("openai", "somewhere"), ("acme", None)], None),
        ([("simulated", None)], []),
        ([("openai", SIMULATOR), ("acme", SIMULATOR), ("simulated", None)], ["acme", "openai"]),
    ],
)
def test_one_query_says_what_is_simulated_and_in_whose_name(answers, vendors):
    rows = [{"provider": provider, "upstream": upstream} for provider, upstream in answers]
    asked = []

    class Asked:
        def rows(self, query):
            asked.append(query)
            return views.rows(query)

    watched: Any = Asked()
    schema = pa.schema([TRIALS.field(name).with_nullable(True) for name in TRIALS.names])
    with views_of(trials=pa.Table.from_pylist(rows, schema=schema)) as views:
        assert simulated_by(watched) == vendors
    assert len(asked) == 1
