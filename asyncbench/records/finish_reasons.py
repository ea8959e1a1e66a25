"""Finish reasons: the end of a reply, by its provider's word.

Gathered from the documents of the vendors in `providers/endpoints.toml`, the types of their SDKs (openai
3.57, anthropic 2.11, google-genai 3.6), Amazon's Converse, and the sources of servers that people run (vLLM,
SGLang, llama.cpp, Ollama, LM Studio, TGI, TensorRT-LLM; 2026). A table of the tests says whose word is which.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final


class Finish(StrEnum):
    """How the generation of a reply ended."""

    ENDED = "ended"  # by itself: the reply is whole
    TRUNCATED = "truncated"  # at a limit, before its end
    REFUSED = "refused"  # by the model, or blocked by a filter
    BROKEN = "broken"  # by a fault: another try may do better


# A word is found whatever its signs, case and prefix: `Max-Tokens`, `endTurn`, `FinishReason.STOP`.
_WORDS: Final[Mapping[Finish, str]] = {
    Finish.ENDED: """
        stop stopped end ended end_turn stop_sequence stop_sequence_reached stop_sequences stop_string
        stop_word stop_str s end_id stop_token stop_criteria_met stop_string_found eos eos_token eos_token_id
        eos_found
        eod end_of_text end_of_turn endoftext im_end eot_id complete completed completion done final
        finish finished normal ok success succeeded word function_call function_calls tool_call
        tool_calls tool_use unspecified
    """,
    Finish.TRUNCATED: """
        length limit stopped_limit max_length max_len max_new_tokens max_tokens max_tokens_reached
        maximum_tokens max_completion_tokens max_output_tokens max_predicted_tokens_reached token_limit
        tokens_limit max_context context context_length context_length_exceeded context_length_reached
        context_limit context_window_exceeded model_context_window_exceeded model_length error_limit
        time_limit incomplete truncated truncated_final partial not_finished max_messages max_tool_calls
        steered pause pause_turn continuation compaction repetition
    """,
    Finish.REFUSED: """
        refusal refused content_filter content_filtered content_policy content_policy_violation
        content_blocked blocked blocklist blacklist filtered flagged guardrail guardrails
        guardrail_intervened moderation policy_violation responsible_ai_policy_violation sensitive
        unsafe error_toxic toxic rai safety prohibited_content recitation language spii model_armor
        jailbreak escalation image_safety image_prohibited_content image_recitation
    """,
    Finish.BROKEN: """
        abort aborted cancel canceled cancelled user_cancel user_cancelled user_stopped interrupted
        preempted disconnect disconnected error failed failure fault crash exception internal_error
        server_error network_error connection_error insufficient_system_resource overloaded unavailable
        timeout timed_out deadline_exceeded rate_limit rate_limited queued in_progress load unload
        model_unloaded pup_limited_disabled malformed_response malformed_function_call
        malformed_model_output malformed_tool_use missing_thought_signature too_many_tool_calls
        unexpected_tool_call no_image image_other other
    """,
}
# What a word means that no document names, by its parts: `upstream_error`, `kvCacheFull`. The first counts.
_PARTS: Final[Mapping[Finish, str]] = {
    Finish.REFUSED: """
        filter filtered safety unsafe sensitive moderation policy violation violated blocked guardrail risk
        refusal refused prohibited
    """,
    Finish.BROKEN: """
        error failed failure fault exception crash crashed abort aborted cancel canceled cancelled timeout
        deadline interrupt interrupted disconnect disconnected shutdown unavailable overloaded memory
        internal killed
    """,
    Finish.TRUNCATED: """
        length limit max maximum budget context window overflow full long truncated truncation cut time
        incomplete partial
    """,
}
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_SIGNS: Final = re.compile(r"[\W_]+")
_PREFIX: Final = re.compile(r"^(finishreason|stopreason|reason|alternativestatus)(?=.)")
_NO_WORDS: Final = frozenset({"", "null", "none", "nil", "undefined"})  # nothing is said


def _key(word: str) -> str:
    return _PREFIX.sub("", _SIGNS.sub("", word).lower())


_FINISHES: Final = {_key(word): finish for finish, words in _WORDS.items() for word in words.split()}


@lru_cache(maxsize=1024)
def finish_of(word: str | None) -> Finish | None:
    """Return how a reply ended by its provider's word, or None if no part of the word is in our table.

    No word means that nothing else than an end is told.
    """
    if word is None or says_nothing(word):
        return Finish.ENDED
    if (finish := documented_finish(word)) is not None:
        return finish
    parts = {piece.lower() for piece in _PART.findall(word)}
    return next((finish for finish, telling in _PARTS.items() if parts & set(telling.split())), None)


def documented_finish(word: str) -> Finish | None:
    """Return how a reply ended by a word in documents and sources of servers, or None for other words.

    What follows a colon is why (`content_filter: SPII`), what stands before a point its family
    (`FinishReason.STOP`).
    """
    family = word.partition(":")[0]
    for spelling in (word, family, family.rpartition(".")[2]):
        if (finish := _FINISHES.get(_key(spelling))) is not None:
            return finish
    return None


def says_nothing(word: str | None) -> bool:
    """Return whether a finish reason is none: empty, or `null` as a text, as of a stream that goes on."""
    return word is None or _key(word) in _NO_WORDS


def says_cut(word: str | None) -> bool:
    """Return whether a word says that a reply is not whole: a recorded one may also have broken off."""
    return finish_of(word) in (Finish.TRUNCATED, Finish.BROKEN)
