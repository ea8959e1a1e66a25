"""Recorded answers: the file of facts, and sweeps that are answered from it."""

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import cast

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from asyncbench import read_trials, run_sweep
from asyncbench.analysis.counting import counted
from asyncbench.config.sweep import as_mapping, load_sweep, sweep_from
from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.opening import open_set
from asyncbench.problems.recorded import FACTS, FACTS_KEY, recorded_answers
from asyncbench.problems.schema import identified
from asyncbench.records import Reply
from asyncbench.reports.standings.report import standings_of
from asyncbench.run.summary import Exit
from asyncbench.suites.table import grade
from data.recorded import facts
from tests.recorded import rows

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "data" / "recorded.parquet"
CHANCE = ("simulated/claude-opus-4-6", "simulated-http/deepseek.v3.2")  # both were asked one problem
NANO, O3 = "gpt-4.1-nano-2025-04-14", "o3-mini-2025-01-31-low"


def test_the_file_holds_facts_and_no_texts_and_names_its_source():
    file = pq.ParquetFile(FILE)
    assert file.schema_arrow.remove_metadata() == FACTS.remove_metadata()
    assert b"maxim-saplin/llm_arithmetic" in file.schema_arrow.metadata[FACTS_KEY.encode()]
    assert FILE.stat().st_size < 1_000_000
    texts = [name for name in FACTS.names if FACTS.field(name).type == "string"]
    table = file.read()
    longest = {name: pc.max(pc.utf8_length(table[name])).as_py() for name in texts}
    assert max(longest[name] for name in ("lhs", "rhs", "task", "outcome", "model")) < 60
    assert all(re.fullmatch(r"-?\d+(\.\d+)?", text or "") for text in table["answer"].drop_null().to_pylist())


def test_the_readme_names_every_column():
    told = (ROOT / "data" / "README.md").read_text("utf-8")
    table = told[told.index("| column |") :]
    assert set(re.findall(r"`(\w+)`", table[: table.index("\n\n")])) >= set(FACTS.names)


@pytest.mark.long
def test_the_script_makes_the_same_file_again(golden):
    prices = golden / "llm_arithmetic" / "prices.csv"
    assert facts(rows(golden), prices).equals(pq.read_table(FILE))


def test_every_grader_reads_every_answer_as_it_read_the_recorded_reply(golden):
    def read(problem, text):
        grades = grade(problem, Reply(text=text))
        return [(one.answer, one.classification, one.abs_error, one.rel_error) for one in grades]

    answers = list(recorded_answers(FILE))
    problems = identified(answered.draft for answered in answers)
    for answered, problem, row in zip(answers, problems, rows(golden), strict=True):
        assert read(problem, answered.text) == read(problem, row["raw_response"]), row


def test_the_prices_of_the_demo_make_the_recorded_costs():
    table = pq.read_table(FILE)
    for model in load_sweep(ROOT / "configs" / "demo.yaml").models:
        rows = table.filter(pc.field("model") == model.model_id)
        tokens = [pc.sum(rows[name]).as_py() for name in ("input_tokens", "output_tokens")]
        assert rows.num_rows == 720
        assert model.price is not None
        cost = (tokens[0] * model.price.input + tokens[1] * model.price.output) / 1e6
        assert cost == pytest.approx(pc.sum(rows["cost_usd"]).as_py(), rel=1e-9)


def test_the_demo_says_how_much_faster_it_replays():
    text = (ROOT / "configs" / "demo.yaml").read_text("utf-8")
    assert all(model["params"]["simulate"]["speedup"] > 1 for model in yaml.safe_load(text)["models"])


# ── sweeps ───────────────────────────────────────────────────────────────────────────────────


def replaying(out, *models, **keys):
    entries = [
        {"model": model, "replay": str(FILE), "params": {"simulate": {"speedup": 1000}}} for model in models
    ]
    return sweep_from({"name": "again", "models": entries, "out": str(out), **keys})


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """Two models that answered other problems, replayed. Not to be changed."""
    out = tmp_path_factory.mktemp("replayed") / "out"
    summary = asyncio.run(run_sweep(replaying(out, f"simulated/{NANO}", f"simulated-http/{O3}")))
    assert summary.exit is Exit.COMPLETE
    return out


