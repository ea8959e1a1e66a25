"""Processes that make the calls of a run. Limits, money and results stay with the run.

In: a request. Out: a reply, as if the run had made the call itself.
"""
