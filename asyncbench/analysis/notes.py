"""Notes beside the figures of a report: graders, models that answered, trials lost or left out."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.errors import ConfigError
from asyncbench.files import quoted
from asyncbench.providers.endpoints import is_simulated
from asyncbench.providers.prices import same_model
from asyncbench.providers.wire import SIMULATOR
from asyncbench.records import BATCH, Outcome
from asyncbench.stats.proportions import Accuracy
from asyncbench.store.manifest import Manifest, simulated_note
from asyncbench.tables.data import HIDDEN, data_of
from asyncbench.tables.numbers import percent
from asyncbench.tables.report import Report
from asyncbench.tables.screen import safe_notes

MOST_LOST: Final = 5  # names, the worst; more are counted

# Column of `trials` → how its values are spoken of.
_SERVED: Final = {
    "model_served": "models",
    "fingerprint": "builds (system fingerprints)",
    "upstream": "upstream providers",
}

Outcomes = Mapping[str, int]  # outcome → trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """Who graded a suite."""

    suite: str
    grader: str
    versions: tuple[int, ...]  # ascending


def graders_of(views: FolderViews, grades: str) -> tuple[Graded, ...]:
    """Return who gave some grades, by suite.

    Args:
        views: of the folder.
        grades: a table of them, with the columns suite, grader and grader_version.
    """
    rows = views.rows(
        "SELECT suite, grader, list(DISTINCT grader_version ORDER BY grader_version) AS versions "  # noqa: S608  ours
        f"FROM {grades} GROUP BY suite, grader ORDER BY suite, grader"
    )
    return tuple(Graded(**row | {"versions": tuple(row["versions"])}) for row in rows)


def headline_graders(views: FolderViews) -> tuple[Graded, ...]:
    """Return who gave the grades that count."""
    known = "headline_grades" in views.definitions
    return graders_of(views, "headline_grades" if known else "(FROM grades WHERE headline)")


def graded_by(graders: Iterable[Graded]) -> str:
    """Return it as a sentence."""
    phrases = (
        f"{graded.suite} by {graded.grader} "
        f"{' and '.join(f'v{n}' for n in graded.versions) or '(version unknown)'}"
        for graded in graders
    )
    return f"Graders: {', '.join(phrases)}."


# ── simulated answers and other models ───────────────────────────────────────────────────────────


_WHO: Final = "SELECT DISTINCT provider, upstream FROM {table} ORDER BY ALL"


def simulated_by(views: FolderViews, table: str = "trials") -> list[str] | None:
    """Return the vendors in whose names a simulator answered: it was reached by their `base_url`.

    None: it answered none of the trials of a table.
    """
    rows = views.rows(_WHO.format(table=table))
    return _vendors(rows) if any(map(_is_simulated, rows)) else None


def _is_simulated(row: Mapping[str, Any]) -> bool:
    return is_simulated(row["provider"]) or row["upstream"] == SIMULATOR


def _vendors(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    providers = (row["provider"] for row in rows if row["upstream"] == SIMULATOR)
    return [provider for provider in providers if not is_simulated(provider)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderReport(Report):
    """A report on a results folder, which says first if no model was asked now."""

    folder: str
    simulated_note: str = field(metadata=HIDDEN)  # empty: no results are simulated

    @property
    def simulated(self) -> bool:
        """True if any of the results are simulated."""
        return bool(self.simulated_note)

    @property
    def nothing(self) -> str | None:
        """What to say instead of all else where there is nothing to show; None: there is something."""
        return None

    def _data(self) -> dict[str, Any]:  # Any: JSON
        return {"folder": self.folder, "simulated": self.simulated, **data_of(self)}

    def _notes(self) -> Iterator[str]:
        yield from self._simulated()
        yield from [self.nothing] if self.nothing else self._remarks()

    def _remarks(self) -> Iterator[str]:
        """Yield what to know of the figures that are shown."""
        return iter(())

    def _simulated(self) -> list[str]:
        return [self.simulated_note] * self.simulated


def note_of_simulated(views: FolderViews, *, table: str = "trials", known: bool = False) -> str:
    """Return what to say of the simulated results; empty: there are none.

    Args:
        views: of the folders; where they differ, the note names them.
        table: whose trials are shown.
        known: that some are simulated, whatever the table holds.
    """
    of = views.chosen
    known = known and not of.filtered
    vendors = simulated_by(views, table)
    if vendors is None and not known:
        return ""
    if not of.several:
        return simulated_note(views.manifest, vendors or ())
    answered = views.rows("SELECT DISTINCT folder, provider, upstream FROM trials ORDER BY ALL")
    notes = defaultdict[str, list[str]](list)
    for label in of.labels:
        own = [row for row in answered if row["folder"] == label]
        if any(map(_is_simulated, own)) or (known and views.manifest_of(label).get("simulated")):
            notes[simulated_note(views.manifest_of(label), _vendors(own))].append(label)
    if [[*of.labels]] == [*notes.values()]:
        return "".join(notes)
    return " ".join(f"{', '.join(labels)}: {note}" for note, labels in notes.items())


def simulated_note_of(folder: Folders, *, known: bool) -> str:
    """Return `note_of_simulated` of folders whose views are not open."""
    return counted(folder, lambda views: note_of_simulated(views, known=known))


def mixtures(views: FolderViews) -> tuple[str, ...]:
    """Return a warning for each alias that several or others answered, with how many trials each.

    Of a simulated one it is no news that another answered for it; what is not told is NULL.
    """
    columns = ", ".join(("model", "provider", "model_id", *_SERVED))
    rows = views.rows(f"SELECT {columns}, count(*) AS trials FROM trials GROUP BY ALL")  # noqa: S608  our words
    warnings = []
    for column, things in _SERVED.items():
        by_model = defaultdict[str, Counter[str]](Counter)
        for row in rows:
            if row[column] is not None:
                by_model[row["model"]][row[column]] += row["trials"]
        warnings += [
            f"Several {things} answered for {model}: {_most_first(counts)}."
            for model, counts in sorted(by_model.items())
            if len(counts) > 1
        ]
    others = defaultdict[tuple[str, str], Counter[str]](Counter)
    for row in rows:
        requested, by = row["model_id"], row["model_served"]
        if (
            None not in (requested, by)
            and not is_simulated(row["provider"])
            and not same_model(requested, by)
        ):
            others[row["model"], requested][by] += row["trials"]
    warnings += [
        f"{model} asked for {requested}, but another model answered: {_most_first(counts)}."
        for (model, requested), counts in sorted(others.items())
    ]
    return tuple(warnings)


def _most_first(counts: Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{value} ({count:,})" for value, count in ordered)


# ── batches ──────────────────────────────────────────────────────────────────────────────────────

OTHER_LATENCY: Final = "Latency is that of the calls in real time: a request of a batch has none."


BatchUse = Mapping[str, Any]  # Any: a model, its requests in batches, and its calls, these among them


def batch_uses(views: FolderViews) -> list[dict[str, Any]]:
    """Return which models were asked in batches of their providers, by name."""
    return views.rows(
        f"SELECT model, count(*) FILTER (mode = '{BATCH}') AS requests, count(*) AS calls FROM attempts "  # noqa: S608  a word of ours
        "GROUP BY model HAVING requests > 0 ORDER BY model"
    )


def batch_notes(uses: Iterable[BatchUse], then: str) -> list[str]:
    """Return who was asked in batches as a sentence, and what that means; none where nobody was.

    Args:
        uses: of the models of a folder.
        then: what a report leaves out for it.
    """
    phrases = [
        f"{model} ({'all ' * (requests == calls)}{requests:,}"
        f"{f' of {calls:,}' * (requests < calls)} requests)"
        for model, requests, calls in (use.values() for use in uses)
    ]
    return [f"Asked in batches: {', '.join(phrases)}. {then}"] if phrases else []


# ── lost trials ──────────────────────────────────────────────────────────────────────────────────


def lost_notes(outcomes: Mapping[str, Outcomes]) -> list[str]:
    """Return whose accuracy says less than it seems to, because trials were truncated or failed.

    It is one sentence, or none where no more than 1 % of anybody's trials was lost.

    Args:
        outcomes: name → its trials by outcome.
    """
    lost = {name: each for name in outcomes if (each := Accuracy.of(outcomes[name])).loud}
    loud = sorted(lost, key=lambda name: -(lost[name].lost_share or 0.0))
    if not loud:
        return []
    named = [
        f"{name} {percent(lost[name].lowest or 0)}-{percent(lost[name].highest or 0)} "
        f"({lost_briefly(outcomes[name])})"
        for name in loud[:MOST_LOST]
    ]
    more = f"; and {len(loud) - MOST_LOST} more" if len(loud) > MOST_LOST else ""
    return [
        f"LOST TRIALS: for {len(loud)} of {len(outcomes)} models, over 1 % of the trials failed or were "
        f"truncated. Accuracy if these were all wrong, or all right: {'; '.join(named)}{more}."
    ]


def lost_briefly(outcomes: Outcomes) -> str:
    """Return which trials were lost: `2,100 truncated, 12 failed, 4.2%`."""
    kinds = (Outcome.TRUNCATED, Outcome.FAILED)
    counts = ", ".join(f"{count:,} {kind}" for kind in kinds if (count := outcomes.get(kind, 0)))
    return f"{counts}, {percent(Accuracy.of(outcomes).lost_share or 0)}"


def left_out_of(manifest: Manifest, *, runs: Collection[str]) -> dict[str, int]:
    """Return how many entries of their files could not be used: run → entries, never 0.

    A file that gave nothing is named with any runs: it has no trials that would tell its suites.
    """
    return {
        run: entries
        for run, entry in manifest.get("runs", {}).items()
        if (entries := entry.get("left_out", 0)) and (run in runs or not entry["planned"])
    }


def left_out_at_import(entries: Mapping[str, int]) -> list[str]:
    """Return it as a sentence; none where nothing was left out."""
    runs = ", ".join(f"{run} {count:,}" for run, count in entries.items())
    return [f"Entries that the import could not use, by run: {runs}."] if runs else []


def counted_note(number: int, words: str) -> list[str]:
    """Return a note that begins with a number of things; none where there are none."""
    return [f"{number:,} {words}"] if number else []


# ── reports of chosen trials ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOfChosen(Report):
    """A report of several folders, or of some trials: it says so first, and tells each model's folder."""

    whole: Report
    of: Chosen

    def _text(self, width: int | None, height: int | None) -> str:
        notes = "\n".join(safe_notes(self.of.notes(), width=width))
        remaining = None if height is None else height - notes.count("\n") - 1
        return f"{notes}\n{self.whole.as_text(width=width, height=remaining)}"

    def _parts(self) -> Iterator[Any]:
        yield from self.of.notes()
        yield from self.whole._parts()

    def _data(self) -> dict[str, object]:
        names = counted(self.of, lambda views: views.names) if self.of.several else {}
        folders = {name: label for (label, _), name in names.items()}
        return {"chosen": [*self.of.notes()], **_with_folders(self.whole._data(), folders)}


