"""What a call costs this machine, measured once and kept: a process of its own makes real runs for it."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from asyncbench.config import Sweep
from asyncbench.errors import ConfigError
from asyncbench.fleet import CallCost, CallKind, keep_costs, kept_costs, python_running, without_keys

WITHIN_S: Final = 240.0  # of a kind: an idle machine takes two or three, a busy one half a minute


def costs_here(kinds: Sequence[CallKind], sweep: Sweep) -> dict[str, CallCost]:
    """Return what a call of each kind costs, by the kinds' names; what is not kept is measured.

    Args:
        kinds: of calls. What is kept of others is returned with them.
        sweep: whose keys the process that measures must not get.

    Raises:
        ConfigError: it cannot be measured here; the message says why.
    """
    kept = kept_costs()
    return kept | measured_costs([kind for kind in kinds if kind.name not in kept], sweep)


def measured_costs(kinds: Sequence[CallKind], sweep: Sweep) -> dict[str, CallCost]:
    """Measure what a call of each kind costs, and keep it for this machine; raises as `costs_here` does.

    That takes two or three seconds for each kind.
    """
    if not kinds:
        return {}
    told = _told_by_a_process(json.dumps([asdict(kind) for kind in kinds]), len(kinds), sweep)
    costs = {name: CallCost(**cost) for name, cost in told.items()}
    if wrong := [name for name, cost in costs.items() if not cost.is_sound]:
        raise ConfigError(
            f"the CPU time of a call ({', '.join(wrong)}) was measured as something that it cannot be. Run "
            "`asyncbench doctor SWEEP --capacity` again while the machine is idle"
        )
    keep_costs(costs)
    return costs


def _told_by_a_process(kinds: str, count: int, sweep: Sweep) -> dict[str, Any]:
    try:
        done = subprocess.run(  # noqa: S603  our own module, no shell
            [*python_running("asyncbench.run.measured_calls"), kinds],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=WITHIN_S * count,
            env=without_keys(os.environ, named=secret_variables(sweep)),
        )
        told: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise ConfigError(f"measuring a call took more than {WITHIN_S * count:.0f} s") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ConfigError(": ".join([f"exit code {error.returncode}", *said[-1:]])) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"the process that measures calls failed: {error}") from None
    return told


def secret_variables(sweep: Sweep) -> set[str | None]:
    """Return the variables in which a sweep has its secrets, also of models that are not asked this time."""
    webhook = None if sweep.notify is None else sweep.notify.webhook_env
    return {webhook, *(model.key_env for model in sweep.models)}
