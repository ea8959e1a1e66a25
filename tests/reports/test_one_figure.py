"""One figure, one number: what two reports, the page, JSON and Python share of a folder is the same.

The folder has failures, retries, lost calls, cut and empty replies, a model without a price and trials that a
rule skipped; then it is regraded. Its server answers by the number of the call.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import asyncbench as ab
from asyncbench.analysis.counting import counted
from asyncbench.page.blocks import BLOCKS
from tests.tiers import first_rows

Figure = tuple[str, str, str, object]  # model, figure, place that tells it, value
TRIALS = 120


@asynccontextmanager
async def unruly_server() -> AsyncIterator[str]:
    """A server that drops, refuses, breaks and cuts some of its calls; yields its address."""
    numbers = count(1)

    async def answer(request: web.Request) -> web.StreamResponse:
        n, asked = next(numbers), await request.json()
        if n % 7 == 3:
            assert request.transport is not None
            request.transport.abort()  # the whole request was read: nobody knows whether it is billed
            return web.Response()
        if n % 11 == 5:
            return web.json_response({"error": {"message": "slow down"}}, status=429)
        if n % 13 == 6:
            return web.json_response({"error": {"message": "boom"}}, status=500)
        if n % 23 == 4:
            return web.json_response({"error": {"message": "the prompt is too long"}}, status=400)
        text = "" if n % 17 == 9 else "4"
        choice = {"index": 0, "finish_reason": "length" if n % 19 == 2 else "stop"}
        usage = {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}
        return web.json_response(
            {
                "id": f"chatcmpl-{n:030x}",
                "object": "chat.completion",
                "model": asked["model"],
                "choices": [{**choice, "message": {"role": "assistant", "content": text}}],
                "usage": usage,
            }
        )

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}/v1"
    await runner.cleanup()


@pytest.fixture
async def night(tmp_path: Path) -> tuple[Path, Mapping[str, Any]]:
    """The folder, and the summary of its run as JSON."""
    problems = tmp_path / "sums.csv"
    rows = [f"What is {n} + {3 - n % 4}?,{4 if n % 3 else 5}" for n in range(TRIALS)]
    problems.write_text("\n".join(["question,expected", *rows]))
    async with unruly_server() as url:
        shared = {"base_url": url, "concurrency": 3, "retry": {"attempts": 4}}
        sweep = {
            "name": "night",
            "problems": [{"path": str(problems), "suite": "custom", "grader": "exact"}],
            "models": [
                {"model": "vllm/paid", "alias": "paid", "price": {"input": 3, "output": 15}, **shared},
                {"model": "vllm/unpriced", "alias": "unpriced", **shared},
            ],
            "stop_when": {"ci_width": 0.6},
            "out": str(tmp_path / "night"),
        }
        summary = await ab.run_sweep(sweep)
    return tmp_path / "night", json.loads(summary.as_json())


def figures_of(folder: Path) -> Iterator[Figure]:
    """Yield (model, figure, place, value) for each place that tells one."""
    standings = json.loads(ab.report(folder, "standings").as_json())
    for line in (line for ranking in standings["rankings"] for line in ranking["lines"]):
        yield from told(line["model"], "standings", line, trials="trials", cost="cost_usd")
        yield from told(line["model"], "standings", line["outcomes"], correct="correct", failed="failed")
        yield from told(line["model"], "standings", line, per_correct="cost_per_correct")
    for line in json.loads(ab.report(folder).as_json())["suites"]:
        yield from told(
            line["model"], "overview", line, trials="trials", cost="cost_usd", accuracy="accuracy"
        )
        yield from told(line["model"], "overview", line, planned="planned", skipped="skipped", open="open")
        yield from told(line["model"], "overview", line["outcomes"], correct="correct", failed="failed")
    for row in json.loads(ab.report(folder).as_json())["spending"]:
        yield from told(row["model"], "overview, spending", row, cost="cost_usd", calls="attempts")
    for row in ab.sql(folder, "FROM cost").to_pylist():
        yield from told(row["model"], "sql", row, cost="cost_usd", calls="calls", trials="trials")
    for row in ab.sql(folder, "FROM accuracy").to_pylist():
        yield from told(
            row["model"], "sql accuracy", row, trials="trials", correct="correct", failed="failed"
        )
        yield row["model"], "accuracy", "sql accuracy", row["accuracy"]
    for row in ab.sql(folder, "SELECT model, count(*) AS trials FROM skipped GROUP BY ALL").to_pylist():
        yield from told(row["model"], "sql skipped", row, skipped="trials")
    status = json.loads(ab.status(folder).as_json())
    morning = json.loads(ab.report(folder, "morning").as_json())
    for place, rows in (("status", status["models"]), ("morning", morning["models"])):
        for row in rows:
            yield from told(row["model"], place, row, trials="done", calls="attempts", cost="cost_usd")
            yield from told(row["model"], place, row, planned="planned", skipped="skipped", open="open")
            yield from told(row["model"], place, row, failed="failed", unknown="unpriced_attempts")
    skipped = sum(row["skipped"] for row in status["models"])
    yield from [
        ("all", "skipped", place, total)
        for place, total in (("status", skipped), ("standings", standings["skipped"]))
    ]
    yield from [
        ("all", "cost", place, whole["cost_usd"])
        for place, whole in (("status", status), ("morning", morning))
    ]
    for row in json.loads(ab.report(folder, "cost").as_json())["models"]:
        yield from told(
            row["name"][0], "cost", row, calls="calls", cost="usd", correct="correct", unknown="unknown"
        )
    attempts = ab.read_attempts(folder, ["model", "cost_usd"]).to_pylist()
    for model in ("paid", "unpriced"):
        known = [row["cost_usd"] for row in attempts if row["model"] == model and row["cost_usd"] is not None]
        yield model, "cost", "read_attempts", fsum(known) or None
        yield model, "calls", "read_attempts", sum(row["model"] == model for row in attempts)
    lines = [line for ranking in standings["rankings"] for line in ranking["lines"]]
    page = counted(folder, lambda views: BLOCKS["standings"](views))
    drawn = [line for ranking in page["rankings"] for line in ranking["lines"]]
    for line, shown in zip(lines, drawn, strict=True):
        yield from told(line["model"], "page", shown, cost="cost_usd", per_correct="per_correct")
    costs = counted(folder, lambda views: BLOCKS["cost"](views))
    names = [entrant["model"] for entrant in counted(folder, BLOCKS["head"])["entrants"]]
    for row in costs["spent"]:
        yield from told(
            names[row["asked"]], "page, spent", row, calls="calls", unknown="unknown", trials="trials"
        )
        yield from told(names[row["asked"]], "page, spent", row, cost="cost_usd", correct="correct")
    priced = [names[row["asked"]] for row in costs["frontier_cost"]]
    yield from ((name, "has a cost", "page, accuracy by cost", name in priced) for name in names)
    yield from (
        (row["model"], "has a cost", "status", row["cost_usd"] is not None) for row in status["models"]
    )


def told(model: str, place: str, row: Mapping[str, Any], **names: str) -> Iterator[Figure]:
    yield from ((model, figure, place, row[name]) for figure, name in names.items())


def disagreements(figures: Iterator[Figure]) -> list[str]:
    """Return figures that two places tell differently."""
    by_figure: dict[tuple[str, str], dict[str, object]] = {}
    for model, figure, place, value in figures:
        shown = round(value, 12) if isinstance(value, float) else value
        by_figure.setdefault((model, figure), {})[place] = shown
    return [f"{key}: {places}" for key, places in by_figure.items() if len({*places.values()}) > 1]


@pytest.mark.long
async def test_whoever_tells_a_figure_tells_the_same(night):
    folder, summary = night
    assert disagreements(figures_of(folder)) == []
    for alias, model in summary["models"].items():
        own = {figure: value for name, figure, _, value in figures_of(folder) if name == alias}
        assert model["cost_usd"] == (own["cost"] and pytest.approx(own["cost"]))
        assert (model["done"], model["attempts"]) == (own["trials"], own["calls"])
        assert (model["planned"], model["skipped"]) == (own["planned"], own["skipped"])
    assert sum(model["skipped"] for model in summary["models"].values()) > 0
    assert summary["models"]["paid"]["unpriced_attempts"] > 0  # or nothing was lost, and nothing is shown
    assert summary["models"]["unpriced"]["cost_usd"] is None
    ab.regrade_folder(folder, write=True)
    assert disagreements(figures_of(folder)) == []


@pytest.mark.parametrize("style", first_rows(2, ["cost", None, "standings", "morning"]))
async def test_a_sum_of_which_a_part_is_unknown_is_shown_as_a_least_one(night, style):
    folder, _ = night
    text = (ab.report(folder) if style is None else ab.report(folder, style)).as_text()
    (cost,) = {row["cost_usd"] for row in ab.sql(folder, "FROM cost").to_pylist() if row["model"] == "paid"}
    assert f"≥ ${cost:.4f}" in text
    assert f" ${cost:.4f}" not in text.replace(f"≥ ${cost:.4f}", "")
