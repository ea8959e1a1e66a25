"""A sweep from problem sets to Parquet, through the real SDKs, against a server in another process."""

import asyncio
import os
import resource
from collections import Counter
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from asyncbench import grade, read_attempts, read_grades, read_trials, run_sweep
from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError, StoreError
from asyncbench.planning import preflight
from asyncbench.problems.opening import open_set
from asyncbench.records import Outcome
from asyncbench.run.summary import Exit, exit_code
from asyncbench.run.sweep_run import first_cause
from tests.providers.raw_server import answering, raw_server
from tests.sweep_files import ADAPTERS, entry, outcomes, problem_set, run, simulator, sweep

PROMPT = {"retry": {"attempts": 20, "total_s": 600}}


@pytest.fixture
def served(tmp_path):
    """144 problems, where results go, and a simulator that knows these problems."""
    problems = problem_set(tmp_path)
    with simulator(problems) as server:
        yield problems, tmp_path / "out", server


@pytest.mark.long
def test_every_adapter_asks_every_problem_once_and_the_oracle_is_always_right(served):
    problems, out, server = served
    summary = run(sweep(out, problems, *(entry(server, f"{name}/oracle") for name in ADAPTERS)))
    stats = server.stats()

    assert summary.exit is Exit.COMPLETE
    assert summary.simulated
    assert stats["requests"] == stats["delivered"] == 3 * 144
    trials = read_trials(out).to_pylist()
    assert Counter(row["outcome"] for row in trials) == {"correct": 3 * 144}
    assert Counter(row["provider"] for row in trials) == dict.fromkeys(ADAPTERS, 144)
    for row in trials:
        assert row["reply_text"] == row["expected"]
        assert row["input_tokens"] > 0
        assert row["output_tokens"] > 0
        assert row["model_served"] == "oracle"
        assert row["finish_reason"] in ("stop", "end_turn")
        assert row["request_id"].startswith("simulated-")
        assert row["latency_s"] > 0
        assert row["ttft_s"] is None
        assert row["cost_usd"] is None
        assert (row["attempts"], row["http_status"], row["error_kind"]) == (1, 200, None)


def test_every_reply_is_graded_by_every_grader_of_its_suite(served):
    problems, out, server = served
    run(sweep(out, problems, entry(server, "simulated/noisy")))
    by_id = {problem.problem_id: problem for problem in open_set(problems).read()}
    grades = {(row["trial_id"], row["grader"]): row for row in read_grades(out).to_pylist()}
    trials = read_trials(out).to_pylist()

    assert len(grades) == 3 * len(trials)
    for row in trials:
        for expected in grade(by_id[row["problem_id"]], row["reply_text"]):
            written = grades[row["trial_id"], expected.grader]
            assert (written["answer"], written["classification"]) == (
                expected.answer,
                expected.classification,
            )
            assert (written["outcome"], written["headline"]) == (expected.outcome, expected.headline)


def test_a_limited_run_is_balanced_over_the_cells(served):
    problems, out, server = served
    run(sweep(out, problems, entry(server, "simulated/oracle")), limit=72)
    cells = Counter((row["task"], row["length"]) for row in read_trials(out).to_pylist())
    assert set(cells.values()) == {1}
    assert len(cells) == 72


def test_a_problem_in_two_sets_is_asked_once_and_belongs_to_the_first(tmp_path):
    one, two = problem_set(tmp_path, name="one"), problem_set(tmp_path, name="two", trials=3)
    out = tmp_path / "out"
    with simulator(one, two) as server:
        run(sweep(out, [one, two], entry(server, "simulated/oracle")))
    assert Counter(row["problem_set"] for row in read_trials(out).to_pylist()) == {"one": 144, "two": 72}


def test_a_price_given_in_the_sweep_prices_every_call(served):
    problems, out, server = served
    run(sweep(out, problems, entry(server, "simulated/oracle", price={"input": 2, "output": 10})))
    rows = read_trials(out).to_pylist()
    assert len(rows) == 144
    for row in rows:
        assert row["cost_usd"] == pytest.approx((2 * row["input_tokens"] + 10 * row["output_tokens"]) / 1e6)
        assert row["price_source"] == "sweep"


