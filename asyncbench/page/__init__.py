"""The page of results: its blocks, its trials and its files, and the page in one HTML file to mail.

In: a results folder. Out: plain values by block, and one HTML file that needs no server.
"""

from asyncbench.page.answers import summaries as summaries, whole_trials as whole_trials
from asyncbench.page.blocks import BLOCKS as BLOCKS
from asyncbench.page.contents import specs_block as specs_block
from asyncbench.page.shell import LIVE_POLICY as LIVE_POLICY, served_files as served_files
from asyncbench.page.writing import write_page as write_page
