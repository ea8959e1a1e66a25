"""A trial becomes a request: the condition applied to the problem.

In: trials. Out: requests with their messages, what is said before a question, and the ids of trials.
"""

from asyncbench.prompting.earlier_turns import examples, padding
from asyncbench.prompting.requests import (
    TOKENS_BESIDE_A_CALL,
    TOKENS_BESIDE_A_MESSAGE,
    TrialIds,
    asked_as,
    characters,
    merged_params,
    most_beside,
    most_input_tokens,
    most_tokens_before,
    recorded_parameters,
    request_for,
    said_before,
    worded_size,
)

__all__ = [
    "TOKENS_BESIDE_A_CALL",
    "TOKENS_BESIDE_A_MESSAGE",
    "TrialIds",
    "asked_as",
    "characters",
    "examples",
    "merged_params",
    "most_beside",
    "most_input_tokens",
    "most_tokens_before",
    "padding",
    "recorded_parameters",
    "request_for",
    "said_before",
    "worded_size",
]
