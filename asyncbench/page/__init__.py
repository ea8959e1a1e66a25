"""The HTML page of a results folder, in one file that needs no server.

In: a results folder. Out: one HTML file with its charts, its script and single trials to read.
"""

from asyncbench.page.writing import write_page as write_page
