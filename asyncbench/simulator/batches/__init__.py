"""Provider batches, played: files and batches of both vendors, on a clock that may run faster.

What a batch has come to is computed from its record and the time, so a server that is started again with the
same folder goes on where the one before it was. Faults that only tests need are those of the server in
`tests/servers/vendor_batches.py`, whose classes extend the ones here. Each module imports only from lines
above its own:

    settings
    records
    results
    service
    pages
    openai_api · anthropic_api
"""
