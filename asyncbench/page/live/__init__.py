"""The server of `asyncbench view`."""
