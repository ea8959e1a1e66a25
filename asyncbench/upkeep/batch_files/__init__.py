"""Results of batches that were submitted by hand, or fetched by hand for a run."""
