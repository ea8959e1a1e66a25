"""Load on a server: calls at drawn times, step by step, and the highest rate that meets a promise."""
