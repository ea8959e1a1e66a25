"""The results folder: an event is durable before it counts, and ends up as Parquet that anyone can read."""
