"""The table that llm_arithmetic published, from its recorded replies: read, and swept again."""

import asyncio
import csv
import json
from collections import Counter
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import pytest
from typer.testing import CliRunner

from asyncbench import read_trials, run_sweep
from asyncbench.cli import app
from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError
from asyncbench.published.files import problems_file
from asyncbench.run.summary import Exit
from asyncbench.simulator.settings import Settings
from tests.recorded import made_once, rows
from tests.simulators import running
from tests.sweep_files import entry

COLUMNS = {  # of the table → the published row's keys
    "Model": "model",
    "Trials": "trials",
    "Correct %": "correct_pct",
    "NaN %": "nan_pct",
    "Dev %": "dev_pct",
    "Comp. Tok.": "completion_tokens",
    "Cost": "cost",
    "Avg Error (Dev)": "avg_error_dev",
    "Avg Error (Dev&Corr)": "avg_error_dev_and_correct",
}
IN_FLIGHT = 2_000
LONG, SOAK = pytest.mark.long, pytest.mark.soak
ROOM = 2_210  # of all models together, since some have too few trials to fill theirs


@pytest.fixture(scope="session")
def published(golden):
    """The published rows, as the project kept them: one a run, in the table's order."""
    runs = json.loads((golden / "llm_arithmetic" / "published_table.json").read_text())["runs"]
    return sorted(runs, key=lambda run: run["readme_rank"])


