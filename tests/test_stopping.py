"""A sweep that stops what is known well enough, against the simulator: what is asked, kept and told."""

import gc
import json
from collections import Counter, defaultdict
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from asyncbench import generate, read_skipped, read_trials
from asyncbench.analysis.cells import keep_skips
from asyncbench.analysis.counting import counted
from asyncbench.config.sweep import as_mapping, sweep_from
from asyncbench.engine.stopping import stop_at
from asyncbench.errors import ConfigError
from asyncbench.planning.skipping import Before, SettledTrials
from asyncbench.planning.sweep_plan import plan
from asyncbench.problems.opening import open_set
from asyncbench.records import Outcome, StopWhen
from asyncbench.reports.overview import overview_of
from asyncbench.reports.standings.report import standings_of
from asyncbench.reports.status.report import status_of
from asyncbench.reports.status.run_overview import run_overview_of
from asyncbench.run.summary import Exit
from asyncbench.stats.always_valid import always_valid_interval
from asyncbench.store.verify import verify_folder
from tests.sweep_files import Said, entry, outcomes, run, simulator, sweep

ORACLE, NOISY = "simulated-http/oracle", "simulated-http/noisy"
ALIKE = {"saturated": 0.2}  # 19 answers that are all alike
OF_A_CELL = 60
PLANNED = 4 * OF_A_CELL


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """Four cells of sixty problems."""
    path = tmp_path_factory.mktemp("sets") / "problems.parquet"
    generate("llm_arithmetic", path, seed=5, trials=OF_A_CELL, variants="int_add,int_sub", depths="3,8")
    return path


@pytest.fixture
def asking(tmp_path, problems, server):
    """Runs a sweep of one model under a rule; returns its summary and how many requests it took."""

    def ask(out="out", *, model=ORACLE, retry=(), server=server, limit=None, **keys):
        before = server.stats()["requests"]
        asked = entry(server, model, alias="m", concurrency=1, price={"input": 1, "output": 1}, max_tokens=64)
        planned = sweep(tmp_path / out, problems, asked, **keys)
        summary = run(planned, retry=retry, limit=limit)
        return summary, server.stats()["requests"] - before

    return ask


@pytest.fixture(scope="module")
def other_server(problems):
    """As `server`, but noisy models err on other problems."""
    with simulator(problems, seed=1) as found:
        yield found


def by_cell(table):
    return Counter((row["task"], row["length"]) for row in table.to_pylist())


def test_each_cell_is_asked_until_it_is_known_and_the_rest_is_written_down(asking, tmp_path):
    out = tmp_path / "out"
    summary, requests = asking(stop_when=ALIKE)
    asked, skipped = by_cell(read_trials(out)), by_cell(read_skipped(out))
    assert set(asked.values()) == {19}
    assert asked + skipped == dict.fromkeys(asked, OF_A_CELL)
    assert len(asked) == 4
    assert requests == asked.total() == PLANNED - skipped.total()
    assert summary.exit is Exit.COMPLETE
    assert summary.models["m"].skipped == skipped.total()
    assert f"{skipped.total():,} skipped by stop_when" in summary.as_text()
    assert verify_folder(out).sound
    assert {(r["rule"], r["asked"], r["correct"], r["high"]) for r in read_skipped(out).to_pylist()} == {
        ("saturated 0.2", 19, 19, 1.0)
    }


def test_another_run_asks_nothing_and_is_complete(asking, tmp_path):
    asking(stop_when=ALIKE)
    rows = read_skipped(tmp_path / "out").to_pylist()
    again, requests = asking(stop_when=ALIKE)
    assert (again.exit, requests) == (Exit.COMPLETE, 0)
    assert again.models["m"].skipped == len(rows)
    assert read_skipped(tmp_path / "out").to_pylist() == rows


def test_people_are_told_of_what_was_skipped_and_that_nothing_is_open(asking, tmp_path):
    note = tmp_path / "told.json"
    notify = {"command": ["sh", "-c", 'cat > "$0"', str(note)]}
    for limit in (None, 100):
        summary, _ = asking(stop_when=ALIKE, notify=notify, limit=limit)
        told, skipped = json.loads(note.read_text()), summary.models["m"].skipped
        assert skipped > 0
        assert (told["exit"], told["left_open"], told["skipped"]) == (0, 0, skipped)
        assert told["models"]["m"]["skipped"] == skipped
        assert f", {skipped:,} skipped (stop_when)" in told["text"]


@pytest.mark.long
def test_a_stricter_rule_asks_on_and_tells_the_rest_by_its_own_measure(asking, tmp_path):
    out = tmp_path / "out"
    _, before = asking(stop_when=ALIKE)
    summary, requests = asking(stop_when={"saturated": 0.1})
    assert summary.exit is Exit.COMPLETE
    assert set(by_cell(read_trials(out)).values()) == {41}
    assert set(read_skipped(out)["asked"].to_pylist()) == {41}
    assert len(outcomes(out)) == before + requests == PLANNED - len(read_skipped(out))
    looser, requests = asking(stop_when=ALIKE)
    assert (looser.exit, requests) == (Exit.COMPLETE, 0)


