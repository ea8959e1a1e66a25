"""A provider's usage export, CSV or JSON, as lines of day × model; what is amiss is named and refused."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import orjson

from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.contents import text_in
from asyncbench.errors import ConfigError
from asyncbench.records import BATCH
from asyncbench.reports.cost.counts import keep_calls
from asyncbench.store.schema import LOST
from asyncbench.tables.data import HIDDEN

# ── Columns of usage exports by their content: those of known exports, and those that a person names


# The kinds of columns, and what each holds. Several columns of one kind are added up.
FIELDS: Final[Mapping[str, str]] = {
    "day": "the day, or the start of the period",
    "model": "the model's name",
    "line_item": "the model's name, a comma, and what was billed",
    "cost": "US dollars",
    "cost_cents": "cents of a US dollar",
    "currency": "the currency of the cost; only USD is read",
    "input": "input tokens, with cached ones",
    "uncached_input": "input tokens, without cache reads and writes",
    "cached_input": "input tokens read from a cache",
    "cache_write": "input tokens written to a cache",
    "output": "output tokens, with reasoning",
    "reasoning": "reasoning tokens (part of the output)",
    "requests": "calls",
}
Columns = Mapping[str, tuple[str, ...]]  # kind → names of columns


@dataclass(frozen=True, slots=True, kw_only=True)
class BillFormat:
    """An export that is known by its columns. In JSON, a name with a point is a key within a key."""

    name: str
    verified: str  # where its columns are described
    has_all: tuple[str, ...]  # a file with all of these columns is of this format
    columns: Columns


_OPENAI_REFERENCE: Final = "OpenAI's API reference: organization/usage/completions and organization/costs"
_OPENAI_DASHBOARD: Final = "the Export button of OpenAI's usage page"
_CONSOLE: Final = "the Export button of Anthropic's Console"
_ANTHROPIC_REFERENCE: Final = "Anthropic's Admin API reference: usage_report/messages and cost_report"

FORMATS: Final = (
    BillFormat(
        name="OpenAI completions usage",
        verified=_OPENAI_REFERENCE,
        has_all=("start_time", "input_tokens", "output_tokens"),
        columns={
            "day": ("start_time",),
            "model": ("model",),
            "input": ("input_tokens",),
            "cached_input": ("input_cached_tokens",),
            "cache_write": ("input_cache_write_tokens",),
            "output": ("output_tokens",),
            "requests": ("num_model_requests",),
        },
    ),
    BillFormat(
        name="OpenAI costs",
        verified=_OPENAI_REFERENCE,
        has_all=("start_time", "amount.value"),
        columns={
            "day": ("start_time",),
            "line_item": ("line_item",),
            "cost": ("amount.value",),
            "currency": ("amount.currency",),
        },
    ),
    BillFormat(
        name="OpenAI costs as CSV",
        verified=_OPENAI_DASHBOARD,
        has_all=("start_time", "amount_value"),
        columns={
            "day": ("start_time",),
            "line_item": ("line_item",),
            "cost": ("amount_value",),
            "currency": ("amount_currency",),
        },
    ),
    BillFormat(
        name="Anthropic messages usage",
        verified=_ANTHROPIC_REFERENCE,
        has_all=("starting_at", "uncached_input_tokens", "output_tokens"),
        columns={
            "day": ("starting_at",),
            "model": ("model",),
            "uncached_input": ("uncached_input_tokens",),
            "cached_input": ("cache_read_input_tokens",),
            "cache_write": (
                "cache_creation.ephemeral_5m_input_tokens",
                "cache_creation.ephemeral_1h_input_tokens",
            ),
            "output": ("output_tokens",),
        },
    ),
    BillFormat(
        name="Anthropic cost report",
        verified=_ANTHROPIC_REFERENCE,
        has_all=("starting_at", "amount", "currency"),
        columns={
            "day": ("starting_at",),
            "model": ("model",),
            "cost_cents": ("amount",),
            "currency": ("currency",),
        },
    ),
    BillFormat(
        name="Anthropic Console tokens",
        verified=_CONSOLE,
        has_all=("usage_date_utc", "usage_input_tokens_no_cache", "usage_output_tokens"),
        columns={
            "day": ("usage_date_utc",),
            "model": ("model_version", "model"),
            "uncached_input": ("usage_input_tokens_no_cache",),
            "cached_input": ("usage_input_tokens_cache_read",),
            "cache_write": (
                "usage_input_tokens_cache_write",
                "usage_input_tokens_cache_write_5m",
                "usage_input_tokens_cache_write_1h",
            ),
            "output": ("usage_output_tokens",),
        },
    ),
    BillFormat(
        name="Anthropic Console cost",
        verified=_CONSOLE,
        has_all=("usage_date_utc", "model", "cost_usd"),
        columns={"day": ("usage_date_utc",), "model": ("model",), "cost": ("cost_usd",)},
    ),
    BillFormat(
        name="OpenRouter generations",
        verified="the Export button of OpenRouter's activity page",
        has_all=("created_at", "cost_total", "model_permaslug"),
        columns={
            "day": ("created_at",),
            "model": ("model_permaslug",),
            "cost": ("cost_total", "byok_usage_inference"),
            "input": ("tokens_prompt",),
            "cached_input": ("tokens_cached",),
            "output": ("tokens_completion",),
            "reasoning": ("tokens_reasoning",),
        },
    ),
    BillFormat(
        name="OpenRouter activity",
        verified="OpenRouter's API reference: activity",
        has_all=("date", "model", "usage", "completion_tokens"),
        columns={
            "day": ("date",),
            "model": ("model",),
            "cost": ("usage", "byok_usage_inference"),
            "input": ("prompt_tokens",),
            "output": ("completion_tokens",),
            "reasoning": ("reasoning_tokens",),
            "requests": ("requests",),
        },
    ),
)

# Exports that name no model: what they are, and some of their columns in small letters.
_WITHOUT_MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "the billing export of Google Cloud": ("service description", "sku description"),
    "the cost export of Azure": ("metercategory", "costinbillingcurrency"),
    "an older cost export of Azure": ("metercategory", "pretaxcost"),
    "the cost and usage report of AWS": ("lineitem/usagestartdate", "lineitem/unblendedcost"),
    "the cost and usage report 2.0 of AWS": ("line_item_usage_start_date", "line_item_unblended_cost"),
    "a FOCUS cost export": ("billedcost", "chargeperiodstart"),
}

# Names of columns by kind, for files of no known format. The names of `FIELDS` are understood as well.
_PLAIN_NAMES: Final[Columns] = {
    "day": (
        *("day", "date", "usage_date_utc", "usage_date", "start_time_iso", "start_time", "starting_at"),
        *("created_at", "timestamp"),
    ),
    "cost": ("cost_usd", "usd"),
    "input": ("input_tokens",),
    "cached_input": ("cached_input_tokens",),
    "cache_write": ("cache_write_tokens",),
    "output": ("output_tokens",),
    "reasoning": ("reasoning_tokens",),
    "requests": ("requests", "calls"),
}
_COMPARABLE: Final = ("cost", "cost_cents", "input", "uncached_input", "output")


def columns_of(head: Collection[str], named: str | None, *, file: str) -> tuple[str, str | None, Columns]:
    """Return the format of a file, where its columns are described, and the columns by kind.

    Args:
        head: the names of the file's columns.
        named: `day=date,model=model_id,cost=amount+fee`; None: find them by the known formats.
        file: the file, for messages.

    Raises:
        ConfigError: a named column is not in the file, or the format is unknown.
    """
    if named is not None:
        return "as --columns says", None, _named_columns(head, named, file)
    for export in FORMATS:
        if set(export.has_all) <= set(head):
            return export.name, export.verified, _present(export.columns, head)
    small = {name.lower() for name in head}
    if vendor := next((vendor for vendor, names in _WITHOUT_MODELS.items() if small.issuperset(names)), None):
        raise ConfigError(
            f"{file}: this is {vendor}. It bills by meter, not by model. Sum it by day and model, and "
            f"name the columns: --columns day=…,model=…,cost=…. Its columns: {', '.join(map(repr, head))}."
        )
    by_name = _present({kind: (*_PLAIN_NAMES.get(kind, ()), kind) for kind in FIELDS}, head)
    by_kind = {kind: names[:1] for kind, names in by_name.items()}
    if not by_kind.keys() & set(_COMPARABLE):
        raise ConfigError(
            f"{file}: this format is not known. Name the columns: --columns "
            f"day=…,model=…,cost=…,input=…,output=…. Its columns: {', '.join(map(repr, head))}."
        )
    return "columns by their names", None, by_kind


def _present(columns: Columns, head: Collection[str]) -> Columns:
    there = {kind: tuple(name for name in names if name in head) for kind, names in columns.items()}
    return {kind: names for kind, names in there.items() if names}


def _named_columns(head: Collection[str], named: str, file: str) -> Columns:
    columns: dict[str, tuple[str, ...]] = {}
    for entry in named.split(","):
        kind, _, names = entry.partition("=")
        kind = kind.strip()
        if kind not in FIELDS or not names.strip():
            raise ConfigError(
                f"--columns: {entry!r} is not WHAT=COLUMN. WHAT is one of: {', '.join(FIELDS)}."
            )
        if kind in columns:
            raise ConfigError(f"--columns: {kind} is there twice. Join columns to add with +: {kind}=a+b.")
        columns[kind] = tuple(name.strip() for name in names.split("+"))
        if missing := [name for name in columns[kind] if name not in head]:
            has = ", ".join(map(repr, head))
            raise ConfigError(f"{file}: there is no column {missing[0]!r}. Its columns: {has}.")
    if not columns.keys() & set(_COMPARABLE):
        raise ConfigError(
            f"--columns: there is nothing to compare. Name at least one of: {', '.join(_COMPARABLE)}."
        )
    return columns


# ── Calls of a results folder by day and model: dollars and tokens


_UNKNOWN: Final = "cost_usd IS NULL"
# The fields of `Ours`. The cost is unknown of lost calls, and of those that timed out or could not be read.
_SUMS: Final = f"""
SELECT model AS alias, model_id, model_served AS served,
    make_timestamp(epoch_us(started_at) + $shift_us)::DATE AS day,
    max(provider) AS provider, count(*) AS calls,
    sum_usd(cost_usd) AS usd, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output,
    sum(cached_input_tokens) AS cached_input, sum(reasoning_tokens) AS reasoning,
    count(*) FILTER (status = 'ok' AND {_UNKNOWN} AND input_tokens + output_tokens IS NOT NULL) AS priceless,
    count(*) FILTER (status = '{LOST}' AND {_UNKNOWN}) AS lost_calls,
    count(*) FILTER (status NOT IN ('ok', '{LOST}') AND {_UNKNOWN}) AS cut_calls,
    count(*) FILTER (mode = '{BATCH}') AS batched
