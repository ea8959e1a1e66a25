"""Files into a folder: each a run, each trial once, nothing half-checked, no folder of another kind."""

import gc
import os
from collections import Counter
from pathlib import Path

import pytest

from asyncbench.errors import ConfigError, StoreError
from asyncbench.published.files import RecordedRun
from asyncbench.store.catalog import read_attempts, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.manifest import read_manifest
from asyncbench.upkeep.importing import import_files
from tests.store.disk import disk_for
from tests.sweep_files import contents
from tests.upkeep.exchange.made import jsonl, tables, trial


def brought_in(folder, *files):
    return import_files("llm-arithmetic", files, folder)


def other(**changes):
    return trial(operands=[50, 50], correct=100, raw_response="100", **changes)


# again


def test_importing_a_file_again_changes_no_byte(tmp_path):
    file = jsonl(tmp_path / "a.jsonl", trial(), other())
    brought_in(tmp_path / "results", file)
    before = contents(tmp_path / "results")
    (run,) = brought_in(tmp_path / "results", file).runs
    assert (run.trials, run.there_before) == (0, 2)
    assert contents(tmp_path / "results") == before


def test_of_a_file_that_has_grown_only_what_is_new_is_added(tmp_path):
    brought_in(tmp_path / "results", jsonl(tmp_path / "a.jsonl", trial()))
    ids = set(read_trials(tmp_path / "results")["trial_id"].to_pylist())
    (run,) = brought_in(tmp_path / "results", jsonl(tmp_path / "a.jsonl", trial(), other(), trial())).runs
    assert (run.trials, run.there_before) == (2, 1)
    assert ids < set(read_trials(tmp_path / "results")["trial_id"].to_pylist())
    assert len(read_attempts(tmp_path / "results")) == 3


def test_more_files_are_more_runs_after_those_that_are_there(tmp_path):
    for name in ("b", "a"):
        brought_in(tmp_path / "results", jsonl(tmp_path / f"{name}.jsonl", trial()))
    brought_in(tmp_path / "results", tmp_path / "b.jsonl")
    assert list(read_manifest(tmp_path / "results")["runs"]) == ["b", "a"]
    assert Counter(read_trials(tmp_path / "results")["run"].to_pylist()) == {"a": 1, "b": 1}


def test_a_folder_may_have_another_name_by_then(tmp_path):
    brought_in(tmp_path / "results", jsonl(tmp_path / "a.jsonl", trial()))
    (tmp_path / "results").rename(tmp_path / "published")
    brought_in(tmp_path / "published", jsonl(tmp_path / "b.jsonl", trial()))
    assert set(read_trials(tmp_path / "published")["sweep"].to_pylist()) == {"results"}


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([other()], id="other-trials"),
        pytest.param([trial(model="gpt-y")], id="another-model"),
        pytest.param([trial(depth=99)], id="nothing-usable"),
    ],
)
def test_another_file_of_the_same_name_is_refused_before_anything_is_written(tmp_path, lines):
    brought_in(tmp_path / "results", jsonl(tmp_path / "a.jsonl", trial()))
    before = contents(tmp_path / "results")
    with pytest.raises(
        ConfigError, match=r"a\.jsonl: .* has another run 'a', with 1 trials that this file lacks"
    ):
        brought_in(tmp_path / "results", jsonl(tmp_path / "a.jsonl", *lines))
    assert contents(tmp_path / "results") == before


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"raw_response": "46."}, id="reply"),
        pytest.param({"timestamp": "2026-06-01T05:26:35.723711Z"}, id="time"),
        pytest.param({"cost": 0.0013}, id="cost"),
        pytest.param({"cost": None}, id="cost-unknown"),
        pytest.param({"failed_to_get_reply": True}, id="failed"),
        pytest.param({"tokens": {"prompt_tokens": 30, "completion_tokens": 3}}, id="tokens"),
    ],
)
def test_a_file_that_tells_a_trial_otherwise_is_refused_before_anything_is_written(tmp_path, changed):
    brought_in(tmp_path / "results", jsonl(tmp_path / "a.jsonl", trial(), other()))
    before = contents(tmp_path / "results")
    file = jsonl(tmp_path / "a.jsonl", trial(**changed), other(), trial())
    with pytest.raises(ConfigError) as refused:
        brought_in(tmp_path / "results", file)
    assert str(refused.value) == (
        f"{file}: {tmp_path / 'results'} has another run 'a', with 1 trials that differ in this file. "
        "Rename the file, import it into another folder, or give the same plan as before."
    )
    assert contents(tmp_path / "results") == before


