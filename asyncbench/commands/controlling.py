"""Commands for a run that goes on: pause, resume, set."""

from typing import Annotated

import typer

from asyncbench.commands.terminal import Folder, Json, show

TheModel = Annotated[
    str | None, typer.Option("--model", metavar="ALIAS", help="Set them for this model. Default: all.")
]
LimitWords = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME=N…", help="The limits: rpm, tpm, input_tpm, output_tpm, concurrency. N may be none."
    ),
]


def pause(folder: Folder, as_json: Json = False) -> None:
    """Pause a run that is going on: it sends nothing new.

    asyncbench pause results/overnight

    Calls in flight end. Batches go on at the provider. A deadline and Ctrl-C still end the run. A step of a
    load that is under way becomes incomplete; it is measured again, as a whole, when you resume.

    Only the user who started the run can pause it. `status` shows who did.
    """
    from asyncbench.run.control import send_request

    show(send_request(folder, {"do": "pause"}), as_json=as_json)


def resume(folder: Folder, as_json: Json = False) -> None:
    """Let a paused run go on.

    asyncbench resume results/overnight

    It is for runs that are paused. To continue a sweep whose run has ended, type `asyncbench run SWEEP`
    again.
    """
    from asyncbench.run.control import send_request

    show(send_request(folder, {"do": "resume"}), as_json=as_json)


def set_limits(folder: Folder, limits: LimitWords, model: TheModel = None, as_json: Json = False) -> None:
    """Set other rate limits for a run that is going on.

    asyncbench set results/overnight rpm=30

    asyncbench set results/overnight rpm=300 tpm=90000 --model small

    asyncbench set results/overnight concurrency=4

    The limits hold until the run ends; the next one reads the sweep file again. They may be higher than
    those of the sweep. A lower limit that the provider reports still holds. Models of a group share theirs.

    A load takes no limits: its calls go when they are due.
    """
    from asyncbench.run.control import limits_typed, send_request

    show(send_request(folder, {"do": "set", "limits": limits_typed(limits), "model": model}), as_json=as_json)