@pytest.mark.long
def test_a_replayed_model_gets_its_own_problems_tokens_and_outcomes(replayed):
    facts_of = pq.read_table(FILE)
    trials = read_trials(replayed)
    for provider, model in (("simulated", NANO), ("simulated-http", O3)):
        rows = facts_of.filter(pc.field("model") == model)
        mine = trials.filter(pc.field("model") == f"{provider}/{model}")
        assert len(mine) == 720
        for name in ("input_tokens", "output_tokens"):
            assert pc.sum(mine[name]).as_py() == pc.sum(rows[name]).as_py()
        assert Counter(mine["outcome"].to_pylist()) == Counter(rows["outcome"].to_pylist())


@pytest.mark.long
def test_models_without_a_common_problem_are_ranked_by_unpaired_tests(replayed):
    standings = counted(replayed, standings_of)
    (ranking,) = standings.rankings
    assert (ranking.paired, ranking.problems, ranking.pairs) == (False, 720, ())
    assert [line.place for line in ranking.lines] == [1, 2]
    assert [line.model for line in ranking.lines] == [f"simulated-http/{O3}", f"simulated/{NANO}"]
    text = standings.as_text(width=200)
    assert "llm_arithmetic: 2 models, each on 720 problems of its own" in text
    assert "ranked by unpaired tests" in text
    assert "paired tests, Holm" not in text


@pytest.mark.long
def test_one_problem_in_common_by_chance_keeps_nobody_from_a_rank(tmp_path):
    asyncio.run(run_sweep(replaying(tmp_path / "out", *CHANCE)))
    problems = Counter(read_trials(tmp_path / "out")["problem_id"].to_pylist())
    assert Counter(problems.values()) == {1: 2 * 720 - 2, 2: 1}
    (ranking,) = counted(tmp_path / "out", standings_of).rankings
    assert (ranking.paired, [line.place for line in ranking.lines]) == (False, [1, 2])


def test_a_sweep_says_which_run_its_problems_are_of_when_it_is_written_down(tmp_path):
    sweep = replaying(tmp_path, f"simulated/{NANO}")
    mapping = as_mapping(sweep)
    (entry,) = cast("list[dict[str, object]]", mapping["models"])
    assert entry["problems"] == [{"path": str(FILE), "run": NANO}]
    assert sweep_from(mapping) == sweep


def test_the_problems_of_a_run_may_be_asked_of_another_model():
    found = open_set(FILE, run=NANO)
    assert (found.rows, found.suites) == (720, ("llm_arithmetic",))
    assert found.name.startswith("gpt-4.1-nano")
    assert [problem.length for problem in found.read(start=718)] == [10, 10]


@pytest.mark.parametrize(
    ("model", "file", "said"),
    [
        pytest.param(
            "gpt-9", FILE, "holds no run and no single model called 'gpt-9'. Its models: ", id="model"
        ),
        pytest.param("gemini-2.5-pro", FILE, "no single model called 'gemini-2.5-pro'", id="two-runs"),
        pytest.param(
            NANO, ROOT / "data" / "integer_addition.parquet", "not a file of recorded", id="no-facts"
        ),
        pytest.param(NANO, ROOT / "data" / "nowhere.parquet", "nowhere.parquet", id="no-file"),
    ],
)
def test_what_cannot_be_replayed_is_refused_before_anything_is_made(tmp_path, model, file, said):
    entry = {"model": f"simulated/{model}", "replay": str(file)}
    sweep = sweep_from({"name": "again", "models": [entry], "out": str(tmp_path / "out")})
    with pytest.raises((ConfigError, ProblemSetError)) as caught:
        asyncio.run(run_sweep(sweep))
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists()