def test_what_is_lost_and_what_is_told_otherwise_is_counted_apart(tmp_path):
    brought_in(tmp_path / "results", jsonl(tmp_path / "a.jsonl", trial(), other()))
    with pytest.raises(ConfigError, match=r"1 trials that this file lacks and 1 trials that differ in this"):
        brought_in(tmp_path / "results", jsonl(tmp_path / "a.jsonl", trial(cost=1)))


def test_files_before_one_that_is_refused_are_kept_and_it_says_so(tmp_path):
    brought_in(tmp_path / "results", jsonl(tmp_path / "a.jsonl", trial()))
    files = jsonl(tmp_path / "new.jsonl", trial()), jsonl(tmp_path / "a.jsonl", other())
    with pytest.raises(ConfigError, match=r"this file lacks.*The files before it were imported"):
        brought_in(tmp_path / "results", *files, jsonl(tmp_path / "later.jsonl", trial()))
    assert set(read_trials(tmp_path / "results")["run"].to_pylist()) == {"a", "new"}
    assert list(read_manifest(tmp_path / "results")["runs"]) == ["a", "new"]


def test_text_that_the_tables_cannot_hold_is_no_other_text_the_second_time(tmp_path):
    file = jsonl(tmp_path / "a.jsonl", trial(raw_response="half a pair: \ud83d"))
    for there_before in (0, 1):
        (run,) = brought_in(tmp_path / "results", file).runs
        assert run.there_before == there_before


@pytest.mark.parametrize("bytes_left", [20_000, 30_500, 41_000, 51_500])
def test_an_import_that_was_cut_short_is_completed_and_nothing_stands_twice(tmp_path, bytes_left):
    file = jsonl(tmp_path / "a.jsonl", *[trial()] * 40)
    brought_in(tmp_path / "whole" / "results", file)
    with disk_for(bytes_left), pytest.raises(StoreError):
        brought_in(tmp_path / "results", file)
    brought_in(tmp_path / "results", file)
    assert tables(tmp_path / "results") == tables(tmp_path / "whole" / "results")


# which files


def test_a_folder_means_its_files_by_name(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "notes.txt", ".hidden.jsonl"):
        jsonl(tmp_path / name, trial())
    last = jsonl(tmp_path / "elsewhere.jsonl", trial()).rename(tmp_path / "0.txt")
    done = brought_in(tmp_path / "results", tmp_path, last)
    assert [run.run for run in done.runs] == ["a", "b", "0.txt"]


def test_any_file_name_can_be_a_run(tmp_path):
    name = "gpt 4.1:0 = 50 % × ÷"
    brought_in(tmp_path / "results", jsonl(tmp_path / f"{name}.jsonl", trial()))
    assert read_trials(tmp_path / "results")["run"].to_pylist() == [name]
    assert [path.name.isascii() for path in (tmp_path / "results" / "problems").iterdir()] == [True]


def bad(tmp_path):
    return jsonl(tmp_path / "bad.jsonl", 7, 8)


def test_a_file_without_a_usable_line_stops_no_other_and_leaves_its_trace(tmp_path):
    done = brought_in(tmp_path / "results", bad(tmp_path), jsonl(tmp_path / "good.jsonl", trial()))
    assert [(run.run, run.trials, len(run.left_out)) for run in done.runs] == [("bad", 0, 2), ("good", 1, 0)]
    runs = read_manifest(tmp_path / "results")["runs"]
    assert list(runs) == ["bad", "good"]
    assert runs["bad"] == {"file": "bad.jsonl", "format": "llm-arithmetic", "left_out": 2, "planned": {}}


def test_it_leaves_its_trace_alone_as_well_in_a_folder_that_is_there(tmp_path):
    brought_in(tmp_path / "results", jsonl(tmp_path / "good.jsonl", trial()))
    done = brought_in(tmp_path / "results", bad(tmp_path))
    assert done.exit == 3
    assert read_manifest(tmp_path / "results")["runs"]["bad"]["left_out"] == 2


