"""What is left of a sweep, forecast from what its folder holds: tokens, dollars and seconds, with a range.

Each module imports only from lines above its own:

    ranges · line · answering · kept
    seen
    replies
    rest
"""