def soon_again(asked):
    """A sweep that waits less before another try: how long it waits is the engine's to show."""
    retried = (replace(model, retry=replace(model.retry, first_s=0.05)) for model in asked.models)
    return replace(asked, models=tuple(retried))


@pytest.mark.long
def test_faults_change_no_outcome_and_every_attempt_is_written_down(tmp_path):
    problems = problem_set(tmp_path, trials=3)  # 216 problems
    faults = ("429=0.05", "500=0.05", "reset=0.05", "cut=0.05", "stall=0.01")
    quick = PROMPT | {"timeouts": {"total": 4}, "concurrency": 100}
    with simulator(problems) as calm:
        run(sweep(tmp_path / "calm", problems, *(entry(calm, f"{name}/noisy") for name in ADAPTERS)))
    with simulator(problems, faults=faults) as storm:
        models = (entry(storm, f"{name}/noisy", **quick) for name in ADAPTERS)
        summary = run(soon_again(sweep(tmp_path / "storm", problems, *models)))
        stats = storm.stats()

    assert summary.exit is Exit.COMPLETE
    assert outcomes(tmp_path / "storm") == outcomes(tmp_path / "calm")
    attempts = read_attempts(tmp_path / "storm").to_pylist()
    assert len(attempts) == stats["requests"]
    kinds = Counter(row["status"] for row in attempts)
    assert kinds["ok"] == stats["delivered"] == 3 * 216
    assert kinds["rate_limited"] == stats["statuses"]["429"]
    assert kinds["server_error"] == stats["statuses"]["500"]
    assert kinds["unreachable"] == stats["faults"]["reset"]
    assert kinds["bad_reply"] == stats["faults"]["cut"]
    assert kinds["timeout"] == stats["faults"]["stall"]
    assert min(stats["statuses"]["429"], stats["statuses"]["500"], *stats["faults"].values()) > 0
    for row in read_trials(tmp_path / "storm").to_pylist():
        mine = sorted(one["attempt"] for one in attempts if one["trial_id"] == row["trial_id"])
        assert mine == list(range(1, row["attempts"] + 1))


def test_an_unknown_model_suspends_itself_and_the_others_finish(served):
    problems, out, server = served
    summary = run(
        sweep(out, problems, entry(server, "simulated/gpt-99"), entry(server, "simulated-http/oracle"))
    )
    unknown, known = summary.models.values()
    assert summary.exit is Exit.UNFINISHED
    assert unknown.suspended.startswith("no_such_model: ")
    assert known.done == 144


@pytest.mark.parametrize(
    ("model", "reason", "requests"),
    [
        pytest.param(
            {"model": "simulated/mistral:oracle", "seed": 3}, "rejected_parameter: ", 1, id="as its code says"
        ),
        pytest.param(
            {"model": "simulated/oracle", "params": {"simulate": {"no": 1}}},
            "bad_request: ",
            3,
            id="every time",
        ),
    ],
)
def test_a_parameter_that_is_refused_suspends_its_model(served, model, reason, requests):
    problems, out, server = served
    refused = model | entry(server, model["model"], concurrency=1)
    summary = run(sweep(out, problems, refused))
    assert server.stats()["requests"] == requests
    (counters,) = summary.models.values()
    assert summary.exit is Exit.UNFINISHED
    assert counters.suspended.startswith(reason)
    assert outcomes(out) == {}
    assert "[key]" not in summary.as_text()


