"""The embedded provider: a loopback server that speaks OpenAI's and Anthropic's wire formats.

Each module imports only from lines above its own:

    faults · latency · limits · questions · script
    answers · counts · wire · recordings · delivery
    thinking · openai_wire
    asked · likes · voice
    settings · chat_wire · responses_wire · anthropic_wire · replay
    completions_wire · served
    server
    serve · process
    __main__
"""
