"""In which order tables list who was asked: as the manifest has runs, models and conditions."""

from collections.abc import Iterable

from asyncbench.store.manifest import Manifest, planned

Asked = tuple[str, str, str]  # run, model, condition


def in_order(asked: Iterable[Asked], manifest: Manifest) -> list[Asked]:
    """Return them as they were planned; what was not planned comes last, by name."""
    places = {one: place for place, one in enumerate(planned(manifest))}
    models: dict[tuple[str, str], int] = {}
    for (run, model, _), place in places.items():
        models.setdefault((run, model), place)
    last = len(places)
    return sorted(asked, key=lambda one: (models.get(one[:2], last), places.get(one, last), one))
