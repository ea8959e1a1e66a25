"""The styles of `report`: one record each, which the command's help, completion, figures and tests read.

A new style is its module and a row of `STYLES`. Nothing else is imported here: `--help` reads it.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final, Literal, NamedTuple


class Style(NamedTuple):
    """A kind of report; its module is loaded when it is asked for."""

    module: str
    function: str  # of the views of folders; of a published one, of the folders
    about: str = ""  # a sentence for `report --help`; empty: the command says it
    options: frozenset[str] = frozenset()
    single: bool = False  # it is of one model: a caller chooses it from several
    loaded: bool = False  # answers to a load count
    timed: bool = False  # it shows little but times, which are others in each run
    published: bool = False  # a published benchmark gave its name
    drawn: bool = False  # and its results have pictures
    figures: Literal["trials", "load"] | None = None  # the answers whose tables `report --figures` writes


_PUBLISHED: Final = "the tables that the benchmark of this name publishes."
STYLES: Final[Mapping[str | None, Style]] = {
    None: Style("reports.overview", "overview_of", figures="trials"),
    "morning": Style(
        "reports.status.run_overview",
        "run_overview_of",
        "which model is better, on one screen. `run` shows it at its end.",
    ),
    "standings": Style(
        "reports.standings.report", "standings_of", "the same for every suite, in full.", figures="trials"
    ),
    "heatmap": Style(
        "reports.heatmap",
        "accuracy_maps_of",
        "accuracy or another metric by model and task, and by task and length.",
        frozenset({"metric"}),
        figures="trials",
    ),
    "anatomy": Style(
        "reports.anatomy",
        "anatomy_of",
        "the kinds of wrong answers, and the digits that fail.",
        figures="trials",
    ),
    "error-map": Style(
        "reports.error_map",
        "error_map_of",
        "the share of wrong digits at each place of a number, by its part and by length.",
        drawn=True,
    ),
    "positions": Style(
        "reports.positions",
        "positions_of",
        "accuracy by the place of the right choice, and how often each place was chosen.",
        figures="trials",
    ),
    "formats": Style(
        "reports.formats.report",
        "formats_of",
        "numbers in several formats beside plain digits, examples beside none, and rules carried out.",
    ),
    "card": Style(
        "reports.card",
        "card_of",
        "one model on a page: accuracy, breaking points, errors, cost, and its closest published model.",
        single=True,
    ),
    "cost": Style(
        "reports.cost.report",
        "cost_report_of",
        "dollars by model, task, outcome and kind of token, with forecasts and budgets.",
        loaded=True,
        figures="trials",
    ),
    "quota": Style(
        "reports.quota",
        "quota_of",
        "how much of its rate limit each model used, and why not more.",
        timed=True,
    ),
    "load": Style(
        "reports.load.report",
        "load_report_of",
        "how fast and how right each rate of `asyncbench load` was, and the highest that kept the SLO.",
        loaded=True,
        timed=True,
        figures="load",
    ),
    "providers": Style(
        "reports.endpoints.report",
        "providers_of",
        "models side by side as providers of one: answers, price, times, limits and refusals.",
        loaded=True,
        timed=True,
        figures="load",
    ),
    "llm-arithmetic": Style(
        "published.llm_arithmetic.report",
        "llm_arithmetic_report_on",
        _PUBLISHED,
        frozenset({"min_depth", "grader", "published"}),
        published=True,
        drawn=True,
    ),
    "integer-addition": Style(
        "published.integer_addition.report", "integer_addition_report_on", _PUBLISHED, published=True
    ),
    "nupa": Style(
        "published.nupa.report",
        "nupa_report_on",
        _PUBLISHED,
        frozenset({"published", "intervals", "training_length"}),
        published=True,
        drawn=True,
    ),
}
EFFECTS: Final = Style("reports.effects", "effects_of", options=frozenset({"by"}))
BY_MODEL: Final = Style("reports.variants", "variants_of")
MODEL: Final = "model"  # the value of `by` that shows `BY_MODEL`
COMPARED: Final = (None, "standings")  # styles beside which `by` may stand: what it shows is `EFFECTS`
NAMES: Final = [name for name in STYLES if name]
DRAWN: Final = [name for name in NAMES if STYLES[name].drawn]
DRAWN_OPTIONS: Final = frozenset[str]().union(*(STYLES[name].options for name in DRAWN))


def described() -> Iterator[str]:
    """Yield a line for each sentence of help: the styles that it is about, then the sentence."""
    for about, names in groupby(NAMES, lambda name: STYLES[name].about):
        yield f"{', '.join(names)}: {about}"
