"""The page of results folders, served to a browser on this machine while a sweep may be running.

In: one results folder or several. Out: a server on the loopback interface, with the blocks of the page, all
trials, and how far a run is.
"""

from asyncbench.live.serving import live_page as live_page, serve_view as serve_view
