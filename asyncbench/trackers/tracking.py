"""track(): send the figures of a results folder to a tracker."""

import json
import sys
from datetime import datetime
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

from asyncbench.config.run_entries import Track, check_installed
from asyncbench.errors import AsyncbenchError, ConfigError


def track(
    folder: Path | str,
    *,
    mlflow: str | None = None,
    wandb: str | None = None,
    otel: str | None = None,
    since: datetime | None = None,
) -> dict[str, str]:
    """Send the figures of a results folder to MLflow or Weights & Biases, or its calls as spans.

        ab.track("results/night", mlflow="http://127.0.0.1:5000")

    Each model under each condition is a run of the tracker. What is sent again updates that run.

    Args:
        folder: the results folder.
        mlflow: the address of an MLflow server. The sweep is its experiment. [none]
        wandb: the project at Weights & Biases. [none]
        otel: the address of an OpenTelemetry collector that takes OTLP over HTTP, such as
            `http://127.0.0.1:4318`. Each call is a span. [none]
        since: with `otel`, send only calls that began then or later. [all]

    Returns:
        By tracker, a sentence that says what was sent.

    Raises:
        ConfigError: The folder is not a results folder, no tracker is named, its package is not installed, or
            it refused what was sent.
        StoreError: The folder cannot be read.
    """
    wanted = Track(mlflow=mlflow, wandb=wandb, otel=otel).targets
    if not wanted:
        raise ConfigError("track: no tracker is named. Give --mlflow URI, --wandb PROJECT or --otel ADDRESS")
    for tracker in wanted:
        check_installed(tracker, place=f"--{tracker}")
    sent = {}
    for tracker, target in wanted.items():
        sender = import_module(f"asyncbench.trackers.{tracker}_sender")
        try:
            sent[tracker] = sender.send(Path(folder), target, **{"since": since} if tracker == "otel" else {})
        except ConfigError as error:  # a package may repeat an address, and with it a password
            raise ConfigError(str(error).replace(target, urlsplit(target).hostname or target)) from None
    return sent


def main() -> None:
    """Call `track` with the arguments that standard input has as JSON; the last line of an error says why."""
    order = json.load(sys.stdin)
    order["since"] = datetime.fromisoformat(order["since"])
    try:
        track(**order)
    except AsyncbenchError as error:
        sys.exit(str(error))
