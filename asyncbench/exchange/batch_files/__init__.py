"""Files of batches for those who submit them, or fetch their results, by hand."""

from asyncbench.exchange.batch_files.handed_in import HandedIn as HandedIn, hand_in_results as hand_in_results
from asyncbench.exchange.batch_files.requests import export_batches as export_batches
from asyncbench.exchange.batch_files.results import import_batches as import_batches