def of_chosen(whole: Report, folder: Folders) -> Report:
    """Return a report that says of which folders and trials it is, where that is not one folder's all."""
    of = chosen(folder)
    return whole if of.plain else ReportOfChosen(whole=whole, of=of)


def _with_folders(value: Any, folders: Mapping[str, str]) -> Any:
    """Return what JSON has, with `folder` beside each model and lane that has one."""
    if isinstance(value, list | tuple):
        return [_with_folders(part, folders) for part in value]
    if not isinstance(value, Mapping):
        return value
    parts = {name: _with_folders(part, folders) for name, part in value.items()}
    who = parts.get("model", parts.get("lane"))
    return {"folder": folders[who], **parts} if isinstance(who, str) and who in folders else parts


# ── empty folders ────────────────────────────────────────────────────────────────────────────────


def no_trials(folder: object) -> str:
    """Return what to say of a folder without trials."""
    status = f"asyncbench status {quoted(folder)}"
    return f"{folder} has no trials yet. Run its sweep first. `{status}` shows how far it is."


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing(Report):
    """A report in which there is nothing: which folder, and what to do."""

    folder: str
    nothing: str

    def _notes(self) -> Iterator[str]:
        yield self.nothing


class NothingToShowError(ConfigError):
    """A folder has nothing that a style could show; `page` is the report that says so."""

    def __init__(self, folder: object, message: str) -> None:
        super().__init__(message)
        self.page = Nothing(folder=str(folder), nothing=message)

    @classmethod
    def of_suites(
        cls, folder: object, suites: Collection[str], present: Sequence[str]
    ) -> "NothingToShowError":
        """Return the error for a folder without trials of some suites; it has those that are `present`."""
        if not present:
            return cls(folder, no_trials(folder))
        wanted = " or ".join(suites)
        message = (
            f"{folder} has no trials of {wanted}, only of {', '.join(present)}. Leave out `--style`, or run "
            f"a sweep with problems of {wanted}."
        )
        return cls(folder, message)
