"""The embedded provider: a loopback server that speaks OpenAI's and Anthropic's wire formats.

Each module imports only from lines above its own:

    faults · latency · limits · questions
    settings · answers · counts · wire · recordings
    openai_wire · anthropic_wire · delivery · voice
    replay · served
    server
    serve · process
    __main__
"""
