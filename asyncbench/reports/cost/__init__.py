"""Cost of calls, by model and cell, of the rest of a sweep, and of a right answer."""