FROM calls WHERE coalesce(provider = $provider, true) GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone


class BillNames(NamedTuple):
    """The three names by which a bill may call a model."""

    alias: str
    model_id: str | None  # None: no trial has a result
    served: str | None  # None: there is no reply, or it names no model


@dataclass(slots=True, kw_only=True)
class Ours:
    """What calls used and cost, by the records of the folder."""

    calls: int = 0
    usd: float = 0.0
    input_tokens: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0
    batched: int = 0  # requests of batches
    priceless: int = 0  # answered calls without a price
    lost_calls: int = 0
    cut_calls: int = 0

    def add(self, other: "Ours") -> None:
        """Add the calls of another record."""
        for name in Ours.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderUse:
    """What the calls of a folder used, by model and by the day on which a call began."""

    by_day: Mapping[tuple[BillNames, date], Ours]
    providers: Mapping[BillNames, str]
    simulated_note: str  # empty: no results are simulated


def use_of(folder: Path, provider: str | None, *, shift_h: float = 0.0) -> FolderUse:
    """Return the use of a folder's calls.

    Args:
        folder: the results folder.
        provider: only calls to this provider; None: all calls.
        shift_h: hours to add to UTC before the day is taken.

    Raises:
        ConfigError: there is no call to that provider; the message names the folder's providers.
        StoreError: the folder cannot be read.
    """
    return counted(chosen(folder, loaded=True), lambda views: _use(views, provider, shift_h))