def test_a_file_that_has_become_usable_is_a_run_like_any_other(tmp_path):
    brought_in(tmp_path / "results", bad(tmp_path), jsonl(tmp_path / "good.jsonl", trial()))
    brought_in(tmp_path / "results", jsonl(tmp_path / "bad.jsonl", trial()))
    assert read_manifest(tmp_path / "results")["runs"]["bad"]["left_out"] == 0
    assert set(read_trials(tmp_path / "results")["run"].to_pylist()) == {"bad", "good"}


def test_each_file_is_read_once_when_no_other_is_held_any_more(tmp_path, monkeypatch):
    files = [jsonl(tmp_path / f"{name}.jsonl", trial()) for name in "abc"]
    brought_in(tmp_path / "results", *files[1:])
    seen, read_bytes = [], Path.read_bytes
    gc.freeze()  # what other tests have made is not looked through

    def read(path):
        if path in files:
            gc.collect()
            seen.append((path.name, sum(type(one) is RecordedRun for one in gc.get_objects())))
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    brought_in(tmp_path / "results", *files)
    assert seen == [("a.jsonl", 0), ("b.jsonl", 0), ("c.jsonl", 0)]


def missing(tmp_path):
    return jsonl(tmp_path / "a.jsonl", trial()), tmp_path / "b.jsonl"


def twice(tmp_path):
    (tmp_path / "more").mkdir()
    return jsonl(tmp_path / "a.jsonl", trial()), jsonl(tmp_path / "more" / "a.jsonl", trial())


def an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    return (tmp_path / "empty",)


def only_bad_lines(tmp_path):
    return jsonl(tmp_path / "a.jsonl", 7), jsonl(tmp_path / "b.jsonl", 8)


def a_name_that_is_too_long(tmp_path):
    return (jsonl(tmp_path / f"{'÷' * 60}.jsonl", trial()),)


def a_name_that_is_no_text(tmp_path):
    return (jsonl(tmp_path / os.fsdecode(b"\xff.jsonl"), trial()),)


def a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    return jsonl(tmp_path / "a.jsonl", trial()), tmp_path / "pipe.jsonl"


def a_folder_that_is_named_like_a_file(tmp_path):
    (tmp_path / "odd.jsonl").mkdir()
    return (tmp_path,)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        pytest.param(a_pipe, r"pipe\.jsonl is not a regular file\. Save", id="pipe"),
        pytest.param(a_folder_that_is_named_like_a_file, r"odd\.jsonl is not a regular file", id="folder"),
        pytest.param(missing, r"b\.jsonl: No such file", id="missing"),
        pytest.param(twice, r"a\.jsonl and .*more/a\.jsonl would both be run 'a'", id="twice"),
        pytest.param(an_empty_folder, r"empty has no \.jsonl files", id="empty-folder"),
        pytest.param(
            only_bad_lines, r"Nothing can be imported: .*a\.jsonl, line 1: 7 is not", id="only-bad-lines"
        ),
        pytest.param(lambda tmp_path: (jsonl(tmp_path / "a.jsonl"),), "the file is empty", id="no-lines"),
        pytest.param(a_name_that_is_too_long, "longer than 200 characters", id="long-name"),
        pytest.param(a_name_that_is_no_text, r"not UTF-8 text\. Rename", id="name-no-text"),
    ],
)
def test_files_are_checked_before_anything_is_written(tmp_path, files, why):
    with pytest.raises(ConfigError, match=why):
        brought_in(tmp_path / "results", *files(tmp_path))
    assert not (tmp_path / "results").exists()


def test_a_format_that_does_not_exist_is_refused_with_those_that_do(tmp_path):
    with pytest.raises(
        ConfigError, match=r"no format 'csv'\. Choose one of: llm-arithmetic, integer-addition"
    ):
        import_files("csv", [tmp_path], tmp_path / "results")


# which folders


@pytest.mark.parametrize("out", ["file", "file/results"])
def test_a_file_is_no_results_folder_nor_above_one(tmp_path, out):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=r"/file is not a folder\. Name a folder, or a new one\."):
        brought_in(tmp_path / out, jsonl(tmp_path / "a.jsonl", trial()))


def test_a_sweep_s_folder_is_refused(tmp_path):
    Store.open(tmp_path / "results", sweep="results").close()
    before = contents(tmp_path / "results")
    with pytest.raises(ConfigError, match="holds the results of a sweep, and nothing can be imported there"):
        brought_in(tmp_path / "results", jsonl(tmp_path / "a.jsonl", trial()))
    assert contents(tmp_path / "results") == before
