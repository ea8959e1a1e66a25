"""A trial becomes a request: the condition applied to the problem.

In: trials. Out: requests with their messages, what is said before a question, and the ids of trials.
"""

from asyncbench.prompting.earlier_turns import (
    PADDINGS as PADDINGS,
    examples as examples,
    padding as padding,
)
from asyncbench.prompting.requests import (
    TOKENS_BESIDE_A_CALL as TOKENS_BESIDE_A_CALL,
    TOKENS_BESIDE_A_MESSAGE as TOKENS_BESIDE_A_MESSAGE,
    TrialIds as TrialIds,
    asked_as as asked_as,
    characters as characters,
    merged_params as merged_params,
    most_input_tokens as most_input_tokens,
    most_tokens_before as most_tokens_before,
    recorded_parameters as recorded_parameters,
    request_for as request_for,
    said_before as said_before,
    sent_parameters as sent_parameters,
    worded_size as worded_size,
)
from asyncbench.prompting.wording import (
    FIELDS as FIELDS,
    QUESTION as QUESTION,
    asks_as_it_stands as asks_as_it_stands,
    digits_stored as digits_stored,
    fields_in as fields_in,
    most_characters as most_characters,
    wording_of as wording_of,
)