def _use(views: FolderViews, provider: str | None, shift_h: float) -> FolderUse:
    simulated_note, model_ids = keep_calls(views)
    here = [row["provider"] for row in views.rows("SELECT DISTINCT provider FROM calls ORDER BY ALL")]
    if provider is not None and provider not in here:
        raise ConfigError(
            f"--provider {provider}: the folder has no calls to it. It has: {', '.join(here) or 'none'}."
        )
    sums = views.rows(_SUMS, {"shift_us": round(shift_h * 3.6e9), "provider": provider})
    by_day, providers = dict[tuple[BillNames, date], Ours](), dict[BillNames, str]()
    for row in sums:
        names = BillNames(row["alias"], row["model_id"], row["served"])
        by_day[names, row["day"]] = Ours(**{name: row[name] or 0 for name in Ours.__slots__ if name in row})
        providers[names] = row["provider"]
    for sent in views.unended:
        if provider in (None, sent.provider):
            day = datetime.fromtimestamp(sent.started_at + shift_h * 3600, UTC).date()
            names = BillNames(sent.model, model_ids.get(sent.model), None)
            by_day.setdefault((names, day), Ours()).add(Ours(calls=1, lost_calls=1))
            providers.setdefault(names, sent.provider)
    return FolderUse(by_day=by_day, providers=providers, simulated_note=simulated_note)


