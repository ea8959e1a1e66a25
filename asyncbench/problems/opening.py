"""Opening a problem set: everything is checked once, in one pass, before any call."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.columns import check_ids, check_types, check_values
from asyncbench.problems.custom import SUITE, Custom, drafts, mapping
from asyncbench.problems.files import opened_parquet
from asyncbench.problems.identity import Occurrences, identified
from asyncbench.problems.metadata import NOTHING, Said
from asyncbench.problems.problem_set import ProblemSet, contract_batches
from asyncbench.problems.schema import ROWS_AT_ONCE, SCHEMA_VERSION, batches_of
from asyncbench.problems.survey import Survey
from asyncbench.suites import CUSTOM_GRADERS
from asyncbench.suites import check_custom as check_grader


def open_set(
    path: str | PathLike[str],
    *,
    name: str | None = None,
    suite: str | None = None,
    columns: Mapping[str, str] | None = None,
    grader: str | None = None,
    pattern: str | None = None,
) -> ProblemSet:
    """Check a problem set from its first row to its last.

    Args:
        path: a Parquet file.
        name: what results call the set; None: the file's name without its ending.
        suite: the only suite whose problems it may hold; None: any. With `custom` the file is anybody's,
            and what follows says how to read it.
        columns: custom: our name of a column → the file's; question and expected by default as ours.
        grader: custom: exact, number, choice or regex.
        pattern: custom, with the grader `regex`: its first group is the answer.

    Raises:
        ProblemSetError: the file is not what it should be; names the file, the column and the way out.
        ConfigError: arguments that do not go together, a grader that does not exist.
    """
    path = Path(path)
    if suite == SUITE:
        return _open_custom(path, name, _custom(path, columns, grader, pattern))
    if columns or grader or pattern:
        raise ConfigError(f"{path}: columns, grader and pattern go with suite {SUITE!r}")
    found = _open_contract(path, name)
    if suite is not None and found.suites != (suite,):
        raise ProblemSetError(
            f"{path}: column 'suite' holds {', '.join(found.suites)}, but only {suite} is asked for; "
            "leave `suite` out, or name another file"
        )
    return found


def _custom(path: Path, columns: Mapping[str, str] | None, grader: str | None, pattern: str | None) -> Custom:
    if grader is None:
        raise ConfigError(f"{path}: suite {SUITE!r} needs a `grader`: {', '.join(CUSTOM_GRADERS)}")
    check_grader(grader, pattern, place=str(path))
    return Custom(columns=mapping(columns, place=str(path)), grader=grader, pattern=pattern)


def _open_custom(path: Path, name: str | None, custom: Custom) -> ProblemSet:
    survey = Survey()
    for batch in batches_of(identified(drafts(path, custom, rows=ROWS_AT_ONCE)), rows=ROWS_AT_ONCE):
        check_values(batch, path=path)
        survey.add(batch)
    return _found(path, name, survey, custom=custom)


def _open_contract(path: Path, name: str | None) -> ProblemSet:
    said = _said(path)
    survey, ids = Survey(), Occurrences()
    for batch in contract_batches(path, rows=ROWS_AT_ONCE):
        check_values(batch, path=path)
        check_ids(batch.column("problem_id"), ids, path=path)
        survey.add(batch)
    if said.digest not in (None, survey.digest):
        raise ProblemSetError(
            f"{path}: its rows are not those it was written with: it is damaged, or was edited. Make it "
            "again, or write the edited rows to a file without the metadata `asyncbench.digest`"
        )
    return _found(path, name, survey, said=said)


def _found(
    path: Path, name: str | None, survey: Survey, *, said: Said = NOTHING, custom: Custom | None = None
) -> ProblemSet:
    if not survey.rows:
        raise ProblemSetError(f"{path}: holds no problems; make it again, or leave it out")
    return ProblemSet(
        path=path,
        name=name or path.stem,
        generator_version=said.generator_version,
        seed=said.seed,
        parameters=said.parameters,
        counts=said.counts,
        custom=custom,
        **survey.facts,
    )


def _said(path: Path) -> Said:
    with opened_parquet(path) as file:
        check_types(file.schema_arrow, path=path)
        try:
            said = Said.by(file.metadata.metadata)
        except (ValueError, RecursionError) as error:
            raise ProblemSetError(f"{path}: its metadata makes no sense ({error}); make it again") from None
    if said.schema_version > SCHEMA_VERSION:
        raise ProblemSetError(
            f"{path}: follows version {said.schema_version} of the columns, and this asyncbench knows "
            f"{SCHEMA_VERSION}; use a later asyncbench, or make the set again with this one"
        )
    return said