def test_cells_that_are_mixed_stop_where_a_replay_of_the_rule_stops_them(asking, tmp_path, problems):
    out, when = tmp_path / "out", StopWhen(ci_width=0.45, saturated=0.2)
    asking(model=NOISY, stop_when={"ci_width": 0.45, "saturated": 0.2})
    right = {row["problem_id"]: row["exact_match"] for row in read_trials(out).to_pylist()}
    skipped, planned = defaultdict(set), defaultdict(list)
    for row in read_skipped(out).to_pylist():
        skipped[row["task"], row["length"]].add((row["rule"], row["asked"], row["correct"]))
    for one in open_set(problems).read():
        planned[one.task, one.length].append(one.problem_id)
    for cell, ids in planned.items():
        assert skipped[cell] == replayed(when, ids, right)
    assert len({asked for found in skipped.values() for _, asked, _ in found}) > 2


def cells_known(out, when, problems):
    """What a replay of the rule over a folder's closed trials says of each cell that it stops.

    In a cell whose last trials were in flight when the rule stopped it, nothing was left to skip.
    """
    closed = read_trials(out).to_pylist()
    right = {row["problem_id"]: row["exact_match"] for row in closed}
    failed = {row["problem_id"] for row in closed if row["outcome"] == "failed"}
    planned = defaultdict(list)
    for one in open_set(problems).read():
        if one.problem_id not in failed:
            planned[one.task, one.length].append(one.problem_id)
    found = {cell: replayed(when, ids, right) for cell, ids in planned.items()}
    return {cell: said for cell, said in found.items() if said and not right.keys() >= set(planned[cell])}


def cells_skipped(out):
    """What the rows of each cell say that the rule in force skips."""

    def look(views):
        keep_skips(views)
        return views.rows("SELECT task, length, rule, asked, correct FROM held_skips")

    found = defaultdict(set)
    for row in counted(out, look):
        found[row["task"], row["length"]].add((row["rule"], row["asked"], row["correct"]))
    return found


def replayed(when, ids, right):
    """What the rule says of a cell, looked at after every answer in the planned order."""
    for asked in range(1, len(ids)):
        if ids[asked - 1] not in right:
            break
        correct = sum(right[one] for one in ids[:asked])
        if stop := stop_at(when, correct, asked):
            return {(stop.rule, stop.asked, stop.correct)}
    return set()


@pytest.mark.long
def test_every_ranking_says_that_trials_were_skipped(asking, tmp_path):
    out = tmp_path / "out"
    asking(stop_when=ALIKE)
    assert "trials were skipped" in counted(out, standings_of).as_text(width=200)
    assert "trials skipped (stop_when)" in counted(out, run_overview_of).as_text(width=200)


MIXED = {"ci_width": 0.45, "saturated": 0.2}


@pytest.mark.long
def test_what_is_known_of_a_cell_is_worked_out_again_when_failed_trials_were_answered(tmp_path, problems):
    out, once = tmp_path / "out", {"alias": "m", "concurrency": 4, "retry": {"attempts": 1}}
    for faults, retry in ((("500=0.15",), ()), ((), (Outcome.FAILED,))):
        with simulator(problems, faults=faults) as server:
            planned = sweep(out, problems, entry(server, NOISY, **once), stop_when=MIXED)
            run(planned, retry=retry)
        assert cells_skipped(out) == cells_known(out, StopWhen(**MIXED), problems)
    assert not Counter(outcomes(out).values())["failed"]
    for row in read_skipped(out).to_pylist():
        assert (row["low"], row["high"]) == always_valid_interval(row["correct"], row["asked"])


