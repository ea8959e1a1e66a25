"""Suites of somebody's own: `mine.py:DOUBLING` in a sweep file, or a `Suite` that a program hands over.

The definition in the file says whether a suite is the same another time. Its digest stands for the versions
of its generator and its graders, so nobody has to raise them.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.records import Grade, Problem, Reply
from asyncbench.suites.handed_functions import SESSION, digest_of_definition, handed_object, session_name
from asyncbench.suites.plugins import Origin, imported, is_in_file, source_named, version_of
from asyncbench.suites.suite import Suite
from asyncbench.suites.table import SUITES, grader_versions
from asyncbench.suites.thinking import answer_of


@dataclass(frozen=True, kw_only=True)
class OwnSuite:
    """A suite that neither asyncbench nor a package has."""

    text: str  # that names it: `/path/mine.py:DOUBLING`; of a session: `session:doubling@4f0c1b6a92de`
    written: Suite
    digest: str  # SHA-256 of its definition: 64 hexadecimal characters
    source: bytes | None  # of its file; None: it is of a session

    def __reduce__(self) -> tuple[object, ...]:
        """Be pickled as its source: another machine has no such file."""
        if self.source is None:
            return super().__reduce__()  # type: ignore[return-value]  # of an object it is a tuple
        return suite_of, (self.text, self.source)

    @cached_property
    def suite(self) -> Suite:
        """The suite, whose versions are those of its definition."""
        written, version = self.written, version_of(self.digest)

        def grade(problem: Problem, reply: Reply | None, style: str) -> tuple[Grade, ...]:
            grades = written.grade(problem, answer_of(reply), style)
            return tuple(replace(grade, grader_version=version) for grade in grades)

        return replace(written, generator_version=version, grade=grade)

    def use(self, *, place: str) -> None:
        """Make the suite known to problems that name it.

        Raises:
            ConfigError: its name is taken.
        """
        called = Path(self.text.partition(":")[0]).name if self.source else SESSION.rstrip(":")
        origin = Origin(kind="suites", name=self.written.name, package=called, version="", source=self.digest)
        try:
            SUITES.add(self.suite, origin)
        except ValueError as error:
            raise ConfigError(f"{place}: {self.text}: {error} in `Suite(name=…)`.") from None
        grader_versions.cache_clear()


def suite_named(name: str, near: Path | None, *, place: str) -> OwnSuite:
    """Return the suite that `mine.py:DOUBLING` means, and make it known.

    Args:
        name: the file and the name of the suite in it, or what a program handed over.
        near: the sweep file that names it; its folder is looked in first, then the working directory.
        place: where the name stands, for messages.

    Raises:
        ConfigError: there is no such file or suite, or its import fails.
    """
    handed = handed_object(name, place=place)
    if name.startswith(SESSION):
        digest = sha256(name.encode()).hexdigest()
        written = _checked(handed, session_name(name), {}, place=place)
        own_suite = OwnSuite(text=name, written=written, digest=digest, source=None)
    else:
        file, defined, source = source_named(name, near, place=place)
        own_suite = _suite_in(
            f"{file.resolve()}:{defined}", file, defined, source, place=place, handed=handed
        )
    own_suite.use(place=place)
    return own_suite


def suite_called(name: str, *, place: str) -> Suite | None:
    """Return the suite of a name, also of `mine.py:DOUBLING`, or None if there is no such suite.

    Raises:
        ConfigError: as `suite_named`.
    """
    return suite_named(name, None, place=place).suite if is_in_file(name) else SUITES.get(name)


def suite_of(text: str, source: bytes) -> OwnSuite:
    """Return a suite of another machine, of the source of its file, and make it known.

    Raises:
        ConfigError: the import fails here.
    """
    file, _, defined = text.rpartition(":")
    place = f"suite {text!r} on this worker"
    own_suite = _suite_in(text, Path(file), defined, source, place=place, handed=None)
    own_suite.use(place=place)
    return own_suite


def _suite_in(text: str, file: Path, defined: str, source: bytes, *, place: str, handed: object) -> OwnSuite:
    module = vars(imported(source, file, place=place)) if handed is None else {}
    value = module.get(defined) if handed is None else handed
    written = _checked(value, defined, module, place=f"{place}: {file}")
    digest = digest_of_definition(source, defined) or sha256(source).hexdigest()
    return OwnSuite(text=text, written=written, digest=digest, source=source)


def _checked(value: object, name: str, module: dict[str, object], *, place: str) -> Suite:
    """Return a value that is a suite and makes problems; anything else is refused."""
    if not isinstance(value, Suite):
        suites = ", ".join(key for key, defined in module.items() if isinstance(defined, Suite))
        state = (
            f"it has no {name!r}" if value is None else f"{name!r} is no suite, but {type(value).__name__}"
        )
        way_out = f"Its suites: {suites}" if suites else f"Define `{name} = asyncbench.suites.Suite(…)`"
        raise ConfigError(f"{place}: {state}. {way_out}.")
    if value.generate is None:
        raise ConfigError(f"{place}: {name!r} makes no problems. Set `generate` of the suite.")
    return value
