"""Files of batches for those who submit them by hand: requests out, requests with their results in."""

from asyncbench.exchange.batch_files.requests import export_batches as export_batches
from asyncbench.exchange.batch_files.results import import_batches as import_batches
