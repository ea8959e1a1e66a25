"""Rate limits in the headers of a response, in every vendor's form.

OpenAI and most others: x-ratelimit-{limit,remaining,reset}-{requests,tokens}; Anthropic:
anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}. From the vendors'
pages and from recorded responses, read in November 2026.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from asyncbench.providers.waits import seconds_until
from asyncbench.records import Allowance

Span = Literal["minute", "day"]

_SPANS_S: Final[Mapping[str | None, float]] = {"minute": 60.0, "day": 86_400.0}
MOST_AMOUNT: Final = 1e12  # of requests or tokens; more is no limit
LONGEST_RESET_S: Final = 7 * 86_400.0  # what is said to take longer is not believed
_MORE_THAN_A_MINUTE_S: Final = 62.0  # clocks that tell whole seconds may add two

# Before what is counted stands whose limit it is: OpenAI's `project-tokens` holds beside `tokens`.
_NAME: Final = re.compile(
    r"x-ratelimit-(limit|remaining|reset)-((?:project|organization|org|account|user|key|model)-)?"
    r"(.+?)(?:-(minute|day))?"
)
_ANTHROPICS_NAME: Final = re.compile(r"anthropic-ratelimit-(.+)-(limit|remaining|reset)")
FAMILIES: Final = ("ratelimit",)  # one of these is in the name of every header that tells a limit
_COUNTED: Final[Mapping[str, str]] = {  # by the end of a name → Allowance.what
    "requests": "requests",
    "req": "requests",  # Mistral
    "tokens": "tokens",
    "input-tokens": "input_tokens",
    "output-tokens": "output_tokens",
    "tokens-prompt": "input_tokens",  # Fireworks
    "tokens-generated": "output_tokens",
}


class _Row(NamedTuple):
    """One limit: up to three headers."""

    scope: str
    what: str
    span_s: float | None  # None: the name does not say


_COLUMNS: Final = ("limit", "remaining", "reset")
_ANTHROPICS_SCOPE: Final = "anthropic"
_ANTHROPICS_STRICTEST: Final = _Row(_ANTHROPICS_SCOPE, "tokens", None)
_ITS_OWN: Final = tuple(_Row(_ANTHROPICS_SCOPE, what, None) for what in ("input_tokens", "output_tokens"))


def allowances(headers: Mapping[str, str], *, requests_per: Span = "minute") -> tuple[Allowance, ...]:
    """Return the limits that headers tell, one for each quantity and period; never fails.

    Names and values that make no sense are passed over. Where two limits of one kind hold (an organization's
    and a project's) the stricter counts.

    Args:
        headers: of any response; a moment is read against its own `date` where it has one.
        requests_per: what a limit of requests is for, where no name says it.
    """
    names = "\n".join(headers).lower()
    if not any(family in names for family in FAMILIES):  # as in most responses
        return ()
    rows: dict[_Row, list[str]] = {}
    for name, written in headers.items():
        if (cell := _cell(name)) is not None:
            row, column = cell
            rows.setdefault(row, ["", "", ""])[column] = written
    if any(row in rows for row in _ITS_OWN):
        rows.pop(_ANTHROPICS_STRICTEST, None)  # a copy of whichever of the others is the strictest
    date = headers.get("date")
    strictest: dict[tuple[str, float], Allowance] = {}
    for row, cells in rows.items():
        if (allowed := _allowance(row, cells, date=date, requests_per=requests_per)) is None:
            continue
        kind = allowed.what, allowed.period_s
        if kind in strictest:
            both = strictest[kind], allowed
            limits = [limited.limit for limited in both if limited.limit is not None]
            tightest = min(both, key=lambda each: math.inf if each.remaining is None else each.remaining)
            allowed = replace(tightest, limit=min(limits, default=None))
        strictest[kind] = allowed
    return tuple(strictest.values())


def reset_s(written: str, *, date: str | None = None) -> float | None:
    """Return the seconds until a limit is back; None when that cannot be read.

    Args:
        written: seconds, a moment (seconds or milliseconds since 1970, RFC 3339) or what Go prints for a
            duration, such as 6m0s.
        date: when the response was sent, by the clock of its server; None: now, by ours.
    """
    wait_s = seconds_until(written, date)
    return max(0.0, wait_s) if wait_s <= LONGEST_RESET_S else None  # NaN is not


@lru_cache(maxsize=1024)
def _cell(name: str) -> tuple[_Row, int] | None:
    """Return the row and the column (`_COLUMNS`) of a header, or None if its name is not in our tables."""
    if match := _NAME.fullmatch(name.lower()):
        column, scope, counted, span = match.groups()
    elif match := _ANTHROPICS_NAME.fullmatch(name.lower()):
        (counted, column), scope, span = match.groups(), _ANTHROPICS_SCOPE, None
    else:
        return None
    what = _COUNTED.get(counted)
    return None if what is None else (_Row(scope or "", what, _SPANS_S.get(span)), _COLUMNS.index(column))


def _allowance(row: _Row, cells: Sequence[str], *, date: str | None, requests_per: Span) -> Allowance | None:
    limit_text, remaining_text, reset_text = cells
    limit = _amount(limit_text) or None  # 0: of a server that has none
    remaining = _amount(remaining_text)
    if limit is None and remaining is None:
        return None
    back_s = reset_s(reset_text, date=date) if reset_text else None
    period_s = row.span_s or _SPANS_S[requests_per if row.what == "requests" else "minute"]
    # OpenAI tells a day's requests for some models: 10,000, of which each takes 8.64 s to be back. A minute's
    # are back within a minute; tokens, which may be owed, are told by the minute alone.
    if row.span_s is None and row.what == "requests" and (back_s or 0) > _MORE_THAN_A_MINUTE_S:
        period_s = _SPANS_S["day"]
    return Allowance(what=row.what, period_s=period_s, limit=limit, remaining=remaining, reset_s=back_s)


def _amount(written: str) -> float | None:
    """Return a number of requests or tokens, or None if the text is no number."""
    try:
        amount = float(written)
    except ValueError:
        return None
    return amount if 0 <= amount <= MOST_AMOUNT else None  # NaN is not
