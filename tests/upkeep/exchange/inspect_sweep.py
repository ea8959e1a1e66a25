"""A sweep with all that a log can tell: ways of asking, repeats, failures, cut replies, reasoning."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import sweep_files

PRICE = {"input": 1.0, "output": 2.0}
MODELS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
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


def swept(folder: Path, *aliases: str, depths: str = "2-3", trials: int = 1, **keys: Any) -> Path:
    """Ask models 8 × depths × `trials` problems; return the results folder."""
    models = [(MODELS[alias][0], {"alias": alias, "price": PRICE, **MODELS[alias][1]}) for alias in aliases]
    parameters = {"depths": depths, "trials": trials}
    return sweep_files.swept(folder, *models, faults=FAULTS, parameters=parameters, **keys)[0]
