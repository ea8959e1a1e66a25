"""The styles of `report`: which there are, what options go with each, and where it is made."""

from pathlib import Path
from typing import Any, Protocol

from asyncbench.errors import ConfigError


class Shown(Protocol):
    """A report, in whatever form is asked for."""

    def as_text(self) -> str: ...

    def as_markdown(self) -> str: ...

    def as_latex(self) -> str: ...

    def as_json(self) -> str: ...


def report_in_style(folder: Path, style: str | None, options: dict[str, Any]) -> Shown:
    """Return the report of a style; None: our own."""
    known = {
        None: {"prices"},
        "morning": set[str](),
        "standings": set[str](),
        "heatmap": set[str](),
        "anatomy": set[str](),
        "cost": set[str](),
        "quota": set[str](),
        "llm-arithmetic": {"min_depth", "grader"},
        "integer-addition": set[str](),
        "nupa": set[str](),
    }
    if style not in known:
        raise ConfigError(f"--style {style}: choose of {', '.join(filter(None, known))}")
    if odd := sorted(options.keys() - known[style]):
        said = f"--style {style}" if style else "a report without --style"
        raise ConfigError(f"--{odd[0].replace('_', '-')} does not go with {said}; leave one of them out")
    match style:
        case "anatomy":
            from asyncbench.reports import anatomy_on

            return anatomy_on(folder)
        case "morning":
            from asyncbench.reports import morning_on

            return morning_on(folder)
        case "standings":
            from asyncbench.reports import standings_on

            return standings_on(folder)
        case "heatmap":
            from asyncbench.reports import accuracy_maps_on

            return accuracy_maps_on(folder)
        case "cost":
            from asyncbench.reports import cost_report_on

            return cost_report_on(folder)
        case "quota":
            from asyncbench.reports import quota_report_on

            return quota_report_on(folder)
        case "llm-arithmetic":
            from asyncbench.published.llm_arithmetic import llm_arithmetic_report_on

            return llm_arithmetic_report_on(folder, **options)
        case "integer-addition":
            from asyncbench.published.integer_addition import integer_addition_report_on

            return integer_addition_report_on(folder)
        case "nupa":
            from asyncbench.published.nupa import nupa_report_on

            return nupa_report_on(folder)
    return _own_report_on(folder, **options)


def _own_report_on(folder: Path, prices: str | None = None) -> Shown:
    from datetime import UTC, datetime

    from asyncbench.reports import report_on

    if prices not in (None, "now"):
        raise ConfigError(f"--prices {prices}: only `now` can be asked for; leave it out for the run's own")
    return report_on(folder, prices_at=datetime.now(UTC) if prices else None)