# ── Cells of a usage export: days, counts and dollars; an ambiguous one is refused


_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SECONDS: Final = re.compile(r"[0-9]{9,10}(?:\.[0-9]+)?")  # since 1970, of the years 1973 to 2286
_PLAIN: Final = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?|[+-]?\.\d+", re.ASCII)
_GROUPED: Final = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
MOST: Final = 10**15  # tokens or dollars; more is an error of the file
_MOST_CHARACTERS: Final = 64  # a longer text is not a number

DAY_RULE: Final = "write YYYY-MM-DD, a time in ISO 8601, or seconds since 1970"
COUNT_RULE: Final = "write a whole number of tokens, such as 12345 or 12,345"
USD_RULE: Final = (
    "write US dollars with a point, such as 1234.56, $1,234.56 or 1234.56 USD; a lone comma may be a decimal"
)


def day_of(value: object, shift_h: float = 0.0) -> date:
    """Return the day of a cell, `shift_h` hours east of UTC; raises ValueError with the rule.

    A day and a time without a zone are already in that time zone; a time with a zone is converted.
    """
    text, zone = str(value).strip(), timezone(timedelta(hours=shift_h))
    if _SECONDS.fullmatch(text):
        return datetime.fromtimestamp(float(text), zone).date()
    if not _DAY.match(text):
        raise ValueError(DAY_RULE)
    try:
        moment = datetime.fromisoformat(text)
        return (moment.astimezone(zone) if moment.tzinfo else moment).date()
    except (ValueError, OverflowError):  # the first and the last days there are
        raise ValueError(DAY_RULE) from None


