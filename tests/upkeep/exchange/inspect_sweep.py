"""A sweep with all that a log can tell: ways of asking, repeats, failures, cut replies, reasoning."""

import asyncio
from pathlib import Path

from asyncbench import generate, run_sweep
from tests.sweep_files import entry, simulator, sweep

PRICE = {"input": 1.0, "output": 2.0}
MODELS = {
    "m": ("simulated/noisy", {}),
    "broken": ("simulated/noisy-2", {}),
    "short": ("simulated/noisy-3", {"max_tokens": 1}),
    "thinker": ("simulated-anthropic/noisy", {"thinking_tokens": 1024, "max_tokens": 2048}),
}
FAULTS = ("500=0.2@noisy-2",)
CONDITIONS = (
    {"name": "plain"},
    {"name": "polite", "system": "Please.", "context": "1k"},
    {"name": "cold", "temperature": 0, "params": {"top_k": 1}, "models": ["short"]},
    {"name": "worded", "template": "{question}\nSay it twice.", "digits": "spaced", "models": ["m"]},
)


def swept(folder: Path, *aliases: str, depths: str = "2-3", trials: int = 1, **keys: object) -> Path:
    """Ask models 8 × depths × `trials` problems; return the results folder."""
    problems = folder / "problems.parquet"
    generate("llm_arithmetic", problems, seed=3, depths=depths, trials=trials)
    with simulator(problems, faults=FAULTS) as server:
        models = [
            entry(server, model, alias=alias, price=PRICE, retry={"attempts": 1}, **said)
            for alias, (model, said) in MODELS.items()
            if alias in aliases
        ]
        asyncio.run(run_sweep(sweep(folder / "night", problems, *models, **keys)))
    return folder / "night"
