"""Standings: models ranked with ties, over all tasks and kind by kind."""
