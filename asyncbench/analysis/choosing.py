"""Choosing results folders to read together, and filters for their trials."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from asyncbench.errors import ConfigError
from asyncbench.store.bucket.fetching import display_name
from asyncbench.store.manifest import IMPORTED, LOADS, RECORDED, Manifest
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.snapshot import Paths, labels_of, paths_of

if TYPE_CHECKING:
    import duckdb

# ── checks of a user's SQL ───────────────────────────────────────────────────────────────────────


TABLE_FUNCTIONS: Final = {
    *("generate_series", "range", "repeat", "repeat_row", "unnest"),
    *("histogram", "histogram_values", "json_each", "json_tree"),
}
_SELECTS = {"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"}  # in the parser's tree


def check_select(
    connection: "duckdb.DuckDBPyConnection", query: str, views: Collection[str], *, source: str = "sql"
) -> None:
    """Refuse all but one SELECT, by the tree of DuckDB's own parser: a COPY may stand in a CTE.

    Without files and settings, DuckDB could still write to where it spills; some functions take addresses.

    Args:
        connection: whose parser is asked.
        query: the user's words.
        views: what it may read, for the message.
        source: what the message begins with.

    Raises:
        ConfigError: it is something else.
        duckdb.Error: its syntax is wrong.
    """
    connection.extract_statements(query)  # tells where the syntax is wrong
    ((tree,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()

    # Every object of the query's tree, the outermost last.
    nodes: list[Mapping[str, Any]] = []

    def keep(node: Mapping[str, Any]) -> Mapping[str, Any]:
        nodes.append(node)
        return node

    try:
        json.loads(tree, object_hook=keep)
    except RecursionError:
        raise ConfigError(
            f"{source}: the query is nested too deeply to be checked. Write it flatter."
        ) from None

    kinds = {str(node.get("type")) for node in nodes}
    written = {kind for kind in kinds if kind.endswith("_NODE")} - _SELECTS
    if nodes[-1]["error"] or len(nodes[-1]["statements"]) != 1 or written:
        raise ConfigError(
            f"{source}: give one SELECT statement. Nothing else runs, because nothing may change."
        )
    functions = [node["function"] for node in nodes if node.get("type") == "TABLE_FUNCTION"]
    if refused := {function["function_name"].lower() for function in functions} - TABLE_FUNCTIONS:
        raise ConfigError(
            f"{source}: a query reads only the views {', '.join(views)}, so it cannot use "
            f"{', '.join(sorted(refused))}(). After FROM you can use {', '.join(sorted(TABLE_FUNCTIONS))}"
        )


def line_of(error: Exception) -> str:
    """Return an error's words without the query that DuckDB repeats below them."""
    words = str(error).partition("\n\nLINE ")[0]
    lines = (line.strip().rstrip(".!") for line in words.splitlines())
    # DuckDB knows names of its own catalogue that no query here may use.
    return "; ".join(line for line in lines if line and not line.startswith("Did you mean"))


# ── chosen folders and trials ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Results folders that are read as one, and the filters that their trials have to pass."""

    paths: tuple[Path, ...]
    suite: str | None = None
    task: str | None = None
    models: tuple[str, ...] = ()  # aliases
    where: str | None = None  # SQL over the columns of `trials`
    loaded: bool = False  # whether trials of a load count, too: how fast a server is asked may change answers

    def __str__(self) -> str:
        return ", ".join(map(display_name, self.paths))

    @property
    def several(self) -> bool:
        return len(self.paths) > 1

    @property
    def filtered(self) -> bool:
        return bool(self.options)

    @property
    def partly(self) -> bool:
        """True if only some trials of a model count; how many of those were planned is not known."""
        return {self.suite, self.task, self.where} != {None}

    @property
    def plain(self) -> bool:
        """True if this is one folder and all of it."""
        return not (self.several or self.filtered)

    @cached_property
    def labels(self) -> Mapping[str, Path]:
        """The label of each folder."""
        return labels_of(self.paths)

    @property
    def options(self) -> Sequence[tuple[str, str]]:
        """Each filter as it is typed."""
        models = ",".join(self.models) or None
        filters = {"suite": self.suite, "task": self.task, "models": models, "where": self.where}
        return [(f"--{name}", value) for name, value in filters.items() if value is not None]

    @property
    def said(self) -> str:
        """The filters in a sentence."""
        return ", ".join(map(" ".join, self.options))

    def notes(self) -> Iterator[str]:
        """Yield notes for a reader: the folders, and the trials that were left out."""
        if self.several:
            yield f"{len(self.paths)} folders: {', '.join(self.labels)}."
        if self.filtered:
            yield f"Filtered: {self.said}. Only these trials and their calls count."


