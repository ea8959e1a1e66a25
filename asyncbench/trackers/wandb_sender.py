"""Weights & Biases: a run for each entrant, grouped by sweep, and the page as an artifact.

With `WANDB_MODE=offline`, the package keeps all in the folder `wandb`, which `wandb sync` sends later.
"""

import hashlib
import os
import re
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.tables.numbers import number_of
from asyncbench.trackers.figures import figures_of, page_file


def send(folder: Path, project: str) -> str:
    """Send the figures and the page of a results folder; return what was sent.

    Raises:
        ConfigError: the service cannot be reached, or refused it.
    """
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # the package tells its makers of its failures
    os.environ.setdefault("WANDB_SILENT", "true")
    import wandb

    told = figures_of(folder)
    common = {"project": project, "group": told.sweep, "resume": "allow", "reinit": "finish_previous"}
    settings = wandb.Settings(console="off", disable_git=True, x_disable_stats=True, disable_code=True)
    marks = ["SIMULATED"] * told.simulated
    try:
        for entrant in told.entrants:
            with wandb.init(
                id=_run_id(entrant.key), name=entrant.name, tags=marks, settings=settings, **common
            ) as run:
                run.config.update(
                    {**entrant.settings, "sweep": told.sweep, "folder": told.folder}, allow_val_change=True
                )
                run.summary.update(dict(entrant.figures))

        # the page goes to a run of its own, which stands for the whole folder
        with (
            wandb.init(
                id=_run_id(told.key),
                name=told.page_name,
                tags=marks,
                settings=settings,
                **common,
            ) as run,
            page_file(folder) as page,
        ):
            artifact = wandb.Artifact(re.sub(r"[^\w.-]", "_", f"{told.sweep}-page"), type="report")
            artifact.add_file(page)
            run.log_artifact(artifact)
    except wandb.Error as error:
        raise ConfigError(f"wandb: {str(error).strip().partition(chr(10))[0]}") from None
    offline = os.environ.get("WANDB_MODE") == "offline"
    kept = ", kept in the folder wandb until `wandb sync`" if offline else ""
    return f"{number_of(len(told.entrants), 'run')} and the page are in the project {project}{kept}"


def _run_id(key: str) -> str:
    """Return an id that is the same at every sending."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]
