"""Measure reports, plans and complete runs, in seconds and megabytes: `python -m benchmarks.report`.

Each command runs as a user would start it, in a process of its own, starting and imports included; memory is
the most that it held. `first` is without kept counts, `next` with those that the first one kept. Folders: the
recorded llm_arithmetic corpus, imported, and a made-up night. `--trials 1000000 10000000` makes a night of
each size, `--only compare` measures the commands whose name holds a word.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asyncbench.analysis.entrants import names_of
from asyncbench.analysis.kept import COUNTS
from asyncbench.reports.styles import STYLES
from asyncbench.store.manifest import SWEEP_FILE, planned, read_manifest
from asyncbench.upkeep.importing import import_files
from benchmarks.night import make_night
from tests.recorded import write_jsonl

GOLDEN = Path(os.environ.get("ASYNCBENCH_GOLDEN", Path(__file__).resolve().parents[2] / "shared" / "golden"))
UNFINISHED = 3  # the exit code of a run some of whose trials failed, as in a made-up night


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a command took."""

    seconds: float
    cpu_s: float
    peak_bytes: int
    printed_bytes: int
    complaint: str | None  # why there is no figure; None: there is


def commands(folder: Path, page: Path) -> dict[str, list[str]]:
    """Return the commands to measure, by name; `page` is where the page goes.

    Compared without pairs as well: the recorded runs have hardly a problem in common.
    """
    first, second = two_of(folder)
    plain, here = ["report", str(folder)], [first, second, str(folder)]
    return {
        "status": ["status", str(folder)],
        "status --verify": ["status", str(folder), "--verify"],
        "report": plain,
        **{
            f"report --style {style}": [*plain, "--style", style]
            for style, record in STYLES.items()
            if style and not record.single
        },
        "report --where": [*plain, "--where", "length > 5"],
        "compare A B": ["compare", *here],
        "compare A B --unpaired": ["compare", *here, "--unpaired"],
        "report --html": [*plain, "--html", "--out", str(page)],
        "export inspect": ["export", "inspect", str(folder), "--out", str(page.with_name("exported"))],
        **of_the_sweep(folder, page.with_name("fresh.yaml")),
    }


def of_the_sweep(folder: Path, fresh: Path) -> dict[str, list[str]]:
    """Return what is asked of a folder's sweep, which is complete; `fresh` is a copy without results."""
    kept = folder / SWEEP_FILE
    if not kept.exists():
        return {}
    fresh.write_text(kept.read_text().replace(f"out: {folder}\n", f"out: {fresh.with_suffix('')}\n"))
    return {
        "plan (fresh)": ["plan", str(fresh)],
        "plan (complete)": ["plan", str(kept)],
        "run (complete)": ["run", str(kept), "--quiet"],
    }


def two_of(folder: Path) -> tuple[str, str]:
    """Return the names of the last two that were asked: of a made-up night, the best."""
    *_, first, second = names_of(list(planned(read_manifest(folder)))).values()
    return first, second


def cost_of(words: list[str], place: Path) -> Cost:
    """Return what a command takes; `place` is a folder for what it leaves behind."""
    peak_file, printed = place / "peak", place / "printed"
    command = [sys.executable, "-m", "benchmarks.weighed", str(peak_file), *words]
    with printed.open("wb") as out:
        start_s, start_cpu_s = time.perf_counter(), _cpu_s()
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=False)  # noqa: S603  our own
        took_s, cpu_s = time.perf_counter() - start_s, _cpu_s() - start_cpu_s
    lines = done.stderr.decode().strip().splitlines()
    return Cost(
        seconds=took_s,
        cpu_s=cpu_s,
        peak_bytes=int(peak_file.read_text()),
        printed_bytes=printed.stat().st_size,
        complaint=None if done.returncode in (0, UNFINISHED) else (lines or ["no word"])[-1],
    )


def _cpu_s() -> float:
    """Return the CPU time of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(folder: Path, *, only: str, rounds: int) -> Iterator[str]:
    """Yield a line for each command over a folder."""
    yield f"{'command':<34}{'seconds':>9}  {'(least-most)':<14}{'CPU s':>7}{'peak MB':>9}{'written':>12}"
    with tempfile.TemporaryDirectory() as made:
        page = Path(made) / "report.html"
        for name, words in commands(folder, page).items():
            if only in name:
                shutil.rmtree(folder / COUNTS, ignore_errors=True)
                for time_of, times in (("first", 1), ("next", rounds)):
                    costs = [cost_of(words, Path(made)) for _ in range(times)]
                    written = page.stat().st_size if "--html" in name and page.exists() else None
                    line = _figures_line(costs, written or costs[0].printed_bytes)
                    yield f"{f'{name}, {time_of}':<34}{line}"


def _figures_line(costs: list[Cost], size: int) -> str:
    for cost in costs:
        if cost.complaint is not None:
            return f"  not measured: {cost.complaint}"
    taken = [cost.seconds for cost in costs]
    spread = f"({min(taken):.1f}-{max(taken):.1f})"
    cpu_s = statistics.median(cost.cpu_s for cost in costs)
    peak = max(cost.peak_bytes for cost in costs)
    return f"{statistics.median(taken):>9.1f}  {spread:<14}{cpu_s:>7.1f}{peak / 1e6:>9,.0f}{_size(size):>12}"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def corpus(place: Path) -> Path | None:
    """Import the recorded runs; None: they are not here."""
    if not GOLDEN.is_dir():
        return None
    import_files("llm-arithmetic", write_jsonl(GOLDEN, place / "files"), place / "corpus")
    return place / "corpus"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, nargs="*", default=[1_000_000], help="of each made-up night")
    parser.add_argument("--models", type=int, default=20, help="of the night")
    parser.add_argument("--rounds", type=int, default=1, help="of each command; the median is printed")
    parser.add_argument("--only", default="", help="commands whose name holds this")
    parser.add_argument("--folder", type=Path, help="a results folder to measure instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        for name, folder in _folders(Path(place), options):
            print(name, flush=True)
            for line in measure(folder, only=options.only, rounds=options.rounds):
                print(line, flush=True)


def _folders(place: Path, options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    if options.folder is not None:
        yield str(options.folder), options.folder
        return
    if (recorded := corpus(place)) is None:
        print(f"no recorded corpus at {GOLDEN}; set ASYNCBENCH_GOLDEN")
    else:
        yield "the recorded corpus", recorded
    for trials in options.trials:
        start_s, night = time.perf_counter(), place / f"night-{trials}"
        rows = make_night(night, trials=trials, models=options.models)
        yield f"a night of {rows:,} trials, made in {time.perf_counter() - start_s:.0f} s", night
        shutil.rmtree(night)


if __name__ == "__main__":
    main()