def asyncbench(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def report(folder, *options):
    done = asyncbench("report", folder, "--style", "llm-arithmetic", *options)
    assert done.exit_code == 0, done.output
    return done.output


def overview(markdown):
    """Return the rows of the overview table, cells by column."""
    lines = iter(markdown.splitlines())
    head = next(line for line in lines if line.startswith("| Model | Trials | Correct %"))
    next(lines)
    names = cells(head)
    assert names == list(COLUMNS)
    return [dict(zip(names, cells(line), strict=True)) for line in _while_table(lines)]


def _while_table(lines):
    for line in lines:
        if not line.startswith("|"):
            return
        yield line


def cells(line):
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def dollars(cell):
    return float(cell.removeprefix("$").replace(",", ""))


def assert_equal(row, expected, *, but=()):
    for column, key in COLUMNS.items():
        if column == "Cost":
            assert dollars(row[column]) == pytest.approx(dollars(expected[key]), abs=1e-4) or column in but
        else:
            assert row[column] == expected[key] or column in but, (expected["model"], column)


@pytest.fixture(scope="session")
def shipped(tmp_path_factory):
    """The results folder of the answers that are shipped, made by one command, and what that shows."""
    folder = made_once(
        tmp_path_factory,
        "shipped",
        lambda place: (place / "shown").write_text(
            asyncbench("demo", "--published", "--out", place / "results").output
        ),
    )
    assert (
        "14 of the 51 published rows equal a row of yours in every column.\n"
        in (folder / "shown").read_text()
    )
    return folder / "results"


@pytest.fixture(params=["imported", pytest.param("shipped", marks=pytest.mark.long)])
def recorded(request):
    """The recorded runs: from files with their replies, and from the facts that are shipped.

    That the shipped facts are those of the files, `test_recorded` holds in the first tier.
    """
    return request.getfixturevalue(request.param)


@pytest.mark.long
def test_the_recorded_runs_give_the_published_table_to_the_digit(recorded, published):
    table = overview(report(recorded, "--markdown"))
    assert len(table) == len(published) == 26
    for row, run in zip(table, published, strict=True):
        assert_equal(row, run["published"])


def test_the_legacy_grader_gives_the_table_of_june_2025(recorded, published):
    table = {
        (row["Model"], row["Comp. Tok."]): row
        for row in overview(report(recorded, "--grader", "legacy", "--markdown"))
    }
    runs = [run["legacy_2025_06_30"] for run in published if run.get("legacy_2025_06_30")]
    earlier = [run["published"] for run in runs if run["published"]]
    assert len(earlier) > 10
    for expected in earlier:
        assert_equal(table[expected["model"], expected["completion_tokens"]], expected)


@pytest.mark.long
def test_imported_results_open_like_any_others_and_no_sweep_is_run_on_them(imported):
    assert asyncbench("status", imported).exit_code == 0
    assert asyncbench("report", imported).exit_code == 0
    trials = read_trials(imported)
    assert trials.num_rows == 17_153
    assert set(trials["price_source"].to_pylist()) == {"recorded"}
    sweep = sweep_from(
        {
            "name": imported.name,
            "problems": [str(next((imported / "problems").iterdir()))],
            "models": ["simulated/oracle"],
            "out": str(imported),
        }
    )
    with pytest.raises(ConfigError, match="holds imported results"):
        asyncio.run(run_sweep(sweep))


# ── the same night again ─────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def prices(golden):
    """USD for a million tokens by the name that was published, where the project knew a price."""
    with (golden / "llm_arithmetic" / "prices.csv").open(newline="") as file:
        return {
            row["model"]: {
                "input": float(row["usd_per_1m_prompt"]),
                "output": float(row["usd_per_1m_completion"]),
            }
            for row in csv.DictReader(file)
            if row["usd_per_1m_prompt"]
        }


@contextmanager
def replaying(folder):
    # So long that a busy machine, too, has started all it may before the first are answered.
    with running(Settings(replay=(folder,), latency_s=15.0)) as server:
        yield server


def aliases(published):
    """Return the alias of each run: the published name, numbered where it was given twice."""
    seen = Counter[str]()
    for run in sorted(published, key=lambda run: run["source_file"]):
        name = run["model"]
        seen[name] += 1
        yield run, name if seen[name] == 1 else f"{name} ({seen[name]})"


def swept_again(server, providers, imported, runs, prices, out):
    """Sweep each run's own problems, answered by what was recorded; return what the server saw.

    The runs go through the providers in turn.
    """
    models = [
        entry(
            server,
            f"{provider}/{Path(run['source_file']).stem}",
            alias=alias,
            problems=[str(imported / problems_file(Path(run["source_file"]).stem))],
            concurrency=-(-ROOM // len(runs)),
            max_tokens=100_000,
            retry={"attempts": 1},
            **({"price": prices[run["model"]]} if run["model"] in prices else {}),
        )
        for provider, (run, alias) in zip(cycle(providers), runs, strict=False)
    ]
    summary = asyncio.run(run_sweep(sweep_from({"name": "again", "models": models, "out": str(out)})))
    assert summary.exit is Exit.UNFINISHED  # what failed then fails now
    return server.stats()


@pytest.mark.parametrize(
    ("providers", "each", "requests", "costs_told"),
    [
        pytest.param(
            ["simulated", "simulated-anthropic"],
            6,
            2_880,
            (1, 2),
            id="both, every sixth",
            marks=pytest.mark.long,
        ),
        pytest.param(["simulated", "simulated-anthropic"], 1, 17_153, (16, 17), id="both", marks=SOAK),
        pytest.param(["simulated"], 1, 17_153, (16, 17), id="openai", marks=SOAK),
        pytest.param(["simulated-anthropic"], 1, 17_153, (16, 17), id="anthropic", marks=SOAK),
    ],
)
def test_the_same_runs_swept_again_through_an_sdk_give_the_same_table(
    tmp_path, golden, imported, published, prices, providers, each, requests, costs_told
):
    runs = list(aliases(published))[2::each] if each > 1 else list(aliases(published))
    with replaying(imported) as server:
        stats = swept_again(server, providers, imported, runs, prices, tmp_path / "out")
    assert stats["max_in_flight"] >= IN_FLIGHT
    assert stats["requests"] == requests

    table = {row["Model"]: row for row in overview(report(tmp_path / "out", "--markdown"))}
    assert len(table) == len(runs)
    for run, alias in runs:
        expected = run["published"]
        assert_equal(table[alias] | {"Model": expected["model"]}, expected, but={"Cost"})

    priced, repriced = costs(golden, prices)
    equal = 0
    for run, alias in runs:
        if run["source_file"] in priced - repriced:
            assert dollars(table[alias]["Cost"]) == pytest.approx(dollars(run["published"]["cost"]), abs=1e-4)
            equal += 1
    # 17 runs have a price under the name they were published with; of one (qwen3.6-35b-a3b@q4_k_m) 331 trials
    # were recorded before that price was added, at 0.
    own = {run["source_file"] for run, _ in runs}
    assert (equal, len(priced & own), len(repriced)) == (*costs_told, 1)


def costs(golden, prices):
    """Return the files whose runs have a price, and those in which a trial was recorded at another."""
    priced, repriced = set(), set()
    for row in rows(golden):
        if (price := prices.get(row["model"])) is None:
            continue
        priced.add(row["source_file"])
        now = (row["prompt_tokens"] * price["input"] + row["completion_tokens"] * price["output"]) / 1e6
        if now != pytest.approx(row["cost"], abs=1e-9):
            repriced.add(row["source_file"])
    return priced, repriced