Folders = Paths | Chosen


def chosen(
    folder: Folders,
    *,
    suite: str | None = None,
    task: str | None = None,
    models: Sequence[str] | None = None,
    where: str | None = None,
    loaded: bool = False,
) -> Chosen:
    """Return the chosen folders and trials of them; `loaded` adds those of a load.

    Raises:
        ConfigError: no folder is named, or one twice.
    """
    if isinstance(folder, Chosen):
        return folder
    return Chosen(
        paths=paths_of(folder), suite=suite, task=task, models=tuple(models or ()), where=where, loaded=loaded
    )


# ── views of chosen trials ───────────────────────────────────────────────────────────────────────

Names = Mapping[tuple[str, str], str]  # (label of a folder, alias or lane) → what to call it among all
_MODELS: Final = ("trials", "attempts", "skipped", "steps")  # tables with the column `model`
_OF_TRIALS: Final = "trial_id IN (SELECT trial_id FROM chosen_{n})"


def raw(table: str, n: int) -> str:
    """Return the name under which a connection has all of a table of the n-th folder."""
    return f"raw_{table}_{n}"


def add_chosen(
    connection: "duckdb.DuckDBPyConnection", choice: Chosen, model_names: Names | None = None
) -> Names:
    """Make the views of chosen trials, given all tables of each folder; return what models are called.

    In views of several folders the column `folder` comes first, and a trial_id begins with it: two folders
    may hold the same trial. A model or lane that several have is named with its folder, or as in
    `model_names`.

    Raises:
        ConfigError: a filter is wrong, or leaves nothing.
    """
    naming = choice.several and model_names is None
    here = _named_in(connection, choice, "model", _MODELS) if naming or choice.models else {}
    names = model_names or {}
    if naming:
        lanes = _named_in(connection, choice, "lane", ("lanes",))
        names = _distinct_names({label: here[label] | lanes[label] for label in here})
    models = set[str]().union(*here.values())
    _check_names(connection, choice, models)
    wanted = _row_filters(choice, models)
    _view(connection, choice, names, "problems", wanted["problems"])
    condition = _condition(connection, choice)
    with explaining_where(choice.where):  # an aggregate, or a parameter, is only found out here
        for n in range(len(choice.paths)):
            rows = connection.sql(_rows(choice, "trials", n, wanted["trials"]))
            (rows if condition is None else rows.filter(condition)).create_view(f"chosen_{n}")
    for table in SCHEMAS:
        _view(connection, choice, names, table, wanted[table])
    with explaining_where(choice.where):
        if choice.filtered and not connection.sql("SELECT 1 FROM trials LIMIT 1").fetchall():
            raise ConfigError(
                f"{choice}: no trial matches {choice.said}. Leave one of them out, or change it."
            )
    return names