@pytest.mark.long
def test_a_cell_that_new_answers_make_less_known_is_open_until_it_is_asked_on(
    asking, tmp_path, problems, other_server
):
    out = tmp_path / "out"
    asking(model=NOISY, stop_when=MIXED)
    before = len(read_skipped(out))
    summary, _ = asking(model=NOISY, stop_when=MIXED, retry=[Outcome.CORRECT], server=other_server)
    assert cells_skipped(out) == cells_known(out, StopWhen(**MIXED), problems)
    one, status = summary.models["m"], status_of(out)
    assert (summary.exit, one.open) == (Exit.UNFINISHED, status.lapsed)
    assert (status.models[0].skipped, status.models[0].open) == (one.skipped, one.open)
    assert 0 < one.open == before - one.skipped
    assert verify_folder(out).sound
    assert len(read_skipped(out)) == len(pq.read_table(out / "skipped")) == before
    planned = sweep(out, problems, entry(other_server, NOISY, alias="m", max_tokens=64), stop_when=MIXED)
    assert plan(planned).models[0].left == one.open
    again, requests = asking(model=NOISY, stop_when=MIXED, server=other_server)
    assert (again.exit, again.models["m"].open) == (Exit.COMPLETE, 0)
    assert 0 < requests <= one.open
    assert status_of(out).lapsed == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("keys", "faults", "exit_code"),
    [({"budget_usd": 0.0018}, (), Exit.BUDGET), ({}, ("dead_key=0.02",), Exit.UNFINISHED)],
    ids=["of its budget, where all it takes is $0.0028", "of a model suspended after 63 answers"],
)
def test_a_run_that_ends_early_writes_down_all_of_the_cells_that_it_knows(
    asking, tmp_path, problems, keys, faults, exit_code
):
    out = tmp_path / "out"
    with simulator(problems, faults=faults) as server:
        summary, _ = asking(model=NOISY, stop_when=MIXED, server=server, **keys)
    known = cells_known(out, StopWhen(**MIXED), problems)
    asked, skipped = by_cell(read_trials(out)), by_cell(read_skipped(out))
    assert summary.exit is exit_code
    assert 0 < len(known) < 4
    assert skipped == {cell: OF_A_CELL - asked[cell] for cell in known}
    one, status = summary.models["m"], status_of(out).models[0]
    assert (one.skipped, one.open) == (status.skipped, status.open)
    assert one.open == PLANNED - asked.total() - skipped.total() > 0


@pytest.mark.long
def test_before_a_run_works_out_what_is_skipped_it_says_so_and_lets_go_of_what_it_knew(
    asking, tmp_path, problems, monkeypatch
):
    found, look_through = [], SettledTrials.read

    def known():
        gc.collect()
        return {id(one) for one in gc.get_objects() if type(one) is Before}

    def watched(folder):
        found.append((len(known() - others), screen.lines[-1]))
        return look_through(folder)

    asking(model=NOISY, stop_when=MIXED, limit=80)
    others = known()  # of other tests
    screen = Said()
    monkeypatch.setattr(SettledTrials, "read", watched)
    with simulator(problems) as server:
        asked = entry(server, NOISY, alias="m", concurrency=1, price={"input": 1, "output": 1}, max_tokens=64)
        planned = sweep(tmp_path / "out", problems, asked, stop_when=MIXED, budget_usd=0.0018)
        run(planned, screen=screen)
    assert found == [(0, "working out which trials are skipped")]


def test_repeats_of_a_known_cell_are_skipped_and_do_not_count_for_it(asking, tmp_path):
    summary, requests = asking(stop_when=ALIKE, repeats=2)
    assert summary.exit is Exit.COMPLETE
    assert requests == 4 * 19
    assert Counter(read_skipped(tmp_path / "out")["repeat"].to_pylist())[1] == PLANNED


def test_answers_taken_over_count_at_their_place(asking, tmp_path, problems, server):
    asking("first", stop_when={"saturated": 0.3})
    taken = len(outcomes(tmp_path / "first"))
    planned = sweep(
        tmp_path / "second",
        problems,
        entry(server, ORACLE, alias="m", concurrency=1, max_tokens=64),
        stop_when=ALIKE,
        name="other",
    )
    run(planned, reuse=tmp_path / "first")
    asked = read_trials(tmp_path / "second").to_pylist()
    assert sum(row["reused_from"] is not None for row in asked) == taken > 0
    assert len(asked) == 4 * 19


# ── what is told of it ───────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, problems, server):
    """The folder of a sweep of which one model was stopped and one was not."""
    out = tmp_path_factory.mktemp("told") / "out"
    first = entry(server, ORACLE, alias="m", concurrency=1)
    run(sweep(out, problems, first, stop_when=ALIKE))
    both = [first, entry(server, NOISY, alias="n", concurrency=1)]
    planned = sweep(out, problems, *both, stop_when={"saturated": 0.2})
    run(planned)
    return out, planned


@pytest.mark.long
def test_status_tells_what_was_skipped_and_counts_none_of_it_as_open(stopped):
    out, _ = stopped
    one, _ = status_of(out).models
    assert (one.planned, one.done + one.skipped, one.open) == (PLANNED, PLANNED, 0)
    assert one.skipped == Counter(read_skipped(out)["model"].to_pylist())["m"] > 0
    assert "skipped" in status_of(out).as_text().splitlines()[2]
    assert f"{one.skipped:,} skipped" in status_of(out).as_line()


