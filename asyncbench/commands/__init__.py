"""Commands: their arguments, the room that answers each, and their output.

In: arguments, keys of the environment or a file. Out: lines on standard output, and an exit code where it is
not 0. Other rooms are imported inside the commands: `--help` must not wait for SDKs and Arrow.
"""

PUBLIC = (
    "controlling",
    "demo",
    "keeping",
    "making",
    "providers",
    "reading",
    "running",
    "starting",
    "sweep_options",
    "terminal",
)
