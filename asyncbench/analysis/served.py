"""The models that answered: a simulator, or another model than was asked for."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.providers.endpoints import is_simulated
from asyncbench.providers.prices import same_model
from asyncbench.providers.wire import SIMULATOR
from asyncbench.store.manifest import simulated_note

# Column of `trials` → how its values are spoken of.
_SERVED: Final = {
    "model_served": "models",
    "fingerprint": "builds (system fingerprints)",
    "upstream": "upstream providers",
}
_WHO: Final = "SELECT DISTINCT provider, upstream FROM {table} ORDER BY ALL"


def simulated_by(views: FolderViews, table: str = "trials") -> list[str] | None:
    """Return the vendors in whose names a simulator answered: it was reached by their `base_url`.

    None: it answered none of the trials of a table.
    """
    rows = views.rows(_WHO.format(table=table))
    return _vendors(rows) if any(map(_is_simulated, rows)) else None


def simulated_note_of(folder: Folders, *, simulated: bool) -> str:
    """Return `note_of_simulated` of folders whose views are not open."""
    return counted(folder, lambda views: note_of_simulated(views, simulated=simulated))


def note_of_simulated(views: FolderViews, *, table: str = "trials", simulated: bool = False) -> str:
    """Return a note on simulated results, or an empty text without any.

    Args:
        views: of the folders; where they differ, the note names them.
        table: whose trials are shown.
        simulated: that some are simulated, whatever the table holds.
    """
    choice = views.chosen
    simulated = simulated and not choice.filtered
    vendors = simulated_by(views, table)
    if vendors is None and not simulated:
        return ""
    if not choice.several:
        return simulated_note(views.manifest, vendors or ())

    # Folders of which the same is said are named together.
    answered = views.rows("SELECT DISTINCT folder, provider, upstream FROM trials ORDER BY ALL")
    notes = defaultdict[str, list[str]](list)
    for label in choice.labels:
        manifest, rows = views.manifest_of(label), [row for row in answered if row["folder"] == label]
        if any(map(_is_simulated, rows)) or (simulated and manifest.get("simulated")):
            notes[simulated_note(manifest, _vendors(rows))].append(label)
    if [[*choice.labels]] == [*notes.values()]:
        return "".join(notes)
    return " ".join(f"{', '.join(labels)}: {note}" for note, labels in notes.items())


def _is_simulated(row: Mapping[str, Any]) -> bool:
    return is_simulated(row["provider"]) or row["upstream"] == SIMULATOR


def _vendors(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    providers = (row["provider"] for row in rows if row["upstream"] == SIMULATOR)
    return [provider for provider in providers if not is_simulated(provider)]


def mixtures(views: FolderViews) -> tuple[str, ...]:
    """Return a warning for each alias that several or others answered, with how many trials each.

    Of a simulated one it is no news that another answered for it; what is not told is NULL.
    """
    columns = ", ".join(("model", "provider", "model_id", *_SERVED))
    rows = views.rows(f"SELECT {columns}, count(*) AS trials FROM trials GROUP BY ALL")  # noqa: S608  our words
    warnings = []
    for column, plural in _SERVED.items():
        by_model = defaultdict[str, Counter[str]](Counter)
        for row in rows:
            if row[column] is not None:
                by_model[row["model"]][row[column]] += row["trials"]
        warnings += [
            f"Several {plural} answered for {model}: {_most_first(counts)}."
            for model, counts in sorted(by_model.items())
            if len(counts) > 1
        ]
    others = defaultdict[tuple[str, str], Counter[str]](Counter)
    for row in rows:
        requested, served = row["model_id"], row["model_served"]
        if None in (requested, served) or is_simulated(row["provider"]):
            continue
        if not same_model(requested, served):
            others[row["model"], requested][served] += row["trials"]
    warnings += [
        f"{model} asked for {requested}, but another model answered: {_most_first(counts)}."
        for (model, requested), counts in sorted(others.items())
    ]
    return tuple(warnings)


def _most_first(counts: Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{value} ({count:,})" for value, count in ordered)