@pytest.mark.long
def test_the_report_marks_stopped_cells_and_gives_their_always_valid_interval(stopped):
    out, _ = stopped
    report, skipped = counted(out, overview_of), read_skipped(out)
    lines = {line.model: line for line in report.suites}
    assert lines["m"].skipped == Counter(skipped["model"].to_pylist())["m"]
    mine = [one for one in report.stopped if one["model"] == "m"]
    assert [(one["trials"] + one["skipped"], one["asked"], one["low"]) for one in mine] == [
        (OF_A_CELL, 19, always_valid_interval(19, 19).low)
    ] * 4
    text = report.as_text(width=200)
    assert f"`stop_when` skipped {len(skipped):,} trials of {len(report.stopped)} cells" in text
    assert "too narrow" in text
    assert f"100.0% ({100 * always_valid_interval(19, 19).low:.1f}-100.0)" in text
    (row,) = [line for line in text.split("Accuracy by task")[0].splitlines() if line.startswith("m ")]
    assert f"{PLANNED}" in row
    assert ")*" in row
    assert "Stopped cells" in report.as_markdown()


@pytest.mark.long
@pytest.mark.parametrize("rule", [None, {"saturated": 0.01}], ids=["none", "a stricter one"])
def test_what_a_rule_no_longer_in_force_skipped_counts_as_open(asking, tmp_path, rule):
    out = tmp_path / "out"
    asking(stop_when=ALIKE)
    asked, skipped = len(read_trials(out)), len(read_skipped(out))
    asking(limit=1, **({} if rule is None else {"stop_when": rule}))
    status, report, standings = status_of(out), counted(out, overview_of), counted(out, standings_of)
    assert (status.lapsed, report.lapsed, standings.lapsed) == (skipped, skipped, skipped)
    (one,), (line,) = status.models, report.suites
    assert (one.planned, one.skipped, one.open) == (PLANNED, 0, PLANNED - asked)
    assert (line.planned, line.skipped, line.open) == (PLANNED, 0, PLANNED - asked)
    assert (report.stopped, standings.skipped) == ((), 0)
    for text in (status.as_text(), report.as_text(width=200), standings.as_text(width=200)):
        assert text.count(f"Earlier runs skipped {skipped:,} trials that") == 1
    assert "*" not in report.as_text(width=200)
    asking(limit=1, stop_when=ALIKE)
    status, report = status_of(out), counted(out, overview_of)
    assert (status.lapsed, status.models[0].skipped, status.models[0].open) == (0, skipped, 0)
    assert (report.lapsed, report.suites[0].skipped, report.suites[0].open) == (0, skipped, 0)


def test_the_report_tells_what_is_planned_asked_skipped_and_open(asking, tmp_path):
    out = tmp_path / "out"
    asking(stop_when=ALIKE, limit=100)
    report = counted(out, overview_of)
    (line,) = report.suites
    assert (line.planned, line.trials, line.skipped, line.open) == (PLANNED, 76, 24, PLANNED - 100)
    (row,) = [one for one in report.as_text(width=200).splitlines() if one.startswith("m  ")][:1]
    assert row.split()[2:6] == [str(PLANNED), "76", "24", str(PLANNED - 100)]


@pytest.mark.long
def test_a_plan_counts_nothing_that_was_skipped(stopped):
    _, planned = stopped
    one, _ = plan(planned).models
    assert (one.trials, one.left) == (one.done, 0)


@pytest.mark.long
def test_a_plan_counts_what_a_stricter_rule_asks_after_all(stopped):
    out, planned = stopped
    one, _ = plan(replace(planned, stop_when=StopWhen(saturated=0.01))).models
    assert one.left == Counter(read_skipped(out)["model"].to_pylist())["m"]
    looser, _ = plan(replace(planned, stop_when=StopWhen(saturated=0.5))).models
    assert looser.left == 0


# ── the sweep file ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "has no rule"),
        ({"ci_width": 1}, "less than 1"),
        ({"saturated": 0}, "0.001"),
        ({"ci_width": 1e-200}, "0.001"),
        ({"width": 0.1}, "unknown key 'width'. Did you mean 'ci_width'?"),
        (0.05, "must be a mapping of keys to values, not 0.05"),
    ],
)
def test_a_rule_that_is_none_is_refused(tmp_path, problems, given, complaint):
    with pytest.raises(ConfigError, match=complaint) as refused:
        sweep(tmp_path, problems, ORACLE, stop_when=given)
    assert "stop_when" in str(refused.value)


@pytest.mark.parametrize(
    "given", [{"ci_width": 0.05}, {"saturated": 0.02}, {"ci_width": 0.1, "saturated": 0.05}]
)
def test_a_rule_is_read_and_written_down_again(tmp_path, problems, given):
    planned = sweep(tmp_path, problems, ORACLE, stop_when=given)
    assert planned.stop_when == StopWhen(**given)
    assert as_mapping(planned)["stop_when"] == given
    assert sweep_from(as_mapping(planned)) == planned
    assert "stop_when" not in as_mapping(sweep(tmp_path, problems, ORACLE))
