"""Measure the writing and reading of a results folder: `python -m benchmarks.store`.

Each figure is the median of some rounds, in a process of its own where memory is weighed. `--rows` sets the
size of the large folder, `--only read` runs the measurements whose name holds a word.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path

import pyarrow as pa

from asyncbench import iter_trials, read_trials, regrade_folder, run_sweep, sql
from asyncbench.planning.trials import trial_sources, trials_of
from asyncbench.problems.opening import open_set
from asyncbench.store.folder import Store
from benchmarks.rows import json_lines, make_folder, sweep_of

GOLDEN = Path(os.environ.get("ASYNCBENCH_GOLDEN", Path(__file__).resolve().parents[2] / "shared" / "golden"))
BY_MODEL = "SELECT model, task, length, avg(exact_match::INT) AS accuracy FROM trials GROUP BY ALL"
COPIES = 10  # of the large folder's parts make the very large one


def seconds(work: Callable[[], object], *, rounds: int = 3) -> float:
    """Return the median wall-clock time of some work."""
    taken = []
    for _ in range(rounds):
        start_s = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start_s)
    return statistics.median(taken)


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def group_by_in_duckdb(folder: Path) -> None:
    """Accuracy by model, task and length: through our views, as a plain glob, and from JSON Lines."""
    import duckdb

    ours = seconds(lambda: sql(folder, BY_MODEL))
    glob = f"read_parquet('{folder}/trials/**/*.parquet', hive_partitioning = false)"
    plain = seconds(lambda: duckdb.execute(BY_MODEL.replace("trials", glob)).fetchall())
    lines = folder.with_suffix(".jsonl")
    rows = sum(json_lines(folder, lines))
    text = f"read_json('{lines}', format = 'newline_delimited')"
    json_s = seconds(lambda: duckdb.execute(BY_MODEL.replace("trials", text)).fetchall(), rounds=1)
    by_hand = seconds(lambda: _group_json_lines(lines), rounds=1)
    print(f"group-by of {rows:,} rows in DuckDB: {plain:.2f} s; through `ab.sql` {ours:.2f} s (aim < 1)")
    print(f"  the same from JSON Lines: DuckDB {json_s:.2f} s, a Python loop {by_hand:.2f} s")
    lines.unlink()


def _group_json_lines(path: Path) -> Mapping[tuple[str, str, int], float]:
    right, trials = Counter[tuple[str, str, int]](), Counter[tuple[str, str, int]]()
    with path.open() as lines:
        for line in lines:
            row = json.loads(line)
            cell = (row["model"], row["task"], row["length"])
            trials[cell] += 1
            right[cell] += row["exact_match"]
    return {cell: right[cell] / trials[cell] for cell in trials}


def read_to_pandas(folder: Path) -> None:
    """read_trials to pandas: five columns, and all."""
    some = ["model", "task", "length", "outcome", "cost_usd"]
    few = seconds(lambda: read_trials(folder, some).to_pandas())
    every = seconds(lambda: read_trials(folder).to_pandas(), rounds=1)
    print(f"read_trials to pandas: five columns {few:.2f} s, all columns {every:.2f} s")


def stream_ten_times(folder: Path) -> None:
    """A streaming group-by over ten times as many rows, weighed in a process of its own."""
    many = folder.with_name("many")
    many.mkdir()
    (many / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    for path in (folder / "trials").rglob("*.parquet"):
        for n in range(COPIES):
            copy = many / path.relative_to(folder).with_name(f"part-{n + 1:06d}.parquet")
            copy.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, copy)
    for how in ("iter_trials", "sql"):
        figures = _measured(how, many)
        print(
            f"streaming group-by of {figures['rows']:,} rows with {how}: {figures['seconds']:.1f} s, "
            f"peak {figures['peak_mb']:,.0f} MB (aim 1,000)"
        )


def _measured(how: str, folder: Path) -> Mapping[str, float]:
    """Return rows, seconds and MB of one measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.store", "--weigh", how, "--folder", str(folder)]
    figures: Mapping[str, float] = json.loads(
        subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603  our own
    )
    return figures


def _weigh(how: str, folder: Path) -> None:
    start_s = time.perf_counter()
    rows = {"recognise": _recognise, "run": _run}.get(how, partial(_group_streaming, how))(folder)
    took = time.perf_counter() - start_s
    peak = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    print(json.dumps({"rows": rows, "seconds": took, "peak_mb": peak / 1e6}))


def _group_streaming(how: str, folder: Path) -> int:
    trials, right = Counter[str](), Counter[str]()
    if how == "sql":
        for row in sql(folder, "SELECT model, count(*) AS n FROM trials GROUP BY ALL").to_pylist():
            trials[row["model"]] += row["n"]
        sql(folder, BY_MODEL)
    else:
        for batch in iter_trials(folder, ["model", "task", "length", "exact_match"]):
            cells = pa.Table.from_batches([batch]).group_by(["model", "task", "length"])
            for row in cells.aggregate([([], "count_all"), ("exact_match", "sum")]).to_pylist():
                trials[row["model"]] += row["count_all"]
                right[row["model"]] += row["exact_match_sum"]
    return trials.total()


# ── going on ─────────────────────────────────────────────────────────────────────────────────


