"""Calibration of synthetic questions: a server counts their pieces, so that all have the wished length."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import repeat
from math import ceil
from typing import Final

from asyncbench.engine.limits import respected_wait_s
from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.planning.preflight import keys_for
from asyncbench.problems.schema import identified
from asyncbench.providers.provider import Provider, open_provider
from asyncbench.records import Model
from asyncbench.run.checkup import question_for
from asyncbench.simulator.process import running
from asyncbench.simulator.settings import Settings
from asyncbench.suites.synthetic import (
    OPENING,
    PIECES,
    CountedPieces,
    draft_synthetic,
    synthetic_questions,
    text_pieces,
    worded,
)

REPLY_TOKENS: Final = 16  # of a warm-up call: some servers write no fewer
CHECKS: Final = 3  # calls of the wished length
WARM_UP_CALLS: Final = 1 + PIECES + CHECKS
AT_ONCE: Final = 4
LONGEST_PAUSE_S: Final = 30.0  # between two tries of a call, where the server names no wait; first a second
MOST_WAIT_S: Final = 120.0  # of a call, over all its tries
_FULL: Final = (ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED)
_REFUSALS: Final = (ErrorKind.BAD_REQUEST, ErrorKind.REJECTED_PARAMETER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a few calls told of a server."""

    counted: CountedPieces
    ignores_eos: bool  # it takes `ignore_eos`, so that replies are as long as they may be
    refusal: str = ""  # why it does not


def whole_length(tokens: int) -> dict[str, object]:
    """Return the `params` by which vLLM and SGLang write so many tokens, whatever ends a reply."""
    return {"ignore_eos": True, "min_tokens": tokens}


async def calibrate(
    model: Model, tokens: int, *, seed: int, env: Mapping[str, str], or_more: bool = False
) -> Calibration:
    """Have a server count pieces of questions, and see whether it takes `ignore_eos`.

    Args:
        model: who is asked.
        tokens: the wished length of a question.
        seed: of the pieces.
        env: where its key is looked up.
        or_more: whether questions may be longer, where the wished length is too short.

    Raises:
        ConfigError: a call fails, its usage tells no tokens, or the wished length is too short.
    """
    key = keys_for([model], env)[model.alias]
    brief = replace(model, max_tokens=REPLY_TOKENS, stream=False)
    with ExitStack() as stack:
        url = None
        if model.simulated and model.base_url is None:
            url = stack.enter_context(running(Settings())).url
        provider = open_provider(model, key=key, simulator_url=url)
        try:
            return await _count(provider, brief, tokens, seed, or_more=or_more)
        except ProviderError as error:
            raise ConfigError(f"{model.alias}: a warm-up call failed: {error}") from error
        finally:
            await provider.aclose()


async def _count(provider: Provider, model: Model, wished: int, seed: int, *, or_more: bool) -> Calibration:
    """Count a question without pieces, then with each piece alone, which has the rest, and whole ones."""
    asked, refusal = replace(model, params={**model.params, **whole_length(REPLY_TOKENS)}), ""
    try:
        shortest = await _tokens(provider, asked, worded(OPENING, []))
    except ProviderError as error:
        if error.kind not in _REFUSALS:
            raise
        # It may refuse `ignore_eos`, or anything else: without it, the same call tells.
        shortest, asked, refusal = await _tokens(provider, model, worded(OPENING, [])), model, str(error)

    pieces = text_pieces(seed)
    totals = await _all_tokens(provider, asked, [worded(OPENING, [piece]) for piece in pieces])
    counted = CountedPieces(pieces, [total - shortest for total in totals], shortest)
    if min(counted.tokens) <= 0:
        raise ConfigError(
            f"{model.alias} counts no more tokens in a longer question, so none can be made of a "
            "length. Ask your own questions with --problems FILE"
        )
    if wished < counted.fewest and or_more:
        wished = ceil(counted.fewest)
    if wished < counted.fewest:
        raise ConfigError(
            f"--tokens: as {model.alias} counts, a question unlike all others has {counted.fewest:.0f} "
            "tokens or more"
        )
    questions = list(synthetic_questions(seed + 1, repeat(wished, CHECKS), counted))
    counted = counted.scaled(wished, await _all_tokens(provider, asked, questions))
    return Calibration(counted=counted, ignores_eos=not refusal, refusal=refusal)


async def _all_tokens(provider: Provider, model: Model, questions: Sequence[str]) -> list[int]:
    """Ask questions, a few at once, and return how many tokens the server counted in each."""
    tokens = list[int]()
    for begin in range(0, len(questions), AT_ONCE):
        calls = (_tokens(provider, model, question) for question in questions[begin : begin + AT_ONCE])
        tokens += await asyncio.gather(*calls)
    return tokens


async def _tokens(provider: Provider, model: Model, question: str) -> int:
    """Ask a question, and return how many tokens the server counted in it.

    Raises:
        ProviderError: the call fails, or there is no room for it for longer than `MOST_WAIT_S`.
        ConfigError: the server tells no tokens.
    """
    (problem,) = identified([draft_synthetic(question)])
    request = question_for(model, problem)
    waited_s, refusals = 0.0, 0
    while True:
        try:
            reply = await provider.ask(request)
            break
        except ProviderError as error:
            if error.kind not in _FULL:
                raise
            # A refusal for lack of room, such as 429: it is asked again as told.
            refusals += 1
            growing_s = min(LONGEST_PAUSE_S, 2.0 ** (refusals - 1))
            wait_s = respected_wait_s(error.retry_after_s, growing_s, times=refusals)
            if waited_s + wait_s > MOST_WAIT_S:
                raise
        await asyncio.sleep(wait_s)
        waited_s += wait_s

    if reply.usage is None or reply.usage.input_tokens is None:
        raise ConfigError(
            f"{model.alias} does not say how many tokens it counted, so no question can be made of a length. "
            "Ask your own questions with --problems FILE"
        )
    return reply.usage.input_tokens
