"""The server that a run starts for a model: its command, and how to see that it is ready."""

import re
import shlex
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from asyncbench.config.entry import BASE_URL_PATTERN, Entry, Length, Words
from asyncbench.config.place import Place
from asyncbench.errors import ConfigError
from asyncbench.records import BATCH, Model, Serve

# A word for a key, and then a value that is neither an option nor a variable of a shell.
_HOLDS_A_KEY: Final = re.compile(
    r"(api[-_]?key|hf[-_]?token|password|secret)[=\s]+(?!['\"]*[-$])\S", re.IGNORECASE
)


class ServeEntry(Entry):
    """A server on this computer that a run starts before its first call, and stops at its end."""

    command: Words = Field(
        description="The program and its arguments, as a list, or as one text that is split as a shell "
        "splits it. No shell runs it: variables, `~` and pipes need `bash -c '…'`. It gets the environment "
        "of asyncbench. It must stay in the foreground. Keep keys out of it: it is stored with the results.",
    )
    ready: Annotated[str, Field(pattern=BASE_URL_PATTERN)] = Field(
        description="An address that answers with a status of 2xx as soon as the model can be asked, such as "
        "`http://127.0.0.1:8000/health`. If something answers there before the start, the run is refused."
    )
    within: Length = Field(
        default=600.0, description="How long to wait until the server is ready, such as `10m`."
    )


def serve_from(entry: ServeEntry | None, *, place: Place) -> Serve | None:
    """Return the server of a model as written in a sweep file.

    Raises:
        ConfigError: its command holds what may be a key. It is not repeated.
    """
    if entry is None:
        return None
    if _HOLDS_A_KEY.search(shlex.join(entry.command)):
        raise ConfigError(
            f"{place / 'command'}: 'command' holds a key, and it is stored with the results. The server gets "
            "the environment of asyncbench: set the key there (vLLM reads VLLM_API_KEY)"
        )
    return Serve(command=tuple(entry.command), ready=entry.ready, within=entry.within)


def serve_complaint(model: Model) -> str | None:
    """Return why a run cannot start a server for a model; None: it can, or has none to start."""
    if model.serve is None:
        return None
    if model.base_url is None:
        return "nothing says that calls go to the server. Set `base_url` to its address, up to /v1"
    if model.mode == BATCH:
        return "the server ends with the run, and batches go on without it. Set `mode: realtime`"
    return None


def serve_mapping(serve: Serve | None) -> Mapping[str, object] | None:
    """Return the entry that `serve_from` reads back."""
    if serve is None:
        return None
    return {"command": list(serve.command), "ready": serve.ready, "within": serve.within}
