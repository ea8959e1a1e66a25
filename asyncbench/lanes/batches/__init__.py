"""Batches of a provider at half the price. Each step outside is on disk before it is taken."""
