"""Batches submitted by hand: requests out with a map, and requests with their results in."""

import json
from pathlib import Path

import pytest

from asyncbench import generate, run_sweep
from asyncbench.errors import ConfigError
from asyncbench.lanes.batches.ledger import BatchLedger, BatchPart, Step
from asyncbench.pricing import cost_usd, rates_for
from asyncbench.records import BATCH, Usage
from asyncbench.store.catalog import read_attempts, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.manifest import read_manifest
from asyncbench.upkeep import exporting
from asyncbench.upkeep.batch_files.results import import_batches
from asyncbench.upkeep.exporting import export_batches, export_folder
from asyncbench.upkeep.importing import import_files
from tests.commands import asyncbench_here
from tests.recorded import json_lines
from tests.reports.paid import NOON
from tests.sweep_files import problem_set, sweep, sweep_file

MINI = {"model": "openai/gpt-5-mini", "alias": "mini", "max_tokens": 100}
HAIKU = {"model": "anthropic/claude-haiku-4-5", "alias": "haiku", "max_tokens": 100}
AT = round(NOON.timestamp())


def written(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def answered(request, text):
    """A line of results of OpenAI, whose body says `default` as the vendor's does."""
    body = {
        "id": "chatcmpl-1",
        "created": AT,
        "model": "gpt-5-mini-2025-08-07",
        "service_tier": "default",
        "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 10},
    }
    response = {"status_code": 200, "request_id": "r", "body": body}
    return {"id": "batch_req_1", "custom_id": request["custom_id"], "response": response, "error": None}


def refused(request):
    body = {
        "error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}
    }
    response = {"status_code": 400, "request_id": "r", "body": body}
    return {"id": "batch_req_2", "custom_id": request["custom_id"], "response": response, "error": None}


def expired(request):
    error = {"code": "batch_expired", "message": "This request could not be executed"}
    return {"id": "batch_req_3", "custom_id": request["custom_id"], "response": None, "error": error}


@pytest.fixture
def asked(tmp_path):
    return sweep(tmp_path / "out", problem_set(tmp_path, trials=1), MINI, HAIKU)


# ── requests out ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", ["openai", "nupa"])
def test_requests_are_written_with_a_map_of_what_each_is(asked, tmp_path, form):
    (found,) = export_batches(form, asked, tmp_path / "r", models=["mini"]).models
    assert (found.files, found.requests) == (1, 72)
    lines, entries = (json_lines(tmp_path / "r" / "mini" / name) for name in ("batch_0.jsonl", "map.jsonl"))
    assert [line["custom_id"] for line in lines] == [entry["custom_id"] for entry in entries]
    for n, (line, entry) in enumerate(zip(lines, entries, strict=True)):
        assert line["custom_id"] == (f"request-{n}" if form == "nupa" else entry["trial_id"])
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        assert line["body"]["model"] == entry["model_id"] == "gpt-5-mini"
        assert line["body"]["messages"][-1]["content"] == entry["problem"]["question"]
        assert "stream" not in line["body"]
    assert len({entry["trial_id"] for entry in entries}) == 72


def test_anthropic_s_form_holds_params(asked, tmp_path):
    export_batches("anthropic", asked, tmp_path / "r", models=["haiku"], limit=5)
    lines = json_lines(tmp_path / "r" / "haiku" / "batch_0.jsonl")
    assert len(lines) == 5
    assert all(set(line) == {"custom_id", "params"} for line in lines)
    assert lines[0]["params"]["max_tokens"] == 100


def test_a_full_file_is_followed_by_the_next_and_custom_ids_count_on(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "NUPA_LINES", 30)
    export_batches("nupa", asked, tmp_path / "r", models=["mini"])
    files = [json_lines(tmp_path / "r" / "mini" / f"batch_{n}.jsonl") for n in range(3)]
    assert [len(lines) for lines in files] == [30, 30, 12]
    assert [line["custom_id"] for lines in files for line in lines] == [f"request-{n}" for n in range(72)]


def test_a_file_holds_no_more_bytes_than_the_sweep_allows(tmp_path):
    small = sweep(
        tmp_path / "out",
        problem_set(tmp_path, trials=1),
        MINI,
        batch={"max_bytes": 5_000, "max_requests": 50},
    )
    (found,) = export_batches("openai", small, tmp_path / "r").models
    files = sorted((tmp_path / "r" / "mini").glob("batch_*.jsonl"))
    assert len(files) == found.files > 2
    assert max(file.stat().st_size for file in files) <= 5_000
    assert sum(len(json_lines(file)) for file in files) == 72


async def test_only_what_is_open_is_exported(tmp_path):
    problems = problem_set(tmp_path, trials=1)
    asked = sweep(tmp_path / "out", problems, "simulated/oracle")
    await run_sweep(asked, limit=70)
    (found,) = export_batches("openai", asked, tmp_path / "r").models
    assert found.requests == 2
    await run_sweep(asked)
    with pytest.raises(ConfigError, match="nothing to export"):
        export_batches("openai", asked, tmp_path / "again")


@pytest.mark.parametrize("alias", ["simulated/oracle", "its earlier alias"])
def test_what_is_in_a_batch_of_a_run_is_not_exported(tmp_path, alias):
    asked = sweep(tmp_path / "out", problem_set(tmp_path, trials=1), "simulated/oracle")
    export_batches("openai", asked, tmp_path / "all")
    (folder,) = (tmp_path / "all").iterdir()
    sent = [entry["trial_id"] for entry in json_lines(folder / "map.jsonl")[:70]]
    with Store.open(tmp_path / "out", sweep="test"):
        ledger = BatchLedger(tmp_path / "out")
        part = BatchPart(key="0" * 16, alias=alias, requests=70, size=1, sha256="", tokens=1)
        ledger.write(part, Step.PREPARED, at=0.0)
        ledger.close()
        unpaid = {"attempt": 1, "reserved_usd": None, "most_usd": None}
        written(ledger.path(part, "manifest"), [{"trial_id": trial_id, **unpaid} for trial_id in sent])
    (found,) = export_batches("openai", asked, tmp_path / "rest").models
    assert found.requests == 2


def test_a_form_without_a_place_for_a_model_is_refused_with_the_way_out(asked, tmp_path):
    with pytest.raises(ConfigError, match=r"haiku: form 'openai' has no place.*--models"):
        export_batches("openai", asked, tmp_path / "r")
    with pytest.raises(ConfigError, match="openai, anthropic, nupa"):
        export_batches("azure", asked, tmp_path / "r")
    assert not (tmp_path / "r").exists()
    export_batches("openai", asked, tmp_path / "r", models=["mini"], limit=1)
    with pytest.raises(ConfigError, match="exists already"):
        export_batches("openai", asked, tmp_path / "r", models=["mini"])


# ── results in ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def exported(asked, tmp_path):
    """The requests of one model, and the answer to each."""
    export_batches("openai", asked, tmp_path / "r", models=["mini"])
    folder = tmp_path / "r" / "mini"
    right = {entry["custom_id"]: entry["problem"]["expected"] for entry in json_lines(folder / "map.jsonl")}
    return folder, json_lines(folder / "batch_0.jsonl"), right


def test_an_export_names_the_folders_that_an_import_takes(asked, tmp_path):
    text = export_batches("openai", asked, tmp_path / "r", models=["mini"]).as_text()
    assert f"asyncbench import batch RESULTS --requests {tmp_path / 'r' / 'mini'} --out IMPORTED" in text


def test_results_become_trials_of_a_batch_at_half_the_price_whatever_their_bodies_say(exported, tmp_path):
    folder, requests, right = exported
    lines = [answered(request, right[request["custom_id"]]) for request in reversed(requests)]
    results = written(tmp_path / "batch_0123456789ab_output.jsonl", lines)
    found = import_batches([results], tmp_path / "in", requests=folder)
    assert (found.left_out, [run.trials for run in found.runs]) == ((), [72])
    rows = read_trials(tmp_path / "in").to_pylist()
    assert {row["outcome"] for row in rows} == {"correct"}
    assert {row["trial_id"] for row in rows} == right.keys()
    assert {row["latency_s"] for row in rows} == {None}
    assert {row["service_tier"] for row in rows} == {BATCH}
    rates = rates_for("gpt-5-mini", price=None, vendor="openai", moment=NOON, tier=BATCH)
    half = cost_usd(Usage(input_tokens=1_000, output_tokens=10), rates)
    calls = read_attempts(tmp_path / "in").to_pylist()
    assert {(call["mode"], call["batch_id"], call["cost_usd"]) for call in calls} == {
        (BATCH, "batch_0123456789ab", half)
    }
    assert read_manifest(tmp_path / "in")["runs"]["mini"]["planned"]["mini"].keys() == {"plain"}


def test_importing_again_adds_what_came_later(exported, tmp_path):
    folder, requests, right = exported
    lines = [answered(request, right[request["custom_id"]]) for request in requests]
    first = written(tmp_path / "first.jsonl", lines[:30])
    found = import_batches([first], tmp_path / "in", requests=folder)
    assert found.left_out == ("42 requests have no answer and no error in these files",)
    assert int(found.exit) == 3
    second = written(tmp_path / "second.jsonl", lines[30:])
    (run,) = import_batches([first, second], tmp_path / "in", requests=folder).runs
    assert (run.trials, run.there_before) == (42, 30)


def test_errors_are_attempts_and_what_did_not_run_or_is_strange_is_told(exported, tmp_path):
    folder, requests, right = exported
    good = answered(requests[0], right[requests[0]["custom_id"]])
    foreign = {**good, "custom_id": "of somebody else"}
    out = written(tmp_path / "out.jsonl", [good, good, foreign, {"custom_id": 5}])
    errors = written(tmp_path / "errors.jsonl", [refused(requests[1]), *map(expired, requests[2:])])
    found = import_batches([out, errors], tmp_path / "in", requests=folder)
    rows = {row["trial_id"]: row for row in read_trials(tmp_path / "in").to_pylist()}
    assert len(rows) == 2
    failed = rows[requests[1]["custom_id"]]
    assert (failed["outcome"], failed["error_kind"], failed["cost_usd"]) == ("failed", "too_long", 0.0)
    said = "\n".join(found.left_out)
    assert len(found.left_out) == 5
    for part in ("line 2", "has a result already", "is of no request", "70 requests did not run (expired)"):
        assert part in said


def test_anthropic_s_results_are_read(asked, tmp_path):
    export_batches("anthropic", asked, tmp_path / "r", models=["haiku"], limit=3)
    folder = tmp_path / "r" / "haiku"
    entries = json_lines(folder / "map.jsonl")
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [{"type": "text", "text": entries[0]["problem"]["expected"]}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 20, "output_tokens": 5, "service_tier": "batch"},
    }
    lines = [
        {"custom_id": entries[0]["custom_id"], "result": {"type": "succeeded", "message": message}},
        {"custom_id": entries[1]["custom_id"], "result": {"type": "canceled"}},
        {"custom_id": entries[2]["custom_id"], "result": {"type": "expired"}},
    ]
    found = import_batches([written(tmp_path / "x.jsonl", lines)], tmp_path / "in", requests=folder)
    (row,) = read_trials(tmp_path / "in").to_pylist()
    assert (row["outcome"], row["model"], row["provider"]) == ("correct", "haiku", "anthropic")
    assert row["cost_usd"] == pytest.approx((20 * 1 + 5 * 5) / 2 * 1e-6)
    assert len(found.left_out) == 3


