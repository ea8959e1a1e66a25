"""Files of batches for a provider's own page, and the results that come back."""
