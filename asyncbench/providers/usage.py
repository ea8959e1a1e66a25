"""Token counts of every provider in the form of `records.Usage`, and the costs that providers state.

Of counts that do not fit together the larger is believed: what is missing from a bill is found too late.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import chain

import orjson

from asyncbench.providers.wire import count_in, items, mapping_in
from asyncbench.records import UNTRUE_USAGE, Usage

MOST_TOKENS = 10**9  # of one call; more is a fault of who counted
LONGEST_TOKEN = 256  # characters; those of today's vocabularies have up to 128, blanks in a row
MOST_USD = 1_000  # likewise: several times what the longest call of the dearest model costs
MOST_WRITTEN, MOST_NESTED = 50_000, 100  # bytes of an account, and objects and lists in it
XAI_TICKS_IN_A_DOLLAR = 10**10  # docs.x.ai, cost tracking, read 2026-11


def raw_usage(payload: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the account of a chat completion or of a chunk of it, wherever an endpoint puts it.

    Groq's streams have it in `x_groq`, Moonshot's in the choice.
    """
    if account := mapping_in(payload.get("usage")):
        return account
    objects = map(mapping_in, (payload.get("x_groq"), *items(payload.get("choices"))[:1]))
    return next((account for fields in objects if (account := mapping_in(fields.get("usage")))), None)


def openai_usage(raw: Mapping[str, object]) -> Usage:
    """Read the `usage` of a chat completion or a plain one; `prompt_tokens` hold the cached ones already.

    Some gateways write the names of Responses.
    """
    cached = raw.get("prompt_cache_hit_tokens"), raw.get("cached_tokens")  # DeepSeek, Moonshot
    names = ("prompt_tokens", "completion_tokens")
    if not any(name in raw for name in names):
        names = ("input_tokens", "output_tokens")
    return _inclusive(raw, *names, cached, raw.get("reasoning_tokens"))


def responses_usage(raw: Mapping[str, object]) -> Usage:
    """Read the `usage` of OpenAI's Responses; unlike Anthropic's, its `input_tokens` hold the cached ones."""
    return _inclusive(raw, "input_tokens", "output_tokens")


def _inclusive(
    raw: Mapping[str, object],
    input_key: str,
    output_key: str,
    cached: Iterable[object] = (),
    thought: object = None,
) -> Usage:
    """Return usage with all that was written as output: thinking included, however the vendor counts it.

    xAI and Gemini count it in the total alone, and bill it as output. Without a total, more reasoning than
    output tells that it stands beside it.
    """
    of_input, of_output = (mapping_in(raw.get(f"{key}_details")) for key in (input_key, output_key))
    input_tokens, output = _tokens(raw.get(input_key)), _tokens(raw.get(output_key))
    total = _tokens(raw.get("total_tokens"))
    reasoning = _first(of_output.get("reasoning_tokens"), thought)
    if output is not None:
        whole = max(output, _beyond_input(total, input_tokens))
        output = output + reasoning if reasoning is not None and reasoning > whole else whole
    return Usage(
        input_tokens=input_tokens,
        cached_input_tokens=_first(of_input.get("cached_tokens"), *cached),
        cache_write_tokens=_tokens(of_input.get("cache_write_tokens")),
        output_tokens=output,
        reasoning_tokens=reasoning,
    )


Read = Callable[[Mapping[str, object]], Usage]


def believed(usage: Usage, notes: list[str], *texts: str | None, counted: bool = True) -> Usage | None:
    """Return usage without impossible figures, which become unknown and never 0, or None if none is left.

    A prompt of no tokens is none, nor is an answer of none, or of one, beside a long text. Without any text,
    an output of 0 is true: a blocked answer costs its input alone.

    Args:
        usage: as the provider told it.
        notes: is told what is unknown of it.
        texts: what was said, thought and refused.
        counted: the account was told with the end of the text; else it tells the input alone.
    """
    length = sum(len(words) for words in texts if words)
    doubts = []
    if not usage.input_tokens:
        doubts.append(f"input {_count_text(usage.input_tokens)}")
        usage = replace(usage, input_tokens=None, cached_input_tokens=usage.cached_input_tokens or None)
    elif (
        of_cache := (usage.cached_input_tokens or 0) + (usage.cache_write_tokens or 0)
    ) > usage.input_tokens:
        doubts.append(f"input of {usage.input_tokens:,}, {of_cache:,} of it cached")
        usage = replace(usage, input_tokens=None)
    if usage.output_tokens is None or not counted or length > LONGEST_TOKEN * usage.output_tokens:
        early = "" if counted else ", told before their end"
        doubts.append(f"output {_count_text(usage.output_tokens)} beside {length:,} characters{early}")
        usage = replace(usage, output_tokens=None, reasoning_tokens=usage.reasoning_tokens or None)
    if doubts:
        notes.append(f"{UNTRUE_USAGE} ({', '.join(doubts)})")
    return None if usage.input_tokens is usage.output_tokens is None else usage


def _count_text(count: int | None) -> str:
    return "not told" if count is None else f"of {count:,}"


def latest(
    earlier: Mapping[str, object] | None, account: Mapping[str, object], read: Read
) -> Mapping[str, object]:
    """Return the account of a stream that holds: the one told last, unless it counts less than one before.

    Counts only grow, so that noughts after a count are none. What stands beside them is kept, such as a cost.
    """
    if earlier is None or _size(read(account)) >= _size(read(earlier)):
        return account
    return {**account, **earlier}


def _size(usage: Usage) -> int:
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _tokens(value: object) -> int | None:
    return count_in(value, maximum=MOST_TOKENS)


def _first(*values: object) -> int | None:
    for value in values:
        if (count := _tokens(value)) is not None:
            return count
    return None


