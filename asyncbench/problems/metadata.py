"""What a problem set says of itself: the key-value metadata of its file, keys `asyncbench.…`, values text."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.schema import SCHEMA_VERSION

_PREFIX = "asyncbench."


def metadata_of(made: ProblemSet) -> dict[str, str]:
    """Return what to write into the file of a problem set."""
    said = {
        "schema_version": SCHEMA_VERSION,
        "suite": ",".join(made.suites),
        "generator_version": made.generator_version,
        "seed": made.seed,
        "parameters": json.dumps(made.parameters, default=list),
        "counts": json.dumps(made.counts) if made.counts else None,
        "rows": made.rows,
        "digest": made.digest,
    }
    return {_PREFIX + key: str(value) for key, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a file says of itself; None where it does not."""

    schema_version: int = SCHEMA_VERSION
    generator_version: int | None = None
    seed: int | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    digest: str | None = None

    @classmethod
    def by(cls, metadata: Mapping[bytes, bytes] | None) -> Self:
        """Read the metadata of a file.

        Raises:
            ValueError: a value makes no sense.
        """
        ours = {key: value for key, value in (metadata or {}).items() if key.startswith(_PREFIX.encode())}
        said = {key.decode().removeprefix(_PREFIX): value.decode() for key, value in ours.items()}
        return cls(
            schema_version=int(said.get("schema_version", SCHEMA_VERSION)),
            generator_version=_number(said.get("generator_version")),
            seed=_number(said.get("seed")),
            parameters=json.loads(said.get("parameters", "{}")),
            counts=json.loads(said.get("counts", "{}")),
            digest=said.get("digest"),
        )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


NOTHING = Said()
