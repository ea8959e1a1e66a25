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


_PARTS: Final = ("limit", "remaining", "reset")
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
    if "ratelimit" not in "\n".join(headers).lower():
        return ()
    rows: dict[_Row, list[str]] = {}
    for name, written in headers.items():
        if (place := _place(name)) is not None:
            row, part = place
            rows.setdefault(row, ["", "", ""])[part] = written
    if any(row in rows for row in _ITS_OWN):
        rows.pop(_ANTHROPICS_STRICTEST, None)  # a copy of whichever of the others is the strictest
    date = headers.get("date")
    kept: dict[tuple[str, float], Allowance] = {}
    for row, parts in rows.items():
        if (allowed := _allowance(row, parts, date=date, requests_per=requests_per)) is not None:
            kind = allowed.what, allowed.period_s
            kept[kind] = _stricter(kept[kind], allowed) if kind in kept else allowed
    return tuple(kept.values())


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
def _place(name: str) -> tuple[_Row, int] | None:
    """Return what a header tells by its name: a row, and which of `_PARTS`; None: nothing that we know."""
    if match := _NAME.fullmatch(name.lower()):
        part, scope, counted, span = match.groups()
    elif match := _ANTHROPICS_NAME.fullmatch(name.lower()):
        (counted, part), scope, span = match.groups(), _ANTHROPICS_SCOPE, None
    else:
        return None
    what = _COUNTED.get(counted)
    return None if what is None else (_Row(scope or "", what, _SPANS_S.get(span)), _PARTS.index(part))


def _allowance(row: _Row, parts: Sequence[str], *, date: str | None, requests_per: Span) -> Allowance | None:
    told_limit, told_remaining, told_reset = parts
    limit = _amount(told_limit) or None  # 0: of a server that has none
    remaining = _amount(told_remaining)
    if limit is None and remaining is None:
        return None
    back_s = reset_s(told_reset, date=date) if told_reset else None
    period_s = row.span_s or _SPANS_S[requests_per if row.what == "requests" else "minute"]
    # OpenAI tells a day's requests for some models: 10,000, of which each takes 8.64 s to be back. A minute's
    # are back within a minute; tokens, which may be owed, are told by the minute alone.
    if row.span_s is None and row.what == "requests" and (back_s or 0) > _MORE_THAN_A_MINUTE_S:
        period_s = _SPANS_S["day"]
    return Allowance(what=row.what, period_s=period_s, limit=limit, remaining=remaining, reset_s=back_s)


def _stricter(*both: Allowance) -> Allowance:
    limits = [allowed.limit for allowed in both if allowed.limit is not None]
    tightest = min(both, key=lambda allowed: math.inf if allowed.remaining is None else allowed.remaining)
    return replace(tightest, limit=min(limits, default=None))


def _amount(written: str) -> float | None:
    amount = _number(written)
    return amount if 0 <= amount <= MOST_AMOUNT else None


def _number(written: str | None) -> float:
    """Return a number; NaN: it is none."""
    try:
        return float(written or "")
    except ValueError:
        return math.nan