def resume(folder: Path) -> None:
    """A complete sweep run again: what it takes to know that of every trial, and the whole run."""
    for how in ("recognise", "run"):
        rounds = [_measured(how, folder) for _ in range(3)]
        middle = sorted(rounds, key=itemgetter("seconds"))[1]
        what = {"recognise": "trials recognised as finished", "run": "trials, the whole run"}[how]
        spread = ", ".join(f"{one['seconds']:.1f}" for one in rounds)
        print(
            f"resume: {middle['rows']:,} {what}: {middle['seconds']:.1f} s ({spread}; aim 5), "
            f"peak {middle['peak_mb']:,.0f} MB (aim 500)"
        )


def _recognise(folder: Path) -> int:
    sweep, recognised = sweep_of(folder), 0
    problems = trial_sources([open_set(Path(str(source.path))) for source in sweep.problems])
    with Store.open(folder, sweep=sweep.name) as store:

        def finished(trial_id: str) -> bool:
            nonlocal recognised
            known = trial_id in store.finished
            recognised += known
            return known

        remaining = [
            one
            for model in sweep.models
            for one in trials_of(sweep, model, problems, limit=None, skip=finished)
        ]
    assert not remaining
    return recognised


def _run(folder: Path) -> int:
    summary = asyncio.run(run_sweep(sweep_of(folder)))
    assert summary.exit == 0
    return sum(one.done_before for one in summary.models.values())


# ── grading again ────────────────────────────────────────────────────────────────────────────


def regrade_the_corpus(folder: Path) -> None:
    """All graders of llm_arithmetic over the recorded corpus; CPU of this process, reading included."""
    from asyncbench.upkeep.importing import import_files
    from tests.recorded import write_jsonl

    if not GOLDEN.is_dir():
        print(f"regrade: no recorded corpus at {GOLDEN}; set ASYNCBENCH_GOLDEN")
        return
    published = folder.with_name("published")
    import_files("llm-arithmetic", write_jsonl(GOLDEN, folder.with_name("files")), published)
    _regrade(published, "the recorded corpus")


def regrade_the_large_folder(folder: Path) -> None:
    """The same over the large folder, whose replies are short."""
    _regrade(folder, "the large folder", rounds=1)


def _regrade(folder: Path, what: str, rounds: int = 5) -> None:
    for write in (False, True):
        rates = []
        for _ in range(rounds):
            start_s = time.process_time()
            regraded = regrade_folder(folder, write=write)
            rates.append(regraded.trials / (time.process_time() - start_s))
        how = "regrade --write" if write else "regrade"
        spread = f"({min(rates):,.0f}-{max(rates):,.0f})"
        print(f"{how} of {what}: {statistics.median(rates):,.0f} replies a second and core {spread}")


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def journal_and_parts(folder: Path) -> None:
    """What a trial costs the event loop (three journal lines), and what a part costs the other thread."""
    from tests.store.made import ended, reply, result, sent, trial

    same = trial(0)
    trials = [replace(trial(n), model=same.model, condition=same.condition) for n in range(5000)]
    by_trial = [(sent(one), ended(one, reply(n)), result(one, reply(n))) for n, one in enumerate(trials)]
    events, per_trial, per_row = [event for events in by_trial for event in events], [], []
    for n in range(5):
        with Store.open(folder.with_name(f"journal-{n}"), sweep="night") as store:
            start_s = time.thread_time()
            for event in events:
                store.keep(event)
            per_trial.append((time.thread_time() - start_s) / 5000 * 1e6)
            start_s = time.perf_counter()
        per_row.append((time.perf_counter() - start_s) / 5000 * 1e6)
    spread = f"({min(per_trial):.0f}-{max(per_trial):.0f})"
    print(f"journal: {statistics.median(per_trial):.0f} us of loop time a trial {spread} (aim 20)")
    print(f"parts: {statistics.median(per_row):.0f} us a trial with its grades and calls, in another thread")


def check_and_compact(folder: Path) -> None:
    """Every byte of the large folder read and compared, and its parts made into few."""
    from asyncbench.store.verify import verify_folder

    print(f"verify: {seconds(lambda: verify_folder(folder), rounds=1):.1f} s")
    with Store.reopen(folder) as store:
        start_s = time.perf_counter()
        before, after = store.compact()
        print(f"compact: {before:,} parts into {after:,} in {time.perf_counter() - start_s:.1f} s")


MEASUREMENTS: tuple[Callable[[Path], None], ...] = (
    regrade_the_corpus,
    group_by_in_duckdb,
    read_to_pandas,
    resume,
    stream_ten_times,
    regrade_the_large_folder,
    journal_and_parts,
    check_and_compact,
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the large folder")
    parser.add_argument("--only", default="", help="measurements whose name holds this")
    parser.add_argument("--weigh", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.weigh:
        _weigh(options.weigh, options.folder)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "large"
        start_s = time.perf_counter()
        rows = make_folder(folder, trials=options.rows)
        print(f"a folder of {rows:,} trials was made in {time.perf_counter() - start_s:.0f} s")
        for measure in MEASUREMENTS:
            if options.only in measure.__name__:
                measure(folder)


if __name__ == "__main__":
    main()