def count_of(value: object) -> int:
    """Return a number of tokens or calls; commas part thousands. Raises ValueError with the rule."""
    text = _text(value)
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    number = _number(text, COUNT_RULE)
    if number < 0 or number != number.to_integral_value():
        raise ValueError(COUNT_RULE)
    return int(number)


def usd_of(value: object) -> Decimal:
    """Return US dollars; commas part thousands where a point follows. Raises ValueError with the rule."""
    text = _text(value)
    sign = "-" if text.startswith("-") else ""
    bare = text.removeprefix("-").removeprefix("$")
    bare = re.sub(r"\s*USD$", "", bare, flags=re.IGNORECASE)
    if _GROUPED.fullmatch(bare):
        if "." not in bare and bare.count(",") == 1:
            raise ValueError(USD_RULE)
        bare = bare.replace(",", "")
    return _number(sign + bare, USD_RULE)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return ""
    return repr(value) if isinstance(value, float) else str(value).strip()


def _number(text: str, rule: str) -> Decimal:
    if len(text) > _MOST_CHARACTERS or not _PLAIN.fullmatch(text):
        raise ValueError(rule)
    number = Decimal(text)
    if abs(number) > MOST:
        raise ValueError(rule)
    return number


# ── A bill and a folder side by side, by model and day


MEASURES: Final[Mapping[str, str]] = {"usd": "dollars", "input_tokens": "input", "output": "output"}
DUST: Final = 1e-9  # a smaller gap is an error of adding floats, and counts as 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BillSide:
    """The figures of some calls in a bill, with None for those that the bill lacks."""

    usd: float | None = None
    input_tokens: int | None = None
    output: int | None = None
    cached_input: int | None = None
    requests: int | None = None
    lines: int = 0  # of the file


@dataclass(frozen=True, slots=True, kw_only=True)
class BillPair:
    """The figures of one model in the bill and in the folder."""

    model: str
    day: date | None  # None: all days
    theirs: BillSide
    ours: Ours

    def gap(self, measure: str) -> float | None:
        """Return the bill's figure minus the folder's, or None if the bill lacks it."""
        theirs = getattr(self.theirs, measure)
        if theirs is None:
            return None
        gap: float = theirs - getattr(self.ours, measure)
        return gap if abs(gap) > DUST else 0.0


def together(pairs: Iterable[BillPair], *, model: str) -> BillPair:
    """Return the sum of pairs as one pair."""
    ours, sides = Ours(), list[BillSide]()
    for pair in pairs:
        ours.add(pair.ours)
        sides.append(pair.theirs)
    return BillPair(model=model, day=None, theirs=added(sides), ours=ours)


def pairs_by_model(days: Sequence[BillPair]) -> list[BillPair]:
    """Return one pair for each model, over all its days."""
    models = sorted({pair.model for pair in days})
    return [together((pair for pair in days if pair.model == model), model=model) for model in models]


def added(sides: Iterable[BillSide]) -> BillSide:
    """Return the sum of each figure; None where no side has it."""
    sums: dict[str, float] = {}
    for side in sides:
        for name in BillSide.__slots__:
            if (value := getattr(side, name)) is not None:
                sums[name] = sums.get(name, 0) + value
    return BillSide(**sums)  # type: ignore[arg-type]  # counts stay counts


def share_of(gap: float, theirs: float, ours: float) -> float:
    """Return a gap as a share of the larger side; 1 is all of it."""
    whole = max(abs(theirs), abs(ours))
    return abs(gap) / whole if whole else 0.0


# ── Lines of a file


T = TypeVar("T")

MOST_BYTES: Final = 200_000_000  # an export of days and models has far fewer
DEEPEST: Final = 4  # levels of keys within keys that are read
SEPARATORS: Final = ",;\t"
_COUNTS: Final = ("cached_input", "cache_write", "output", "reasoning", "requests")
_Line = tuple[str, Mapping[str, object]]  # where it stands, and its cells by column


