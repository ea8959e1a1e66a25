"""Our figures of a load beside guidellm's, on the same simulated server, by the same formulas.

    GUIDELLM=/path/to/bin/guidellm python -m benchmarks.side_by_side [--rounds 5] [--url http://127.0.0.1:8000]
    GUIDELLM=/path/to/bin/guidellm python -m benchmarks.side_by_side --concurrency 1,2,4,8

guidellm needs an environment of its own: `pip install guidellm`. Without it, nothing is measured. In each
round both tools ask the same questions at the same constant rates, or by as many callers, in turns. Each asks
a new server that draws the same times. `--url` asks a server of your own instead, with `--model`, `--params`
and `--capacity`. All figures are worked out of rows: our table `attempts`, and `info.timings` of guidellm's
JSON.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import pyarrow.parquet as pq

import asyncbench as ab
from asyncbench.lanes.load.measuring import percentile
from asyncbench.simulator.process import running
from asyncbench.simulator.settings import Settings

SLOTS, SERVICE_S = 8, 0.4
CAPACITY: Final = SLOTS / SERVICE_S  # calls a second
SHARES: Final = (0.2, 0.5, 0.8)
WARMUP_S, MEASURED_S = 2.0, 12.0
FIGURES: Final = ("server_ttft", "tpot", "latency")
Times = dict[str, list[float]]  # seconds of all counted calls, by the name of a figure
Steps = dict[float, Times]  # by rate


@contextmanager
def server(problems: Path, seed: int, service: str, url: str | None) -> Iterator[str]:
    """Yield the address of a server, without /v1."""
    if url is not None:
        yield url
        return
    settings = Settings(
        problems=(problems,),
        seed=seed,
        slots=SLOTS,
        latency_s=SERVICE_S,
        service=service,
        chunks=8,
    )
    with running(settings) as simulator:
        yield simulator.url


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What both tools ask, and how often."""

    model: str
    params: Mapping[str, object]
    rates: Sequence[float]  # calls a second; of callers: how many
    callers: bool
    problems: Path
    prompts: Path  # the same questions


def ours(url: str, asking: Asking, out: Path) -> Steps:
    """Load a server with asyncbench, and return its times."""
    load = {
        "arrivals": "closed" if asking.callers else "constant",
        "rates": list(asking.rates),
        "order": "rising",
        "warmup": WARMUP_S,
        "duration": MEASURED_S,
        "rest": 1,
        "same_problems": False,  # as guidellm, which goes on where it was
    }
    model = {
        "model": f"http/{asking.model}",
        "base_url": f"{url}/v1",
        "key_env": "NO_KEY",
        "price": {"input": 0, "output": 0},
        "params": asking.params,
    }
    sweep = {
        "name": "side",
        "problems": [str(asking.problems)],
        "models": [model],
        "load": load,
        "out": str(out),
    }
    asyncio.run(ab.run_load(sweep, progress=False, env={"NO_KEY": "none"}))
    steps: Steps = defaultdict(lambda: defaultdict(list))
    for call in ab.read_attempts(out).to_pylist():
        if call["phase"] == "measured" and call["status"] == "ok":
            times = steps[float(call["load"].split()[1].removesuffix("/s"))]
            times["server_ttft"].append(call["ttft_s"])
            times["latency"].append(call["late_s"] + call["latency_s"])
            times["late"].append(call["late_s"])
            times["tpot"].append((call["latency_s"] - call["ttft_s"]) / (call["output_tokens"] - 1))
    for step in ab.read_steps(out).to_pylist():
        if step["client_bound"]:
            print(f"  {step['load']}: client_bound, late p99 {1000 * step['late_p99_s']:.1f} ms")
    return steps