def anthropic_usage(raw: Mapping[str, object]) -> Usage:
    """Read the `usage` of a message, whose `input_tokens` leave out what the cache read or wrote."""
    uncached = _tokens(raw.get("input_tokens"))
    cached = _tokens(raw.get("cache_read_input_tokens"))
    by_time = mapping_in(raw.get("cache_creation"))
    written_1h = _tokens(by_time.get("ephemeral_1h_input_tokens"))
    written_5m = _tokens(by_time.get("ephemeral_5m_input_tokens"))
    written = _tokens(raw.get("cache_creation_input_tokens"))
    if written is None and not written_5m == written_1h is None:
        written = (written_5m or 0) + (written_1h or 0)
    return Usage(
        input_tokens=None if uncached is None else uncached + (cached or 0) + (written or 0),
        cached_input_tokens=cached,
        cache_write_tokens=written,
        cache_write_1h_tokens=written_1h,
        output_tokens=_tokens(raw.get("output_tokens")),
        reasoning_tokens=_tokens(mapping_in(raw.get("output_tokens_details")).get("thinking_tokens")),
    )


def contents_usage(raw: Mapping[str, object]) -> Usage:
    """Read the `usageMetadata` of Gemini's contents: thoughts stand beside the answer, cached input within.

    What tools put into the prompt is billed as input; the total holds all of it, but for what is cached.
    """
    prompt, answer = _tokens(raw.get("promptTokenCount")), _tokens(raw.get("candidatesTokenCount"))
    thoughts, tools = _tokens(raw.get("thoughtsTokenCount")), _tokens(raw.get("toolUsePromptTokenCount"))
    total = _tokens(raw.get("totalTokenCount"))
    answered = prompt is not None and (answer is not None or thoughts is not None or total is not None)
    input_tokens = None if prompt is None else prompt + (tools or 0)
    written = max((answer or 0) + (thoughts or 0), _beyond_input(total, input_tokens))
    return Usage(
        input_tokens=input_tokens,
        cached_input_tokens=_tokens(raw.get("cachedContentTokenCount")),
        output_tokens=written if answered else None,
        reasoning_tokens=thoughts,
    )


def _beyond_input(total: int | None, input_tokens: int | None) -> int:
    """Return the tokens that a total holds beside the input; an input of 0 is no count."""
    return total - input_tokens if total and input_tokens else 0


_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation")


def merged(start: Mapping[str, object], delta: Mapping[str, object]) -> dict[str, object]:
    """Return the account of a streamed message from those of its message_start and its last message_delta.

    The delta's counts are cumulative and stand for the whole. What it leaves out, or says as null,
    is the start's; so is the input where the delta has none (vLLM and others count output alone there).
    """
    counts = {name: value for name, value in delta.items() if value is not None}
    if not any(_tokens(counts.get(name)) for name in _INPUT):
        counts = {name: value for name, value in counts.items() if name not in _INPUT}
    return {**start, **counts}


def believed_cost_usd(raw: Mapping[str, object], usage: Usage | None) -> float | None:
    """Return `stated_cost_usd`; None for a cost of 0 beside an account of which nothing is believed."""
    cost_usd = stated_cost_usd(raw)
    return None if usage is None and not cost_usd else cost_usd


def stated_cost_usd(raw: Mapping[str, object]) -> float | None:
    """Return the USD of a call by the provider's own word, or None where it does not say.

    OpenRouter's `cost` is in credits of a dollar each. With a key of one's own (`is_byok`) it is its fee
    alone, and the upstream vendor bills its part beside it. xAI counts in ticks.
    """
    ticks = count_in(raw.get("cost_in_usd_ticks"))
    if ticks is not None:
        return _usd(Decimal(ticks) / XAI_TICKS_IN_A_DOLLAR)
    cost = _dollars(raw.get("cost"))
    if cost is None or raw.get("is_byok") is not True:
        return None if cost is None else float(cost)
    upstream = _dollars(mapping_in(raw.get("cost_details")).get("upstream_inference_cost"))
    return None if upstream is None else _usd(cost + upstream)


def _usd(dollars: Decimal) -> float | None:
    return float(dollars) if 0 <= dollars <= MOST_USD else None


def _dollars(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    dollars = Decimal(str(value))  # the shortest text that reads back: what was written
    return dollars if dollars.is_finite() and 0 <= dollars <= MOST_USD else None


def doubts(raw: Mapping[str, object] | None) -> list[str]:
    """Return the impossible figures of an account, which count as not told."""
    if raw is None:
        return []
    objects = (raw, *(value for value in raw.values() if isinstance(value, dict)))
    notes = list[str]()
    for name, value in chain.from_iterable(fields.items() for fields in objects):
        if type(value) is int and 0 <= value <= MOST_USD:  # nearly all are counts, and small ones
            continue
        if not isinstance(value, int | float):
            continue
        if name.endswith(("tokens", "TokenCount")):
            possible = _tokens(value) is not None
        elif name.endswith("_ticks"):
            possible = 0 <= value <= MOST_USD * XAI_TICKS_IN_A_DOLLAR
        else:
            possible = not name.endswith("cost") or _dollars(value) is not None
        if not possible:
            notes.append(f"{name} of {value} is impossible and was ignored")
    return notes


def kept_account(raw: Mapping[str, object] | None, notes: list[str]) -> Mapping[str, object] | None:
    """Return an account that can be written down; None, with a note, where it is too large or too deep."""
    if raw is None:
        return None
    try:
        written = orjson.dumps(raw)
    except orjson.JSONEncodeError:  # it nests deeper than can be written
        written = b"{" * (MOST_NESTED + 1)
    if len(written) <= MOST_WRITTEN and written.count(b"{") + written.count(b"[") <= MOST_NESTED:
        return raw
    notes.append("its usage was too large to keep")
    return None