def _row_filters(choice: Chosen, models: Collection[str]) -> dict[str, str]:
    """Return the condition for the rows of each table as SQL; that of `where` comes on top."""
    filters = {"suite": choice.suite, "task": choice.task}
    alike = [f"{name} = {quoted(value)}" for name, value in filters.items() if value is not None]
    kinds, listed = " AND ".join(alike) or "true", ", ".join(map(quoted, choice.models))
    of_models = f"model IN ({listed})" if listed else "true"
    others = f"lane NOT IN ({', '.join(map(quoted, models))})" if models else "true"  # groups of models
    return {
        "problems": kinds,
        "trials": f"{kinds} AND {of_models}",
        "grades": f"{kinds} AND {of_models} AND {_OF_TRIALS if choice.where else 'true'}",
        "attempts": f"{of_models} AND {_OF_TRIALS if alike or choice.where else 'true'}",
        "skipped": f"{kinds} AND {of_models} AND {choice.where is None}",  # it may be on what came of a trial
        "steps": of_models,
        "lanes": f"(lane IN ({listed}) OR {others})" if listed else "true",
    }


def _rows(choice: Chosen, table: str, n: int, wanted: str) -> str:
    """Return the query of the n-th folder's rows of a table."""
    wanted = wanted.replace("{n}", str(n))
    folder = f"{quoted([*choice.labels][n])} AS folder," if choice.several else ""
    return f"SELECT {folder} * FROM {raw(table, n)} WHERE {wanted.replace('{n}', str(n))}"  # noqa: S608  quoted


def _view(
    connection: "duckdb.DuckDBPyConnection", choice: Chosen, names: Names, table: str, wanted: str
) -> None:
    """Make one view of the rows that are wanted, those of each folder as `names` has its models."""
    columns = SCHEMAS[table].names if table in SCHEMAS else ()
    selects = [
        f"SELECT * {_replace_clause(choice, names, label, columns)} FROM "  # noqa: S608  our words, quoted names
        + (f"chosen_{n}" if table == "trials" else f"({_rows(choice, table, n, wanted)})")
        for n, label in enumerate(choice.labels)
    ]
    connection.execute(f"CREATE VIEW {table} AS {' UNION ALL '.join(selects)}")


def _replace_clause(choice: Chosen, names: Names, label: str, columns: Collection[str]) -> str:
    """Return the SQL that replaces columns whose values several folders may have."""
    if not choice.several:
        return ""
    replacements = {"trial_id": "folder || '/' || trial_id"} if "trial_id" in columns else {}
    for column in {"model", "lane"} & {*columns}:
        changed = {
            alias: name for (folder, alias), name in names.items() if folder == label and name != alias
        }
        cases = "".join(f" WHEN {quoted(alias)} THEN {quoted(name)}" for alias, name in changed.items())
        if cases:
            replacements[column] = f"CASE {column}{cases} ELSE {column} END"
    replaced = ", ".join(f"{value} AS {column}" for column, value in replacements.items())
    return f"REPLACE ({replaced})" if replacements else ""


def folder_column(names: Names) -> str:
    """Return the folder of a row that has a `model`, as a column: each name is of one folder."""
    cases = "".join(f" WHEN {quoted(name)} THEN {quoted(label)}" for (label, _), name in names.items())
    return f"CASE model{cases} END AS folder"