def test_counts_that_no_column_can_hold_are_left_out_and_stop_nothing(tmp_path):
    out = tmp_path / "out"
    usage = {"prompt_tokens": 1e30, "completion_tokens": 2**63, "total_tokens": 2e30}
    body = {"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}], "usage": usage}

    async def answered():
        async with raw_server() as server:
            server.manner = answering(body=body)
            model = {"model": "simulated-http/oracle", "base_url": f"{server.url}/v1"}
            return await run_sweep(sweep(out, problem_set(tmp_path), model), limit=3)

    assert asyncio.run(answered()).exit is Exit.COMPLETE
    (part,) = (out / "trials").rglob("*.parquet")
    for row in pq.read_table(part).to_pylist():
        assert (row["input_tokens"], row["output_tokens"], row["reply_text"]) == (None, None, "4")
    assert all(row["raw_usage"] for row in read_attempts(out).to_pylist())


def test_a_question_that_no_server_answers_is_a_failed_trial_and_exit_3(tmp_path):
    problems, others = problem_set(tmp_path), problem_set(tmp_path, name="others", trials=1)
    with simulator(others) as server:
        summary = run(sweep(tmp_path / "out", problems, entry(server, "simulated/oracle")))
    assert summary.exit is Exit.UNFINISHED
    assert Counter(outcomes(tmp_path / "out").values()) == {"correct": 72, "failed": 72}
    failed = [row for row in read_trials(tmp_path / "out").to_pylist() if row["outcome"] == "failed"]
    assert {row["error_kind"] for row in failed} == {"bad_request"}
    assert {row["reply_text"] for row in failed} == {None}


@pytest.mark.long
def test_failed_trials_are_asked_again_only_when_told_and_their_attempts_go_on(tmp_path):
    problems, out = problem_set(tmp_path), tmp_path / "out"
    once = {"retry": {"attempts": 1}}
    with simulator(problems, faults=("500=0.5",)) as storm:
        run(sweep(out, problems, entry(storm, "simulated/oracle", **once)))
    failed = {trial for trial, outcome in outcomes(out).items() if outcome == "failed"}
    assert 20 < len(failed) < 120
    with simulator(problems) as calm:
        asked = sweep(out, problems, entry(calm, "simulated/oracle", **once))
        left = run(asked)
        assert calm.stats()["requests"] == 0
        assert left.exit is Exit.UNFINISHED, "trials without an answer are no complete sweep"
        assert left.models["simulated/oracle"].failed == len(failed)
        assert run(asked, retry=[Outcome.FAILED]).exit is Exit.COMPLETE
        assert calm.stats()["requests"] == len(failed)
    assert set(outcomes(out).values()) == {"correct"}
    attempts = {row["trial_id"]: row["attempts"] for row in read_trials(out).to_pylist()}
    assert {attempts[trial] for trial in failed} == {2}
    assert len(read_attempts(out)) == 144 + len(failed)


def test_a_model_named_twice_is_asked_once(served):
    problems, out, server = served
    run(sweep(out, problems, entry(server, "simulated/oracle")), models=["simulated/oracle"] * 2, limit=9)
    assert server.stats()["requests"] == 9
    assert len(outcomes(out)) == 9


def test_a_reply_that_a_grader_stumbles_over_is_kept_and_counted(tmp_path):
    problems, out = problem_set(tmp_path), tmp_path / "out"
    table = pq.read_table(problems)
    spoiled = table.set_column(
        table.schema.get_field_index("answer_type"),
        table.schema.field("answer_type"),
        [["text"] * len(table)],  # llm_arithmetic grades integers and decimals
    )
    pq.write_table(spoiled.replace_schema_metadata(), problems)
    with simulator(problems) as server:
        summary = run(sweep(out, problems, entry(server, "simulated/oracle")), limit=5)
    (counters,) = summary.models.values()
    assert counters.grader_errors == 5
    assert "5 replies kept but not graded" in summary.as_text()
    assert {row["reason"] for row in read_grades(out).to_pylist()} == {"grader_error"}
    assert all(row["reply_text"] == row["expected"] for row in read_trials(out).to_pylist())


# ── bad input: refused before anything is spent ──────────────────────────────────────────────


def test_a_key_that_several_models_miss_is_named_once_with_all_of_them(tmp_path):
    names = enumerate(("a", "b", "c"))
    models = [{"model": "openai/gpt-5-mini", "alias": name, "seed": seed} for seed, name in names]
    other = {"model": "anthropic/claude-haiku-4-5", "alias": "d"}
    with pytest.raises(ConfigError) as caught:
        run(sweep(tmp_path / "out", problem_set(tmp_path), *models, other), env={})
    said = str(caught.value)
    assert (
        "OPENAI_API_KEY is not set (API key of a, b, c); ANTHROPIC_API_KEY is not set (API key of d)" in said
    )
    assert said.count("Export it") == 1
    assert "--env-file" in said
    assert not (tmp_path / "out").exists()


def test_an_unknown_alias_is_named(tmp_path):
    asked = sweep(tmp_path / "out", problem_set(tmp_path), "simulated/oracle")
    with pytest.raises(ConfigError, match=r"no model 'nobody'.*Its models: simulated/oracle"):
        run(asked, models=["nobody"])


def test_fewer_tokens_a_minute_than_one_request_needs_are_refused(tmp_path):
    model = {"model": "simulated/oracle", "tpm": 500, "max_tokens": 1000}
    asked = sweep(tmp_path / "out", problem_set(tmp_path), model)
    with pytest.raises(
        ConfigError, match=r"one request may need 1,0\d\d tokens, but its `tpm` is 500 tokens per minute"
    ):
        run(asked)


def test_more_calls_in_flight_than_the_system_has_files_are_refused(tmp_path):
    model = {"model": "simulated/oracle", "concurrency": 10**9}
    with pytest.raises(ConfigError, match="open files and connections, but the system allows"):
        run(sweep(tmp_path / "out", problem_set(tmp_path), model))


def test_many_tasks_that_met_a_full_disk_met_one_cause():
    full = StoreError("disk full")
    assert first_cause(BaseExceptionGroup("all", [ExceptionGroup("lane", [full, StoreError("too")])])) is full


def test_a_bug_is_never_hidden_behind_a_full_disk():
    both = ExceptionGroup("all", [StoreError("disk full"), KeyError("ours")])
    assert first_cause(both) is both


@pytest.mark.parametrize(
    ("causes", "code"),
    [
        (set(), 0),
        ({Exit.UNFINISHED}, 3),
        ({Exit.UNFINISHED, Exit.DEADLINE}, 6),
        ({Exit.DEADLINE, Exit.BUDGET}, 4),
        ({Exit.BUDGET, Exit.STORAGE}, 5),
        ({Exit.STORAGE, Exit.INTERRUPTED}, 130),
        ({Exit.INTERRUPTED, Exit.BUG}, 1),
    ],
)
def test_the_gravest_cause_wins(causes, code):
    assert exit_code(causes) == code


@pytest.mark.long
def test_results_are_read_by_pandas_duckdb_polars_and_plain_pyarrow(tmp_path):
    import duckdb
    import pandas as pd
    import polars as pl

    problems, out = problem_set(tmp_path), tmp_path / "out"
    run(sweep(out, problems, "simulated/oracle", {"model": "simulated-http/noisy", "alias": "a b%/ü"}))
    folder, glob = out / "trials", f"{out}/trials/**/*.parquet"
    expected = Counter(row["model"] for row in pq.read_table(folder).to_pylist())

    assert expected == {"simulated/oracle": 144, "a b%/ü": 144}
    assert pd.read_parquet(folder).groupby("model", observed=True).size().to_dict() == expected
    assert dict(
        pl.scan_parquet(glob, hive_partitioning=True).collect()["model"].value_counts().iter_rows()
    ) == (expected)
    counted = duckdb.connect().sql(
        f"SELECT model, count(*) FROM read_parquet('{glob}', hive_partitioning = true) GROUP BY ALL"  # noqa: S608  our own path
    )
    assert dict(counted.fetchall()) == expected


def test_keys_come_from_this_process_unless_given(tmp_path):
    problems, out = problem_set(tmp_path), tmp_path / "out"
    os.environ["ASYNCBENCH_TEST_KEY"] = "right"
    try:
        with simulator(problems, keys=("right",)) as server:
            model = entry(server, "simulated/oracle", key_env="ASYNCBENCH_TEST_KEY")
            assert run(sweep(out, problems, model)).exit is Exit.COMPLETE
    finally:
        del os.environ["ASYNCBENCH_TEST_KEY"]


def test_without_a_concurrency_lanes_share_the_files_that_the_system_allows(monkeypatch):
    names = ["simulated/oracle", "simulated/noisy", {"model": "simulated/noisy-2", "concurrency": 50}]
    asked = sweep_from({"name": "s", "problems": ["p.parquet"], "models": names})
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4096, 1_000))  # what root cannot set for itself
    first, second, third = preflight.raise_file_limit(asked.models)
    assert first.limits.most_in_flight == second.limits.most_in_flight == (1_000 - 200 - 50) // 2
    assert third.limits.most_in_flight == 50
