"""Limits and waits in the details of a refusal, where Google tells them: no header of it does.

`QuotaFailure` names each quota that a call went beyond, such as
`GenerateRequestsPerDayPerProjectPerModel-FreeTier`; `RetryInfo` a wait. Of a day's quota that wait is none:
it is a minute's, and the day's requests are back at midnight in California (its pages on rate limits, 2026).
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from asyncbench.errors import Allowance
from asyncbench.providers.wire import items, mapping_in, text

_DAY_S: Final = 86_400.0
_MIDNIGHT_S: Final = 8 * 3600.0  # UTC, of California's winter: in summer an hour late, never too soon
_NAME: Final = re.compile(r"(Requests|InputTokens|OutputTokens|Tokens).*?Per(Minute|Day)")
_WHAT: Final = {"Requests": "requests", "InputTokens": "input_tokens", "OutputTokens": "output_tokens"}
_MOST: Final = 12  # digits of a limit


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaDetails:
    """What the details of a refusal tell."""

    reasons: tuple[str, ...] = ()  # such as api_key_invalid
    quotas: tuple[str, ...] = ()  # with their limits
    retry_delay: str | None = None  # such as "34s"
    allowances: tuple[Allowance, ...] = ()
    none_at_all: bool = False  # a limit is 0: no waiting helps


def quota_details(details: Sequence[object], *, now: float | None = None) -> QuotaDetails:
    """Read the details of a refusal; what is none of Google's tells nothing."""
    objects = [mapping_in(detail) for detail in details]
    delay = next(filter(None, (text(detail.get("retryDelay")) for detail in objects)), None)
    violations = [
        mapping_in(violation) for detail in objects for violation in items(detail.get("violations"))
    ]
    quotas = list[str]()
    for violation in violations:
        if name := text(violation.get("quotaId")) or text(violation.get("quotaMetric")):
            value = text(violation.get("quotaValue"))
            quotas.append(f"{name} ({value})" if value else name)
    none_at_all = any(text(violation.get("quotaValue")) == "0" for violation in violations)

    # What each violated quota is about, of which nothing remains.
    seconds = (delay or "").removesuffix("s")
    wait_s = float(seconds) if re.fullmatch(r"\d{1,9}(\.\d+)?", seconds) else None
    allowances = list[Allowance]()
    for violation in () if none_at_all else violations:
        if (match := _NAME.search(text(violation.get("quotaId")) or "")) is None:
            continue
        is_daily, written = match[2] == "Day", text(violation.get("quotaValue")) or ""
        limit = float(written) if written.isascii() and written.isdigit() and len(written) <= _MOST else None
        midnight_s = (_MIDNIGHT_S - (time.time() if now is None else now)) % _DAY_S
        allowance = Allowance(
            what=_WHAT.get(match[1], "tokens"),
            period_s=_DAY_S if is_daily else 60.0,
            limit=limit or None,
            remaining=0.0,
            reset_s=midnight_s if is_daily else wait_s,
        )
        allowances.append(allowance)

    days_resets_s = [allowance.reset_s for allowance in allowances if allowance.period_s == _DAY_S]
    return QuotaDetails(
        reasons=tuple(reason.lower() for detail in objects if (reason := text(detail.get("reason")))),
        quotas=tuple(quotas),
        retry_delay=f"{days_resets_s[0]:.0f}s" if days_resets_s else delay,
        allowances=tuple(allowances),
        none_at_all=none_at_all,
    )