async def test_answers_submitted_by_hand_are_taken_over_by_the_sweep_and_nothing_is_asked(tmp_path):
    asked = sweep(tmp_path / "out", problem_set(tmp_path, trials=1), "simulated/oracle")
    export_batches("openai", asked, tmp_path / "r")
    (folder,) = (tmp_path / "r").iterdir()
    entries = json_lines(folder / "map.jsonl")
    lines = [answered(entry, entry["problem"]["expected"]) for entry in entries]
    import_batches([written(tmp_path / "x.jsonl", lines)], tmp_path / "in", requests=folder)
    await run_sweep(asked, reuse=tmp_path / "in")
    rows = read_trials(tmp_path / "out").to_pylist()
    assert len(rows) == 72
    assert {row["outcome"] for row in rows} == {"correct"}
    assert len(read_attempts(tmp_path / "out")) == 0


def test_requests_without_their_map_are_refused_with_the_way_out(exported, tmp_path):
    folder, requests, right = exported
    results = written(tmp_path / "x.jsonl", [answered(one, right[one["custom_id"]]) for one in requests])
    (folder / "map.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"map\.jsonl: no such file.*export SWEEP --batch-files"):
        import_batches([results], tmp_path / "in", requests=folder)


def test_the_commands_write_and_read_the_same(tmp_path):
    file = sweep_file(tmp_path, problem_set(tmp_path, trials=1), "simulated/oracle")
    done = asyncbench_here("export", file, "--batch-files", "openai", "--out", tmp_path / "r", "--limit", 4)
    assert done.returncode == 0, done.stderr
    assert "4 requests in 1 file," in done.stdout
    (folder,) = Path(tmp_path / "r").iterdir()
    lines = [answered(one, one["problem"]["expected"]) for one in json_lines(folder / "map.jsonl")]
    results = written(tmp_path / "x.jsonl", lines)
    imported = asyncbench_here("import", "batch", results, "--requests", folder, "--out", tmp_path / "in")
    assert imported.returncode == 0, imported.stderr
    assert "4 trials imported" in imported.stdout
    for words in (
        ("import", "batch", results, "--out", tmp_path / "x"),
        ("import", "nupa", results, "--requests", folder, "--out", tmp_path / "x"),
        ("export", "nupa", "--out", tmp_path / "x"),
        ("export", file, tmp_path, "--batch-files", "openai", "--out", tmp_path / "x"),
    ):
        refused_ = asyncbench_here(*words)
        assert refused_.returncode == 2
        assert (
            "--requests" in refused_.stderr
            or "--batch-files" in refused_.stderr
            or "folder" in refused_.stderr
        )


def test_a_benchmark_that_measures_durations_gets_none_of_batches_and_reads_its_file_again(tmp_path):
    problems = tmp_path / "additions.parquet"
    generate("integer_addition", problems, seed=1, tries=2)
    export_batches("openai", sweep(tmp_path / "out", problems, MINI), tmp_path / "r")
    folder = tmp_path / "r" / "mini"
    entries = json_lines(folder / "map.jsonl")
    results = written(tmp_path / "x.jsonl", [answered(one, one["problem"]["expected"]) for one in entries])
    import_batches([results], tmp_path / "in", requests=folder)
    (file,) = export_folder("integer-addition", tmp_path / "in", tmp_path / "files").files
    assert f"{len(entries)} trials have null as their duration: a request of a batch has none" in file.notes
    (run,) = import_files("integer-addition", [file.path], tmp_path / "again").runs
    assert (run.trials, run.left_out) == (len(entries), ())
    assert {row["latency_s"] for row in read_trials(tmp_path / "again").to_pylist()} == {None}


@pytest.mark.parametrize("batch", [0.5, {"input": 1.0, "output": 3.0}, None])
def test_answers_are_priced_as_the_sweep_says_which_the_map_tells(tmp_path, batch):
    own = {"input": 4.0, "output": 20.0, **({} if batch is None else {"batch": batch})}
    entry: dict[str, object] = {**MINI, "price": own}
    export_batches("openai", sweep(tmp_path / "out", problem_set(tmp_path, trials=1), entry), tmp_path / "r")
    folder = tmp_path / "r" / "mini"
    entries = json_lines(folder / "map.jsonl")
    results = written(tmp_path / "x.jsonl", [answered(one, one["problem"]["expected"]) for one in entries])
    import_batches([results], tmp_path / "in", requests=folder)
    rates = (1.0, 3.0) if isinstance(batch, dict) else (4.0 * (batch or 1), 20.0 * (batch or 1))
    for row in read_attempts(tmp_path / "in").to_pylist():
        spent = row["input_tokens"] * rates[0] + row["output_tokens"] * rates[1]
        assert row["cost_usd"] == pytest.approx(spent / 1e6)
