"""The simulated world of the tests: providers, lanes, batches, loads and fleets on one virtual clock.

`night` runs the engine on it. `nights`, `budget_nights`, `stopping_nights`, `batch_nights` and `fleets` each
draw a scenario from a seed, play it, and hold it to their rules (`seeds`). `load` and `capacity` are servers
under a load.
"""
