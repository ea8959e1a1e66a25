"""A loopback provider with real sockets, limits and faults.

In: problem sets or recorded replies. Out: a server process that speaks OpenAI's and Anthropic's wire formats,
and takes their batches.
Each module imports only from lines above its own:

    faults · limits · questions · queueing
    answers · counts · wire · recordings
    asked
    openai_wire
    likes · responses_wire · anthropic_wire · voices
    batches.faults · batches.settings
    settings
    served
    casting
    delivery
    batches
    server
    serving · process
    __main__
"""

PUBLIC = (
    "batches.settings",
    "counts",
    "faults",
    "process",
    "questions",
    "serving",
    "settings",
)
