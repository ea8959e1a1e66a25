"""Logs of Inspect (inspect.aisi.org.uk): `.eval` files, which its viewer and its Python package open.

In: trials with their grades and problems. Out: logs. `logs` writes them; nothing is read back.
"""