class BillLine(NamedTuple):
    """One line of an export."""

    day: date | None  # None: the line names no day
    model: str | None
    usd: Decimal | None  # exactly as it is written
    told: BillSide


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A usage export that was read."""

    format: str
    verified: str | None  # where its columns are described; None: the format is not a known one
    lines: tuple[BillLine, ...] = field(metadata=HIDDEN)
    columns: Columns  # the columns that were read, by kind
    unread: tuple[str, ...]  # the other columns

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its columns, which are keys of `FIELDS`."""
        return frozenset(self.columns)


def read_export(path: Path, *, columns: str | None = None, shift_h: float = 0.0) -> Export:
    """Read a usage export.

    Args:
        path: CSV with a header (`,`, `;` or tab between cells), or JSON: objects in a list or a line each, or
            pages of `data`, whose buckets may hold `results`.
        columns: the columns by kind (`day=date,cost=usd`); None: find them by the known formats.
        shift_h: the time zone of the days, in hours east of UTC, where lines have times.

    Raises:
        ConfigError: the file cannot be read; the message names line, column, value, and the way out.
    """
    try:
        text = text_in(path, max_size=MOST_BYTES, way_out="Export it by day and model, as CSV or JSON")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that can be read.") from None
    lines = list(_json_lines(path, text) if text.lstrip()[:1] in ("{", "[") else _csv_lines(path, text))
    head = list(dict.fromkeys(name for _, cells in lines for name in cells))
    if not lines:
        raise ConfigError(f"{path}: the file has no lines of usage. Export a period with some.")
    name, verified, kinds = columns_of(head, columns, file=str(path))
    read_lines = (_bill_line(_Cells(where, cells, kinds), shift_h) for where, cells in lines)
    bill_lines = [line for line in read_lines if line is not None]
    read = {name for names in kinds.values() for name in names}
    return Export(
        format=name,
        verified=verified,
        lines=tuple(bill_lines),
        columns=kinds,
        unread=tuple(name for name in head if name not in read),
    )


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────