def theirs(program: str, url: str, asking: Asking, out: Path) -> Steps:
    """Load a server with guidellm, and return its times by our formulas."""
    steps_asked = {"kind": "constant", "rate": list(asking.rates)}
    if asking.callers:
        steps_asked = {"kind": "concurrent", "streams": [round(count) for count in asking.rates]}
    settings: Mapping[str, object] = {
        "--backend": {
            "kind": "openai_http",
            "target": url,
            "model": asking.model,
            "extras": {"body": asking.params},
            "api_key": "none",
            "validate_backend": False,
            "request_format": "/v1/chat/completions",
        },
        "--profile": steps_asked,
        "--constraint": {"kind": "max_duration", "seconds": WARMUP_S + MEASURED_S},
        "--data": {"kind": "json_file", "path": str(asking.prompts)},
        "--output": {"kind": "json", "path": str(out)},
    }
    words = [word for name, value in settings.items() for word in (name, json.dumps(value))]
    done = subprocess.run(  # noqa: S603  the program that was named
        [program, "run", *words, "--disable-console"], capture_output=True, text=True, check=False
    )
    if done.returncode or not out.exists():
        raise SystemExit(f"guidellm failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    steps: Steps = {}
    for rate, benchmark in zip(asking.rates, json.loads(out.read_bytes())["benchmarks"], strict=True):
        steps[rate] = _times_of(benchmark["requests"]["successful"])
        if benchmark["requests"]["errored"]:
            print(f"  guidellm, {rate:g}/s: {len(benchmark['requests']['errored'])} calls failed")
    return steps


def _times_of(rows: Sequence[Mapping[str, Any]]) -> Times:
    timings = [(row["info"]["timings"], row["output_metrics"]["text_tokens"]) for row in rows]
    begun_s = min(times["targeted_start"] for times, _ in timings)
    by_figure: Times = defaultdict(list)
    for times, tokens in timings:
        if not WARMUP_S <= times["targeted_start"] - begun_s < WARMUP_S + MEASURED_S:
            continue
        first, last = times["first_token_iteration"], times["last_token_iteration"]
        by_figure["server_ttft"].append(first - times["request_start"])
        by_figure["latency"].append(times["request_end"] - times["targeted_start"])
        by_figure["late"].append(times["request_start"] - times["targeted_start"])
        by_figure["tpot"].append((last - first) / (tokens - 1))
    return by_figure


def made(folder: Path) -> tuple[Path, Path]:
    """Return a problem set, and the same questions for guidellm."""
    problems, prompts = folder / "problems.parquet", folder / "prompts.jsonl"
    ab.generate("integer_addition", problems, seed=7, min_digits=30, max_digits=30, tries=600)
    questions = pq.read_table(problems, columns=["question"])["question"].to_pylist()
    prompts.write_text("".join(json.dumps({"prompt": question}) + "\n" for question in questions))
    return problems, prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--service", default="fixed", help="how the simulator spreads its times")
    parser.add_argument("--url")
    parser.add_argument("--model", default="oracle")
    parser.add_argument("--params", default="{}", metavar="JSON", help="more of each request")
    parser.add_argument("--capacity", type=float, default=CAPACITY, help="calls a second")
    parser.add_argument("--concurrency", metavar="N,…", help="so many callers in turn, instead of rates")
    options = parser.parse_args()
    program = os.environ.get("GUIDELLM") or shutil.which("guidellm")
    if program is None:
        print(
            "skipped: guidellm is not installed. Make an environment for it, and set GUIDELLM to its program"
        )
        return
    rates = [options.capacity * share for share in SHARES]
    if options.concurrency is not None:
        rates = [float(count) for count in options.concurrency.split(",")]
    ratios: dict[tuple[float, str, str], list[float]] = defaultdict(list)
    values: dict[tuple[float, str, str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="side-by-side-") as name:
        folder = Path(name)
        problems, prompts = made(folder)
        asking = Asking(
            model=options.model,
            params=json.loads(options.params),
            rates=rates,
            callers=options.concurrency is not None,
            problems=problems,
            prompts=prompts,
        )
        for n in range(options.rounds):
            both: dict[str, Steps] = {}
            for tool in ("ours", "theirs") if n % 2 == 0 else ("theirs", "ours"):
                with server(problems, n, options.service, options.url) as url:
                    out = folder / f"{tool}-{n}.json"
                    both[tool] = (
                        ours(url, asking, out) if tool == "ours" else theirs(program, url, asking, out)
                    )
            print(f"round {n + 1}: load average {os.getloadavg()[0]:.1f}", flush=True)
            _note(both, rates, ratios, values)
    _show(ratios, values)


def _note(
    both: Mapping[str, Steps],
    rates: Sequence[float],
    ratios: dict[tuple[float, str, str], list[float]],
    values: dict[tuple[float, str, str, str], list[float]],
) -> None:
    for rate in rates:
        for figure in (*FIGURES, "late"):
            for name, share in (("p50", 0.5), ("p95", 0.95)):
                pair = [percentile(both[tool][rate][figure], share) for tool in ("ours", "theirs")]
                if None in pair:
                    continue
                for tool, value in zip(("ours", "theirs"), pair, strict=True):
                    values[rate, figure, name, tool].append(value or 0.0)
                ratios[rate, figure, name].append((pair[0] or 0.0) / pair[1] if pair[1] else 0.0)


def _show(
    ratios: Mapping[tuple[float, str, str], Sequence[float]],
    values: Mapping[tuple[float, str, str, str], Sequence[float]],
) -> None:
    print("rate  figure       at    ours ms  guidellm ms  ours / guidellm, median of rounds (least–most)")
    for (rate, figure, at), of_rounds in ratios.items():
        mine, other = (1000 * median(values[rate, figure, at, tool]) for tool in ("ours", "theirs"))
        spread = f"{median(of_rounds):.3f} ({min(of_rounds):.3f}–{max(of_rounds):.3f})"
        print(f"{rate:4g}  {figure:12} {at}  {mine:8.2f}  {other:11.2f}  {spread}")


if __name__ == "__main__":
    main()