def quoted(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def _named_in(
    connection: "duckdb.DuckDBPyConnection", choice: Chosen, column: str, tables: Sequence[str]
) -> dict[str, set[str]]:
    """Return the values of a column by folder."""
    by_folder: dict[str, set[str]] = {label: set() for label in choice.labels}
    rows = " UNION ".join(
        f"SELECT {quoted(label)}, {column} FROM {raw(table, n)}"  # noqa: S608  our words, a quoted one
        for n, label in enumerate(choice.labels)
        for table in tables
    )
    for label, value in connection.sql(rows).fetchall():
        by_folder[label].add(value)
    return by_folder


def _distinct_names(by_folder: Mapping[str, Collection[str]]) -> Names:
    """Return a name for each, with its folder where several folders have it."""
    times = Counter(name for names in by_folder.values() for name in names)
    distinct: dict[tuple[str, str], str] = {}
    for label, names in by_folder.items():
        for name in names:
            called = name if times[name] == 1 else f"{name} in {label}"
            while called != name and called in times:  # another model has this name
                called += "'"
            distinct[label, name] = called
    return distinct


# ── errors in filters ────────────────────────────────────────────────────────────────────────────


def _check_names(connection: "duckdb.DuckDBPyConnection", choice: Chosen, models: Collection[str]) -> None:
    """Refuse a suite, task or model that no folder has."""
    for option, values in (("suite", (choice.suite,)), ("task", (choice.task,)), ("models", choice.models)):
        wanted = {value for value in values if value is not None}
        if not wanted:
            continue
        available = models
        if option != "models":
            available = set[str]().union(*_named_in(connection, choice, option, ("trials",)).values())
        if unknown := sorted(wanted - {*available}):
            listed = ", ".join(sorted(available)) or "none"
            raise ConfigError(
                f"--{option} {', '.join(unknown)}: {choice} has no trial of it. It has: {listed}."
            )


def _condition(connection: "duckdb.DuckDBPyConnection", choice: Chosen) -> "duckdb.Expression | None":
    """Return the condition of `--where`, which may read problems, too, but nothing else.

    Raises:
        ConfigError: it is no condition over the columns of `trials`.
    """
    if choice.where is None:
        return None
    import duckdb

    with explaining_where(choice.where):
        condition = duckdb.SQLExpression(choice.where)  # one expression: nothing can follow it
        check_select(connection, f"SELECT ({choice.where}\n)", ("trials", "problems"), source="--where")
        kind = connection.sql(_rows(choice, "trials", 0, "true")).select(condition).types[0]
    if kind != "BOOLEAN":
        raise ConfigError(f'--where {choice.where}: this is no condition. Write one, such as "length > 5".')
    return condition


@contextmanager
def explaining_where(where: str | None) -> Iterator[None]:
    """Turn DuckDB's errors about a condition into ours."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        if where is None or isinstance(error, duckdb.OutOfMemoryException | duckdb.InternalError):
            raise
        if isinstance(error, duckdb.PermissionException):
            message = (
                f"--where {where}: a condition opens no file. Use the columns of `trials` and `problems`."
            )
            raise ConfigError(message) from error
        raise ConfigError(
            f"--where {where}: {line_of(error)}. Write a condition over the columns of `trials`."
        ) from error


# ── manifests ────────────────────────────────────────────────────────────────────────────────────


def joined_manifests(manifests: Sequence[tuple[Manifest, Callable[[str], str]]], choice: Chosen) -> Manifest:
    """Return one manifest that joins those of folders, as far as they are chosen.

    Args:
        manifests: each with a function that returns what its models are called among all.
        choice: what is chosen; a condition leaves what was planned as it is.
    """
    runs: dict[str, dict[str, Any]] = {}
    for manifest, called in manifests:
        for run, entry in manifest.get("runs", {}).items():
            together = runs.setdefault(run, {"planned": {}, "left_out": 0})
            together["left_out"] += entry.get("left_out", 0)
            for model, conditions in entry["planned"].items():
                if not choice.models or model in choice.models:
                    together["planned"][called(model)] = {
                        name: _planned(suites, choice) for name, suites in conditions.items()
                    }
    entries = [manifest for manifest, _ in manifests]
    return {
        "sweep": ", ".join(dict.fromkeys(manifest["sweep"] for manifest in entries)),
        "simulated": any(manifest.get("simulated") for manifest in entries),
        IMPORTED: all(manifest.get(IMPORTED) for manifest in entries),
        RECORDED: [
            entry | {"alias": called(entry["alias"])}
            for manifest, called in manifests
            for entry in manifest.get(RECORDED, [])
            if entry["alias"] in (choice.models or (entry["alias"],))
        ],
        LOADS: {
            called(alias): load
            for manifest, called in manifests
            for alias, load in manifest.get(LOADS, {}).items()
        },
        "runs": runs,
    }


def _planned(suites: Mapping[str, Any], choice: Chosen) -> dict[str, Any]:
    return {
        suite: {task: trials for task, trials in tasks.items() if choice.task in (None, task)}
        if isinstance(tasks, Mapping)
        else tasks  # of an early version
        for suite, tasks in suites.items()
        if choice.suite in (None, suite)
    }