def _csv_lines(path: Path, text: str) -> Iterator[_Line]:
    first = text.split("\n", 1)[0]
    separator = max(SEPARATORS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        head = [name.strip() for name in next(reader, [])]
        if twice := [name for name, times in Counter(head).items() if times > 1]:
            raise ConfigError(f"{path}, line 1: column {twice[0]!r} is there twice. Rename one.")
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"{path}, line {reader.line_num:,}"
            if len(cells) != len(head):
                raise ConfigError(
                    f"{where}: {len(cells)} cells, but the head has {len(head)}. Quote cells that hold "
                    f"{separator!r}, or remove the line."
                )
            yield where, dict(zip(head, cells, strict=True))
    except csv.Error as error:
        raise ConfigError(f"{path}, line {reader.line_num:,}: {error}. Save it as CSV again.") from None


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────


def _json_lines(path: Path, text: str) -> Iterator[_Line]:
    # JSON lines are known by their first line, which is a whole object.
    first, _, others = text.strip().partition("\n")
    try:
        by_line = bool(others) and isinstance(orjson.loads(first), dict)
    except orjson.JSONDecodeError:
        by_line = False  # the first value goes on in the next line
    if by_line:
        whole: object = [_parsed(path, line, n) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    else:
        whole = _parsed(path, text, 1)

    if isinstance(whole, list) and all(isinstance(page, dict) and "data" in page for page in whole):
        pages = [(f"{path}: [{n}]", page) for n, page in enumerate(whole)]
    else:
        items = [whole] if isinstance(whole, dict) else whole  # one object alone is the only line
        pages = [(f"{path}: ", whole if isinstance(whole, dict) and "data" in whole else {"data": items})]
    if pages and pages[-1][1].get("has_more"):
        raise ConfigError(
            f"{path}: has_more is true, so pages are missing. Fetch them, and put all in a list: [{{…}}, …]."
        )
    for page_place, page in pages:
        for where, item in _objects(page.get("data"), f"{page_place}data"):
            if "results" not in item:
                yield where, _flat(item)
                continue
            # The item is a bucket: its own keys hold for all its results.
            shared = {name: value for name, value in item.items() if name != "results"}
            for nested, result in _objects(item["results"], f"{where}.results"):
                yield nested, _flat(shared | result)


def _parsed(path: Path, text: str, line: int) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        where = f"{path}, line {line + error.lineno - 1:,}"
        raise ConfigError(f"{where}: {error.msg}. Give JSON, JSON lines or CSV.") from None


def _objects(items: object, where: str) -> Iterator[tuple[str, dict[str, object]]]:
    if not isinstance(items, list):
        raise ConfigError(f"{where} is not a list. Give a list of objects, or pages of `data`.")
    for n, item in enumerate(items):
        if not isinstance(item, dict):
            raise ConfigError(f"{where}[{n}] is {item!r:.60}, not an object. Give a list of objects.")
        yield f"{where}[{n}]", item


def _flat(item: Mapping[str, object], before: str = "") -> dict[str, object]:
    """Return the values of an object by key: a key within a key follows a point, and null becomes empty."""
    flat: dict[str, object] = {}
    for name, value in item.items():
        if isinstance(value, dict) and before.count(".") < DEEPEST:
            flat |= _flat(value, f"{before}{name}.")
        else:
            flat[before + name] = "" if value is None else value
    return flat


# ── the figures of a line ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of a line, and what each column holds."""

    place: str
    cells: Mapping[str, object]
    columns: Columns

    def values(self, kind: str, read: Callable[[object], T]) -> list[T]:
        """Return the values in the columns of a kind, without empty cells."""
        read_values = []
        for name in self.columns.get(kind, ()):
            cell = self.cells.get(name, "")
            value = cell.strip() if isinstance(cell, str) else cell
            try:
                if value != "":
                    read_values.append(read(value))
            except ValueError as error:
                raise ConfigError(f"{self.place}, column {name!r}: {cell!r:.80}: {error}") from None
        return read_values

    def whole(self, kind: str, read: Callable[[object], T]) -> T | None:
        """Return the sum of the columns of a kind; None where all are empty."""
        return reduce(add, values) if (values := self.values(kind, read)) else None


def _bill_line(line: _Cells, shift_h: float) -> BillLine | None:
    """Return the figures of a line; None where it has no figure, as the buckets of idle days."""
    for currency in line.values("currency", str):
        if currency.lower() != "usd":
            raise ConfigError(
                f"{line.place}, column {line.columns['currency'][0]!r}: {currency!r:.20} is not USD. Only US "
                "dollars can be compared."
            )
    counts = {kind: line.whole(kind, count_of) for kind in _COUNTS}
    plain, input_tokens = line.whole("uncached_input", count_of), line.whole("input", count_of)
    if plain is not None:
        input_tokens = plain + (counts["cached_input"] or 0) + (counts["cache_write"] or 0)
    usd, cents = line.whole("cost", usd_of), line.whole("cost_cents", usd_of)
    if cents is not None:
        usd = cents.scaleb(-2)
    if usd is None and input_tokens is None and all(count is None for count in counts.values()):
        return None
    days = line.values("day", partial(day_of, shift_h=shift_h))
    if not days and "day" in line.columns:
        raise ConfigError(
            f"{line.place}, column {line.columns['day'][0]!r}: the cell is empty. Every line needs its day."
        )
    items = line.values("line_item", lambda item: str(item).partition(",")[0].strip())
    return BillLine(
        day=days[0] if days else None,
        model=next(iter([*line.values("model", str), *items]), None),
        usd=usd,
        told=BillSide(
            usd=None if usd is None else float(usd),
            input_tokens=input_tokens,
            output=counts["output"],
            cached_input=counts["cached_input"],
            requests=counts["requests"],
            lines=1,
        ),
    )
