"""A server whose answers worsen is found out, and another is not accused."""

import asyncio

import pytest

from asyncbench import run_load
from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import counted
from asyncbench.reports.load.accuracy import answers_by_step, notes_under_load
from tests.sweep_files import entry, problem_set, simulator, sweep

pytestmark = pytest.mark.long

TIMES = {"arrivals": "constant", "warmup": "1s", "drain": "30s", "rest": 0}


def by_model(out, limit, *, server_seed=0, trials=1, **load):
    """Load a server that worsens above a limit beside one that does not; return what they answered."""
    problems = problem_set(out, trials=trials)
    with simulator(problems, seed=server_seed) as server:
        pace = {"latency_s": 0.2}
        models = [
            entry(server, "simulated/noisy", alias="worse", params={"simulate": pace | limit}),
            entry(server, "simulated/noisy-2", alias="even", params={"simulate": pace}),
        ]
        asyncio.run(run_load(sweep(out / "out", problems, *models, load=TIMES | load), progress=False))

    def read(views):
        steps = answers_by_step(views)
        return steps, "\n".join(notes_under_load(steps))

    steps, told = counted(chosen(out / "out", loaded=True), read)
    return {name: [step for step in steps if step.model == name] for name in ("worse", "even")}, told


def test_a_server_that_worsens_above_a_rate_is_found_out_and_another_is_not_accused(tmp_path):
    limit = {"worse_above_rate": 14, "worse_share": 1.0}  # a busy machine sends 32/s less evenly
    found, told = by_model(tmp_path, limit, rates=[8, 32], duration="3s")
    (light, heavy), (_, even) = found["worse"], found["even"]
    assert (light.load, light.accuracy.trials) == ("constant 8/s #1", 24)
    assert heavy.beside.moves.problems == 24  # all that the lightest step asked, and no other
    assert heavy.beside.differs
    assert not even.beside.differs
    assert even.beside.moves.difference == 0
    assert "worse: answers are less often right at constant 32/s #1 than at constant 8/s #1, by " in told
    assert "even: no step's accuracy differs from the lightest one's by more than chance" in told


@pytest.mark.soak
@pytest.mark.parametrize("limit", [{"worse_above_rate": 25}, {"worse_in_flight": 4}])
def test_every_server_that_worsens_is_found_out_and_no_other_accused(tmp_path, limit):
    runs, found_out, accused, even = 6, 0, 0, 0
    for seed in range(runs):
        (out := tmp_path / str(seed)).mkdir()
        load = {"rates": [10, 20, 40], "duration": "15s", "arrivals": "poisson", "seed": seed}
        found, _ = by_model(out, limit | {"worse_share": 0.3}, server_seed=seed, trials=12, **load)
        found_out += found["worse"][-1].beside.differs
        accused += any(step.beside.differs for step in found["even"][1:])
        even += sum(step.beside.moves.problems for step in found["even"][1:])
    print(f"{limit}, 30 % of answers spoilt: found out {found_out}, accused {accused} of {runs}")
    assert even > 200 * runs  # two steps of about 150 problems
    assert (found_out, accused) == (runs, 0)
