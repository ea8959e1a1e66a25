"""A package, so that one browser lasts for its tests and no longer: its event loop would be in the way."""
