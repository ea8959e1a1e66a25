"""Options of `run` alone."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from asyncbench.commands.sweep_flags import SweepCommand

Retry = Annotated[
    str | None,
    typer.Option(
        metavar="OUTCOME,…",
        help="Ask again the trials with these outcomes: failed, no_answer, truncated, refused.",
    ),
]
Reuse = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FOLDER", help="Take over the complete answers of this results folder. Repeat it for more."
    ),
]
Ignore = Annotated[
    str | None,
    typer.Option(metavar="max_tokens", help="With --reuse: also take answers with other max_tokens."),
]
Detach = Annotated[
    bool,
    typer.Option("--detach", help="Exit once all batches are sent. Run again to collect them."),
]
Resubmit = Annotated[
    str | None,
    typer.Option(
        metavar="PART,…", help="Send these parts again if nobody finds their batch. This may pay them twice."
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        metavar="[ADDRESS]",
        help="Have workers on a Ray cluster ask the models in real time. Without an ADDRESS: the cluster of "
        "RAY_ADDRESS, of this machine, or a new one here.",
    ),
]
Extend = Annotated[
    bool,
    typer.Option("--extend", help="Add this sweep to the one that its results folder holds."),
]
AcceptLoss = Annotated[
    bool,
    typer.Option("--accept-loss", help="If files of the results folder are lost, ask those trials again."),
]


_ADDRESS = re.compile(r"auto|local|[^-].*:\d+|[^-].*://.*")  # of a Ray cluster


class RunCommand(SweepCommand):
    """`run`, whose `--ray` may stand without an address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        return super().parse_args(ctx, with_ray_address(args))


def with_ray_address(args: list[str]) -> list[str]:
    """Return arguments in which each `--ray` has a value; an address has a port, or is `auto` or `local`.

    >>> with_ray_address(["--ray", "night.yaml", "--ray", "head:6379"])
    ['--ray=', 'night.yaml', '--ray=head:6379']
    """
    words: list[str] = []
    for word in args:
        if words[-1:] == ["--ray="] and _ADDRESS.fullmatch(word):
            words[-1] += word
        else:
            words.append("--ray=" if word == "--ray" else word)
    return words
