"""MLflow: an experiment for the sweep, a run for each entrant, and a run that holds the page.

Source: https://mlflow.org/docs/latest/rest-api.html, which says how much one request may hold.
"""

import logging
import os
import time
from pathlib import Path
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.tables.numbers import number_of
from asyncbench.trackers.figures import EntrantFigures, FolderFigures, figures_of, page_file

KEY_TAG: Final = "asyncbench.key"
MOST_METRICS: Final = 1000  # of one request
LONGEST_PARAM: Final = 6000  # characters


def send(folder: Path, uri: str) -> str:
    """Send the figures and the page of a results folder; return what was sent.

    Raises:
        ConfigError: the server cannot be reached, or refused it.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # the package tells its makers of its use
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    told = figures_of(folder)
    try:
        client = MlflowClient(tracking_uri=uri)
        experiment = _experiment(client, told)

        for entrant in told.entrants:
            run_id = _run(client, experiment, entrant.key, entrant.name, told)
            _send_entrant(client, run_id, entrant)
            client.set_terminated(run_id)

        # the page goes to a run of its own, which stands for the whole folder
        run_id = _run(client, experiment, told.key, told.page_name, told)
        with page_file(folder) as page:
            client.log_artifact(run_id, page)
        client.set_terminated(run_id)
    except MlflowException as error:
        complaint = str(error).strip().partition("\n")[0]
        unreached = "Max retries exceeded" in complaint
        raise ConfigError(f"mlflow: {'the server cannot be reached' if unreached else complaint}") from None
    return f"{number_of(len(told.entrants), 'run')} and the page are in the experiment {told.sweep}"


def _experiment(client: Any, told: FolderFigures) -> str:
    """Return the id of the sweep's experiment; make it where there is none."""
    experiment = client.get_experiment_by_name(told.sweep)
    if experiment is None:
        made: str = client.create_experiment(told.sweep)
        return made
    if experiment.lifecycle_stage != "active":
        raise ConfigError(
            f"mlflow: the experiment {told.sweep} is deleted. Restore it on the server, or remove it for good"
        )
    found: str = experiment.experiment_id
    return found


def _run(client: Any, experiment: str, key: str, name: str, told: FolderFigures) -> str:
    """Return the id of the run with a key, which earlier sendings made, or of a new one."""
    quoted_key = key.replace("\\", "\\\\").replace("'", "\\'")
    found = client.search_runs([experiment], f"tags.`{KEY_TAG}` = '{quoted_key}'", max_results=1)
    tags = {
        KEY_TAG: key,
        "asyncbench.folder": told.folder,
        "asyncbench.simulated": str(told.simulated).lower(),
    }
    if not found:
        run_id: str = client.create_run(experiment, tags=tags, run_name=name).info.run_id
        return run_id
    run_id = found[0].info.run_id
    for tag, value in tags.items():
        client.set_tag(run_id, tag, value)
    return run_id


def _send_entrant(client: Any, run_id: str, entrant: EntrantFigures) -> None:
    """Send settings as parameters and figures as metrics.

    A parameter never changes: a later value becomes a tag of that name.
    """
    from mlflow.entities import Metric, Param, RunTag

    sent_before, now_ms = client.get_run(run_id).data.params, round(time.time() * 1000)
    settings = {name: value[:LONGEST_PARAM] for name, value in entrant.settings.items()}
    params = [Param(name, text) for name, text in settings.items() if sent_before.get(name, text) == text]
    changed = settings.keys() - {param.key for param in params}
    tags = [RunTag(f"{name} (now)", settings[name]) for name in sorted(changed)]
    client.log_batch(run_id, params=params, tags=tags)

    metrics = []
    for name, value in entrant.figures.items():
        allowed = "".join(sign if sign.isalnum() or sign in "_-. :/" else "_" for sign in name)
        metrics.append(Metric(allowed, value, now_ms, 0))
    for first in range(0, len(metrics), MOST_METRICS):
        client.log_batch(run_id, metrics=metrics[first : first + MOST_METRICS])
